// Event calls that cost next to nothing.
//
// Some limits of an allocator's cost include the event calls that it makes. What the simulator does
// in such a call (its lock, its order of things) would drown what the allocator does, so between
// _begin and _end cudaEventRecord, cudaEventQuery and cudaGetLastError only answer: a record
// succeeds, and every event is complete or none is. Programs that link this file need the linker's
// --wrap for these calls (see BUILD). Whoever still has events then must make them anew: these
// records leave no trace.
//
// Set while one thread uses events.
#ifndef TIDEMARK_BENCH_LIGHT_EVENTS_H
#define TIDEMARK_BENCH_LIGHT_EVENTS_H

#include <stdbool.h>

void bench_light_events_begin(bool complete);
void bench_light_events_end(void);

#endif
