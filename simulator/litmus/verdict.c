// See verdict.h.
#include "simulator/litmus/verdict.h"

#include <stdio.h>

static bool side_equals(const struct litmus_side *one, const struct litmus_side *other) {
    return one->operation == other->operation && one->launch == other->launch;
}

bool litmus_race_equals(const struct litmus_race *one, const struct litmus_race *other) {
    const bool same = side_equals(&one->sides[0], &other->sides[0]) &&
                      side_equals(&one->sides[1], &other->sides[1]);
    const bool swapped = side_equals(&one->sides[0], &other->sides[1]) &&
                         side_equals(&one->sides[1], &other->sides[0]);
    return one->kind == other->kind && one->buffer == other->buffer &&
           one->block == other->block && (same || swapped);
}

int litmus_race_find(const struct litmus_expectation *expectation,
                     const struct litmus_race *race) {
    for (int i = 0; i < expectation->race_count; ++i)
        if (litmus_race_equals(&expectation->races[i], race))
            return i;
    return -1;
}

bool litmus_case_asks(const struct litmus_case *current) {
    for (int i = 0; i < current->operation_count; ++i)
        if (litmus_verb_queries(current->operations[i].verb))
            return true;
    return false;
}

bool litmus_verdict_is_right(const struct litmus_case *current,
                             const struct litmus_expectation *expectation,
                             const struct litmus_result *result, int *wrong) {
    *wrong = -1;
    if (result->race_count > LITMUS_RACE_COUNT_MAX)
        return false;
    for (int i = 0; i < result->race_count; ++i) {
        if (litmus_race_find(expectation, &result->races[i]) < 0) {
            *wrong = i;
            return false;
        }
    }
    return result->race_count > 0 || !expectation->race || litmus_case_asks(current);
}

// --- Text ---

static void side_format(const struct litmus_case *current, const struct litmus_side *side,
                        char *text, size_t size) {
    const char *label = side->operation < 0 ? "-" : current->operations[side->operation].label;
    if (side->launch < 0)
        snprintf(text, size, "%s", label);
    else
        snprintf(text, size, "%s/%s", current->operations[side->launch].label, label);
}

void litmus_race_format(const struct litmus_case *current, const struct litmus_race *race,
                        char text[LITMUS_RACE_TEXT_SIZE]) {
    char sides[2][2 * LITMUS_NAME_LENGTH_MAX + 2];
    for (int i = 0; i < 2; ++i)
        side_format(current, &race->sides[i], sides[i], sizeof sides[i]);
    snprintf(text, LITMUS_RACE_TEXT_SIZE, "%s %s %s %s",
             race->kind == LITMUS_RACE_KIND_COUNT ? "unknown" : litmus_race_kind_word(race->kind),
             sides[0], sides[1],
             race->buffer >= 0  ? current->buffers[race->buffer].name
             : race->block >= 0 ? current->blocks[race->block]
                                : "nowhere");
}
