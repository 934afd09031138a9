// What trace:info tells about one device of a trace. Inside trace/ only.
#ifndef TIDEMARK_TRACE_SUMMARY_H
#define TIDEMARK_TRACE_SUMMARY_H

#include "trace/trace.h"

struct trace_summary {
    uint64_t event_count, action_count[TRACE_ACTION_COUNT];
    uint64_t first_time_us, last_time_us; // of entries with a time; 0: none has one
    uint32_t stream_count, pool_count;    // that events or final segments use
    uint64_t start_segment_count,
        start_block_count; // before the first event, live blocks only; 0 for a complete history

    uint64_t segment_count, block_count[3]; // at the end; blocks by enum trace_block_state
    uint64_t reserved_bytes, block_bytes[3];

    // Highest sum of live blocks over the events, frees counted at the request. Exact: block sizes
    // as the allocator made them; else requested bytes of the blocks that the events name, which is
    // less.
    uint64_t peak_allocated_bytes;
    bool peak_exact;

    enum base_status replay_status;
    char replay_message[512]; // "" if it can be replayed
};

// BASE_HOST_MEMORY only: what cannot be told is told so.
enum base_status trace__summarize(const struct trace *trace, int device,
                                  struct trace_summary *summary) BASE_MUST_USE;

#endif
