// What a checker answers about cases, for another referee than the judge: each verdict, race, code
// and outcome of a case that some run had, a line each, in the words of the case files.
//
//     struct litmus_answers answers = {0};
//     plan.observe = litmus_answers_observe, plan.context = &answers;
//     litmus_judge(player, subject, &plan, &judgement);
//     litmus_answers_write(&answers, subject, stdout);      and begins anew
#ifndef TIDEMARK_SIMULATOR_LITMUS_ANSWERS_H
#define TIDEMARK_SIMULATOR_LITMUS_ANSWERS_H

#include "simulator/litmus/judge.h"

#include <stdio.h>

// A set of lines, in the order in which they first came up.
struct litmus_lines {
    int count, size;
    char **lines;
};

struct litmus_answers {
    int reading; // of undecided cases: under which of their readings, from 0
    struct litmus_lines races, returns, outcomes;
};

// A run under the race checker: CONTEXT is a struct litmus_answers.
void litmus_answers_observe(void *context, const struct litmus_case *subject,
                            const struct litmus_expectation *expectation,
                            const struct litmus_result *result);
// Writes what was observed of SUBJECT, and forgets it.
void litmus_answers_write(struct litmus_answers *answers, const struct litmus_case *subject,
                          FILE *file);

#endif
