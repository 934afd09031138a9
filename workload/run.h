// What a program of workload/program.h is given while it runs: places for its tensors, streams, a
// checksum that does not depend on the order of things, and the end of each step.
//
//     static enum base_status run(struct workload_run *run) {
//         struct base_random random = base_random_init(run->options.seed, "my program");
//         for (uint64_t step = 0; step < run->options.steps && status == BASE_OK; ++step) {
//             ... tensors on run->devices[0] ...
//             if (status == BASE_OK) status = workload_run_add(run, step, loss);
//             if (status == BASE_OK) status = workload_run_step(run);
//         }
//         return status;
//     }
//
// A program releases what it made, whatever went wrong, and sets back the modes that it changed;
// the current streams and the current device are set back for it.
//
// Threads: workload_run_add, _add_bytes and _stream from any; workload_run_step from the one that
// runs the program.
#ifndef TIDEMARK_WORKLOAD_RUN_H
#define TIDEMARK_WORKLOAD_RUN_H

#include "base/random.h"
#include "base/thread.h"
#include "tensor/tensor.h"
#include "workload/program.h"

struct workload_run {
    struct workload_options options; // every choice made; .variant NULL if the program has none
    struct tensor_place devices[WORKLOAD_DEVICES_MAX];
    struct tensor_place host, pinned; // plain memory; page-locked, kept for reuse
    struct base_mutex mutex;          // guards the rest
    uint64_t checksum, steps;
    struct workload_run_stream *streams;
};

// Adds a tensor's type, shape and values to the checksum, or bytes. KEY says what it is the value
// of, and is used once: sums do not see an order. Waits for the current stream of its device.
enum base_status workload_run_add(struct workload_run *run, uint64_t key,
                                  struct tensor tensor) BASE_MUST_USE;
void workload_run_add_bytes(struct workload_run *run, uint64_t key, const void *bytes, size_t size);

// One more is done. BASE_INTERRUPTED: the user wants no more.
enum base_status workload_run_step(struct workload_run *run) BASE_MUST_USE;

// A stream of DEVICE that the default stream does not order, until the end of the run.
enum base_status workload_run_stream(struct workload_run *run, int device,
                                     cudaStream_t *stream) BASE_MUST_USE;

// A point of a stream that others can wait for.
struct workload_mark {
    cudaEvent_t event; // NULL: none
};
// Behind all that is on STREAM now; a mark that was set already moves there.
enum base_status workload_mark_set(struct workload_mark *mark, int device,
                                   cudaStream_t stream) BASE_MUST_USE;
// What comes on STREAM comes behind it; none is nothing.
enum base_status workload_mark_wait(const struct workload_mark *mark, int device,
                                    cudaStream_t stream) BASE_MUST_USE;
void workload_mark_drop(struct workload_mark *mark); // none afterwards; what waits goes on waiting

// What comes on WAITING, of WAITING_DEVICE, comes behind all that is on STREAM now. The same stream
// twice is nothing.
enum base_status workload_stream_wait(int waiting_device, cudaStream_t waiting, int device,
                                      cudaStream_t stream) BASE_MUST_USE;

// BASE_OK or BASE_CUDA with CALL, for CUDA calls of programs.
enum base_status workload_cuda(const char *call, cudaError_t error) BASE_MUST_USE;

#endif
