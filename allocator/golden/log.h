// A decision log, read and split into lines; the format is in testdata/README.md.
//
//     struct golden_log log;
//     status = golden_log_read("rule-gc.log", &log);      BASE_FORMAT: "rule-gc.log:17: ..."
//     for (size_t i = 0; i < log.line_count; i++) ... log.lines[i] ...
//     golden_log_deinit(&log);
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_LOG_H
#define TIDEMARK_ALLOCATOR_GOLDEN_LOG_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct golden_line {
    const char *text;
    size_t number; // in the file, from 1
};

struct golden_log {
    const char *path;          // as given: it must outlive the log
    char *data;                // what the lines point into
    struct golden_line *lines; // all but comments, headers and empty lines
    size_t line_count;

    // Headers.
    const char *config;      // "" if there is none
    bool has_config;
    uint64_t capacity_bytes; // 80 GiB if there is none
    const char *environment; // what follows the first `env`, NULL if there is none
};

// BASE_IO for a file that cannot be read, BASE_FORMAT with file, line and what is wrong.
enum base_status golden_log_read(const char *path, struct golden_log *log) BASE_MUST_USE;
void golden_log_deinit(struct golden_log *log);

// A detail line belongs to the operation before it: one letter and a blank.
bool golden_line_is_detail(const char *text);

// How long the operation is that an operation's line begins with, up to " = " (the outcome may be
// empty: then " =" ends the line). False if the line is none.
bool golden_line_operation(const char *text, size_t *length);

// Parses decimal digits and nothing else.
bool golden_parse_number(const char *text, uint64_t *number);

#endif
