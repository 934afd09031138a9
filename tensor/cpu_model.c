// What tensor/kernel does, on the CPU: the items of each kernel in a plain loop. See backend.h.
#include "tensor/backend.h"
#include "tensor/error.h"

// Of an index that is none, as a device faults.
static enum base_status trap_look(void) {
    if (!tensor_kernel_trapped)
        return BASE_OK;
    tensor_kernel_trapped = false;
    return tensor__error_index("index out of range in self");
}

#define CPU_MODEL(name)                                                                            \
    static enum base_status cpu_##name(const struct tensor_kernel_##name *kernel,                  \
                                       struct tensor_device_stream stream) {                       \
        const int64_t items = tensor_kernel_##name##_items(kernel);                                \
        (void)stream;                                                                              \
        for (int64_t item = 0; item < items; ++item)                                               \
            tensor_kernel_##name##_at(kernel, item);                                               \
        return trap_look();                                                                        \
    }
TENSOR_KERNEL_MODEL_LIST(CPU_MODEL)

#define ENTRY(name) .name = cpu_##name,
const struct tensor_model_backend tensor__cpu_model = {TENSOR_KERNEL_MODEL_LIST(ENTRY)};
