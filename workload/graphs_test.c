// The program `graphs` beside the same steps without a graph, what shared pools and reuse save, and
// what stretches that are captured leave when something goes wrong.
//
//     graphs_test [SEEDS]        4
#include "workload/capture.h"
#include "workload/program.h"
#include "workload/race_blocks.h"

#include "allocator/captures.h"
#include "allocator/create.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != BASE_OK) printf("%s\n", base_status_message()), fflush(stdout), abort();     \
    } while (0)

// Expandable segments reserve as many addresses for each stream: not all there are under the thread
// sanitizer.
#define CAPACITY (4 * BASE_GIB)

static const char *const variants[] = {"step", "shapes", "apart", "streams"};
// Batches of 32, 16, 8, 4, 2 and 1 rows; and one graph more, half-way.
static const uint64_t captures_of[] = {2, 7, 7, 2};

static const struct workload_program *graphs(void) {
    const struct workload_program *program;
    OK(workload_program_find("graphs", &program));
    return program;
}

static void configure(const char *schedule, enum sim_numerics numerics) {
    OK(sim_schedule(schedule));
    OK(sim_configure(&(struct sim_options){.numerics = numerics, .capacity_bytes = CAPACITY}));
}

// Nothing is live, and nothing is kept once the cache is emptied, of no pool.
static void nothing_stays(struct allocator *allocator) {
    struct allocator_stats stats;
    struct cca_pool_stats *pools;
    size_t count;
    OK(allocator_stats(allocator, 0, &stats));
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 0);
    OK(allocator_empty_cache(allocator));
    OK(allocator_stats(allocator, 0, &stats));
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    if (strcmp(allocator->operations->name, "caching") != 0) return;
    OK(cca_pool_stats(allocator, 0, &pools, &count));
    for (size_t index = 0; index < count; ++index)
        BASE_CHECK_EQ(pools[index].reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    free(pools);
}

//------------------------------------------------------------------------------------------------
// With a graph and without.

struct outcome {
    uint64_t checksum, steps, captures, launches, races;
    int64_t peak_reserved;
};

static struct outcome run(const char *config, struct workload_options options) {
    struct allocator *inner, *outer;
    struct workload_result result;
    struct allocator_stats stats;
    const bool checks = !options.without_values;
    if (checks) OK(sim_race_start(&(struct sim_race_options){.quiet = true}));
    OK(allocator_create(config, -1, &inner));
    OK(workload_race_blocks_create(inner, &outer));
    options.allocator = outer;
    OK(workload_program_run(graphs(), &options, &result));
    if (checks) sim_race_stop();
    struct outcome outcome = {.checksum = result.checksum,
                              .steps = result.steps,
                              .captures = sim_call_count(SIM_CALL_STREAM_BEGIN_CAPTURE),
                              .launches = sim_call_count(SIM_CALL_GRAPH_LAUNCH),
                              .races = checks ? sim_race_count(SIM_RACE_RULE_COUNT) : 0};
    if (outcome.races > 0) printf("%s", sim_race_report_at(0)->text);
    OK(allocator_stats(inner, 0, &stats));
    outcome.peak_reserved = stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    nothing_stays(inner);
    allocator_destroy(outer);
    allocator_destroy(inner);
    return outcome;
}

static const char *const configs[] = {
    "",
    "graph_capture_record_stream_reuse:True",
    "graph_capture_record_stream_reuse:True,x_capture_reuse:markers",
    "x_capture_reuse:markers_graph",
    "expandable_segments:True",
    "x_allocator:async",
};
static const char *const schedules[] = {"eager", "lazy", "random"};

// All but the first step are launches, and compute what work without a graph does.
static void launches_compute_what_the_work_does(size_t index, uint64_t seed) {
    char random[32];
    const char *const variant = variants[index];
    const struct workload_options options = {.variant = variant, .seed = seed};
    base_check_context("%s without a graph, seed %llu", variant, (unsigned long long)seed);
    configure("eager", SIM_NUMERICS_ON);
    const struct outcome eager = run("x_allocator:direct", options);
    BASE_CHECK_EQ(eager.captures + eager.launches, 0);
    BASE_CHECK_EQ(eager.races, 0);
    (void)snprintf(random, sizeof random, "random:%llu", (unsigned long long)seed);
    for (size_t config = 0; config < COUNT(configs); ++config)
        for (size_t schedule = 0; schedule < COUNT(schedules); ++schedule) {
            base_check_context("%s, \"%s\", %s, seed %llu", variant, configs[config],
                               schedules[schedule], (unsigned long long)seed);
            configure(schedule == 2 ? random : schedules[schedule], SIM_NUMERICS_ON);
            const struct outcome captured = run(configs[config], options);
            BASE_CHECK_EQ(captured.races, 0);
            BASE_CHECK_EQ(captured.checksum, eager.checksum);
            BASE_CHECK_EQ(captured.steps, eager.steps);
            BASE_CHECK_EQ(captured.captures, captures_of[index]);
            BASE_CHECK_EQ(captured.launches, captured.steps - 1);
        }
}

// Where the work happens does not matter, and the seed does.
static void variants_agree(void) {
    uint64_t checksums[COUNT(variants)], other;
    base_check_context("variants");
    for (size_t index = 0; index < COUNT(variants); ++index) {
        configure("lazy", SIM_NUMERICS_ON);
        checksums[index] =
            run("", (struct workload_options){.variant = variants[index], .seed = 1}).checksum;
    }
    BASE_CHECK_EQ(checksums[0], checksums[3]);
    BASE_CHECK_EQ(checksums[1], checksums[2]);
    BASE_CHECK_NE(checksums[0], checksums[1]);
    configure("lazy", SIM_NUMERICS_ON);
    other = run("", (struct workload_options){.seed = 2}).checksum;
    BASE_CHECK_NE(checksums[0], other);
}

//------------------------------------------------------------------------------------------------
// Memory, at true sizes.

static int64_t reserved(const char *variant, const char *config) {
    configure("eager", SIM_NUMERICS_OFF);
    return run(config, (struct workload_options){.variant = variant,
                                                 .size = WORKLOAD_TRUE,
                                                 .without_values = true})
        .peak_reserved;
}

// The graphs of a pool need what the largest one does, those of pools of their own the sum: twice
// it, as each is of half the size of the one before. What is beyond the weights, inputs and outputs
// is theirs.
static void shapes_in_one_pool_take_less(void) {
    base_check_context("shapes");
    const int64_t weights = (int64_t)24 * 4096 * 4096 * 4, largest = (int64_t)2048 * 4096 * 4;
    const int64_t together = reserved("shapes", ""), apart = reserved("apart", "");
    BASE_CHECK_GT(together, weights + 2 * largest);
    BASE_CHECK_GT(apart - together, 3 * largest);
}

// Backward's gradients of all layers wait for the capture's end, or two or three of them are there.
static void reuse_takes_less(void) {
    base_check_context("reuse");
    const int64_t gradient = (int64_t)2048 * 4096 * 4;
    const int64_t off = reserved("streams", "");
    const int64_t present = reserved("streams", configs[1]);
    const int64_t first_form = reserved("streams", configs[2]);
    BASE_CHECK_GT(off - present, (24 - 4) * gradient);
    BASE_CHECK_GT(off - first_form, (24 - 4) * gradient);
    BASE_CHECK_LE(present, first_form);
    BASE_CHECK_EQ(reserved("step", configs[1]), reserved("step", ""));
}

//------------------------------------------------------------------------------------------------
// What goes wrong.

// A call fails the N-th time it is made, for each N until the program gets through.
static void failures_leave_nothing(const char *variant, enum sim_call call) {
    struct allocator *allocator;
    struct workload_result result;
    enum base_status status = BASE_CUDA;
    for (uint64_t n = 1; status != BASE_OK; ++n) {
        base_check_context("%s, %s fails the %llu-th time", variant, sim_call_name(call),
                           (unsigned long long)n);
        configure("lazy", SIM_NUMERICS_ON);
        OK(allocator_create("", -1, &allocator));
        sim_fault_next(call, n, cudaErrorMemoryAllocation);
        status = workload_program_run(
            graphs(),
            &(struct workload_options){.allocator = allocator, .variant = variant, .seed = 1},
            &result);
        if (n == 1 || status != BASE_OK) BASE_CHECK_EQ(status, BASE_CUDA);
        (void)cudaGetLastError();
        sim_fault_next(call, 0, cudaSuccess);
        nothing_stays(allocator);
        allocator_destroy(allocator);
    }
}

// Too little memory for all, at each of many sizes: in a capture and outside.
static void little_memory_leaves_nothing(const char *variant) {
    struct allocator *allocator;
    struct workload_result result;
    enum base_status status = BASE_OUT_OF_MEMORY;
    for (uint64_t capacity = 2 * BASE_MIB; status != BASE_OK; capacity += 2 * BASE_MIB) {
        base_check_context("%s in %llu bytes", variant, (unsigned long long)capacity);
        OK(sim_schedule("eager"));
        OK(sim_configure(&(struct sim_options){.capacity_bytes = capacity}));
        OK(allocator_create("", -1, &allocator));
        status = workload_program_run(
            graphs(),
            &(struct workload_options){.allocator = allocator, .variant = variant, .seed = 1},
            &result);
        if (status != BASE_OK) BASE_CHECK_EQ(status, BASE_OUT_OF_MEMORY);
        nothing_stays(allocator);
        allocator_destroy(allocator);
    }
}

//------------------------------------------------------------------------------------------------
// Captures by themselves.

struct stretch {
    struct allocator *allocator;
    cudaStream_t stream, side;
    bool joins_first, joins_last; // before the free of what the side stream used; behind it
    bool is_lost;                 // a call that is forbidden while it is captured
};

static void order(cudaStream_t stream, cudaStream_t before) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, before), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
}

static enum base_status stretch_work(void *context) {
    const struct stretch *const stretch = context;
    void *pointer;
    const enum base_status status =
        allocator_malloc(stretch->allocator, 0, BASE_MIB, stretch->stream, &pointer);
    if (status != BASE_OK) return status;
    BASE_CHECK_EQ(cudaMemsetAsync(pointer, 1, 1000, stretch->stream), cudaSuccess);
    order(stretch->side, stretch->stream);
    BASE_CHECK_EQ(cudaMemsetAsync(pointer, 2, 1000, stretch->side), cudaSuccess);
    OK(allocator_record_stream(stretch->allocator, pointer, stretch->side));
    if (stretch->joins_first) order(stretch->stream, stretch->side);
    OK(allocator_free(stretch->allocator, pointer));
    if (stretch->joins_last) order(stretch->stream, stretch->side);
    if (stretch->is_lost)
        BASE_CHECK_EQ(cudaStreamSynchronize(stretch->stream), cudaErrorStreamCaptureUnsupported);
    return BASE_OK;
}

static enum base_status stretch_capture_as(const char *config, struct stretch stretch) {
    struct workload_graph graph = {0};
    base_check_context("\"%s\", joins %d %d, is lost %d", config, stretch.joins_first,
                       stretch.joins_last, stretch.is_lost);
    configure("lazy", SIM_NUMERICS_ON);
    OK(allocator_create(config, -1, &stretch.allocator));
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stretch.stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stretch.side, cudaStreamNonBlocking), cudaSuccess);
    const struct workload_captures captures =
        workload_captures(stretch.allocator, 0, stretch.stream);
    const enum base_status status = workload_capture(
        &captures, (struct allocator_pool_id){.capture = 1}, stretch_work, &stretch, &graph);
    char message[BASE_STATUS_MESSAGE_SIZE];
    (void)snprintf(message, sizeof message, "%s", base_status_message());
    BASE_CHECK_EQ(graph.captures != NULL, status == BASE_OK);
    if (status == BASE_OK) OK(workload_graph_launch(&graph, stretch.stream));
    workload_graph_destroy(&graph);
    workload_graph_destroy(&graph); // none is nothing
    if (strcmp(captures.allocator->operations->name, "direct") != 0)
        nothing_stays(stretch.allocator);
    BASE_CHECK_EQ(cudaStreamDestroy(stretch.stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stretch.side), cudaSuccess);
    allocator_destroy(stretch.allocator);
    return status == BASE_OK ? status : base_status_set(status, "%s", message);
}

static enum base_status stretch_capture(const char *config, bool joins_first, bool joins_last) {
    return stretch_capture_as(
        config, (struct stretch){.joins_first = joins_first, .joins_last = joins_last});
}

// The first form of reuse puts a node behind the last join, where the free is: the driver refuses
// the end of the capture. Joined once more, it is well.
static void the_first_form_wants_a_join_behind_the_free(void) {
    static const char *const first_form = "graph_capture_record_stream_reuse:True,"
                                          "x_capture_reuse:markers";
    BASE_CHECK_EQ(stretch_capture("", true, false), BASE_OK);
    BASE_CHECK_EQ(stretch_capture("graph_capture_record_stream_reuse:True", true, false), BASE_OK);
    BASE_CHECK_EQ(stretch_capture(first_form, true, true), BASE_OK);
    BASE_CHECK_EQ(stretch_capture(first_form, false, true), BASE_OK);
    BASE_CHECK_EQ(stretch_capture(first_form, true, false), BASE_CUDA);
    BASE_CHECK(strstr(base_status_message(), "cudaErrorStreamCaptureUnjoined") != NULL);
    BASE_CHECK(strstr(base_status_message(), "x_capture_reuse:markers") != NULL);
    BASE_CHECK_EQ(stretch_capture("", false, false), BASE_CUDA);
    BASE_CHECK(strstr(base_status_message(), "a side stream did not come back") != NULL);
}

static void a_capture_that_is_lost_leaves_nothing(void) {
    static const char *const kinds[] = {"", "graph_capture_record_stream_reuse:True",
                                        "expandable_segments:True", "x_allocator:async"};
    for (size_t kind = 0; kind < COUNT(kinds); ++kind) {
        BASE_CHECK_EQ(stretch_capture_as(kinds[kind], (struct stretch){.joins_first = true,
                                                                       .joins_last = true,
                                                                       .is_lost = true}),
                      BASE_CUDA);
        BASE_CHECK(strstr(base_status_message(), "cudaErrorStreamCaptureInvalidated") != NULL);
    }
}

static void what_cannot_capture_says_so(void) {
    BASE_CHECK_EQ(stretch_capture("x_allocator:async", true, true), BASE_OK);
    BASE_CHECK_EQ(stretch_capture("x_allocator:direct", true, true), BASE_UNSUPPORTED);
    BASE_CHECK(strstr(base_status_message(), "with the allocator 'direct'") != NULL);
}

int main(int argc, char **argv) {
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
    for (size_t variant = 0; variant < COUNT(variants); ++variant) {
        for (uint64_t seed = 1; seed <= seeds; ++seed)
            launches_compute_what_the_work_does(variant, seed);
        little_memory_leaves_nothing(variants[variant]);
        failures_leave_nothing(variants[variant], SIM_CALL_STREAM_BEGIN_CAPTURE);
        failures_leave_nothing(variants[variant], SIM_CALL_GRAPH_INSTANTIATE);
        failures_leave_nothing(variants[variant], SIM_CALL_GRAPH_LAUNCH);
    }
    variants_agree();
    shapes_in_one_pool_take_less();
    reuse_takes_less();
    the_first_form_wants_a_join_behind_the_free();
    a_capture_that_is_lost_leaves_nothing();
    what_cannot_capture_says_so();
    base_check_context(NULL);
    return 0;
}
