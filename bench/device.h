// The device that a program measures on: the simulated one as its options say, or GPU 0.
#ifndef TIDEMARK_BENCH_DEVICE_H
#define TIDEMARK_BENCH_DEVICE_H

#include "base/options.h"

// Applies --device, --capacity and --faults, which only the simulator takes (a usage error
// elsewhere), and makes the device ready, accounting only. CAPACITY_BYTES: its memory where
// --capacity is not given; 0: that of the profile. BASE_INVALID_VALUE, BASE_FORMAT or BASE_IO (the
// profile, the capacity, the plan), BASE_ENVIRONMENT (no usable GPU).
enum base_status bench_device_prepare(const struct base_program *program,
                                      const struct base_common *common,
                                      uint64_t capacity_bytes) BASE_MUST_USE;

// Memory of the device as it is; 0 if it does not say.
uint64_t bench_device_capacity(void);

#endif
