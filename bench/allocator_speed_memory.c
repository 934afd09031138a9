// Host memory that the allocator needs for a live block, and what is left of it after empty_cache.
//
// Measured as the growth of the process's resident memory, which counts what is touched and nothing
// else. The simulated device keeps books as well: the same segments are taken without an allocator,
// and that growth is taken off. One pass before the measured one lets both keep what they keep.
//
// Limits: PyTorch 2.15, measured the same way (hot-path reference, "other"); none is known for
// sizes to 1 MiB.
#include "bench/allocator_speed.h"

#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "bench/subject.h"

#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#define DEVICE 0
#define BLOCK_COUNT 1000000
#define BYTES_MIN ((uint64_t)512)
#define PER_BLOCK "bytes_per_block"
#define PER_BLOCK_EMPTIED "bytes_per_block_emptied"
#define LIMIT_EMPTIED_BYTES 1000000 // "given back": all that may stay, a byte for each of 10^6

static struct range {
    const char *name, *text, *source; // of the limit
    uint64_t bytes_max;
    double limit;
    struct speed_case *measured;
} ranges[] = {
    {"memory/512", "metadata a live block of 512 B", "", 512, 80, NULL},
    {"memory/128k", "the same, log-uniform to 128 KiB", "; limit: PyTorch's", 128 * BASE_KIB, 437,
     NULL},
    {"memory/1m", "the same, to 1 MiB", "", BASE_MIB, NAN, NULL},
    {"memory/64m", "the same, to 64 MiB", "; limit: PyTorch's", 64 * BASE_MIB, 564, NULL},
};
#define RANGE_COUNT (sizeof ranges / sizeof ranges[0])

//--------------------------------------------------------------------------------------------------
// Resident memory, bytes; what the C library only keeps is given back first.

static enum base_status resident(int64_t *bytes) {
    uint64_t kib = 0;
    char line[256];
    malloc_trim(0);
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (file == NULL) return base_status_set(BASE_ENVIRONMENT, "no /proc/self/smaps_rollup");
    while (kib == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "Rss: %" SCNu64 " kB", &kib);
    fclose(file);
    *bytes = (int64_t)(kib * BASE_KIB);
    return kib > 0 ? BASE_OK
                   : base_status_set(BASE_ENVIRONMENT, "no Rss in /proc/self/smaps_rollup");
}

// What grew since the start: with all blocks live, and after they and the cache are gone.
struct growth {
    int64_t live_bytes, emptied_bytes;
};

static enum base_status growth_note(int64_t start_bytes, int64_t *growth_bytes) {
    int64_t now_bytes = 0;
    const enum base_status status = resident(&now_bytes);
    *growth_bytes = now_bytes - start_bytes;
    return status;
}

//--------------------------------------------------------------------------------------------------
// The passes.

struct blocks {
    void **pointers;
    uint32_t *bytes;
    uint64_t count;
};

struct segments {
    void **pointers;
    size_t *bytes, count;
};

static enum base_status blocks_take(struct allocator *allocator, struct blocks *blocks) {
    for (uint64_t i = 0; i < blocks->count; i++) {
        const enum base_status status =
            allocator_malloc(allocator, DEVICE, blocks->bytes[i], NULL, &blocks->pointers[i]);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static enum base_status blocks_give(struct allocator *allocator, struct blocks *blocks) {
    int64_t leaked = 0;
    for (uint64_t i = 0; i < blocks->count; i++) {
        const enum base_status status = allocator_free(allocator, blocks->pointers[i]);
        if (status != BASE_OK) return status;
    }
    const enum base_status status = bench_leaked_blocks(allocator, &leaked);
    if (status == BASE_OK && leaked != 0)
        return base_status_set(BASE_CHECK_FAILED, "%" PRId64 " blocks leaked", leaked);
    return status;
}

// The first pass: tells which segments the blocks take.
static enum base_status segments_find(struct allocator *allocator, struct blocks *blocks,
                                      struct segments *segments) {
    struct allocator_snapshot copy;
    enum base_status status = blocks_take(allocator, blocks);
    if (status == BASE_OK) status = allocator_snapshot(allocator, &copy);
    if (status != BASE_OK) return status;
    segments->count = copy.segment_count;
    segments->bytes = calloc(copy.segment_count + 1, sizeof *segments->bytes);
    segments->pointers = calloc(copy.segment_count + 1, sizeof *segments->pointers);
    BASE_CHECK(segments->bytes != NULL && segments->pointers != NULL);
    for (size_t i = 0; i < copy.segment_count; i++) {
        segments->bytes[i] = copy.segments[i].total_size;
        segments->pointers[i] = copy.segments[i].address; // overwritten later, but resident
    }
    allocator_snapshot_deinit(&copy);
    status = blocks_give(allocator, blocks);
    return status == BASE_OK ? allocator_empty_cache(allocator) : status;
}

// The second: how much grows with them.
static enum base_status growth_measure(struct allocator *allocator, struct blocks *blocks,
                                       int64_t start_bytes, struct growth *growth) {
    enum base_status status = blocks_take(allocator, blocks);
    if (status == BASE_OK) status = growth_note(start_bytes, &growth->live_bytes);
    if (status == BASE_OK) status = blocks_give(allocator, blocks);
    if (status == BASE_OK) status = allocator_empty_cache(allocator);
    if (status == BASE_OK) status = growth_note(start_bytes, &growth->emptied_bytes);
    return status;
}

// The last: how much of it is the device's.
static enum base_status driver_measure(struct segments *segments, int64_t start_bytes,
                                       struct growth *growth) {
    bool failed = false;
    for (size_t i = 0; i < segments->count; i++)
        failed |= cudaMalloc(&segments->pointers[i], segments->bytes[i]) != cudaSuccess;
    enum base_status status = growth_note(start_bytes, &growth->live_bytes);
    for (size_t i = 0; i < segments->count; i++)
        failed |= cudaFree(segments->pointers[i]) != cudaSuccess;
    if (status == BASE_OK) status = growth_note(start_bytes, &growth->emptied_bytes);
    return failed ? base_status_set(BASE_CHECK_FAILED, "a device call failed") : status;
}

static enum base_status start(int64_t *start_bytes) {
#ifdef TIDEMARK_SIMULATOR
    sim_reset();
#endif
    return resident(start_bytes);
}

static enum base_status passes(struct blocks *blocks, struct segments *segments,
                               struct growth *beyond) {
    struct allocator *allocator;
    struct growth driver = {0};
    int64_t start_bytes = 0;
    enum base_status status = start(&start_bytes);
    if (status == BASE_OK) status = bench_subject_caching.create(&allocator);
    if (status != BASE_OK) return status;
    status = segments_find(allocator, blocks, segments);
    allocator_destroy(allocator);
    if (status == BASE_OK) status = start(&start_bytes);
    if (status == BASE_OK) status = bench_subject_caching.create(&allocator);
    if (status != BASE_OK) return status;
    status = growth_measure(allocator, blocks, start_bytes, beyond);
    allocator_destroy(allocator);
    if (status == BASE_OK) status = start(&start_bytes);
    if (status == BASE_OK) status = driver_measure(segments, start_bytes, &driver);
    beyond->live_bytes -= driver.live_bytes;
    beyond->emptied_bytes -= driver.emptied_bytes;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Cases and rows.

static void measure(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    const struct range *range = &ranges[measured->index];
    struct base_random sizes = base_random_init(speed_run.seed, range->name);
    struct blocks blocks = {.count = measured->count};
    struct segments segments = {0};
    struct growth growth = {0};
    uint64_t count;
    blocks.pointers = calloc(blocks.count, sizeof *blocks.pointers);
    blocks.bytes = calloc(blocks.count, sizeof *blocks.bytes);
    BASE_CHECK(blocks.pointers != NULL && blocks.bytes != NULL);
    for (uint64_t i = 0; i < blocks.count; i++) {
        blocks.pointers[i] = &blocks; // resident before anything is measured
        blocks.bytes[i] = (uint32_t)base_random_log_between(&sizes, BYTES_MIN, range->bytes_max);
    }
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++)
            if (passes(&blocks, &segments, &growth) != BASE_OK)
                bench_fail(state, "%s", base_status_message());
    bench_time_add(state, 0); // no time is measured
    bench_counter(state, PER_BLOCK, (double)growth.live_bytes / (double)blocks.count);
    bench_counter(state, PER_BLOCK_EMPTIED, (double)growth.emptied_bytes / (double)blocks.count);
    bench_counter(state, "segments", (double)segments.count);
    bench_label(state, measured->label);
    free(blocks.pointers);
    free(blocks.bytes);
    free(segments.pointers);
    free(segments.bytes);
}

void speed_memory_add(void) {
    for (size_t i = 0; i < RANGE_COUNT; i++) {
        struct speed_case *added = speed_case_add(SPEED_GROUP_MEMORY, "%s", ranges[i].name);
        added->count = speed_run.smoke ? 1000 : speed_run.quick ? BLOCK_COUNT / 10 : BLOCK_COUNT;
        added->measure = measure;
        added->index = i;
        added->bytes_needed = added->count * ranges[i].bytes_max / 3;
        added->clock = BENCH_CLOCK_REAL;
        added->label = "host memory, no time";
        ranges[i].measured = added;
    }
}

static double counter(const struct speed_case *of, const char *name) {
    double value = NAN;
    const size_t index = bench_results_find(speed_results, of->name);
    if (index != SIZE_MAX) (void)bench_results_counter_get(speed_results, index, name, &value);
    return value;
}

void speed_memory_rows_add(void) {
    speed_section_add("Host memory, beyond the device's own books");
    for (size_t i = 0; i < RANGE_COUNT; i++) {
        const struct range *range = &ranges[i];
        const struct speed_row row = {.text = range->text,
                                      .measured = counter(range->measured, PER_BLOCK),
                                      .limit = range->limit,
                                      .unit = SPEED_UNIT_BYTES};
        speed_row_add(&row, range->measured, "%" PRIu64 " blocks in %.0f segments%s",
                      range->measured->count, counter(range->measured, "segments"), range->source);
    }
    for (size_t i = 0; i < RANGE_COUNT; i++) {
        const struct range *range = &ranges[i];
        char text[64];
        snprintf(text, sizeof text, "after empty_cache, %s", range->name);
        const struct speed_row row = {.text = text,
                                      .measured = counter(range->measured, PER_BLOCK_EMPTIED),
                                      .limit = LIMIT_EMPTIED_BYTES / (double)range->measured->count,
                                      .unit = SPEED_UNIT_BYTES};
        speed_row_add(&row, NULL, "%s", "a block that was live");
    }
}
