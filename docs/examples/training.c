// What training GPT-2 asks of an allocator, here and in recordings of PyTorch: docs/training.md
// tells the story.
#include "allocator/cca.h"
#include "base/check.h"
#include "base/options.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "workload/program.h"
#include "workload/recorder.h"
#include "workload/requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        const enum base_status ok_status = (call);                                                 \
        if (ok_status != BASE_OK) fprintf(stderr, "training: %s\n", base_status_message());        \
        BASE_CHECK_EQ(ok_status, BASE_OK);                                                         \
    } while (0)

static const struct side {
    const char *variant, *recording;
    uint64_t steps;
} sides[] = {
    {"mixed", "trace/bundled/gpt2_bf16__default.tmt", 4},
    {"checkpoint", "trace/bundled/gpt2_ckpt__default.tmt", 4},
    {"full", "trace/bundled/gpt2_fp32__default.tmt", 3},
};
#define SIDE_COUNT (sizeof sides / sizeof sides[0])

static struct workload_requests requests_of(const char *path) {
    struct trace *trace;
    struct workload_requests requests;
    OK(trace_read(path, NULL, &trace));
    OK(workload_requests_of(trace, 0, &requests));
    trace_destroy(trace);
    return requests;
}

// Trains on a device with the multiprocessors of the recorded one, on which nothing is computed.
static struct workload_requests train(const struct side *side) {
    struct allocator *allocator;
    struct workload_recorder *recorder;
    const struct workload_program *program;
    struct workload_result result;
    char path[] = "/tmp/training-XXXXXX";
    const int file = mkstemp(path);
    BASE_CHECK(file >= 0);
    (void)close(file);
    OK(sim_profile("h200"));
    OK(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}));
    OK(cca_allocator_create(&(struct cca_options){.config = ""}, &allocator));
    OK(workload_recorder_create(allocator, &recorder));
    OK(workload_program_find("transformer", &program));
    const struct workload_options options = {.allocator = workload_recorder_allocator(recorder),
                                             .variant = side->variant,
                                             .size = WORKLOAD_TRUE,
                                             .seed = 1,
                                             .steps = side->steps,
                                             .without_values = true};
    OK(workload_program_run(program, &options, &result));
    OK(workload_recorder_write(recorder, path));
    workload_recorder_destroy(recorder);
    allocator_destroy(allocator);
    struct workload_requests requests = requests_of(path);
    (void)unlink(path);
    return requests;
}

static void compare(const struct side *side, const struct workload_requests *run,
                    const struct workload_requests *recorded) {
    struct workload_requests_difference difference;
    OK(workload_requests_compare(run, recorded, &difference));
    printf("%-12s %8" PRIu64 " %8" PRIu64 " %12zu %8zu %10.3f %10.1f %%\n", side->variant,
           run->peak_bytes / BASE_MIB, recorded->peak_bytes / BASE_MIB, run->count, recorded->count,
           difference.size_distance,
           100 * (double)difference.common / (double)recorded->step_count);
    workload_requests_difference_deinit(&difference);
}

static int most_bytes(const void *a, const void *b) {
    const struct workload_size_use *left = a, *right = b;
    const uint64_t of_left = left->size * left->count_b, of_right = right->size * right->count_b;
    return of_left > of_right ? -1 : of_left < of_right;
}

#define SIZES_SHOWN 12
static void show_peak(const struct workload_requests *run,
                      const struct workload_requests *recorded) {
    struct workload_size_use *uses;
    size_t count;
    uint64_t rest_a = 0, rest_b = 0, bytes = 0;
    OK(workload_requests_at_peaks(run, recorded, &uses, &count));
    qsort(uses, count, sizeof *uses, most_bytes);
    printf("MiB a block      blocks      PyTorch's     MiB together\n");
    for (size_t i = 0; i < count; ++i) {
        if (i >= SIZES_SHOWN) {
            rest_a += uses[i].count_a;
            rest_b += uses[i].count_b;
            bytes += uses[i].size * uses[i].count_b;
            continue;
        }
        printf("%11.6g %11" PRIu64 " %14" PRIu64 " %16.0f\n",
               (double)uses[i].size / (double)BASE_MIB, uses[i].count_a, uses[i].count_b,
               (double)(uses[i].size * uses[i].count_b) / (double)BASE_MIB);
    }
    printf("%11s %11" PRIu64 " %14" PRIu64 " %16.0f\n", "smaller", rest_a, rest_b,
           (double)bytes / (double)BASE_MIB);
    free(uses);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "training",
        .summary = "What training GPT-2 asks of an allocator, beside recordings of PyTorch.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    char root[2048]; // where the recordings are, before options change to the user's folder
    BASE_CHECK(getcwd(root, sizeof root) != NULL);
    base_options_parse(&program, argc, argv, &common);
    struct workload_requests first_run = {0}, first_recorded = {0};
    printf("%-12s %17s %21s %10s %12s\n", "", "peak, MiB", "allocations", "distance", "in common");
    printf("%-12s %8s %8s %12s %8s %10s %12s\n", "", "here", "PyTorch", "here", "PyTorch",
           "of sizes", "order");
    for (size_t i = 0; i < SIDE_COUNT; ++i) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", root, sides[i].recording);
        struct workload_requests run = train(&sides[i]), recorded = requests_of(path);
        compare(&sides[i], &run, &recorded);
        if (i == 0) {
            first_run = run;
            first_recorded = recorded;
            continue;
        }
        workload_requests_deinit(&run);
        workload_requests_deinit(&recorded);
    }
    show_peak(&first_run, &first_recorded);
    workload_requests_deinit(&first_run);
    workload_requests_deinit(&first_recorded);
    return 0;
}
