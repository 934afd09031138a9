// Memory that blocks gave back: race_given.c.
#ifndef TIDEMARK_SIMULATOR_RACE_GIVEN_H
#define TIDEMARK_SIMULATOR_RACE_GIVEN_H

#include "simulator/race_inside.h"

// Whether that is asked for; else what follows does nothing.
void sim__given_begin(bool only);
// NUMBER gave RANGE back.
void sim__given_set(const struct sim__range *range, uint64_t number);
// It is taken again, or is no memory any more.
void sim__given_forget(uint64_t start, uint64_t size);
// The block that held bytes of ROWS last, and gave them back; 0: none.
uint64_t sim__given_block(const struct sim__rows *rows);
void sim__given_clear(void);

#endif
