// A child of fork is refused, whatever other threads were about; the parent goes on as if nothing
// had happened.
#include "allocator/pools.h"
#include "allocator/settings.h"
#include "allocator/testing_state.h"

#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 30

struct worker {
    struct allocator *allocator;
    cudaStream_t stream, user;
    _Atomic bool *stops;
};

// Takes every kind of lock again and again, so that forks meet them taken.
static void work(void *argument) {
    const struct worker *const worker = argument;
    for (int round = 0; !*worker->stops; ++round) {
        void *const small = testing_malloc(worker->allocator, 1000, worker->stream);
        void *const large = testing_malloc(worker->allocator, 30 << 20, worker->stream);
        BASE_CHECK_EQ(allocator_record_stream(worker->allocator, small, worker->user), BASE_OK);
        testing_free(worker->allocator, small);
        testing_free(worker->allocator, large);
        if (round % 4 == 0) BASE_CHECK_EQ(allocator_empty_cache(worker->allocator), BASE_OK);
        if (round % 4 == 1) BASE_CHECK_EQ(cca_set_config(worker->allocator, ""), BASE_OK);
        if (round % 4 == 2) cca_check(worker->allocator);
    }
}

static void is_refused(enum base_status status) {
    BASE_CHECK_EQ(status, BASE_UNSUPPORTED);
    testing_message_is_a_sentence();
    BASE_CHECK(testing_message_has("forked"));
}

// All calls there are, with memory of before the fork.
static void be_a_child(struct allocator *allocator, void *block) {
    void *pointer = NULL;
    size_t size = 0, other = 0;
    double fraction;
    struct allocator_stats stats;
    struct allocator_snapshot snapshot;
    struct cca_expandable_segment *segments;
    struct cca_pending_frees pending;
    struct cca_settings settings;
    is_refused(allocator_malloc(allocator, 0, 1000, NULL, &pointer));
    is_refused(allocator_malloc(allocator, 0, 30 << 20, NULL, &pointer));
    BASE_CHECK(pointer == NULL);
    is_refused(allocator_free(allocator, block));
    BASE_CHECK_EQ(allocator_free(allocator, NULL), BASE_OK);
    is_refused(allocator_record_stream(allocator, block, NULL));
    is_refused(allocator_empty_cache(allocator));
    is_refused(allocator_base_allocation(allocator, block, &pointer, &size));
    is_refused(allocator_largest_block(allocator, 0, &size));
    is_refused(allocator_stats(allocator, 0, &stats));
    is_refused(allocator_reset_peak_stats(allocator, 0));
    is_refused(allocator_reset_accumulated_stats(allocator, 0));
    is_refused(allocator_snapshot(allocator, &snapshot));
    is_refused(allocator_set_observer(allocator, NULL));
    is_refused(cca_set_config(allocator, ""));
    is_refused(cca_settings(allocator, &settings));
    is_refused(cca_set_memory_fraction(allocator, 0, 0.5));
    is_refused(cca_memory_fraction(allocator, 0, &fraction));
    is_refused(cca_round_size(allocator, 1000, &size, &other));
    is_refused(cca_malloc_at(allocator, 0, 512, NULL, block, &pointer));
    is_refused(cca_set_stream_reserve_class(allocator, 0, NULL, "a"));
    is_refused(cca_set_reserve_class_default(allocator, "a", 0.5));
    is_refused(cca_enable_peer_access(allocator, 0, 0));
    is_refused(cca_expandable_segments(allocator, 0, &segments, &size));
    is_refused(cca_pending_frees(allocator, 0, &pending));
    is_refused(cca_record_history(allocator, &(struct cca_history_options){0}));
    const struct allocator_pool_id id = {.user = 1};
    struct cca_pool_stats *pools;
    int64_t users;
    is_refused(cca_pool_create(allocator, 0, id, NULL));
    is_refused(cca_pool_begin(allocator, 0, id, NULL));
    is_refused(cca_pool_end(allocator, 0, id));
    is_refused(cca_pool_release(allocator, 0, id));
    is_refused(cca_pool_count(allocator, 0, id, &users));
    is_refused(cca_pool_set_use_on_oom(allocator, 0, id, true));
    is_refused(cca_pool_set_no_split(allocator, 0, id));
    is_refused(cca_pool_empty_cache(allocator, 0, id));
    is_refused(cca_pool_destroy(allocator, 0, id));
    is_refused(cca_pool_stats(allocator, 0, &pools, &size));
    is_refused(cca_pool_snapshot(allocator, id, &snapshot));
    cca_check(allocator);
    allocator_destroy(allocator);
    is_refused(allocator_free(allocator, block)); // nothing went
}

static void children_are_refused(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    _Atomic bool stops = false;
    struct worker workers[2] = {
        {.allocator = allocator, .stream = testing_stream(), .user = testing_stream()},
        {.allocator = allocator, .stream = testing_stream(), .user = testing_stream()}};
    struct base_thread threads[2];
    void *const block = testing_malloc(allocator, 1000, NULL);
    for (int index = 0; index < 2; ++index) {
        workers[index].stops = &stops;
        base_thread_start(&threads[index], work, &workers[index]);
    }
    for (int child = 0; child < CHILDREN; ++child) {
        const pid_t pid = fork();
        BASE_CHECK_GE(pid, 0);
        if (pid == 0) {
            alarm(20); // a child that hangs is a failure
            be_a_child(allocator, block);
            _exit(0);
        }
        int status;
        BASE_CHECK_EQ(waitpid(pid, &status, 0), pid);
        BASE_CHECK_EQ(status, 0);
        BASE_CHECK(testing_malloc(allocator, 1000, NULL) != block);
    }
    stops = true;
    for (int index = 0; index < 2; ++index)
        base_thread_join(&threads[index]);
    cca_check(allocator);
    BASE_CHECK_EQ(testing_stats(allocator).allocation[ALLOCATOR_STAT_ALL].current, CHILDREN + 1);
    testing_free(allocator, block);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

// The list of allocators that children are refused loses those that were destroyed, in any order.
static void destroyed_allocators_are_forgotten(void) {
    struct allocator *allocators[3];
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    for (int index = 0; index < 3; ++index)
        BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){0}, &allocators[index]), BASE_OK);
    allocator_destroy(allocators[1]);
    const pid_t pid = fork();
    BASE_CHECK_GE(pid, 0);
    if (pid == 0) {
        is_refused(allocator_empty_cache(allocators[0]));
        is_refused(allocator_empty_cache(allocators[2]));
        _exit(0);
    }
    int status;
    BASE_CHECK_EQ(waitpid(pid, &status, 0), pid);
    BASE_CHECK_EQ(status, 0);
    allocator_destroy(allocators[0]);
    allocator_destroy(allocators[2]);
}

int main(void) {
    destroyed_allocators_are_forgotten();
    children_are_refused("");
    children_are_refused("expandable_segments:True");
    return 0;
}
