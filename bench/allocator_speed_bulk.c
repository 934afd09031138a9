// Operations on many blocks at once: a snapshot, the release of everything cached, first growth;
// and a pair while many frees wait.
//
// Where a limit is "beyond the driver", the device calls that the operation makes are made without
// an allocator in the same round, and their time is taken off.
#include "bench/allocator_speed.h"

#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "bench/device.h"
#include "bench/light_events.h"
#include "bench/subject.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#define DEVICE 0
#define SNAPSHOT_BLOCK_COUNT 100000
#define SNAPSHOT_BYTES_MAX (128 * BASE_KIB)
#define RELEASE_SEGMENT_COUNT 100000
#define SEGMENT_BYTES (20 * BASE_MIB)
#define SEGMENT_BYTES_SMALL (2 * BASE_MIB) // of the small pool
#define GROWTH_BLOCK_COUNT 1000000
#define GROWTH_BLOCK_BYTES 512
#define PENDING_COUNT 10000
#define PENDING_STREAM_COUNT 32
#define PENDING_BYTES (64 * BASE_KIB)

#define LIMIT_SNAPSHOT_NS 12
#define LIMIT_RELEASE_NS 60
#define LIMIT_GROWTH_NS 120
#define LIMIT_PENDING_LISTS 2
#define LIMIT_PENDING_STREAM_NS 5

static struct speed_case *snapshot, *release, *release_driver, *growth, *growth_driver, *pending,
    *pending_list;

static double cpu_s(void) {
    struct timespec now;
    BASE_CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

//--------------------------------------------------------------------------------------------------
// A bench's own device and allocator: blocks by index.

struct bulk {
    struct bench_state *state;
    struct allocator *allocator;
    void **blocks;
    uint64_t count;
    bool failed;
};

static void bulk_fail(struct bulk *bulk, const char *what) {
    if (!bulk->failed) bench_fail(bulk->state, "%s: %s", what, base_status_message());
    bulk->failed = true;
}

static void bulk_begin(struct bulk *bulk, struct bench_state *state, uint64_t count) {
    *bulk = (struct bulk){.state = state, .count = count};
    bulk->blocks = calloc(count, sizeof *bulk->blocks);
    BASE_CHECK(bulk->blocks != NULL);
    for (uint64_t i = 0; i < count; i++) bulk->blocks[i] = &bulk->blocks[i]; // its pages are there
#ifdef TIDEMARK_SIMULATOR
    sim_reset();
#endif
    if (bench_subject_caching.create(&bulk->allocator) != BASE_OK) bulk_fail(bulk, "no allocator");
}

static void bulk_malloc(struct bulk *bulk, uint64_t index, uint64_t bytes) {
    if (allocator_malloc(bulk->allocator, DEVICE, bytes, NULL, &bulk->blocks[index]) != BASE_OK)
        bulk_fail(bulk, "a request failed");
}

static void bulk_free_all(struct bulk *bulk) {
    for (uint64_t i = 0; i < bulk->count && !bulk->failed; i++)
        if (allocator_free(bulk->allocator, bulk->blocks[i]) != BASE_OK)
            bulk_fail(bulk, "a free failed");
}

// Statistics and device are empty when all is given back.
static void bulk_end(struct bulk *bulk) {
    int64_t leaked = 0;
    if (!bulk->failed && bench_leaked_blocks(bulk->allocator, &leaked) != BASE_OK)
        bulk_fail(bulk, "statistics");
    if (!bulk->failed && leaked != 0) {
        bulk->failed = true;
        bench_fail(bulk->state, "%" PRId64 " blocks leaked", leaked);
    }
    allocator_destroy(bulk->allocator);
#ifdef TIDEMARK_SIMULATOR
    if (!bulk->failed && sim_used_bytes(DEVICE) != 0)
        bench_fail(bulk->state, "%" PRIu64 " bytes of the device are held", sim_used_bytes(DEVICE));
#endif
    free(bulk->blocks);
}

//--------------------------------------------------------------------------------------------------
// Snapshot.

static void snapshot_check(struct bulk *bulk, const struct allocator_snapshot *copy) {
    uint64_t live = 0;
    for (size_t i = 0; i < copy->block_count; i++)
        live += copy->blocks[i].state == ALLOCATOR_BLOCK_ALLOCATED;
    if (live == bulk->count) return;
    bulk->failed = true;
    bench_fail(bulk->state, "%" PRIu64 " of %" PRIu64 " blocks in the snapshot", live, bulk->count);
}

static void measure_snapshot(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct base_random sizes = base_random_init(speed_run.seed, "snapshot sizes");
    struct bulk bulk;
    uint64_t count;
    bulk_begin(&bulk, state, measured->count);
    for (uint64_t i = 0; i < bulk.count && !bulk.failed; i++)
        bulk_malloc(&bulk, i, base_random_log_between(&sizes, 512, SNAPSHOT_BYTES_MAX));
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count && !bulk.failed; i++) {
            struct allocator_snapshot copy;
            const double start_s = cpu_s();
            const enum base_status status = allocator_snapshot(bulk.allocator, &copy);
            bench_time_add(state, cpu_s() - start_s);
            if (status == BASE_OK) {
                snapshot_check(&bulk, &copy);
                allocator_snapshot_deinit(&copy);
            } else {
                bulk_fail(&bulk, "the snapshot failed");
            }
        }
    bulk_free_all(&bulk);
    bulk_end(&bulk);
    bench_label(state, measured->label);
}

//--------------------------------------------------------------------------------------------------
// Release of all that is cached, because the device is full.

#ifdef TIDEMARK_SIMULATOR

// A device that COUNT segments fill; the former capacity comes back with device_restore.
static void device_limit(uint64_t count) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = count * SEGMENT_BYTES,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
}
static void device_restore(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = SPEED_CAPACITY_BYTES,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
}

static void measure_release(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct bulk bulk;
    uint64_t count;
    device_limit(measured->count);
    bulk_begin(&bulk, state, measured->count);
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            void *larger = NULL;
            struct allocator_stats stats = {0};
            for (uint64_t j = 0; j < bulk.count && !bulk.failed; j++)
                bulk_malloc(&bulk, j, SEGMENT_BYTES);
            bulk_free_all(&bulk);
            const double start_s = cpu_s();
            const enum base_status status =
                allocator_malloc(bulk.allocator, DEVICE, SEGMENT_BYTES + 1, NULL, &larger);
            bench_time_add(state, cpu_s() - start_s);
            if (status != BASE_OK || allocator_free(bulk.allocator, larger) != BASE_OK ||
                allocator_stats(bulk.allocator, DEVICE, &stats) != BASE_OK)
                bulk_fail(&bulk, "the larger request failed");
            if (!bulk.failed && (uint64_t)stats.num_device_free != measured->count) {
                bulk.failed = true;
                bench_fail(state, "%" PRId64 " of %" PRIu64 " segments were released",
                           stats.num_device_free, measured->count);
            }
        }
    bulk_end(&bulk);
    device_restore();
    bench_label(state, measured->label);
}

// The same calls of the device: one that fails, the frees by address, one that succeeds.
static bool release_calls(void **segments, uint64_t count, struct bench_state *state) {
    void *larger;
    bool failed = false;
    for (uint64_t i = 0; i < count; i++)
        failed |= cudaMalloc(&segments[i], SEGMENT_BYTES) != cudaSuccess;
    const double start_s = cpu_s();
    failed |= cudaMalloc(&larger, SEGMENT_BYTES + SIM_PAGE_BYTES) != cudaErrorMemoryAllocation;
    (void)cudaGetLastError();
    for (uint64_t i = 0; i < count; i++) failed |= cudaFree(segments[i]) != cudaSuccess;
    failed |= cudaMalloc(&larger, SEGMENT_BYTES + SIM_PAGE_BYTES) != cudaSuccess;
    bench_time_add(state, cpu_s() - start_s);
    return !failed && cudaFree(larger) == cudaSuccess;
}

static void measure_release_driver(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    void **segments = calloc(measured->count, sizeof *segments);
    uint64_t count;
    BASE_CHECK(segments != NULL);
    device_limit(measured->count);
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++)
            if (!release_calls(segments, measured->count, state))
                bench_fail(state, "a device call failed");
    free(segments);
    device_restore();
    bench_label(state, measured->label);
}

#endif

//--------------------------------------------------------------------------------------------------
// First growth: each allocation is a new peak.

static void measure_growth(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            struct bulk bulk;
            struct allocator_stats stats = {0};
            bulk_begin(&bulk, state, measured->count);
            const double start_s = cpu_s();
            for (uint64_t j = 0; j < bulk.count && !bulk.failed; j++)
                bulk_malloc(&bulk, j, GROWTH_BLOCK_BYTES);
            bench_time_add(state, cpu_s() - start_s);
            if (!bulk.failed && allocator_stats(bulk.allocator, DEVICE, &stats) != BASE_OK)
                bulk_fail(&bulk, "statistics");
            const int64_t peak = stats.allocation[ALLOCATOR_STAT_ALL].peak;
            if (!bulk.failed && (uint64_t)peak != bulk.count) {
                bulk.failed = true;
                bench_fail(state, "%" PRIu64 " blocks, but a peak of %" PRId64, bulk.count, peak);
            }
            bulk_free_all(&bulk);
            bulk_end(&bulk);
        }
    bench_label(state, measured->label);
}

static void measure_growth_driver(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    const uint64_t bytes = measured->count * GROWTH_BLOCK_BYTES;
    const uint64_t segment_count = base_round_up(bytes, SEGMENT_BYTES_SMALL) / SEGMENT_BYTES_SMALL;
    void **segments = calloc(segment_count, sizeof *segments);
    uint64_t count;
    BASE_CHECK(segments != NULL);
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            bool failed = false;
            const double start_s = cpu_s();
            for (uint64_t j = 0; j < segment_count; j++)
                failed |= cudaMalloc(&segments[j], SEGMENT_BYTES_SMALL) != cudaSuccess;
            bench_time_add(state, cpu_s() - start_s);
            for (uint64_t j = 0; j < segment_count; j++)
                failed |= cudaFree(segments[j]) != cudaSuccess;
            if (failed) bench_fail(state, "a device call failed");
        }
    free(segments);
    bench_label(state, measured->label);
}

//--------------------------------------------------------------------------------------------------
// A pair while frees wait for other streams.

static cudaStream_t pending_streams[PENDING_STREAM_COUNT];

static enum base_status pending_free(struct allocator *allocator, void **blocks) {
    for (int i = 0; i < PENDING_COUNT; i++) {
        enum base_status status =
            allocator_malloc(allocator, DEVICE, PENDING_BYTES, NULL, &blocks[i]);
        if (status == BASE_OK)
            status = allocator_record_stream(allocator, blocks[i],
                                             pending_streams[i % PENDING_STREAM_COUNT]);
        if (status != BASE_OK) return status;
    }
    for (int i = 0; i < PENDING_COUNT; i++) {
        const enum base_status status = allocator_free(allocator, blocks[i]);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static enum base_status pending_begin(struct bench_session *session) {
    void **blocks = calloc(PENDING_COUNT, sizeof *blocks);
    BASE_CHECK(blocks != NULL);
    for (int i = 0; i < PENDING_STREAM_COUNT; i++)
        BASE_CHECK_EQ(cudaStreamCreate(&pending_streams[i]), cudaSuccess);
    bench_light_events_begin(false);
    const enum base_status status = pending_free(session->allocator, blocks);
    free(blocks);
    return status;
}

// They still wait: each of the measured pairs asked about them.
static void pending_end(struct bench_session *session) {
    struct allocator_stats stats = {0};
    const enum base_status status = allocator_stats(session->allocator, DEVICE, &stats);
    const int64_t waiting =
        stats.active[ALLOCATOR_STAT_ALL].current - stats.allocation[ALLOCATOR_STAT_ALL].current;
    if (status == BASE_OK && waiting != PENDING_COUNT)
        bench_session_fail(session, "%" PRId64 " frees are pending, not %d", waiting,
                           PENDING_COUNT);
    bench_light_events_end();
    for (int i = 0; i < PENDING_STREAM_COUNT; i++)
        if (cudaStreamDestroy(pending_streams[i]) != cudaSuccess)
            bench_session_fail(session, "a stream could not be destroyed");
}

//--------------------------------------------------------------------------------------------------
// Cases and rows.

static struct speed_case *bulk_add(const char *name, uint64_t count,
                                   void (*measure)(struct bench_state *, void *),
                                   const char *label) {
    struct speed_case *added = speed_case_add(SPEED_GROUP_BULK, "%s", name);
    added->count = speed_run.smoke ? 1000 : speed_run.quick ? count / 10 : count;
    added->measure = measure;
    added->pair_count = (double)added->count;
    added->clock = BENCH_CLOCK_REAL; // which is the CPU time that the case itself has taken
    added->label = label;
    return added;
}

void speed_bulk_add(void) {
    const struct bench_pattern *pair = speed_pattern_get(SPEED_PATTERN_PAIR_4M);
    pending_list = speed_case_add_session(SPEED_GROUP_PATTERN, "pending/32_streams",
                                          &bench_subject_mutex_list, pair, 1, BENCH_STREAMS_ONE);
    pending = speed_case_add_session(SPEED_GROUP_PATTERN, "pending/32_streams",
                                     &bench_subject_caching, pair, 1, BENCH_STREAMS_ONE);
    pending->setup.prepare = pending_begin;
    pending->setup.finish = pending_end;
    snapshot = bulk_add("snapshot", SNAPSHOT_BLOCK_COUNT, measure_snapshot, "a block");
#ifdef TIDEMARK_SIMULATOR
    release = bulk_add("release/caching", RELEASE_SEGMENT_COUNT, measure_release, "a segment");
    release_driver = bulk_add("release/driver", RELEASE_SEGMENT_COUNT, measure_release_driver,
                              "the device calls alone");
#endif
    growth = bulk_add("first_growth/caching", GROWTH_BLOCK_COUNT, measure_growth, "a malloc");
    growth_driver = bulk_add("first_growth/driver", GROWTH_BLOCK_COUNT, measure_growth_driver,
                             "the device calls alone");
}

static void beyond_driver_add(const struct speed_case *of, const struct speed_case *driver,
                              double limit, const char *text) {
    if (of == NULL) return;
    const struct speed_row row = {.text = text,
                                  .measured = speed_added(of, driver, NULL),
                                  .limit = limit,
                                  .unit = SPEED_UNIT_NS};
    speed_row_add(&row, of, "%6.1f ns with the driver's %.1f, fastest; %" PRIu64 " of them",
                  speed_fastest_ns(of), speed_fastest_ns(driver), of->count);
}

// The limit moves with mutex_list: what is compared is the median of the rounds' quotients.
static void pending_row_add(void) {
    double values[BENCH_ROUND_COUNT_MAX], limits[BENCH_ROUND_COUNT_MAX];
    const int rounds = speed_round_count(pending);
    if (rounds == 0 || speed_round_count(pending_list) != rounds) return;
    const double streams_ns = PENDING_STREAM_COUNT * LIMIT_PENDING_STREAM_NS;
    for (int i = 0; i < rounds; i++) {
        limits[i] = LIMIT_PENDING_LISTS * speed_ns(pending_list, i) + streams_ns;
        values[i] = speed_ns(pending, i) / limits[i];
    }
    const double limit = bench_median(limits, (size_t)rounds);
    const struct speed_row row = {.text = "a pair while 10^4 frees wait on 32 streams",
                                  .measured = bench_median(values, (size_t)rounds) * limit,
                                  .limit = limit,
                                  .unit = SPEED_UNIT_NS};
    speed_row_add(&row, pending, "%6.1f ns, fastest; limit 2x mutex_list + 5 ns a stream",
                  speed_fastest_ns(pending));
}

void speed_bulk_rows_add(void) {
    speed_section_add("Many blocks at once");
    pending_row_add();
    const struct speed_row row = {.text = "snapshot, a block",
                                  .measured = speed_added(snapshot, NULL, NULL),
                                  .limit = LIMIT_SNAPSHOT_NS,
                                  .unit = SPEED_UNIT_NS};
    speed_row_add(&row, snapshot, "%6.1f ns, fastest; %" PRIu64 " live blocks",
                  speed_fastest_ns(snapshot), snapshot->count);
    beyond_driver_add(release, release_driver, LIMIT_RELEASE_NS,
                      "releasing all, device full: a segment, beyond");
    beyond_driver_add(growth, growth_driver, LIMIT_GROWTH_NS,
                      "first growth: a malloc, beyond the driver");
}
