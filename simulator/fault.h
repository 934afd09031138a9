// Planned faults: the plan of a file, see fault.c. All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_FAULT_H
#define TIDEMARK_SIMULATOR_FAULT_H

#include "simulator/sim.h"

// How many rules the plan has.
extern int sim__fault_count;

// A call of that kind begins: what it must end with, or cudaSuccess. Delays are done.
cudaError_t sim__fault_strike(enum sim_call call);

// Reads the plan that TIDEMARK_SIM_FAULTS names, unless the program loaded one.
enum base_status sim__faults_from_environment(void);
// The machine starts: all rules begin anew.
void sim__faults_begin(void);

#endif
