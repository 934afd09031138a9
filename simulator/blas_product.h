// A product of matrices: what blas_gemm.c and blas_lt.c ask for, and blas_product.c computes.
#ifndef TIDEMARK_SIMULATOR_BLAS_PRODUCT_H
#define TIDEMARK_SIMULATOR_BLAS_PRODUCT_H

#include "simulator/blas.h"

enum sim__blas_activation {
    SIM__BLAS_NONE,
    SIM__BLAS_RELU,
    SIM__BLAS_GELU, // by tanh, as cublasLt has it
};

struct sim__blas_matrix {
    const void *pointer; // of a batch by pointers: the array
    cudaDataType type;
    int64_t ld, stride; // elements
};

// D = activation(alpha op(A) op(B) + beta C + bias), COUNT times.
struct sim__blas_product {
    int64_t m, n, k, count;
    bool transposes_a, transposes_b, is_double, by_pointers;
    struct sim__blas_matrix a, b, c, d; // C and D have one type
    struct sim__blas_scalar alpha, beta;
    const void *bias; // of m numbers, one for each row; NULL: none
    cudaDataType bias_type;
    int64_t bias_stride;
    enum sim__blas_activation activation;
    void *workspace;
    size_t partial_bytes; // of the workspace, that are used; 0: none
};

// As much of a workspace as PRODUCT makes use of.
size_t sim__blas_product_partial_bytes(const struct sim__blas_product *product, size_t available);
// The kernel. ARGUMENT is a struct sim__blas_product.
void sim__blas_product_body(const void *argument);

// --- blas_gemm.c ---

// Whether the types go together; others are refused.
bool sim__blas_types_fit(cudaDataType a, cudaDataType b, cudaDataType c,
                         cublasComputeType_t compute);

// Puts PRODUCT into the stream that HANDLE names, after a look at sizes, leading dimensions and D.
// WORKSPACE: the program's for this call; NULL: that of BLAS.
struct sim__blas_workspace {
    void *pointer;
    size_t bytes;
};
cublasStatus_t sim__blas_product_submit(struct sim__blas_handle *blas, cudaStream_t handle,
                                        struct sim__blas_product *product,
                                        const struct sim__blas_workspace *workspace,
                                        bool may_use_tensor_cores);

#endif
