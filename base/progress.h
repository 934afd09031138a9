// A progress line for long work: redrawn on a terminal, a plain line every ten seconds elsewhere,
// on stderr, nothing when the work takes under half a second.
//
//     struct base_progress progress;
//     base_progress_begin(&progress, "replay", total);
//     ... base_progress_update(&progress, done);   cheap: looks at the clock once in 1,024 units
//     base_progress_end(&progress);
//
// Also the one place that knows of Ctrl-C: base_interrupted() tells long loops to stop at the next
// safe point.
#ifndef TIDEMARK_BASE_PROGRESS_H
#define TIDEMARK_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct base_progress {
    const char *label;
    uint64_t total;     // 0 if unknown
    uint64_t next_look; // the clock is not asked before this much is done
    uint64_t step;      // units from one look to the next: 1 to 1,024, by the speed of the work
    double start_s, last_look_s, last_print_s;
    bool terminal, printed;
};

void base_progress_begin(struct base_progress *progress, const char *label, uint64_t total);
void base_progress_update(struct base_progress *progress, uint64_t done);
void base_progress_end(struct base_progress *progress);

// Installs handlers of SIGINT and SIGTERM that only set a flag; a second signal ends the process at
// once (status 130 or 143). base_interrupted() is async-signal-safe and costs one load.
void base_interrupt_install(void);
bool base_interrupted(void);
// 130 after SIGINT, 143 after SIGTERM, 0 if none came.
int base_interrupt_exit_code(void);

// Monotonic time in seconds and nanoseconds.
double base_time_s(void);
uint64_t base_time_ns(void);

#endif
