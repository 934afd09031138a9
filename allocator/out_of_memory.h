// Running out of memory: the numbers, who is told, and PyTorch's sentence.
#ifndef TIDEMARK_ALLOCATOR_OUT_OF_MEMORY_H
#define TIDEMARK_ALLOCATOR_OUT_OF_MEMORY_H

#include "allocator/core.h"

// Bytes as PyTorch writes them: "512 bytes", "1.00 KiB", "20.00 MiB", "1.17 GiB". Returns BUFFER.
#define CCA__SIZE_TEXT 48
char *cca__size_text(size_t bytes, char buffer[CCA__SIZE_TEXT]);

// Counts the failure of a request of ROUNDED bytes and gathers its numbers, but for the processes.
// RAW_FAILED: the last one that was asked is a private pool's own allocator. growth_lock held.
void cca__out_of_memory_locked(struct cca__stream *stream, size_t rounded, size_t exceeded_reserve,
                               bool raw_failed, struct cca_out_of_memory *numbers);

// Asks who holds the memory, tells the observer of failures and sets the thread's sentence; returns
// BASE_OUT_OF_MEMORY. No lock held.
enum base_status cca__out_of_memory_tell(struct cca *cca, struct cca_out_of_memory *numbers);

#endif
