// A second thread that only exists: glibc takes locks more cheaply in a process of one thread, and
// no process that uses a GPU is one. Alive from before the first measurement to after the last one.
// One a process.
#ifndef TIDEMARK_BENCH_COMPANION_H
#define TIDEMARK_BENCH_COMPANION_H

void bench_companion_begin(void);
void bench_companion_end(void);

#endif
