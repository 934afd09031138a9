#include "workload/replay_test_trace.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

void test_trace_begin(struct test_trace *made, const char *config) {
    BASE_CHECK_EQ(trace_builder_init(&made->builder, "made", 0), BASE_OK);
    made->pool = 0;
    struct trace *trace = made->builder.trace;
    trace->has_pool_ids = true;
    trace->settings.known = true;
    trace->settings.max_split_size = -1;
    free(trace->settings.config);
    trace->settings.config = strdup(config);
    BASE_CHECK(trace->settings.config != NULL);
}

static uint16_t stream_of(struct test_trace *made, uint64_t handle) {
    uint16_t index;
    BASE_CHECK_EQ(trace_add_stream(&made->builder, handle, &index), BASE_OK);
    return index;
}

void test_event(struct test_trace *made, enum trace_action action, uint64_t address, uint64_t size,
                uint64_t stream) {
    const struct trace_event event = {.address = address,
                                      .size = size,
                                      .stack = TRACE_NONE,
                                      .metadata = TRACE_NONE,
                                      .stream = stream_of(made, stream),
                                      .pool = made->pool,
                                      .action = (uint8_t)action};
    BASE_CHECK_EQ(trace_add_event(&made->builder, &event), BASE_OK);
}

void test_pool(struct test_trace *made, uint64_t capture, uint64_t user) {
    BASE_CHECK_EQ(
        trace_add_pool(&made->builder, (struct trace_pool_id){capture, user}, &made->pool),
        BASE_OK);
}

void test_alloc(struct test_trace *made, uint64_t address, uint64_t size, uint64_t stream) {
    test_event(made, TRACE_ALLOC, address, size, stream);
}

void test_free(struct test_trace *made, uint64_t address, uint64_t size, uint64_t stream) {
    test_event(made, TRACE_FREE_REQUESTED, address, size, stream);
    test_event(made, TRACE_FREE_COMPLETED, address, size, stream);
}

void test_segment(struct test_trace *made, uint64_t address, uint64_t size, uint64_t stream,
                  bool is_large) {
    const struct trace_segment segment = {.address = address,
                                          .total_size = size,
                                          .stack = TRACE_NONE,
                                          .stream = stream_of(made, stream),
                                          .pool = made->pool,
                                          .is_large = is_large};
    BASE_CHECK_EQ(trace_add_segment(&made->builder, &segment), BASE_OK);
}

void test_block(struct test_trace *made, uint64_t address, uint64_t size, uint64_t requested,
                enum trace_block_state state) {
    const struct trace_block block = {.address = address,
                                      .size = size,
                                      .requested_size = requested,
                                      .stack = TRACE_NONE,
                                      .state = (uint8_t)state};
    BASE_CHECK_EQ(trace_add_block(&made->builder, &block), BASE_OK);
}

struct trace *test_trace_end(struct test_trace *made) {
    struct trace *trace;
    BASE_CHECK_EQ(trace_builder_finish(&made->builder, &trace), BASE_OK);
    return trace;
}
