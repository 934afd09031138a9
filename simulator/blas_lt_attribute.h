// cublasLt's descriptors as the simulator lays them out in their opaque bytes.
#ifndef TIDEMARK_SIMULATOR_BLAS_LT_ATTRIBUTE_H
#define TIDEMARK_SIMULATOR_BLAS_LT_ATTRIBUTE_H

#include <cublasLt.h>

struct sim__lt_layout {
    uint32_t type;
    int32_t order;
    uint64_t rows, columns;
    int64_t ld;
    int32_t count;
    int64_t stride;
};
_Static_assert(sizeof(struct sim__lt_layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "it fits");

struct sim__lt_operation {
    int32_t compute_type, scale_type, pointer_mode, transa, transb, transc;
    uint32_t epilogue;
    int32_t bias_type; // -1: that of D
    const void *bias;
    int64_t bias_stride;
};
_Static_assert(sizeof(struct sim__lt_operation) <= sizeof(cublasLtMatmulDescOpaque_t), "it fits");

struct sim__lt_preference {
    uint64_t workspace_bytes;
    uint32_t search_mode, reduction_schemes;
    uint32_t alignments[4]; // of A, B, C, D
};
_Static_assert(sizeof(struct sim__lt_preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
               "it fits");

static inline struct sim__lt_layout *sim__lt_layout(cublasLtMatrixLayout_t layout) {
    return (struct sim__lt_layout *)(void *)layout;
}
static inline struct sim__lt_operation *sim__lt_operation(cublasLtMatmulDesc_t operation) {
    return (struct sim__lt_operation *)(void *)operation;
}
static inline struct sim__lt_preference *sim__lt_preference(cublasLtMatmulPreference_t preference) {
    return (struct sim__lt_preference *)(void *)preference;
}

#endif
