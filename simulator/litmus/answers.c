// See answers.h.
#include "simulator/litmus/answers.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static void lines_add(struct litmus_lines *lines, const char *line) {
    for (int i = 0; i < lines->count; ++i)
        if (strcmp(lines->lines[i], line) == 0)
            return;
    if (lines->count == lines->size) {
        lines->size = lines->size == 0 ? 8 : 2 * lines->size;
        lines->lines = realloc(lines->lines, (size_t)lines->size * sizeof *lines->lines);
        BASE_CHECK(lines->lines != NULL);
    }
    lines->lines[lines->count] = strdup(line);
    BASE_CHECK(lines->lines[lines->count++] != NULL);
}

static void lines_write(struct litmus_lines *lines, const struct litmus_case *subject,
                        const char *word, FILE *file) {
    for (int i = 0; i < lines->count; ++i) {
        fprintf(file, "%s %s %s\n", subject->name, word, lines->lines[i]);
        free(lines->lines[i]);
    }
    free(lines->lines);
    *lines = (struct litmus_lines){0};
}

static void observe_races(struct litmus_answers *answers, const struct litmus_case *subject,
                          const struct litmus_result *result) {
    char text[LITMUS_RACE_TEXT_SIZE];
    for (int i = 0; i < result->race_count && i < LITMUS_RACE_COUNT_MAX; ++i) {
        litmus_race_format(subject, &result->races[i], text);
        lines_add(&answers->races, text);
    }
}

// What a query answers is part of the outcome.
static void observe_returns(struct litmus_answers *answers, const struct litmus_case *subject,
                            const struct litmus_result *result) {
    char text[LITMUS_NAME_LENGTH_MAX + 16];
    for (int i = 0; i < subject->operation_count; ++i) {
        if (!result->performed[i] || result->codes[i] == 0 ||
            (result->codes[i] == 600 && litmus_verb_queries(subject->operations[i].verb)))
            continue;
        snprintf(text, sizeof text, "%s %d", subject->operations[i].label, result->codes[i]);
        lines_add(&answers->returns, text);
    }
}

void litmus_answers_observe(void *context, const struct litmus_case *subject,
                            const struct litmus_expectation *expectation,
                            const struct litmus_result *result) {
    struct litmus_answers *answers = context;
    char text[LITMUS_RESULT_TEXT_SIZE];
    if (!result->races_judged ||
        (expectation->reading != NULL && expectation != &subject->expectations[answers->reading]))
        return;
    observe_races(answers, subject, result);
    if (result->illegal_address) // no code or outcome means anything
        return;
    observe_returns(answers, subject, result);
    litmus_result_format(subject, expectation, result, text);
    lines_add(&answers->outcomes, text);
}

void litmus_answers_write(struct litmus_answers *answers, const struct litmus_case *subject,
                          FILE *file) {
    fprintf(file, "%s verdict %s\n", subject->name, answers->races.count > 0 ? "race" : "ok");
    lines_write(&answers->races, subject, "race", file);
    lines_write(&answers->returns, subject, "return", file);
    lines_write(&answers->outcomes, subject, "outcome", file);
}
