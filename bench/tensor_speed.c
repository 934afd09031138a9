// What the reference tensor costs on the host: a view beside a malloc and free, an empty tensor
// beside its allocator's pair, operators a second where the device only accounts, products beside
// OpenBLAS, element work beside plain loops.
//
// How it measures. All benchmarks alternate in rounds, and a case's neighbours are what it is
// compared with; told are the fastest rounds. A second thread is alive throughout, since glibc
// takes locks more cheaply in a process of one thread. Results are compared with the loops', and
// each benchmark ends with no block left.
#include "bench/tensor_speed.h"
#include "allocator/cca.h"
#include "base/check.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/size.h"
#include "bench/companion.h"
#include "bench/context.h"
#include "bench/result_folder.h"
#include "bench/rounds.h"
#include "tensor/host_allocator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define ROUND_COUNT 11
#define ROUND_COUNT_QUICK 5
#define MIN_TIME_S 0.01
#define MIN_TIME_QUICK_S 0.003
#define SMOKE_ITERATION_COUNT 3
#define CAPACITY_BYTES (4 * BASE_GIB) // little: instruction counters have few addresses

#define CASE_COUNT_MAX 96
static struct speed_case cases[CASE_COUNT_MAX];
static size_t case_count;

static bool is_smoke;
static const char *filter;
static uint64_t iterations;

struct speed_case *speed_case_add(const char *name, void (*measure)(struct bench_state *, void *)) {
    BASE_CHECK_LT(case_count, CASE_COUNT_MAX);
    struct speed_case *added = &cases[case_count++];
    *added = (struct speed_case){.measure = measure, .kind = TENSOR_CUDA, .operations = 1};
    snprintf(added->name, sizeof added->name, "tensor/%s", name);
    return added;
}

void speed_case_limit(struct speed_case *limited, double at_most, const struct speed_case *beside) {
    limited->at_most = at_most;
    limited->beside[0] = beside;
    limited->beside_times[0] = 1;
    limited->beside_count = 1;
}

//--------------------------------------------------------------------------------------------------
// The place

struct tensor_place speed_place_begin(enum tensor_device_kind kind, enum sim_numerics numerics) {
    struct tensor_place place = {.kind = kind};
    SPEED_OK(sim_configure(
        &(struct sim_options){.capacity_bytes = CAPACITY_BYTES, .numerics = numerics}));
    if (kind == TENSOR_CPU)
        SPEED_OK(tensor_host_allocator_create(false, &place.allocator));
    else
        SPEED_OK(cca_allocator_create(&(struct cca_options){.config = ""}, &place.allocator));
    return place;
}

void speed_place_end(struct bench_state *state, struct tensor_place *place) {
    struct allocator_stats stats;
    if (cudaDeviceSynchronize() != cudaSuccess) bench_fail(state, "the device failed");
    SPEED_OK(allocator_stats(place->allocator, 0, &stats));
    if (stats.allocation[ALLOCATOR_STAT_ALL].current != 0)
        bench_fail(state, "%" PRId64 " blocks are left",
                   stats.allocation[ALLOCATOR_STAT_ALL].current);
    allocator_destroy(place->allocator);
    for (int call = 0; call < SIM_CALL_KIND_COUNT; call++)
        if (sim_call_failed_count((enum sim_call)call) != 0)
            bench_fail(state, "%s failed", sim_call_name((enum sim_call)call));
}

//--------------------------------------------------------------------------------------------------
// What comes of it

static double fastest_ns(const struct bench_results *results, const struct speed_case *measured) {
    const size_t index = bench_results_find(results, measured->name);
    if (index == SIZE_MAX) return NAN;
    const struct bench_result result = bench_results_get(results, index);
    return bench_fastest_ns(&result, BENCH_CLOCK_CPU) / (double)measured->operations;
}

static double beside_ns(const struct bench_results *results, const struct speed_case *measured) {
    double beside = measured->beside_count > 0 ? 0 : NAN;
    for (int i = 0; i < measured->beside_count; i++)
        beside += measured->beside_times[i] * fastest_ns(results, measured->beside[i]);
    return beside;
}

static void limit_note(struct bench_results *results, const struct speed_case *limited,
                       double measured, double limit, bool is_within) {
    const size_t index = bench_results_find(results, limited->name);
    bench_results_counter(results, index, "measured", measured);
    bench_results_counter(results, index, "limit", limit);
    bench_results_counter(results, index, "within_limit", is_within);
}

// Notes what it prints.
static void row_print(struct bench_results *results, const struct speed_case *row, bool is_quiet) {
    const double ns = fastest_ns(results, row), beside = beside_ns(results, row);
    char told[96] = "";
    if (isnan(ns)) return;
    if (row->per_second_min > 0) {
        const double per_second = 1e9 / ns;
        const bool is_within = per_second >= row->per_second_min;
        snprintf(told, sizeof told, "%15.2f million/s  at least %4.1f  %s", per_second / 1e6,
                 row->per_second_min / 1e6, is_within ? "yes" : "NO");
        limit_note(results, row, per_second, row->per_second_min, is_within);
    } else if (!isnan(beside)) {
        const bool is_within = ns / beside <= row->at_most;
        const int length = snprintf(told, sizeof told, "%12.1f  %6.2f", beside, ns / beside);
        if (row->at_most > 0) {
            snprintf(told + length, sizeof told - (size_t)length, "  at most %4.1f  %s",
                     row->at_most, is_within ? "yes" : "NO");
            limit_note(results, row, ns / beside, row->at_most, is_within);
        }
    }
    if (!is_quiet) printf("  %-32s %12.1f %s\n", row->name, ns, told);
}

static void table_make(struct bench_results *results, bool is_quiet) {
    if (!is_quiet)
        printf("  %-32s %12s %12s  %6s\n", "one operation", "ns", "beside, ns", "times");
    for (size_t i = 0; i < case_count; i++) row_print(results, &cases[i], is_quiet);
}

//--------------------------------------------------------------------------------------------------
// The program

static const struct base_option options[] = {
    {"smoke", NULL, BASE_OPTION_FLAG, &is_smoke,
     "check every case with a few iterations and print no times"},
    {"filter", "REGEX", BASE_OPTION_TEXT, &filter, "measure only the benchmarks whose names match"},
    {"iterations", "N", BASE_OPTION_COUNT, &iterations,
     "exactly so many of each, in one round: for counts of instructions"},
    {0}};

static const struct base_program program = {
    .name = "tensor",
    .summary = "Measures what tensors cost on the host, beside their limits.",
    .details = "With --out, writes DIR/tensor.json (docs/results.md); --format json writes that to "
               "stdout instead of the table.",
    .common = BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK | BASE_COMMON_FORMAT,
    .options = options,
};

static enum base_status measure_all(const struct base_common *common,
                                    struct bench_results **results) {
    for (size_t i = 0; i < case_count; i++)
        bench_register(cases[i].name, cases[i].measure, &cases[i]);
    const bool is_counted = is_smoke || iterations > 0;
    const struct bench_options run = {
        .filter = filter,
        .min_time_s = common->quick ? MIN_TIME_QUICK_S : MIN_TIME_S,
        .rounds = is_counted      ? 1
                  : common->quick ? ROUND_COUNT_QUICK
                                  : ROUND_COUNT,
        .iterations = is_smoke ? SMOKE_ITERATION_COUNT : iterations,
        .progress_label = is_counted ? NULL : program.name,
    };
    return bench_run(&run, results);
}

static void print(const struct base_common *common, const struct bench_context *context,
                  struct bench_results *results) {
    if (is_smoke) {
        printf("tensor: %zu cases, results right, nothing left (seed %" PRIu64 ")\n",
               bench_results_count(results), common->seed);
    } else if (common->format_json) {
        table_make(results, true);
        bench_results_print(results);
    } else {
        bench_context_print(context);
        table_make(results, false);
    }
}

static enum base_status run(const struct base_common *common) {
    static const char *const file_names[] = {"tensor.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = BASE_OK;
    if (common->out != NULL)
        status = bench_result_folder_make(program.name, common->out, file_names, &folder);
    if (status != BASE_OK) return status;
    SPEED_OK(sim_configure(&(struct sim_options){.capacity_bytes = CAPACITY_BYTES}));
    struct bench_context context;
    bench_context_begin(program.name, common->seed, NULL, &context);
    speed_cases_host();
    speed_cases_work();
    struct bench_results *results = NULL;
    bench_companion_begin();
    status = measure_all(common, &results);
    bench_companion_end();
    if (status == BASE_OK) print(common, &context, results);
    if (status == BASE_OK && folder.path != NULL)
        status = bench_results_publish(results, folder.path, "tensor.json");
    bench_results_destroy(results);
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
