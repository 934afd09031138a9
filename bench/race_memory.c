// Does the race checker's memory stay flat? Runs a program without races and without any host wait
// for a long time, and prints what the process holds as it goes.
//
// History that nothing can conflict with any more is dropped, so from the first tenth to the last
// the process may grow by 5 % at most; more is a failed check.
#include "base/check.h"
#include "base/options.h"
#include "base/progress.h"
#include "bench/race_load.h"
#include "simulator/sim_race.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define OPERATIONS_DEFAULT 10000000
#define STEP_COUNT 10
#define GROWTH_MAX 1.05

static uint64_t operation_count = OPERATIONS_DEFAULT;

static const struct base_option options[] = {
    {"operations", "N", BASE_OPTION_COUNT, &operation_count,
     "so many operations (default 10,000,000)"},
    {0}};

static const struct base_program program = {
    .name = "race_memory",
    .summary = "Runs the race checker for a long time and checks that its memory stays flat.",
    .options = options,
};

// Resident bytes, as the kernel counts them.
static uint64_t resident_bytes(void) {
    uint64_t total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    BASE_CHECK(file != NULL);
    BASE_CHECK_EQ(fscanf(file, "%" SCNu64 " %" SCNu64, &total, &resident), 2);
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static enum base_status run(void) {
    struct race_load load;
    uint64_t first = 0, last = 0;
    enum base_status status =
        sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF});
    if (status == BASE_OK) status = sim_race_start(&(struct sim_race_options){.quiet = true});
    if (status != BASE_OK) return status;
    race_load_begin(&load);
    printf("%14s %10s %16s\n", "operations", "resident", "operations/s");
    for (int i = 1; i <= STEP_COUNT; i++) {
        const double begin = seconds();
        race_load_run(&load, operation_count / STEP_COUNT);
        last = resident_bytes();
        if (i == 1) first = last;
        printf("%14" PRIu64 " %6.1f MiB %16.0f\n", load.at, (double)last / (1 << 20),
               (double)(operation_count / STEP_COUNT) / (seconds() - begin));
        fflush(stdout);
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
    }
    race_load_end(&load);
    sim_race_stop();
    if (sim_race_count(SIM_RACE_RULE_COUNT) != 0)
        return base_status_set(BASE_CHECK_FAILED, "a race in a program without: %s",
                               sim_race_report_at(0)->text);
    if ((double)last > (double)first * GROWTH_MAX)
        return base_status_set(BASE_CHECK_FAILED,
                               "memory grew from %" PRIu64 " to %" PRIu64
                               " bytes, more than 5 %%: history is not dropped",
                               first, last);
    printf("flat: %.1f %% from the first tenth to the last\n",
           100 * ((double)last / (double)first - 1));
    return BASE_OK;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    const enum base_status status = run();
    return base_program_end(&program, status);
}
