// What the capture benchmark tells: the lines of its table, and the entries of capture.json
// (docs/results.md). Every case ends in capture_result; numbers beside the time follow it.
//
//     const size_t result = capture_result("", &ns, 1, "capture/step/%s", "off");
//     capture_counter(result, "nodes", 385);
//     capture_say("%-12s %6d\n", "off", 385);
#ifndef TIDEMARK_BENCH_CAPTURE_RESULTS_H
#define TIDEMARK_BENCH_CAPTURE_RESULTS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// CASE_COUNT is for the progress line. With JSON nothing is said: stdout gets the results alone.
void capture_results_begin(bool json, size_t case_count);

// A part of the table.
void capture_say(const char *format, ...) BASE_PRINTF(1, 2);

// One case, with its time in ns in each round. Returns its index.
size_t capture_result(const char *label, const double *round_ns, int round_count, const char *name,
                      ...) BASE_PRINTF(4, 5);
void capture_counter(size_t result, const char *name, double value);

// How many cases are done; moves the progress line on.
void capture_cases_done(size_t count);

// The results go to FOLDER (NULL: to none), with JSON also to stdout; after an error, STATUS, they
// go nowhere. Returns the first error.
enum base_status capture_results_end(enum base_status status, const char *folder) BASE_MUST_USE;

#endif
