// Declares the simulator's functions behind the toolkit's, with the toolkit's types: a function
// whose type differs stops the compilation. Nothing of it runs.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#define TIDEMARK_SIMULATOR_DRIVER_TYPES_H // the toolkit's types are in force
#include "simulator/include/cuda_runtime_api.h"
#define TIDEMARK_SIMULATOR_CUDA_TYPES_H
#include "simulator/include/cuda.h"
#define TIDEMARK_SIMULATOR_LIBRARY_TYPES_H
#define TIDEMARK_SIMULATOR_CUBLAS_API_H
#include "simulator/include/cublas_v2.h"
#define TIDEMARK_SIMULATOR_CUBLASLT_TYPES
#define cublasLtMatrixLayoutInit abi_layout_init // functions of the headers themselves
#define cublasLtMatmulDescInit abi_operation_init
#define cublasLtMatmulPreferenceInit abi_preference_init
#include "simulator/include/cublasLt.h"

// An empty translation unit is not C.
typedef cudaError_t abi_functions_agree;
