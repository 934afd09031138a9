// See context.h.
#include "bench/context.h"

#include "base/check.h"
#include "bench/pin.h"
#include "bench/shim.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void add(struct bench_context *context, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(struct bench_context *context, const char *key, const char *format, ...) {
    BASE_CHECK_LT(context->count, BENCH_CONTEXT_ENTRY_COUNT_MAX);
    struct bench_context_entry *entry = &context->entries[context->count++];
    entry->key = key;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(entry->value, sizeof entry->value, format, arguments);
    va_end(arguments);
}

// Asked at run time: a commit stamped in at build time would make every commit rebuild the
// programs. The binary may be older than the checkout only when it is run without Bazel, and then
// the folder is not known.
static void add_commit(struct bench_context *context) {
    char commit[64] = "";
    if (getenv("BUILD_WORKSPACE_DIRECTORY") != NULL) {
        FILE *git = popen("git -C \"$BUILD_WORKSPACE_DIRECTORY\" describe --always --dirty "
                          "--abbrev=12 --exclude='*' 2>/dev/null",
                          "r");
        if (git != NULL) {
            if (fgets(commit, sizeof commit, git) == NULL) commit[0] = '\0';
            pclose(git);
        }
        commit[strcspn(commit, "\n")] = '\0';
    }
    add(context, "tidemark_commit", "%s", commit[0] ? commit : "unknown");
}

static void add_capacity(struct bench_context *context, const char *instead) {
    size_t free_bytes, total_bytes;
    if (instead != NULL)
        add(context, "capacity_bytes", "%s", instead);
    else if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess)
        add(context, "capacity_bytes", "%zu", total_bytes);
    else
        add(context, "capacity_bytes", "unknown");
}

static void add_device(struct bench_context *context) {
#ifdef TIDEMARK_SIMULATOR
    add(context, "cuda", "simulator");
#else
    int runtime = 0, driver = 0;
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess &&
        cudaDriverGetVersion(&driver) == cudaSuccess)
        add(context, "cuda", "runtime %d.%d, driver %d.%d", runtime / 1000, runtime % 1000 / 10,
            driver / 1000, driver % 1000 / 10);
    else
        add(context, "cuda", "unknown");
#endif
    static struct cudaDeviceProp properties; // too large for comfort on a stack
    add(context, "device", "%s",
        cudaGetDeviceProperties(&properties, 0) == cudaSuccess ? properties.name : "unknown");
}

void bench_context_collect(const struct bench_context_options *options,
                           struct bench_context *context) {
    char topology[256];
    double load[1];
    context->count = 0;
    add(context, "tidemark_schema", BENCH_RESULT_SCHEMA);
    add(context, "tidemark_version", BENCH_VERSION);
    add_commit(context);
    add(context, "compiler", COMPILER);
    add_device(context);
    add_capacity(context, options->capacity);
    bench_topology_line(topology, sizeof topology);
    add(context, "topology", "%s", topology);
    if (options->pinned_cpu < 0)
        add(context, "pinned_cpu", "none");
    else
        add(context, "pinned_cpu", "%d", options->pinned_cpu);
    if (getloadavg(load, 1) == 1)
        add(context, "load_1min", "%.2f", load[0]);
    else
        add(context, "load_1min", "unknown");
    add(context, "seed", "%" PRIu64, options->seed);
}

void bench_context_apply(const struct bench_context *context) {
    for (int i = 0; i < context->count; i++)
        bench_context_set(context->entries[i].key, context->entries[i].value);
}

const char *bench_context_value(const struct bench_context *context, const char *key) {
    for (int i = 0; i < context->count; i++)
        if (strcmp(context->entries[i].key, key) == 0) return context->entries[i].value;
    return NULL;
}

void bench_context_begin(const char *program, uint64_t seed, const char *capacity,
                         struct bench_context *context) {
    int cpu = -1;
    if (bench_pin_thread(0, &cpu) != BASE_OK)
        fprintf(stderr, "%s: %s\n", program, base_status_message());
    const struct bench_context_options options = {
        .seed = seed, .pinned_cpu = cpu, .capacity = capacity};
    bench_context_collect(&options, context);
    bench_context_apply(context);
}

void bench_context_print(const struct bench_context *context) {
    printf("%s; pinned to CPU %s; load %s; seed %s\n%s\n", bench_context_value(context, "device"),
           bench_context_value(context, "pinned_cpu"), bench_context_value(context, "load_1min"),
           bench_context_value(context, "seed"), bench_context_value(context, "topology"));
}
