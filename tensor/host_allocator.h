// An allocator of host memory behind allocator/allocator.h, for tensors on the CPU.
//
//     struct allocator *host;
//     status = tensor_host_allocator_create(true, &host);
//     const struct tensor_place cpu = {host, TENSOR_CPU, 0};
//
// Devices and streams mean nothing to it. It keeps the counts of `allocation` and
// `allocated_bytes` (allocator_stats), so that a test can see that nothing is left.
#ifndef TIDEMARK_TENSOR_HOST_ALLOCATOR_H
#define TIDEMARK_TENSOR_HOST_ALLOCATOR_H

#include "allocator/allocator.h"

#include <stdbool.h>

// ZEROES: every block reads as 0 at first, as in the recorded logs. BASE_HOST_MEMORY.
enum base_status tensor_host_allocator_create(bool zeroes,
                                              struct allocator **allocator) BASE_MUST_USE;

// Refuses the request number FAIL_AT from now on (1: the next), once; 0: none. For tests of what an
// operator leaves behind.
void tensor_host_allocator_fail_at(struct allocator *allocator, uint64_t fail_at);

#endif
