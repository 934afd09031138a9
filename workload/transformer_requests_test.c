// GPT-2 at its true size, accounting only, beside a recording of PyTorch training the same model.
// Argument: the recording.
#include "workload/program.h"
#include "workload/recorder.h"
#include "workload/requests.h"

#include "allocator/cca.h"
#include "base/check.h"
#include "simulator/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void ok(enum base_status status) {
    if (status != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static void train_and_record(const char *path) {
    struct allocator *allocator;
    struct workload_recorder *recorder;
    const struct workload_program *program;
    struct workload_result result;
    ok(sim_profile("h200"));
    ok(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}));
    ok(cca_allocator_create(&(struct cca_options){.config = ""}, &allocator));
    ok(workload_recorder_create(allocator, &recorder));
    ok(workload_program_find("transformer", &program));
    ok(workload_program_run(
        program,
        &(struct workload_options){.allocator = workload_recorder_allocator(recorder),
                                   .size = WORKLOAD_TRUE,
                                   .seed = 1,
                                   .without_values = true},
        &result));
    ok(workload_recorder_write(recorder, path));
    workload_recorder_destroy(recorder);
    allocator_destroy(allocator);
}

static struct workload_requests requests_of(const char *path) {
    struct trace *trace;
    struct workload_requests requests;
    ok(trace_read(path, NULL, &trace));
    ok(workload_requests_of(trace, 0, &requests));
    trace_destroy(trace);
    return requests;
}

int main(int argc, char **argv) {
    const char *folder = getenv("TEST_TMPDIR");
    char path[4096];
    struct workload_requests_difference difference;
    BASE_CHECK_EQ(argc, 2);
    (void)snprintf(path, sizeof path, "%s/gpt2.tmt", folder != NULL ? folder : "/tmp");
    train_and_record(path);
    struct workload_requests run = requests_of(path), recorded = requests_of(argv[1]);
    ok(workload_requests_compare(&run, &recorded, &difference));
    printf("peak %+.3f %%, allocations %+.3f %%, distance %.4f, %zu of %zu steps in common\n",
           100 * difference.peak, 100 * difference.count, difference.size_distance,
           difference.common, recorded.step_count);
    BASE_CHECK(fabs(difference.peak) < 0.05);
    BASE_CHECK(fabs(difference.count) < 0.10);
    BASE_CHECK(difference.size_distance < 0.10);
    workload_requests_difference_deinit(&difference);
    workload_requests_deinit(&run);
    workload_requests_deinit(&recorded);
    return 0;
}
