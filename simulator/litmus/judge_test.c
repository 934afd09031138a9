// The player and the judge: a seed alone tells what happens, and what a case does not allow is
// found. The cases here are written for this; those of testdata/ are litmus_test's.
#include "base/check.h"
#include "simulator/litmus/judge.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <string.h>

static const struct litmus_plan plan_all = {
    .schedules = {true, true, true, true}, .first_seed = 1, .seed_count = 50};

static struct litmus_player *player;

// Two streams write the same byte: either write may be the last.
#define RACE                         \
    "case race\nkind stream\n"       \
    "stream s nonblocking 0\n"       \
    "stream t nonblocking 0\n"       \
    "device a 1 0 0\n"               \
    "do 0 A kernel s set a 1\n"      \
    "do 0 B kernel t set a 2\n"      \
    "verdict race\nrace write-write A B a\n"

static struct litmus_judgement judge_text(struct litmus_file *file, const char *text,
                                          const struct litmus_plan *plan) {
    enum base_status status = litmus_text_read("x.litmus", text, file);
    struct litmus_judgement judgement = {0};
    if (status == BASE_OK)
        status = litmus_judge(player, &file->cases[0], plan, &judgement);
    if (status != BASE_OK)
        fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return judgement;
}

static void every_allowed_outcome_is_reached_and_none_else(void) {
    struct litmus_file file;
    struct litmus_judgement judgement =
        judge_text(&file, RACE "outcome a=1\noutcome a=2\nend\n", &plan_all);
    const struct litmus_reading_result *reading = &judgement.readings[0];
    BASE_CHECK_EQ(reading->violation_count, 0);
    BASE_CHECK_EQ(reading->run_count, 1 + 1 + 50 + 50);
    BASE_CHECK_EQ(reading->reached_count, 2);
    BASE_CHECK_EQ(reading->reached[0] + reading->reached[1], 50); // random's only
    BASE_CHECK(litmus_reading_is_right(reading, &plan_all));
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

static void forbidden_outcome_is_a_violation_with_its_seed(void) {
    struct litmus_file file;
    struct litmus_judgement judgement = judge_text(&file, RACE "outcome a=2\nend\n", &plan_all);
    const struct litmus_reading_result *reading = &judgement.readings[0];
    BASE_CHECK(reading->violation_count > 0);
    BASE_CHECK(!litmus_reading_is_right(reading, &plan_all));
    BASE_CHECK(strstr(reading->violation, "race under ") == reading->violation);
    BASE_CHECK(strstr(reading->violation, "left a=1") != NULL);
    BASE_CHECK(strstr(reading->violation, "allowed a=2") != NULL);
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

static void outcome_that_cannot_happen_is_missed_when_seeds_suffice(void) {
    struct litmus_file file;
    const struct litmus_plan plan = {.schedules = {[LITMUS_SCHEDULE_RANDOM] = true},
                                     .first_seed = 1,
                                     .seed_count = LITMUS_REACHING_SEED_COUNT};
    struct litmus_judgement judgement =
        judge_text(&file, RACE "outcome a=1\noutcome a=2\noutcome a=3\nend\n", &plan);
    const struct litmus_reading_result *reading = &judgement.readings[0];
    BASE_CHECK_EQ(reading->violation_count, 0);
    BASE_CHECK_EQ(reading->reached_count, 2);
    BASE_CHECK(!litmus_reading_is_right(reading, &plan));
    BASE_CHECK(litmus_reading_is_right(reading, &plan_all));
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

static void wrong_code_is_a_violation(void) {
    struct litmus_file file;
    struct litmus_judgement judgement = judge_text(
        &file, RACE "return B 400\noutcome a=1\noutcome a=2\nend\n", &plan_all);
    BASE_CHECK_EQ(judgement.readings[0].violation_count, 102);
    BASE_CHECK(strstr(judgement.readings[0].violation, "B (kernel) returned 0, not 400") != NULL);
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

static void loop_that_waits_for_nothing_is_a_violation(void) {
    struct litmus_file file;
    const struct litmus_plan plan = {.schedules = {[LITMUS_SCHEDULE_EAGER] = true}};
    struct litmus_judgement judgement = judge_text(&file,
                                                   "case loop\nkind timeline\ntimeline T\n"
                                                   "do 0 A valuepoll T 1\n"
                                                   "verdict ok\noutcome -\nend\n",
                                                   &plan);
    BASE_CHECK_EQ(judgement.readings[0].violation_count, 1);
    BASE_CHECK(strstr(judgement.readings[0].violation, "the loop A never succeeded") != NULL);
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

static void unknown_reading_is_refused(void) {
    struct litmus_file file;
    struct litmus_judgement judgement;
    BASE_CHECK_EQ(litmus_text_read("x.litmus",
                                   "case r\nkind undecided\nstream s nonblocking 0\n"
                                   "do 0 A kernel s nothing\nreading no-such=thing\n"
                                   "verdict ok\noutcome -\nend\n",
                                   &file),
                  BASE_OK);
    BASE_CHECK_EQ(litmus_judge(player, &file.cases[0], &plan_all, &judgement), BASE_INVALID_VALUE);
    litmus_file_deinit(&file);
}

// --- A simulator that is wrong ---

static uint64_t violations_in(const char *path) {
    struct litmus_file file;
    uint64_t count = 0;
    BASE_CHECK_EQ(litmus_file_read(path, &file), BASE_OK);
    for (size_t i = 0; i < file.case_count; ++i) {
        struct litmus_judgement judgement;
        BASE_CHECK_EQ(litmus_judge(player, &file.cases[i], &plan_all, &judgement), BASE_OK);
        for (int k = 0; k < judgement.reading_count; ++k)
            count += judgement.readings[k].violation_count;
        litmus_judgement_deinit(&judgement);
    }
    litmus_file_deinit(&file);
    return count;
}

static void planted_faults_are_found_by_the_cases_of_their_kind(void) {
    static const struct {
        const char *plant, *path;
    } faults[] = {
        {"event-edge", "simulator/litmus/testdata/event.litmus"},
        {"record-kept", "simulator/litmus/testdata/event.litmus"},
        {"legacy-barrier", "simulator/litmus/testdata/legacy.litmus"},
        {"event-synchronize", "simulator/litmus/testdata/hostsync.litmus"},
        {"query", "simulator/litmus/testdata/query.litmus"},
        {"copy-early", "simulator/litmus/testdata/memcpy.litmus"},
        {"fill-early", "simulator/litmus/testdata/memset.litmus"},
        {"record-device", "simulator/litmus/testdata/device.litmus"},
        {"free-twice", "simulator/litmus/testdata/lifetime.litmus"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; ++i) {
        BASE_CHECK_EQ(violations_in(faults[i].path), 0);
        BASE_CHECK_EQ(sim_plant(faults[i].plant), BASE_OK);
        const uint64_t count = violations_in(faults[i].path);
        BASE_CHECK_EQ(sim_plant(NULL), BASE_OK);
        if (count == 0)
            fprintf(stderr, "%s is not found by %s\n", faults[i].plant, faults[i].path);
        BASE_CHECK(count > 0);
    }
}

// --- A seed tells everything ---

static struct litmus_result play_alone(const struct litmus_case *one, const char *schedule) {
    struct litmus_result result;
    BASE_CHECK_EQ(litmus_player_load(player, one, &one->expectations[0]), BASE_OK);
    BASE_CHECK_EQ(litmus_play(player, &(struct litmus_run){.schedule = schedule}, &result),
                  BASE_OK);
    litmus_player_unload(player);
    return result;
}

static void check_same(const struct litmus_case *one, const struct litmus_result *a,
                       const struct litmus_result *b) {
    char left[LITMUS_RESULT_TEXT_SIZE], right[LITMUS_RESULT_TEXT_SIZE];
    litmus_result_format(one, &one->expectations[0], a, left);
    litmus_result_format(one, &one->expectations[0], b, right);
    if (strcmp(left, right) != 0)
        fprintf(stderr, "%s: in a series %s, alone %s\n", one->name, left, right);
    BASE_CHECK(strcmp(left, right) == 0);
    BASE_CHECK(memcmp(a->codes, b->codes, sizeof a->codes) == 0);
}

// Without this a seed that the program prints would be of no use.
static void seed_alone_leaves_what_it_left_in_a_series(void) {
    struct litmus_file file;
    BASE_CHECK_EQ(litmus_file_read("simulator/litmus/testdata/block.litmus", &file), BASE_OK);
    for (size_t i = 0; i < file.case_count; ++i) {
        const struct litmus_case *one = &file.cases[i];
        struct litmus_result series[20];
        char schedule[64];
        BASE_CHECK_EQ(litmus_player_load(player, one, &one->expectations[0]), BASE_OK);
        for (int seed = 0; seed < 20; ++seed) {
            snprintf(schedule, sizeof schedule, "%s:%d", seed % 2 == 0 ? "random" : "held", seed);
            const struct litmus_run run = {.schedule = schedule};
            BASE_CHECK_EQ(litmus_play(player, &run, &series[seed]), BASE_OK);
        }
        litmus_player_unload(player);
        for (int seed = 0; seed < 20; ++seed) {
            snprintf(schedule, sizeof schedule, "%s:%d", seed % 2 == 0 ? "random" : "held", seed);
            const struct litmus_result alone = play_alone(one, schedule);
            check_same(one, &series[seed], &alone);
        }
    }
    litmus_file_deinit(&file);
}

int main(void) {
    player = litmus_player_create(false);
    every_allowed_outcome_is_reached_and_none_else();
    forbidden_outcome_is_a_violation_with_its_seed();
    outcome_that_cannot_happen_is_missed_when_seeds_suffice();
    wrong_code_is_a_violation();
    loop_that_waits_for_nothing_is_a_violation();
    unknown_reading_is_refused();
    planted_faults_are_found_by_the_cases_of_their_kind();
    seed_alone_leaves_what_it_left_in_a_series();
    litmus_player_destroy(player);
    return 0;
}
