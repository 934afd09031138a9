// See log.h.
#include "allocator/golden/log.h"

#include "base/file.h"
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE_MAX     (64 * BASE_MIB)
#define CAPACITY_DEFAULT (80 * BASE_GIB)

bool golden_line_is_detail(const char *text) {
    return islower((unsigned char)text[0]) && text[1] == ' ';
}

bool golden_line_operation(const char *text, size_t *length) {
    const char *separator = strstr(text, " = ");
    const size_t text_length = strlen(text);
    if (separator == NULL && text_length > 2 && strcmp(text + text_length - 2, " =") == 0)
        separator = text + text_length - 2;
    if (separator == NULL) return false;
    *length = (size_t)(separator - text);
    return true;
}

bool golden_parse_number(const char *text, uint64_t *number) {
    if (!isdigit((unsigned char)text[0])) return false;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end != '\0' || errno != 0) return false;
    *number = value;
    return true;
}

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

// Takes a header line; false if it is none.
static bool read_header(struct golden_log *log, const char *text, size_t number,
                        enum base_status *status) {
    const bool is_config = starts_with(text, "config "),
               is_capacity = starts_with(text, "capacity ");
    if (!is_config && !is_capacity && !starts_with(text, "env ")) return false;
    if (log->line_count > 0) {
        *status = base_status_set(
            BASE_FORMAT,
            "%s:%zu: the header \"%.80s\" stands after an operation, it must come before the first",
            log->path, number, text);
    } else if (is_config) {
        log->config = text + strlen("config ");
        log->has_config = true;
    } else if (is_capacity) {
        if (!golden_parse_number(text + strlen("capacity "), &log->capacity_bytes))
            *status = base_status_set(
                BASE_FORMAT, "%s:%zu: \"%.80s\": the capacity must be a decimal number of bytes",
                log->path, number, text);
    } else if (log->environment == NULL) {
        log->environment = text + strlen("env ");
    }
    return true;
}

static enum base_status read_line(struct golden_log *log, const char *text, size_t number) {
    enum base_status status = BASE_OK;
    if (text[0] == '\0' || text[0] == '#' || read_header(log, text, number, &status)) return status;
    const bool is_detail = golden_line_is_detail(text);
    size_t length;
    if (!is_detail && !golden_line_operation(text, &length))
        return base_status_set(
            BASE_FORMAT, "%s:%zu: \"%.80s\" has no outcome, a line reads \"OPERATION = OUTCOME\"",
            log->path, number, text);
    if (is_detail && log->line_count == 0)
        return base_status_set(BASE_FORMAT,
                               "%s:%zu: the detail line \"%.80s\" has no operation before it",
                               log->path, number, text);
    log->lines[log->line_count++] = (struct golden_line){.text = text, .number = number};
    return BASE_OK;
}

static enum base_status split_lines(struct golden_log *log) {
    size_t number = 0;
    for (char *text = log->data; *text != '\0';) {
        char *end = strchr(text, '\n');
        char *next = end == NULL ? text + strlen(text) : end + 1;
        if (end != NULL) *end = '\0';
        const enum base_status status = read_line(log, text, ++number);
        if (status != BASE_OK) return status;
        text = next;
    }
    if (log->line_count == 0)
        return base_status_set(BASE_FORMAT, "%s:%zu: the log has no operation", log->path, number);
    return BASE_OK;
}

enum base_status golden_log_read(const char *path, struct golden_log *log) {
    char *data;
    size_t size;
    const enum base_status read_status = base_file_read(path, LOG_SIZE_MAX, &data, &size);
    if (read_status != BASE_OK) return read_status;
    *log = (struct golden_log){
        .path = path, .data = data, .config = "", .capacity_bytes = CAPACITY_DEFAULT};

    enum base_status status;
    size_t line_count_max = 1;
    for (size_t index = 0; index < size; index++) line_count_max += data[index] == '\n';
    log->lines = calloc(line_count_max, sizeof *log->lines);
    if (log->lines == NULL)
        status =
            base_status_set(BASE_HOST_MEMORY, "%s: no memory for %zu lines", path, line_count_max);
    else if (strlen(data) != size)
        status =
            base_status_set(BASE_FORMAT, "%s: byte %zu is 0: not a text file", path, strlen(data));
    else
        status = split_lines(log);
    if (status != BASE_OK) golden_log_deinit(log);
    return status;
}

void golden_log_deinit(struct golden_log *log) {
    free(log->lines);
    free(log->data);
    *log = (struct golden_log){0};
}
