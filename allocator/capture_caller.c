// See capture_caller.h.
#include "allocator/capture_caller.h"

#include "allocator/device.h"

// The default stream cannot be captured, and asking it fails while a blocking stream is.
static bool may_be_captured(cudaStream_t stream) {
    return stream != NULL && stream != cudaStreamLegacy;
}

enum cca__caller cca__caller_of_status(enum cudaStreamCaptureStatus status) {
    return status == cudaStreamCaptureStatusNone     ? CCA__OUTSIDE
           : status == cudaStreamCaptureStatusActive ? CCA__INSIDE
                                                     : CCA__INVALIDATED;
}

enum base_status cca__stream_caller(cudaStream_t stream, enum cca__caller *caller) {
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (may_be_captured(stream)) {
        const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
        if (error != cudaSuccess)
            return cca__cuda_failed(error, "cudaStreamIsCapturing of stream %p", (void *)stream);
    }
    *caller = cca__caller_of_status(capture);
    return BASE_OK;
}

// True where the answer needs no stream.
static bool is_known(const struct cca__device *device, enum cca__caller *caller) {
    const uint64_t word = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    if ((word & (CCA__MARKED | CCA__SCOPED)) == 0) {
        *caller = CCA__OUTSIDE;
        return true;
    }
    *caller = CCA__INSIDE;
    return (word & CCA__SCOPED) != 0;
}

enum base_status cca__caller_of(struct cca__device *device, cudaStream_t handle,
                                enum cca__caller *caller) {
    const struct cca_current_stream_source *const source = &device->owner->current_stream;
    if (is_known(device, caller)) return BASE_OK;
    return cca__stream_caller(
        source->current != NULL ? source->current(source->context, device->ordinal) : handle,
        caller);
}

// The terminals are not asked for: whoever reads them has to keep others from asking meanwhile.
static enum base_status ask_capture(cudaStream_t stream, enum cca__caller *caller,
                                    struct cca__known_capture *known) {
    enum cudaStreamCaptureStatus status;
    unsigned long long capture;
    const cudaError_t error =
        cudaStreamGetCaptureInfo(stream, &status, &capture, NULL, NULL, NULL, NULL);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaStreamGetCaptureInfo of stream %p", (void *)stream);
    *caller = cca__caller_of_status(status);
    known->is_known = true;
    known->id = *caller == CCA__INSIDE ? capture : 0;
    return BASE_OK;
}

enum base_status cca__caller_of_request(struct cca__device *device, cudaStream_t handle,
                                        enum cca__caller *caller,
                                        struct cca__known_capture *known) {
    *known = (struct cca__known_capture){0};
    if (device->owner->current_stream.current != NULL || !may_be_captured(handle))
        return cca__caller_of(device, handle, caller);
    return is_known(device, caller) ? BASE_OK : ask_capture(handle, caller, known);
}

bool cca__expects_capture(const struct cca__stream *stream) {
    const struct cca__device *const device = stream->device;
    const uint64_t word = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    return atomic_load_explicit(&stream->home->was_captured, memory_order_relaxed) &&
           (word & (CCA__MARKED | CCA__SCOPED)) == CCA__MARKED &&
           device->owner->current_stream.current == NULL;
}

enum base_status cca__caller_of_device(struct cca__device *device, enum cca__caller *caller) {
    if (device->owner->current_stream.current != NULL) return cca__caller_of(device, NULL, caller);
    if (is_known(device, caller)) return BASE_OK;
    *caller = CCA__OUTSIDE;
    cca__lock_take(&device->captures_lock);
    struct cca__capture_marks marks = device->captures.marks;
    cca__lock_release(&device->captures_lock);
    enum base_status status = BASE_OK;
    while (marks.marked != 0 && status == BASE_OK && *caller == CCA__OUTSIDE)
        status = cca__stream_caller(marks.captures[cca__marks_next(&marks.marked)].stream, caller);
    return status;
}

enum base_status cca__caller_is_invalidated(void) {
    return base_status_set(BASE_INVALID_VALUE,
                           "the capture that this call is made in was invalidated: end it first "
                           "(PyTorch: c10::Error INTERNAL ASSERT Invalid capture status)");
}

enum base_status cca__relaxed_begin(struct cca__relaxed *relaxed) {
    relaxed->before = cudaStreamCaptureModeRelaxed;
    const cudaError_t error = cudaThreadExchangeStreamCaptureMode(&relaxed->before);
    relaxed->is_relaxed = error == cudaSuccess;
    if (relaxed->is_relaxed) return BASE_OK;
    return cca__cuda_failed(error, "cudaThreadExchangeStreamCaptureMode");
}

void cca__relaxed_restore(struct cca__relaxed *relaxed) {
    // It was the mode before, and whoever could not set it again hears of it at the next call.
    if (cudaThreadExchangeStreamCaptureMode(&relaxed->before) != cudaSuccess)
        (void)cudaGetLastError();
}
