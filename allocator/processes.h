// Which processes hold memory of a device: what the source of the allocator says, by default NVML.
#ifndef TIDEMARK_ALLOCATOR_PROCESSES_H
#define TIDEMARK_ALLOCATOR_PROCESSES_H

#include "allocator/core.h"

// Sets processes and process_count; none if nobody knows. No lock held.
void cca__list_processes(const struct cca *cca, struct cca_out_of_memory *numbers);

#endif
