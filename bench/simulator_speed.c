// What the simulator costs on the host: single calls under the eager schedule beside one
// uncontended mutex lock and unlock; operations a second under the others, and with the race
// checker on; and how the cost of an operation grows with streams, with pending operations and with
// the nodes of a captured graph, beside a chase of pointers over as many nodes.
//
// How it measures. A second thread is alive throughout, since glibc takes locks more cheaply in a
// process of one thread. All benchmarks alternate in rounds: a quotient is taken within a round,
// where both met the same state of the machine, and the median of the rounds is told. Each
// benchmark checks before it reports that all its operations ran. Growth is the slope of a straight
// line through the logarithms of cost and count; memory caches alone give one above zero, which is
// what the chase shows.
#include "base/check.h"
#include "base/options.h"
#include "base/progress.h"
#include "bench/companion.h"
#include "bench/context.h"
#include "bench/result_folder.h"
#include "bench/rounds.h"
#include "bench/simulator_speed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUND_COUNT 11
#define ROUND_COUNT_QUICK 5
#define MIN_TIME_S 0.02
#define MIN_TIME_QUICK_S 0.005
#define SMOKE_ITERATION_COUNT 50

#define CASE_COUNT_MAX 96
static struct speed_case cases[CASE_COUNT_MAX];
static size_t case_count;

bool speed_smoke;
uint64_t speed_seed;
static const char *filter;

struct speed_case *speed_case_add(enum speed_group group, const char *series, const char *schedule,
                                  uint64_t count,
                                  void (*measure)(struct bench_state *, void *)) {
    static const char *const groups[SPEED_GROUP_COUNT] = {"call", "speed", "streams", "pending",
                                                          "capture"};
    const char *name = series == NULL ? "chase" : series;
    BASE_CHECK_LT(case_count, CASE_COUNT_MAX);
    struct speed_case *added = &cases[case_count++];
    *added = (struct speed_case){.group = group,
                                 .series = series,
                                 .schedule = schedule,
                                 .measure = measure,
                                 .count = count,
                                 .per_batch = 1};
    if (count == 0)
        snprintf(added->name, sizeof added->name, "simulator/%s/%s", groups[group], name);
    else
        snprintf(added->name, sizeof added->name, "simulator/%s/%s/%" PRIu64, groups[group], name,
                 count);
    return added;
}

static void cases_make(void) {
    speed_cases_calls();
    speed_cases_race();
    speed_cases_graph();
}

// --- What comes of it ---

static double ns_of(const struct bench_results *results, const struct speed_case *measured,
                    int round) {
    const size_t index = bench_results_find(results, measured->name);
    if (index == SIZE_MAX) return NAN;
    const struct bench_result result = bench_results_get(results, index);
    return result.cpu_ns[round] / (double)measured->per_batch;
}

static double fastest_ns(const struct bench_results *results, const struct speed_case *measured,
                         int rounds) {
    double fastest = ns_of(results, measured, 0);
    for (int i = 1; i < rounds; i++) fastest = fmin(fastest, ns_of(results, measured, i));
    return fastest;
}

static double times_mutex(const struct bench_results *results, const struct speed_case *measured,
                          int rounds) {
    double quotients[ROUND_COUNT];
    for (int i = 0; i < rounds; i++)
        quotients[i] = ns_of(results, measured, i) / ns_of(results, &cases[0], i);
    return bench_median(quotients, (size_t)rounds);
}

static bool is_of(const struct speed_case *measured, const char *series) {
    if (series == NULL || measured->series == NULL) return series == measured->series;
    return strcmp(measured->series, series) == 0;
}

// The slope of log cost over log count, for the cases of a group and series; NAN if some were not
// measured.
static double exponent(const struct bench_results *results, enum speed_group group,
                       const char *series, int rounds) {
    double x[8], y[8];
    size_t count = 0;
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].group != group || !is_of(&cases[i], series)) continue;
        x[count] = (double)cases[i].count;
        y[count++] = fastest_ns(results, &cases[i], rounds);
    }
    return bench_exponent(x, y, count);
}

// Iterations of different cases hold different numbers of operations.
static void operations_note(struct bench_results *results, int rounds) {
    for (size_t i = 0; i < case_count; i++) {
        const size_t index = bench_results_find(results, cases[i].name);
        if (index == SIZE_MAX) continue;
        bench_results_counter(results, index, "operations", (double)cases[i].per_batch);
        bench_results_counter(results, index, "ns_per_operation",
                              fastest_ns(results, &cases[i], rounds));
    }
}

static const char *verdict(bool reached) { return reached ? "within" : "MISSED"; }

static void print_calls(struct bench_results *results, int rounds) {
    printf("One call, eager (wanted: times one uncontended mutex lock and unlock):\n");
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].group != SPEED_GROUP_CALL || isnan(ns_of(results, &cases[i], 0))) continue;
        const double ns = fastest_ns(results, &cases[i], rounds);
        const double times = times_mutex(results, &cases[i], rounds);
        printf("  %-32s %8.1f ns", cases[i].name, ns);
        if (cases[i].limit > 0)
            printf("  %5.2fx  (at most %.0fx: %s)", times, cases[i].limit,
                   verdict(times <= cases[i].limit));
        printf("\n");
        const size_t index = bench_results_find(results, cases[i].name);
        bench_results_counter(results, index, "x_mutex", times);
    }
}

static void print_speed(struct bench_results *results, int rounds) {
    printf("Operations, 16 streams, a wait for all of them every 1,000 (checked: with the race "
           "checker on):\n");
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].group != SPEED_GROUP_SPEED || isnan(ns_of(results, &cases[i], 0))) continue;
        const double per_second = 1e9 / fastest_ns(results, &cases[i], rounds);
        printf("  %-32s %8.2f million operations/s", cases[i].name, per_second / 1e6);
        if (cases[i].limit > 0)
            printf("  (at least %.1f: %s)", cases[i].limit / 1e6,
                   verdict(per_second >= cases[i].limit));
        printf("\n");
        bench_results_counter(results, bench_results_find(results, cases[i].name),
                              "operations_per_second", per_second);
    }
}

static void growth_note(struct bench_results *results, enum speed_group group, const char *series,
                        double slope, double chase) {
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].group != group || !is_of(&cases[i], series)) continue;
        const size_t index = bench_results_find(results, cases[i].name);
        bench_results_counter(results, index, "exponent", slope);
        bench_results_counter(results, index, "exponent_chase", chase);
    }
}

// The series are those of the cases with the smallest count, which come first.
static void print_growth(struct bench_results *results, enum speed_group group, const char *what,
                         int rounds) {
    const double chase = exponent(results, group, NULL, rounds);
    uint64_t smallest = 0;
    if (isnan(chase)) return;
    printf("Growth of the cost of one with %s (wanted: at most 0.1 above the chase):\n", what);
    for (size_t i = 0; i < case_count; i++)
        if (cases[i].group == group)
            printf("  %-36s %8.1f ns\n", cases[i].name, fastest_ns(results, &cases[i], rounds));
    printf("  exponent: chase %.3f", chase);
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].group != group) continue;
        if (smallest == 0) smallest = cases[i].count;
        if (cases[i].count != smallest || cases[i].series == NULL) continue;
        const double slope = exponent(results, group, cases[i].series, rounds);
        if (isnan(slope)) continue;
        printf(", %s %.3f (%s)", cases[i].series, slope, verdict(slope <= chase + 0.1));
        growth_note(results, group, cases[i].series, slope, chase);
    }
    printf("\n");
}

// --- The program ---

static const struct base_option options[] = {
    {"smoke", NULL, BASE_OPTION_FLAG, &speed_smoke,
     "check every case with a few iterations and print no times"},
    {"filter", "REGEX", BASE_OPTION_TEXT, &filter, "measure only the benchmarks whose names match"},
    {0}};

static const struct base_program program = {
    .name = "simulator",
    .summary = "Measures what calls and operations of the simulated device cost on the host.",
    .details = "With --out, writes DIR/simulator.json (docs/results.md).",
    .common = BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK,
    .options = options,
};

static enum base_status measure_all(const struct base_common *common,
                                    struct bench_results **results) {
    for (size_t i = 0; i < case_count; i++)
        bench_register(cases[i].name, cases[i].measure, &cases[i]);
    const struct bench_options run = {
        .filter = filter,
        .min_time_s = common->quick ? MIN_TIME_QUICK_S : MIN_TIME_S,
        .rounds = speed_smoke           ? 1
                  : common->quick ? ROUND_COUNT_QUICK
                                  : ROUND_COUNT,
        .iterations = speed_smoke ? SMOKE_ITERATION_COUNT : 0,
        .progress_label = speed_smoke ? NULL : program.name,
    };
    enum base_status status = bench_run(&run, results);
    if (status != BASE_OK || speed_smoke) return status;
    operations_note(*results, run.rounds);
    print_calls(*results, run.rounds);
    print_speed(*results, run.rounds);
    print_growth(*results, SPEED_GROUP_STREAMS, "streams", run.rounds);
    print_growth(*results, SPEED_GROUP_PENDING, "pending operations", run.rounds);
    print_growth(*results, SPEED_GROUP_CAPTURE, "nodes of a graph", run.rounds);
    return status;
}

static enum base_status run(const struct base_common *common) {
    static const char *const file_names[] = {"simulator.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = BASE_OK;
    if (common->out != NULL)
        status = bench_result_folder_make(program.name, common->out, file_names, &folder);
    if (status != BASE_OK) return status;
    struct bench_context context;
    bench_context_begin(program.name, common->seed, NULL, &context);
    speed_seed = common->seed;
    cases_make();
    struct bench_results *results = NULL;
    bench_companion_begin();
    status = measure_all(common, &results);
    bench_companion_end();
    if (status == BASE_OK && speed_smoke)
        printf("simulator: %zu cases, all operations ran (seed %" PRIu64 ")\n",
               bench_results_count(results), speed_seed);
    if (status == BASE_OK && folder.path != NULL)
        status = bench_results_publish(results, folder.path, "simulator.json");
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
