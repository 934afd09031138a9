// Clipping of gradients. See nn.h.
#include "tensor/error.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <stdlib.h>

#define RUN 65536 // squares that are added up at once

// Sums of SELF's squares, each of a run of it, into PARTIAL.
static enum base_status squares_write(struct tensor self, struct tensor partial) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor flat = {0};
    struct tensor_kernel_squares kernel = {.count = self.impl->geometry.numel,
                                           .parts = partial.impl->geometry.numel};
    enum base_status status = BASE_OK;
    if ((self.impl->flags & TENSOR_IS_DENSE) != 0) // in any order
        flat = tensor_retain(self);
    else
        status = tensor_contiguous(self, TENSOR_CONTIGUOUS, &flat);
    if (status == BASE_OK)
        status = tensor__flat(flat.impl, &kernel.a);
    if (status == BASE_OK)
        status = tensor__flat(partial.impl, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(self.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->squares(&kernel, stream);
    tensor_release(&flat);
    return status;
}

static int64_t runs_of(struct tensor self) { return (self.impl->geometry.numel + RUN - 1) / RUN; }

// *norm = the root of the sum of SELF's squares, by way of its part of PARTIAL from FIRST on.
static enum base_status norm_of(struct tensor self, struct tensor partial, int64_t first,
                                struct tensor *norm) {
    struct tensor own = {0};
    enum base_status status = tensor_narrow(partial, 0, first, runs_of(self), &own);
    if (status == BASE_OK)
        status = squares_write(self, own);
    if (status == BASE_OK)
        status = tensor_sum_out(*norm, own, NULL, 0);
    if (status == BASE_OK)
        status = tensor_sqrt_(*norm);
    tensor_release(&own);
    return status;
}

// *factor = NORM / (TOTAL + 1e-6), by way of the reciprocal as PyTorch has it, on the device.
static enum base_status factor_make(struct tensor total, double norm, struct tensor *factor) {
    struct tensor shifted = {0}, reciprocal = {0};
    enum base_status status =
        tensor_add(total, tensor_operand_floating(1e-6), tensor_integer(1), &shifted);
    if (status == BASE_OK)
        status = tensor_full(&total.impl->storage->place, total.impl->type, NULL, 0,
                             tensor_integer(1), &reciprocal);
    if (status == BASE_OK)
        status = tensor_div_(reciprocal, tensor_operand_tensor(shifted));
    if (status == BASE_OK)
        status = tensor_mul(reciprocal, tensor_operand_floating(norm), factor);
    tensor_release(&reciprocal);
    tensor_release(&shifted);
    return status;
}

// *clamped = the smaller of 1 and FACTOR: min(x, 1) = -max(-x, -1).
static enum base_status factor_clamp(struct tensor factor, struct tensor *clamped) {
    struct tensor made;
    enum base_status status = tensor_neg(factor, &made);
    if (status != BASE_OK)
        return status;
    const struct tensor_iteration most = {.operation = TENSOR_MAXIMUM,
                                          .result_type = TENSOR_RESULT_COMMON,
                                          .out = made.impl,
                                          .is_in_place = true,
                                          .a = made.impl,
                                          .has_scalar = true,
                                          .scalar = tensor_integer(-1)};
    struct tensor_impl *same;
    status = tensor__iterate(&most, &same);
    if (status == BASE_OK)
        status = tensor_neg_(made);
    if (status == BASE_OK)
        *clamped = made;
    else
        tensor_release(&made);
    return status;
}

// The norm of each. NORMS has room for COUNT, zeroed; the caller releases them.
static enum base_status norms_make(int count, const struct tensor *gradients,
                                   struct tensor *norms) {
    const struct tensor_impl *like = gradients[0].impl;
    struct tensor partial;
    int64_t runs = 0, first = 0;
    for (int index = 0; index < count; index++)
        runs += runs_of(gradients[index]);
    enum base_status status =
        tensor__make(like, tensor__wide(like->type), (int64_t[]){runs}, 1, &partial);
    if (status != BASE_OK)
        return status;
    for (int index = 0; index < count && status == BASE_OK; index++)
        status = tensor__make(gradients[index].impl, tensor__wide(gradients[index].impl->type),
                              NULL, 0, &norms[index]);
    for (int index = 0; index < count && status == BASE_OK; index++) {
        status = norm_of(gradients[index], partial, first, &norms[index]);
        first += runs_of(gradients[index]);
    }
    tensor_release(&partial);
    return status;
}

// *total = the norm of all of them.
static enum base_status norms_join(int count, const struct tensor *gradients,
                                   struct tensor *total) {
    struct tensor *norms = calloc((size_t)count, sizeof *norms), all = {0}, sum = {0};
    if (norms == NULL)
        return base_status_set(BASE_HOST_MEMORY, "clip_grad_norm_: no host memory");
    enum base_status status = norms_make(count, gradients, norms);
    if (status == BASE_OK)
        status = tensor_stack(norms, count, 0, &all);
    if (status == BASE_OK)
        status = tensor__make(all.impl, all.impl->type, NULL, 0, &sum);
    if (status == BASE_OK)
        status = squares_write(all, sum);
    if (status == BASE_OK)
        status = tensor_sqrt_(sum);
    tensor_release(&all);
    for (int index = count - 1; index >= 0; index--) // as a Python list lets go of its elements
        tensor_release(&norms[index]);
    free(norms);
    if (status == BASE_OK)
        *total = sum;
    else
        tensor_release(&sum);
    return status;
}

enum base_status tensor_clip_grad_norm_(int count, const struct tensor *gradients, double norm,
                                        struct tensor *total) {
    struct tensor whole = {0}, factor = {0}, clamped = {0};
    enum base_status status = BASE_OK;
    if (count < 1)
        return tensor__error("clip_grad_norm_: there are no gradients");
    for (int index = 0; index < count && status == BASE_OK; index++) {
        status = tensor__check_floating("clip_grad_norm_", gradients[index].impl);
        if (status == BASE_OK)
            status = tensor__check_same_device(gradients[0].impl, gradients[index].impl);
        if (status == BASE_OK)
            status = tensor__check_no_internal_overlap(gradients[index].impl);
        if (status == BASE_OK)
            status = tensor__impl_check_writable(gradients[index].impl);
    }
    const bool was_off = tensor__gradients_off();
    if (status == BASE_OK)
        status = norms_join(count, gradients, &whole);
    if (status == BASE_OK)
        status = factor_make(whole, norm, &factor);
    if (status == BASE_OK)
        status = factor_clamp(factor, &clamped);
    for (int index = 0; index < count && status == BASE_OK; index++)
        status = tensor_mul_(gradients[index], tensor_operand_tensor(clamped));
    tensor__gradients_restore(was_off);
    tensor_release(&factor);
    tensor_release(&clamped);
    if (status == BASE_OK && total != NULL)
        *total = tensor_retain(whole);
    tensor_release(&whole);
    return tensor__explain(status, "clip_grad_norm_", gradients, count < 8 ? count : 8);
}
