// The calls with a stream argument as programs see them that are compiled for per-thread default
// streams: 0 means the thread's own stream. Those without one stand beside their plain forms.
#include <cuda_runtime_api.h>

static cudaStream_t own(cudaStream_t stream) {
    return stream == NULL ? cudaStreamPerThread : stream;
}

cudaError_t cudaMemcpyAsync_ptsz(void *destination, const void *source, size_t size,
                                 enum cudaMemcpyKind kind, cudaStream_t stream) {
    return cudaMemcpyAsync(destination, source, size, kind, own(stream));
}

cudaError_t cudaMemcpy2DAsync_ptsz(void *destination, size_t destination_pitch, const void *source,
                                   size_t source_pitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind, cudaStream_t stream) {
    return cudaMemcpy2DAsync(destination, destination_pitch, source, source_pitch, width, height,
                             kind, own(stream));
}

cudaError_t cudaMemsetAsync_ptsz(void *pointer, int value, size_t size, cudaStream_t stream) {
    return cudaMemsetAsync(pointer, value, size, own(stream));
}

cudaError_t cudaMemset2DAsync_ptsz(void *pointer, size_t pitch, int value, size_t width,
                                   size_t height, cudaStream_t stream) {
    return cudaMemset2DAsync(pointer, pitch, value, width, height, own(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
    return cudaStreamSynchronize(own(stream));
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return cudaStreamQuery(own(stream)); }

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    return cudaStreamWaitEvent(own(stream), event, flags);
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int *flags) {
    return cudaStreamGetFlags(own(stream), flags);
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority) {
    return cudaStreamGetPriority(own(stream), priority);
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    return cudaStreamIsCapturing(own(stream), status);
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    return cudaStreamBeginCapture(own(stream), mode);
}

cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t *dependencies,
                                               const cudaGraphEdgeData *dependency_data,
                                               size_t count, enum cudaStreamCaptureMode mode) {
    return cudaStreamBeginCaptureToGraph(own(stream), graph, dependencies, dependency_data, count,
                                         mode);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph) {
    return cudaStreamEndCapture(own(stream), graph);
}

cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                          unsigned long long *id, cudaGraph_t *graph,
                                          const cudaGraphNode_t **dependencies,
                                          const cudaGraphEdgeData **edge_data, size_t *count) {
    return cudaStreamGetCaptureInfo(own(stream), status, id, graph, dependencies, edge_data, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
                                                     cudaGraphNode_t *dependencies,
                                                     const cudaGraphEdgeData *dependency_data,
                                                     size_t count, unsigned int flags) {
    return cudaStreamUpdateCaptureDependencies(own(stream), dependencies, dependency_data, count,
                                               flags);
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void *user_data, unsigned int flags) {
    return cudaStreamAddCallback(own(stream), callback, user_data, flags);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void *user_data) {
    return cudaLaunchHostFunc(own(stream), function, user_data);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecord(event, own(stream));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
                                          unsigned int flags) {
    return cudaEventRecordWithFlags(event, own(stream), flags);
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
    return cudaGraphLaunch(exec, own(stream));
}

cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
    return cudaGraphUpload(exec, own(stream));
}

cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t size, cudaStream_t stream) {
    return cudaMallocAsync(pointer, size, own(stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **pointer, size_t size, cudaMemPool_t pool,
                                         cudaStream_t stream) {
    return cudaMallocFromPoolAsync(pointer, size, pool, own(stream));
}

cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream) {
    return cudaFreeAsync(pointer, own(stream));
}
