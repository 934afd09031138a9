// Accesses of operations, with their blocks.
#ifndef TIDEMARK_SIMULATOR_RACE_ACCESS_H
#define TIDEMARK_SIMULATOR_RACE_ACCESS_H

#include "simulator/race_inside.h"

// How many, and which: valid until the next call.
size_t sim__race_accesses(const struct sim__operation *operation,
                          const struct sim__race_access **accesses);
size_t sim__race_host_accesses(const void *pointer, size_t size, size_t rows, size_t pitch,
                               enum sim_access_mode mode,
                               const struct sim__race_access **accesses);
void sim__race_accesses_clear(void);

#endif
