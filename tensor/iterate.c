// See iterate.h.
#include "tensor/iterate.h"

#include "base/check.h"
#include "tensor/error.h"

#include <stdio.h>
#include <string.h>

enum base_status tensor__broadcast_shape(const struct tensor_geometry *a,
                                         const struct tensor_geometry *b, int64_t *sizes,
                                         int *result_rank) {
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    for (int dim = rank - 1; dim >= 0; dim--) {
        const int dim_a = dim - (rank - a->rank), dim_b = dim - (rank - b->rank);
        const int64_t size_a = dim_a >= 0 ? a->sizes[dim_a] : 1,
                      size_b = dim_b >= 0 ? b->sizes[dim_b] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return tensor__error(
                "The size of tensor a (%lld) must match the size of tensor b (%lld) "
                "at non-singleton dimension %d",
                (long long)size_a, (long long)size_b, dim);
        sizes[dim] = size_a == 1 ? size_b : size_a;
    }
    *result_rank = rank;
    return BASE_OK;
}

static void strides_broadcast(const struct tensor_geometry *geometry, int rank,
                              const int64_t *sizes, int64_t *strides) {
    const int added = rank - geometry->rank;
    for (int dim = 0; dim < rank; dim++) {
        const int own = dim - added;
        const bool is_repeated = own < 0 || (geometry->sizes[own] == 1 && sizes[dim] != 1);
        strides[dim] = is_repeated ? 0 : geometry->strides[own];
    }
}

static TENSOR_RARE enum base_status refuse_reach(const struct tensor_impl *impl) {
    const struct tensor_geometry *geometry = &impl->geometry;
    char text[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error("a tensor of size %s at offset %lld reaches past its storage of %zu bytes",
                         tensor_sizes_text(geometry->sizes, geometry->rank, text),
                         (long long)geometry->offset, impl->storage->bytes);
}

enum base_status tensor__operand(const struct tensor_impl *impl, int rank, const int64_t *sizes,
                                 struct tensor_operand *operand) {
    const struct tensor_geometry *geometry = &impl->geometry;
    int64_t bytes;
    if (!tensor_geometry_bytes(geometry, tensor__item_size(impl), &bytes) || geometry->offset < 0 ||
        (uint64_t)bytes > impl->storage->bytes)
        return refuse_reach(impl);
    operand->type = impl->type;
    operand->data = geometry->numel == 0 ? NULL : tensor__element(impl, geometry->offset);
    strides_broadcast(geometry, rank, sizes, operand->strides);
    return BASE_OK;
}

enum base_status tensor__check_same_device(const struct tensor_impl *a,
                                           const struct tensor_impl *b) {
    const struct tensor_place *place_a = &a->storage->place, *place_b = &b->storage->place;
    if (place_a->kind == place_b->kind && place_a->device == place_b->device)
        return BASE_OK;
    char names[2][32];
    const struct tensor_place *places[] = {place_a, place_b};
    for (int index = 0; index < 2; index++) {
        if (places[index]->kind == TENSOR_CPU)
            snprintf(names[index], sizeof names[index], "cpu");
        else
            snprintf(names[index], sizeof names[index], "cuda:%d", places[index]->device);
    }
    return tensor__error(
        "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
        names[0], names[1]);
}

enum base_status tensor__resize_output(struct tensor_impl *out,
                                       const struct tensor_geometry *result) {
    if (tensor_geometry_same_shape(&out->geometry, result))
        return BASE_OK;
    struct tensor_geometry geometry;
    tensor_geometry_copy(&geometry, result);
    geometry.offset = out->geometry.offset;
    int64_t bytes;
    if (!tensor_geometry_bytes(&geometry, tensor__item_size(out), &bytes))
        return tensor__error("numel: integer multiplication overflow");
    if (geometry.numel > 0 && (uint64_t)bytes > out->storage->bytes) {
        const enum base_status status = tensor__storage_resize(out->storage, (size_t)bytes);
        if (status != BASE_OK)
            return status;
    }
    char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
    if (out->geometry.numel != 0)
        tensor__warn(
            "An output with one or more elements was resized since it had shape %s, which does not "
            "match the required output shape %s. This behavior is deprecated, and in a future "
            "PyTorch "
            "release outputs will not be resized unless they have zero elements. You can "
            "explicitly "
            "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            tensor_sizes_text(out->geometry.sizes, out->geometry.rank, have),
            tensor_sizes_text(geometry.sizes, geometry.rank, want));
    tensor__impl_set_geometry(out, &geometry);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The steps

// What is worked out before anything is written.
struct plan {
    struct tensor_geometry shape; // sizes; strides of a new result
    enum tensor_type common, result;
};

static enum base_status overlaps_check(const struct tensor_iteration *iteration) {
    if (iteration->out == NULL)
        return BASE_OK;
    enum base_status status = tensor__check_no_internal_overlap(iteration->out);
    const struct tensor_impl *inputs[] = {iteration->a, iteration->b};
    for (int index = 0; index < 2 && status == BASE_OK; index++)
        if (inputs[index] != NULL)
            status = tensor__check_no_partial_overlap(iteration->out, inputs[index]);
    return status;
}

static TENSOR_RARE enum base_status refuse_output(const struct tensor_geometry *out,
                                                  const struct tensor_geometry *shape) {
    char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error("output with shape %s doesn't match the broadcast shape %s",
                         tensor_sizes_text(out->sizes, out->rank, have),
                         tensor_sizes_text(shape->sizes, shape->rank, want));
}

static enum base_status shape_find(const struct tensor_iteration *iteration, struct plan *plan) {
    int64_t sizes[TENSOR_RANK_MAX];
    int rank = iteration->a->geometry.rank;
    memcpy(sizes, iteration->a->geometry.sizes, (size_t)rank * sizeof sizes[0]);
    enum base_status status = BASE_OK;
    if (iteration->b != NULL)
        status =
            tensor__broadcast_shape(&iteration->a->geometry, &iteration->b->geometry, sizes, &rank);
    if (status == BASE_OK)
        status = tensor_geometry_init(&plan->shape, sizes, rank);
    if (status != BASE_OK)
        return status;
    int64_t numel;
    if (!tensor_geometry_count(&plan->shape, &numel))
        return tensor__error("numel: integer multiplication overflow");
    const struct tensor_geometry *out = iteration->out != NULL ? &iteration->out->geometry : NULL;
    if (iteration->is_in_place && !tensor_geometry_same_shape(out, &plan->shape))
        return refuse_output(out, &plan->shape);
    return BASE_OK;
}

static enum base_status types_find(const struct tensor_iteration *iteration, struct plan *plan) {
    struct tensor_promotion promotion = tensor_promotion_init();
    tensor_promotion_add(&promotion, iteration->a->type, iteration->a->geometry.rank);
    if (iteration->b != NULL)
        tensor_promotion_add(&promotion, iteration->b->type, iteration->b->geometry.rank);
    if (iteration->has_scalar)
        tensor_promotion_add_scalar(&promotion, iteration->scalar);
    plan->common = tensor_promotion_result(&promotion);
    if (iteration->result_type == TENSOR_RESULT_FLOATING && !tensor_type_is_floating(plan->common))
        plan->common = TENSOR_FLOAT32;
    plan->result = iteration->result_type == TENSOR_RESULT_BOOL ? TENSOR_BOOL : plan->common;
    const struct tensor_impl *out = iteration->out;
    if (out != NULL && !tensor_type_can_cast(plan->result, out->type))
        return tensor__error("result type %s can't be cast to the desired output type %s",
                             tensor_type_scalar_name(plan->result),
                             tensor_type_scalar_name(out->type));
    if (iteration->has_alpha && iteration->alpha.kind == TENSOR_SCALAR_FLOATING &&
        !tensor_type_is_floating(plan->common))
        return tensor__error(
            "For integral input tensors, argument alpha must not be a floating point number.");
    return BASE_OK;
}

// Strides of a new result: those of inputs of one shape if they are contiguous, channels-last or
// agree; else by the order of the inputs' strides. PyTorch counts a number as an input of no
// dimensions.
static void strides_find(const struct tensor_iteration *iteration, struct tensor_geometry *shape) {
    const struct tensor_impl *inputs[2] = {iteration->a, iteration->b};
    const int count = iteration->b == NULL ? 1 : 2;
    bool is_one_shape = !iteration->has_scalar || shape->rank == 0, is_same_strides = true;
    unsigned flags = ~0u;
    for (int index = 0; index < count; index++) {
        const struct tensor_geometry *geometry = &inputs[index]->geometry;
        is_one_shape &= tensor_geometry_same_shape(geometry, shape);
        flags &= inputs[index]->flags;
        is_same_strides = is_same_strides && geometry->rank == inputs[0]->geometry.rank &&
                          memcmp(geometry->strides, inputs[0]->geometry.strides,
                                 (size_t)geometry->rank * sizeof(int64_t)) == 0;
    }
    if (is_one_shape && (flags & TENSOR_IS_CONTIGUOUS) != 0)
        return;
    if (is_one_shape && (flags & TENSOR_IS_CHANNELS_LAST) != 0) {
        const enum base_status status = tensor_geometry_set_format(shape, TENSOR_CHANNELS_LAST);
        BASE_CHECK_EQ(status, BASE_OK); // the flag says that the rank is right
        return;
    }
    if (is_one_shape && (flags & TENSOR_IS_DENSE) != 0 && is_same_strides) {
        memcpy(shape->strides, inputs[0]->geometry.strides, (size_t)shape->rank * sizeof(int64_t));
        return;
    }
    int64_t strides[2][TENSOR_RANK_MAX];
    const int64_t *rows[2] = {strides[0], strides[1]};
    for (int index = 0; index < count; index++)
        strides_broadcast(&inputs[index]->geometry, shape->rank, shape->sizes, strides[index]);
    int order[TENSOR_RANK_MAX];
    tensor_geometry_order(shape->rank, shape->sizes, rows, count, order);
    bool is_row_major = true;
    for (int index = 0; index < shape->rank; index++)
        is_row_major &= order[index] == shape->rank - 1 - index;
    if (is_row_major)
        return;
    int64_t stride = 1;
    for (int index = 0; index < shape->rank; index++) {
        shape->strides[order[index]] = stride;
        stride *= shape->sizes[order[index]];
    }
}

static enum base_status run(const struct tensor_iteration *iteration, const struct plan *plan,
                            struct tensor_impl *out) {
    const struct tensor_backend *backend;
    enum base_status status = tensor__backend(&out->storage->place, &backend);
    if (status != BASE_OK)
        return status;
    struct tensor_loop loop = {.operation = iteration->operation,
                               .rank = plan->shape.rank,
                               .compute = plan->common,
                               .scalar = iteration->scalar,
                               .alpha =
                                   iteration->has_alpha ? iteration->alpha : tensor_integer(1)};
    memcpy(loop.sizes, plan->shape.sizes, (size_t)loop.rank * sizeof loop.sizes[0]);
    status = tensor__operand(out, loop.rank, loop.sizes, &loop.out);
    if (status == BASE_OK)
        status = tensor__operand(iteration->a, loop.rank, loop.sizes, &loop.a);
    if (status == BASE_OK && iteration->b != NULL)
        status = tensor__operand(iteration->b, loop.rank, loop.sizes, &loop.b);
    if (status != BASE_OK || plan->shape.numel == 0)
        return status;
    return backend->pointwise(&loop, tensor__device_stream(&out->storage->place));
}

enum base_status tensor__iterate(const struct tensor_iteration *iteration,
                                 struct tensor_impl **result) {
    struct plan plan;
    struct tensor_impl *out = iteration->out;
    enum base_status status = overlaps_check(iteration);
    if (status == BASE_OK && out != NULL)
        status = tensor__check_same_device(out, iteration->a);
    if (status == BASE_OK && iteration->b != NULL)
        status = tensor__check_same_device(iteration->a, iteration->b);
    if (status == BASE_OK)
        status = shape_find(iteration, &plan);
    if (status == BASE_OK)
        status = types_find(iteration, &plan);
    if (status == BASE_OK && out != NULL)
        status = tensor__impl_check_writable(out);
    if (status != BASE_OK)
        return status;
    strides_find(iteration, &plan.shape);
    if (out == NULL)
        status = tensor__impl_alloc(&iteration->a->storage->place, plan.result, &plan.shape, &out);
    else
        status = tensor__resize_output(out, &plan.shape);
    if (status == BASE_OK) {
        status = run(iteration, &plan, out);
        if (status != BASE_OK && iteration->out == NULL)
            tensor__impl_drop(out);
    }
    if (status == BASE_OK)
        *result = out;
    return status;
}

//------------------------------------------------------------------------------------------------
// Single loops

static enum base_status loop_run(enum tensor_pointwise operation, struct tensor_impl *to,
                                 const struct tensor_geometry *geometry,
                                 const struct tensor_impl *from, enum tensor_type compute,
                                 struct tensor_scalar scalar) {
    const struct tensor_backend *backend;
    struct tensor_loop loop = {
        .operation = operation, .rank = geometry->rank, .compute = compute, .scalar = scalar};
    enum base_status status = tensor__backend(&to->storage->place, &backend);
    if (status != BASE_OK)
        return status;
    memcpy(loop.sizes, geometry->sizes, (size_t)loop.rank * sizeof loop.sizes[0]);
    struct tensor_impl seen = *to; // TO as GEOMETRY sees it; borrowed
    tensor_geometry_copy(&seen.geometry, geometry);
    status = tensor__operand(&seen, loop.rank, loop.sizes, &loop.out);
    if (status == BASE_OK && from != NULL)
        status = tensor__operand(from, loop.rank, loop.sizes, &loop.a);
    if (status != BASE_OK || geometry->numel == 0)
        return status;
    return backend->pointwise(&loop, tensor__device_stream(&to->storage->place));
}

enum base_status tensor__copy_elements(struct tensor_impl *to, const struct tensor_impl *from) {
    return loop_run(TENSOR_COPY, to, &to->geometry, from, from->type, tensor_integer(0));
}

enum base_status tensor__fill_elements(struct tensor_impl *to, struct tensor_scalar value) {
    return loop_run(TENSOR_FILL, to, &to->geometry, NULL, to->type, value);
}

enum base_status tensor__accumulate_elements(struct tensor_impl *to,
                                             const struct tensor_geometry *geometry,
                                             const struct tensor_impl *from) {
    return loop_run(TENSOR_ACCUMULATE, to, geometry, from, to->type, tensor_integer(0));
}
