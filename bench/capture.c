// What graph capture costs the allocator, and what reuse inside a capture saves: without it, in its
// first form and in the current one (docs/capture-reuse.md).
//
//     step     a transformer-like training step in one capture: each layer's weights are gathered
//              on a side stream, used on the main one, and given back; so are its gradients.
//              Reserved memory, nodes, and the allocator's part of the time
//     growth   time of a request and its free when so many nodes are captured before, beside a
//              chase of pointers over as many cache lines; the exponents are of a power law through
//              the ends
//     long     the time to capture a graph of 10,000 nodes, over that without reuse: the median of
//              rounds, each of which captures without, with, with, without
//
// Before a time is printed the result is checked: nothing is left behind. The driver's part is the
// simulator's. At the end stands what has a limit beside it; one that is missed ends nothing: times
// are no tests.
#include "allocator/captures.h"
#include "allocator/cca.h"
#include "base/check.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"
#include "bench/capture_results.h"
#include "bench/context.h"
#include "bench/result_folder.h"
#include "simulator/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)
#define OK(call) BASE_CHECK_EQ(call, BASE_OK)

enum form { OFF, FIRST, CURRENT, FORM_COUNT };
static const char *const form_names[FORM_COUNT] = {"off", "first form", "current"};
static const char *const form_keys[FORM_COUNT] = {"off", "first_form", "current"}; // of results
static const char *const configs[FORM_COUNT] = {"", "x_capture_reuse:markers",
                                                "graph_capture_record_stream_reuse:True"};
static const struct allocator_pool_id pool_id = {.capture = 1};

// Of this thread's own: what others do meanwhile does not count. It waits for nothing.
static uint64_t now_ns(void) {
    struct timespec time;
    BASE_CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

//--------------------------------------------------------------------------------------------------
// A capture on two streams, with the time that passes in the allocator.

struct capture {
    struct allocator *allocator;
    cudaStream_t main, side;
    struct cca_pool_filter filter;
    _Atomic(unsigned long long) id;
    cudaEvent_t event;
    uint64_t start_ns, allocator_ns, total_ns;
    int64_t reserved_bytes, allocated_bytes;
    size_t node_count;
};

static void capture_begin(struct capture *capture, enum form form) {
    *capture = (struct capture){0};
    OK(sim_configure(
        &(struct sim_options){.capacity_bytes = 512 * BASE_GIB, .numerics = SIM_NUMERICS_OFF}));
    OK(cca_allocator_create(&(struct cca_options){.config = configs[form]}, &capture->allocator));
    CALL(cudaStreamCreateWithFlags(&capture->main, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&capture->side, cudaStreamNonBlocking));
    CALL(cudaEventCreateWithFlags(&capture->event, cudaEventDisableTiming));
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    capture->filter = cca_capture_filter(&capture->id);
    capture->start_ns = now_ns();
    OK(cca_pool_begin(capture->allocator, 0, pool_id, &capture->filter));
    CALL(cudaStreamBeginCapture(capture->main, cudaStreamCaptureModeGlobal));
    CALL(cudaStreamGetCaptureInfo(capture->main, &status, &id, NULL, NULL, NULL, NULL));
    capture->id = id;
    OK(cca_capture_begin(capture->allocator, 0,
                         &(struct cca_capture){.id = id, .stream = capture->main}));
}

static void order(struct capture *capture, cudaStream_t from, cudaStream_t to) {
    CALL(cudaEventRecord(capture->event, from));
    CALL(cudaStreamWaitEvent(to, capture->event, 0));
}

// All blocks were freed. After the graph nothing is reserved.
static void capture_end(struct capture *capture) {
    cudaGraph_t graph;
    order(capture, capture->side, capture->main);
    CALL(cudaStreamEndCapture(capture->main, &graph));
    OK(cca_capture_end(capture->allocator, 0, capture->id));
    OK(cca_pool_end(capture->allocator, 0, pool_id));
    capture->total_ns = now_ns() - capture->start_ns;
    struct allocator_stats stats;
    OK(allocator_stats(capture->allocator, 0, &stats));
    capture->reserved_bytes = stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    capture->allocated_bytes = stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak;
    CALL(cudaGraphGetNodes(graph, NULL, &capture->node_count));
    CALL(cudaGraphDestroy(graph));
    OK(cca_pool_release(capture->allocator, 0, pool_id));
    OK(allocator_empty_cache(capture->allocator));
    OK(allocator_stats(capture->allocator, 0, &stats));
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    cca_check(capture->allocator);
    CALL(cudaEventDestroy(capture->event));
    CALL(cudaStreamDestroy(capture->main));
    CALL(cudaStreamDestroy(capture->side));
    allocator_destroy(capture->allocator);
}

static void *take(struct capture *capture, size_t size, cudaStream_t stream) {
    void *pointer;
    const uint64_t start = now_ns();
    OK(allocator_malloc(capture->allocator, 0, size, stream, &pointer));
    capture->allocator_ns += now_ns() - start;
    return pointer;
}
static void give(struct capture *capture, void *pointer) {
    const uint64_t start = now_ns();
    OK(allocator_free(capture->allocator, pointer));
    capture->allocator_ns += now_ns() - start;
}
static void record(struct capture *capture, void *pointer, cudaStream_t stream) {
    const uint64_t start = now_ns();
    OK(allocator_record_stream(capture->allocator, pointer, stream));
    capture->allocator_ns += now_ns() - start;
}

static void no_body(const void *argument) { (void)argument; }
static void launch(cudaStream_t stream) {
    CALL(sim_launch_kernel(stream, &(struct sim_kernel){.name = "kernel", .body = no_body}));
}

//--------------------------------------------------------------------------------------------------
// The step.

#define WEIGHTS (64 * BASE_MIB) // of a layer, gathered
#define ACTIVATION (24 * BASE_MIB)

// The side stream gathers the weights, the main one uses them for several kernels.
static void *gather(struct capture *capture) {
    void *const weights = take(capture, WEIGHTS, capture->side);
    launch(capture->side);
    order(capture, capture->side, capture->main);
    record(capture, weights, capture->main);
    return weights;
}

static void run_layer(struct capture *capture, void **activation, bool is_backward) {
    void *const weights = gather(capture);
    void *const next = take(capture, ACTIVATION, capture->main);
    for (int kernel = 0; kernel < 6; ++kernel) {
        void *const temporary = take(capture, ACTIVATION / 4, capture->main);
        launch(capture->main);
        give(capture, temporary);
    }
    give(capture, weights);
    if (is_backward) { // the gradients are reduced beside the next layer
        void *const gradients = take(capture, WEIGHTS, capture->main);
        launch(capture->main);
        order(capture, capture->main, capture->side);
        record(capture, gradients, capture->side);
        launch(capture->side);
        give(capture, gradients);
        give(capture, *activation);
        give(capture, next);
    } else {
        *activation = next;
    }
    order(capture, capture->main, capture->side);
}

static void run_step(struct capture *capture, enum form form, int layers) {
    void **const activations = malloc((size_t)layers * sizeof *activations);
    BASE_CHECK(activations != NULL);
    capture_begin(capture, form);
    launch(capture->main);
    order(capture, capture->main, capture->side);
    for (int layer = 0; layer < layers; ++layer)
        run_layer(capture, &activations[layer], false);
    for (int layer = layers; layer-- > 0;)
        run_layer(capture, &activations[layer], true);
    capture_end(capture);
    free(activations);
}

static void note_step(const struct capture *capture, enum form form) {
    const double spent = (double)capture->total_ns;
    const size_t result =
        capture_result(configs[form], &spent, 1, "capture/step/%s", form_keys[form]);
    capture_counter(result, "nodes", (double)capture->node_count);
    capture_counter(result, "peak_allocated_bytes", (double)capture->allocated_bytes);
    capture_counter(result, "peak_reserved_bytes", (double)capture->reserved_bytes);
    capture_counter(result, "allocator_share", (double)capture->allocator_ns / spent);
    capture_cases_done(1);
}

static void print_step(int layers) {
    capture_say("A training step of %d layers in one capture\n", layers);
    capture_say("%-12s %6s %14s %13s %9s %10s\n", "reuse", "nodes", "allocated MiB", "reserved MiB",
                "allocator", "capture ms");
    for (int form = 0; form < FORM_COUNT && !base_interrupted(); ++form) {
        struct capture capture;
        run_step(&capture, (enum form)form, layers);
        note_step(&capture, (enum form)form);
        capture_say("%-12s %6zu %14.0f %13.0f %8.1f%% %10.2f\n", form_names[form],
                    capture.node_count, (double)capture.allocated_bytes / (double)BASE_MIB,
                    (double)capture.reserved_bytes / (double)BASE_MIB,
                    100 * (double)capture.allocator_ns / (double)capture.total_ns,
                    (double)capture.total_ns / 1e6);
    }
}

//--------------------------------------------------------------------------------------------------
// Growth.

static void run_round(struct capture *capture) {
    void *const block = take(capture, 4 * BASE_MIB, capture->main);
    launch(capture->main);
    order(capture, capture->main, capture->side);
    launch(capture->side);
    record(capture, block, capture->side);
    give(capture, block);
    order(capture, capture->side, capture->main);
}

#define MEASURED_ROUNDS 64

// ns of a request, its record_stream and its free behind NODES nodes.
static double request_ns(enum form form, int nodes) {
    struct capture capture;
    capture_begin(&capture, form);
    for (int round = 0; round < nodes / 2; ++round)
        run_round(&capture);
    capture.allocator_ns = 0;
    for (int round = 0; round < MEASURED_ROUNDS; ++round)
        run_round(&capture);
    const double spent = (double)capture.allocator_ns / MEASURED_ROUNDS;
    capture_end(&capture);
    return spent;
}

// ns of a step from line to line, in an order that no prefetcher knows.
static double chase_ns(size_t lines, uint64_t seed) {
    struct line {
        uint32_t next;
        uint32_t unused[15];
    } *const memory = aligned_alloc(64, lines * sizeof *memory);
    uint32_t *const places = malloc(lines * sizeof *places);
    struct base_random random = base_random_init(seed, "chase");
    BASE_CHECK(memory != NULL && places != NULL);
    for (size_t index = 0; index < lines; ++index)
        places[index] = (uint32_t)index;
    for (size_t index = lines - 1; index > 0; --index) {
        const size_t other = base_random_below(&random, index + 1);
        const uint32_t kept = places[index];
        places[index] = places[other];
        places[other] = kept;
    }
    for (size_t index = 0; index < lines; ++index)
        memory[places[index]].next = places[(index + 1) % lines];
    const uint64_t steps = 1000000;
    uint32_t at = 0;
    for (size_t index = 0; index < lines; ++index)
        at = memory[at].next;
    const uint64_t start = now_ns();
    for (uint64_t step = 0; step < steps; ++step)
        at = memory[at].next;
    const double spent = (double)(now_ns() - start) / (double)steps;
    BASE_CHECK_LT(at, lines);
    free(memory);
    free(places);
    return spent;
}

static double exponent(double first, double last, double factor) {
    return log(last / first) / log(factor);
}

// The one behind the forms is the chase of pointers.
static size_t note_growth(int each, int nodes, double spent) {
    const bool is_form = each < FORM_COUNT;
    capture_cases_done(1);
    return capture_result(is_form ? configs[each] : "", &spent, 1, "capture/growth/%s/%d",
                          is_form ? form_keys[each] : "chase", nodes);
}

// What was measured beside its limit; less is better. Told with the result and, at the end, as a
// row.
struct verdict {
    double measured, limit;
};

static struct verdict judge(size_t result, double measured, double limit) {
    capture_counter(result, "limit", limit);
    capture_counter(result, "within_limit", measured <= limit);
    return (struct verdict){.measured = measured, .limit = limit};
}

// The present form may grow by so much more than a chase of pointers, as an exponent.
#define GROWTH_BEYOND_CHASE 0.1

static void print_growth(bool quick, uint64_t seed, struct verdict *verdict) {
    const int first = 100, last = quick ? 10000 : 100000, last_of_first_form = 1000;
    double ends[FORM_COUNT + 1][2], exponents[FORM_COUNT + 1];
    size_t first_results[FORM_COUNT + 1];
    capture_say("\nns of a request, its record_stream and its free behind so many nodes\n");
    capture_say("%8s %10s %12s %10s %14s\n", "nodes", "off", "first form", "current",
                "pointer chase");
    for (int nodes = first; nodes <= last && !base_interrupted(); nodes *= 10) {
        double spent[FORM_COUNT + 1] = {0};
        for (int form = 0; form < FORM_COUNT; ++form)
            if (form != FIRST || nodes <= last_of_first_form)
                spent[form] = request_ns((enum form)form, nodes);
        spent[FORM_COUNT] = chase_ns((size_t)nodes, seed);
        for (int each = 0; each <= FORM_COUNT; ++each) {
            if (spent[each] <= 0) continue;
            const size_t result = note_growth(each, nodes, spent[each]);
            if (nodes == first) {
                ends[each][0] = spent[each];
                first_results[each] = result;
            }
            ends[each][1] = spent[each];
        }
        capture_say("%8d %10.0f ", nodes, spent[OFF]);
        if (nodes <= last_of_first_form)
            capture_say("%12.0f", spent[FIRST]);
        else
            capture_say("%12s", "-");
        capture_say(" %10.0f %14.2f\n", spent[CURRENT], spent[FORM_COUNT]);
    }
    if (base_interrupted()) return;
    for (int each = 0; each <= FORM_COUNT; ++each) {
        const int last_of_it = each == FIRST ? last_of_first_form : last;
        exponents[each] = exponent(ends[each][0], ends[each][1], (double)last_of_it / first);
        capture_counter(first_results[each], "exponent", exponents[each]);
    }
    capture_say("%8s %10.2f %12.2f %10.2f %14.2f\n", "exponent", exponents[OFF], exponents[FIRST],
                exponents[CURRENT], exponents[FORM_COUNT]);
    *verdict = judge(first_results[CURRENT], exponents[CURRENT],
                     exponents[FORM_COUNT] + GROWTH_BEYOND_CHASE);
}

//--------------------------------------------------------------------------------------------------
// A long capture: each tensor is used by several kernels, as in a program.

#define ROUNDS_MAX 61
#define ROUNDS_QUICK 21
#define LONG_LIMIT 1.05

static uint64_t long_ns(enum form form, int nodes) {
    struct capture capture;
    capture_begin(&capture, form);
    for (int round = 0; round < nodes / 20; ++round) {
        run_round(&capture);
        for (int kernel = 0; kernel < 18; ++kernel)
            launch(capture.main);
    }
    capture_end(&capture);
    return capture.total_ns;
}

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Both with reuse stand between those without: what drifts while a round lasts meets both alike.
static void measure_round(int nodes, double *without, double *with) {
    *without = (double)long_ns(OFF, nodes) / 2;
    *with = (double)long_ns(CURRENT, nodes) / 2;
    *with += (double)long_ns(CURRENT, nodes) / 2;
    *without += (double)long_ns(OFF, nodes) / 2;
}

static void print_long(int nodes, int rounds, struct verdict *verdict) {
    double without[ROUNDS_MAX], with[ROUNDS_MAX], quotients[ROUNDS_MAX];
    measure_round(nodes, &without[0], &with[0]); // the first one warms up
    for (int round = 0; round < rounds && !base_interrupted(); ++round) {
        measure_round(nodes, &without[round], &with[round]);
        quotients[round] = with[round] / without[round];
        capture_cases_done(1);
    }
    if (base_interrupted()) return;
    qsort(quotients, (size_t)rounds, sizeof *quotients, compare_numbers);
    const double median = quotients[rounds / 2];
    (void)capture_result(configs[OFF], without, rounds, "capture/long/off");
    const size_t result = capture_result(configs[CURRENT], with, rounds, "capture/long/current");
    capture_counter(result, "nodes", nodes);
    capture_counter(result, "x_off", median);
    capture_say("\nCapture of %d nodes, current form over none: %.3f (median of %d rounds; half of "
                "them %.3f to %.3f, all %.3f to %.3f)\n",
                nodes, median, rounds, quotients[rounds / 4], quotients[rounds - 1 - rounds / 4],
                quotients[0], quotients[rounds - 1]);
    *verdict = judge(result, median, LONG_LIMIT);
}

static void print_verdict(const char *text, const struct verdict *verdict) {
    capture_say("%-52s %9.2f %9.2f  %s\n", text, verdict->measured, verdict->limit,
                verdict->measured <= verdict->limit ? "yes" : "NO");
}

static void print_verdicts(const struct verdict *growth, const struct verdict *at_length) {
    if (base_interrupted()) return;
    capture_say("\n%-52s %9s %9s  %s\n", "The current form", "measured", "limit", "kept");
    print_verdict("growth of a request: exponent, chase + 0.1", growth);
    print_verdict("capture of 10000 nodes, over that without reuse", at_length);
}

//--------------------------------------------------------------------------------------------------
// The program.

static bool smoke;

static const struct base_option options[] = {
    {"smoke", NULL, BASE_OPTION_FLAG, &smoke, "each case once, small, and no times"}, {0}};

static const struct base_program program = {
    .name = "capture",
    .summary = "What graph capture costs the allocator, with reuse and without.",
    .details = "With --out, writes DIR/capture.json (docs/results.md); --format json writes that "
               "to stdout instead of the tables.",
    .common = BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK | BASE_COMMON_FORMAT,
    .options = options,
};

static void run_smoke(void) {
    struct capture capture;
    int64_t reserved[FORM_COUNT];
    for (int form = 0; form < FORM_COUNT; ++form) {
        run_step(&capture, (enum form)form, 8);
        reserved[form] = capture.reserved_bytes;
        (void)request_ns((enum form)form, 100);
        (void)long_ns((enum form)form, 200);
    }
    BASE_CHECK_LT(reserved[CURRENT], reserved[OFF]);
    printf("capture: all cases, nothing left behind\n");
}

static enum base_status measure(const struct base_common *common, const char *folder) {
    const int rounds = common->quick ? ROUNDS_QUICK : ROUNDS_MAX;
    struct verdict growth = {0}, at_length = {0};
    struct bench_context context;
    bench_context_begin(program.name, common->seed, NULL, &context);
    capture_results_begin(common->format_json, FORM_COUNT + (FORM_COUNT + 1) * 4 + (size_t)rounds);
    if (!common->format_json) bench_context_print(&context);
    print_step(32);
    print_growth(common->quick, common->seed, &growth);
    print_long(10000, rounds, &at_length);
    print_verdicts(&growth, &at_length);
    const enum base_status status =
        base_interrupted() ? base_status_set(BASE_INTERRUPTED, "interrupted") : BASE_OK;
    return capture_results_end(status, folder);
}

static enum base_status run(const struct base_common *common) {
    static const char *const file_names[] = {"capture.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = BASE_OK;
    if (common->out != NULL)
        status = bench_result_folder_make(program.name, common->out, file_names, &folder);
    if (status != BASE_OK) return status;
    if (smoke)
        run_smoke();
    else
        status = measure(common, folder.path);
    bench_result_folder_release(&folder);
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    const enum base_status status = run(&common);
    return base_program_end(&program, status);
}
