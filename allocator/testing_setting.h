// For tests of captures.h: an allocator with three streams and a capture of the first.
#ifndef TIDEMARK_ALLOCATOR_TESTING_SETTING_H
#define TIDEMARK_ALLOCATOR_TESTING_SETTING_H

#include "allocator/testing_capture.h"
#include "base/thread.h"

#define CAPACITY (256 * BASE_MIB)
#define DEVICE 0
#define REUSE "graph_capture_record_stream_reuse:True"
#define BLOCK (20 * BASE_MIB) // a segment of its own

static const struct allocator_pool_id pool_of_graph = {.capture = 1}, second_pool = {.capture = 2};

struct setting {
    struct allocator *allocator;
    void *of_other_thread;
    cudaStream_t main, side, other;
    struct testing_capture capture;
};

static inline struct setting *setting_make(const char *config) {
    static struct setting setting;
    memset(&setting, 0, sizeof setting);
    setting.allocator = testing_create(config, CAPACITY);
    setting.main = testing_stream();
    setting.side = testing_stream();
    setting.other = testing_stream();
    setting.capture = (struct testing_capture){
        .allocator = setting.allocator, .pool = pool_of_graph, .stream = setting.main};
    return &setting;
}

// In a capture that is under way.
static inline struct setting *setting_capturing(const char *config) {
    struct setting *const setting = setting_make(config);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    return setting;
}

// Everything is freed: after the graph and the cache went, nothing is reserved.
static inline void setting_end(struct setting *setting) {
    struct allocator *const allocator = setting->allocator;
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    cca_check(allocator);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.active[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(allocator);
}

static inline int64_t active(struct setting *setting) {
    cca_check(setting->allocator);
    return testing_stats(setting->allocator).active[ALLOCATOR_STAT_ALL].current;
}

// A block of MAIN that SIDE uses, both in the capture.
static inline void *take_used(struct setting *setting) {
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    testing_launch(setting->main);
    testing_order(setting->main, setting->side);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    return block;
}

// A request of another stream, as the body of a thread or outside of the capture.
static inline void malloc_on_another_thread(void *argument) {
    struct setting *const setting = argument;
    setting->of_other_thread = testing_malloc(setting->allocator, 4096, setting->other);
}

#endif
