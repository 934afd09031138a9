// What expandable segments do with memory, step by step: docs/expandable-segments.md tells the
// story. Each step prints what is reserved and allocated, in MiB, and what the segments hold.
#include "docs/examples/drawing.h"

#include "base/options.h"

#include <stdio.h>

static const char expandable[] = "expandable_segments:True";

static int mib(int64_t bytes) { return (int)(bytes / (int64_t)BASE_MIB); }

static void take(struct drawing *drawing, char letter, size_t size_mib) {
    BASE_CHECK(drawing_take(drawing, letter, size_mib * BASE_MIB, NULL));
}

static void show(const struct drawing *drawing, const char *what) {
    printf("%-22s %4d %4d  ", what, mib(drawing_reserved(drawing)),
           mib(drawing_allocated(drawing)));
    drawing_segments(drawing, 5 * BASE_MIB);
}

// Four buffers of 40 MiB, two of them freed; then one of 80.
static void holes(const char *config) {
    struct drawing drawing;
    drawing_start(&drawing, config, 4 * BASE_GIB);
    puts(config[0] == '\0' ? "(default)" : config);
    for (char letter = 'A'; letter <= 'D'; ++letter)
        take(&drawing, letter, 40);
    show(&drawing, "A to D of 40");
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'B');
    show(&drawing, "free A and B");
    take(&drawing, 'E', 80);
    show(&drawing, "E of 80");
    drawing_stop(&drawing);
}

static void growth(void) {
    struct drawing drawing;
    drawing_start(&drawing, expandable, 4 * BASE_GIB);
    puts("growth");
    take(&drawing, 'A', 30);
    show(&drawing, "A of 30");
    take(&drawing, 'B', 30);
    show(&drawing, "B of 30");
    drawing_give(&drawing, 'B');
    show(&drawing, "free B");
    take(&drawing, 'C', 60);
    show(&drawing, "C of 60");
    drawing_stop(&drawing);
}

// What is mapped for a request, and what is left of it.
static void map(size_t bytes) {
    struct drawing drawing;
    struct allocator_stats stats;
    struct allocator_snapshot snapshot;
    char request[DRAWING_SIZE], reserved[DRAWING_SIZE], left[DRAWING_SIZE];
    drawing_start(&drawing, expandable, 4 * BASE_GIB);
    BASE_CHECK(drawing_take(&drawing, 'A', bytes, NULL));
    DRAWING_OK(allocator_stats(drawing.allocator, 0, &stats));
    DRAWING_OK(allocator_snapshot(drawing.allocator, &snapshot));
    printf("%-15s maps %-7s the free block behind it has %s; %d segments, %d device calls\n",
           drawing_size(bytes, request),
           drawing_size((uint64_t)drawing_reserved(&drawing), reserved),
           drawing_size(snapshot.blocks[1].size, left),
           (int)stats.segment[ALLOCATOR_STAT_ALL].current, (int)stats.num_device_alloc);
    allocator_snapshot_deinit(&snapshot);
    drawing_stop(&drawing);
}

static void release(void) {
    struct drawing drawing;
    drawing_start(&drawing, expandable, 4 * BASE_GIB);
    puts("release");
    take(&drawing, 'A', 15);
    take(&drawing, 'B', 90);
    take(&drawing, 'C', 15);
    show(&drawing, "15, 90, 15");
    drawing_give(&drawing, 'B');
    show(&drawing, "free the 90");
    DRAWING_OK(allocator_empty_cache(drawing.allocator));
    show(&drawing, "empty the cache");
    take(&drawing, 'D', 70);
    show(&drawing, "70");
    drawing_stop(&drawing);
}

// Reserved memory after cycles of two buffers and a small block that stays.
static void oversize(const char *config) {
    struct drawing drawing;
    drawing_start(&drawing, config, 40 * BASE_GIB);
    for (int cycle = 0; cycle < 100; ++cycle) {
        take(&drawing, 'A', 91);
        take(&drawing, 'B', 46);
        take(&drawing, 'C', 2);
        drawing_give(&drawing, 'A');
        drawing_give(&drawing, 'B');
    }
    printf("%6d MiB  %s\n", mib(drawing_reserved(&drawing)), config);
    drawing_stop(&drawing);
}

// A request of 1.1 MiB where the allocator may reserve so much.
static void limit(double fraction) {
    struct drawing drawing;
    drawing_start(&drawing, expandable, 100 * BASE_MIB);
    DRAWING_OK(cca_set_memory_fraction(drawing.allocator, 0, fraction));
    BASE_CHECK(drawing_take(&drawing, 'A', 512, NULL));
    printf("1.1 MiB beside 2, limit %g MiB: %s\n", fraction * 100,
           drawing_take(&drawing, 'B', BASE_MIB / 10 * 11, NULL) ? "ok" : "out of memory");
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "expandable_segments",
        .summary = "What expandable segments do with memory, step by step.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    puts("a character is 5   reserved allocated");
    holes("");
    holes(expandable);
    growth();
    map(512);
    map(20 * BASE_MIB - 512);
    release();
    puts("100 cycles of 91 and 46 MiB, 2 MiB of each stay");
    oversize("max_split_size_mb:128");
    oversize("expandable_segments:True");
    oversize("expandable_segments:True,max_split_size_mb:128");
    oversize("expandable_segments:True,max_split_size_mb:128,x_bound_growth:True");
    limit(0.21);
    limit(0.22);
}
