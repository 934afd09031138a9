// Page-locked host memory behind allocator/allocator.h, kept for reuse: what copies beside other
// work need. PyTorch's caching host allocator.
//
//     struct allocator *pinned;
//     status = tensor_pinned_allocator_create(&pinned);
//     const struct tensor_place place = {pinned, TENSOR_CPU, 0};
//
// A request is rounded up to a power of two, and a free block of that size is handed out again, the
// one freed last first; without one the driver is asked (cudaHostAlloc), and what it gives is kept.
// allocator_record_stream says that work on a stream, of the device that is current then, uses the
// block: its free records an event there, and the block is reused when the event is complete. So a
// tensor may be dropped while a copy of it runs. tensor_copy_non_blocking_ says so by itself.
//
// In a capture of CUDA graphs requests are served, and nothing of that is captured. A block whose
// use was captured and that is freed before the capture has ended is never handed out again: each
// launch copies from it, and nobody tells how long there are launches. One that is freed later has
// to outlive the graph.
//
// Devices and streams of a request mean nothing. stats: `allocation` and its bytes are what is
// handed out, `active` also what waits for events, `segment` and `reserved_bytes` what the driver
// gave; `num_device_alloc` and `_free` count its calls. empty_cache waits for nothing: blocks whose
// events are not complete stay. No snapshot, no observer: BASE_UNSUPPORTED.
//
// Threads: any; no driver call that can wait is made under the lock but that of an event's record.
#ifndef TIDEMARK_TENSOR_PINNED_ALLOCATOR_H
#define TIDEMARK_TENSOR_PINNED_ALLOCATOR_H

#include "allocator/allocator.h"

// BASE_HOST_MEMORY.
enum base_status tensor_pinned_allocator_create(struct allocator **allocator) BASE_MUST_USE;

#endif
