// Inside the snapshot reader: what a pickle's dicts and lists become while it streams by.
//
// A dict is known by its keys, wherever it stands: {action ...} is an event, {name, filename, line}
// a frame, {size, state} a block, {blocks} a segment. Only when the outermost dict is complete is
// it known which of them the trace is made of (host_traces hold events too, and segments may come
// before or after device_traces); the rest is then dropped. So every known dict becomes a
// fixed-size record at once, faults in it included: a fault is reported only if the record is used.
//
// snapshot_dict.c makes records, snapshot_list.c lists of them, snapshot_stack.c stacks,
// snapshot_fault.c sentences, snapshot_attach.c the trace.
#ifndef TIDEMARK_TRACE_SNAPSHOT_H
#define TIDEMARK_TRACE_SNAPSHOT_H

#include "trace/build.h"
#include "trace/pickle.h"

// X(NAME, text): the keys and texts that have a meaning; their string ids are these numbers. Keys
// first: there are under 64.
#define SNAPSHOT_KEYS(X)                                            \
    X(ACTION, "action")                                             \
    X(ADDR, "addr")                                                 \
    X(DEVICE_FREE, "device_free")                                   \
    X(SIZE, "size")                                                 \
    X(STREAM, "stream")                                             \
    X(TIME_US, "time_us")                                           \
    X(FRAMES, "frames")                                             \
    X(USER_METADATA, "user_metadata")                               \
    X(POOL_ID, "pool_id")                                           \
    X(NAME, "name")                                                 \
    X(FILENAME, "filename")                                         \
    X(LINE, "line")                                                 \
    X(DEVICE, "device")                                             \
    X(ADDRESS, "address")                                           \
    X(TOTAL_SIZE, "total_size")                                     \
    X(ALLOCATED_SIZE, "allocated_size")                             \
    X(ACTIVE_SIZE, "active_size")                                   \
    X(REQUESTED_SIZE, "requested_size")                             \
    X(SEGMENT_TYPE, "segment_type")                                 \
    X(SEGMENT_POOL_ID, "segment_pool_id")                           \
    X(IS_EXPANDABLE, "is_expandable")                               \
    X(BLOCKS, "blocks")                                             \
    X(STATE, "state")                                               \
    X(HISTORY, "history")                                           \
    X(REAL_SIZE, "real_size")                                       \
    X(SEGMENTS, "segments")                                         \
    X(DEVICE_TRACES, "device_traces")                               \
    X(ALLOCATOR_SETTINGS, "allocator_settings")                     \
    X(CONFIG, "PYTORCH_CUDA_ALLOC_CONF")                            \
    X(MAX_SPLIT_SIZE, "max_split_size")                             \
    X(GARBAGE_COLLECTION_THRESHOLD, "garbage_collection_threshold") \
    X(EXPANDABLE_SEGMENTS, "expandable_segments")                   \
    X(ROUNDUP_POWER2_DIVISIONS, "roundup_power2_divisions")         \
    X(DIVISIONS_1, "1")                                             \
    X(DIVISIONS_2, "2")                                             \
    X(DIVISIONS_4, "4")                                             \
    X(DIVISIONS_8, "8")                                             \
    X(DIVISIONS_16, "16")                                           \
    X(DIVISIONS_32, "32")                                           \
    X(DIVISIONS_64, "64")                                           \
    X(DIVISIONS_128, "128")                                         \
    X(DIVISIONS_256, "256")                                         \
    X(DIVISIONS_512, "512")                                         \
    X(DIVISIONS_1024, "1024")                                       \
    X(DIVISIONS_2048, "2048")                                       \
    X(DIVISIONS_4096, "4096")                                       \
    X(DIVISIONS_8192, "8192")                                       \
    X(DIVISIONS_16384, "16384")                                     \
    X(DIVISIONS_32768, "32768")

#define SNAPSHOT_TEXTS(X)                         \
    X(SMALL, "small")                             \
    X(LARGE, "large")                             \
    X(INACTIVE, "inactive")                       \
    X(ACTIVE_ALLOCATED, "active_allocated")       \
    X(ACTIVE_PENDING_FREE, "active_pending_free") \
    X(ACTIVE_AWAITING_FREE, "active_awaiting_free")

enum snapshot_key {
#define KEY_ENUMERATOR(name, text) KEY_##name,
    SNAPSHOT_KEYS(KEY_ENUMERATOR)
#undef KEY_ENUMERATOR
        KEY_COUNT,
};
_Static_assert(KEY_COUNT <= 64, "the keys that a dict has are a 64-bit mask");

// After the keys: the actions, in their order, then the texts.
enum snapshot_text {
    TEXT_ACTION_FIRST = KEY_COUNT,
    TEXT_ACTION_LAST = KEY_COUNT + TRACE_ACTION_COUNT - 1,
#define TEXT_ENUMERATOR(name, text) TEXT_##name,
    SNAPSHOT_TEXTS(TEXT_ENUMERATOR)
#undef TEXT_ENUMERATOR
        TEXT_END,
};

// What pickle values become, beside PICKLE_*. The payload is an index into the table named; of a
// list of records a chain (see snapshot_list.c); of a PAIR the two numbers; of a STACK the trace's
// stack.
enum snapshot_type {
    SNAPSHOT_FRAME = PICKLE_RECORD_FIRST, // frames
    SNAPSHOT_EVENT,                       // the trace's events
    SNAPSHOT_BLOCK,                       // blocks
    SNAPSHOT_SEGMENT,                     // segments
    SNAPSHOT_HISTORY,                     // histories
    SNAPSHOT_SETTINGS,                    // settings
    SNAPSHOT_DIVISIONS,                   // divisions
    SNAPSHOT_TOP,                         // tops
    SNAPSHOT_STACK,
    SNAPSHOT_PAIR,
    SNAPSHOT_EVENT_LIST,
    SNAPSHOT_BLOCK_LIST,
    SNAPSHOT_SEGMENT_LIST,
    SNAPSHOT_TRACE_LIST,   // chain over device_lists: what device_traces is
    SNAPSHOT_HISTORY_LIST, // histories: the newest one
    SNAPSHOT_TYPE_COUNT,
};
_Static_assert((int)SNAPSHOT_TYPE_COUNT <= PICKLE_TYPE_COUNT_MAX, "the memo has 5 bits for a type");

// What is wrong with a record, kept until it is known whether anybody wants the record.
enum snapshot_problem {
    PROBLEM_NONE,
    PROBLEM_MISSING,  // KEY is not there
    PROBLEM_TYPE,     // KEY holds a TYPE
    PROBLEM_NEGATIVE, // KEY holds VALUE
    PROBLEM_LARGE,    // KEY holds a number beyond 63 bits
    PROBLEM_TEXT,     // KEY holds the string VALUE, which is none of the known ones
    PROBLEM_RANGE,    // KEY holds VALUE, which is beyond what a trace holds
    PROBLEM_RECORD,   // a TYPE stands in the record's place
};
struct snapshot_fault {
    uint64_t offset; // where the record ends in the file
    uint64_t value;
    uint8_t problem, key, type;
};

// An event with a fault: its action is this, its size an index into faults. A candidate's
// `reserved` tells that it has a pool id.
#define SNAPSHOT_ACTION_FAULTY 255

struct snapshot_block {
    struct trace_block block;
    uint32_t fault; // index into faults, or TRACE_NONE
    bool has_address;
};
struct snapshot_segment {
    struct trace_segment segment;
    struct trace__pickle_value blocks;
    uint32_t fault;
    bool has_requested_size;
};
struct snapshot_history {
    uint64_t real_size;
    uint32_t stack;
};
struct snapshot_settings {
    struct trace_settings settings; // without its texts
    uint32_t config;                // string id
    uint32_t fault;
};
struct snapshot_divisions {
    uint32_t divisions[16];
};
struct snapshot_top {
    struct trace__pickle_value segments, traces, settings; // PICKLE_UNSET: no such key
};
// The events of one device; or what stood in their place.
struct snapshot_device_list {
    struct trace__pickle_value list;
};

// Part of a chain: records FIRST to FIRST + COUNT - 1, then those of range NEXT.
struct snapshot_range {
    uint32_t first, count, next;
};

// A growing table: `entries` holds COUNT of CAPACITY.
#define SNAPSHOT_TABLE(type)    \
    struct {                    \
        type *entries;          \
        size_t count, capacity; \
    }

// A list of frames that was met: COUNT numbers of frames from FIRST on in frame_numbers, and the
// trace's stack for it.
struct snapshot_frame_list {
    size_t first;
    uint32_t count, stack;
};
struct snapshot_frame_index {
    uint32_t *slots; // a list + 1; 0: empty
    size_t slot_count;
};

struct snapshot {
    struct trace_input *input;
    struct trace__pickle *machine;
    struct trace_builder builder;
    uint64_t memory_limit_bytes; // 0: half of the file, a fixed part, and the events
    uint64_t machine_bytes;      // held by the machine when memory was last looked at
    bool no_stacks;

    SNAPSHOT_TABLE(struct trace_frame) frames;
    SNAPSHOT_TABLE(struct snapshot_block) blocks;
    SNAPSHOT_TABLE(struct snapshot_segment) segments;
    SNAPSHOT_TABLE(struct snapshot_history) histories;
    SNAPSHOT_TABLE(struct snapshot_settings) settings;
    SNAPSHOT_TABLE(struct snapshot_divisions) divisions;
    SNAPSHOT_TABLE(struct snapshot_top) tops;
    SNAPSHOT_TABLE(struct snapshot_device_list) device_lists;
    SNAPSHOT_TABLE(struct snapshot_range) ranges;
    SNAPSHOT_TABLE(struct snapshot_fault) faults;
    SNAPSHOT_TABLE(uint32_t)
    string_map; // of pickle strings: index into the trace's strings + 1, 0 if not there yet
    uint64_t string_bytes; // of the trace's strings

    SNAPSHOT_TABLE(uint32_t) frame_numbers;
    SNAPSHOT_TABLE(struct snapshot_frame_list) frame_lists;
    struct snapshot_frame_index frame_index;

    // The last stream and pool seen and their indices: nearly always the next one's.
    uint64_t stream_handle, pool_pair;
    uint16_t stream, pool;
    bool stream_known, pool_known;
};

// Room for one more entry in a table.
#define SNAPSHOT_RESERVE(table)                                                                  \
    ((table).count < (table).capacity                                                            \
         ? BASE_OK                                                                               \
         : trace__snapshot_grow((void **)&(table).entries, &(table).capacity, (table).count + 1, \
                                sizeof *(table).entries))
// BASE_LIMIT if NEEDED is beyond 32-bit indices.
enum base_status trace__snapshot_grow(void **entries, size_t *capacity, size_t needed,
                                      size_t size) BASE_MUST_USE;

// The two callbacks of the machine.
enum base_status trace__snapshot_set_items(void *snapshot, const struct trace__pickle_value *pairs,
                                           size_t count,
                                           struct trace__pickle_value *dict) BASE_MUST_USE;
enum base_status trace__snapshot_add_items(void *snapshot, const struct trace__pickle_value *items,
                                           size_t count,
                                           struct trace__pickle_value *list) BASE_MUST_USE;

// Enters an event with FAULT, or a record of another table's type with none but a fault.
enum base_status trace__snapshot_add_fault(struct snapshot *snapshot,
                                           const struct snapshot_fault *fault,
                                           uint32_t *index) BASE_MUST_USE;
enum base_status trace__snapshot_add_faulty(struct snapshot *snapshot, enum snapshot_type type,
                                            const struct snapshot_fault *fault,
                                            uint32_t *index) BASE_MUST_USE;
// Makes LIST, of items that begin with a frame, a stack.
enum base_status trace__snapshot_make_stack(struct snapshot *snapshot,
                                            const struct trace__pickle_value *items, size_t count,
                                            struct trace__pickle_value *list) BASE_MUST_USE;
uint64_t trace__snapshot_stack_bytes(const struct snapshot *snapshot);
// The trace's string for a pickle string, as valid UTF-8.
enum base_status trace__snapshot_map_string(struct snapshot *snapshot, uint32_t id,
                                            uint32_t *index) BASE_MUST_USE;

// A chain holds ranges from head to tail; an empty list holds none.
static inline uint32_t trace__snapshot_chain_head(const struct trace__pickle_value *list) {
    return list->type >= PICKLE_RECORD_FIRST ? (uint32_t)list->payload : TRACE_NONE;
}

enum base_status trace__snapshot_check_memory(void *snapshot, uint64_t machine_bytes) BASE_MUST_USE;

// Sets the sentence for FAULT ("'size' is -512; ..."); the caller prefixes where.
enum base_status trace__snapshot_fault_status(const struct snapshot *snapshot,
                                              const struct snapshot_fault *fault) BASE_MUST_USE;

// Makes the builder's trace out of the records that ROOT refers to.
enum base_status trace__snapshot_attach(struct snapshot *snapshot,
                                        const struct trace__pickle_value *root) BASE_MUST_USE;

#endif
