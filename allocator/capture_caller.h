// Whether a call is made in a capture.
//
// PyTorch asks the calling thread's current stream, and so do we where the program named a source
// of it; else the streams that the call is about. Up to about 2.10 it asked nothing: while a scope
// of any pool is open on the device, every call is in a capture.
#ifndef TIDEMARK_ALLOCATOR_CAPTURE_CALLER_H
#define TIDEMARK_ALLOCATOR_CAPTURE_CALLER_H

#include "allocator/core.h"

enum cca__caller {
    CCA__OUTSIDE,
    CCA__INSIDE,
    CCA__INVALIDATED, // in a capture that failed and was not ended yet
};

// Whether scopes count as captures (x_torch).
static inline bool cca__scopes_are_captures(const struct cca *cca) {
    return cca->config.torch_minor <= 10;
}

enum cca__caller cca__caller_of_status(enum cudaStreamCaptureStatus status);
// What the driver says of one stream.
enum base_status cca__stream_caller(cudaStream_t stream, enum cca__caller *caller) BASE_MUST_USE;

// A call about the stream HANDLE. Asks the driver only while a capture is marked. No stream's lock
// held.
enum base_status cca__caller_of(struct cca__device *device, cudaStream_t handle,
                                enum cca__caller *caller) BASE_MUST_USE;
// The same for a request, which has to know more: *known is what the driver was asked on the way.
enum base_status cca__caller_of_request(struct cca__device *device, cudaStream_t handle,
                                        enum cca__caller *caller,
                                        struct cca__known_capture *known) BASE_MUST_USE;
// Whether the driver is likely to say of this stream that it is captured, and its word decides: it
// was when the graph was looked at last. Then one question for the whole state comes first.
bool cca__expects_capture(const struct cca__stream *stream);
// A call about all streams on which captures began. captures_lock not held.
enum base_status cca__caller_of_device(struct cca__device *device,
                                       enum cca__caller *caller) BASE_MUST_USE;

// The refusal of a call in an invalidated capture.
enum base_status cca__caller_is_invalidated(void);

// While a capture is marked, driver calls that a capture of another thread could forbid are made
// with this thread's capture mode relaxed.
struct cca__relaxed {
    bool is_relaxed;
    enum cudaStreamCaptureMode before;
};
enum base_status cca__relaxed_begin(struct cca__relaxed *relaxed) BASE_MUST_USE;
void cca__relaxed_restore(struct cca__relaxed *relaxed);
static inline void cca__relaxed_end(struct cca__relaxed *relaxed) {
    if (relaxed->is_relaxed) cca__relaxed_restore(relaxed);
}

// The same only while a capture is marked. PyTorch does not for events, and breaks captures of
// others (x_torch_faults).
BASE_MUST_USE static inline enum base_status
cca__relaxed_begin_beside(const struct cca__device *device, struct cca__relaxed *relaxed) {
    relaxed->is_relaxed = false;
    return cca__is_marked(device) && !device->owner->config.own.torch_faults
               ? cca__relaxed_begin(relaxed)
               : BASE_OK;
}

#endif
