// Fragmentation by order alone, and what settings do about it: docs/fragmentation.md tells the
// story.
//
//     fragmentation           what the page shows
//     fragmentation steps     order,step,allocated,reserved in MiB, for the picture
#include "docs/examples/drawing.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS_MAX 64

// What a program holds, and what it came to.
struct program {
    struct allocator *allocator;
    void *blocks[BLOCKS_MAX];
    int count;
    bool failed;
};

static void start(struct program *program, const char *config, uint64_t capacity) {
    struct drawing drawing;
    drawing_start(&drawing, config, capacity);
    *program = (struct program){.allocator = drawing.allocator};
    // Garbage collection acts only where a fraction is set.
    if (strstr(config, "garbage_collection_threshold") != NULL)
        DRAWING_OK(cca_set_memory_fraction(program->allocator, 0, 0.99));
}

static void stop(struct program *program) { allocator_destroy(program->allocator); }

static void take(struct program *program, size_t bytes) {
    BASE_CHECK(program->count < BLOCKS_MAX);
    const enum base_status status =
        allocator_malloc(program->allocator, 0, bytes, NULL, &program->blocks[program->count]);
    BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    program->count += status == BASE_OK;
    program->failed |= status != BASE_OK;
}

// Gives back what was taken last.
static void give(struct program *program) {
    if (program->count == 0) return;
    DRAWING_OK(allocator_free(program->allocator, program->blocks[--program->count]));
}

//------------------------------------------------------------------------------------------------
// Programs: the same work for each setting.

// COUNT buffers of SIZE MiB at once, and none of them afterwards.
static void phase(struct program *program, int count, size_t size) {
    for (int index = 0; index < count; ++index)
        take(program, size * BASE_MIB);
    while (program->count > 0)
        give(program);
}

static void small_first(struct program *program) {
    phase(program, 8, 16);
    phase(program, 4, 32);
}

static void large_first(struct program *program) {
    phase(program, 4, 32);
    phase(program, 8, 16);
}

static void both_pools(struct program *program) {
    take(program, 2 * BASE_MIB);
    take(program, BASE_MIB / 2);
}

// A temporary of 530 MiB, then a weight of 270 MiB that stays: 36 layers.
static void layers(struct program *program) {
    for (int layer = 0; layer < 36; ++layer) {
        take(program, 530 * BASE_MIB);
        give(program);
        take(program, 270 * BASE_MIB);
    }
}

// A buffer that is a little larger each time: 100, 102, ... 138 MiB.
static void creeping(struct program *program) {
    for (size_t step = 0; step < 20; ++step) {
        take(program, (100 + 2 * step) * BASE_MIB);
        give(program);
    }
}

// 10 GiB, given back, then 5 GiB and 6 GiB.
static void large_then_two(struct program *program) {
    take(program, 10 * BASE_GIB);
    give(program);
    take(program, 5 * BASE_GIB);
    take(program, 6 * BASE_GIB);
}

//------------------------------------------------------------------------------------------------
// What the page shows.

static void two_orders(void) {
    static const size_t counts[2][2] = {{8, 4}, {4, 8}}, sizes[2][2] = {{16, 32}, {32, 16}};
    puts("device of 1 GiB       reserved allocated");
    for (int order = 0; order < 2; ++order) {
        struct drawing drawing;
        drawing_start(&drawing, "", BASE_GIB);
        for (int part = 0; part < 2; ++part) {
            const int count = (int)counts[order][part];
            for (int index = 0; index < count; ++index)
                BASE_CHECK(drawing_take(&drawing, (char)('A' + index),
                                        sizes[order][part] * BASE_MIB, NULL));
            printf("%d x %d                    %3d       %3d  ", count, (int)sizes[order][part],
                   (int)(drawing_reserved(&drawing) / (int64_t)BASE_MIB),
                   (int)(drawing_allocated(&drawing) / (int64_t)BASE_MIB));
            drawing_segments(&drawing, 8 * BASE_MIB);
            for (int index = 0; index < count; ++index)
                drawing_give(&drawing, (char)('A' + index));
        }
        drawing_stop(&drawing);
    }
}

static void two_pools(void) {
    struct drawing drawing;
    char size[DRAWING_SIZE];
    drawing_start(&drawing, "", BASE_GIB);
    BASE_CHECK(drawing_take(&drawing, 'A', 2 * BASE_MIB, NULL));
    BASE_CHECK(drawing_take(&drawing, 'B', BASE_MIB / 2, NULL));
    printf("2 MiB and 512 KiB reserve %s  ",
           drawing_size((uint64_t)drawing_reserved(&drawing), size));
    drawing_segments(&drawing, BASE_MIB / 2);
    drawing_stop(&drawing);
}

// Bytes of free blocks that are their whole segment.
static size_t releasable(const struct drawing *drawing) {
    struct allocator_snapshot snapshot;
    size_t sum = 0;
    DRAWING_OK(allocator_snapshot(drawing->allocator, &snapshot));
    for (size_t index = 0; index < snapshot.segment_count; ++index)
        if (snapshot.segments[index].active_size == 0) sum += snapshot.segments[index].total_size;
    allocator_snapshot_deinit(&snapshot);
    return sum;
}

static void show_unallocated(const struct drawing *drawing, const char *what) {
    const int64_t unallocated = drawing_reserved(drawing) - drawing_allocated(drawing);
    const int64_t goes_back = (int64_t)releasable(drawing), unit = (int64_t)BASE_MIB;
    printf("%-18s %4d %4d %11d %10d %5d  ", what, (int)(drawing_reserved(drawing) / unit),
           (int)(drawing_allocated(drawing) / unit), (int)(unallocated / unit),
           (int)(goes_back / unit), (int)((unallocated - goes_back) / unit));
    drawing_segments(drawing, 4 * BASE_MIB);
}

static void unallocated(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", 128 * BASE_MIB);
    puts("device of 128 MiB  res. all. unallocated releasable stuck");
    BASE_CHECK(drawing_take(&drawing, 'A', 40 * BASE_MIB, NULL));
    BASE_CHECK(drawing_take(&drawing, 'B', 40 * BASE_MIB, NULL));
    show_unallocated(&drawing, "A, B of 40 MiB");
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'B');
    show_unallocated(&drawing, "freed");
    BASE_CHECK(drawing_take(&drawing, 'C', 4 * BASE_MIB, NULL));
    show_unallocated(&drawing, "C of 4 MiB");
    const bool fits = drawing_take(&drawing, 'D', 92 * BASE_MIB, NULL);
    size_t device_free, device_total;
    DRAWING_CALL(cudaMemGetInfo(&device_free, &device_total));
    printf("D of 92 MiB        %s; the device has %d free\n", fits ? "fits" : "out of memory",
           (int)(device_free / BASE_MIB));
    show_unallocated(&drawing, "after it");
    drawing_stop(&drawing);
}

static const struct {
    const char *name;
    void (*run)(struct program *program);
    uint64_t capacity;
} programs[] = {
    {"8 x 16, then 4 x 32", small_first, BASE_GIB},
    {"4 x 32, then 8 x 16", large_first, BASE_GIB},
    {"2 MiB and 512 KiB", both_pools, BASE_GIB},
    {"36 layers", layers, 24 * BASE_GIB},
    {"creeping size", creeping, BASE_GIB},
    {"10, then 5 and 6 GiB", large_then_two, 12 * BASE_GIB},
};

static const struct {
    const char *name, *config;
} settings[] = {
    {"default", ""},
    {"split", "max_split_size_mb:20"},
    {"roundup", "roundup_power2_divisions:4"},
    {"expand", "expandable_segments:True"},
    {"collect", "garbage_collection_threshold:0.6"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

// What one program comes to under one setting.
struct outcome {
    bool failed;
    int reserved_mib, device_calls;
    double requested_mib;
};

static void print_settings(void) {
    for (size_t column = 1; column < COUNT(settings); ++column) {
        struct program program;
        size_t temporary, weight, segment;
        double fraction;
        start(&program, settings[column].config, BASE_GIB);
        DRAWING_OK(cca_round_size(program.allocator, 530 * BASE_MIB, &temporary, &segment));
        DRAWING_OK(cca_round_size(program.allocator, 270 * BASE_MIB, &weight, &segment));
        DRAWING_OK(cca_memory_fraction(program.allocator, 0, &fraction));
        printf("%-8s %-34s fraction %-5.2g blocks for 530 and 270 MiB: %d, %d\n",
               settings[column].name, settings[column].config, fraction,
               (int)(temporary / BASE_MIB), (int)(weight / BASE_MIB));
        stop(&program);
    }
}

static struct outcome outcome_of(size_t row, size_t column) {
    struct program program;
    struct allocator_stats stats;
    start(&program, settings[column].config, programs[row].capacity);
    programs[row].run(&program);
    DRAWING_OK(allocator_stats(program.allocator, 0, &stats));
    stop(&program);
    return (struct outcome){
        .failed = program.failed,
        .reserved_mib = (int)(stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak / (int)BASE_MIB),
        .device_calls = (int)(stats.num_device_alloc + stats.num_device_free),
        .requested_mib = (double)stats.requested_bytes[ALLOCATOR_STAT_ALL].peak / (double)BASE_MIB,
    };
}

static void print_row(size_t row, bool calls) {
    struct outcome outcomes[COUNT(settings)];
    double requested_mib = 0; // by the settings under which the program comes to its end
    for (size_t column = 0; column < COUNT(settings); ++column) {
        outcomes[column] = outcome_of(row, column);
        if (outcomes[column].requested_mib > requested_mib)
            requested_mib = outcomes[column].requested_mib;
    }
    printf("%-20s %7d %9g", programs[row].name, (int)(programs[row].capacity / BASE_MIB),
           requested_mib);
    for (size_t column = 0; column < COUNT(settings); ++column)
        if (outcomes[column].failed)
            printf(" %8s", "OOM");
        else
            printf(" %8d", calls ? outcomes[column].device_calls : outcomes[column].reserved_mib);
    putchar('\n');
}

static void table(bool calls) {
    printf("%-20s %7s %9s", calls ? "device calls" : "peak reserved, MiB", "device", "requested");
    for (size_t column = 0; column < COUNT(settings); ++column)
        printf(" %8s", settings[column].name);
    putchar('\n');
    for (size_t row = 0; row < COUNT(programs); ++row)
        print_row(row, calls);
}

//------------------------------------------------------------------------------------------------
// The picture's numbers.

static void step(struct program *program, const char *order, int *number) {
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(program->allocator, 0, &stats));
    printf("\"%s\",%d,%d,%d\n", order, (*number)++,
           (int)(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current / (int)BASE_MIB),
           (int)(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current / (int)BASE_MIB));
}

static void steps(const char *order, const int counts[2], const size_t sizes[2]) {
    struct program program;
    int number = 0;
    start(&program, "", BASE_GIB);
    step(&program, order, &number);
    for (int part = 0; part < 2; ++part) {
        for (int index = 0; index < counts[part]; ++index) {
            take(&program, sizes[part] * BASE_MIB);
            step(&program, order, &number);
        }
        while (program.count > 0) {
            give(&program);
            step(&program, order, &number);
        }
    }
    stop(&program);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "fragmentation",
        .arguments = "[steps]",
        .summary =
            "Why freed memory is not always memory that can be had: tables, or a picture's steps.",
        .argument_count_maximum = 1,
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    if (common.argument_count > 0) {
        if (strcmp(common.arguments[0], "steps") != 0)
            base_options_usage_error(&program, "'%s' is unknown: write steps or nothing",
                                     common.arguments[0]);
        puts("order,step,allocated,reserved");
        steps("8 x 16 MiB, then 4 x 32 MiB", (const int[]){8, 4}, (const size_t[]){16, 32});
        steps("4 x 32 MiB, then 8 x 16 MiB", (const int[]){4, 8}, (const size_t[]){32, 16});
        return 0;
    }
    two_orders();
    two_pools();
    unallocated();
    print_settings();
    table(false);
    table(true);
    return 0;
}
