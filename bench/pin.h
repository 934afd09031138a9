// The machine as hwloc sees it: its description in one line, and binding threads to its cores, so
// that a measurement is not moved between caches midway.
//
//     int cpu;
//     if (bench_pin_thread(0, &cpu) != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
//     measure anyway
//
// Only CPUs that the process may use count (affinity, cgroups), one a core: two hardware threads of
// a core share what is measured. They are counted from the last one down, because interrupts and
// the system's own work prefer the first.
//
// Thread-safe. The first call looks at the machine (a few milliseconds) and the answer stays: call
// it before any thread is bound, since what the first caller may use is taken for what the process
// may use.
#ifndef TIDEMARK_BENCH_PIN_H
#define TIDEMARK_BENCH_PIN_H

#include "base/status.h"

#include <stddef.h>

// Binds the calling thread to core INDEX (0 is the last usable one) and checks that it runs there;
// *cpu is the system's number. An index beyond the last core starts over: threads then share a
// core. BASE_ENVIRONMENT says why binding failed (a container may forbid it); the thread then runs
// where it did.
enum base_status bench_pin_thread(int index, int *cpu) BASE_MUST_USE;

// Cores this process may use, at least 1.
int bench_core_count(void);

// "1 package, 2 cores, 2 threads, 1 NUMA node, 23.4 GiB, L1d 32 KiB, L2 512 KiB, L3 32 MiB";
// "unknown" without hwloc.
void bench_topology_line(char *buffer, size_t size);

#endif
