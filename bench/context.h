// Where, when and with what a result was measured: the context keys of docs/results.md, the same in
// every result file.
//
//     struct bench_context context;
//     bench_context_collect(&options, &context);
//     bench_context_apply(&context);             // into Google Benchmark's JSON (bench/shim.h)
//     for (int i = 0; i < context.count; i++)    // into other files
//         ... context.entries[i].key, context.entries[i].value ...
//
// Values are text, numbers in decimal. What cannot be found out is "unknown", never left out.
#ifndef TIDEMARK_BENCH_CONTEXT_H
#define TIDEMARK_BENCH_CONTEXT_H

#include <stdint.h>

#define BENCH_VERSION "0.1.0"
#define BENCH_RESULT_SCHEMA "1"
#define BENCH_CONTEXT_ENTRY_COUNT_MAX 16

struct bench_context_options {
    uint64_t seed;
    int pinned_cpu;       // of the measuring thread; negative: binding failed
    const char *capacity; // what to say instead of the device's memory; NULL: ask CUDA
};

struct bench_context_entry {
    const char *key;
    char value[256];
};
struct bench_context {
    struct bench_context_entry entries[BENCH_CONTEXT_ENTRY_COUNT_MAX];
    int count;
};

// Asks CUDA (device 0), hwloc, the system, and git for the commit of the checkout that `bazel run`
// names (BUILD_WORKSPACE_DIRECTORY): some 10 ms, so call it before measuring. Initializes CUDA.
void bench_context_collect(const struct bench_context_options *options,
                           struct bench_context *context);

// Hands all entries to bench_context_set.
void bench_context_apply(const struct bench_context *context);

// What a measuring program begins with: binds the calling thread to a core (a line of PROGRAM on
// stderr says what hindered it), collects and applies. CAPACITY as in the options.
void bench_context_begin(const char *program, uint64_t seed, const char *capacity,
                         struct bench_context *context);

// What stands above a table: device, CPU, load and seed; the machine. Two lines, to stdout.
void bench_context_print(const struct bench_context *context);

// The value of KEY; NULL if there is none.
const char *bench_context_value(const struct bench_context *context, const char *key);

#endif
