// See device.h.
#include "bench/device.h"

#include <cuda_runtime_api.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

enum base_status bench_device_prepare(const struct base_program *program,
                                      const struct base_common *common, uint64_t capacity_bytes) {
#ifdef TIDEMARK_SIMULATOR
    (void)program;
    if (common->device != NULL) {
        const enum base_status status = sim_profile(common->device);
        if (status != BASE_OK) return base_status_prefix(status, "--device");
    }
    if (common->faults != NULL) {
        const enum base_status status = sim_faults_load(common->faults);
        if (status != BASE_OK) return base_status_prefix(status, "--faults");
    }
    if (common->capacity != 0) capacity_bytes = common->capacity;
    return sim_configure(
        &(struct sim_options){.capacity_bytes = capacity_bytes, .numerics = SIM_NUMERICS_OFF});
#else
    (void)capacity_bytes;
    if (common->capacity != 0)
        base_options_usage_error(
            program, "--capacity needs the simulator; a GPU has the memory that it has");
    if (common->device != NULL)
        base_options_usage_error(program, "--device needs the simulator; a GPU is what it is");
    if (common->faults != NULL)
        base_options_usage_error(program, "--faults needs the simulator; a GPU fails by itself");
    const cudaError_t error = cudaSetDevice(0);
    if (error != cudaSuccess)
        return base_status_set(BASE_ENVIRONMENT, "no usable GPU: %s", cudaGetErrorString(error));
    return BASE_OK;
#endif
}

uint64_t bench_device_capacity(void) {
    size_t free_bytes, total_bytes;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? total_bytes : 0;
}
