// Plays a case under many schedules, and compares every run with what the case allows, and what the
// race checker reported of it with the case's verdict and races.
//
//     struct litmus_judgement judgement;
//     status = litmus_judge(player, &file.cases[0], &plan, &judgement);
//     judgement.readings[0].violation_count, .reached_count, .found
//     litmus_judgement_deinit(&judgement);
#ifndef TIDEMARK_SIMULATOR_LITMUS_JUDGE_H
#define TIDEMARK_SIMULATOR_LITMUS_JUDGE_H

#include "simulator/litmus/outcome.h"
#include "simulator/litmus/verdict.h"

// So many seeds must reach every outcome that a case allows: where fewer are played, one that was
// not reached is no fault.
#define LITMUS_REACHING_SEED_COUNT 2000
// So many seeds must find a race that only some results of a query have.
#define LITMUS_VERDICT_SEED_COUNT 64

enum litmus_schedule {
    LITMUS_SCHEDULE_EAGER,
    LITMUS_SCHEDULE_LAZY,
    LITMUS_SCHEDULE_RANDOM,
    LITMUS_SCHEDULE_HELD, // operations run as the player picks them
    LITMUS_SCHEDULE_COUNT,
};
const char *litmus_schedule_name(enum litmus_schedule schedule);

struct litmus_plan {
    bool schedules[LITMUS_SCHEDULE_COUNT];
    uint64_t first_seed, seed_count; // of random and held
    // Of these seeds, how many run under the race checker; eager and lazy do if it is not 0.
    uint64_t verdict_seed_count;
    // Is told of every run, with what it left; NULL: nobody.
    void (*observe)(void *context, const struct litmus_case *subject,
                    const struct litmus_expectation *expectation,
                    const struct litmus_result *result);
    void *context;
};

// What was found under one reading; a case without readings has one of these.
struct litmus_reading_result {
    const struct litmus_expectation *expectation;
    uint64_t run_count;
    uint64_t illegal_address_count; // runs that ended in error 700, where that is allowed
    uint64_t violation_count;
    char violation[BASE_STATUS_MESSAGE_SIZE]; // the first one: schedule, what was left, what is
                                              // allowed
    // Runs that left each outcome: those of random, or of all schedules if random is not played.
    int reached_count;
    uint64_t *reached;
    // Under which schedules each race was reported: bit (1 << enum litmus_schedule).
    uint64_t verdict_run_count;
    uint8_t *found;
};

struct litmus_judgement {
    const struct litmus_case *subject;
    int reading_count;
    struct litmus_reading_result *readings;
};

// Loads the case into PLAYER and judges it. BASE_INVALID_VALUE if the simulator lacks a schedule or
// a reading; nothing is left to free then.
enum base_status litmus_judge(struct litmus_player *player, const struct litmus_case *subject,
                              const struct litmus_plan *plan,
                              struct litmus_judgement *judgement) BASE_MUST_USE;
void litmus_judgement_deinit(struct litmus_judgement *judgement);

// How many of the races SCHEDULE found.
int litmus_reading_found_count(const struct litmus_reading_result *reading,
                               enum litmus_schedule schedule);
// Whether nothing forbidden happened and no verdict was wrong, and every allowed outcome was
// reached if the plan obliges to.
bool litmus_reading_is_right(const struct litmus_reading_result *reading,
                             const struct litmus_plan *plan);

#endif
