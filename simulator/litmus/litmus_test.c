// All cases of testdata/ under every schedule. The figures were counted from the files by grep: a
// case that stops being read or played is noticed here.
//
// Random plays as many seeds as must reach every allowed outcome; the sanitizers, which make runs
// many times slower, look at fewer. An argument is another number of seeds.
#include "base/check.h"
#include "simulator/litmus/judge.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEED_COUNT_DEFAULT 60
#else
#define SEED_COUNT_DEFAULT LITMUS_REACHING_SEED_COUNT
#endif
// Of held streams, and in checked mode.
#define LESS_SEED_COUNT 60

// By kind: how many cases there are, and how many of them are judged.
static const struct kind {
    const char *name;
    int case_count, judged_count;
} kinds[] = {
    {"stream", 21, 21},      {"event", 37, 37},     {"legacy", 34, 34},
    {"hostsync", 20, 20},    {"query", 13, 13},     {"memcpy", 27, 27},
    {"memset", 9, 9},        {"range", 12, 12},     {"device", 15, 15},
    {"lifetime", 20, 20},    {"uninitialised", 11, 11}, {"block", 19, 19},
    {"record-stream", 15, 15}, {"timeline", 6, 6},  {"thread", 6, 6},
    {"undecided", 15, 7},    {"capture", 9, 0},     {"capture-error", 29, 0},
    {"graph", 23, 0},        {"graph-memory", 15, 0},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)
#define CASE_COUNT 356
#define JUDGED_COUNT 272
#define OUTCOME_COUNT 404

// The undecided ones that are about capture.
static const char *const not_judged[] = {
    "und-empty-fork",       "und-never-recorded-wait", "und-907-loses-capture",
    "und-907-or-900",       "und-903-loses-capture",   "und-sync-copy-in-capture",
    "und-ended-wait",       "und-eager-free-in-capture",
};

struct totals {
    int case_count, judged_count, wrong_count;
    int outcome_count, reached_count; // by random
};

static bool is_named(const char *name) {
    for (size_t i = 0; i < sizeof not_judged / sizeof *not_judged; ++i)
        if (strcmp(not_judged[i], name) == 0)
            return true;
    return false;
}

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
        }
        if (litmus_reading_is_right(reading, plan))
            continue;
        ++totals->wrong_count;
        printf("%s: %d of %d outcomes reached, %" PRIu64 " runs wrong: %s\n", subject->name,
               reading->reached_count, reading->expectation->outcome_count,
               reading->violation_count, reading->violation);
    }
    litmus_judgement_deinit(&judgement);
}

static void judge_kind(struct litmus_player *player, const struct kind *kind, uint64_t seed_count,
                       struct totals *totals) {
    const struct litmus_plan plan = {.schedules = {[LITMUS_SCHEDULE_EAGER] = true,
                                                   [LITMUS_SCHEDULE_LAZY] = true,
                                                   [LITMUS_SCHEDULE_RANDOM] = true},
                             .first_seed = 1,
                             .seed_count = seed_count};
    const struct litmus_plan held = {.schedules = {[LITMUS_SCHEDULE_HELD] = true},
                                     .first_seed = 1,
                                     .seed_count = LESS_SEED_COUNT};
    char path[256];
    struct litmus_file file;
    int judged_count = 0;
    snprintf(path, sizeof path, "simulator/litmus/testdata/%s.litmus", kind->name);
    BASE_CHECK_EQ(litmus_file_read(path, &file), BASE_OK);
    BASE_CHECK_EQ(file.case_count, kind->case_count);
    for (size_t i = 0; i < file.case_count; ++i) {
        const struct litmus_case *subject = &file.cases[i];
        BASE_CHECK(strcmp(subject->kind, kind->name) == 0);
        ++totals->case_count;
        if (subject->needs != NULL) {
            BASE_CHECK(kind->judged_count == 0 || is_named(subject->name));
            continue;
        }
        ++judged_count;
        judge(player, subject, &plan, totals);
        judge(player, subject, &held, totals);
    }
    BASE_CHECK_EQ(judged_count, kind->judged_count);
    totals->judged_count += judged_count;
    litmus_file_deinit(&file);
}

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
    printf("%d cases, %d judged, seeds 1 to %" PRIu64 ": %d of %d outcomes reached\n",
           totals.case_count, totals.judged_count, seed_count, totals.reached_count,
           totals.outcome_count);
    BASE_CHECK_EQ(totals.case_count, CASE_COUNT);
    BASE_CHECK_EQ(totals.judged_count, JUDGED_COUNT);
    BASE_CHECK_EQ(totals.outcome_count, OUTCOME_COUNT);
    BASE_CHECK_EQ(totals.wrong_count, 0);
    BASE_CHECK_EQ(judge_checked().wrong_count, 0);
    return 0;
}
