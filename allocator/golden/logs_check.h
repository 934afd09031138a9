// The check that the tests of both subjects share.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_LOGS_CHECK_H
#define TIDEMARK_ALLOCATOR_GOLDEN_LOGS_CHECK_H

#include "allocator/golden/subject.h"

// Replays testdata/NAME.log for each of the names and prints each result; aborts unless LOG_COUNT
// logs agree with LINE_COUNT lines in all.
void golden_logs_check(const struct golden_subject *subject, const char *const *names,
                       size_t name_count, size_t log_count, size_t line_count);

// The same with settings added to each log's.
void golden_logs_check_under(const struct golden_subject *subject, const char *more,
                             const char *const *names, size_t name_count, size_t log_count,
                             size_t line_count);

// Sums over all calls so far.
struct golden_tally {
    size_t logs, lines;   // that agree
    size_t out_of_memory; // errors whose numbers add up
};
struct golden_tally golden_logs_tally(void);

#endif
