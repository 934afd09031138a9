// How long calls and copies take on this device, in the words of a device profile
// (docs/cost-model.md): what the cost model needs and published figures do not say.
#ifndef TIDEMARK_SIMULATOR_CONFORMANCE_MEASURE_H
#define TIDEMARK_SIMULATOR_CONFORMANCE_MEASURE_H

#include <stdio.h>

// Some seconds. Each line gives the 1st, the 50th and the 99th of 100 repetitions in order of their
// time. Returns an exit status: 1 if a call failed, which the line says.
int conformance_measure(FILE *output);

#endif
