// Names of cuBLAS's statuses, for fault plans, too; and the table of handles.
#ifndef TIDEMARK_SIMULATOR_BLAS_STATUS_H
#define TIDEMARK_SIMULATOR_BLAS_STATUS_H

#include <cublas_api.h>

// X(NAME, DESCRIPTION)
#define SIM__BLAS_STATUS_LIST(X)                                                                   \
    X(CUBLAS_STATUS_SUCCESS, "no error")                                                           \
    X(CUBLAS_STATUS_NOT_INITIALIZED, "the handle is none")                                         \
    X(CUBLAS_STATUS_ALLOC_FAILED, "out of memory")                                                 \
    X(CUBLAS_STATUS_INVALID_VALUE, "invalid argument")                                             \
    X(CUBLAS_STATUS_ARCH_MISMATCH, "the device has not what the call needs")                       \
    X(CUBLAS_STATUS_MAPPING_ERROR, "memory cannot be reached")                                     \
    X(CUBLAS_STATUS_EXECUTION_FAILED, "the work could not be started or has failed")               \
    X(CUBLAS_STATUS_INTERNAL_ERROR, "an operation within the library failed")                      \
    X(CUBLAS_STATUS_NOT_SUPPORTED, "there is no such function")                                    \
    X(CUBLAS_STATUS_LICENSE_ERROR, "the licence does not allow it")

struct sim__blas_status {
    int status;
    const char *name, *description;
};

// NULL if there is none of that number or name.
const struct sim__blas_status *sim__blas_status_find(int status);
const struct sim__blas_status *sim__blas_status_named(const char *name);

// The machine stops: no handle is one any more.
void sim__blas_clear(void);

#endif
