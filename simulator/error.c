// The last error of a thread, and what error codes are called. Names are CUDA's; the descriptions
// say the same in few words of our own, so programs compare codes, never texts.
#include "simulator/call.h"
#include "simulator/plant.h"

// X(NAME, DESCRIPTION)
#define ERROR_LIST(X)                                                                   \
    X(cudaSuccess, "no error")                                                          \
    X(cudaErrorInvalidValue, "invalid argument")                                        \
    X(cudaErrorMemoryAllocation, "out of memory")                                       \
    X(cudaErrorInitializationError, "initialization error")                             \
    X(cudaErrorCudartUnloading, "the driver is shutting down")                          \
    X(cudaErrorProfilerDisabled, "profiling is off: an external tool does it")          \
    X(cudaErrorProfilerNotInitialized, "the profiler was not started")                  \
    X(cudaErrorProfilerAlreadyStarted, "the profiler runs already")                     \
    X(cudaErrorProfilerAlreadyStopped, "the profiler is stopped already")               \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                  \
    X(cudaErrorInvalidPitchValue, "invalid pitch argument")                             \
    X(cudaErrorInvalidSymbol, "invalid device symbol")                                  \
    X(cudaErrorInvalidHostPointer, "invalid host pointer")                              \
    X(cudaErrorInvalidDevicePointer, "invalid device pointer")                          \
    X(cudaErrorInvalidTexture, "invalid texture reference")                             \
    X(cudaErrorInvalidTextureBinding, "texture without a pointer")                      \
    X(cudaErrorInvalidChannelDescriptor, "invalid channel format")                      \
    X(cudaErrorInvalidMemcpyDirection, "invalid direction of a copy")                   \
    X(cudaErrorAddressOfConstant, "address of a constant")                              \
    X(cudaErrorTextureFetchFailed, "texture fetch failed")                              \
    X(cudaErrorTextureNotBound, "texture without a binding")                            \
    X(cudaErrorSynchronizationError, "threads of a block met at different barriers")    \
    X(cudaErrorInvalidFilterSetting, "this texture type cannot be filtered")            \
    X(cudaErrorInvalidNormSetting, "this texture type cannot be normalized")            \
    X(cudaErrorMixedDeviceExecution, "emulated and real devices mixed")                 \
    X(cudaErrorNotYetImplemented, "no such feature")                                    \
    X(cudaErrorMemoryValueTooLarge, "size or address above 32 bits")                    \
    X(cudaErrorStubLibrary, "a stub stands in for the driver")                          \
    X(cudaErrorInsufficientDriver, "the driver is older than the runtime needs")        \
    X(cudaErrorCallRequiresNewerDriver, "the driver is too old for this call")          \
    X(cudaErrorInvalidSurface, "invalid surface reference")                             \
    X(cudaErrorDuplicateVariableName, "two variables of one name")                      \
    X(cudaErrorDuplicateTextureName, "two textures of one name")                        \
    X(cudaErrorDuplicateSurfaceName, "two surfaces of one name")                        \
    X(cudaErrorDevicesUnavailable, "every device is busy or unavailable")               \
    X(cudaErrorIncompatibleDriverContext, "the context does not fit the driver")        \
    X(cudaErrorMissingConfiguration, "kernel launched without a configuration")         \
    X(cudaErrorPriorLaunchFailure, "an earlier launch failed")                          \
    X(cudaErrorLaunchMaxDepthExceeded, "launches nested too deep")                      \
    X(cudaErrorLaunchFileScopedTex, "the kernel uses textures of file scope")           \
    X(cudaErrorLaunchFileScopedSurf, "the kernel uses surfaces of file scope")          \
    X(cudaErrorSyncDepthExceeded, "device-side synchronization nested too deep")        \
    X(cudaErrorLaunchPendingCountExceeded, "too many pending device-side launches")     \
    X(cudaErrorInvalidDeviceFunction, "not a function of this device")                  \
    X(cudaErrorNoDevice, "no CUDA device")                                              \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                 \
    X(cudaErrorDeviceNotLicensed, "no licence for this device")                         \
    X(cudaErrorSoftwareValidityNotEstablished, "the integrity check failed")            \
    X(cudaErrorStartupFailure, "the runtime could not start")                           \
    X(cudaErrorInvalidKernelImage, "invalid kernel image")                              \
    X(cudaErrorDeviceUninitialized, "invalid device context")                           \
    X(cudaErrorMapBufferObjectFailed, "buffer could not be mapped")                     \
    X(cudaErrorUnmapBufferObjectFailed, "buffer could not be unmapped")                 \
    X(cudaErrorArrayIsMapped, "array is mapped")                                        \
    X(cudaErrorAlreadyMapped, "resource already mapped")                                \
    X(cudaErrorNoKernelImageForDevice, "no kernel image for this device")               \
    X(cudaErrorAlreadyAcquired, "resource already acquired")                            \
    X(cudaErrorNotMapped, "resource not mapped")                                        \
    X(cudaErrorNotMappedAsArray, "not mapped as an array")                              \
    X(cudaErrorNotMappedAsPointer, "not mapped as a pointer")                           \
    X(cudaErrorECCUncorrectable, "memory error that ECC cannot correct")                \
    X(cudaErrorUnsupportedLimit, "this device has no such limit")                       \
    X(cudaErrorDeviceAlreadyInUse, "another thread has the device exclusively")         \
    X(cudaErrorPeerAccessUnsupported, "no peer access between these devices")           \
    X(cudaErrorInvalidPtx, "PTX could not be compiled")                                 \
    X(cudaErrorInvalidGraphicsContext, "invalid graphics context")                      \
    X(cudaErrorNvlinkUncorrectable, "NVLink error that cannot be corrected")            \
    X(cudaErrorJitCompilerNotFound, "no PTX compiler library")                          \
    X(cudaErrorUnsupportedPtxVersion, "PTX of a newer toolchain")                       \
    X(cudaErrorJitCompilationDisabled, "PTX compilation is disabled")                   \
    X(cudaErrorUnsupportedExecAffinity, "this execution affinity is not supported")     \
    X(cudaErrorUnsupportedDevSideSync, "PTX that synchronizes on the device")           \
    X(cudaErrorContained, "contained error on a peer link")                             \
    X(cudaErrorInvalidSource, "invalid kernel source")                                  \
    X(cudaErrorFileNotFound, "file not found")                                          \
    X(cudaErrorSharedObjectSymbolNotFound, "no such symbol in the shared library")      \
    X(cudaErrorSharedObjectInitFailed, "shared library could not be initialized")       \
    X(cudaErrorOperatingSystem, "a call of the operating system failed")                \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                        \
    X(cudaErrorIllegalState, "not possible in the present state")                       \
    X(cudaErrorLossyQuery, "the query cannot say all there is")                         \
    X(cudaErrorSymbolNotFound, "named symbol not found")                                \
    X(cudaErrorNotReady, "device not ready")                                            \
    X(cudaErrorIllegalAddress, "illegal memory access")                                 \
    X(cudaErrorLaunchOutOfResources, "the launch needs more than the device has")       \
    X(cudaErrorLaunchTimeout, "the launch took too long")                               \
    X(cudaErrorLaunchIncompatibleTexturing, "incompatible texturing mode")              \
    X(cudaErrorPeerAccessAlreadyEnabled, "peer access is enabled already")              \
    X(cudaErrorPeerAccessNotEnabled, "peer access is not enabled")                      \
    X(cudaErrorSetOnActiveProcess, "not possible once a device is in use")              \
    X(cudaErrorContextIsDestroyed, "the context was destroyed")                         \
    X(cudaErrorAssert, "an assertion failed on the device")                             \
    X(cudaErrorTooManyPeers, "no more peers can be mapped")                             \
    X(cudaErrorHostMemoryAlreadyRegistered, "host memory is registered already")        \
    X(cudaErrorHostMemoryNotRegistered, "host memory is not registered")                \
    X(cudaErrorHardwareStackError, "hardware stack error")                              \
    X(cudaErrorIllegalInstruction, "illegal instruction")                               \
    X(cudaErrorMisalignedAddress, "misaligned address")                                 \
    X(cudaErrorInvalidAddressSpace, "operation on the wrong address space")             \
    X(cudaErrorInvalidPc, "invalid program counter")                                    \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                             \
    X(cudaErrorCooperativeLaunchTooLarge, "cooperative launch with too many blocks")    \
    X(cudaErrorTensorMemoryLeak, "tensor memory left behind")                           \
    X(cudaErrorNotPermitted, "operation not permitted")                                 \
    X(cudaErrorNotSupported, "operation not supported")                                 \
    X(cudaErrorSystemNotReady, "the system is not ready")                               \
    X(cudaErrorSystemDriverMismatch, "display driver and CUDA driver do not fit")       \
    X(cudaErrorCompatNotSupportedOnDevice, "this device has no forward compatibility")  \
    X(cudaErrorMpsConnectionFailed, "no connection to the MPS server")                  \
    X(cudaErrorMpsRpcFailure, "a call to the MPS server failed")                        \
    X(cudaErrorMpsServerNotReady, "the MPS server takes no clients now")                \
    X(cudaErrorMpsMaxClientsReached, "the MPS server has too many clients")             \
    X(cudaErrorMpsMaxConnectionsReached, "the MPS server has too many connections")     \
    X(cudaErrorMpsClientTerminated, "the MPS server ended this client")                 \
    X(cudaErrorCdpNotSupported, "dynamic parallelism is not supported here")            \
    X(cudaErrorCdpVersionMismatch, "versions of dynamic parallelism do not fit")        \
    X(cudaErrorStreamCaptureUnsupported, "not permitted while the stream captures")     \
    X(cudaErrorStreamCaptureInvalidated, "an earlier error ended this capture")         \
    X(cudaErrorStreamCaptureMerge, "two captures would be joined")                      \
    X(cudaErrorStreamCaptureUnmatched, "the capture began on another stream")           \
    X(cudaErrorStreamCaptureUnjoined, "a forked stream never came back to the capture") \
    X(cudaErrorStreamCaptureIsolation, "a capture would depend on work outside it")     \
    X(cudaErrorStreamCaptureImplicit, "the legacy stream would depend on a capture")    \
    X(cudaErrorCapturedEvent, "the event was last recorded in a capture")               \
    X(cudaErrorStreamCaptureWrongThread, "the capture belongs to another thread")       \
    X(cudaErrorTimeout, "a wait took too long")                                         \
    X(cudaErrorGraphExecUpdateFailure, "the graphs differ more than an update may change")\
    X(cudaErrorExternalDevice, "an error outside of CUDA")                              \
    X(cudaErrorInvalidClusterSize, "the launch has a wrong cluster size")               \
    X(cudaErrorFunctionNotLoaded, "the function is not loaded")                         \
    X(cudaErrorInvalidResourceType, "wrong type of resource")                           \
    X(cudaErrorInvalidResourceConfiguration, "the resources do not suffice")            \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define ERROR_NAME(name, description)                                                              \
    case name: return #name;
        ERROR_LIST(ERROR_NAME)
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define ERROR_DESCRIPTION(name, description)                                                       \
    case name: return description;
        ERROR_LIST(ERROR_DESCRIPTION)
    }
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void) {
    struct sim__thread *thread = sim__thread();
    const cudaError_t error = thread->last_error;
    if (!sim__planted(SIM__PLANT_ERROR_KEPT))
        thread->last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return sim__thread()->last_error; }
