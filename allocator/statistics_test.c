// Counters and peaks against naive sums: over streams, both pools, devices and threads, with resets
// in between.
#include "allocator/testing.h"

#include "base/random.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

#define STREAMS 5
#define DEVICES 2
#define LIVE    60
#define STEPS   1600

// What the blocks of a device come to, by kind.
enum { ALLOCATIONS, ALLOCATED, ACTIVE, ACTIVE_BYTES, REQUESTED, RESERVED, SEGMENTS, SUMS };
#define SUMS_EXPANDABLE SEGMENTS // a mapping counts as a segment, which a snapshot does not show

struct sums {
    int64_t of[SUMS][ALLOCATOR_STAT_KIND_COUNT];
};

static void add(struct sums *sums, int sum, int kind, size_t amount) {
    sums->of[sum][kind] += (int64_t)amount;
    sums->of[sum][ALLOCATOR_STAT_ALL] += (int64_t)amount;
}

static struct sums sum_up(struct allocator *allocator, int device) {
    struct sums sums = {0};
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    for (size_t index = 0; index < snapshot.segment_count; ++index) {
        const struct allocator_snapshot_segment *const segment = &snapshot.segments[index];
        const int kind = segment->is_large ? ALLOCATOR_STAT_LARGE_POOL : ALLOCATOR_STAT_SMALL_POOL;
        if (segment->device != device) continue;
        add(&sums, SEGMENTS, kind, 1);
        add(&sums, RESERVED, kind, segment->total_size);
        for (size_t at = 0; at < segment->block_count; ++at) {
            const struct allocator_snapshot_block *const block =
                &snapshot.blocks[segment->block_first + at];
            if (block->state == ALLOCATOR_BLOCK_INACTIVE) continue;
            add(&sums, ACTIVE, kind, 1);
            add(&sums, ACTIVE_BYTES, kind, block->size);
            add(&sums, REQUESTED, kind, block->requested_size);
            if (block->state != ALLOCATOR_BLOCK_ALLOCATED) continue;
            add(&sums, ALLOCATIONS, kind, 1);
            add(&sums, ALLOCATED, kind, block->size);
        }
    }
    allocator_snapshot_deinit(&snapshot);
    return sums;
}

static const struct allocator_stat *stat_of(const struct allocator_stats *stats, int sum,
                                            int kind) {
    switch (sum) {
    case ALLOCATIONS: return &stats->allocation[kind];
    case ALLOCATED: return &stats->allocated_bytes[kind];
    case ACTIVE: return &stats->active[kind];
    case ACTIVE_BYTES: return &stats->active_bytes[kind];
    case REQUESTED: return &stats->requested_bytes[kind];
    case RESERVED: return &stats->reserved_bytes[kind];
    default: return &stats->segment[kind];
    }
}

// Follows one device: an operation raises a sum or lowers it, so that a peak is one of the values
// after operations, and what was added and taken away is the changes.
struct naive {
    int sums;                    // that are followed
    struct sums now, peak, base; // base: the values at the last reset of accumulated ones
};

static void recount(struct naive *naive, struct allocator *allocator, int device) {
    naive->now = sum_up(allocator, device);
    for (int sum = 0; sum < naive->sums; ++sum)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            if (naive->now.of[sum][kind] > naive->peak.of[sum][kind])
                naive->peak.of[sum][kind] = naive->now.of[sum][kind];
}

static void compare(const struct naive *naive, struct allocator *allocator, int device) {
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(allocator, device, &stats), BASE_OK);
    for (int sum = 0; sum < naive->sums; ++sum)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            const int64_t now = naive->now.of[sum][kind];
            const struct allocator_stat *const stat = stat_of(&stats, sum, kind);
            BASE_CHECK_EQ(stat->current, now);
            BASE_CHECK_EQ(stat->peak, naive->peak.of[sum][kind]);
            BASE_CHECK_EQ(stat->allocated - stat->freed, now - naive->base.of[sum][kind]);
        }
}

static void resets(struct naive *naive, struct base_random *random, struct allocator *allocator,
                   int device) {
    if (base_random_chance(random, 0.03)) {
        BASE_CHECK_EQ(allocator_reset_peak_stats(allocator, device), BASE_OK);
        naive->peak = naive->now;
    }
    if (base_random_chance(random, 0.03)) {
        BASE_CHECK_EQ(allocator_reset_accumulated_stats(allocator, device), BASE_OK);
        naive->base = naive->now;
        struct allocator_stats stats;
        BASE_CHECK_EQ(allocator_stats(allocator, device, &stats), BASE_OK);
        for (int sum = 0; sum < SUMS; ++sum)
            BASE_CHECK_EQ(stat_of(&stats, sum, ALLOCATOR_STAT_ALL)->allocated, 0);
    }
}

struct live {
    void *pointer;
    int device;
};

static void step(struct allocator *allocator, struct base_random *random,
                 cudaStream_t streams[DEVICES][STREAMS], struct live *live) {
    if (base_random_chance(random, 0.02))
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    else if (live->pointer != NULL) {
        testing_free(allocator, live->pointer);
        live->pointer = NULL;
    } else {
        live->device = (int)base_random_below(random, DEVICES);
        const size_t size = base_random_log_between(random, 1, 48 << 20);
        const uint64_t stream = base_random_below(random, STREAMS);
        BASE_CHECK_EQ(allocator_malloc(allocator, live->device, size, streams[live->device][stream],
                                       &live->pointer),
                      BASE_OK);
        if (base_random_chance(random, 0.3))
            BASE_CHECK_EQ(allocator_record_stream(allocator, live->pointer,
                                                  streams[live->device][(stream + 1) % STREAMS]),
                          BASE_OK);
    }
}

static void counters_and_peaks_are_naive_sums(const char *config, uint64_t seed) {
    struct allocator *allocator;
    struct base_random random = base_random_init(seed, "program");
    cudaStream_t streams[DEVICES][STREAMS] = {{NULL}};
    struct naive naive[DEVICES] = {0};
    struct live live[LIVE] = {0};
    base_check_context("seed %llu, %s", (unsigned long long)seed, config);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = DEVICES,
                                                      .capacity_bytes = 64 * BASE_GIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = config}, &allocator),
                  BASE_OK);
    for (int device = 0; device < DEVICES; ++device) {
        naive[device].sums = strstr(config, "expandable") != NULL ? SUMS_EXPANDABLE : SUMS;
        BASE_CHECK_EQ(cudaSetDevice(device), cudaSuccess);
        for (int index = 1; index < STREAMS; ++index)
            streams[device][index] = testing_stream();
    }
    for (int number = 0; number < STEPS; ++number) {
        step(allocator, &random, streams, &live[base_random_below(&random, LIVE)]);
        for (int device = 0; device < DEVICES; ++device) {
            recount(&naive[device], allocator, device);
            // Not always: whoever reads statistics has the streams meet, and peaks found.
            if (base_random_chance(&random, 0.1)) compare(&naive[device], allocator, device);
            resets(&naive[device], &random, allocator, device);
        }
    }
    cca_check(allocator);
    allocator_destroy(allocator);
    base_check_context(NULL);
}

//------------------------------------------------------------------------------------------------
// Threads, all of which take in one phase and give some back in the next: a peak is the sum at the
// end of a phase of taking. How the streams share out room for that (stats.h) is up to chance.

#define WORKERS 4
#define ROUNDS  40
#define BLOCKS  96

struct team {
    struct allocator *allocator;
    uint64_t seed;
    pthread_barrier_t barrier;
};
struct member {
    struct team *team;
    int index;
    cudaStream_t stream;
};

static void meet(struct team *team) {
    const int result = pthread_barrier_wait(&team->barrier);
    BASE_CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
}

// Each works near a share of its own of what it may hold, so that what one gives up others take.
static void take_and_give(void *argument) {
    struct member *const member = argument;
    struct team *const team = member->team;
    struct base_random random =
        base_random_init(team->seed * WORKERS + (uint64_t)member->index, "member");
    void *blocks[BLOCKS] = {NULL};
    for (int round = 0; round < ROUNDS; ++round) {
        const double share = (double)base_random_below(&random, 11) / 10;
        for (int index = 0; index < BLOCKS; ++index)
            if (blocks[index] == NULL && base_random_chance(&random, share))
                blocks[index] = testing_malloc(
                    team->allocator, base_random_log_between(&random, 1, 4 << 20), member->stream);
        meet(team);
        meet(team); // the first one recounts meanwhile
        for (int index = 0; index < BLOCKS; ++index)
            if (round == ROUNDS - 1 || base_random_chance(&random, 0.6)) {
                testing_free(team->allocator, blocks[index]);
                blocks[index] = NULL;
            }
        meet(team);
        meet(team); // and again, compares and resets
    }
}

static void peaks_over_threads_are_exact(uint64_t seed) {
    struct team team = {.allocator = testing_create("", 16 * BASE_GIB), .seed = seed};
    struct member members[WORKERS];
    struct base_thread threads[WORKERS];
    struct naive naive = {.sums = SUMS};
    struct base_random random = base_random_init(seed, "resets");
    base_check_context("seed %llu, threads", (unsigned long long)seed);
    BASE_CHECK_EQ(pthread_barrier_init(&team.barrier, NULL, WORKERS + 1), 0);
    for (int index = 0; index < WORKERS; ++index) {
        members[index] = (struct member){&team, index, index == 0 ? NULL : testing_stream()};
        if (index == 3) members[index].stream = members[2].stream;
        base_thread_start(&threads[index], take_and_give, &members[index]);
    }
    for (int round = 0; round < ROUNDS; ++round) {
        meet(&team);
        recount(&naive, team.allocator, 0);
        cca_check(team.allocator);
        meet(&team);
        meet(&team);
        recount(&naive, team.allocator, 0);
        compare(&naive, team.allocator, 0);
        resets(&naive, &random, team.allocator, 0);
        meet(&team);
    }
    for (int index = 0; index < WORKERS; ++index)
        base_thread_join(&threads[index]);
    cca_check(team.allocator);
    BASE_CHECK_EQ(pthread_barrier_destroy(&team.barrier), 0);
    allocator_destroy(team.allocator);
    base_check_context(NULL);
}

int main(void) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        counters_and_peaks_are_naive_sums("", seed);
        counters_and_peaks_are_naive_sums("max_split_size_mb:24", seed);
        counters_and_peaks_are_naive_sums("expandable_segments:True", seed);
    }
    for (uint64_t seed = 1; seed <= 8; ++seed)
        peaks_over_threads_are_exact(seed);
    return 0;
}
