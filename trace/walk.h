// Following a recording: the layout of segments and blocks after each event, at the addresses that
// the recording names. Inside trace/ only.
//
// No choice is made here (no best fit, no order of segments): an address says which free block was
// taken, PyTorch's rules for rounding, splitting and merging say what becomes of it. So the walk
// tells whether a history is consistent, rebuilds the state at any point of it, and finds out what
// a window's start state must have been.
#ifndef TIDEMARK_TRACE_WALK_H
#define TIDEMARK_TRACE_WALK_H

#include "base/address_map.h"
#include "trace/trace.h"

struct trace_walk_block {
    uint64_t address, size, requested_size;
    uint32_t before, after; // neighbours in the segment, TRACE_NONE at its ends
    uint32_t segment;
    uint32_t start; // index of the start state's block, TRACE_NONE for others
    uint32_t stack;
    uint8_t state; // enum trace_block_state
    bool guessed;  // of the start state, its size is the least possible one
    bool used;     // the slot holds a block
};

struct trace_walk_segment {
    uint64_t address, total_size;
    uint32_t stack;
    uint16_t stream, pool;
    bool is_large, used;
};

struct trace_walk {
    const struct trace *trace;
    int device;
    struct trace_walk_block *blocks;
    size_t block_count, block_capacity;
    struct trace_walk_segment *segments;
    size_t segment_count, segment_capacity;
    uint32_t block_unused, segment_unused; // lists of free slots through `after` and `stack`
    struct base_address_map by_address;    // blocks
    struct trace_state *start; // sizes found out on the way are entered here; may be NULL
};

// What MAP holds for ADDRESS, TRACE_NONE if nothing.
static inline uint32_t trace__find(const struct base_address_map *map, uint64_t address) {
    uint64_t value;
    return base_address_map_get(map, address, &value) ? (uint32_t)value : TRACE_NONE;
}
static inline void trace__forget(struct base_address_map *map, uint64_t address) {
    uint64_t value;
    base_address_map_remove(map, address, &value);
}

// PyTorch's sizes under the recorded settings.
uint64_t trace__round_size(const struct trace_settings *settings, uint64_t requested);
bool trace__should_split(const struct trace_settings *settings, bool is_large, uint64_t rounded,
                         uint64_t remaining);
#define TRACE_SMALL_SEGMENT_BYTES ((uint64_t)2 << 20)

// Begins at START (NULL: empty). GUESSED has a byte for each of its blocks (NULL: all sizes are
// certain).
enum base_status trace__walk_init(struct trace_walk *walk, const struct trace *trace, int device,
                                  struct trace_state *start,
                                  const unsigned char *guessed) BASE_MUST_USE;
// BASE_FORMAT: the event contradicts the layout; the sentence names the event.
enum base_status trace__walk_event(struct trace_walk *walk, size_t event) BASE_MUST_USE;
// The layout as it is now; the caller frees it with trace_state_deinit.
enum base_status trace__walk_state(const struct trace_walk *walk,
                                   struct trace_state *state) BASE_MUST_USE;
void trace__walk_deinit(struct trace_walk *walk);

// mapped.c: whether the device had expandable segments, and whether the history begins with nothing
// then: BASE_UNSUPPORTED if it does not.
bool trace__is_mapped(const struct trace *trace, int device);
enum base_status trace__check_mapped(const struct trace *trace, int device) BASE_MUST_USE;

#endif
