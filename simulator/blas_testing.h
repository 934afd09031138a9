// Numbers of cuBLAS's types as its tests store and read them.
#ifndef TIDEMARK_SIMULATOR_BLAS_TESTING_H
#define TIDEMARK_SIMULATOR_BLAS_TESTING_H

#include "base/check.h"
#include "base/half.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#define BLAS(call) BASE_CHECK_EQ((call), CUBLAS_STATUS_SUCCESS)
#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

static inline size_t size_of(cudaDataType type) {
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static inline void number_store(void *bytes, cudaDataType type, size_t i, double value) {
    switch (type) {
    case CUDA_R_64F:
        ((double *)bytes)[i] = value;
        break;
    case CUDA_R_16F:
        ((uint16_t *)bytes)[i] = base_half_from_float((float)value);
        break;
    case CUDA_R_16BF:
        ((uint16_t *)bytes)[i] = base_bfloat16_from_float((float)value);
        break;
    default:
        ((float *)bytes)[i] = (float)value;
        break;
    }
}

static inline double number_load(const void *bytes, cudaDataType type, size_t i) {
    switch (type) {
    case CUDA_R_64F:
        return ((const double *)bytes)[i];
    case CUDA_R_16F:
        return (double)base_half_to_float(((const uint16_t *)bytes)[i]);
    case CUDA_R_16BF:
        return (double)base_bfloat16_to_float(((const uint16_t *)bytes)[i]);
    default:
        return (double)((const float *)bytes)[i];
    }
}

#endif
