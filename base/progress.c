// The progress line, the interrupt flag and the monotonic clock. Progress belongs to one thread;
// the interrupt flag is an atomic that the handler alone writes. No locks.
#include "base/progress.h"

#include "base/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUIET_S 0.5 // work shorter than this prints nothing
#define TERMINAL_INTERVAL_S 0.1
#define PLAIN_INTERVAL_S 10.0
#define STEP_MAX 1024
#define LOOK_INTERVAL_S 0.01 // looks at the clock come no closer than this, once the step has grown
#define ESTIMATE_FROM_S 2.0  // before that, the time left is a guess not worth printing

uint64_t base_time_ns(void) {
    struct timespec now;
    BASE_CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

double base_time_s(void) { return (double)base_time_ns() * 1e-9; }

void base_progress_begin(struct base_progress *progress, const char *label, uint64_t total) {
    const double now_s = base_time_s();
    *progress = (struct base_progress){.label = label,
                                       .total = total,
                                       .step = 1,
                                       .start_s = now_s,
                                       .last_look_s = now_s,
                                       .terminal = isatty(STDERR_FILENO) != 0};
    // Elsewhere than on a terminal the first line comes after a whole interval as well.
    progress->last_print_s = progress->terminal ? now_s - TERMINAL_INTERVAL_S : now_s;
}

static void print_line(struct base_progress *progress, uint64_t done, double elapsed_s) {
    char line[160];
    int length;
    if (progress->total == 0) {
        length = snprintf(line, sizeof line, "%.60s: %llu done, %.0f s", progress->label,
                          (unsigned long long)done, elapsed_s);
    } else {
        const double share = (double)done / (double)progress->total;
        length = snprintf(line, sizeof line, "%.60s: %.0f %% of %llu, %.0f s", progress->label,
                          share * 100, (unsigned long long)progress->total, elapsed_s);
        if (elapsed_s >= ESTIMATE_FROM_S && share > 0 && share < 1)
            snprintf(line + length, sizeof line - (size_t)length, ", about %.0f s left",
                     elapsed_s / share - elapsed_s);
    }
    if (progress->terminal)
        fprintf(stderr, "\r%s\033[K", line);
    else
        fprintf(stderr, "%s\n", line);
    progress->printed = true;
}

void base_progress_update(struct base_progress *progress, uint64_t done) {
    if (done < progress->next_look)
        return;
    const double now_s = base_time_s();
    // The step between two looks follows the speed of the work, so that neither slow nor fast work
    // waits for it.
    if (now_s - progress->last_look_s >= LOOK_INTERVAL_S)
        progress->step = progress->step > 1 ? progress->step / 2 : 1;
    else if (progress->step < STEP_MAX)
        progress->step *= 2;
    progress->last_look_s = now_s;
    progress->next_look = done + progress->step;
    const double interval_s = progress->terminal ? TERMINAL_INTERVAL_S : PLAIN_INTERVAL_S;
    if (now_s - progress->start_s < QUIET_S || now_s - progress->last_print_s < interval_s)
        return;
    progress->last_print_s = now_s;
    print_line(progress, done, now_s - progress->start_s);
}

void base_progress_end(struct base_progress *progress) {
    if (!progress->printed)
        return;
    if (progress->terminal)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "%.60s: done, %.0f s\n", progress->label,
                base_time_s() - progress->start_s);
    progress->printed = false;
}

// The signal that came first, 0 before.
static atomic_int interrupt_signal;

static void interrupt_handle(int signal_number) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&interrupt_signal, &none, signal_number))
        _exit(128 + signal_number);
}

void base_interrupt_install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt_handle;
    // Reads and writes go on: only loops that ask base_interrupted() stop, at a point they chose.
    action.sa_flags = SA_RESTART;
    BASE_CHECK_EQ(sigemptyset(&action.sa_mask), 0);
    BASE_CHECK_EQ(sigaction(SIGINT, &action, NULL), 0);
    BASE_CHECK_EQ(sigaction(SIGTERM, &action, NULL), 0);
}

bool base_interrupted(void) {
    // Relaxed: nothing is published along with the flag.
    return atomic_load_explicit(&interrupt_signal, memory_order_relaxed) != 0;
}

int base_interrupt_exit_code(void) {
    const int signal_number = atomic_load_explicit(&interrupt_signal, memory_order_relaxed);
    return signal_number == 0 ? 0 : 128 + signal_number;
}
