// What a recording becomes before it is replayed: an array of operations that needs no look-up, and
// what the recording answered, for the self-check. Private to the replay.
#ifndef TIDEMARK_WORKLOAD_REPLAY_PLAN_H
#define TIDEMARK_WORKLOAD_REPLAY_PLAN_H

#include "workload/replay.h"

enum workload__operation_kind {
    WORKLOAD__ALLOC,        // size, slot, stream
    WORKLOAD__ALLOC_FAILED, // size, stream: a request that ran out of memory in the recording; slot
                            // is free for its use
    WORKLOAD__FREE,         // slot: requested and completed at once
    WORKLOAD__FREE_REQUEST, // slot: the program lets go of it, work on other streams still uses it;
                            // size, stream: see below
    WORKLOAD__FREE_COMPLETE, // slot: that work is done
    WORKLOAD__EMPTY_CACHE,   // slot: of that pool; 0: of everything
    // Of the recording's pools, by index; slot: the pool.
    WORKLOAD__POOL_ROUTE,   // requests from here on go there; 0: to no private pool
    WORKLOAD__POOL_RELEASE, // its last user goes: its cached segments may go back
};

// 16 bytes, since a history has millions. FREE_REQUEST and FREE_COMPLETE carry where a fence stands
// that plays the other streams' work: `stream` is a side stream (not one of the recording's),
// `size` the fence's number on it, from 1.
struct workload__operation {
    uint64_t size;
    uint32_t slot;
    uint16_t stream;
    uint8_t kind;
    // FREE_COMPLETE: the request that follows waited for it, after its search had failed.
    bool inside_request;
};

// The side stream of a deferred free that found none: it is then issued when it completes.
#define WORKLOAD__SIDE_STREAM_NONE UINT16_MAX
#define WORKLOAD__SIDE_STREAM_COUNT_MAX 64

// A segment that the recording took or released, and the operation that did.
struct workload__segment_event {
    uint64_t address, size;
    size_t operation;
    uint16_t stream, pool;
    bool is_mapped; // memory mapped into an expandable segment, or unmapped
};

struct workload_replay_plan {
    const struct trace *trace; // not owned
    int device;                // of the recording
    bool has_placement; // the recording says where its blocks are, so there is something to check

    struct workload__operation *operations;
    size_t operation_count;
    size_t
        start_operation_count; // the first ones, part of the start state: frees that were pending
    uint64_t event_count;      // allocations and frees after them
    uint32_t slot_count;
    uint16_t side_stream_count;

    uint64_t *alloc_addresses; // recorded answer to each WORKLOAD__ALLOC, in order
    size_t alloc_count;
    struct workload__segment_event *segments, *releases; // in order
    size_t segment_count, release_count;

    struct trace_state start;
    uint32_t *start_slots; // for each of start.blocks that is in use
};

// True for what the program asked for: ALLOC, ALLOC_FAILED, FREE, FREE_REQUEST.
static inline bool workload__is_request(enum workload__operation_kind kind) {
    return kind <= WORKLOAD__FREE_REQUEST;
}

// Gives every deferred free its fence. KEYS[i] says when fence i completes (equal: together;
// UINT64_MAX: never), fences in order of request; on each side stream they complete in order. Fills
// side_streams and numbers; returns the side streams used.
uint16_t workload__fences_assign(const uint64_t *keys, size_t count, uint16_t *side_streams,
                                 uint64_t *numbers);

#endif
