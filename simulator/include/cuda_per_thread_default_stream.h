// What programs call that are compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM: the same calls,
// but stream 0 means the calling thread's own default stream. CUDA's suffixes: _ptds for calls
// without a stream argument, _ptsz for those with one. <cuda_runtime_api.h> includes this file.
#ifndef TIDEMARK_SIMULATOR_CUDA_PER_THREAD_DEFAULT_STREAM_H
#define TIDEMARK_SIMULATOR_CUDA_PER_THREAD_DEFAULT_STREAM_H

#include <driver_types.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaMemcpy_ptds(void *destination, const void *source, size_t size,
                            enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2D_ptds(void *destination, size_t destination_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind);
cudaError_t cudaMemset_ptds(void *pointer, int value, size_t size);
cudaError_t cudaMemset2D_ptds(void *pointer, size_t pitch, int value, size_t width, size_t height);

cudaError_t cudaMemcpyAsync_ptsz(void *destination, const void *source, size_t size,
                                 enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync_ptsz(void *destination, size_t destination_pitch, const void *source,
                                   size_t source_pitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync_ptsz(void *pointer, int value, size_t size, cudaStream_t stream);
cudaError_t cudaMemset2DAsync_ptsz(void *pointer, size_t pitch, int value, size_t width,
                                   size_t height, cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority);
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t *dependencies,
                                               const cudaGraphEdgeData *dependency_data,
                                               size_t count, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                          unsigned long long *id, cudaGraph_t *graph,
                                          const cudaGraphNode_t **dependencies,
                                          const cudaGraphEdgeData **edge_data, size_t *count);
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
                                                     cudaGraphNode_t *dependencies,
                                                     const cudaGraphEdgeData *dependency_data,
                                                     size_t count, unsigned int flags);
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void *user_data, unsigned int flags);
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void *user_data);
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
                                          unsigned int flags);
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams *parameters);
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void **pointer, size_t size, cudaMemPool_t pool,
                                         cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                                  unsigned int version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status);

#ifdef __cplusplus
}
#endif

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define cudaMemcpy cudaMemcpy_ptds
#define cudaMemcpy2D cudaMemcpy2D_ptds
#define cudaMemset cudaMemset_ptds
#define cudaMemset2D cudaMemset2D_ptds
#define cudaMemcpyAsync cudaMemcpyAsync_ptsz
#define cudaMemcpy2DAsync cudaMemcpy2DAsync_ptsz
#define cudaMemsetAsync cudaMemsetAsync_ptsz
#define cudaMemset2DAsync cudaMemset2DAsync_ptsz
#define cudaStreamSynchronize cudaStreamSynchronize_ptsz
#define cudaStreamQuery cudaStreamQuery_ptsz
#define cudaStreamWaitEvent cudaStreamWaitEvent_ptsz
#define cudaStreamGetFlags cudaStreamGetFlags_ptsz
#define cudaStreamGetPriority cudaStreamGetPriority_ptsz
#define cudaStreamIsCapturing cudaStreamIsCapturing_ptsz
#define cudaStreamBeginCapture cudaStreamBeginCapture_ptsz
#define cudaStreamBeginCaptureToGraph cudaStreamBeginCaptureToGraph_ptsz
#define cudaStreamEndCapture cudaStreamEndCapture_ptsz
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_ptsz
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_ptsz
#define cudaStreamAddCallback cudaStreamAddCallback_ptsz
#define cudaLaunchHostFunc cudaLaunchHostFunc_ptsz
#define cudaEventRecord cudaEventRecord_ptsz
#define cudaEventRecordWithFlags cudaEventRecordWithFlags_ptsz
#define cudaGraphLaunch cudaGraphLaunch_ptsz
#define cudaGraphInstantiateWithParams cudaGraphInstantiateWithParams_ptsz
#define cudaGraphUpload cudaGraphUpload_ptsz
#define cudaMallocAsync cudaMallocAsync_ptsz
#define cudaMallocFromPoolAsync cudaMallocFromPoolAsync_ptsz
#define cudaFreeAsync cudaFreeAsync_ptsz
#define cudaGetDriverEntryPointByVersion cudaGetDriverEntryPointByVersion_ptsz
#endif

#endif
