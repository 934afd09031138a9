// Work on the CPU, by the loops that the simulated device has, too. See backend.h.
#include "tensor/backend.h"

#include "tensor/kernel/loops.h"
#include "tensor/lower.h"

static enum base_status cpu_pointwise(const struct tensor_loop *loop,
                                      struct tensor_device_stream stream) {
    struct tensor_kernel_pointwise kernel;
    (void)stream;
    tensor__lower_pointwise(loop, &kernel);
    tensor_loop_pointwise(&kernel);
    return BASE_OK;
}

static enum base_status cpu_sum(const struct tensor_loop *loop, const bool *is_reduced,
                                const struct tensor_sum_memory *memory,
                                struct tensor_device_stream stream) {
    struct tensor_kernel_sum kernel;
    (void)memory;
    (void)stream;
    tensor__lower_sum(loop, is_reduced, &kernel);
    tensor_loop_sum(&kernel);
    return BASE_OK;
}

static enum base_status cpu_product(const struct tensor_product *product,
                                    struct tensor_device_stream stream) {
    struct tensor_kernel_product kernel;
    (void)stream;
    tensor__lower_product(product, &kernel);
    tensor_loop_product(&kernel);
    return BASE_OK;
}

const struct tensor_backend tensor__cpu = {.pointwise = cpu_pointwise,
                                           .sum = cpu_sum,
                                           .product = cpu_product,
                                           .model = &tensor__cpu_model};
