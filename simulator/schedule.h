// The schedule decides when ready work runs. Here: eager, at once, in the order in which streams
// became ready; except for held streams, which wait until they are released or forced.
#ifndef TIDEMARK_SIMULATOR_SCHEDULE_H
#define TIDEMARK_SIMULATOR_SCHEDULE_H

#include "simulator/state.h"

// Whether an operation that is submitted to this idle stream runs within the call.
static inline bool sim__schedule_runs_now(const struct sim__stream *stream) {
    return !stream->held;
}
// The first operation of STREAM became ready.
void sim__schedule_offer(struct sim__stream *stream);
// A stream whose first operation is to run now; NULL if none is. It may have run meanwhile: look.
struct sim__stream *sim__schedule_next(void);
void sim__schedule_clear(void);

#endif
