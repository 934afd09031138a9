// Sums and matrix products. See tensor.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/view_call.h"

#include <string.h>

// Which dimensions go; none named: all.
static enum base_status dims_mark(const struct tensor_geometry *geometry, const int64_t *dims,
                                  int count, bool *is_reduced) {
    memset(is_reduced, count == 0, TENSOR_RANK_MAX * sizeof *is_reduced);
    for (int index = 0; index < count; index++) {
        int dim;
        const enum base_status status = tensor_wrap_dim(dims[index], geometry->rank, true, &dim);
        if (status != BASE_OK)
            return status;
        if (is_reduced[dim] && geometry->rank > 0)
            return tensor__error("dim %d appears multiple times in the list of dims", dim);
        is_reduced[dim] = true;
    }
    return BASE_OK;
}

static enum base_status shape_reduce(const struct tensor_geometry *from, const bool *is_reduced,
                                     bool keep, struct tensor_geometry *to) {
    int64_t sizes[TENSOR_RANK_MAX];
    int rank = 0;
    for (int dim = 0; dim < from->rank; dim++) {
        if (!is_reduced[dim])
            sizes[rank++] = from->sizes[dim];
        else if (keep)
            sizes[rank++] = 1;
    }
    return tensor_geometry_init(to, sizes, rank);
}

// OUT, whose shape is right, gets the sums.
static enum base_status sums_write(struct tensor_impl *out, const struct tensor_impl *self,
                                   const bool *is_reduced, bool keep) {
    const struct tensor_backend *backend;
    const struct tensor_geometry *from = &self->geometry;
    struct tensor_loop loop = {.operation = TENSOR_ACCUMULATE, .rank = from->rank};
    memcpy(loop.sizes, from->sizes, (size_t)from->rank * sizeof loop.sizes[0]);
    loop.compute = out->type;
    enum base_status status = tensor__check_same_device(out, self);
    if (status == BASE_OK)
        status = tensor__backend(&out->storage->place, &backend);
    if (status == BASE_OK)
        status = tensor__operand(self, from->rank, from->sizes, &loop.a);
    struct tensor_operand seen;
    if (status == BASE_OK)
        status = tensor__operand(out, out->geometry.rank, out->geometry.sizes, &seen);
    if (status != BASE_OK)
        return status;
    loop.out.data = seen.data;
    loop.out.type = seen.type;
    for (int dim = 0, own = 0; dim < from->rank; dim++) {
        loop.out.strides[dim] = is_reduced[dim] ? 0 : seen.strides[own];
        own += !is_reduced[dim] || keep;
    }
    if (out->geometry.numel == 0)
        return BASE_OK;
    return backend->sum(&loop, is_reduced, tensor_stream(out->storage->place.device));
}

static enum base_status sum(struct tensor self, const int64_t *dims, int count, bool keep,
                            const struct tape_formula *formula, struct tensor *result) {
    const struct tensor_geometry *from = &self.impl->geometry;
    struct tape_node *node = NULL;
    struct tensor made = {0};
    struct tensor_geometry geometry;
    bool is_reduced[TENSOR_RANK_MAX];
    enum base_status status =
        tape_begin(formula, &self, 1, 1, sizeof(struct tape_sum_payload), &node);
    if (status == BASE_OK)
        status = dims_mark(from, dims, count, is_reduced);
    if (status == BASE_OK)
        status = shape_reduce(from, is_reduced, keep, &geometry);
    const enum tensor_type type =
        tensor_type_is_floating(self.impl->type) ? self.impl->type : TENSOR_INT64;
    if (status == BASE_OK) {
        // Where the dimensions that stay lie in another order than rows have, so does the result.
        struct tensor_geometry kept = {.rank = 0};
        for (int dim = 0; dim < from->rank; dim++) {
            if (is_reduced[dim] && !keep)
                continue;
            kept.sizes[kept.rank] = is_reduced[dim] ? 1 : from->sizes[dim];
            kept.strides[kept.rank++] = is_reduced[dim] ? 0 : from->strides[dim];
        }
        const int64_t *strides = kept.strides;
        int order[TENSOR_RANK_MAX];
        tensor_geometry_order(kept.rank, kept.sizes, &strides, 1, order);
        int64_t stride = 1;
        for (int index = 0; index < kept.rank && geometry.numel > 0; index++) {
            geometry.strides[order[index]] = stride;
            stride *= geometry.sizes[order[index]];
        }
        status = tensor__impl_alloc(&self.impl->storage->place, type, &geometry, &made.impl);
    }
    if (status == BASE_OK)
        status = sums_write(made.impl, self.impl, is_reduced, keep);
    if (status == BASE_OK)
        status = tape_prepare(made.impl, node);
    if (status == BASE_OK) {
        if (node != NULL) {
            struct tape_sum_payload *payload = node->payload;
            payload->rank = from->rank;
            payload->is_kept = keep;
            memcpy(payload->sizes, from->sizes, (size_t)from->rank * sizeof payload->sizes[0]);
            memcpy(payload->is_reduced, is_reduced, sizeof is_reduced);
        }
        tape_finish(made.impl, node, 0);
        *result = made;
    } else {
        tensor_release(&made);
    }
    tape_node_drop(node);
    return status;
}

enum base_status tensor_sum(struct tensor self, struct tensor *result) {
    return sum(self, NULL, 0, false, &tape_sum, result);
}

enum base_status tensor_sum_dims(struct tensor self, const int64_t *dims, int count, bool keep,
                                 struct tensor *result) {
    return sum(self, dims, count, keep, &tape_sum_dims, result);
}

enum base_status tensor_sum_out(struct tensor out, struct tensor self, const int64_t *dims,
                                int count) {
    struct tensor_geometry geometry;
    bool is_reduced[TENSOR_RANK_MAX];
    enum base_status status = tensor__check_out("sum", out, &self, 1);
    if (status == BASE_OK)
        status = dims_mark(&self.impl->geometry, dims, count, is_reduced);
    if (status == BASE_OK)
        status = shape_reduce(&self.impl->geometry, is_reduced, false, &geometry);
    if (status == BASE_OK)
        status = tensor__check_no_internal_overlap(out.impl);
    if (status == BASE_OK)
        status = tensor__check_no_overlap(out.impl, &geometry, self.impl);
    if (status == BASE_OK)
        status = tensor__check_same_device(out.impl, self.impl);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(out.impl);
    if (status == BASE_OK)
        status = tensor__resize_output(out.impl, &geometry);
    if (status == BASE_OK)
        status = sums_write(out.impl, self.impl, is_reduced, false);
    if (status == BASE_OK)
        tensor__impl_bump(out.impl);
    return status;
}

//------------------------------------------------------------------------------------------------
// Products

static enum base_status product_check(struct tensor a, struct tensor b) {
    const struct tensor_geometry *left = &a.impl->geometry, *right = &b.impl->geometry;
    if (left->rank != 2)
        return tensor__error("mm: self must be a matrix, got %d-D tensor", left->rank);
    if (right->rank != 2)
        return tensor__error("mm: mat2 must be a matrix, got %d-D tensor", right->rank);
    if (left->sizes[1] != right->sizes[0])
        return tensor__error(
            "mm: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
            (long long)left->sizes[0], (long long)left->sizes[1], (long long)right->sizes[0],
            (long long)right->sizes[1]);
    if (a.impl->type != b.impl->type)
        return tensor__error("expected m1 and m2 to have the same dtype, but got: %s != %s",
                             tensor_type_native_name(a.impl->type),
                             tensor_type_native_name(b.impl->type));
    return tensor__check_same_device(a.impl, b.impl);
}

static enum base_status product_write(struct tensor_impl *out, const struct tensor_impl *a,
                                      const struct tensor_impl *b) {
    const struct tensor_backend *backend;
    struct tensor_operand to, left, right;
    enum base_status status = tensor__backend(&out->storage->place, &backend);
    if (status == BASE_OK)
        status = tensor__operand(out, 2, out->geometry.sizes, &to);
    if (status == BASE_OK)
        status = tensor__operand(a, 2, a->geometry.sizes, &left);
    if (status == BASE_OK)
        status = tensor__operand(b, 2, b->geometry.sizes, &right);
    if (status != BASE_OK || out->geometry.numel == 0)
        return status;
    const struct tensor_product product = {.type = out->type,
                                           .batch = 1,
                                           .m = out->geometry.sizes[0],
                                           .n = out->geometry.sizes[1],
                                           .k = a->geometry.sizes[1],
                                           .out = to.data,
                                           .a = left.data,
                                           .b = right.data,
                                           .out_strides = {0, to.strides[0], to.strides[1]},
                                           .a_strides = {0, left.strides[0], left.strides[1]},
                                           .b_strides = {0, right.strides[0], right.strides[1]}};
    return backend->product(&product, tensor_stream(out->storage->place.device));
}

enum base_status tensor_mm(struct tensor a, struct tensor b, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    struct tensor_geometry geometry;
    enum base_status status = tape_begin(&tape_mm, (struct tensor[]){a, b}, 2, 1, 0, &node);
    if (status == BASE_OK && node != NULL && tape_wants(node, 0))
        status = tape_save(node, 1, b.impl);
    if (status == BASE_OK && node != NULL && tape_wants(node, 1))
        status = tape_save(node, 0, a.impl);
    if (status == BASE_OK)
        status = product_check(a, b);
    if (status == BASE_OK)
        status = tensor_geometry_init(
            &geometry, (int64_t[]){a.impl->geometry.sizes[0], b.impl->geometry.sizes[1]}, 2);
    if (status == BASE_OK)
        status = tensor__impl_alloc(&a.impl->storage->place, a.impl->type, &geometry, &made.impl);
    if (status == BASE_OK)
        status = product_write(made.impl, a.impl, b.impl);
    if (status == BASE_OK)
        status = tape_prepare(made.impl, node);
    if (status == BASE_OK) {
        tape_finish(made.impl, node, 0);
        *result = made;
    } else {
        tensor_release(&made);
    }
    tape_node_drop(node);
    return status;
}

enum base_status tensor_mm_out(struct tensor out, struct tensor a, struct tensor b) {
    enum base_status status = tensor__check_out("mm", out, (struct tensor[]){a, b}, 2);
    if (status == BASE_OK)
        status = product_check(a, b);
    if (status == BASE_OK && out.impl->type != a.impl->type)
        status = tensor__error("Expected out tensor to have dtype %s, but got %s instead",
                               tensor_type_native_name(a.impl->type),
                               tensor_type_native_name(out.impl->type));
    if (status == BASE_OK)
        status = tensor__check_no_internal_overlap(out.impl);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(out.impl);
    if (status != BASE_OK)
        return status;
    // The output may be an input: the product is made apart, then taken over.
    struct tensor product;
    struct tensor_geometry geometry;
    status = tensor_geometry_init(
        &geometry, (int64_t[]){a.impl->geometry.sizes[0], b.impl->geometry.sizes[1]}, 2);
    if (status == BASE_OK)
        status =
            tensor__impl_alloc(&a.impl->storage->place, a.impl->type, &geometry, &product.impl);
    if (status != BASE_OK)
        return status;
    status = product_write(product.impl, a.impl, b.impl);
    if (status == BASE_OK)
        status = tensor__check_same_device(out.impl, a.impl);
    if (status == BASE_OK)
        status = tensor__resize_output(out.impl, &geometry);
    if (status == BASE_OK)
        status = tensor__copy_elements(out.impl, product.impl);
    if (status == BASE_OK)
        tensor__impl_bump(out.impl);
    tensor_release(&product);
    return status;
}

// Vectors become matrices with a dimension of 1, which goes again after.
enum base_status tensor_matmul(struct tensor a, struct tensor b, struct tensor *result) {
    const int left = a.impl->geometry.rank, right = b.impl->geometry.rank;
    if (left == 0 || right == 0)
        return tensor__error(
            "both arguments to matmul need to be at least 1D, but they are %dD and %dD", left,
            right);
    if (left > 2 || right > 2)
        return base_status_set(BASE_UNSUPPORTED, "matmul of more than two dimensions: %d and %d",
                               left, right);
    if (left == 2 && right == 2)
        return tensor_mm(a, b, result);
    const struct tensor_geometry *shape_a = &a.impl->geometry, *shape_b = &b.impl->geometry;
    if (shape_a->sizes[left - 1] != shape_b->sizes[0]) {
        if (left == 2)
            return tensor__error("size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                                 (long long)shape_a->sizes[0], (long long)shape_a->sizes[0],
                                 (long long)shape_a->sizes[1], (long long)shape_b->sizes[0]);
        if (right == 1)
            return tensor__error(
                "inconsistent tensor size, expected tensor [%lld] and src [%lld] to "
                "have the same number of elements, but got %lld and %lld elements "
                "respectively",
                (long long)shape_a->sizes[0], (long long)shape_b->sizes[0],
                (long long)shape_a->sizes[0], (long long)shape_b->sizes[0]);
    }
    struct tensor rows = {0}, columns = {0}, product = {0}, squeezed = {0};
    enum base_status status = BASE_OK;
    if (left == 1)
        status = tensor_unsqueeze(a, 0, &rows);
    else
        rows = tensor_retain(a);
    if (status == BASE_OK && right == 1)
        status = tensor_unsqueeze(b, 1, &columns);
    else if (status == BASE_OK)
        columns = tensor_retain(b);
    if (status == BASE_OK)
        status = tensor_mm(rows, columns, &product);
    if (status == BASE_OK && right == 1) {
        status = tensor_squeeze_dim(product, 1, &squeezed);
        tensor_release(&product);
        product = squeezed;
        squeezed.impl = NULL;
    }
    if (status == BASE_OK && left == 1) {
        status = tensor_squeeze_dim(product, 0, &squeezed);
        tensor_release(&product);
        product = squeezed;
    }
    tensor_release(&rows);
    tensor_release(&columns);
    if (status == BASE_OK)
        *result = product;
    else
        tensor_release(&product);
    return status;
}
