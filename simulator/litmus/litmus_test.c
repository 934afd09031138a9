// All cases of testdata/ under every schedule. The figures were counted from the files by grep: a
// case that stops being read or played is noticed here.
//
// Random plays as many seeds as must reach every allowed outcome, the first of them under the race
// checker; the sanitizers, which make runs many times slower, look at fewer. An argument is another
// number of seeds.
#include "base/check.h"
#include "simulator/litmus/judge.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEED_COUNT_DEFAULT LITMUS_VERDICT_SEED_COUNT
#define LESS_SEED_COUNT    30
#else
#define SEED_COUNT_DEFAULT LITMUS_REACHING_SEED_COUNT
#define LESS_SEED_COUNT    60 // of held streams, and in checked mode
#endif

// By kind: how many cases there are.
static const struct kind {
    const char *name;
    int case_count;
} kinds[] = {
    {"stream", 21},    {"event", 37},          {"legacy", 34},   {"hostsync", 20},
    {"query", 13},     {"memcpy", 27},         {"memset", 9},    {"range", 12},
    {"device", 15},    {"lifetime", 20},       {"block", 19},    {"record-stream", 15},
    {"timeline", 6},   {"uninitialised", 11},  {"thread", 6},    {"capture", 9},
    {"graph", 23},     {"capture-error", 29},  {"undecided", 15}, {"graph-memory", 15},
};
#define KIND_COUNT    (sizeof kinds / sizeof *kinds)
#define FOLDER        "simulator/litmus/testdata/"
#define CASE_COUNT    356
#define DECIDED_COUNT 341
#define OUTCOME_COUNT 514

// How many races the cases list, of each kind; undecided ones under each of their readings.
static const int listed_counts[LITMUS_RACE_KIND_COUNT] = {
    [LITMUS_RACE_WRITE_WRITE] = 18,      [LITMUS_RACE_READ_WRITE] = 96,
    [LITMUS_RACE_REUSE] = 23,            [LITMUS_RACE_USE_AFTER_FREE] = 13,
    [LITMUS_RACE_USE_BEFORE_ALLOC] = 4,  [LITMUS_RACE_UNINITIALISED] = 6,
};
#define LISTED_COUNT 160
// Switches that the undecided cases are about, and the seeds of decided cases under each.
#define READING_COUNT      12
#define READING_SEED_COUNT 4
// Races that are there only when a query says "not ready", which it does not under eager, where the
// work is done: of query-result-ignored, query-wrong-branch and record-event-not-polled.
#define QUERY_RACE_COUNT 3

struct totals {
    int case_count, wrong_count;
    int outcome_count, reached_count; // by random
    int listed[LITMUS_RACE_KIND_COUNT], found[LITMUS_SCHEDULE_COUNT];
};

static void judge(struct litmus_player *player, const struct litmus_case *subject,
                  const struct litmus_plan *plan, struct totals *totals) {
    struct litmus_judgement judgement;
    const enum base_status status = litmus_judge(player, subject, plan, &judgement);
    if (status != BASE_OK)
        fprintf(stderr, "%s: %s\n", subject->name, base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    for (int i = 0; i < judgement.reading_count; ++i) {
        const struct litmus_reading_result *reading = &judgement.readings[i];
        if (plan->schedules[LITMUS_SCHEDULE_RANDOM]) {
            totals->outcome_count += reading->expectation->outcome_count;
            totals->reached_count += reading->reached_count;
            for (int k = 0; k < reading->expectation->race_count; ++k)
                ++totals->listed[reading->expectation->races[k].kind];
        }
        for (int k = 0; k < LITMUS_SCHEDULE_COUNT; ++k)
            totals->found[k] += litmus_reading_found_count(reading, (enum litmus_schedule)k);
        if (litmus_reading_is_right(reading, plan))
            continue;
        ++totals->wrong_count;
        printf("%s: %d of %d outcomes reached, %" PRIu64 " runs wrong: %s\n", subject->name,
               reading->reached_count, reading->expectation->outcome_count,
               reading->violation_count, reading->violation);
        fflush(stdout); // the checks behind may end the program
    }
    litmus_judgement_deinit(&judgement);
}

static void judge_kind(struct litmus_player *player, const struct kind *kind, uint64_t seed_count,
                       struct totals *totals) {
    const struct litmus_plan plan = {.schedules = {[LITMUS_SCHEDULE_EAGER] = true,
                                                   [LITMUS_SCHEDULE_LAZY] = true,
                                                   [LITMUS_SCHEDULE_RANDOM] = true},
                             .first_seed = 1,
                             .seed_count = seed_count,
                             .verdict_seed_count = LITMUS_VERDICT_SEED_COUNT};
    const struct litmus_plan held = {.schedules = {[LITMUS_SCHEDULE_HELD] = true},
                                     .first_seed = 1,
                                     .seed_count = LESS_SEED_COUNT,
                                     .verdict_seed_count = LESS_SEED_COUNT};
    char path[256];
    struct litmus_file file;
    snprintf(path, sizeof path, FOLDER "%s.litmus", kind->name);
    BASE_CHECK_EQ(litmus_file_read(path, &file), BASE_OK);
    BASE_CHECK_EQ(file.case_count, kind->case_count);
    for (size_t i = 0; i < file.case_count; ++i) {
        const struct litmus_case *subject = &file.cases[i];
        BASE_CHECK(strcmp(subject->kind, kind->name) == 0);
        ++totals->case_count;
        judge(player, subject, &plan, totals);
        judge(player, subject, &held, totals);
    }
    litmus_file_deinit(&file);
}

// --- Decided cases under every reading ---

// The other value of each switch, as the undecided cases have them.
static int readings_collect(const struct litmus_file *undecided, struct litmus_expectation *others,
                            int count_max) {
    int count = 0;
    for (size_t i = 0; i < undecided->case_count; ++i) {
        const struct litmus_expectation *other = &undecided->cases[i].expectations[1];
        int known = 0;
        while (known < count && strcmp(others[known].reading, other->reading) != 0)
            ++known;
        BASE_CHECK(known < count_max);
        if (known == count)
            others[count++] = *other;
    }
    return count;
}

// What is decided holds whatever CUDA's documents leave open. The order of host threads stays that
// of the file: some cases are about it.
static void judge_decided(struct litmus_player *player, const struct litmus_case *subject,
                          const struct litmus_expectation *other, struct totals *totals) {
    const bool threads = strcmp(other->reading, "threads") == 0;
    const struct litmus_plan plan = {.schedules = {[LITMUS_SCHEDULE_EAGER] = true,
                                                   [LITMUS_SCHEDULE_LAZY] = true,
                                                   [LITMUS_SCHEDULE_RANDOM] = !threads},
                                     .first_seed = 1,
                                     .seed_count = READING_SEED_COUNT,
                                     .verdict_seed_count = READING_SEED_COUNT};
    struct litmus_expectation expectation = subject->expectations[0];
    struct litmus_case same = *subject;
    expectation.reading = other->reading;
    expectation.reading_value = other->reading_value;
    same.expectations = &expectation;
    judge(player, &same, &plan, totals);
}

static struct totals judge_readings(void) {
    struct litmus_player *player = litmus_player_create(false);
    struct litmus_expectation others[READING_COUNT];
    struct litmus_file undecided, file;
    struct totals totals = {0};
    BASE_CHECK_EQ(litmus_file_read(FOLDER "undecided.litmus", &undecided), BASE_OK);
    BASE_CHECK_EQ(readings_collect(&undecided, others, READING_COUNT), READING_COUNT);
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        char path[256];
        snprintf(path, sizeof path, FOLDER "%s.litmus", kinds[k].name);
        BASE_CHECK_EQ(litmus_file_read(path, &file), BASE_OK);
        for (size_t i = 0; i < file.case_count; ++i) {
            for (int r = 0; r < READING_COUNT && file.cases[i].expectation_count == 1; ++r)
                judge_decided(player, &file.cases[i], &others[r], &totals);
            totals.case_count += file.cases[i].expectation_count == 1;
        }
        litmus_file_deinit(&file);
    }
    litmus_file_deinit(&undecided);
    litmus_player_destroy(player);
    return totals;
}

// --- All ---

static struct totals judge_all(bool checked, uint64_t seed_count) {
    struct litmus_player *player = litmus_player_create(checked);
    struct totals totals = {0};
    for (size_t i = 0; i < KIND_COUNT; ++i)
        judge_kind(player, &kinds[i], seed_count, &totals);
    litmus_player_destroy(player);
    return totals;
}

// What checked mode says on standard error of the cases that free twice is no matter here.
static struct totals judge_checked(void) {
    const int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    BASE_CHECK(kept >= 0 && nowhere >= 0);
    BASE_CHECK(dup2(nowhere, STDERR_FILENO) >= 0);
    const struct totals totals = judge_all(true, LESS_SEED_COUNT);
    BASE_CHECK(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    close(nowhere);
    return totals;
}

int main(int argc, char **argv) {
    const uint64_t seed_count = argc > 1 ? strtoull(argv[1], NULL, 10) : SEED_COUNT_DEFAULT;
    const struct totals totals = judge_all(false, seed_count);
    printf("%d cases, seeds 1 to %" PRIu64 ": %d of %d outcomes reached; races found: eager %d, "
           "lazy %d, random %d, held %d\n",
           totals.case_count, seed_count, totals.reached_count, totals.outcome_count,
           totals.found[LITMUS_SCHEDULE_EAGER], totals.found[LITMUS_SCHEDULE_LAZY],
           totals.found[LITMUS_SCHEDULE_RANDOM], totals.found[LITMUS_SCHEDULE_HELD]);
    BASE_CHECK_EQ(totals.case_count, CASE_COUNT);
    BASE_CHECK_EQ(totals.outcome_count, OUTCOME_COUNT);
    BASE_CHECK_EQ(totals.wrong_count, 0);
    for (int i = 0; i < LITMUS_RACE_KIND_COUNT; ++i)
        BASE_CHECK_EQ(totals.listed[i], listed_counts[i]);
    BASE_CHECK_EQ(totals.found[LITMUS_SCHEDULE_EAGER], LISTED_COUNT - QUERY_RACE_COUNT);
    BASE_CHECK_EQ(totals.found[LITMUS_SCHEDULE_LAZY], LISTED_COUNT);
    BASE_CHECK_EQ(totals.found[LITMUS_SCHEDULE_RANDOM], LISTED_COUNT);
    BASE_CHECK_EQ(totals.found[LITMUS_SCHEDULE_HELD], LISTED_COUNT);
    BASE_CHECK_EQ(judge_checked().wrong_count, 0);
    const struct totals readings = judge_readings();
    BASE_CHECK_EQ(readings.case_count, DECIDED_COUNT);
    BASE_CHECK_EQ(readings.wrong_count, 0);
    return 0;
}
