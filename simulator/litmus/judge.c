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

// --- One run ---

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
    const bool named = expectation->reading != NULL;
    size_t length = (size_t)snprintf(
        reading->violation, sizeof reading->violation, "%s%s%s%s%s under %s: %s\n    left %s",
        subject->name, named ? " " : "", named ? expectation->reading : "", named ? "=" : "",
        named ? expectation->reading_value : "", run->schedule, what,
        result->illegal_address ? "nothing" : left);
    for (int i = 0; i < expectation->outcome_count && length < sizeof reading->violation; ++i)
        length += (size_t)snprintf(reading->violation + length, sizeof reading->violation - length,
                                   "\n    allowed %s", expectation->outcomes[i].text);
}

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

static void compare(struct litmus_reading_result *reading, const struct litmus_case *subject,
                    const struct litmus_run *run, const struct litmus_result *result,
                    bool counts) {
    const struct litmus_expectation *expectation = reading->expectation;
    int wrong;
    ++reading->run_count;
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
                             const struct litmus_run *run, bool counts,
                             struct litmus_reading_result *reading) {
    struct litmus_result result;
    const enum base_status status = litmus_play(player, run, &result);
    if (status == BASE_OK)
        compare(reading, subject, run, &result, counts);
    return status;
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
    const bool counts =
        schedule == LITMUS_SCHEDULE_RANDOM || !plan->schedules[LITMUS_SCHEDULE_RANDOM];
    const uint64_t count = seeded ? plan->seed_count : 1;
    enum base_status status = BASE_OK;
    for (uint64_t i = 0; i < count && status == BASE_OK; ++i) {
        const uint64_t seed = plan->first_seed + i;
        char text[64];
        snprintf(text, sizeof text, seeded ? "%s:%" PRIu64 : "%s", schedule_names[schedule], seed);
        const struct litmus_run run = {.schedule = text,
                                       .interleaving_seed = interleave ? seed + 1 : 0};
        status = play(player, subject, &run, counts, reading);
    }
    return status;
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
        BASE_CHECK(reading->reached != NULL);
        status = judge_reading(player, subject, plan, reading);
    }
    if (status != BASE_OK)
        litmus_judgement_deinit(judgement);
    return status;
}

void litmus_judgement_deinit(struct litmus_judgement *judgement) {
    for (int i = 0; i < judgement->reading_count; ++i)
        free(judgement->readings[i].reached);
    free(judgement->readings);
    *judgement = (struct litmus_judgement){0};
}

bool litmus_reading_is_right(const struct litmus_reading_result *reading,
                             const struct litmus_plan *plan) {
    const bool must_reach = plan->schedules[LITMUS_SCHEDULE_RANDOM] &&
                            plan->seed_count >= LITMUS_REACHING_SEED_COUNT;
    return reading->violation_count == 0 &&
           (!must_reach || reading->reached_count == reading->expectation->outcome_count);
}
