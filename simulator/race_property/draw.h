// Random programs without a race: before an operation that conflicts with an earlier one that
// nothing orders yet, the generator adds what orders it. What is ordered it knows by sets of its
// own (drawing.h); closure.h judges the outcome by other means.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_DRAW_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_DRAW_H

#include "base/random.h"
#include "simulator/race_property/program.h"

// What a program is made of: its streams, memory, threads and how long it is come from RANDOM too.
// Not thread-safe.
void program_draw(struct base_random *random, struct program *program);
// One of few operations, for judges that enumerate.
void program_draw_small(struct base_random *random, struct program *program);

#endif
