// The driver's stream memory operations: values that a stream writes where the host or a device
// reads them, and fills with a 32-bit word.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/driver.h"
#include "simulator/memory.h"
#include "simulator/stream.h"

static CUstream own(CUstream stream) { return stream == NULL ? CU_STREAM_PER_THREAD : stream; }

// The stream, and where its work finds the SIZE bytes at ADDRESS.
static CUresult resolve(CUstream handle, CUdeviceptr address, uint64_t size,
                        struct sim__stream **stream, enum sim__place *place) {
    const cudaError_t error = sim__stream_resolve((cudaStream_t)handle, stream);
    if (error != cudaSuccess)
        return (CUresult)error;
    return address != 0 &&
                   sim__memory_locate((*stream)->device, (const void *)(uintptr_t)address, size,
                                      SIM__ACCESS_WRITE, place) &&
                   *place != SIM__PLACE_PAGEABLE
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult submit(struct sim__stream *stream, const struct sim__operation *operation) {
    const int device = stream->device;
    struct sim__position position;
    const cudaError_t error = sim__enqueue(stream, operation, &position);
    return (CUresult)(error != cudaSuccess ? error : sim__state.devices[device].sticky_error);
}

static CUresult value_locked(CUstream handle, CUdeviceptr address, uint64_t value, uint32_t size,
                             unsigned int flags) {
    struct sim__stream *stream;
    enum sim__place place;
    if ((flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0 || address % size != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = resolve(handle, address, size, &stream, &place);
    if (error != CUDA_SUCCESS)
        return error;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_VALUE,
        .value = {(void *)(uintptr_t)address, value, size, place},
    };
    return submit(stream, &operation);
}

static CUresult value_call(CUstream stream, CUdeviceptr address, uint64_t value, uint32_t size,
                           unsigned int flags) {
    CUresult error = sim__driver_begin(SIM_CALL_STREAM_WRITE_VALUE, true);
    if (error == CUDA_SUCCESS)
        error = value_locked(stream, address, value, size, flags);
    return sim__driver_end(SIM_CALL_STREAM_WRITE_VALUE, error);
}

static CUresult fill_locked(CUstream handle, CUdeviceptr address, uint32_t value, uint64_t count) {
    struct sim__stream *stream;
    enum sim__place place;
    if (address % sizeof value != 0 || count > UINT64_MAX / sizeof value)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t size = count * sizeof value;
    const CUresult error = size == 0 ? (CUresult)sim__stream_resolve((cudaStream_t)handle, &stream)
                                     : resolve(handle, address, size, &stream, &place);
    if (error != CUDA_SUCCESS || size == 0)
        return error;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_FILL,
        .fill = {.pointer = (void *)(uintptr_t)address,
                 .size = size,
                 .rows = 1,
                 .place = place,
                 .value = value,
                 .words = true},
    };
    return submit(stream, &operation);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr pointer, cuuint32_t value,
                              unsigned int flags) {
    return value_call(stream, pointer, value, sizeof value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr pointer, cuuint64_t value,
                              unsigned int flags) {
    return value_call(stream, pointer, value, sizeof value, flags);
}

CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr pointer, cuuint32_t value,
                                      unsigned int flags) {
    return cuStreamWriteValue32(own(stream), pointer, value, flags);
}

CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr pointer, cuuint64_t value,
                                      unsigned int flags) {
    return cuStreamWriteValue64(own(stream), pointer, value, flags);
}

CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream) {
    CUresult error = sim__driver_begin(SIM_CALL_MEMSET, true);
    if (error == CUDA_SUCCESS)
        error = fill_locked(stream, pointer, value, count);
    return sim__driver_end(SIM_CALL_MEMSET, error);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr pointer, unsigned int value, size_t count,
                               CUstream stream) {
    return cuMemsetD32Async(pointer, value, count, own(stream));
}
