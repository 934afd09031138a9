// What expandable segments do with memory, step by step: docs/expandable-segments.md tells the
// story. Each step prints what the allocator holds and what the driver was asked for.
#include "allocator/cca.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <stdio.h>

#define MIB (1024 * 1024)

static struct allocator *start(const char *config, uint64_t capacity_mib) {
    struct allocator *allocator;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = capacity_mib * MIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = config}, &allocator),
                  BASE_OK);
    return allocator;
}

static void *take(struct allocator *allocator, size_t mib) {
    void *pointer = NULL;
    const enum base_status status = allocator_malloc(allocator, 0, mib * MIB, NULL, &pointer);
    BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    return pointer;
}

static void give(struct allocator *allocator, void *pointer) {
    BASE_CHECK_EQ(allocator_free(allocator, pointer), BASE_OK);
}

// One line: what was done, what is reserved and allocated, and the segments as the snapshot has
// them: a letter for 5 MiB, # allocated, . free, and a gap where nothing is mapped.
static void show(struct allocator *allocator, const char *what) {
    struct allocator_stats stats;
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_stats(allocator, 0, &stats), BASE_OK);
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    printf("%-22s %4d %4d  ", what,
           (int)(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current / MIB),
           (int)(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current / MIB));
    for (size_t index = 0; index < snapshot.segment_count; ++index) {
        const struct allocator_snapshot_segment *const segment = &snapshot.segments[index];
        printf("%s|", index == 0 ? "" : "  ");
        for (size_t block = 0; block < segment->block_count; ++block) {
            const struct allocator_snapshot_block *const piece =
                &snapshot.blocks[segment->block_first + block];
            for (size_t done = 0; done < piece->size; done += (size_t)5 * MIB)
                putchar(piece->state == ALLOCATOR_BLOCK_INACTIVE ? '.' : '#');
        }
        putchar('|');
    }
    putchar('\n');
    allocator_snapshot_deinit(&snapshot);
}

// Four buffers of 40 MiB, two of them freed; then one of 80.
static void holes(const char *config) {
    struct allocator *const allocator = start(config, 4096);
    void *buffers[4];
    printf("%s\n", config[0] == '\0' ? "(default)" : config);
    for (int index = 0; index < 4; ++index) buffers[index] = take(allocator, 40);
    show(allocator, "4 x 40");
    give(allocator, buffers[0]);
    give(allocator, buffers[1]);
    show(allocator, "free the first two");
    (void)take(allocator, 80);
    show(allocator, "1 x 80");
    allocator_destroy(allocator);
}

static void growth(void) {
    struct allocator *const allocator = start("expandable_segments:True", 4096);
    puts("growth");
    void *const first = take(allocator, 30);
    show(allocator, "30");
    void *const second = take(allocator, 30);
    show(allocator, "30");
    give(allocator, second);
    show(allocator, "free the second");
    (void)take(allocator, 60);
    show(allocator, "60");
    give(allocator, first);
    allocator_destroy(allocator);
}

static void release(void) {
    struct allocator *const allocator = start("expandable_segments:True", 4096);
    puts("release");
    (void)take(allocator, 15);
    void *const middle = take(allocator, 90);
    (void)take(allocator, 15);
    show(allocator, "15, 90, 15");
    give(allocator, middle);
    show(allocator, "free the 90");
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    show(allocator, "empty the cache");
    (void)take(allocator, 70);
    show(allocator, "70");
    allocator_destroy(allocator);
}

// Reserved memory after cycles of two buffers and a small block that stays.
static void oversize(const char *config) {
    struct allocator *const allocator = start(config, 40 * 1024);
    for (int cycle = 0; cycle < 100; ++cycle) {
        void *const a = take(allocator, 91), *const b = take(allocator, 46);
        (void)take(allocator, 2);
        give(allocator, a);
        give(allocator, b);
    }
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(allocator, 0, &stats), BASE_OK);
    printf("%6d MiB  %s\n", (int)(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current / MIB), config);
    allocator_destroy(allocator);
}

int main(void) {
    puts("                   reserved allocated");
    holes("");
    holes("expandable_segments:True");
    growth();
    release();
    puts("100 cycles of 91 and 46 MiB, 2 MiB of each stay");
    oversize("max_split_size_mb:128");
    oversize("expandable_segments:True");
    oversize("expandable_segments:True,max_split_size_mb:128");
    oversize("expandable_segments:True,max_split_size_mb:128,x_bound_growth:True");
}
