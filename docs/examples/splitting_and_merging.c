// When a cached block is split, which part is handed out, and when free neighbors become one block
// again: docs/splitting-and-merging.md tells the story.
#include "docs/examples/drawing.h"

#include "base/options.h"

#include <stdio.h>

//------------------------------------------------------------------------------------------------
// Splitting: one cached block, one request.

// Frees a block of FREE bytes, asks for REQUEST bytes, and prints what became of the free block.
static void split(const char *config, size_t free_bytes, size_t request) {
    struct drawing drawing;
    struct allocator_snapshot snapshot;
    char texts[4][DRAWING_SIZE];
    drawing_start(&drawing, config, BASE_GIB);
    // A neighbor that stays, so that the free block is that size also in a small segment.
    const bool is_small = free_bytes <= BASE_MIB;
    BASE_CHECK(drawing_take(&drawing, 'A', free_bytes, NULL));
    if (is_small) BASE_CHECK(drawing_take(&drawing, 'B', 2 * BASE_MIB - free_bytes, NULL));
    drawing_give(&drawing, 'A');
    BASE_CHECK(drawing_take(&drawing, 'C', request, NULL));

    DRAWING_OK(allocator_snapshot(drawing.allocator, &snapshot));
    const struct allocator_snapshot_block *const first = &snapshot.blocks[0];
    const bool is_hit = snapshot.segment_count == 1;
    const bool is_split = is_hit && first->size < free_bytes;
    printf("%-13s %-16s %-15s %s\n", drawing_size(free_bytes, texts[0]),
           drawing_size(request, texts[1]),
           is_hit ? drawing_size(first->size, texts[2]) : "another segment",
           is_split ? drawing_size(free_bytes - first->size, texts[3]) : "-");
    allocator_snapshot_deinit(&snapshot);
    drawing_stop(&drawing);
}

static void splits(void) {
    puts("free block    request          handed out      left free");
    split("", BASE_MIB, BASE_MIB - 512);
    split("", BASE_MIB, BASE_MIB - 511);
    split("", 20 * BASE_MIB, 19 * BASE_MIB - 512);
    split("", 20 * BASE_MIB, 19 * BASE_MIB);
    split("", 20 * BASE_MIB, 2 * BASE_MIB);
    puts("max_split_size_mb:64");
    split("max_split_size_mb:64", 62 * BASE_MIB, 20 * BASE_MIB);
    split("max_split_size_mb:64", 100 * BASE_MIB, 20 * BASE_MIB);
    split("max_split_size_mb:64", 100 * BASE_MIB, 82 * BASE_MIB);
    split("max_split_size_mb:64", 100 * BASE_MIB, 80 * BASE_MIB);
    puts("expandable_segments:True");
    split("expandable_segments:True", 20 * BASE_MIB, 20 * BASE_MIB - 512);
}

//------------------------------------------------------------------------------------------------
// Merging.

static void show(const struct drawing *drawing, const char *what) {
    struct allocator_stats stats;
    char size[DRAWING_SIZE];
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    printf("%-24s %d of %-7s ", what, (int)stats.inactive_split[ALLOCATOR_STAT_ALL].current,
           drawing_size((uint64_t)stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current, size));
    drawing_segments(drawing, BASE_MIB);
}

static void merges(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", BASE_GIB);
    puts("neighbors         inactive split");
    for (char letter = 'A'; letter <= 'D'; ++letter)
        BASE_CHECK(drawing_take(&drawing, letter, 4 * BASE_MIB, NULL));
    show(&drawing, "A, B, C, D of 4 MiB");
    drawing_give(&drawing, 'B');
    show(&drawing, "free B");
    drawing_give(&drawing, 'D');
    show(&drawing, "free D");
    drawing_give(&drawing, 'C');
    show(&drawing, "free C");
    BASE_CHECK(drawing_take(&drawing, 'E', 6 * BASE_MIB, NULL));
    show(&drawing, "E of 6 MiB");
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'E');
    show(&drawing, "free A and E");
    drawing_stop(&drawing);
}

static void waits(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", BASE_GIB);
    cudaStream_t const side = drawing_stream(&drawing);
    puts("a block that waits");
    for (char letter = 'A'; letter <= 'C'; ++letter)
        BASE_CHECK(drawing_take(&drawing, letter, 4 * BASE_MIB, NULL));
    sim_stream_hold(side, true);
    DRAWING_OK(allocator_record_stream(drawing.allocator, drawing_block(&drawing, 'B'), side));
    drawing_give(&drawing, 'B');
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'C');
    show(&drawing, "free B, then A and C");
    sim_stream_hold(side, false);
    BASE_CHECK(drawing_take(&drawing, 'D', 2 * BASE_MIB, NULL));
    show(&drawing, "B is done; D of 2 MiB");
    drawing_stop(&drawing);
}

// Two segments that touch: the second cudaMalloc answers with the first one's end.
static void borders(void) {
    struct drawing drawing;
    static const uint64_t start = 0x100000000000;
    drawing_start(&drawing, "", BASE_GIB);
    puts("two segments that touch");
    DRAWING_OK(sim_next_address(0, start));
    DRAWING_OK(sim_next_address(0, start + 10 * BASE_MIB));
    BASE_CHECK(drawing_take(&drawing, 'A', 10 * BASE_MIB, NULL));
    BASE_CHECK(drawing_take(&drawing, 'B', 10 * BASE_MIB, NULL));
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'B');
    show(&drawing, "A, B of 10 MiB, freed");
    BASE_CHECK(drawing_take(&drawing, 'C', 20 * BASE_MIB, NULL));
    show(&drawing, "C of 20 MiB");
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// Which of several.

// Three free blocks by address: the youngest one is larger, of the other two the older one is last.
static void tie(const char *config) {
    struct drawing drawing;
    static const uint64_t start = 0x100000000000;
    drawing_start(&drawing, config, BASE_GIB);
    for (char letter = 'A'; letter <= 'C'; ++letter) {
        const uint64_t place = (uint64_t)('C' - letter);
        DRAWING_OK(sim_next_address(0, start + place * BASE_GIB));
        BASE_CHECK(drawing_take(&drawing, letter, (letter == 'C' ? 12 : 10) * BASE_MIB, NULL));
    }
    for (char letter = 'A'; letter <= 'C'; ++letter)
        drawing_give(&drawing, letter);
    BASE_CHECK(drawing_take(&drawing, 'D', 10 * BASE_MIB, NULL));
    show(&drawing, config[0] == '\0' ? "(default)" : config);
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "splitting_and_merging",
        .summary = "When a cached block is split, and when free blocks become one again.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    splits();
    merges();
    waits();
    borders();
    puts("D of 10 MiB; free are, by age of their segments, the last one, the second, the first");
    tie("");
    tie("x_torch:2.5");
}
