// Compares what a run left with what a case allows.
#ifndef TIDEMARK_SIMULATOR_LITMUS_OUTCOME_H
#define TIDEMARK_SIMULATOR_LITMUS_OUTCOME_H

#include "simulator/litmus/play.h"

// The longest text of litmus_result_format, with its end.
#define LITMUS_RESULT_TEXT_SIZE 2048

// Whether RESULT is this outcome: the same bytes in each buffer that it names, which must be live,
// and the same results of exactly the reads and queries that it names.
bool litmus_outcome_matches(const struct litmus_case *current, const struct litmus_outcome *outcome,
                            const struct litmus_result *result);

// Whether every performed call returned what EXPECTATION says; a query may say "not ready" as well,
// which is part of the outcome. Else *wrong is the first operation that did not.
bool litmus_codes_match(const struct litmus_case *current,
                        const struct litmus_expectation *expectation,
                        const struct litmus_result *result, int *wrong);
// What the operation must return; 0 unless the case says otherwise.
int litmus_code_expected(const struct litmus_expectation *expectation, int operation);

// What RESULT left, in the words of an "outcome" line: the buffers that EXPECTATION's outcomes
// name, and what was read and queried.
void litmus_result_format(const struct litmus_case *current,
                          const struct litmus_expectation *expectation,
                          const struct litmus_result *result, char text[LITMUS_RESULT_TEXT_SIZE]);

#endif
