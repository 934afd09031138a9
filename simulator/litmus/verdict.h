// Compares what the race checker reported of a run with the races of a case.
#ifndef TIDEMARK_SIMULATOR_LITMUS_VERDICT_H
#define TIDEMARK_SIMULATOR_LITMUS_VERDICT_H

#include "simulator/litmus/play.h"

// The longest text of litmus_race_format, with its end.
#define LITMUS_RACE_TEXT_SIZE 256

// Which race of EXPECTATION this one is, whichever of its sides comes first; -1: none.
int litmus_race_find(const struct litmus_expectation *expectation, const struct litmus_race *race);
bool litmus_race_equals(const struct litmus_race *one, const struct litmus_race *other);

// A case with single queries has races that depend on what they answer: a run need not have one.
bool litmus_case_asks(const struct litmus_case *current);

// Whether the reports of one run are right: each is a race of EXPECTATION, and there are some if
// its verdict is "race" and the case asks nothing. Else *wrong is a report that is none of them, or
// -1 if one is missing.
bool litmus_verdict_is_right(const struct litmus_case *current,
                             const struct litmus_expectation *expectation,
                             const struct litmus_result *result, int *wrong);

// The words of a "race" line behind "race".
void litmus_race_format(const struct litmus_case *current, const struct litmus_race *race,
                        char text[LITMUS_RACE_TEXT_SIZE]);

#endif
