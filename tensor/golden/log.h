// A golden tensor log, read: operations, each with the lines that were recorded for it.
//
//     struct golden_log log;
//     status = golden_log_read("rule-view-basic.log", &log);   BASE_FORMAT: "FILE:17: ..."
//     for (size_t i = 0; i < log.operation_count; i++) ... log.operations[i] ...
//     golden_log_deinit(&log);
#ifndef TIDEMARK_TENSOR_GOLDEN_LOG_H
#define TIDEMARK_TENSOR_GOLDEN_LOG_H

#include "base/status.h"

#include <stddef.h>

struct golden_line {
    const char *text;
    size_t number; // in the file, from 1
};

struct golden_operation {
    struct golden_line line;
    size_t first, count; // in golden_log.lines: the outcome, then the details
};

struct golden_log {
    char *data; // what the lines point into
    struct golden_line *lines;
    struct golden_operation *operations;
    size_t line_count, operation_count;
};

enum base_status golden_log_read(const char *path, struct golden_log *log) BASE_MUST_USE;
void golden_log_deinit(struct golden_log *log);

#endif
