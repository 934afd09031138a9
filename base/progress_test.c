// The progress line on a file and on a terminal, and the interrupt flag. Nothing sleeps: elapsed
// time is made by moving the start of the work into the past.
#include "base/progress.h"

#include "base/check.h"
#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

// As if the work had begun SECONDS earlier, with nothing printed since and the clock due for a
// look.
static void pass_time(struct base_progress *progress, double seconds) {
    progress->start_s -= seconds;
    progress->last_look_s -= seconds;
    progress->last_print_s -= seconds;
    progress->next_look = 0;
}

static void quick_work(void *argument) {
    (void)argument;
    struct base_progress progress;
    base_progress_begin(&progress, "replay", 10000);
    for (uint64_t done = 0; done <= 10000; done++)
        base_progress_update(&progress, done);
    base_progress_end(&progress);
}

static void quick_work_prints_nothing(void) {
    struct base_child child = base_child_run(quick_work, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strcmp(child.error_text, ""), 0);
    base_child_deinit(&child);
}

static void slow_work(void *argument) {
    struct base_progress progress;
    base_progress_begin(&progress, "replay", *(const uint64_t *)argument);
    pass_time(&progress, 9);
    base_progress_update(&progress, 10);
    pass_time(&progress, 6);
    base_progress_update(&progress, 25);
    // Only now did ten seconds pass since the line before.
    base_progress_update(&progress, 30);
    pass_time(&progress, 10);
    base_progress_update(&progress, 50);
    base_progress_end(&progress);
}

static void plain_lines_come_every_ten_seconds(void) {
    uint64_t total = 100;
    struct base_child child = base_child_run(slow_work, &total);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strcmp(child.error_text, "replay: 25 % of 100, 15 s, about 45 s left\n"
                                           "replay: 50 % of 100, 25 s, about 25 s left\n"
                                           "replay: done, 25 s\n"),
                  0);
    BASE_CHECK_EQ(strcmp(child.output_text, ""), 0);
    base_child_deinit(&child);
}

static void unknown_total_counts_what_is_done(void) {
    uint64_t total = 0;
    struct base_child child = base_child_run(slow_work, &total);
    BASE_CHECK_EQ(strcmp(child.error_text, "replay: 25 done, 15 s\n"
                                           "replay: 50 done, 25 s\n"
                                           "replay: done, 25 s\n"),
                  0);
    base_child_deinit(&child);
}

// The child's stderr becomes a pseudo-terminal; what arrives there is copied to its stdout.
static void work_on_terminal(void *argument) {
    (void)argument;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    BASE_CHECK_GE(terminal, 0);
    BASE_CHECK_EQ(grantpt(terminal), 0);
    BASE_CHECK_EQ(unlockpt(terminal), 0);
    const int line = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    BASE_CHECK_GE(line, 0);
    BASE_CHECK_EQ(dup2(line, STDERR_FILENO), STDERR_FILENO);
    struct base_progress progress;
    base_progress_begin(&progress, "replay", 100);
    pass_time(&progress, 1);
    base_progress_update(&progress, 10);
    base_progress_update(&progress, 11);
    pass_time(&progress, 1.2);
    base_progress_update(&progress, 50);
    base_progress_end(&progress);
    char text[512];
    const ssize_t length = read(terminal, text, sizeof text);
    BASE_CHECK_GT(length, 0);
    BASE_CHECK_EQ(write(STDOUT_FILENO, text, (size_t)length), length);
}

static void terminal_line_is_redrawn_and_cleared(void) {
    struct base_child child = base_child_run(work_on_terminal, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strcmp(child.output_text, "\rreplay: 10 % of 100, 1 s\033[K"
                                            "\rreplay: 50 % of 100, 2 s, about 2 s left\033[K"
                                            "\r\033[K"),
                  0);
    base_child_deinit(&child);
}

static void fast_work_rarely_looks_at_the_clock(void) {
    struct base_progress progress;
    base_progress_begin(&progress, "replay", 1000000);
    int looks = 0;
    for (uint64_t done = 0; done < 1000000; done++) {
        const uint64_t before = progress.next_look;
        base_progress_update(&progress, done);
        looks += progress.next_look != before;
    }
    base_progress_end(&progress);
    // A million units in steps of 1,024 are about 1,000 looks; a busy machine takes a few more.
    BASE_CHECK_LT(looks, 20000);
}

static void raise_once(void *argument) {
    const int signal_number = *(const int *)argument;
    base_interrupt_install();
    BASE_CHECK(!base_interrupted());
    BASE_CHECK_EQ(base_interrupt_exit_code(), 0);
    BASE_CHECK_EQ(raise(signal_number), 0);
    BASE_CHECK(base_interrupted());
    exit(base_interrupt_exit_code());
}

static void raise_twice(void *argument) {
    base_interrupt_install();
    BASE_CHECK_EQ(raise(*(const int *)argument), 0);
    BASE_CHECK_EQ(raise(*(const int *)argument), 0);
    abort();
}

static void signals_set_the_flag_and_the_second_ends_the_process(void) {
    int signals[] = {SIGINT, SIGTERM};
    for (int index = 0; index < 2; index++) {
        void (*const bodies[])(void *) = {raise_once, raise_twice};
        for (int body = 0; body < 2; body++) {
            struct base_child child = base_child_run(bodies[body], &signals[index]);
            BASE_CHECK_EQ(child.exit_code, index == 0 ? 130 : 143);
            base_child_deinit(&child);
        }
    }
}

static void clock_is_monotonic_and_its_units_agree(void) {
    const uint64_t first_ns = base_time_ns();
    const double middle_s = base_time_s();
    const uint64_t last_ns = base_time_ns();
    BASE_CHECK(first_ns <= last_ns);
    BASE_CHECK(middle_s >= (double)first_ns * 1e-9 - 1e-6 &&
               middle_s <= (double)last_ns * 1e-9 + 1e-6);
}

int main(void) {
    quick_work_prints_nothing();
    plain_lines_come_every_ten_seconds();
    unknown_total_counts_what_is_done();
    terminal_line_is_redrawn_and_cleared();
    fast_work_rarely_looks_at_the_clock();
    signals_set_the_flag_and_the_second_ends_the_process();
    clock_is_monotonic_and_its_units_agree();
    return 0;
}
