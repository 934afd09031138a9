// Growing a trace: what readers, makers and recorders share. Tables double as they grow; a failed
// growth is BASE_HOST_MEMORY and a full 16-bit or 32-bit index BASE_LIMIT, both with a sentence.
// Identical streams, pools, strings and stacks are stored once.
//
//     struct trace_builder builder;
//     status = trace_builder_init(&builder, "run", 0);
//     status = trace_add_event(&builder, &event);           ... and the other trace_add calls
//     status = trace_builder_finish(&builder, &trace);      or trace_builder_abandon(&builder)
//
// Indices given to trace_add calls must come from earlier ones (or be TRACE_NONE where a field
// allows it): anything else is a bug of the caller and aborts. Numbers that a file chose (devices,
// counts) are checked and give a status.
#ifndef TIDEMARK_TRACE_BUILD_H
#define TIDEMARK_TRACE_BUILD_H

#include "trace/trace.h"

// A hash table of indices into one of the tables; private.
struct trace_index {
    uint32_t *slots;     // index + 1, 0: empty
    uint64_t slot_count; // a power of two, or 0
    uint64_t used_count;
};

struct trace_builder {
    struct trace *trace; // owned by the builder until trace_builder_finish
    size_t event_capacity, stack_capacity, frame_capacity, segment_capacity, block_capacity;
    size_t string_capacity, stream_capacity, pool_capacity;
    struct trace_index string_index, stack_index, stream_index, pool_index;
    uint32_t frame_pending; // frames added since the last stack
    uint32_t device_count;
    bool events_out_of_order, segments_out_of_order;
    uint64_t memory_bytes, memory_limit_bytes; // held by the tables; 0: no limit
};

enum base_status trace_builder_init(struct trace_builder *builder, const char *name,
                                    uint64_t memory_limit_bytes) BASE_MUST_USE;

// Events of one device in recorded order; devices may alternate, trace_builder_finish sorts them
// apart.
enum base_status trace_add_event(struct trace_builder *builder,
                                 const struct trace_event *event) BASE_MUST_USE;
enum base_status trace_add_stream(struct trace_builder *builder, uint64_t handle,
                                  uint16_t *index) BASE_MUST_USE;
enum base_status trace_add_pool(struct trace_builder *builder, struct trace_pool_id id,
                                uint16_t *index) BASE_MUST_USE;
// LENGTH bytes; a 0 among them is stored as '?'.
enum base_status trace_add_string(struct trace_builder *builder, const char *bytes, size_t length,
                                  uint32_t *index) BASE_MUST_USE;
// Frames are added innermost first, then the stack over the last FRAME_COUNT of them, which must be
// all since the last stack. A stack that is there already gives its index again and its frames are
// taken back.
enum base_status trace_add_frame(struct trace_builder *builder,
                                 const struct trace_frame *frame) BASE_MUST_USE;
enum base_status trace_add_stack(struct trace_builder *builder, uint32_t frame_count,
                                 uint32_t *index) BASE_MUST_USE;
// Segments in any order (sorted at the end); blocks belong to the segment added last. block_first
// and block_count are the builder's.
enum base_status trace_add_segment(struct trace_builder *builder,
                                   const struct trace_segment *segment) BASE_MUST_USE;
enum base_status trace_add_block(struct trace_builder *builder,
                                 const struct trace_block *block) BASE_MUST_USE;
// An empty device counts as well: device_count becomes at least COUNT.
enum base_status trace_add_devices(struct trace_builder *builder, uint32_t count) BASE_MUST_USE;

// Counts BYTES that a reader holds beside the tables against the limit; negative gives them back.
enum base_status trace_builder_charge(struct trace_builder *builder, int64_t bytes) BASE_MUST_USE;

// Replaces a heap text of the trace (name, source, settings.config, settings.torch_version). TEXT
// NULL: NULL.
enum base_status trace_set_text(char **field, const char *text) BASE_MUST_USE;

// Sorts, fills device_event_first, trims the tables and hands the trace over; the builder is then
// empty, on failure too.
enum base_status trace_builder_finish(struct trace_builder *builder,
                                      struct trace **trace) BASE_MUST_USE;
void trace_builder_abandon(struct trace_builder *builder);

#endif
