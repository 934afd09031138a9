// Several threads at once: on streams of their own, on one stream, freeing what others allocated,
// with record_stream, while statistics and snapshots are read and settings change. Exact at the
// end; peaks lie between what must have been live at once and all. Every block is worked on, and the
// race checker finds each that is handed out again before that work is ordered.
#include "allocator/testing.h"
#include "allocator/testing_race.h"

#include "base/random.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>

#define LIVE  64
#define STEPS 6000
#define SEED  77u

struct worker {
    struct allocator *allocator;
    cudaStream_t stream, user; // user: for record_stream; NULL: none
    uint64_t seed;
    int64_t live_bytes_max; // of blocks this worker held at once, at their rounded size
    struct mailbox *mailbox;
    int index;
};

struct block {
    void *pointer; // NULL: none
    size_t size;
    uint64_t number; // the race checker's
};

// Blocks handed from one thread to the other, to be freed there.
struct mailbox {
    struct base_mutex mutex;
    struct block blocks[2][LIVE];
    int counts[2];
};

// Its work ends when its free is asked for.
static void give(struct allocator *allocator, struct block block) {
    sim_block_give(block.number);
    testing_free(allocator, block.pointer);
}

static void post(struct mailbox *mailbox, int to, struct block block, struct allocator *allocator) {
    base_mutex_lock(&mailbox->mutex);
    const bool fits = mailbox->counts[to] < LIVE;
    if (fits) mailbox->blocks[to][mailbox->counts[to]++] = block;
    base_mutex_unlock(&mailbox->mutex);
    if (!fits) give(allocator, block);
}

static struct block collect(struct mailbox *mailbox, int to) {
    base_mutex_lock(&mailbox->mutex);
    const struct block block = mailbox->counts[to] > 0 ? mailbox->blocks[to][--mailbox->counts[to]]
                                                       : (struct block){0};
    base_mutex_unlock(&mailbox->mutex);
    return block;
}

static void empty(struct mailbox *mailbox, int of, struct allocator *allocator) {
    for (struct block block; (block = collect(mailbox, of)).pointer != NULL;)
        give(allocator, block);
}

static void work(void *argument) {
    struct worker *const worker = argument;
    struct base_random random = base_random_init(worker->seed, "worker");
    struct block blocks[LIVE] = {{0}};
    int64_t sizes[LIVE] = {0}, live = 0;
    for (int step = 0; step < STEPS; ++step) {
        const size_t slot = base_random_below(&random, LIVE);
        if (blocks[slot].pointer != NULL) {
            if (worker->mailbox != NULL && base_random_chance(&random, 0.3))
                post(worker->mailbox, 1 - worker->index, blocks[slot], worker->allocator);
            else
                give(worker->allocator, blocks[slot]);
            live -= sizes[slot];
        }
        const size_t size = base_random_log_between(&random, 1, 4 << 20);
        void *const pointer = testing_malloc(worker->allocator, size, worker->stream);
        blocks[slot] =
            (struct block){pointer, size, testing_race_take(pointer, size, worker->stream)};
        sizes[slot] = (int64_t)((size + 511) / 512 * 512);
        live += sizes[slot];
        if (live > worker->live_bytes_max) worker->live_bytes_max = live;
        if (worker->user != NULL && base_random_chance(&random, 0.1)) {
            BASE_CHECK_EQ(allocator_record_stream(worker->allocator, pointer, worker->user),
                          BASE_OK);
            testing_race_use(blocks[slot].number, pointer, size, worker->stream, worker->user);
        }
        if (worker->mailbox != NULL)
            give(worker->allocator, collect(worker->mailbox, worker->index));
    }
    for (size_t slot = 0; slot < LIVE; ++slot) give(worker->allocator, blocks[slot]);
    if (worker->mailbox != NULL) empty(worker->mailbox, worker->index, worker->allocator);
}

// Reads and changes whatever takes all locks, while the workers run.
static void disturb(void *argument) {
    const struct worker *const worker = argument;
    for (int round = 0; round < 40; ++round) {
        struct allocator_snapshot snapshot;
        BASE_CHECK_EQ(allocator_snapshot(worker->allocator, &snapshot), BASE_OK);
        allocator_snapshot_deinit(&snapshot);
        const struct allocator_stats stats = testing_stats(worker->allocator);
        BASE_CHECK_LE(stats.active_bytes[ALLOCATOR_STAT_ALL].current,
                      stats.active_bytes[ALLOCATOR_STAT_ALL].peak);
        BASE_CHECK_LE(stats.active_bytes[ALLOCATOR_STAT_ALL].current,
                      stats.reserved_bytes[ALLOCATOR_STAT_ALL].current);
        cca_check(worker->allocator);
        if (round % 10 == 5) BASE_CHECK_EQ(allocator_empty_cache(worker->allocator), BASE_OK);
        if (round % 10 == 7) BASE_CHECK_EQ(cca_set_config(worker->allocator, ""), BASE_OK);
    }
}

static void run(struct allocator *allocator, struct worker workers[2], bool with_disturbance) {
    struct base_thread threads[3];
    for (int index = 0; index < 2; ++index) {
        workers[index].allocator = allocator;
        workers[index].index = index;
        workers[index].seed = SEED + (uint64_t)index;
        base_thread_start(&threads[index], work, &workers[index]);
    }
    if (with_disturbance) base_thread_start(&threads[2], disturb, &workers[0]);
    for (int index = 0; index < (with_disturbance ? 3 : 2); ++index)
        base_thread_join(&threads[index]);
    // A mailbox may have been filled after its owner had looked for the last time.
    for (int index = 0; workers[0].mailbox != NULL && index < 2; ++index)
        empty(workers[0].mailbox, index, allocator);
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    cca_check(allocator);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].allocated, 2 * STEPS);
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.requested_bytes[ALLOCATOR_STAT_ALL].freed,
                  stats.requested_bytes[ALLOCATOR_STAT_ALL].allocated);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    int64_t most = workers[0].live_bytes_max;
    if (workers[1].live_bytes_max > most) most = workers[1].live_bytes_max;
    // At least what one thread held at once.
    BASE_CHECK_GE(stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak, most);
    // The peak of all is never more than the peaks of both pools together, nor less than either.
    BASE_CHECK_LE(stats.active_bytes[ALLOCATOR_STAT_ALL].peak,
                  stats.active_bytes[ALLOCATOR_STAT_SMALL_POOL].peak +
                      stats.active_bytes[ALLOCATOR_STAT_LARGE_POOL].peak);
    BASE_CHECK_GE(stats.active_bytes[ALLOCATOR_STAT_ALL].peak,
                  stats.active_bytes[ALLOCATOR_STAT_LARGE_POOL].peak);
}

static void threads_on_their_own_streams(const char *config, bool with_disturbance) {
    struct allocator *const allocator = testing_create(config, 64 * BASE_GIB);
    struct worker workers[2] = {{.stream = testing_stream()}, {.stream = testing_stream()}};
    testing_race_start();
    run(allocator, workers, with_disturbance);
    allocator_destroy(allocator);
    testing_race_stop();
}

static void threads_on_one_stream(const char *config, bool with_disturbance) {
    struct allocator *const allocator = testing_create(config, 64 * BASE_GIB);
    struct worker workers[2] = {{.stream = NULL}, {.stream = NULL}};
    testing_race_start();
    run(allocator, workers, with_disturbance);
    allocator_destroy(allocator);
    testing_race_stop();
}

static void blocks_are_freed_by_the_other_thread(const char *config) {
    struct allocator *const allocator = testing_create(config, 64 * BASE_GIB);
    struct mailbox mailbox = {.mutex = BASE_MUTEX_INITIALIZER};
    cudaStream_t streams[2] = {testing_stream(), testing_stream()};
    struct worker workers[2] = {{.stream = streams[0], .user = streams[1], .mailbox = &mailbox},
                                {.stream = streams[1], .user = streams[0], .mailbox = &mailbox}};
    testing_race_start();
    run(allocator, workers, true);
    base_mutex_deinit(&mailbox.mutex);
    allocator_destroy(allocator);
    testing_race_stop();
}

// Peaks over two streams, taken in turns so that the true value is known: 3 blocks on one and 2
// on the other at once, never more.
static void a_peak_over_two_streams_is_exact(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    cudaStream_t streams[2] = {testing_stream(), testing_stream()};
    void *blocks[5];
    for (int round = 0; round < 3; ++round) {
        for (int index = 0; index < 4; ++index)
            blocks[index] = testing_malloc(allocator, 512, streams[0]);
        for (int index = 0; index < 4; ++index) testing_free(allocator, blocks[index]);
        for (int index = 0; index < 4; ++index)
            blocks[index] = testing_malloc(allocator, 512, streams[1]);
        for (int index = 0; index < 4; ++index) testing_free(allocator, blocks[index]);
    }
    BASE_CHECK_EQ(testing_stats(allocator).allocation[ALLOCATOR_STAT_ALL].peak, 4);
    for (int index = 0; index < 5; ++index)
        blocks[index] = testing_malloc(allocator, 512, streams[index < 3 ? 0 : 1]);
    BASE_CHECK_EQ(testing_stats(allocator).allocation[ALLOCATOR_STAT_ALL].peak, 5);
    BASE_CHECK_EQ(testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_SMALL_POOL].peak,
                  5 * 512);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(void) {
    printf("seed %u\n", SEED);
    a_peak_over_two_streams_is_exact();
    threads_on_their_own_streams("", false);
    threads_on_their_own_streams("", true);
    threads_on_one_stream("release_lock_on_cudamalloc:True", false);
    threads_on_one_stream("release_lock_on_cudamalloc:True", true);
    blocks_are_freed_by_the_other_thread("");
    threads_on_their_own_streams("expandable_segments:True", true);
    threads_on_one_stream("expandable_segments:True", true);
    blocks_are_freed_by_the_other_thread("expandable_segments:True");
    return 0;
}
