// What a block is made of, and how a request walks from malloc to hand-out: docs/block-and-pools.md
// tells the story. The observer of the allocator and the counters of the simulated device tell what
// happened at each request.
#include "docs/examples/drawing.h"

#include "allocator/core.h"
#include "allocator/stream_use.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Requests.

struct story {
    char text[256];
    uint64_t refused; // calls of cudaMalloc that failed so far
};

static void append(struct story *story, const char *what, size_t bytes) {
    char size[DRAWING_SIZE];
    const size_t length = strlen(story->text);
    snprintf(story->text + length, sizeof story->text - length, "%s%s %s", length > 0 ? ", " : "",
             what, drawing_size(bytes, size));
}

static void notice_refusals(struct story *story) {
    for (; story->refused < sim_call_failed_count(SIM_CALL_MALLOC); ++story->refused) {
        const size_t length = strlen(story->text);
        snprintf(story->text + length, sizeof story->text - length, "%scudaMalloc refused",
                 length > 0 ? ", " : "");
    }
}

static void on_event(void *context, const struct allocator_event *event) {
    struct story *const story = context;
    notice_refusals(story);
    if (event->action == ALLOCATOR_SEGMENT_ALLOC) append(story, "cudaMalloc", event->size);
    if (event->action == ALLOCATOR_SEGMENT_FREE) append(story, "cudaFree", event->size);
    if (event->action == ALLOCATOR_ALLOC) append(story, "block of", event->block_size);
    if (event->action == ALLOCATOR_OOM) append(story, "out of memory at", event->size);
}

static void observe(struct drawing *drawing, struct story *story) {
    *story = (struct story){0};
    DRAWING_OK(allocator_set_observer(
        drawing->allocator, &(struct allocator_observer){.event = on_event, .context = story}));
}

static void request(struct drawing *drawing, struct story *story, char letter, size_t bytes,
                    cudaStream_t stream) {
    char size[DRAWING_SIZE];
    story->text[0] = '\0';
    (void)drawing_take(drawing, letter, bytes, stream);
    printf("%c %-13s %s\n", letter, drawing_size(bytes, size), story->text);
}

static void pools(void) {
    struct drawing drawing;
    struct story story;
    drawing_start(&drawing, "", 128 * BASE_MIB);
    observe(&drawing, &story);
    cudaStream_t const stream = drawing_stream(&drawing);
    puts("requests, 128 MiB; a character is 100 KiB, in the last line 1 MiB");
    request(&drawing, &story, 'A', 600 * BASE_KIB, NULL);
    request(&drawing, &story, 'B', 300 * BASE_KIB, NULL);
    drawing_segments(&drawing, 100 * BASE_KIB);
    drawing_give(&drawing, 'A');
    request(&drawing, &story, 'C', 500 * BASE_KIB, NULL);
    drawing_segments(&drawing, 100 * BASE_KIB);
    request(&drawing, &story, 'D', 1 * BASE_MIB, NULL);
    request(&drawing, &story, 'E', 1 * BASE_MIB + 1, NULL);
    request(&drawing, &story, 'F', 3 * BASE_MIB, NULL);
    request(&drawing, &story, 'G', 10 * BASE_MIB, NULL);
    request(&drawing, &story, 'H', 11 * BASE_MIB, NULL);
    request(&drawing, &story, 'I', 3 * BASE_MIB, stream);
    drawing_segments(&drawing, BASE_MIB);
    drawing_stop(&drawing);
}

static void ladder_end(struct drawing *drawing) {
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    printf("  num_alloc_retries %d, num_ooms %d\n", (int)stats.num_alloc_retries,
           (int)stats.num_ooms);
    drawing_stop(drawing);
}

static void ladder_all(void) {
    struct drawing drawing;
    struct story story;
    drawing_start(&drawing, "", 64 * BASE_MIB);
    observe(&drawing, &story);
    puts("ladder, 64 MiB");
    request(&drawing, &story, 'A', 24 * BASE_MIB, NULL);
    request(&drawing, &story, 'B', 16 * BASE_MIB, NULL);
    drawing_give(&drawing, 'A');
    request(&drawing, &story, 'C', 20 * BASE_MIB, NULL);
    drawing_give(&drawing, 'C');
    request(&drawing, &story, 'D', 40 * BASE_MIB, NULL);
    request(&drawing, &story, 'E', 32 * BASE_MIB, NULL);
    ladder_end(&drawing);
}

// A program's own cache that gives a block back when the allocator is about to ask the device.
static bool give_a_back(void *context, int device) {
    (void)device;
    drawing_give(context, 'A');
    return true;
}

static void ladder_callback(void) {
    struct drawing drawing;
    struct story story;
    drawing_start(&drawing, "", 64 * BASE_MIB);
    observe(&drawing, &story);
    puts("ladder, 64 MiB, a callback that frees A");
    request(&drawing, &story, 'A', 24 * BASE_MIB, NULL);
    DRAWING_OK(cca_add_free_memory_callback(
        drawing.allocator,
        &(struct cca_free_memory_callback){.free_memory = give_a_back, .context = &drawing}));
    request(&drawing, &story, 'B', 16 * BASE_MIB, NULL);
    ladder_end(&drawing);
}

static void ladder_oversize(void) {
    struct drawing drawing;
    struct story story;
    drawing_start(&drawing, "max_split_size_mb:20", 64 * BASE_MIB);
    observe(&drawing, &story);
    puts("ladder, 64 MiB, max_split_size_mb:20");
    request(&drawing, &story, 'A', 24 * BASE_MIB, NULL);
    request(&drawing, &story, 'B', 32 * BASE_MIB, NULL);
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'B');
    request(&drawing, &story, 'C', 12 * BASE_MIB, NULL);
    ladder_end(&drawing);
}

static void ladder_collect(void) {
    struct drawing drawing;
    struct story story;
    drawing_start(&drawing, "garbage_collection_threshold:0.5", 64 * BASE_MIB);
    DRAWING_OK(cca_set_memory_fraction(drawing.allocator, 0, 0.75));
    observe(&drawing, &story);
    puts("ladder, 64 MiB, fraction 0.75, garbage_collection_threshold:0.5");
    request(&drawing, &story, 'A', 16 * BASE_MIB, NULL);
    request(&drawing, &story, 'B', 12 * BASE_MIB, NULL);
    drawing_give(&drawing, 'A');
    drawing_give(&drawing, 'B');
    request(&drawing, &story, 'C', 12 * BASE_MIB, NULL);
    drawing_give(&drawing, 'C');
    request(&drawing, &story, 'D', 20 * BASE_MIB, NULL);
    ladder_end(&drawing);
}

//------------------------------------------------------------------------------------------------
// The block, field by field.

#define FIELD(name)                                                                                \
    show_field(#name, offsetof(struct cca__block, name), sizeof(((struct cca__block *)NULL)->name))

static size_t shown_bytes;

static void show_field(const char *name, size_t offset, size_t bytes) {
    printf("%-16s %4zu %6zu\n", name, offset, bytes);
    shown_bytes += bytes;
}

static void show_size(const char *what, size_t bytes, size_t count, const char *of) {
    printf("%-16s %11zu   %zu %s\n", what, bytes, count, of);
}

static void fields(void) {
    puts("cca__block     offset  bytes");
    FIELD(address);
    FIELD(size);
    FIELD(requested);
    FIELD(registration);
    FIELD(gc_base);
    FIELD(previous);
    FIELD(next);
    FIELD(link);
    FIELD(segment);
    FIELD(pool);
    FIELD(state);
    FIELD(flags);
    FIELD(uses);
    printf("together         %11zu\n", sizeof(struct cca__block));
    BASE_CHECK_EQ(shown_bytes, sizeof(struct cca__block)); // none is left out
    show_size("slab", sizeof(struct cca__block) * CCA__BLOCK_CHUNK, CCA__BLOCK_CHUNK, "blocks");
    show_size("cca__use_record", sizeof(struct cca__use_record), CCA__USES_PER_RECORD, "streams");
    show_size("cca__bin", sizeof(struct cca__bin), CCA__BIN_COUNT, "bins a pool");
    show_size("window", sizeof(uint32_t), (size_t)1 << CCA__WINDOW_BITS, "B of addresses");
    show_size("leaf", sizeof(uint32_t) * CCA__SMALL_SLOTS, (size_t)1 << CCA__LEAF_SHIFT,
              "B of addresses");
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "block_and_pools",
        .summary = "What a block is made of, and how a request walks from malloc to hand-out.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    pools();
    ladder_all();
    ladder_callback();
    ladder_collect();
    ladder_oversize();
    fields();
}
