// Sums. See tensor.h.
#include "tensor/reduce.h"

#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/iterate.h"
#include "tensor/operator.h"
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

// With the memory that the device wants for the time.
static enum base_status sums_run(const struct tensor_backend *backend,
                                 const struct tensor_place *place, const struct tensor_loop *loop,
                                 const bool *is_reduced) {
    struct tensor_storage *staging = NULL, *counters = NULL;
    struct tensor_sum_memory memory = {.plan = {.parts = 1}};
    enum base_status status = BASE_OK;
    if (backend->sum_plan != NULL)
        memory.plan = backend->sum_plan(loop, is_reduced, place->device);
    if (memory.plan.parts > 1) {
        status = tensor__storage_create(place, memory.plan.staging_bytes, &staging);
        if (status == BASE_OK)
            status = tensor__storage_create(place, memory.plan.counter_bytes, &counters);
    }
    if (status == BASE_OK && counters != NULL) {
        memory.staging = staging->data;
        memory.counters = counters->data;
    }
    if (status == BASE_OK)
        status = backend->sum(loop, is_reduced, &memory, tensor__device_stream(place));
    if (counters != NULL)
        tensor__storage_drop(counters);
    if (staging != NULL)
        tensor__storage_drop(staging);
    return status;
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
    return sums_run(backend, &out->storage->place, &loop, is_reduced);
}

static void payload_fill(struct tape_sum_payload *payload, const struct tensor_geometry *from,
                         const bool *is_reduced, bool keep) {
    payload->rank = from->rank;
    payload->is_kept = keep;
    memcpy(payload->sizes, from->sizes, (size_t)from->rank * sizeof payload->sizes[0]);
    memcpy(payload->is_reduced, is_reduced, sizeof payload->is_reduced);
}

enum base_status tensor__sum_payload(struct tensor self, const int64_t *dims, int count, bool keep,
                                     struct tape_sum_payload *payload) {
    bool is_reduced[TENSOR_RANK_MAX];
    const enum base_status status = dims_mark(&self.impl->geometry, dims, count, is_reduced);
    if (status == BASE_OK)
        payload_fill(payload, &self.impl->geometry, is_reduced, keep);
    return status;
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
    if (status == BASE_OK && node != NULL)
        payload_fill(node->payload, from, is_reduced, keep);
    return tensor__explain(tape_end(status, node, &made, result), "sum", &self, 1);
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
