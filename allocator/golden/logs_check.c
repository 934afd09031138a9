// See logs_check.h.
#include "allocator/golden/logs_check.h"

#include "allocator/golden/compare.h"
#include "base/check.h"

#include <stdio.h>

static struct golden_tally tally;

struct golden_tally golden_logs_tally(void) { return tally; }

void golden_logs_check(const struct golden_subject *subject, const char *const *names,
                       size_t name_count, size_t log_count, size_t line_count) {
    golden_logs_check_under(subject, NULL, names, name_count, log_count, line_count);
}

void golden_logs_check_under(const struct golden_subject *subject, const char *more,
                             const char *const *names, size_t name_count, size_t log_count,
                             size_t line_count) {
    size_t agreed_logs = 0, agreed_lines = 0;
    for (size_t index = 0; index < name_count; index++) {
        static struct golden_result result;
        char path[256];
        snprintf(path, sizeof path, "allocator/golden/testdata/%s.log", names[index]);
        golden_compare(path, subject, more, &result);
        golden_result_print(&result, stdout);
        tally.out_of_memory += result.out_of_memory_count;
        agreed_logs += result.verdict == GOLDEN_AGREES;
        agreed_lines += result.verdict == GOLDEN_AGREES ? result.line_count : 0;
    }
    printf("%s: %zu logs agree, %zu lines\n", subject->name, agreed_logs, agreed_lines);
    fflush(stdout);
    BASE_CHECK_EQ(agreed_logs, log_count);
    BASE_CHECK_EQ(agreed_lines, line_count);
    tally.logs += agreed_logs;
    tally.lines += agreed_lines;
}
