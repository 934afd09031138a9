// See backend.h.
#include "tensor/backend.h"

enum base_status tensor__backend(const struct tensor_place *place,
                                 const struct tensor_backend **backend) {
    if (place->kind != TENSOR_CPU)
        return base_status_set(BASE_UNSUPPORTED,
                               "device %d: no CUDA kernels in this build of the tensor library",
                               place->device);
    *backend = &tensor__cpu;
    return BASE_OK;
}
