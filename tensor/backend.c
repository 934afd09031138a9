// See backend.h.
#include "tensor/launch.h"

enum base_status tensor__backend(const struct tensor_place *place,
                                 const struct tensor_backend **backend) {
    *backend = place->kind == TENSOR_CPU ? &tensor__cpu : &tensor__cuda;
    return BASE_OK;
}
