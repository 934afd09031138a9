// What belongs to the thread: modes and current streams. See tensor.h.
#include "tensor/mode.h"
#include "base/check.h"
#include "tensor/tensor.h"

static _Thread_local bool is_grad_off, is_inference;
static _Thread_local cudaStream_t streams[TENSOR_DEVICE_MAX];

bool tensor_grad_mode(void) { return !is_grad_off && !is_inference; }
void tensor_set_grad_mode(bool enabled) { is_grad_off = !enabled; }
bool tensor_inference_mode(void) { return is_inference; }
void tensor_set_inference_mode(bool enabled) { is_inference = enabled; }

bool tensor__gradients_off(void) {
    const bool was_off = is_grad_off;
    is_grad_off = true;
    return was_off;
}
void tensor__gradients_restore(bool was_off) { is_grad_off = was_off; }

cudaStream_t tensor_stream(int device) {
    BASE_CHECK(device >= 0 && device < TENSOR_DEVICE_MAX);
    return streams[device];
}

void tensor_set_stream(int device, cudaStream_t stream) {
    BASE_CHECK(device >= 0 && device < TENSOR_DEVICE_MAX);
    streams[device] = stream;
}
