// A trace as a PyTorch memory snapshot (trace_write_snapshot in trace.h), and its parts for a maker
// that streams. Inside trace/ only.
#ifndef TIDEMARK_TRACE_SNAPSHOT_WRITE_H
#define TIDEMARK_TRACE_SNAPSHOT_WRITE_H

#include "trace/pickle_write.h"
#include "trace/trace.h"

// The settings' dictionary, and one entry of a device trace up
// to its frames. The caller has opened the entry's dictionary, adds frames if it likes, and closes
// it.
void trace__pickler_settings(struct trace_pickler *pickle, const struct trace_settings *settings);
void trace__pickler_event(struct trace_pickler *pickle, const struct trace_event *event,
                          uint64_t stream);

#endif
