// Records what an allocator does, through its observer, as a file that replays (workload/replay.h)
// or PyTorch's memory viewer read.
//
//     status = workload_recorder_create(inner, &recorder);
//     allocator = workload_recorder_allocator(recorder);
//     ... the program, on ALLOCATOR ...
//     status = workload_recorder_write(recorder, "run.tmt");
//     workload_recorder_destroy(recorder);
//
// Calls of several threads come one after the other here, as in PyTorch: the events of a request
// then stand together, and a replay makes the same decisions. (The allocator itself lets streams
// pass each other: the order of their events is then no order of their decisions.)
//
// Of an allocator without settings (`direct`, `async`) requests alone are recorded: its segments
// are no caching allocator's. There are no stacks; cca_record_history (allocator/cca.h) has them.
#ifndef TIDEMARK_WORKLOAD_RECORDER_H
#define TIDEMARK_WORKLOAD_RECORDER_H

#include "allocator/allocator.h"

struct workload_recorder;

// INNER stays the caller's, who destroys it after the recorder; until then nobody else may set its
// observer or call it. What is allocated already is the start of the recording. BASE_UNSUPPORTED:
// it has no observer. BASE_HOST_MEMORY. Cost: a lock, a clock and 64 bytes an event.
enum base_status workload_recorder_create(struct allocator *inner,
                                          struct workload_recorder **recorder) BASE_MUST_USE;
struct allocator *workload_recorder_allocator(struct workload_recorder *recorder);

// Ends the recording and writes it with the layout that there is now: a .tmt, or a snapshot if the
// name ends in .pickle. Once, while no other thread is in the allocator. BASE_HOST_MEMORY also if
// an event found none; BASE_IO, BASE_LIMIT.
enum base_status workload_recorder_write(struct workload_recorder *recorder,
                                         const char *path) BASE_MUST_USE;

// NULL is ignored.
void workload_recorder_destroy(struct workload_recorder *recorder);

#endif
