// Workspaces of cuBLAS from the tensors' allocator. See operator.h and nn.h.
#include "tensor/nn.h"
#include "tensor/operator.h"

static size_t product_bytes, biased_bytes; // atomic

void tensor_set_workspaces(size_t of_products, size_t of_biased_products) {
    __atomic_store_n(&product_bytes, of_products, __ATOMIC_RELAXED);
    __atomic_store_n(&biased_bytes, of_biased_products, __ATOMIC_RELAXED);
}

enum base_status tensor__workspace_create(const struct tensor_place *place,
                                          enum tensor_workspace kind,
                                          struct tensor_storage **workspace) {
    const size_t bytes = __atomic_load_n(
        kind == TENSOR_WORKSPACE_PRODUCT ? &product_bytes : &biased_bytes, __ATOMIC_RELAXED);
    *workspace = NULL;
    if (place->kind != TENSOR_CUDA || bytes == 0)
        return BASE_OK;
    return tensor__storage_create(place, bytes, workspace);
}
