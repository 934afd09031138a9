// A block that another stream uses: why it cannot be reused at once, what the wait costs, and what
// else keeps the order: docs/record-stream.md tells the story.
//
// Held streams stand for work that takes long: what they were given stays unfinished until they are
// released, or until somebody waits.
#include "docs/examples/drawing.h"

#include "base/options.h"
#include "simulator/sim_race.h"
#include "workload/race_blocks.h"

#include <stdio.h>
#include <string.h>

#define BLOCK (16 * BASE_MIB)

static int mib(int64_t bytes) { return (int)(bytes / (int64_t)BASE_MIB); }

static void work(const void *argument) { (void)argument; }

// Work on a stream that reads or writes a block, as the race checker is told.
static void launch(cudaStream_t stream, const char *name, enum sim_access_mode mode, void *block) {
    const struct sim_access access = {.mode = mode, .pointer = block, .size = BLOCK};
    DRAWING_CALL(sim_launch_kernel(
        stream,
        &(struct sim_kernel){.name = name, .body = work, .accesses = &access, .access_count = 1}));
}

// BEHIND goes on when what BEFORE was given so far is done.
static void order(cudaStream_t before, cudaStream_t behind) {
    cudaEvent_t event;
    DRAWING_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    DRAWING_CALL(cudaEventRecord(event, before));
    DRAWING_CALL(cudaStreamWaitEvent(behind, event, 0));
    DRAWING_CALL(cudaEventDestroy(event));
}

static void used_by(const struct drawing *drawing, char letter, cudaStream_t stream) {
    launch(stream, "use", SIM_ACCESS_READ, drawing_block(drawing, letter));
    DRAWING_OK(allocator_record_stream(drawing->allocator, drawing_block(drawing, letter), stream));
}

static void take(struct drawing *drawing, char letter, size_t bytes) {
    BASE_CHECK(drawing_take(drawing, letter, bytes, NULL));
}

static int64_t active_of(const struct drawing *drawing) {
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    return stats.active_bytes[ALLOCATOR_STAT_ALL].current;
}

static void show(const struct drawing *drawing, const char *what) {
    printf("%-28s %8d %9d %6d  ", what, mib(drawing_reserved(drawing)),
           mib(drawing_allocated(drawing)), mib(active_of(drawing)));
    drawing_segments(drawing, 4 * BASE_MIB);
}

//------------------------------------------------------------------------------------------------
// Waiting, and how it ends.

static void wait_and_return(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", BASE_GIB);
    cudaStream_t const side = drawing_stream(&drawing);
    puts("pending                      reserved allocated active");
    sim_stream_hold(side, true);
    take(&drawing, 'A', BLOCK);
    used_by(&drawing, 'A', side);
    show(&drawing, "A, used by stream 1");
    drawing_give(&drawing, 'A');
    show(&drawing, "free A");
    take(&drawing, 'B', BLOCK);
    show(&drawing, "B");
    sim_stream_hold(side, false);
    show(&drawing, "stream 1 is done");
    take(&drawing, 'C', BLOCK);
    show(&drawing, "C");
    drawing_stop(&drawing);
}

static void show_pending(const struct drawing *drawing, const char *what) {
    struct cca_pending_frees numbers;
    char all[DRAWING_SIZE], finished[DRAWING_SIZE];
    DRAWING_OK(cca_pending_frees(drawing->allocator, 0, &numbers));
    printf("%-28s %d blocks of %s wait, %d of %s are done\n", what, (int)numbers.blocks,
           drawing_size(numbers.bytes, all), (int)numbers.finished_blocks,
           drawing_size(numbers.finished_bytes, finished));
}

static void several_streams(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", BASE_GIB);
    cudaStream_t const one = drawing_stream(&drawing), two = drawing_stream(&drawing);
    puts("two streams");
    sim_stream_hold(one, true);
    for (char letter = 'A'; letter <= 'C'; ++letter)
        take(&drawing, letter, BLOCK);
    used_by(&drawing, 'A', one);
    used_by(&drawing, 'B', two);
    used_by(&drawing, 'C', one);
    used_by(&drawing, 'C', two);
    for (char letter = 'A'; letter <= 'C'; ++letter)
        drawing_give(&drawing, letter);
    show_pending(&drawing, "A by 1, B by 2, C by both");
    take(&drawing, 'D', 4 * BASE_MIB);
    show(&drawing, "D");
    show_pending(&drawing, "");
    sim_stream_hold(one, false);
    show_pending(&drawing, "stream 1 is done too");
    take(&drawing, 'E', 4 * BASE_MIB);
    show(&drawing, "E");
    drawing_stop(&drawing);
}

// Queries of events that one small request makes.
static int queries_of_a_request(struct drawing *drawing) {
    const uint64_t before = sim_call_count(SIM_CALL_EVENT_QUERY);
    take(drawing, 'Z', 512);
    drawing_give(drawing, 'Z');
    return (int)(sim_call_count(SIM_CALL_EVENT_QUERY) - before);
}

static void polling(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", BASE_GIB);
    cudaStream_t streams[3];
    for (int index = 0; index < 3; ++index)
        streams[index] = drawing_stream(&drawing);
    puts("queries of a request");
    printf("%3d  nothing waits\n", queries_of_a_request(&drawing));
    for (int index = 0; index < 3; ++index)
        sim_stream_hold(streams[index], true);
    for (char letter = 'A'; letter <= 'L'; ++letter)
        take(&drawing, letter, BLOCK);
    for (char letter = 'A'; letter <= 'L'; ++letter) {
        used_by(&drawing, letter, streams[(letter - 'A') % 3]);
        drawing_give(&drawing, letter);
    }
    printf("%3d  12 blocks wait, 4 for each of 3 streams\n", queries_of_a_request(&drawing));
    sim_stream_hold(streams[1], false);
    printf("%3d  stream 2 is done\n", queries_of_a_request(&drawing));
    printf("%3d  again\n", queries_of_a_request(&drawing));
    drawing_stop(&drawing);
}

static void run_ahead(void) {
    puts("collectives in flight    allocated active  active - allocated");
    for (int count = 1; count <= 8; count *= 2) {
        struct drawing drawing;
        drawing_start(&drawing, "", BASE_GIB);
        cudaStream_t const side = drawing_stream(&drawing);
        sim_stream_hold(side, true);
        for (int index = 0; index < count; ++index) {
            take(&drawing, 'A', BLOCK);
            used_by(&drawing, 'A', side);
            drawing_give(&drawing, 'A');
        }
        printf("%-24d %9d %6d %19d\n", count, mib(drawing_allocated(&drawing)),
               mib(active_of(&drawing)), mib(active_of(&drawing) - drawing_allocated(&drawing)));
        drawing_stop(&drawing);
    }
}

//------------------------------------------------------------------------------------------------
// The wait before a request fails.

static void ask(struct drawing *drawing, char letter, size_t bytes) {
    char size[DRAWING_SIZE], what[64];
    struct allocator_stats stats;
    const bool fits = drawing_take(drawing, letter, bytes, NULL);
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    snprintf(what, sizeof what, "%c of %s: %s", letter, drawing_size(bytes, size),
             fits ? "ok" : "out of memory");
    show(drawing, what);
    printf("  waits for all %d, events waited for %d, retries %d\n",
           (int)stats.num_sync_all_streams, (int)sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE),
           (int)stats.num_alloc_retries);
}

static void full_device(void) {
    struct drawing drawing;
    drawing_start(&drawing, "", 64 * BASE_MIB);
    cudaStream_t const side = drawing_stream(&drawing);
    puts("a full device of 64 MiB");
    sim_stream_hold(side, true);
    take(&drawing, 'A', 40 * BASE_MIB);
    used_by(&drawing, 'A', side);
    drawing_give(&drawing, 'A');
    show(&drawing, "A of 40 MiB, freed");
    ask(&drawing, 'B', 48 * BASE_MIB);
    drawing_stop(&drawing);
}

static void part_of_a_segment(const char *config) {
    struct drawing drawing;
    drawing_start(&drawing, config, 64 * BASE_MIB);
    cudaStream_t const side = drawing_stream(&drawing);
    printf("part of a segment, %s\n", config[0] == '\0' ? "default" : config);
    take(&drawing, 'A', 56 * BASE_MIB);
    drawing_give(&drawing, 'A');
    take(&drawing, 'A', 48 * BASE_MIB);
    take(&drawing, 'B', 4 * BASE_MIB);
    sim_stream_hold(side, true);
    used_by(&drawing, 'A', side);
    drawing_give(&drawing, 'A');
    show(&drawing, "A of 48 MiB, freed");
    ask(&drawing, 'C', 48 * BASE_MIB);
    if (drawing_block(&drawing, 'C') == NULL) ask(&drawing, 'C', 48 * BASE_MIB);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// Ways to share a block with a side stream, as a step of training does.

enum way { NOTHING, RECORD_STREAM, KEEP, WAIT_FIRST, WAY_COUNT };

static const char *const way_names[WAY_COUNT] = {"nothing", "record_stream", "keep until joined",
                                                 "wait, then free"};

#define LAYERS 8

// Each layer produces gradients on the main stream, which the side stream reduces. Returns how
// often the main stream waits.
static int train(struct allocator *allocator, cudaStream_t compute, cudaStream_t side,
                 enum way way) {
    void *kept[LAYERS];
    int waits = 1;
    for (int layer = 0; layer < LAYERS; ++layer) {
        void *gradients;
        DRAWING_OK(allocator_malloc(allocator, 0, BLOCK, compute, &gradients));
        launch(compute, "backward", SIM_ACCESS_WRITE, gradients);
        order(compute, side);
        launch(side, "all_reduce", SIM_ACCESS_READ, gradients);
        if (way == RECORD_STREAM) DRAWING_OK(allocator_record_stream(allocator, gradients, side));
        if (way == WAIT_FIRST) {
            order(side, compute);
            ++waits;
        }
        kept[layer] = gradients;
        if (way != KEEP) DRAWING_OK(allocator_free(allocator, gradients));
    }
    order(side, compute);
    for (int layer = 0; layer < LAYERS && way == KEEP; ++layer)
        DRAWING_OK(allocator_free(allocator, kept[layer]));
    return waits;
}

// The lines of a report that say what is missing and what mends it.
static void print_advice(const char *report) {
    for (const char *line = report; line != NULL && *line != '\0';) {
        const char *const end = strchr(line, '\n');
        const int length = end != NULL ? (int)(end - line) : (int)strlen(line);
        if (strncmp(line, "  missing", 9) == 0 || strncmp(line, "  mend", 6) == 0)
            printf("%.*s\n", length, line);
        line = end != NULL ? end + 1 : NULL;
    }
}

static void print_way(enum way way) {
    struct drawing drawing;
    struct allocator *allocator;
    drawing_start(&drawing, "", BASE_GIB);
    cudaStream_t const compute = drawing_stream(&drawing), side = drawing_stream(&drawing);
    DRAWING_OK(workload_race_blocks_create(drawing.allocator, &allocator));
    DRAWING_OK(sim_race_start(&(struct sim_race_options){.quiet = true}));
    sim_stream_hold(side, true);
    const int waits = train(allocator, compute, side, way);
    sim_race_stop();
    const struct sim_race_report *const race = sim_race_report_at(0);
    // Of the events, the program records one for each layer and one for each wait.
    const int events = (int)sim_call_count(SIM_CALL_EVENT_RECORD) - LAYERS - waits;
    printf("%-18s %5d %9d %19d %17d\n", way_names[way], race != NULL ? (int)race->count : 0,
           mib(drawing_reserved(&drawing)), events, waits);
    if (race != NULL) print_advice(race->text);
    allocator_destroy(allocator);
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "record_stream",
        .summary = "A block that another stream uses: why it waits, and what that costs.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    printf("%d layers           races  reserved  allocator's events  main stream waits\n", LAYERS);
    for (int way = 0; way < WAY_COUNT; ++way)
        print_way((enum way)way);
    wait_and_return();
    several_streams();
    polling();
    run_ahead();
    full_device();
    part_of_a_segment("");
}
