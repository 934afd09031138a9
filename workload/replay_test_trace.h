// Hand-made recordings for tests: a line an event. Every call aborts on failure.
//
//     struct test_trace made;
//     test_trace_begin(&made, "");
//     test_event(&made, TRACE_SEGMENT_ALLOC, 0x1000000, 20 * BASE_MIB, 0);
//     test_event(&made, TRACE_ALLOC, 0x1000000, 5 * BASE_MIB, 0);
//     struct trace *trace = test_trace_end(&made);
#ifndef TIDEMARK_WORKLOAD_REPLAY_TEST_TRACE_H
#define TIDEMARK_WORKLOAD_REPLAY_TEST_TRACE_H

#include "trace/build.h"

struct test_trace {
    struct trace_builder builder;
    uint16_t pool;
};

// CONFIG as PYTORCH_CUDA_ALLOC_CONF. Rules of PyTorch 2.15.
void test_trace_begin(struct test_trace *made, const char *config);
// STREAM is a handle as recorded.
void test_event(struct test_trace *made, enum trace_action action, uint64_t address, uint64_t size,
                uint64_t stream);
// The events from here on are of that private pool; {0, 0}: of none.
void test_pool(struct test_trace *made, uint64_t capture, uint64_t user);
// An allocation or a whole free, both of its events.
void test_alloc(struct test_trace *made, uint64_t address, uint64_t size, uint64_t stream);
void test_free(struct test_trace *made, uint64_t address, uint64_t size, uint64_t stream);
// The final state: a segment, then its blocks.
void test_segment(struct test_trace *made, uint64_t address, uint64_t size, uint64_t stream,
                  bool is_large);
void test_block(struct test_trace *made, uint64_t address, uint64_t size, uint64_t requested,
                enum trace_block_state state);
struct trace *test_trace_end(struct test_trace *made);

#endif
