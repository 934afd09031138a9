// Values as signs: race_value.c.
#ifndef TIDEMARK_SIMULATOR_RACE_VALUE_H
#define TIDEMARK_SIMULATOR_RACE_VALUE_H

#include "simulator/race_inside.h"

// An operation writes VALUE; takes POINT, which is that operation.
void sim__race_value_written(const void *address, uint64_t value, struct sim__order_point point);
void sim__race_values_clear(void);

#endif
