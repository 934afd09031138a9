// Steps of optimisers. See nn.h.
#include "tensor/error.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <math.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Checks: all, before the first write

// STATE lies as PARAMETER does: one loop from end to end does for both.
static enum base_status state_check(const char *name, int index, const char *what,
                                    struct tensor parameter, struct tensor state) {
    const struct tensor_geometry *want = &parameter.impl->geometry;
    char text[2][TENSOR_SIZES_TEXT_SIZE];
    if (state.impl == NULL)
        return tensor__error("%s: parameter %d has no %s", name, index, what);
    const struct tensor_geometry *have = &state.impl->geometry;
    if (!tensor_geometry_same_shape(want, have))
        return tensor__error("%s: parameter %d has shape %s, its %s %s", name, index,
                             tensor_sizes_text(want->sizes, want->rank, text[0]), what,
                             tensor_sizes_text(have->sizes, have->rank, text[1]));
    const bool both_in_rows =
        (parameter.impl->flags & state.impl->flags & TENSOR_IS_CONTIGUOUS) != 0;
    if (!both_in_rows &&
        memcmp(want->strides, have->strides, (size_t)want->rank * sizeof want->strides[0]) != 0)
        return tensor__error("%s: parameter %d has strides %s, its %s %s", name, index,
                             tensor_sizes_text(want->strides, want->rank, text[0]), what,
                             tensor_sizes_text(have->strides, have->rank, text[1]));
    const enum base_status status = tensor__check_floating(name, state.impl);
    return status != BASE_OK ? status : tensor__check_same_device(parameter.impl, state.impl);
}

static enum base_status parameter_check(const char *name, int index, struct tensor parameter) {
    if (parameter.impl == NULL)
        return tensor__error("%s: there is no parameter %d", name, index);
    if ((parameter.impl->flags & TENSOR_IS_DENSE) == 0)
        return tensor__error("%s: the elements of parameter %d have gaps or share memory", name,
                             index);
    const enum base_status status = tensor__check_floating(name, parameter.impl);
    return status != BASE_OK ? status : tensor__impl_check_writable(parameter.impl);
}

static enum base_status written_check(const char *name, int index, const char *what,
                                      struct tensor parameter, struct tensor state) {
    const enum base_status status = state_check(name, index, what, parameter, state);
    return status != BASE_OK ? status : tensor__impl_check_writable(state.impl);
}

//------------------------------------------------------------------------------------------------
// Adam

static enum base_status adam_fused(const struct tensor_adamw *adamw, double correction1,
                                   double correction2, struct tensor parameter,
                                   struct tensor gradient, struct tensor mean, struct tensor square,
                                   struct tensor *kept) {
    (void)kept;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_adam kernel = {.count = parameter.impl->geometry.numel,
                                        .rate = adamw->rate,
                                        .beta1 = adamw->beta1,
                                        .beta2 = adamw->beta2,
                                        .epsilon = adamw->epsilon,
                                        .decay = adamw->decay,
                                        .correction1 = correction1,
                                        .correction2 = correction2,
                                        .is_decoupled = !adamw->is_coupled};
    enum base_status status = tensor__flat(parameter.impl, &kernel.parameter);
    if (status == BASE_OK)
        status = tensor__flat(gradient.impl, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__flat(mean.impl, &kernel.mean);
    if (status == BASE_OK)
        status = tensor__flat(square.impl, &kernel.square);
    if (status == BASE_OK)
        status = tensor__model(parameter.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->adam(&kernel, stream);
    if (status != BASE_OK)
        return status;
    tensor__impl_bump(parameter.impl);
    tensor__impl_bump(mean.impl);
    tensor__impl_bump(square.impl);
    return BASE_OK;
}

static struct tensor_operand_value number(double value) { return tensor_operand_floating(value); }

// As PyTorch's _single_tensor_adam. ROOT and DENOMINATOR, of the square's shape, are made first, so
// that nothing is written if there is no memory for them. The denominator is KEPT until the next
// parameter's is there, as the variable that it is in Python.
static enum base_status adam_single(const struct tensor_adamw *adamw, double correction1,
                                    double correction2, struct tensor parameter,
                                    struct tensor gradient, struct tensor mean,
                                    struct tensor square, struct tensor *kept) {
    struct tensor root = {0}, denominator = {0}, decayed = {0};
    enum base_status status = BASE_OK;
    if (adamw->is_coupled && adamw->decay != 0) {
        status = tensor_add(gradient, tensor_operand_tensor(parameter),
                            tensor_floating(adamw->decay), &decayed);
        if (status != BASE_OK)
            return status;
        gradient = decayed;
    }
    status = tensor_empty_like(square, TENSOR_PRESERVE, &root);
    if (status == BASE_OK)
        status = tensor_empty_like(square, TENSOR_PRESERVE, &denominator);
    if (status == BASE_OK && !adamw->is_coupled)
        status = tensor_mul_(parameter, number(1 - adamw->rate * adamw->decay));
    if (status == BASE_OK)
        status = tensor_mul_(mean, number(adamw->beta1));
    if (status == BASE_OK)
        status =
            tensor_add_(mean, tensor_operand_tensor(gradient), tensor_floating(1 - adamw->beta1));
    if (status == BASE_OK)
        status = tensor_mul_(square, number(adamw->beta2));
    if (status == BASE_OK)
        status = tensor_addcmul_(square, gradient, gradient, 1 - adamw->beta2);
    if (status == BASE_OK)
        status = tensor_copy_(root, square);
    if (status == BASE_OK)
        status = tensor_sqrt_(root);
    if (status == BASE_OK)
        status = tensor_copy_(denominator, root);
    if (status == BASE_OK)
        status = tensor_div_(denominator, number(sqrt(correction2)));
    tensor_release(&root);
    tensor_release(kept);
    *kept = denominator;
    if (status == BASE_OK)
        status = tensor_add_(denominator, number(adamw->epsilon), tensor_integer(1));
    if (status == BASE_OK)
        status = tensor_addcdiv_(parameter, mean, denominator, -adamw->rate / correction1);
    tensor_release(&decayed);
    return status;
}

enum base_status tensor_adamw_step(const struct tensor_adamw *adamw, int64_t step, int count,
                                   const struct tensor *parameters, const struct tensor *gradients,
                                   const struct tensor *means, const struct tensor *squares) {
    const char *name = adamw->is_coupled ? "adam" : "adamw";
    enum base_status status = BASE_OK;
    if (step < 1)
        return tensor__error("%s: steps count from 1, this is %lld", name, (long long)step);
    for (int index = 0; index < count && status == BASE_OK; index++) {
        if (gradients[index].impl == NULL)
            continue;
        status = parameter_check(name, index, parameters[index]);
        if (status == BASE_OK)
            status = state_check(name, index, "gradient", parameters[index], gradients[index]);
        if (status == BASE_OK)
            status = written_check(name, index, "exp_avg", parameters[index], means[index]);
        if (status == BASE_OK)
            status = written_check(name, index, "exp_avg_sq", parameters[index], squares[index]);
    }
    const double correction1 = 1 - pow(adamw->beta1, (double)step),
                 correction2 = 1 - pow(adamw->beta2, (double)step);
    const bool was_off = tensor__gradients_off();
    struct tensor kept = {0};
    for (int index = 0; index < count && status == BASE_OK; index++)
        if (gradients[index].impl != NULL)
            status = tensor__explain((adamw->is_single ? adam_single : adam_fused)(
                                         adamw, correction1, correction2, parameters[index],
                                         gradients[index], means[index], squares[index], &kept),
                                     name, &parameters[index], 1);
    tensor_release(&kept);
    tensor__gradients_restore(was_off);
    return status;
}

//------------------------------------------------------------------------------------------------
// Stochastic gradient descent

static enum base_status sgd_one(const struct tensor_sgd *sgd, struct tensor parameter,
                                struct tensor gradient, struct tensor velocity) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_sgd kernel = {.count = parameter.impl->geometry.numel,
                                       .rate = sgd->rate,
                                       .momentum = sgd->momentum,
                                       .decay = sgd->decay};
    enum base_status status = tensor__flat(parameter.impl, &kernel.parameter);
    if (status == BASE_OK)
        status = tensor__flat(gradient.impl, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__flat(velocity.impl, &kernel.velocity);
    if (status == BASE_OK)
        status = tensor__model(parameter.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->sgd(&kernel, stream);
    if (status != BASE_OK)
        return status;
    tensor__impl_bump(parameter.impl);
    if (velocity.impl != NULL)
        tensor__impl_bump(velocity.impl);
    return BASE_OK;
}

enum base_status tensor_sgd_step(const struct tensor_sgd *sgd, int count,
                                 const struct tensor *parameters, const struct tensor *gradients,
                                 const struct tensor *velocities) {
    const bool has_momentum = sgd->momentum != 0;
    enum base_status status = BASE_OK;
    for (int index = 0; index < count && status == BASE_OK; index++) {
        if (gradients[index].impl == NULL)
            continue;
        status = parameter_check("sgd", index, parameters[index]);
        if (status == BASE_OK)
            status = state_check("sgd", index, "gradient", parameters[index], gradients[index]);
        if (status == BASE_OK && has_momentum)
            status = written_check("sgd", index, "momentum_buffer", parameters[index],
                                   velocities != NULL ? velocities[index] : (struct tensor){0});
    }
    for (int index = 0; index < count && status == BASE_OK; index++)
        if (gradients[index].impl != NULL)
            status = sgd_one(sgd, parameters[index], gradients[index],
                             has_momentum ? velocities[index] : (struct tensor){0});
    return status;
}
