// Which of an executable's nodes come before which: for each node up to which node of each lane.
#ifndef TIDEMARK_SIMULATOR_RACE_PLAN_H
#define TIDEMARK_SIMULATOR_RACE_PLAN_H

#include "simulator/graph.h"

struct sim__race_plan;

// Kept until another executable takes the place of EXEC's handle.
struct sim__race_plan *sim__race_plan_of(const struct sim__exec *exec);
// Whether nodes wait for events.
bool sim__race_plan_waits(const struct sim__race_plan *plan);
void sim__race_plans_clear(void);

#endif
