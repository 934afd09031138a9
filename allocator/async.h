// PyTorch's backend:cudaMallocAsync: the driver's own stream-ordered pools behind the allocator
// interface. Every request is a cudaMallocAsync, every free a cudaFreeAsync; what to keep and what
// to reuse is the driver's to decide, in the default pool of each device.
//
//     struct allocator *allocator;
//     status = async_allocator_create(&(struct async_options){0}, &allocator);
//     status = allocator_malloc(allocator, 0, size, stream, &pointer);
//
// A device is set up when it is first named: its default pool keeps what it has (the release
// threshold) and may reuse memory by all three of the driver's rules. The pool is the process's, so
// of two such allocators the later one's threshold counts; the last one to end leaves the driver's
// own settings behind.
//
// What is particular about the calls of allocator.h:
//     malloc         rounds nothing. BASE_OUT_OF_MEMORY beyond the limit of a fraction, or when the
//                    driver has no more
//     free           of a block that other streams use: a stream of the allocator's own waits for
//                    all of them, on the device, and frees it there. So it may be reused when the
//                    driver sees that their work is done
//     record_stream  takes what allocator_malloc returned, no address inside. The block's own
//                    stream: nothing, with a warning
//     empty_cache    waits for each device and gives back all that its pool has to spare. Refused
//                    during a capture, BASE_INVALID_VALUE, which the wait would break
//     stats          what the driver knows: bytes in use as `allocated_bytes` and `active_bytes`,
//                    and `reserved_bytes`, of all, now and at their peaks; all else is 0.
//                    Accumulated values cannot be reset, which is a warning
//     largest_block  what is free of the device, within the limit; of the pool's own the driver
//                    tells nothing
//     set_observer   blocks, requests that failed, empty_cache; and by how much the pool of a device
//                    grew or shrank, as SEGMENT_ALLOC and SEGMENT_FREE without an address or a
//                    stream, asked of the driver at every call. A free is completed when the driver
//                    has it: behind the work of its streams. PyTorch has none (an error)
//     snapshot, base_allocation (there is nothing that another process could open),
//     cca_record_history, cca_checkpoint_*: BASE_UNSUPPORTED
//
// One lock guards everything, also while the driver is called, as in PyTorch.
#ifndef TIDEMARK_ALLOCATOR_ASYNC_H
#define TIDEMARK_ALLOCATOR_ASYNC_H

#include "allocator/cca.h"

struct async_options {
    // What the driver's pools keep for the next request when they are idle, in bytes. Not set: all,
    // as in PyTorch. 0 is the driver's own default: all that is free goes back at the next wait.
    bool release_threshold_set;
    uint64_t release_threshold;
    // Memory that may be in use of each device, as a fraction (0..1); not set: no limit.
    bool fraction_set;
    double fraction;
    // Without a function: warnings are lines on stderr.
    struct cca_warning_observer warnings;
};

// BASE_INVALID_VALUE, BASE_HOST_MEMORY.
enum base_status async_allocator_create(const struct async_options *options,
                                        struct allocator **allocator) BASE_MUST_USE;

// What may be in use of the device, from now on: FRACTION of its memory, 1 included.
// BASE_INVALID_VALUE outside [0, 1].
enum base_status async_set_memory_fraction(struct allocator *allocator, int device,
                                           double fraction) BASE_MUST_USE;

// Lets PEER read and write what DEVICE's pool has and will have. BASE_INVALID_VALUE, BASE_CUDA.
enum base_status async_enable_peer_access(struct allocator *allocator, int device,
                                          int peer) BASE_MUST_USE;

// Graph captures. The driver makes nodes of the requests, and the memory is the graph's: it lives
// at its address as long as the graph does, and is the driver's to give back.
//
//     cudaStreamBeginCapture(stream, mode);
//     status = async_capture_begin(allocator, 0, stream);
//     ... requests and frees ...
//     status = async_capture_end(allocator);
//     cudaStreamEndCapture(stream, &graph);
//
// A free in the capture of memory from before it is put off to the first malloc afterwards, with
// one warning: the captured work may use it. Memory of a capture that is freed after it is a
// warning: its graph can no longer show it to anybody.
//
// One capture at a time: BASE_INVALID_VALUE.
enum base_status async_capture_begin(struct allocator *allocator, int device,
                                     cudaStream_t stream) BASE_MUST_USE;
// Before the driver's end: every stream on which something was freed joins the captured one, else
// the driver would refuse to end. BASE_INVALID_VALUE: there is none. BASE_CUDA: a stream could not
// join. The capture has ended for the allocator in any case.
enum base_status async_capture_end(struct allocator *allocator) BASE_MUST_USE;

// What a graph that goes does to the pool that it was captured into: nothing here, the memory went
// with the graph.
enum base_status async_pool_release(struct allocator *allocator, int device,
                                    struct allocator_pool_id id) BASE_MUST_USE;

#endif
