// A recorded trace as a workload: its requests, in order, on their streams, against any allocator.
//
//     struct workload_replay_plan *plan;
//     status = workload_replay_plan_create(trace, 0, &plan);                     once a trace
//     status = workload_replay_run(plan, allocator, &options, &result);          measures memory
//     status = workload_replay_time(plan, allocator, &time);                     measures host time
//
// Only the requests are the recording's: which sizes are asked for and freed, in which order, on
// which streams. Number, size, order and release of segments are the allocator's own. A block that
// was used on another stream comes back where the recording completed its free; allocated bytes are
// counted from the request as in PyTorch. Segment releases that no request explains are an
// empty_cache of the program and are replayed as one. A request that a private pool served goes to
// one of the same id; an allocator without private pools serves it as any other.
//
// A window that begins mid-run starts from a rebuilt state (trace_start_state). Under the recorded
// configuration the state is rebuilt exactly; under another one only the blocks that were live then
// are allocated first, and the result says so.
//
// A request that fails for want of memory ends the replay: what a program does after that is not in
// the recording, except when the recording itself failed at the same request and went on.
#ifndef TIDEMARK_WORKLOAD_REPLAY_H
#define TIDEMARK_WORKLOAD_REPLAY_H

#include "allocator/allocator.h"
#include "trace/trace.h"

struct workload_replay_plan;

// Prepares the history of DEVICE: BASE_UNSUPPORTED or BASE_FORMAT with the sentence of
// trace_check_replayable if it cannot be replayed. The trace must outlive the plan.
enum base_status workload_replay_plan_create(const struct trace *trace, int device,
                                             struct workload_replay_plan **plan) BASE_MUST_USE;
void workload_replay_plan_destroy(struct workload_replay_plan *plan);

// Requests in the plan: allocations and frees (an event), start state not counted.
uint64_t workload_replay_event_count(const struct workload_replay_plan *plan);

#define WORKLOAD_SERIES_POINT_COUNT_MAX 4096

// Memory after one event. When a history has more events than points, a point stands for a run of
// events and keeps the extremes: a run gives two points, its lowest and its highest active bytes,
// in order.
struct workload_point {
    uint64_t event; // requests done so far
    uint64_t reserved_bytes, allocated_bytes, active_bytes;
};

// Cached and idle memory of one stream at the end.
struct workload_stream_use {
    uint64_t stream;                                      // handle as recorded
    uint64_t reserved_bytes, allocated_bytes, idle_bytes; // idle = reserved - active
    uint64_t peak_idle_bytes;
};

// How much of the recording came out again. Meaningful under the recorded configuration with
// recorded addresses.
struct workload_self_check {
    bool checked;
    uint64_t block_count, block_equal_count; // allocations whose address equals the recorded one
    uint64_t segment_count, segment_equal_count; // new segments, their size (and order)
    uint64_t release_count, release_equal_count; // released segments
    uint64_t layout_count,
        layout_equal_count;     // blocks of the final layout: address, size and state
    bool exact;                 // all of the above equal
    char first_difference[256]; // "" if exact
};

struct workload_replay_options {
    bool recorded_configuration; // the allocator has the configuration of the recording: exact
                                 // start state, self-check
    bool recorded_addresses; // answer new segments at recorded addresses (simulator only; ignored
                             // with --config=cuda)
    bool snapshot;           // copy out the final layout
};

struct workload_replay_result {
    uint64_t event_count;         // requests done
    struct allocator_stats stats; // at the end, peaks included
    uint64_t peak_reserved_bytes, peak_allocated_bytes, peak_active_bytes, peak_requested_bytes;
    double fragmentation; // 1 - peak allocated / peak reserved
    uint64_t device_malloc_count, device_free_count;
    bool start_assumed; // the start state was approximated (see above)
    bool out_of_memory;
    uint64_t out_of_memory_event;      // the request that failed
    uint64_t out_of_memory_size_bytes; // what it asked for
    char out_of_memory_message[1024];

    struct workload_point *series;
    size_t series_count;
    struct workload_stream_use *streams;
    size_t stream_count;
    struct workload_self_check self_check;
    struct allocator_snapshot
        final_snapshot; // empty unless asked for; streams are the recording's handles
};
void workload_replay_result_deinit(struct workload_replay_result *result);

// One pass, observed. The allocator must be fresh. BASE_OK also when the replay ran out of memory
// (the result says so); other statuses are faults of the environment.
enum base_status workload_replay_run(const struct workload_replay_plan *plan,
                                     struct allocator *allocator,
                                     const struct workload_replay_options *options,
                                     struct workload_replay_result *result) BASE_MUST_USE;

// One pass whose loop calls nothing but the allocator; the allocator must be fresh. An event is one
// allocation or free.
struct workload_replay_time {
    uint64_t event_count;
    double total_s; // of the loop, start state not included
};
enum base_status workload_replay_time(const struct workload_replay_plan *plan,
                                      struct allocator *allocator,
                                      struct workload_replay_time *time) BASE_MUST_USE;

#endif
