// Matrix products. See tensor.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/operator.h"

#include <string.h>

static enum base_status types_check(struct tensor a, struct tensor b) {
    if (a.impl->type != b.impl->type)
        return tensor__error("expected m1 and m2 to have the same dtype, but got: %s != %s",
                             tensor_type_native_name(a.impl->type),
                             tensor_type_native_name(b.impl->type));
    return tensor__check_same_device(a.impl, b.impl);
}

static enum base_status mm_check(struct tensor a, struct tensor b) {
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
    return types_check(a, b);
}

static enum base_status bmm_check(struct tensor a, struct tensor b) {
    const struct tensor_geometry *left = &a.impl->geometry, *right = &b.impl->geometry;
    if (left->rank != 3)
        return tensor__error("batch1 must be a 3D tensor");
    if (right->rank != 3)
        return tensor__error("batch2 must be a 3D tensor");
    if (left->sizes[0] != right->sizes[0] || left->sizes[2] != right->sizes[1])
        return tensor__error(
            "Expected size for first two dimensions of batch2 tensor to be: [%lld, "
            "%lld] but got: [%lld, %lld].",
            (long long)left->sizes[0], (long long)left->sizes[2], (long long)right->sizes[0],
            (long long)right->sizes[1]);
    return types_check(a, b);
}

// Shape of the product of two matrices, or of two batches of them.
static enum base_status product_shape(struct tensor a, struct tensor b,
                                      struct tensor_geometry *geometry) {
    const int rank = a.impl->geometry.rank;
    int64_t sizes[3];
    memcpy(sizes, a.impl->geometry.sizes, (size_t)rank * sizeof sizes[0]);
    sizes[rank - 1] = b.impl->geometry.sizes[rank - 1];
    return tensor_geometry_init(geometry, sizes, rank);
}

static void strides_take(const struct tensor_operand *operand, int rank, int64_t strides[3]) {
    strides[0] = rank == 3 ? operand->strides[0] : 0;
    strides[1] = operand->strides[rank - 2];
    strides[2] = operand->strides[rank - 1];
}

// OUT + BIAS, a number for each column, where the product could not add it on the way.
static enum base_status bias_add(const struct tensor_backend *backend, struct tensor_impl *out,
                                 const struct tensor_impl *bias) {
    const struct tensor_geometry *shape = &out->geometry;
    struct tensor_loop loop = {.operation = TENSOR_ADD,
                               .rank = shape->rank,
                               .compute = out->type,
                               .alpha = tensor_integer(1)};
    memcpy(loop.sizes, shape->sizes, (size_t)shape->rank * sizeof loop.sizes[0]);
    enum base_status status = tensor__operand(out, shape->rank, shape->sizes, &loop.out);
    loop.a = loop.out;
    if (status == BASE_OK)
        status = tensor__operand(bias, shape->rank, shape->sizes, &loop.b);
    if (status == BASE_OK)
        status = backend->pointwise(&loop, tensor__device_stream(&out->storage->place));
    return status;
}

// With a workspace for the call, where programs are told to bring one; it goes at once: the stream
// orders what comes after.
static enum base_status product_run(const struct tensor_backend *backend,
                                    const struct tensor_place *place,
                                    struct tensor_product *product) {
    struct tensor_storage *workspace;
    enum base_status status = tensor__workspace_create(
        place, product->bias != NULL ? TENSOR_WORKSPACE_BIASED_PRODUCT : TENSOR_WORKSPACE_PRODUCT,
        &workspace);
    if (status != BASE_OK)
        return status;
    if (workspace != NULL) {
        product->workspace = workspace->data;
        product->workspace_bytes = workspace->bytes;
    }
    status = backend->product(product, tensor__device_stream(place));
    if (workspace != NULL)
        tensor__storage_drop(workspace);
    return status;
}

enum base_status tensor__product_write(struct tensor_impl *out, const struct tensor_impl *a,
                                       const struct tensor_impl *b,
                                       const struct tensor_impl *bias) {
    const struct tensor_backend *backend;
    struct tensor_operand to, left, right, added = {0};
    const int rank = out->geometry.rank;
    enum base_status status = tensor__backend(&out->storage->place, &backend);
    if (status == BASE_OK)
        status = tensor__operand(out, rank, out->geometry.sizes, &to);
    if (status == BASE_OK)
        status = tensor__operand(a, rank, a->geometry.sizes, &left);
    if (status == BASE_OK)
        status = tensor__operand(b, rank, b->geometry.sizes, &right);
    if (status == BASE_OK && bias != NULL)
        status = tensor__operand(bias, rank, out->geometry.sizes, &added);
    if (status != BASE_OK || out->geometry.numel == 0)
        return status;
    struct tensor_product product = {.type = out->type,
                                     .batch = rank == 3 ? out->geometry.sizes[0] : 1,
                                     .m = out->geometry.sizes[rank - 2],
                                     .n = out->geometry.sizes[rank - 1],
                                     .k = a->geometry.sizes[rank - 1],
                                     .out = to.data,
                                     .a = left.data,
                                     .b = right.data};
    strides_take(&to, rank, product.out_strides);
    strides_take(&left, rank, product.a_strides);
    strides_take(&right, rank, product.b_strides);
    if (bias != NULL && backend->adds_bias != NULL && added.strides[rank - 1] == 1 &&
        backend->adds_bias(&product))
        product.bias = added.data;
    status = product_run(backend, &out->storage->place, &product);
    if (status == BASE_OK && bias != NULL && product.bias == NULL)
        status = bias_add(backend, out, bias);
    return status;
}

static enum base_status product_make(struct tensor a, struct tensor b,
                                     const struct tape_formula *formula,
                                     enum base_status (*check)(struct tensor a, struct tensor b),
                                     struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    struct tensor_geometry geometry;
    enum base_status status = tape_begin(formula, (struct tensor[]){a, b}, 2, 1,
                                         sizeof(struct tape_product_payload), &node);
    if (status == BASE_OK && node != NULL && tape_wants(node, 0))
        status = tape_save(node, 1, b.impl);
    if (status == BASE_OK && node != NULL && tape_wants(node, 1))
        status = tape_save(node, 0, a.impl);
    if (status == BASE_OK)
        status = check(a, b);
    if (status == BASE_OK)
        status = product_shape(a, b, &geometry);
    if (status == BASE_OK && node != NULL)
        *(struct tape_product_payload *)node->payload = tape__product_payload(a.impl, b.impl);
    if (status == BASE_OK)
        status = tensor__impl_alloc(&a.impl->storage->place, a.impl->type, &geometry, &made.impl);
    if (status == BASE_OK)
        status = tensor__product_write(made.impl, a.impl, b.impl, NULL);
    return tensor__explain(tape_end(status, node, &made, result),
                           a.impl->geometry.rank == 2 ? "mm" : "bmm", (struct tensor[]){a, b}, 2);
}

enum base_status tensor_mm(struct tensor a, struct tensor b, struct tensor *result) {
    return product_make(a, b, &tape_mm, mm_check, result);
}

enum base_status tensor_bmm(struct tensor a, struct tensor b, struct tensor *result) {
    return product_make(a, b, &tape_bmm, bmm_check, result);
}

enum base_status tensor_mm_out(struct tensor out, struct tensor a, struct tensor b) {
    enum base_status status = tensor__check_out("mm", out, (struct tensor[]){a, b}, 2);
    if (status == BASE_OK)
        status = mm_check(a, b);
    if (status == BASE_OK && out.impl->type != a.impl->type)
        status = tensor__error("Expected out tensor to have dtype %s, but got %s instead",
                               tensor_type_native_name(a.impl->type),
                               tensor_type_native_name(out.impl->type));
    if (status == BASE_OK)
        status = tensor__check_same_device(out.impl, a.impl);
    if (status == BASE_OK)
        status = tensor__check_no_internal_overlap(out.impl);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(out.impl);
    if (status != BASE_OK)
        return status;
    // The output may be an input: the product is made apart, then taken over.
    struct tensor product = {0};
    struct tensor_geometry geometry;
    status = product_shape(a, b, &geometry);
    if (status == BASE_OK)
        status =
            tensor__impl_alloc(&a.impl->storage->place, a.impl->type, &geometry, &product.impl);
    if (status == BASE_OK)
        status = tensor__product_write(product.impl, a.impl, b.impl, NULL);
    if (status == BASE_OK)
        status = tensor__resize_output(out.impl, &geometry);
    if (status == BASE_OK)
        status = tensor__copy_elements(out.impl, product.impl);
    if (status == BASE_OK)
        tensor__impl_bump(out.impl);
    tensor_release(&product);
    return status;
}

//------------------------------------------------------------------------------------------------
// Of any number of dimensions

static enum base_status vectors_check(const struct tensor_geometry *a,
                                      const struct tensor_geometry *b) {
    if (a->rank == 0 || b->rank == 0)
        return tensor__error(
            "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a->rank,
            b->rank);
    if (a->rank == 2 && b->rank == 1 && a->sizes[1] != b->sizes[0])
        return tensor__error("size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                             (long long)a->sizes[0], (long long)a->sizes[0], (long long)a->sizes[1],
                             (long long)b->sizes[0]);
    if (a->rank == 1 && b->rank == 1 && a->sizes[0] != b->sizes[0])
        return tensor__error("inconsistent tensor size, expected tensor [%lld] and src [%lld] to "
                             "have the same number of elements, but got %lld and %lld elements "
                             "respectively",
                             (long long)a->sizes[0], (long long)b->sizes[0], (long long)a->sizes[0],
                             (long long)b->sizes[0]);
    return BASE_OK;
}

// Many rows of A, one matrix B: all rows are one matrix.
static enum base_status product_folded(struct tensor a, struct tensor b, struct tensor *result) {
    const struct tensor_geometry *shape = &a.impl->geometry;
    int64_t sizes[TENSOR_RANK_MAX], rows = 1;
    memcpy(sizes, shape->sizes, (size_t)shape->rank * sizeof sizes[0]);
    for (int dim = 0; dim < shape->rank - 1; dim++)
        rows *= sizes[dim];
    struct tensor flat, product = {0};
    enum base_status status =
        tensor_reshape(a, (int64_t[]){rows, sizes[shape->rank - 1]}, 2, &flat);
    if (status != BASE_OK)
        return status;
    status = tensor_mm(flat, b, &product);
    sizes[shape->rank - 1] = b.impl->geometry.sizes[1];
    if (status == BASE_OK)
        status = tensor_reshape(product, sizes, shape->rank, result);
    tensor_release(&product);
    tensor_release(&flat);
    return status;
}

// SELF with its leading dimensions expanded to BATCH, then as one.
static enum base_status batch_flatten(struct tensor self, const int64_t *batch, int count,
                                      struct tensor *result) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    int64_t sizes[TENSOR_RANK_MAX], all = 1;
    for (int dim = 0; dim < count; dim++)
        all *= sizes[dim] = batch[dim];
    sizes[count] = shape->sizes[shape->rank - 2];
    sizes[count + 1] = shape->sizes[shape->rank - 1];
    struct tensor expanded;
    enum base_status status = tensor_expand(self, sizes, count + 2, &expanded);
    if (status != BASE_OK)
        return status;
    status = tensor_reshape(expanded, (int64_t[]){all, sizes[count], sizes[count + 1]}, 3, result);
    tensor_release(&expanded);
    return status;
}

static enum base_status product_batched(struct tensor a, struct tensor b, struct tensor *result) {
    struct tensor_geometry left, right;
    int64_t sizes[TENSOR_RANK_MAX];
    int count;
    tensor_geometry_copy(&left, &a.impl->geometry);
    tensor_geometry_copy(&right, &b.impl->geometry);
    left.rank -= 2;
    right.rank -= 2;
    enum base_status status = tensor__broadcast_shape(&left, &right, sizes, &count);
    struct tensor batch_a = {0}, batch_b = {0}, product = {0};
    if (status == BASE_OK)
        status = batch_flatten(a, sizes, count, &batch_a);
    if (status == BASE_OK)
        status = batch_flatten(b, sizes, count, &batch_b);
    if (status == BASE_OK)
        status = tensor_bmm(batch_a, batch_b, &product);
    sizes[count] = left.sizes[left.rank];
    sizes[count + 1] = right.sizes[right.rank + 1];
    if (status == BASE_OK)
        status = tensor_reshape(product, sizes, count + 2, result);
    tensor_release(&batch_a);
    tensor_release(&batch_b);
    tensor_release(&product);
    return status;
}

// Takes a dimension of size 1 out of *self.
static enum base_status dim_drop(struct tensor *self, int64_t dim) {
    struct tensor squeezed;
    const enum base_status status = tensor_squeeze_dim(*self, dim, &squeezed);
    if (status != BASE_OK)
        return status;
    tensor_release(self);
    *self = squeezed;
    return BASE_OK;
}

enum base_status tensor_matmul(struct tensor a, struct tensor b, struct tensor *result) {
    const int left = a.impl->geometry.rank, right = b.impl->geometry.rank;
    enum base_status status = vectors_check(&a.impl->geometry, &b.impl->geometry);
    if (status != BASE_OK)
        return status;
    // Vectors become matrices with a dimension of 1, which goes again after.
    struct tensor rows = {0}, columns = {0}, product = {0};
    if (left == 1)
        status = tensor_unsqueeze(a, 0, &rows);
    else
        rows = tensor_retain(a);
    if (status == BASE_OK && right == 1)
        status = tensor_unsqueeze(b, 1, &columns);
    else if (status == BASE_OK)
        columns = tensor_retain(b);
    if (status == BASE_OK && left <= 2 && right <= 2)
        status = tensor_mm(rows, columns, &product);
    else if (status == BASE_OK && right <= 2)
        status = product_folded(rows, columns, &product);
    else if (status == BASE_OK)
        status = product_batched(rows, columns, &product);
    if (status == BASE_OK && right == 1)
        status = dim_drop(&product, -1);
    if (status == BASE_OK && left == 1)
        status = dim_drop(&product, right == 1 ? -1 : -2);
    tensor_release(&rows);
    tensor_release(&columns);
    if (status == BASE_OK)
        *result = product;
    else
        tensor_release(&product);
    return status;
}
