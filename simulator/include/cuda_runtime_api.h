// The CUDA 13 runtime calls that the simulator answers: CUDA's names and signatures. With
// --config=cuda the toolkit's header of this name takes its place, and the same program runs on a
// GPU.
//
// A call returns cudaSuccess or the code that CUDA gives. A failing call also sets the calling
// thread's last error (cudaErrorNotReady does not). Any call may be made from any thread; the
// current device and the last error are each thread's own. A host function or kernel body that runs
// as device work may make no CUDA call (cudaErrorNotPermitted). Handles and pointers that CUDA
// would crash on (destroyed, foreign) give an error code here.
//
// What each call waits for, and the order it creates, is CUDA's rule; where CUDA leaves a choice
// the comment says what the simulator does.
#ifndef TIDEMARK_SIMULATOR_CUDA_RUNTIME_API_H
#define TIDEMARK_SIMULATOR_CUDA_RUNTIME_API_H

#include <driver_types.h>

#define CUDART_VERSION 13000

#ifdef __cplusplus
extern "C" {
#define TIDEMARK_SIMULATOR_DEFAULT(value) = value
#else
#define TIDEMARK_SIMULATOR_DEFAULT(value)
#endif

// --- Devices. The current device of a thread is 0 at first. ---

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
// A bad ordinal: cudaErrorInvalidDevice, and the current device stays.
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
// An attribute that is not declared here: cudaErrorInvalidValue.
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
// Makes the primary context of a device active, without making the device current.
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
// Waits for all work of the current device, held streams included.
cudaError_t cudaDeviceSynchronize(void);
// Ends the current device's context, after all its work: memory (not that of pools and
// cuMemCreate), page-locked memory, streams and events that it holds are gone; the next call begins
// a new one.
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least_priority, int *greatest_priority);
// Any two different simulated devices can reach each other.
cudaError_t cudaDeviceCanAccessPeer(int *can_access, int device, int peer_device);
// Kernels of the current device reach cudaMalloc memory of the peer; copies do without. Memory of
// pools and of cuMemMap has rights of its own (cudaMemPoolSetAccess, cuMemSetAccess), for copies
// too.
cudaError_t cudaDeviceEnablePeerAccess(int peer_device, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer_device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

// --- Errors. ---

// Returns the thread's last error and clears it.
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
// "cudaErrorMemoryAllocation" and "out of memory"; for an unknown code "unrecognized error code".
// Never NULL.
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

// --- Memory. ---

// Takes whole 2 MiB pages of the current device; waits for nothing. SIZE 0 gives NULL.
cudaError_t cudaMalloc(void **pointer, size_t size);
// Waits for all work of the device that owns the memory, held streams included. NULL is fine;
// anything but a live base address: cudaErrorInvalidValue.
cudaError_t cudaFree(void *pointer);
// What is not free: what cudaMalloc, pools and cuMemCreate hold, what contexts take and what
// sim_set_foreign_bytes says that others hold.
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
// Page-locked host memory, page-aligned. Waits for nothing.
cudaError_t cudaMallocHost(void **pointer, size_t size);
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags);
// Waits for all work of every device.
cudaError_t cudaFreeHost(void *pointer);
// Memory of the program's own, until it is unregistered, which waits for all work of every device.
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *pointer);
// Page-locked memory has one address for all. FLAGS must be 0.
cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags);
// POINTER may lie inside an allocation.
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

// Copies and fills. Each range must lie within one allocation; a size of 0 does nothing. The plain
// forms are work of the legacy default stream: the host waits for them, unless both sides are
// device memory; from pageable memory to the device it waits for the stream's earlier work, and the
// source is read at the call. Async: host to host waits; the source of a pageable host to device
// copy is read at the call (reading pageable-source); all else is pending in the stream.
cudaError_t cudaMemcpy(void *destination, const void *source, size_t size,
                       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t size,
                            enum cudaMemcpyKind kind,
                            cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));
// HEIGHT rows of WIDTH bytes, their starts a pitch apart. WIDTH above a pitch:
// cudaErrorInvalidPitchValue.
cudaError_t cudaMemcpy2D(void *destination, size_t destination_pitch, const void *source,
                         size_t source_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *destination, size_t destination_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind,
                              cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));
// Between devices. The plain form comes after all earlier and before all later work of the two and
// the current device, NonBlocking streams included; the host does not wait.
cudaError_t cudaMemcpyPeer(void *destination, int destination_device, const void *source,
                           int source_device, size_t size);
cudaError_t cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source,
                                int source_device, size_t size,
                                cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));
// Device or page-locked memory; the plain form waits for the latter only.
cudaError_t cudaMemset(void *pointer, int value, size_t size);
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size,
                            cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));
cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));

// --- Stream-ordered memory. The address is known at once; the memory may be used by work that
// comes after the allocation and before the free, in stream order. A pool takes 32 MiB from its
// device at least, and what is free of that above the release threshold goes back at a host wait,
// in pieces as it was taken. SIZE 0 gives NULL. ---

// From the current pool of the stream's device.
cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream);
// Any stream may free, if it comes after all use. (So does cudaFree, which does not wait then.)
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
// Handles to be shared with other processes: cudaErrorNotSupported.
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties);
// The memory goes when its last block was freed. Not the default pool.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
// High-water marks can be set to 0: they begin again at what is current.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value);
// What other devices may do; the pool's own keeps all rights.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descriptors,
                                 size_t count);
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location);
// Gives free memory back while the pool holds more than KEEP_BYTES; not what was freed by work
// whose completion the host has not seen.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes);

// --- Managed memory is not simulated: cudaErrorNotSupported, and once a line on standard error.
// ---

cudaError_t cudaMallocManaged(void **pointer, size_t size,
                              unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(cudaMemAttachGlobal));
cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location);
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
                                 unsigned int flags,
                                 cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));
cudaError_t
cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer,
                         size_t size TIDEMARK_SIMULATOR_DEFAULT(0),
                         unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(cudaMemAttachSingle));

// --- Driver calls by name: see cuGetProcAddress in <cuda.h>. ---

// By version of this header.
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status
                                        TIDEMARK_SIMULATOR_DEFAULT(NULL));
cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status TIDEMARK_SIMULATOR_DEFAULT(NULL));

// --- Streams. A handle is dead after cudaStreamDestroy: cudaErrorContextIsDestroyed; never one:
// cudaErrorInvalidResourceHandle. ---

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
// A priority out of range is clamped.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
// Pending work still completes. The default streams cannot be destroyed.
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
// Later work of STREAM comes after the work that EVENT covers now. Nothing happens if EVENT was
// never recorded. cudaEventWaitExternal, for a stream that captures: a node that waits for the
// event at each replay.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(0));
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
// FUNCTION runs in stream order, on whichever host thread advances the stream.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user_data);
// The older form: runs after a device error as well, and is told it. FLAGS must be 0.
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void *user_data, unsigned int flags);

// --- Stream capture. Work submitted to a capturing stream does not run: it becomes a node of a
// graph, behind the stream's set of nodes, and is the set then. cudaEventRecord copies the set into
// the event; a stream that waits for the event unites it with its own, and joins the capture if it
// is in none. Copies are nodes whose source is read at each replay, pageable or not.
//
// What cannot be captured: the host's waits and questions about a capturing stream or its device,
// cudaStreamAddCallback, cudaGraphLaunch, cudaStreamAttachMemAsync
// (cudaErrorStreamCaptureUnsupported); legacy-stream work while a blocking stream of the device
// captures (...Implicit); a wait for an event that was recorded outside (...Isolation), or in
// another capture (...Merge). Each invalidates the captures concerned: their graphs are gone, their
// streams take no work (...Invalidated), until they are ended.
//
// Calls that may wait behind the program's back (cudaMalloc, cudaFree and their kin, plain copies,
// queries and waits for what is not captured, creation of streams and pools, attributes and trim of
// pools, cudaGraphExecDestroy) are refused as well, in the threads that the modes say:
//
//     a thread in mode      is refused them while it has begun, or another thread has begun
//     global (at first)     a capture that is not relaxed,      a global one
//     thread-local          a capture that is not relaxed
//     relaxed               never
// ---

// The legacy stream: cudaErrorStreamCaptureUnsupported; a stream that captures already:
// cudaErrorIllegalState.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
// Nodes are added to GRAPH, the first ones behind DEPENDENCIES. GRAPH stays what it is if the
// capture is invalidated, with the nodes so far. It may be one that others are capturing.
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *dependency_data, size_t count,
                                          enum cudaStreamCaptureMode mode);
// To be called for the stream in which the capture began (else ...Unmatched), by the thread that
// began it unless it is relaxed (else ...WrongThread); both invalidate. What was captured in other
// streams must come before the set of this one (else ...Unjoined). ...Unjoined and ...Invalidated
// end the capture, too, with *GRAPH NULL.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
// All but STATUS may be NULL, and are stored only while the status is "active". ID: of the capture,
// unique in the process. GRAPH: nodes may be added, none removed. The arrays are the stream's set,
// valid until the next call for this stream. EDGE_DATA NULL while some is not zero:
// cudaErrorLossyQuery.
cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id TIDEMARK_SIMULATOR_DEFAULT(0),
    cudaGraph_t *graph TIDEMARK_SIMULATOR_DEFAULT(0),
    const cudaGraphNode_t **dependencies TIDEMARK_SIMULATOR_DEFAULT(0),
    const cudaGraphEdgeData **edge_data TIDEMARK_SIMULATOR_DEFAULT(0),
    size_t *count TIDEMARK_SIMULATOR_DEFAULT(0));
// Adds nodes of the captured graph to the stream's set, or makes them the set. Edge data is for
// kernels: work that is none behind it is cudaErrorInvalidValue.
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *dependency_data,
                                                size_t count,
                                                unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(0));
// Stores the thread's former mode in *MODE.
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);

// --- Events. ---

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
// The event covers the work of STREAM up to here, instead of what it covered before. Event and
// stream must belong to one device.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0));
// cudaEventRecordExternal, for a stream that captures: a node that records the event at each
// replay.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                     cudaStream_t stream TIDEMARK_SIMULATOR_DEFAULT(0),
                                     unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(0));
// Never recorded counts as complete, here and in cudaEventSynchronize. Recorded in a capture, and
// not outside since: cudaErrorCapturedEvent, here, there and in cudaEventElapsedTime; while the
// capture runs it is invalidated.
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
// Device time is virtual: sim_time_ns (simulator/sim.h).
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

#ifdef __cplusplus
}
#endif
#undef TIDEMARK_SIMULATOR_DEFAULT

#include "cuda_graph_api.h"
#include "cuda_per_thread_default_stream.h"

#endif
