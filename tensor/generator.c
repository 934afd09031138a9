// The part of a generator's offset that is on a device. See nn.h and operator.h.
#include "tensor/error.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

static _Thread_local struct tensor_impl *thread_state; // borrowed

enum base_status tensor_set_generator_state(struct tensor state) {
    if (state.impl != NULL && (state.impl->type != TENSOR_INT64 || state.impl->geometry.numel != 1))
        return tensor__error("a generator's state is one int64, not %lld elements of type %s",
                             (long long)state.impl->geometry.numel,
                             tensor_type_name(state.impl->type));
    thread_state = state.impl;
    return BASE_OK;
}

enum base_status tensor__generator_state(const struct tensor_impl *like, struct tensor_impl **impl,
                                         struct tensor_kernel_array *state) {
    *impl = thread_state;
    if (thread_state == NULL)
        return tensor__flat(NULL, state);
    const enum base_status status = tensor__check_same_device(like, thread_state);
    return status != BASE_OK ? status : tensor__flat(thread_state, state);
}
