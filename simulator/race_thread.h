// Hand-offs between host threads by base/thread.h: race_thread.c. The functions need the
// simulator's lock, the last but one does not.
#ifndef TIDEMARK_SIMULATOR_RACE_THREAD_H
#define TIDEMARK_SIMULATOR_RACE_THREAD_H

#include "simulator/race_inside.h"

// Listens from now on, if threads have an order of their own each.
void sim__race_threads_begin(void);
void sim__race_threads_end(void);
// The calling thread ends.
void sim__race_thread_ends(void);
// Other hooks (sim_serialize) begin, or end: NULL. With or without a listener before them.
struct base_thread_hooks;
void sim__race_threads_inner(const struct base_thread_hooks *set);

#endif
