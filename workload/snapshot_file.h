// An allocator's snapshot, with its history, as files that others read.
//
//     status = allocator_snapshot(allocator, &snapshot);
//     status = workload_snapshot_write_pickle(&snapshot, "run.pickle");    PyTorch's memory viewer
//     status = workload_snapshot_write_tmt(&snapshot, "run.tmt");          replays
//     (docs/trace-format.md) allocator_snapshot_deinit(&snapshot);
//
// Stacks become functions, files and lines here and not before: milliseconds, and some ten
// microseconds for each address that occurs. The allocator's own frames, the innermost, are left
// out, and words that are no code.
#ifndef TIDEMARK_WORKLOAD_SNAPSHOT_FILE_H
#define TIDEMARK_WORKLOAD_SNAPSHOT_FILE_H

#include "allocator/allocator.h"
#include "trace/trace.h"

// A new trace of all devices, which the caller destroys. BASE_HOST_MEMORY; BASE_LIMIT: more
// devices, streams or stacks than a trace holds.
enum base_status workload_snapshot_trace(const struct allocator_snapshot *snapshot,
                                         const char *name, struct trace **trace) BASE_MUST_USE;

// The same to a file, which appears when it is complete. Also BASE_IO.
enum base_status workload_snapshot_write_pickle(const struct allocator_snapshot *snapshot,
                                                const char *path) BASE_MUST_USE;
enum base_status workload_snapshot_write_tmt(const struct allocator_snapshot *snapshot,
                                             const char *path) BASE_MUST_USE;

#endif
