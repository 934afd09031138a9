// A stream joins a capture while another thread frees a block that it uses, or puts an earlier free
// to rest: between the allocator's question whether the stream is captured and the event that it
// records there. The event would tell of nothing, and to ask it would cost the program its capture.
// The other thread is a hook in front of the driver's call.
#include "allocator/testing_calls.h"
#include "allocator/testing_capture.h"

#define BLOCK (4 * BASE_MIB)

static struct {
    struct allocator *allocator;
    cudaStream_t main, side, other;
    struct testing_capture capture;
} setting;

static void join(void *context, enum testing_call call) {
    (void)context;
    if (call != TESTING_cudaEventRecord) return;
    testing_calls_watch(false);
    testing_order(setting.main, setting.side);
    testing_launch(setting.side);
}

static int64_t active(void) {
    cca_check(setting.allocator);
    return testing_stats(setting.allocator).active[ALLOCATOR_STAT_ALL].current;
}

// A block of OWNER that the side stream used before the capture.
static void *begin(const char *config, bool is_of_capture) {
    setting.allocator = testing_create(config, BASE_GIB);
    setting.main = testing_stream();
    setting.side = testing_stream();
    setting.other = testing_stream();
    void *const block =
        testing_malloc(setting.allocator, BLOCK, is_of_capture ? setting.main : setting.other);
    testing_launch(setting.side);
    BASE_CHECK_EQ(allocator_record_stream(setting.allocator, block, setting.side), BASE_OK);
    setting.capture = (struct testing_capture){
        .allocator = setting.allocator, .pool = {.capture = 1}, .stream = setting.main};
    testing_capture_begin(&setting.capture, cudaStreamCaptureModeRelaxed);
    testing_launch(setting.main);
    return block;
}

static void watch_and_free(void *block) {
    testing_calls_watch(true);
    testing_free(setting.allocator, block);
    testing_calls_watch(false);
}

// The side stream is captured now, and the block waits for it.
static void end(void) {
    BASE_CHECK(testing_capture_id(setting.side) == setting.capture.id);
    BASE_CHECK_EQ(active(), 1);
    void *const beside = testing_malloc(setting.allocator, BLOCK, setting.other);
    BASE_CHECK_EQ(active(), 2);
    testing_launch(setting.main); // the capture is well
    testing_order(setting.side, setting.main);
    BASE_CHECK_EQ(testing_capture_end(&setting.capture), cudaSuccess);
    testing_free(setting.allocator, beside);
    testing_capture_destroy(&setting.capture);
    testing_free(setting.allocator, testing_malloc(setting.allocator, BLOCK, setting.other));
    BASE_CHECK_EQ(allocator_empty_cache(setting.allocator), BASE_OK);
    BASE_CHECK_EQ(active(), 0);
    BASE_CHECK_EQ(testing_stats(setting.allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(setting.allocator);
}

static void a_stream_joins_during_a_free(const char *config) {
    watch_and_free(begin(config, false));
    end();
}

static void a_stream_joins_during_a_flush(const char *config) {
    void *const block = begin(config, true);
    testing_free(setting.allocator, block); // in the capture
    testing_calls_watch(true);
    void *const pointer = testing_malloc(setting.allocator, BLOCK, setting.other);
    testing_calls_watch(false);
    testing_free(setting.allocator, pointer);
    end();
}

int main(void) {
    static const char *const configs[] = {"", "graph_capture_record_stream_reuse:True",
                                          "x_capture_reuse:markers"};
    testing_calls_hook(join, NULL);
    for (size_t config = 0; config < sizeof configs / sizeof configs[0]; ++config) {
        a_stream_joins_during_a_free(configs[config]);
        a_stream_joins_during_a_flush(configs[config]);
    }
    return 0;
}
