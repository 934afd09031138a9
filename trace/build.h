// Growing a trace: what readers, makers and recorders share. Tables double as they grow; a failed growth is BASE_HOST_MEMORY and a full
// 16-bit or 32-bit index BASE_LIMIT, both with a sentence. Identical streams, pools and strings are stored once.
#ifndef TIDEMARK_TRACE_BUILD_H
#define TIDEMARK_TRACE_BUILD_H

#include "trace/trace.h"

struct trace_builder {
    struct trace *trace; // owned by the builder until trace_builder_finish
    size_t event_capacity, stack_capacity, frame_capacity, segment_capacity, block_capacity;
    uint32_t string_capacity, stream_capacity, pool_capacity;
    void *string_index; // hash table of strings, private
    uint64_t memory_bytes, memory_limit_bytes; // held by the tables; 0: no limit
};

enum base_status trace_builder_init(struct trace_builder *builder, const char *name, uint64_t memory_limit_bytes) BASE_MUST_USE;
enum base_status trace_add_event(struct trace_builder *builder, const struct trace_event *event) BASE_MUST_USE;
enum base_status trace_add_stream(struct trace_builder *builder, uint64_t handle, uint16_t *index) BASE_MUST_USE;
enum base_status trace_add_pool(struct trace_builder *builder, struct trace_pool_id id, uint16_t *index) BASE_MUST_USE;
enum base_status trace_add_string(struct trace_builder *builder, const char *bytes, size_t length, uint32_t *index) BASE_MUST_USE;
// Frames are added innermost first, then the stack over the last COUNT of them.
enum base_status trace_add_frame(struct trace_builder *builder, const struct trace_frame *frame) BASE_MUST_USE;
enum base_status trace_add_stack(struct trace_builder *builder, uint32_t frame_count, uint32_t *index) BASE_MUST_USE;
// Segments in any order (sorted at the end); blocks belong to the segment added last.
enum base_status trace_add_segment(struct trace_builder *builder, const struct trace_segment *segment) BASE_MUST_USE;
enum base_status trace_add_block(struct trace_builder *builder, const struct trace_block *block) BASE_MUST_USE;

// Sorts, fills device_event_first, trims the tables and hands the trace over; the builder is then empty.
enum base_status trace_builder_finish(struct trace_builder *builder, struct trace **trace) BASE_MUST_USE;
void trace_builder_abandon(struct trace_builder *builder);

#endif
