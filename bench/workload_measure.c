// See workload_measure.h.
#include "bench/workload_measure.h"

#include "allocator/create.h"
#include "base/check.h"
#include "base/progress.h"
#include "tensor/tensor.h"

#include <stdlib.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#define ROUNDS_MAX 9

static enum base_status cuda_status(const char *call, cudaError_t error) {
    if (error == cudaSuccess) return BASE_OK;
    return base_status_set(BASE_CUDA, "%s: %s (%s)", call, cudaGetErrorName(error),
                           cudaGetErrorString(error));
}

//--------------------------------------------------------------------------------------------------
// The device of a pass.

#ifdef TIDEMARK_SIMULATOR

static enum base_status device_begin(const struct workload_program *program,
                                     const struct workload_measure_options *options, bool values) {
    const enum base_status status = sim_configure(
        &(struct sim_options){.device_count = program->device_count_min,
                              .capacity_bytes = options->capacity_bytes,
                              .numerics = values ? SIM_NUMERICS_ON : SIM_NUMERICS_OFF});
    return status == BASE_OK ? sim_schedule("timed") : status;
}

static void threads_begin(uint64_t seed) { sim_serialize(seed); }
static void threads_end(void) { sim_serialize_end(); }

bool workload_measure_has_devices(const struct workload_program *program) {
    return program->device_count_min <= SIM_DEVICE_COUNT_MAX;
}

#define HAS_VALUES_ALWAYS false

#else

static enum base_status device_begin(const struct workload_program *program,
                                     const struct workload_measure_options *options, bool values) {
    (void)program;
    (void)options;
    (void)values;
    return BASE_OK;
}

static void threads_begin(uint64_t seed) { (void)seed; }
static void threads_end(void) {}

bool workload_measure_has_devices(const struct workload_program *program) {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count >= program->device_count_min;
}

#define HAS_VALUES_ALWAYS true

#endif

// A pass: the program on a fresh device and allocator, which is still there at its end.
struct pass {
    const struct workload_program *program;
    const struct workload_measure_options *options;
    const char *config;
    struct allocator *allocator;
    struct workload_watch *watch; // NULL: none
};

static enum base_status pass_begin(struct pass *pass, bool values) {
    pass->allocator = NULL;
    pass->watch = NULL;
    enum base_status status = device_begin(pass->program, pass->options, values);
    if (status == BASE_OK)
        status = allocator_create(pass->config, pass->options->fraction, &pass->allocator);
    return status;
}

static enum base_status pass_watch(struct pass *pass, enum workload_watch_kind kind) {
    return workload_watch_create(pass->allocator, kind, &pass->watch);
}

static void pass_end(struct pass *pass) {
    workload_watch_destroy(pass->watch);
    allocator_destroy(pass->allocator);
}

static enum base_status pass_run(struct pass *pass, struct workload_options options,
                                 struct workload_result *result) {
    options.allocator =
        pass->watch != NULL ? workload_watch_allocator(pass->watch) : pass->allocator;
    options.seed = pass->options->seed;
    return workload_program_run(pass->program, &options, result);
}

//--------------------------------------------------------------------------------------------------
// Values.

static enum base_status check(const struct workload_program *program, const char *config,
                              const struct workload_measure_options *options,
                              struct workload_measured *measured) {
    struct pass pass = {.program = program, .options = options, .config = config};
    struct workload_result result;
    enum base_status status = pass_begin(&pass, true);
    if (status == BASE_OK)
        status = pass_run(&pass, (struct workload_options){.size = WORKLOAD_SMALL}, &result);
    pass_end(&pass);
    if (status == BASE_OK) measured->checksum = result.checksum;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Steps: an event at the beginning and one at the end of each, on the first device's own stream.

struct steps {
    cudaEvent_t *ends; // of all steps, behind that of the beginning
    uint64_t count, made, recorded;
    struct workload_watch *watch;
    struct workload_watch_totals first;
#ifdef TIDEMARK_SIMULATOR
    struct sim_interval first_end, last_end;
#endif
    enum base_status status; // the first that went wrong while the program ran
};

static enum base_status steps_record(struct steps *steps) {
    int before;
    if (steps->recorded >= steps->made) return BASE_OK;
    enum base_status status = cuda_status("cudaGetDevice", cudaGetDevice(&before));
    if (status == BASE_OK) status = cuda_status("cudaSetDevice", cudaSetDevice(0));
    if (status == BASE_OK)
        status = cuda_status("cudaEventRecord",
                             cudaEventRecord(steps->ends[steps->recorded++], tensor_stream(0)));
    const cudaError_t error = cudaSetDevice(before);
    return status == BASE_OK ? cuda_status("cudaSetDevice", error) : status;
}

static void step_end(void *context, uint64_t step) {
    struct steps *const steps = context;
    if (steps->status == BASE_OK) steps->status = steps_record(steps);
    if (step == 0) steps->first = workload_watch_totals(steps->watch);
#ifdef TIDEMARK_SIMULATOR
    steps->last_end = sim_time_interval();
    if (step == 0) steps->first_end = steps->last_end;
#endif
}

static enum base_status steps_begin(struct steps *steps, uint64_t count,
                                    struct workload_watch *watch) {
    *steps = (struct steps){.count = count, .watch = watch};
    steps->ends = calloc(count + 1, sizeof(cudaEvent_t));
    if (steps->ends == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %llu events",
                               (unsigned long long)count + 1);
    enum base_status status = BASE_OK;
    while (steps->made <= count && status == BASE_OK) {
        status = cuda_status("cudaEventCreate", cudaEventCreate(&steps->ends[steps->made]));
        if (status == BASE_OK) ++steps->made;
    }
    return status == BASE_OK ? steps_record(steps) : status;
}

static void steps_end(struct steps *steps) {
    for (uint64_t i = 0; i < steps->made; ++i)
        (void)cudaEventDestroy(steps->ends[i]);
    free(steps->ends);
}

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The smallest of SORTED that a PERCENT of them do not exceed.
static double percentile(const double *sorted, uint64_t count, uint64_t percent) {
    return sorted[(count * percent + 99) / 100 - 1];
}

static enum base_status elapsed_ns(const struct steps *steps, uint64_t from, double *ns) {
    float ms = 0;
    const cudaError_t error = cudaEventElapsedTime(&ms, steps->ends[from], steps->ends[from + 1]);
    *ns = (double)ms * 1e6;
    return cuda_status("cudaEventElapsedTime", error);
}

static enum base_status latencies_read(const struct steps *steps,
                                       struct workload_measured *measured) {
    const uint64_t count = steps->count - 1;
    double total = 0;
    double *const spent = calloc(count, sizeof *spent);
    if (spent == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for latencies");
    enum base_status status = elapsed_ns(steps, 0, &measured->first_ns);
    for (uint64_t i = 0; i < count && status == BASE_OK; ++i) {
        status = elapsed_ns(steps, i + 1, &spent[i]);
        total += spent[i];
    }
    qsort(spent, count, sizeof *spent, compare_numbers);
    measured->steps = steps->count;
    measured->mean_ns = total / (double)count;
    measured->p50_ns = percentile(spent, count, 50);
    measured->p90_ns = percentile(spent, count, 90);
    measured->p99_ns = percentile(spent, count, 99);
    measured->max_ns = spent[count - 1];
    free(spent);
    if (status == BASE_OK && !(total > 0))
        return base_status_set(BASE_CHECK_FAILED, "%llu steps took no time",
                               (unsigned long long)count);
    measured->steps_per_second = 1e9 / measured->mean_ns;
#ifdef TIDEMARK_SIMULATOR
    measured->steps_per_second_low =
        1e9 * (double)count / (double)(steps->last_end.high_ns - steps->first_end.high_ns);
    measured->steps_per_second_high =
        1e9 * (double)count / (double)(steps->last_end.low_ns - steps->first_end.low_ns);
#endif
    return status;
}

static enum base_status memory_read(const struct pass *pass, struct workload_measured *measured) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < pass->program->device_count_min && status == BASE_OK; ++device) {
        struct allocator_stats stats;
        status = allocator_stats(pass->allocator, device, &stats);
        if (status != BASE_OK) return status;
        const int64_t reserved = stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
        measured->requests += stats.allocation[ALLOCATOR_STAT_ALL].allocated;
        measured->peak_allocated_bytes += stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak;
        measured->peak_active_bytes += stats.active_bytes[ALLOCATOR_STAT_ALL].peak;
        measured->peak_requested_bytes += stats.requested_bytes[ALLOCATOR_STAT_ALL].peak;
        measured->peak_reserved_bytes += reserved;
        if (reserved > measured->largest_peak_reserved_bytes)
            measured->largest_peak_reserved_bytes = reserved;
        measured->device_mallocs += stats.num_device_alloc;
        measured->device_frees += stats.num_device_free;
        measured->retries += stats.num_alloc_retries;
        measured->waits_for_all += stats.num_sync_all_streams;
    }
    return status;
}

static enum base_status steps_run(struct pass *pass, struct steps *steps,
                                  struct workload_measured *measured) {
    const struct workload_options run = {.size = pass->options->size,
                                         .steps = pass->options->steps,
                                         .without_values = !HAS_VALUES_ALWAYS,
                                         .on_step = step_end,
                                         .context = steps};
    struct workload_result result;
    threads_begin(pass->options->seed);
    enum base_status status = pass_run(pass, run, &result);
    threads_end();
    if (status == BASE_OK) status = steps->status;
    if (status != BASE_OK) return status;
    BASE_CHECK_EQ(steps->recorded, steps->count + 1);
    measured->first = steps->first;
    measured->all = workload_watch_totals(pass->watch);
    status = latencies_read(steps, measured);
    return status == BASE_OK ? memory_read(pass, measured) : status;
}

static enum base_status steps_measure(const struct workload_program *program, const char *config,
                                      const struct workload_measure_options *options,
                                      struct workload_measured *measured) {
    struct pass pass = {.program = program, .options = options, .config = config};
    struct steps steps = {.ends = NULL};
    enum base_status status = pass_begin(&pass, HAS_VALUES_ALWAYS);
    if (status == BASE_OK) status = pass_watch(&pass, WORKLOAD_WATCH_STALLS);
    if (status == BASE_OK) status = steps_begin(&steps, options->steps, pass.watch);
    if (status == BASE_OK) status = steps_run(&pass, &steps, measured);
    steps_end(&steps);
    pass_end(&pass);
    return status;
}

//--------------------------------------------------------------------------------------------------
// Host time.

struct host {
    uint64_t last_step;
    struct workload_watch *watch; // NULL: none
    uint64_t first_ns, last_ns;   // of the process
    struct workload_watch_totals first, last;
};

static void host_step_end(void *context, uint64_t step) {
    struct host *const host = context;
    if (step != 0 && step != host->last_step) return;
    struct workload_watch_totals *const totals = step == 0 ? &host->first : &host->last;
    *(step == 0 ? &host->first_ns : &host->last_ns) = workload_watch_process_ns();
    if (host->watch != NULL) *totals = workload_watch_totals(host->watch);
}

static enum base_status host_run(const struct workload_program *program, const char *config,
                                 const struct workload_measure_options *options, bool is_watched,
                                 struct host *host) {
    struct pass pass = {.program = program, .options = options, .config = config};
    struct workload_result result;
    *host = (struct host){.last_step = options->steps - 1};
    enum base_status status = pass_begin(&pass, HAS_VALUES_ALWAYS);
    if (status == BASE_OK && is_watched) status = pass_watch(&pass, WORKLOAD_WATCH_CPU);
    host->watch = pass.watch;
    const struct workload_options run = {.size = options->size,
                                         .steps = options->steps,
                                         .without_values = !HAS_VALUES_ALWAYS,
                                         .on_step = host_step_end,
                                         .context = host};
    if (status == BASE_OK) status = pass_run(&pass, run, &result);
    pass_end(&pass);
    return status;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_numbers);
    return values[count / 2];
}

// The whole is that of a program that nobody watches; of the allocator's part the clock's own goes
// off.
static enum base_status host_measure(const struct workload_program *program, const char *config,
                                     const struct workload_measure_options *options,
                                     struct workload_measured *measured) {
    double allocator[ROUNDS_MAX], whole[ROUNDS_MAX], shares[ROUNDS_MAX], watch[ROUNDS_MAX];
    const double steps = (double)(options->steps - 1);
    const double clock_ns = (double)workload_watch_clock_ns();
    BASE_CHECK_LE(options->rounds, ROUNDS_MAX);
    for (int round = 0; round < options->rounds; ++round) {
        struct host watched, plain;
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
        enum base_status status = host_run(program, config, options, true, &watched);
        if (status == BASE_OK) status = host_run(program, config, options, false, &plain);
        if (status != BASE_OK) return status;
        const double calls = (double)(watched.last.calls - watched.first.calls);
        const double spent =
            (double)(watched.last.cpu_ns - watched.first.cpu_ns) - calls * clock_ns;
        whole[round] = (double)(plain.last_ns - plain.first_ns);
        allocator[round] = spent > 0 ? spent : 0;
        shares[round] = whole[round] > 0 ? allocator[round] / whole[round] : 0;
        watch[round] =
            calls > 0 ? ((double)(watched.last_ns - watched.first_ns) - whole[round]) / calls : 0;
    }
    measured->allocator_cpu_ns = median(allocator, options->rounds) / steps;
    measured->cpu_ns = median(whole, options->rounds) / steps;
    measured->allocator_share = median(shares, options->rounds);
    measured->watch_ns = median(watch, options->rounds);
    return BASE_OK;
}

enum base_status workload_measure(const struct workload_program *program, const char *config,
                                  const struct workload_measure_options *options,
                                  struct workload_measured *measured) {
    *measured = (struct workload_measured){.out_of_memory = false};
    BASE_CHECK_GE(options->steps, 2);
    enum base_status status = check(program, config, options, measured);
    if (status == BASE_OK) status = steps_measure(program, config, options, measured);
    if (status == BASE_OK) status = host_measure(program, config, options, measured);
    if (status != BASE_OUT_OF_MEMORY) return status;
    *measured = (struct workload_measured){.out_of_memory = true};
    return BASE_OK;
}
