// An allocator around another one that says what its calls take: on the clock of the device that
// the program sees, and on the CPU.
//
//     status = workload_watch_create(inner, WORKLOAD_WATCH_STALLS, &watch);
//     ... a program on workload_watch_allocator(watch) ...
//     const struct workload_watch_totals totals = workload_watch_totals(watch);
//     workload_watch_destroy(watch);
//
// Either way costs something that the other would see, so a watch does one of them:
//
//     stalls   where the host is while an allocator call lasts. On the simulated device, under its
//              schedule `timed`, the virtual clock says that: host time itself never enters it, so
//              a hit takes none, and what is left are device calls and waits. On a GPU: elapsed
//              time, hits included. One call at a time, whatever the threads.
//     CPU      of the calling thread, whatever waits; threads do not meet here. Less than
//              workload_watch_clock_ns a call is the watch's own.
#ifndef TIDEMARK_BENCH_WORKLOAD_WATCH_H
#define TIDEMARK_BENCH_WORKLOAD_WATCH_H

#include "allocator/allocator.h"

#include <stdbool.h>
#include <stdint.h>

enum workload_watch_kind { WORKLOAD_WATCH_STALLS, WORKLOAD_WATCH_CPU };

// Of allocations, frees, record_streams and empty_caches. Unknown is 0.
struct workload_watch_totals {
    uint64_t calls;
    uint64_t cpu_ns;     // WORKLOAD_WATCH_CPU, the watch's own part included; all else is of STALLS
    uint64_t stall_ns;   // inside the calls
    uint64_t longest_ns; // the longest of them
    // Simulated device only.
    uint64_t wait_ns; // of stall_ns: waiting for the device, not in the work of device calls
    uint64_t dry_ns;  // of stall_ns: no device had anything to do
    uint64_t waits;   // calls that waited
};

struct workload_watch;

// BASE_HOST_MEMORY. INNER stays the caller's and lives as long as the watch.
enum base_status workload_watch_create(struct allocator *inner, enum workload_watch_kind kind,
                                       struct workload_watch **watch) BASE_MUST_USE;
void workload_watch_destroy(struct workload_watch *watch); // NULL is ignored
struct allocator *workload_watch_allocator(struct workload_watch *watch);

// Since the creation, while no other thread is in the allocator.
struct workload_watch_totals workload_watch_totals(struct workload_watch *watch);

// What two readings of the thread's CPU clock tell of an empty stretch between them, the median of
// many.
uint64_t workload_watch_clock_ns(void);

// Nanoseconds of CPU time, of this thread or of all of the process's.
uint64_t workload_watch_thread_ns(void);
uint64_t workload_watch_process_ns(void);

#endif
