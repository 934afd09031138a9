// Declares the simulator's functions behind the toolkit's, with the toolkit's types: a function
// whose type differs stops the compilation. Nothing of it runs.
#include <cuda.h>
#include <cuda_runtime_api.h>

#define TIDEMARK_SIMULATOR_DRIVER_TYPES_H // the toolkit's types are in force
#include "simulator/include/cuda_runtime_api.h"
#define TIDEMARK_SIMULATOR_CUDA_TYPES_H
#include "simulator/include/cuda.h"

// An empty translation unit is not C.
typedef cudaError_t abi_functions_agree;
