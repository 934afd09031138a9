// What is measured of the caching allocator, for the files of this benchmark:
//   allocator_speed.c           the program
//   allocator_speed_table.c     cases by name, rows with their limits, the verdicts
//   allocator_speed_patterns.c  patterns on one stream by one thread and by two
//   allocator_speed_traces.c    recorded programs
//   allocator_speed_growth.c    how a pair's cost grows with blocks, segments and streams
//   allocator_speed_bulk.c      snapshot, release of everything, first growth, pending frees
//   allocator_speed_memory.c    host memory a block
//   allocator_speed_only.c      one pattern, for profilers
//
// Each part adds its cases before the run and its rows after it.
#ifndef TIDEMARK_BENCH_ALLOCATOR_SPEED_H
#define TIDEMARK_BENCH_ALLOCATOR_SPEED_H

#include "bench/pattern.h"
#include "bench/rounds.h"
#include "bench/session.h"
#include "bench/shim.h"

#include <stdio.h>

// Of the simulated device: room for the largest case, several times over.
#define SPEED_CAPACITY_BYTES ((uint64_t)64 << 40)

// How this run goes.
extern struct speed_run {
    bool quick, smoke; // smoke: every case with few iterations, no times
    uint64_t seed;
} speed_run;

//--------------------------------------------------------------------------------------------------
// Cases (allocator_speed_table.c).

// Cases of a group are measured together, in rounds.
enum speed_group {
    SPEED_GROUP_PATTERN, // sessions, for a time
    SPEED_GROUP_LIVE,    // sessions with so many live blocks that the run has a fixed length
    SPEED_GROUP_BULK,    // one operation an iteration, timed by itself
    SPEED_GROUP_MEMORY,  // the same, once
    SPEED_GROUP_COUNT
};

#define SPEED_NAME_SIZE 96
struct speed_case {
    char name[SPEED_NAME_SIZE];
    enum speed_group group;
    void (*measure)(struct bench_state *state, void *argument); // gets the case
    struct bench_session_setup setup;                           // of a session
    uint64_t count;                                             // of whatever a case has many
    size_t index;                                               // the part's own
    double pair_count; // an iteration's: what its time is divided by
    enum bench_clock clock;
    const char *label;
    uint64_t bytes_needed; // of the device, about; where it has less the case is left out
};

// A case named allocator/NAME; the caller sets the rest. Pointers stay valid.
struct speed_case *speed_case_add(enum speed_group group, const char *format, ...)
    BASE_PRINTF(2, 3);
// allocator/NAME/SUBJECT, of two threads /one_stream or /own_streams behind it.
struct speed_case *speed_case_add_session(enum speed_group group, const char *name,
                                          const struct bench_subject *subject,
                                          const struct bench_pattern *pattern, int thread_count,
                                          enum bench_streams streams);
void speed_case_measure_session(struct bench_state *state, void *argument);

size_t speed_case_count(void);
struct speed_case *speed_case_get(size_t index);

//--------------------------------------------------------------------------------------------------
// Results. A case that was not measured (left out by --filter, say) has NAN as its times, and a row
// that needs it is not printed.

// The results of everything measured so far; set by the program.
extern struct bench_results *speed_results;

double speed_ns(const struct speed_case *measured, int round); // of a pair
double speed_fastest_ns(const struct speed_case *measured);
int speed_round_count(const struct speed_case *measured); // 0: not measured
// The median over rounds of FACTOR * above / below, of pairs.
double speed_quotient(const struct speed_case *above, const struct speed_case *below,
                      double factor);
// The median over rounds of (a - b) / c; B or C may be NULL.
double speed_added(const struct speed_case *a, const struct speed_case *b,
                   const struct speed_case *c);

//--------------------------------------------------------------------------------------------------
// Rows.

enum speed_unit { SPEED_UNIT_TIMES, SPEED_UNIT_NS, SPEED_UNIT_BYTES, SPEED_UNIT_EXPONENT };

struct speed_row {
    const char *text;
    double measured;
    double limit; // NAN: none known
    enum speed_unit unit;
    bool at_least; // the limit is one from below
};

void speed_section_add(const char *text);
// Adds the row to the table, DETAIL behind it, unless nothing was measured; notes measured value,
// limit and verdict with the case's result (OF NULL: with none).
void speed_row_add(const struct speed_row *row, const struct speed_case *of, const char *detail,
                   ...) BASE_PRINTF(3, 4);
// Sections with their rows, to stdout, and how many limits were kept.
void speed_table_print(void);

//--------------------------------------------------------------------------------------------------
// The parts.

// X(identifier, name)
#define SPEED_PATTERN_LIST(X)                                                                      \
    X(WINDOW_512, "window_512")                                                                    \
    X(WINDOW_64K, "window_64k")                                                                    \
    X(WINDOW_4M, "window_4m")                                                                      \
    X(PAIR_512, "pair_512")                                                                        \
    X(PAIR_4M, "pair_4m")                                                                          \
    X(MIXED, "mixed")                                                                              \
    X(TRANSFORMER, "transformer")                                                                  \
    X(RECORD_STREAM, "record_stream")

enum speed_pattern {
#define SPEED_PATTERN_ENUMERATOR(identifier, name) SPEED_PATTERN_##identifier,
    SPEED_PATTERN_LIST(SPEED_PATTERN_ENUMERATOR)
#undef SPEED_PATTERN_ENUMERATOR
        SPEED_PATTERN_COUNT
};

void speed_patterns_init(void);
void speed_patterns_deinit(void);
const struct bench_pattern *speed_pattern_get(enum speed_pattern pattern);
// What a session of the pattern needs besides the pattern: record_stream light events.
void speed_pattern_equip(enum speed_pattern pattern, struct bench_session_setup *setup);
const char *speed_pattern_name(enum speed_pattern pattern);
// SPEED_PATTERN_COUNT: no such name.
enum speed_pattern speed_pattern_find(const char *name);
void speed_patterns_add(void);
void speed_patterns_rows_add(void);

// Reads the traces; those that cannot be played are named on stderr and left out.
enum base_status speed_traces_add(char *const *paths, int count) BASE_MUST_USE;
void speed_traces_rows_add(void);
void speed_traces_deinit(void);

void speed_growth_add(void);
void speed_growth_rows_add(void);
void speed_growth_deinit(void);

void speed_bulk_add(void);
void speed_bulk_rows_add(void);

void speed_memory_add(void);
void speed_memory_rows_add(void);

// Plays one pattern on one subject, ITERATION_COUNT iterations behind the warm-up, and prints how
// many pairs that were: for a profiler. Two runs with different counts differ by the pattern alone.
enum base_status speed_only(const char *pattern_name, const char *subject_name,
                            uint64_t iteration_count, bool two_threads,
                            enum bench_streams streams) BASE_MUST_USE;

#endif
