// One run of a program against its judgement, and what is left of a program that fails when all
// that the failure does not need is taken away.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_VERDICT_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_VERDICT_H

#include "simulator/race_property/closure.h"
#include "simulator/race_property/perform.h"

enum verdict {
    VERDICT_RIGHT,
    VERDICT_ILLEGAL, // the judge refuses the program
    VERDICT_FALSE,   // a report that the judge does not list
    VERDICT_MISSED,  // the judge lists pairs, and none was reported
    VERDICT_BROKEN,  // a call failed, or a report names none of the program's operations
};
const char *verdict_text(enum verdict verdict);

// Plays PROGRAM, and judges it with what its queries answered. The results of both are those of the
// last call (verdict_judgement, verdict_performed).
enum verdict verdict_of(const struct program *program, const struct performance *performance);
const struct judgement *verdict_judgement(void);
const struct performed *verdict_performed(void);

// Drops operations and steps of PROGRAM as long as VERDICT stays.
void program_shrink(struct program *program, const struct performance *performance,
                    enum verdict verdict);

// The program, what the judge lists and what was reported.
void verdict_print(FILE *out, const struct program *program, const char *name);

#endif
