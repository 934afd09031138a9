// See judge.h. A reading is a switch of the simulator, set for the runs that are compared with it.
#include "simulator/litmus/judge.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const schedule_names[LITMUS_SCHEDULE_COUNT] = {
    [LITMUS_SCHEDULE_EAGER] = "eager",
    [LITMUS_SCHEDULE_LAZY] = "lazy",
    [LITMUS_SCHEDULE_RANDOM] = "random",
    [LITMUS_SCHEDULE_HELD] = "held",
};

const char *litmus_schedule_name(enum litmus_schedule schedule) {
    return schedule_names[schedule];
}

// --- What is wrong with a run ---

// "CASE [READING=VALUE] under SCHEDULE: ".
static size_t violation_begin(struct litmus_reading_result *reading,
                              const struct litmus_case *subject, const char *schedule) {
    const struct litmus_expectation *expectation = reading->expectation;
    const bool named = expectation->reading != NULL;
    return (size_t)snprintf(reading->violation, sizeof reading->violation,
                            "%s%s%s%s%s under %s: ", subject->name, named ? " " : "",
                            named ? expectation->reading : "", named ? "=" : "",
                            named ? expectation->reading_value : "", schedule);
}

// Texts too long for it are cut off.
__attribute__((format(printf, 3, 4))) static void
violation_add(struct litmus_reading_result *reading, size_t *length, const char *format, ...) {
    if (*length >= sizeof reading->violation)
        return;
    va_list arguments;
    va_start(arguments, format);
    *length += (size_t)vsnprintf(reading->violation + *length,
                                 sizeof reading->violation - *length, format, arguments);
    va_end(arguments);
}

__attribute__((format(printf, 5, 6))) static void
violation(struct litmus_reading_result *reading, const struct litmus_case *subject,
          const struct litmus_run *run, const struct litmus_result *result, const char *format,
          ...) {
    if (reading->violation_count++ > 0)
        return;
    const struct litmus_expectation *expectation = reading->expectation;
    char what[256], left[LITMUS_RESULT_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    litmus_result_format(subject, expectation, result, left);
    size_t length = violation_begin(reading, subject, run->schedule);
    violation_add(reading, &length, "%s\n    left %s", what,
                  result->illegal_address ? "nothing" : left);
    for (int i = 0; i < expectation->outcome_count; ++i)
        violation_add(reading, &length, "\n    allowed %s", expectation->outcomes[i].text);
}

static void races_add(struct litmus_reading_result *reading, const struct litmus_case *subject,
                      const char *word, const struct litmus_race *races, int count,
                      size_t *length) {
    char text[LITMUS_RACE_TEXT_SIZE];
    for (int i = 0; i < count; ++i) {
        litmus_race_format(subject, &races[i], text);
        violation_add(reading, length, "\n    %s %s", word, text);
    }
    if (count == 0)
        violation_add(reading, length, "\n    %s nothing", word);
}

// WRONG is the report that is no race of the case, or -1.
static void verdict_violation(struct litmus_reading_result *reading,
                              const struct litmus_case *subject, const char *schedule,
                              const struct litmus_result *result, int wrong) {
    const struct litmus_expectation *expectation = reading->expectation;
    char text[LITMUS_RACE_TEXT_SIZE];
    if (reading->violation_count++ > 0)
        return;
    size_t length = violation_begin(reading, subject, schedule);
    if (wrong >= 0) {
        litmus_race_format(subject, &result->races[wrong], text);
        violation_add(reading, &length, "a race that is none: %s", text);
    } else {
        violation_add(reading, &length, "no race found");
    }
    const int kept = result->race_count < LITMUS_RACE_COUNT_MAX ? result->race_count
                                                                : LITMUS_RACE_COUNT_MAX;
    races_add(reading, subject, "reported", result->races, kept, &length);
    races_add(reading, subject, "listed", expectation->races, expectation->race_count, &length);
}

// --- One run ---

// An outcome with undefined bytes can match beside another one: each is reached.
static bool compare_outcomes(struct litmus_reading_result *reading,
                             const struct litmus_case *subject, const struct litmus_result *result,
                             bool counts) {
    bool allowed = false;
    for (int i = 0; i < reading->expectation->outcome_count; ++i) {
        if (!litmus_outcome_matches(subject, &reading->expectation->outcomes[i], result))
            continue;
        allowed = true;
        if (counts)
            reading->reached_count += reading->reached[i]++ == 0;
    }
    return allowed;
}

// Whether what the checker reported is right; notes what it found.
static bool compare_verdict(struct litmus_reading_result *reading,
                            const struct litmus_case *subject, const struct litmus_run *run,
                            const struct litmus_result *result, enum litmus_schedule schedule) {
    int wrong;
    ++reading->verdict_run_count;
    for (int i = 0; i < result->race_count && i < LITMUS_RACE_COUNT_MAX; ++i) {
        const int listed = litmus_race_find(reading->expectation, &result->races[i]);
        if (listed >= 0)
            reading->found[listed] |= (uint8_t)(1 << schedule);
    }
    if (litmus_verdict_is_right(subject, reading->expectation, result, &wrong))
        return true;
    verdict_violation(reading, subject, run->schedule, result, wrong);
    return false;
}

static void compare(struct litmus_reading_result *reading, const struct litmus_case *subject,
                    const struct litmus_run *run, const struct litmus_result *result,
                    enum litmus_schedule schedule, bool counts) {
    const struct litmus_expectation *expectation = reading->expectation;
    int wrong;
    ++reading->run_count;
    if (run->races && !compare_verdict(reading, subject, run, result, schedule))
        return;
    if (result->illegal_address && expectation->outside_life) {
        ++reading->illegal_address_count;
        return;
    }
    if (result->illegal_address) {
        violation(reading, subject, run, result, "ended in error 700");
    } else if (result->never_succeeded >= 0) {
        violation(reading, subject, run, result, "the loop %s never succeeded",
                  subject->operations[result->never_succeeded].label);
    } else if (!litmus_codes_match(subject, expectation, result, &wrong)) {
        violation(reading, subject, run, result, "%s (%s) returned %d, not %d",
                  subject->operations[wrong].label,
                  litmus_verb_word(subject->operations[wrong].verb), result->codes[wrong],
                  litmus_code_expected(expectation, wrong));
    } else if (!compare_outcomes(reading, subject, result, counts)) {
        violation(reading, subject, run, result, "a forbidden outcome");
    }
}

static enum base_status play(struct litmus_player *player, const struct litmus_case *subject,
                             const struct litmus_run *run, enum litmus_schedule schedule,
                             const struct litmus_plan *plan,
                             struct litmus_reading_result *reading) {
    struct litmus_result result;
    const bool counts =
        schedule == LITMUS_SCHEDULE_RANDOM || !plan->schedules[LITMUS_SCHEDULE_RANDOM];
    const enum base_status status = litmus_play(player, run, &result);
    if (status != BASE_OK)
        return status;
    compare(reading, subject, run, &result, schedule, counts);
    if (plan->observe != NULL)
        plan->observe(plan->context, subject, reading->expectation, &result);
    return BASE_OK;
}

// --- All runs ---

// The host order of two threads is no matter of the simulator: under the strict reading the player
// submits in any order that the hand-offs allow.
static bool reading_is_strict_threads(const struct litmus_expectation *expectation) {
    return expectation->reading != NULL && strcmp(expectation->reading, "threads") == 0 &&
           strcmp(expectation->reading_value, "strict") == 0;
}

static enum base_status judge_schedule(struct litmus_player *player,
                                       const struct litmus_case *subject,
                                       enum litmus_schedule schedule,
                                       const struct litmus_plan *plan,
                                       struct litmus_reading_result *reading) {
    const bool seeded = schedule == LITMUS_SCHEDULE_RANDOM || schedule == LITMUS_SCHEDULE_HELD;
    const bool interleave = seeded && reading_is_strict_threads(reading->expectation);
    const uint64_t count = seeded ? plan->seed_count : 1;
    enum base_status status = BASE_OK;
    for (uint64_t i = 0; i < count && status == BASE_OK; ++i) {
        const uint64_t seed = plan->first_seed + i;
        char text[64];
        snprintf(text, sizeof text, seeded ? "%s:%" PRIu64 : "%s", schedule_names[schedule], seed);
        const struct litmus_run run = {.schedule = text,
                                       .interleaving_seed = interleave ? seed + 1 : 0,
                                       .races = i < plan->verdict_seed_count};
        status = play(player, subject, &run, schedule, plan, reading);
    }
    return status;
}

// Where queries decide, one seed need not find anything, but all together must.
static void compare_union(struct litmus_reading_result *reading, const struct litmus_case *subject,
                          const struct litmus_plan *plan) {
    const bool suffices = plan->schedules[LITMUS_SCHEDULE_RANDOM] &&
                          plan->seed_count >= LITMUS_VERDICT_SEED_COUNT &&
                          plan->verdict_seed_count >= LITMUS_VERDICT_SEED_COUNT;
    if (suffices && reading->expectation->race && litmus_case_asks(subject) &&
        litmus_reading_found_count(reading, LITMUS_SCHEDULE_RANDOM) == 0)
        verdict_violation(reading, subject, "all seeds of random",
                          &(struct litmus_result){0}, -1);
}

static enum base_status judge_reading(struct litmus_player *player,
                                      const struct litmus_case *subject,
                                      const struct litmus_plan *plan,
                                      struct litmus_reading_result *reading) {
    enum base_status status = litmus_player_load(player, subject, reading->expectation);
    for (int schedule = 0; schedule < LITMUS_SCHEDULE_COUNT && status == BASE_OK; ++schedule)
        if (plan->schedules[schedule])
            status = judge_schedule(player, subject, (enum litmus_schedule)schedule, plan, reading);
    litmus_player_unload(player);
    if (status == BASE_OK)
        compare_union(reading, subject, plan);
    return status;
}

enum base_status litmus_judge(struct litmus_player *player, const struct litmus_case *subject,
                              const struct litmus_plan *plan, struct litmus_judgement *judgement) {
    *judgement = (struct litmus_judgement){
        .subject = subject,
        .reading_count = subject->expectation_count,
        .readings = calloc((size_t)subject->expectation_count, sizeof *judgement->readings),
    };
    BASE_CHECK(judgement->readings != NULL);
    enum base_status status = BASE_OK;
    for (int i = 0; i < judgement->reading_count && status == BASE_OK; ++i) {
        struct litmus_reading_result *reading = &judgement->readings[i];
        reading->expectation = &subject->expectations[i];
        reading->reached =
            calloc((size_t)reading->expectation->outcome_count, sizeof *reading->reached);
        reading->found =
            calloc((size_t)reading->expectation->race_count + 1, sizeof *reading->found);
        BASE_CHECK(reading->reached != NULL && reading->found != NULL);
        status = judge_reading(player, subject, plan, reading);
    }
    if (status != BASE_OK)
        litmus_judgement_deinit(judgement);
    return status;
}

void litmus_judgement_deinit(struct litmus_judgement *judgement) {
    for (int i = 0; i < judgement->reading_count; ++i) {
        free(judgement->readings[i].reached);
        free(judgement->readings[i].found);
    }
    free(judgement->readings);
    *judgement = (struct litmus_judgement){0};
}

int litmus_reading_found_count(const struct litmus_reading_result *reading,
                               enum litmus_schedule schedule) {
    int count = 0;
    for (int i = 0; i < reading->expectation->race_count; ++i)
        count += reading->found[i] >> schedule & 1;
    return count;
}

bool litmus_reading_is_right(const struct litmus_reading_result *reading,
                             const struct litmus_plan *plan) {
    const bool must_reach = plan->schedules[LITMUS_SCHEDULE_RANDOM] &&
                            plan->seed_count >= LITMUS_REACHING_SEED_COUNT;
    return reading->violation_count == 0 &&
           (!must_reach || reading->reached_count == reading->expectation->outcome_count);
}
