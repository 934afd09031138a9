// A recorded allocation history in memory: what a PyTorch memory snapshot or a .tmt file holds, in
// one shape.
//
//     struct trace *trace;
//     status = trace_read("run.pickle.gz", NULL, &trace);   .tmt or snapshot; each also gzipped
//     for (size_t i = 0; i < trace->event_count; i++) ... trace->events[i] ...
//     trace_destroy(trace);
//
// Events stand in recorded order, devices one after another (a recording has no order across
// devices). Everything that repeats is a side table: streams, pools, stacks, strings. Sizes are
// bytes, addresses those of the recording.
//
// A file is data from a stranger: every reader checks what it reads, takes no more memory than its
// budget, and never builds or calls anything. What the struct promises after a successful read:
// every index is in its table, every action is one of the list. It promises nothing about sense (an
// event may free an unknown address): trace_check_replayable tells.
#ifndef TIDEMARK_TRACE_TRACE_H
#define TIDEMARK_TRACE_TRACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(NAME, value in files, PyTorch's text). Values never change: they are in .tmt files.
#define TRACE_ACTION_LIST(X)                \
    X(ALLOC, 0, "alloc")                    \
    X(FREE_REQUESTED, 1, "free_requested")  \
    X(FREE_COMPLETED, 2, "free_completed")  \
    X(SEGMENT_ALLOC, 3, "segment_alloc")    \
    X(SEGMENT_FREE, 4, "segment_free")      \
    X(SEGMENT_MAP, 5, "segment_map")        \
    X(SEGMENT_UNMAP, 6, "segment_unmap")    \
    X(SNAPSHOT, 7, "snapshot")              \
    X(OOM, 8, "oom")                        \
    X(USER_DEFINED, 9, "user_defined")      \
    X(ANNOTATE, 10, "annotate")             \
    X(EMPTY_CACHE, 11, "empty_cache")

enum trace_action {
#define TRACE_ACTION_ENUMERATOR(name, value, text) TRACE_##name = value,
    TRACE_ACTION_LIST(TRACE_ACTION_ENUMERATOR)
#undef TRACE_ACTION_ENUMERATOR
    TRACE_ACTION_COUNT
};
const char *trace_action_name(enum trace_action action);

#define TRACE_NONE UINT32_MAX // "no stack", "no string"

// 40 bytes, as in the file.
struct trace_event {
    uint64_t address;  // block or segment; OOM: the device's free bytes
    uint64_t size;     // bytes: a block's requested ones, a segment's all; OOM: the rounded request
    uint64_t time_us;  // since the epoch, 0 if unknown
    uint32_t stack;    // index into stacks, or TRACE_NONE
    uint32_t metadata; // user metadata: index into strings, or TRACE_NONE
    uint16_t stream;   // index into streams
    uint16_t pool;     // index into pools
    uint8_t action;    // enum trace_action
    uint8_t device;
    uint16_t reserved; // 0
};

struct trace_pool_id {
    uint64_t capture, user; // (0, 0) is the default pool
};

// A stack: `count` frames from `first` on, innermost first.
struct trace_stack {
    uint32_t first, count;
};
struct trace_frame {
    uint32_t function, file; // indices into strings
    uint32_t line;
};

enum trace_block_state { TRACE_BLOCK_INACTIVE, TRACE_BLOCK_ALLOCATED, TRACE_BLOCK_PENDING_FREE };

// The final state: segments by device, then address; each with its blocks by address.
struct trace_segment {
    uint64_t address, total_size;
    uint64_t allocated_size, active_size, requested_size;
    uint64_t block_first; // index into blocks
    uint32_t block_count;
    uint32_t stack;
    uint16_t stream, pool;
    uint8_t device;
    bool is_large, is_expandable;
};
struct trace_block {
    uint64_t address, size, requested_size;
    uint32_t stack;
    uint8_t state; // enum trace_block_state
};

// Settings that a snapshot names and no replay needs. Sizes are bytes, -1 unlimited.
struct trace_other_settings {
    bool known;
    bool release_lock_on_cudamalloc, graph_capture_record_stream_reuse;
    // Of PyTorch's allocator for page-locked memory
    bool pinned_use_cuda_host_register;
    uint64_t pinned_num_register_threads;
    int64_t max_round_threshold, max_cached_size;
};

// What the recording says of its allocator; "known" tells whether the file said so.
struct trace_settings {
    bool known;
    char *config;                        // PYTORCH_CUDA_ALLOC_CONF, "" if none
    int64_t max_split_size;              // bytes, -1 unlimited
    double garbage_collection_threshold; // 0: off
    bool expandable_segments;
    uint32_t roundup_power2_divisions[16]; // for 1, 2, 4 ... 32768 MiB
    // Of an allocator that is being recorded; readers leave them out, and a .tmt has no place for
    // them
    struct trace_other_settings other;
    // From the JSON beside the snapshot, or a .tmt that carries it on:
    char *torch_version;     // "2.15.0"; NULL if unknown
    uint64_t capacity_bytes; // of the device; 0 if unknown
    double memory_fraction;  // 0 if none was set
};

struct trace {
    char *name;   // base name without folder and suffixes: "mlp__default"
    char *source; // where it comes from, one line of provenance; "" if unknown
    const char *format; // read from: ".tmt", "PyTorch snapshot"; "" if it was made in memory
    struct trace_settings settings;
    bool has_pool_ids; // entries carry pool_id: written by PyTorch 2.15 or later

    struct trace_event *events;
    size_t event_count;
    uint32_t device_count;
    size_t device_event_first[17]; // events of device d: [first[d], first[d + 1])

    uint64_t *streams; // handles as recorded; index 0 is the default stream 0
    uint32_t stream_count;
    struct trace_pool_id *pools; // index 0 is (0, 0)
    uint32_t pool_count;
    char **strings;
    uint32_t string_count;
    struct trace_stack *stacks;
    uint32_t stack_count;
    struct trace_frame *frames;
    uint32_t frame_count;

    struct trace_segment *segments; // final state; may be empty
    size_t segment_count;
    struct trace_block *blocks;
    size_t block_count;
};

#define TRACE_DEVICE_COUNT_MAX 16

struct trace_read_options {
    // Of everything the reader holds. 0: for a snapshot half the (unpacked) file's size plus 64 MiB
    // beside the events (40 bytes each; with them a recording with stacks stays below that too, one
    // without is nearly all events), for a .tmt, whose tables are in memory what they are in the
    // file, 1 GiB plus four times the file's.
    uint64_t memory_limit_bytes;
    bool no_stacks; // leave stacks and frames out
};

// Reads a .tmt file or a PyTorch snapshot pickle, plain or gzipped, told apart by content; "-" is
// refused. A JSON file of the same base name beside a snapshot (capacity, memory fraction, version)
// is read too. OPTIONS NULL: defaults. BASE_IO, BASE_FORMAT (with the byte offset and what would be
// right), BASE_LIMIT (the budget, and how to raise it).
enum base_status trace_read(const char *path, const struct trace_read_options *options,
                            struct trace **trace) BASE_MUST_USE;

// Writes a .tmt (docs/trace-format.md); zlib-compressed unless told otherwise. The file appears when
// it is complete.
enum base_status trace_write(const struct trace *trace, const char *path, bool compress) BASE_MUST_USE;

// Writes a PyTorch memory snapshot: the dictionary that torch.cuda.memory._dump_snapshot pickles
// (protocol 4), with builtin types only. What a snapshot has no place for (name, source, capacity,
// fraction, version) is left out. The file appears when it is complete. BASE_FORMAT if the trace
// breaks its promises.
enum base_status trace_write_snapshot(const struct trace *trace, const char *path) BASE_MUST_USE;

void trace_destroy(struct trace *trace);

// An empty trace with stream 0 and pool (0, 0); NULL: no memory. Traces that grow are made by
// trace/build.h.
struct trace *trace_create(const char *name);

//------------------------------------------------------------------------------------------------
// Questions about a trace.

// BASE_OK if the history of DEVICE can be replayed: it has allocations, every free names a live
// block, the start state can be rebuilt, no feature is used that the replay does not have. Else
// BASE_UNSUPPORTED (a feature, named) or BASE_FORMAT (no history, contradictions: the first one, with
// its event), in one sentence. BASE_INVALID_VALUE: there is no such device.
enum base_status trace_check_replayable(const struct trace *trace, int device) BASE_MUST_USE;

// The state before the first event of DEVICE, rebuilt from the final segments and the events: empty
// for a complete history and where placement was not recorded. Same tables as the final state; the
// segments' order of registration is taken to be by address. The caller frees them with
// trace_state_deinit.
struct trace_state {
    struct trace_segment *segments; // of this device only, by address; block_first is in blocks
    size_t segment_count;
    struct trace_block *blocks;
    size_t block_count;
};
enum base_status trace_start_state(const struct trace *trace, int device,
                                   struct trace_state *state) BASE_MUST_USE;
void trace_state_deinit(struct trace_state *state);

// Whether the file says where DEVICE's segments were. A made trace has requests only: its addresses
// name blocks and say nothing of placement, so a replay has nothing to compare itself with.
bool trace_has_placement(const struct trace *trace, int device);

// Which rules of tie order the recording follows: "2.15" if its entries carry pool ids, else as an
// older release ("2.11"); settings.torch_version decides when it is known. *assumed tells whether it
// was a guess.
const char *trace_rules_version(const struct trace *trace, bool *assumed);

#endif
