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
#define WRITERS                 \
    "case race\nkind stream\n"  \
    "stream s nonblocking 0\n"  \
    "stream t nonblocking 0\n"  \
    "device a 1 0 0\n"          \
    "do 0 A kernel s set a 1\n" \
    "do 0 B kernel t set a 2\n"
#define RACE WRITERS "verdict race\nrace write-write A B a\n"

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

// --- Verdicts ---

static const struct litmus_plan plan_verdicts = {.schedules = {true, true, true, true},
                                                 .first_seed = 1,
                                                 .seed_count = 20,
                                                 .verdict_seed_count = 10};

static void race_is_found_under_every_schedule(void) {
    struct litmus_file file;
    struct litmus_judgement judgement =
        judge_text(&file, RACE "outcome a=1\noutcome a=2\nend\n", &plan_verdicts);
    const struct litmus_reading_result *reading = &judgement.readings[0];
    BASE_CHECK_EQ(reading->violation_count, 0);
    BASE_CHECK_EQ(reading->run_count, 1 + 1 + 20 + 20);
    BASE_CHECK_EQ(reading->verdict_run_count, 1 + 1 + 10 + 10);
    for (int i = 0; i < LITMUS_SCHEDULE_COUNT; ++i)
        BASE_CHECK_EQ(litmus_reading_found_count(reading, (enum litmus_schedule)i), 1);
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

// The two streams are not ordered, whatever the case may say.
static void report_that_is_not_listed_is_a_violation(void) {
    static const char *const texts[] = {
        "verdict ok\noutcome a=1\noutcome a=2\nend\n",
        "verdict race\nrace read-write A B a\noutcome a=1\noutcome a=2\nend\n",
        "verdict race\nrace write-write A A a\noutcome a=1\noutcome a=2\nend\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        char text[1024];
        struct litmus_file file;
        snprintf(text, sizeof text, "%s%s", WRITERS, texts[i]);
        struct litmus_judgement judgement = judge_text(&file, text, &plan_verdicts);
        const struct litmus_reading_result *reading = &judgement.readings[0];
        BASE_CHECK_EQ(reading->violation_count, 1 + 1 + 10 + 10);
        BASE_CHECK(strstr(reading->violation,
                          "race under eager: a race that is none: write-write A B a\n"
                          "    reported write-write A B a\n    listed ") == reading->violation);
        BASE_CHECK(!litmus_reading_is_right(reading, &plan_verdicts));
        litmus_judgement_deinit(&judgement);
        litmus_file_deinit(&file);
    }
}

#define ORDERED                  \
    "case ordered\nkind stream\n" \
    "stream s nonblocking 0\n"   \
    "device a 1 0 0\n"           \
    "do 0 A kernel s set a 1\n"  \
    "do 0 B kernel s set a 2\n"

static void race_that_is_not_found_is_a_violation(void) {
    struct litmus_file file;
    struct litmus_judgement judgement = judge_text(
        &file, ORDERED "verdict race\nrace write-write A B a\noutcome a=2\nend\n",
        &plan_verdicts);
    const struct litmus_reading_result *reading = &judgement.readings[0];
    BASE_CHECK_EQ(reading->violation_count, 1 + 1 + 10 + 10);
    BASE_CHECK(strcmp(reading->violation, "ordered under eager: no race found\n"
                                          "    reported nothing\n"
                                          "    listed write-write A B a") == 0);
    BASE_CHECK_EQ(litmus_reading_found_count(reading, LITMUS_SCHEDULE_RANDOM), 0);
    litmus_judgement_deinit(&judgement);
    litmus_file_deinit(&file);
}

// Enough seeds must find it, though no single one must.
static void race_behind_queries_must_be_found_by_all_seeds_together(void) {
    static const char text[] = "case asks\nkind query\n"
                               "stream s nonblocking 0\npinned h 1 0\n"
                               "do 0 A kernel s set h 1\n"
                               "do 0 S streamsync s\n"
                               "do 0 Q streamquery s\n"
                               "do 0 B hostread h\n"
                               "verdict race\nrace read-write A B h\n"
                               "outcome h=1 B=1 Q=0\nend\n";
    struct litmus_plan plan = plan_verdicts;
    for (int enough = 0; enough < 2; ++enough) {
        struct litmus_file file;
        plan.seed_count = plan.verdict_seed_count =
            enough ? LITMUS_VERDICT_SEED_COUNT : LITMUS_VERDICT_SEED_COUNT - 1;
        struct litmus_judgement judgement = judge_text(&file, text, &plan);
        BASE_CHECK_EQ(judgement.readings[0].violation_count, enough);
        litmus_judgement_deinit(&judgement);
        litmus_file_deinit(&file);
    }
}

// --- A simulator that is wrong ---

// Some faults order more than CUDA does: no run leaves anything forbidden, but a race is missed.
static uint64_t violations_in(const char *path) {
    struct litmus_plan plan = plan_all;
    plan.seed_count = 20;
    plan.verdict_seed_count = 5;
    struct litmus_file file;
    uint64_t count = 0;
    BASE_CHECK_EQ(litmus_file_read(path, &file), BASE_OK);
    for (size_t i = 0; i < file.case_count; ++i) {
        struct litmus_judgement judgement;
        BASE_CHECK_EQ(litmus_judge(player, &file.cases[i], &plan, &judgement), BASE_OK);
        for (int k = 0; k < judgement.reading_count; ++k)
            count += judgement.readings[k].violation_count;
        litmus_judgement_deinit(&judgement);
    }
    litmus_file_deinit(&file);
    return count;
}

static void planted_faults_are_found_by_the_cases_of_their_kind(void) {
    static const struct {
        const char *plant, *kind;
    } faults[] = {
        {"event-edge", "event"},       {"record-kept", "event"},
        {"legacy-barrier", "legacy"},  {"event-synchronize", "hostsync"},
        {"query", "query"},            {"copy-early", "memcpy"},
        {"fill-early", "memset"},      {"record-device", "device"},
        {"free-twice", "lifetime"},    {"capture-runs", "capture"},
        {"wait-replaces", "capture"},  {"join-late", "capture"},
        {"unsafe", "capture-error"},   {"capture-spared", "capture-error"},
        {"merge", "capture-error"},    {"unjoined", "capture-error"},
        {"end-keeps", "capture-error"}, {"edge-lost", "graph"},
        {"launch-early", "graph"},     {"launch-open", "graph"},
        {"graph-relaunch", "graph-memory"}, {"graph-execs", "graph-memory"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; ++i) {
        char path[256];
        snprintf(path, sizeof path, "simulator/litmus/testdata/%s.litmus", faults[i].kind);
        if (i == 0 || strcmp(faults[i - 1].kind, faults[i].kind) != 0)
            BASE_CHECK_EQ(violations_in(path), 0);
        BASE_CHECK_EQ(sim_plant(faults[i].plant), BASE_OK);
        const uint64_t count = violations_in(path);
        BASE_CHECK_EQ(sim_plant(NULL), BASE_OK);
        if (count == 0)
            fprintf(stderr, "%s is not found by the kind %s\n", faults[i].plant, faults[i].kind);
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
    race_is_found_under_every_schedule();
    report_that_is_not_listed_is_a_violation();
    race_that_is_not_found_is_a_violation();
    race_behind_queries_must_be_found_by_all_seeds_together();
    planted_faults_are_found_by_the_cases_of_their_kind();
    seed_alone_leaves_what_it_left_in_a_series();
    litmus_player_destroy(player);
    return 0;
}
