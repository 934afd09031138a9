// The CUDA 13 runtime calls for graphs: CUDA's names and signatures. A part of
// <cuda_runtime_api.h>, which includes this file and says more.
#ifndef TIDEMARK_SIMULATOR_CUDA_GRAPH_API_H
#define TIDEMARK_SIMULATOR_CUDA_GRAPH_API_H

#include <driver_types.h>

#endif
