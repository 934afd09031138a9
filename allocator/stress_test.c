// Everything at once: threads allocate on shared streams and on streams of a moment, free what
// others took, mark blocks for other streams, and find in each block what they put there; meanwhile
// another thread changes settings, empties the cache, reads statistics, snapshots and history, and
// walks over everything. Meant to be run under the thread sanitizer too.
//
//     stress_test [SEED [STEPS]]
#include "allocator/testing.h"

#include "base/random.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 3
#define STREAMS 3
#define PLACES  48
#define SEED    9
#define STEPS   600
#define ENDS    64 // bytes at either end of a block that are looked at

struct block {
    unsigned char *pointer; // NULL: none
    size_t size;
    unsigned char value;
};

// What all threads share: places for blocks, each with a lock of its own.
static struct {
    struct allocator *allocator;
    cudaStream_t streams[STREAMS];
    struct base_mutex mutexes[PLACES];
    struct block blocks[PLACES];
    _Atomic int workers; // that are not done
    int steps;
} shared;

struct worker {
    struct base_thread thread;
    struct base_random random;
};

static void fill(const struct block *block, cudaStream_t stream) {
    const size_t part = block->size < ENDS ? block->size : ENDS;
    BASE_CHECK_EQ(cudaMemsetAsync(block->pointer, block->value, part, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(block->pointer + block->size - part, block->value, part, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

static void is_as_filled(const struct block *block) {
    const size_t part = block->size < ENDS ? block->size : ENDS;
    unsigned char bytes[2 * ENDS];
    BASE_CHECK_EQ(cudaMemcpy(bytes, block->pointer, part, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK_EQ(
        cudaMemcpy(bytes + part, block->pointer + block->size - part, part, cudaMemcpyDeviceToHost),
        cudaSuccess);
    for (size_t at = 0; at < 2 * part; ++at)
        BASE_CHECK_EQ(bytes[at], block->value);
}

static void take(struct worker *worker, struct block *block, cudaStream_t stream) {
    struct base_random *const random = &worker->random;
    block->size = base_random_log_between(random, 1, 12 << 20);
    block->value = (unsigned char)base_random_below(random, 256);
    block->pointer = testing_malloc(shared.allocator, block->size, stream);
    fill(block, stream);
}

static void give(struct block *block) {
    is_as_filled(block);
    testing_free(shared.allocator, block->pointer);
    block->pointer = NULL;
}

static void mark(struct worker *worker, const struct block *block) {
    void *const inside = block->pointer + base_random_below(&worker->random, block->size);
    const cudaStream_t user = shared.streams[base_random_below(&worker->random, STREAMS)];
    BASE_CHECK_EQ(allocator_record_stream(shared.allocator, inside, user), BASE_OK);
}

// Blocks of a stream that goes when they were freed.
static void use_a_stream_for_a_moment(struct worker *worker) {
    const cudaStream_t stream = testing_stream();
    struct block blocks[2];
    for (int index = 0; index < 2; ++index)
        take(worker, &blocks[index], stream);
    mark(worker, &blocks[0]);
    for (int index = 0; index < 2; ++index)
        give(&blocks[index]);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

static void refuse_nonsense(struct worker *worker) {
    void *base;
    size_t size;
    BASE_CHECK_EQ(allocator_free(shared.allocator, worker), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_base_allocation(shared.allocator, &base, &base, &size),
                  BASE_INVALID_POINTER);
}

static void work(void *argument) {
    struct worker *const worker = argument;
    for (int step = 0; step < shared.steps; ++step) {
        const size_t place = base_random_below(&worker->random, PLACES);
        base_mutex_lock(&shared.mutexes[place]);
        struct block *const block = &shared.blocks[place];
        if (block->pointer == NULL)
            take(worker, block, shared.streams[base_random_below(&worker->random, STREAMS)]);
        else if (base_random_chance(&worker->random, 0.3))
            mark(worker, block);
        else
            give(block);
        base_mutex_unlock(&shared.mutexes[place]);
        if (base_random_chance(&worker->random, 0.05)) use_a_stream_for_a_moment(worker);
        if (base_random_chance(&worker->random, 0.05)) refuse_nonsense(worker);
    }
    --shared.workers;
}

//------------------------------------------------------------------------------------------------
// What goes on meanwhile.

static void change_settings(struct base_random *random) {
    static const char *const configs[] = {
        "",
        "max_split_size_mb:20,garbage_collection_threshold:0.6",
        "roundup_power2_divisions:4,x_poll:own",
        "expandable_segments:True,x_skip_stuck:True",
        "expandable_segments:False,x_poll:all,x_skip_stuck:False",
        "release_lock_on_cudamalloc:True",
        "release_lock_on_cudamalloc:False",
    };
    const char *const config =
        configs[base_random_below(random, sizeof configs / sizeof configs[0])];
    const enum base_status status = cca_set_config(shared.allocator, config);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static void read_everything(void) {
    struct allocator_snapshot snapshot;
    struct cca_pending_frees pending;
    size_t size;
    BASE_CHECK_EQ(allocator_snapshot(shared.allocator, &snapshot), BASE_OK);
    size_t bytes = 0;
    for (size_t index = 0; index < snapshot.block_count; ++index)
        bytes += snapshot.blocks[index].size;
    for (size_t index = 0; index < snapshot.segment_count; ++index)
        bytes -= snapshot.segments[index].total_size;
    BASE_CHECK_EQ(bytes, 0); // of one moment
    allocator_snapshot_deinit(&snapshot);
    const struct allocator_stats stats = testing_stats(shared.allocator);
    BASE_CHECK_LE(stats.active_bytes[ALLOCATOR_STAT_ALL].current,
                  stats.reserved_bytes[ALLOCATOR_STAT_ALL].current);
    BASE_CHECK_LE(stats.active_bytes[ALLOCATOR_STAT_ALL].current,
                  stats.active_bytes[ALLOCATOR_STAT_ALL].peak);
    BASE_CHECK_EQ(allocator_largest_block(shared.allocator, 0, &size), BASE_OK);
    BASE_CHECK_EQ(cca_pending_frees(shared.allocator, 0, &pending), BASE_OK);
}

static void switch_history(struct base_random *random) {
    const struct cca_history_options options = {
        .enabled = base_random_chance(random, 0.5) ? CCA_HISTORY_ALL : CCA_HISTORY_OFF,
        .context = CCA_CONTEXT_ALL,
        .max_entries = 500};
    BASE_CHECK_EQ(cca_record_history(shared.allocator, &options), BASE_OK);
}

static void disturb(struct base_random *random) {
    while (shared.workers > 0) {
        switch (base_random_below(random, 7)) {
        case 0: change_settings(random); break;
        case 1: BASE_CHECK_EQ(allocator_empty_cache(shared.allocator), BASE_OK); break;
        case 2: read_everything(); break;
        case 3: cca_check(shared.allocator); break;
        case 4: switch_history(random); break;
        case 5: BASE_CHECK_EQ(allocator_reset_peak_stats(shared.allocator, 0), BASE_OK); break;
        case 6:
            BASE_CHECK_EQ(cca_set_memory_fraction(shared.allocator, 0,
                                                  base_random_chance(random, 0.5) ? 1.0 : 0.9),
                          BASE_OK);
            break;
        }
        base_thread_yield();
    }
}

static void run(uint64_t seed) {
    static struct worker workers[THREADS];
    struct base_random random = base_random_init(seed, "disturber");
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 4 * BASE_GIB,
                                                      .addresses = SIM_ADDRESSES_REUSED}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){0}, &shared.allocator), BASE_OK);
    for (int index = 0; index < STREAMS; ++index)
        shared.streams[index] = testing_stream();
    for (int place = 0; place < PLACES; ++place)
        base_mutex_init(&shared.mutexes[place]);
    shared.workers = THREADS;
    for (int index = 0; index < THREADS; ++index) {
        workers[index].random = base_random_init(seed + 1 + (uint64_t)index, "worker");
        base_thread_start(&workers[index].thread, work, &workers[index]);
    }
    disturb(&random);
    for (int index = 0; index < THREADS; ++index)
        base_thread_join(&workers[index].thread);
    for (int place = 0; place < PLACES; ++place) {
        if (shared.blocks[place].pointer != NULL) give(&shared.blocks[place]);
        base_mutex_deinit(&shared.mutexes[place]);
    }
    BASE_CHECK_EQ(allocator_empty_cache(shared.allocator), BASE_OK);
    cca_check(shared.allocator);
    BASE_CHECK_EQ(testing_stats(shared.allocator).active[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    allocator_destroy(shared.allocator);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : SEED;
    shared.steps = argc > 2 ? atoi(argv[2]) : STEPS;
    printf("seed %llu\n", (unsigned long long)seed);
    run(seed);
    return 0;
}
