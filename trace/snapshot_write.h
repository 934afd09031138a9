// A trace as a PyTorch memory snapshot: the dictionary that torch.cuda.memory._dump_snapshot
// pickles, with builtin types only. What a snapshot has no place for (name, source, capacity,
// fraction, version) is left out. Inside trace/ only.
#ifndef TIDEMARK_TRACE_SNAPSHOT_WRITE_H
#define TIDEMARK_TRACE_SNAPSHOT_WRITE_H

#include "trace/pickle_write.h"
#include "trace/trace.h"

// The file appears when it is complete. Also BASE_FORMAT if the trace breaks its promises.
enum base_status trace__write_snapshot(const struct trace *trace, const char *path) BASE_MUST_USE;

// The parts, for a maker that streams: the settings' dictionary, and one entry of a device trace up
// to its frames. The caller has opened the entry's dictionary, adds frames if it likes, and closes
// it.
void trace__pickler_settings(struct trace_pickler *pickle, const struct trace_settings *settings);
void trace__pickler_event(struct trace_pickler *pickle, const struct trace_event *event,
                          uint64_t stream);

#endif
