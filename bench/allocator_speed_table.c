// Cases by name, what comes of their rounds, and rows with limits.
#include "bench/allocator_speed.h"

#include "base/check.h"
#include "bench/session_measure.h"
#include "bench/subject.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CASE_COUNT_MAX 256
#define TEXT_WIDTH 44

struct speed_run speed_run;
struct bench_results *speed_results;

static struct speed_case cases[CASE_COUNT_MAX];
static size_t case_count;

//--------------------------------------------------------------------------------------------------
// Cases.

struct speed_case *speed_case_add(enum speed_group group, const char *format, ...) {
    BASE_CHECK_LT(case_count, CASE_COUNT_MAX);
    struct speed_case *added = &cases[case_count++];
    const int prefix = snprintf(added->name, sizeof added->name, "allocator/");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(added->name + prefix, sizeof added->name - (size_t)prefix, format, arguments);
    va_end(arguments);
    added->group = group;
    added->pair_count = 1;
    return added;
}

struct speed_case *speed_case_add_session(enum speed_group group, const char *name,
                                          const struct bench_subject *subject,
                                          const struct bench_pattern *pattern, int thread_count,
                                          enum bench_streams streams) {
    const char *suffix = thread_count == 1              ? ""
                         : streams == BENCH_STREAMS_OWN ? "/own_streams"
                                                        : "/one_stream";
    struct speed_case *added = speed_case_add(group, "%s/%s%s", name, subject->name, suffix);
    added->measure = speed_case_measure_session;
    added->setup = (struct bench_session_setup){
        .subject = subject, .pattern = pattern, .thread_count = thread_count, .streams = streams};
    added->pair_count = (double)pattern->pair_count;
    added->clock = thread_count == 1 ? BENCH_CLOCK_CPU : BENCH_CLOCK_REAL;
    if (pattern->script != NULL) // and as much again, lost between the blocks
        added->bytes_needed = 2 * (uint64_t)thread_count * pattern->script->peak_bytes;
    added->label = subject == &bench_subject_caching ? "default configuration" : subject->name;
    return added;
}

void speed_case_measure_session(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    bench_session_measure(state, &measured->setup, measured->label);
}

size_t speed_case_count(void) {
    return case_count;
}
struct speed_case *speed_case_get(size_t index) {
    return &cases[index];
}

//--------------------------------------------------------------------------------------------------
// Results.

int speed_round_count(const struct speed_case *measured) {
    const size_t index = bench_results_find(speed_results, measured->name);
    return index == SIZE_MAX ? 0 : bench_results_get(speed_results, index).round_count;
}

double speed_ns(const struct speed_case *measured, int round) {
    const size_t index = bench_results_find(speed_results, measured->name);
    if (index == SIZE_MAX) return NAN;
    const struct bench_result result = bench_results_get(speed_results, index);
    return bench_round_times_ns(&result, measured->clock)[round] / measured->pair_count;
}

double speed_fastest_ns(const struct speed_case *measured) {
    const size_t index = bench_results_find(speed_results, measured->name);
    if (index == SIZE_MAX) return NAN;
    const struct bench_result result = bench_results_get(speed_results, index);
    return bench_fastest_ns(&result, measured->clock) / measured->pair_count;
}

double speed_quotient(const struct speed_case *above, const struct speed_case *below,
                      double factor) {
    const size_t a = bench_results_find(speed_results, above->name);
    const size_t b = bench_results_find(speed_results, below->name);
    if (a == SIZE_MAX || b == SIZE_MAX) return NAN;
    const struct bench_result first = bench_results_get(speed_results, a),
                              second = bench_results_get(speed_results, b);
    // One thread against two: by the clock that both have.
    const enum bench_clock clock = above->clock == BENCH_CLOCK_CPU ? below->clock : above->clock;
    return bench_quotient_within_rounds(&first, &second, clock,
                                        factor * below->pair_count / above->pair_count);
}

// Of the absent 0, or 1.
static double part(const struct speed_case *measured, int round, double absent) {
    return measured == NULL ? absent : speed_ns(measured, round);
}

double speed_added(const struct speed_case *a, const struct speed_case *b,
                   const struct speed_case *c) {
    double values[BENCH_ROUND_COUNT_MAX];
    const int rounds = speed_round_count(a);
    if ((b != NULL && speed_round_count(b) != rounds) ||
        (c != NULL && speed_round_count(c) != rounds))
        return NAN;
    for (int i = 0; i < rounds; i++) values[i] = (speed_ns(a, i) - part(b, i, 0)) / part(c, i, 1);
    return bench_median(values, (size_t)rounds);
}

//--------------------------------------------------------------------------------------------------
// Rows.

#define ROW_COUNT_MAX 160
static struct line {
    struct speed_row row;
    char text[64], detail[160];
    bool heading, within;
} lines[ROW_COUNT_MAX];
static size_t line_count;

static struct line *line_add(void) {
    BASE_CHECK_LT(line_count, ROW_COUNT_MAX);
    return &lines[line_count++];
}

void speed_section_add(const char *text) {
    struct line *added = line_add();
    added->heading = true;
    snprintf(added->detail, sizeof added->detail, "%s", text);
}

static void row_note(const struct line *line, const struct speed_case *of) {
    const size_t index = of == NULL ? SIZE_MAX : bench_results_find(speed_results, of->name);
    if (index == SIZE_MAX) return;
    bench_results_counter(speed_results, index, "measured", line->row.measured);
    if (isnan(line->row.limit)) return;
    bench_results_counter(speed_results, index, "limit", line->row.limit);
    bench_results_counter(speed_results, index, "within_limit", line->within);
}

void speed_row_add(const struct speed_row *row, const struct speed_case *of, const char *detail,
                   ...) {
    if (isnan(row->measured)) return;
    struct line *added = line_add();
    added->row = *row;
    snprintf(added->text, sizeof added->text, "%s", row->text);
    added->within = row->at_least ? row->measured >= row->limit : row->measured <= row->limit;
    va_list arguments;
    va_start(arguments, detail);
    vsnprintf(added->detail, sizeof added->detail, detail, arguments);
    va_end(arguments);
    row_note(added, of);
}

static void number_print(double value, enum speed_unit unit) {
    char text[32];
    switch (unit) {
    case SPEED_UNIT_TIMES: snprintf(text, sizeof text, "%.2fx", value); break;
    case SPEED_UNIT_NS: snprintf(text, sizeof text, "%.1f ns", value); break;
    case SPEED_UNIT_BYTES: snprintf(text, sizeof text, "%.1f B", value); break;
    case SPEED_UNIT_EXPONENT: snprintf(text, sizeof text, "%.3f", value); break;
    }
    printf("%10s", text);
}

static void row_print(const struct line *line) {
    printf("  %-*s", TEXT_WIDTH, line->text);
    number_print(line->row.measured, line->row.unit);
    if (isnan(line->row.limit)) {
        printf("%24s", "");
    } else {
        printf(line->row.at_least ? "  at least" : "  at most ");
        number_print(line->row.limit, line->row.unit);
        printf("  %-3s", line->within ? "yes" : "NO");
    }
    printf(line->detail[0] == '\0' ? "\n" : "  %s\n", line->detail);
}

void speed_table_print(void) {
    size_t within = 0, limits = 0;
    for (size_t i = 0; i < line_count; i++) {
        // A section of which nothing was measured is left out.
        if (!lines[i].heading)
            row_print(&lines[i]);
        else if (i + 1 < line_count && !lines[i + 1].heading)
            printf("\n%s\n", lines[i].detail);
        if (lines[i].heading || isnan(lines[i].row.limit)) continue;
        limits++;
        within += lines[i].within;
    }
    printf("\n%zu of %zu limits kept\n", within, limits);
}
