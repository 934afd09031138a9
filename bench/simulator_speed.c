// What the simulator costs on the host: single calls under the eager schedule beside one
// uncontended mutex lock and unlock; operations a second under the others; and how the cost of an
// operation grows with streams and with pending operations, beside a chase of pointers over as many
// nodes.
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
#include "base/random.h"
#include "base/thread.h"
#include "bench/companion.h"
#include "bench/context.h"
#include "bench/pin.h"
#include "bench/result_folder.h"
#include "bench/shim.h"
#include "simulator/sim.h"

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
#define SMOKE_COUNT_MAX 1000 // streams and pending operations of a smoke run

#define STREAMS_MAX 10000
#define PENDING_STREAMS 16
#define PENDING_MAX 1000000
#define MIXED_STREAMS 16
#define MIXED_SYNC_EVERY 1000
#define NODE_BYTES 64
#define CHASE_STEPS 4096

// --- Cases ---

enum group { GROUP_CALL, GROUP_SPEED, GROUP_STREAMS, GROUP_PENDING, GROUP_COUNT };

struct speed_case {
    char name[64];
    enum group group;
    const char *schedule; // NULL: what it is compared with
    void (*measure)(struct bench_state *state, void *argument);
    uint64_t count;     // streams, pending operations or nodes
    double limit;       // of GROUP_CALL, times the mutex; of GROUP_SPEED, operations a second
    uint64_t per_batch; // operations of one iteration
};

#define CASE_COUNT_MAX 64
static struct speed_case cases[CASE_COUNT_MAX];
static size_t case_count;

static bool smoke;
static const char *filter;
static uint64_t seed;

// --- The simulated machine ---

static cudaStream_t streams[STREAMS_MAX];
static cudaEvent_t events[STREAMS_MAX];
static uint64_t launched_count; // kernels that ran

static void empty_kernel(const void *argument) { (void)argument; }

static void machine_start(const struct speed_case *measured, int stream_count,
                          enum sim_numerics numerics) {
    char schedule[40];
    if (strcmp(measured->schedule, "random") == 0)
        snprintf(schedule, sizeof schedule, "random:%" PRIu64, seed);
    else
        snprintf(schedule, sizeof schedule, "%s", measured->schedule);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.capacity_bytes = 1 << 30, .numerics = numerics}),
        BASE_OK);
    for (int i = 0; i < stream_count; i++) {
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), cudaSuccess);
    }
}

// Leaves nothing pending and no failed call, or the benchmark fails.
static void machine_check(struct bench_state *state, int stream_count) {
    if (cudaDeviceSynchronize() != cudaSuccess)
        bench_fail(state, "the device failed");
    for (int i = 0; i < stream_count; i++)
        if (sim_stream_pending(streams[i]) != 0)
            bench_fail(state, "operations of stream %d never ran", i);
    for (int call = 0; call < SIM_CALL_KIND_COUNT; call++)
        if (sim_call_failed_count((enum sim_call)call) != 0)
            bench_fail(state, "%s failed", sim_call_name((enum sim_call)call));
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
}

// --- Single calls ---

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void measure_mutex(struct bench_state *state, void *argument) {
    (void)argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            pthread_mutex_lock(&mutex);
            __asm__ volatile("" ::: "memory");
            pthread_mutex_unlock(&mutex);
        }
}

#define MEASURE_CALL(NAME, NUMERICS, BEFORE, CALL)                                         \
    static void NAME(struct bench_state *state, void *argument) {                          \
        uint64_t count;                                                                    \
        machine_start(argument, 2, NUMERICS);                                              \
        BEFORE;                                                                            \
        while (bench_batch_begin(state, &count))                                           \
            for (uint64_t i = 0; i < count; i++)                                           \
                if (__builtin_expect((CALL) != cudaSuccess, 0)) bench_fail(state, #CALL);  \
        machine_check(state, 2);                                                           \
    }

MEASURE_CALL(measure_record, SIM_NUMERICS_OFF, (void)0, cudaEventRecord(events[0], streams[0]))
MEASURE_CALL(measure_query, SIM_NUMERICS_OFF, (void)cudaEventRecord(events[0], streams[0]),
             cudaEventQuery(events[0]))
MEASURE_CALL(measure_wait, SIM_NUMERICS_OFF, (void)cudaEventRecord(events[0], streams[0]),
             cudaStreamWaitEvent(streams[1], events[0], 0))
MEASURE_CALL(measure_launch, SIM_NUMERICS_ON, (void)0,
             sim_launch(streams[0], "empty", empty_kernel, NULL, 0))

// --- Operations in many streams ---

// Operation I of a mix: two kernels, a record, a wait for another stream's event.
static inline void mixed_operation(struct base_random *random, uint64_t i, uint64_t stream_count) {
    const uint64_t draw = base_random_next(random);
    const uint64_t at = (draw >> 32) * stream_count >> 32;
    switch (i & 3) {
    case 0:
    case 1:
        (void)sim_launch(streams[at], "empty", empty_kernel, NULL, 0);
        ++launched_count;
        break;
    case 2: (void)cudaEventRecord(events[at], streams[at]); break;
    default: {
        const uint64_t other = (draw & UINT32_MAX) * stream_count >> 32;
        (void)cudaStreamWaitEvent(streams[at], events[other], 0);
    }
    }
}

// COUNT operations over STREAM_COUNT streams, then a wait for them.
static void measure_batches(struct bench_state *state, const struct speed_case *measured,
                            uint64_t stream_count, uint64_t per_batch) {
    struct base_random random = base_random_init(seed, measured->name);
    uint64_t count, done = 0;
    machine_start(measured, (int)stream_count, SIM_NUMERICS_OFF);
    launched_count = 0;
    while (bench_batch_begin(state, &count))
        for (uint64_t batch = 0; batch < count; batch++) {
            for (uint64_t i = 0; i < per_batch; i++) mixed_operation(&random, i, stream_count);
            (void)cudaDeviceSynchronize();
            done += per_batch;
        }
    if (sim_call_count(SIM_CALL_LAUNCH) != launched_count || launched_count > done)
        bench_fail(state, "launches were lost");
    bench_items(state, done);
    machine_check(state, (int)stream_count);
}

static void measure_mixed(struct bench_state *state, void *argument) {
    measure_batches(state, argument, MIXED_STREAMS, MIXED_SYNC_EVERY);
}

static void measure_streams(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    measure_batches(state, measured, measured->count, measured->per_batch);
}

static void measure_pending(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    measure_batches(state, measured, PENDING_STREAMS, measured->count);
}

// --- The chase ---

struct node {
    struct node *next;
    char rest[NODE_BYTES - sizeof(struct node *)];
};

// One circle through all nodes, in random order.
static struct node *nodes_make(uint64_t count) {
    struct node *nodes = aligned_alloc(NODE_BYTES, count * sizeof *nodes);
    uint64_t *order = malloc(count * sizeof *order);
    BASE_CHECK(nodes != NULL && order != NULL);
    struct base_random random = base_random_init(seed, "nodes");
    for (uint64_t i = 0; i < count; i++) order[i] = i;
    for (uint64_t i = count - 1; i > 0; i--) {
        const uint64_t other = base_random_below(&random, i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint64_t i = 0; i < count; i++)
        nodes[order[i]].next = &nodes[order[(i + 1) % count]];
    free(order);
    return nodes;
}

static void measure_chase(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct node *nodes = nodes_make(measured->count);
    const struct node *at = nodes;
    uint64_t count;
    for (uint64_t i = 0; i < measured->count; i++) at = at->next; // touched once
    if (at != nodes) bench_fail(state, "the circle is broken");
    while (bench_batch_begin(state, &count))
        for (uint64_t batch = 0; batch < count; batch++)
            for (int i = 0; i < CHASE_STEPS; i++) at = at->next;
    __asm__ volatile("" ::"r"(at));
    free(nodes);
}

// --- What is run ---

static struct speed_case *case_add(enum group group, const char *schedule, const char *what,
                                   uint64_t count,
                                   void (*measure)(struct bench_state *, void *)) {
    static const char *const groups[GROUP_COUNT] = {"call", "speed", "streams", "pending"};
    BASE_CHECK_LT(case_count, CASE_COUNT_MAX);
    struct speed_case *added = &cases[case_count++];
    *added = (struct speed_case){
        .group = group, .schedule = schedule, .measure = measure, .count = count, .per_batch = 1};
    if (count == 0)
        snprintf(added->name, sizeof added->name, "simulator/%s/%s", groups[group], what);
    else
        snprintf(added->name, sizeof added->name, "simulator/%s/%s/%" PRIu64, groups[group], what,
                 count);
    return added;
}

static void cases_make(void) {
    static const char *const schedules[] = {"eager", "lazy", "random", "timed"};
    case_add(GROUP_CALL, NULL, "mutex_pair", 0, measure_mutex);
    case_add(GROUP_CALL, "eager", "event_record", 0, measure_record)->limit = 4;
    case_add(GROUP_CALL, "eager", "event_query", 0, measure_query)->limit = 4;
    case_add(GROUP_CALL, "eager", "stream_wait", 0, measure_wait)->limit = 4;
    case_add(GROUP_CALL, "eager", "launch", 0, measure_launch)->limit = 10;
    for (int i = 0; i < 4; i++) {
        struct speed_case *added =
            case_add(GROUP_SPEED, schedules[i], schedules[i], 0, measure_mixed);
        added->limit = i == 1 || i == 2 ? 2e6 : 0;
        added->per_batch = MIXED_SYNC_EVERY;
    }
    for (uint64_t count = 10; count <= STREAMS_MAX; count *= 10) {
        if (smoke && count > SMOKE_COUNT_MAX) break;
        case_add(GROUP_STREAMS, NULL, "chase", count, measure_chase)->per_batch = CHASE_STEPS;
        for (int i = 0; i < 3; i++)
            case_add(GROUP_STREAMS, schedules[i], schedules[i], count, measure_streams)->per_batch =
                4 * count;
    }
    for (uint64_t count = 1000; count <= PENDING_MAX; count *= 10) {
        if (smoke && count > SMOKE_COUNT_MAX) break;
        case_add(GROUP_PENDING, NULL, "chase", count, measure_chase)->per_batch = CHASE_STEPS;
        for (int i = 1; i < 3; i++)
            case_add(GROUP_PENDING, schedules[i], schedules[i], count, measure_pending)->per_batch =
                count;
    }
}

// --- What comes of it ---

static double ns_of(const struct bench_results *results, const struct speed_case *measured,
                    int round) {
    const size_t index = bench_results_find(results, measured->name);
    if (index == SIZE_MAX) return NAN;
    const struct bench_result result = bench_results_get(results, index);
    return result.cpu_ns[round] / (double)measured->per_batch;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
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
    return median(quotients, rounds);
}

// The slope of log cost over log count, for the cases of a group and schedule; NAN if some were not
// measured.
static double exponent(const struct bench_results *results, enum group group, const char *schedule,
                       int rounds) {
    double x[8], y[8], mean_x = 0, mean_y = 0, above = 0, below = 0;
    int count = 0;
    for (size_t i = 0; i < case_count; i++) {
        const char *own = cases[i].schedule;
        if (cases[i].group != group ||
            (schedule == NULL ? own != NULL : own == NULL || strcmp(own, schedule) != 0))
            continue;
        x[count] = log((double)cases[i].count);
        y[count++] = log(fastest_ns(results, &cases[i], rounds));
    }
    for (int i = 0; i < count; i++) {
        mean_x += x[i] / count;
        mean_y += y[i] / count;
    }
    for (int i = 0; i < count; i++) {
        above += (x[i] - mean_x) * (y[i] - mean_y);
        below += (x[i] - mean_x) * (x[i] - mean_x);
    }
    return above / below;
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
        if (cases[i].group != GROUP_CALL || isnan(ns_of(results, &cases[i], 0))) continue;
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
    printf("Two kernels, a record and a wait in turn, %d streams, a wait every %d:\n",
           MIXED_STREAMS, MIXED_SYNC_EVERY);
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].group != GROUP_SPEED || isnan(ns_of(results, &cases[i], 0))) continue;
        const double per_second = 1e9 / fastest_ns(results, &cases[i], rounds);
        printf("  %-32s %8.2f million operations/s", cases[i].name, per_second / 1e6);
        if (cases[i].limit > 0)
            printf("  (at least %.0f: %s)", cases[i].limit / 1e6,
                   verdict(per_second >= cases[i].limit));
        printf("\n");
        bench_results_counter(results, bench_results_find(results, cases[i].name),
                              "operations_per_second", per_second);
    }
}

static void print_growth(struct bench_results *results, enum group group, const char *what,
                         int rounds) {
    static const char *const schedules[] = {"eager", "lazy", "random"};
    const double chase = exponent(results, group, NULL, rounds);
    if (isnan(chase)) return;
    printf("Growth of an operation's cost with %s (wanted: at most 0.1 above the chase):\n", what);
    for (size_t i = 0; i < case_count; i++)
        if (cases[i].group == group)
            printf("  %-32s %8.1f ns\n", cases[i].name, fastest_ns(results, &cases[i], rounds));
    printf("  exponent: chase %.3f", chase);
    for (int i = 0; i < 3; i++) {
        const double slope = exponent(results, group, schedules[i], rounds);
        if (isnan(slope)) continue;
        printf(", %s %.3f (%s)", schedules[i], slope, verdict(slope <= chase + 0.1));
        for (size_t j = 0; j < case_count; j++)
            if (cases[j].group == group && cases[j].schedule != NULL &&
                strcmp(cases[j].schedule, schedules[i]) == 0) {
                const size_t index = bench_results_find(results, cases[j].name);
                bench_results_counter(results, index, "exponent", slope);
                bench_results_counter(results, index, "exponent_chase", chase);
            }
    }
    printf("\n");
}

// --- The program ---

static const struct base_option options[] = {
    {"smoke", NULL, BASE_OPTION_FLAG, &smoke,
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
        .rounds = smoke           ? 1
                  : common->quick ? ROUND_COUNT_QUICK
                                  : ROUND_COUNT,
        .iterations = smoke ? SMOKE_ITERATION_COUNT : 0,
        .progress_label = smoke ? NULL : program.name,
    };
    enum base_status status = bench_run(&run, results);
    if (status != BASE_OK || smoke) return status;
    operations_note(*results, run.rounds);
    print_calls(*results, run.rounds);
    print_speed(*results, run.rounds);
    print_growth(*results, GROUP_STREAMS, "streams", run.rounds);
    print_growth(*results, GROUP_PENDING, "pending operations", run.rounds);
    return status;
}

static enum base_status run(const struct base_common *common) {
    static const char *const file_names[] = {"simulator.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = BASE_OK;
    if (common->out != NULL)
        status = bench_result_folder_make(program.name, common->out, file_names, &folder);
    if (status != BASE_OK) return status;
    int cpu = -1;
    if (bench_pin_thread(0, &cpu) != BASE_OK)
        fprintf(stderr, "simulator: %s\n", base_status_message());
    struct bench_context context;
    bench_context_collect(&(struct bench_context_options){.seed = common->seed, .pinned_cpu = cpu},
                          &context);
    bench_context_apply(&context);
    seed = common->seed;
    cases_make();
    struct bench_results *results = NULL;
    bench_companion_begin();
    status = measure_all(common, &results);
    bench_companion_end();
    if (status == BASE_OK && smoke)
        printf("simulator: %zu cases, all operations ran (seed %" PRIu64 ")\n",
               bench_results_count(results), seed);
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
    if (status == BASE_OK) return 0;
    fprintf(stderr, "simulator: %s\n", base_status_message());
    return status == BASE_INTERRUPTED ? base_interrupt_exit_code() : base_status_exit_code(status);
}
