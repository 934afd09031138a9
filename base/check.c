// What a failed check says before the process aborts. One write to stderr, so that two failing
// threads do not mix their lines; stdout is not flushed, since its lock may be held by whoever
// failed.
#include "base/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXT_SIZE 256
#define REPORT_SIZE 2048

static _Thread_local char context[CONTEXT_SIZE];

void base_check_context(const char *format, ...) {
    if (format == NULL) {
        context[0] = 0;
        return;
    }
    char text[CONTEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(context, text, strlen(text) + 1);
}

__attribute__((noreturn, format(printf, 1, 2))) static void report_and_abort(const char *format,
                                                                             ...) {
    char report[REPORT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report, sizeof report - CONTEXT_SIZE - 8, format, arguments);
    va_end(arguments);
    size_t length = strlen(report);
    const char *const separator = context[0] != 0 ? " | " : "";
    const int added =
        snprintf(report + length, sizeof report - length, "%s%s\n", separator, context);
    length += (size_t)added;
    // Nothing is left to do about a stderr that cannot be written.
    const ssize_t written = write(STDERR_FILENO, report, length);
    (void)written;
    abort();
}

void base_check_failed(const char *file, int line, const char *expression) {
    report_and_abort("%s:%d: check failed: %s", file, line, expression);
}

void base_check_compare_failed(const char *file, int line, const char *expression, int64_t a,
                               int64_t b) {
    report_and_abort("%s:%d: check failed: %s: left is %" PRId64 " (0x%" PRIx64
                     "), right is %" PRId64 " (0x%" PRIx64 ")",
                     file, line, expression, a, (uint64_t)a, b, (uint64_t)b);
}
