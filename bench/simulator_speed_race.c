// The race checker's cost: the same program with the checker off and on, under eager and lazy.
#include "bench/simulator_speed.h"

#include "base/check.h"
#include "bench/race_load.h"
#include "simulator/sim_race.h"

#define OPERATIONS_PER_BATCH 1000
#define OPERATIONS_PER_SECOND_MIN 3e5

static void measure(struct bench_state *state, const struct speed_case *measured, bool checked) {
    struct race_load load;
    uint64_t count, done = 0;
    speed_machine_start(measured, 0, SIM_NUMERICS_OFF);
    if (checked)
        BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    race_load_begin(&load);
    while (bench_batch_begin(state, &count))
        for (uint64_t batch = 0; batch < count; batch++) {
            race_load_run(&load, OPERATIONS_PER_BATCH);
            (void)cudaDeviceSynchronize();
            done += OPERATIONS_PER_BATCH;
        }
    bench_items(state, done);
    race_load_end(&load);
    if (checked)
        sim_race_stop();
    if (checked && sim_race_count(SIM_RACE_RULE_COUNT) != 0)
        bench_fail(state, "a race in a program without: %s", sim_race_report_at(0)->text);
    speed_machine_check(state, 0);
}

static void measure_off(struct bench_state *state, void *argument) {
    measure(state, argument, false);
}

static void measure_on(struct bench_state *state, void *argument) {
    measure(state, argument, true);
}

void speed_cases_race(void) {
    static const char *const schedules[] = {"eager", "lazy"};
    static const char *const names[][2] = {{"unchecked_eager", "checked_eager"},
                                           {"unchecked_lazy", "checked_lazy"}};
    for (int i = 0; i < 2; i++) {
        speed_case_add(SPEED_GROUP_SPEED, names[i][0], schedules[i], 0, measure_off)->per_batch =
            OPERATIONS_PER_BATCH;
        struct speed_case *added =
            speed_case_add(SPEED_GROUP_SPEED, names[i][1], schedules[i], 0, measure_on);
        added->per_batch = OPERATIONS_PER_BATCH;
        added->limit = OPERATIONS_PER_SECOND_MIN;
    }
}
