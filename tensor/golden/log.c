// See log.h.
#include "tensor/golden/log.h"

#include "base/file.h"
#include "base/size.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE_MAX (64 * BASE_MIB)

static bool is_detail(const char *text) {
    return islower((unsigned char)text[0]) && text[1] == ' ';
}

static enum base_status line_take(struct golden_log *log, const char *path, char *text,
                                  size_t number) {
    struct golden_operation *last =
        log->operation_count == 0 ? NULL : &log->operations[log->operation_count - 1];
    const bool is_outcome = strncmp(text, "= ", 2) == 0;
    if (text[0] == '\0' || text[0] == '#')
        return BASE_OK;
    if (!is_outcome && !is_detail(text)) {
        if (last != NULL && last->count == 0)
            return base_status_set(BASE_FORMAT, "%s:%zu: the operation \"%.80s\" has no outcome",
                                   path, last->line.number, last->line.text);
        log->operations[log->operation_count++] = (struct golden_operation){
            .line = {.text = text, .number = number}, .first = log->line_count};
        return BASE_OK;
    }
    if (last == NULL || (is_outcome ? last->count > 0 : last->count == 0))
        return base_status_set(BASE_FORMAT, "%s:%zu: \"%.80s\" does not follow %s", path, number,
                               text, is_outcome ? "an operation" : "an outcome");
    log->lines[log->line_count++] = (struct golden_line){.text = text, .number = number};
    last->count++;
    return BASE_OK;
}

static enum base_status lines_split(struct golden_log *log, const char *path) {
    size_t number = 0;
    for (char *text = log->data; *text != '\0';) {
        char *end = strchr(text, '\n'), *next = end == NULL ? text + strlen(text) : end + 1;
        if (end != NULL)
            *end = '\0';
        const enum base_status status = line_take(log, path, text, ++number);
        if (status != BASE_OK)
            return status;
        text = next;
    }
    if (log->operation_count == 0)
        return base_status_set(BASE_FORMAT, "%s:%zu: the log has no operation", path, number);
    const struct golden_operation *last = &log->operations[log->operation_count - 1];
    if (last->count == 0)
        return base_status_set(BASE_FORMAT, "%s:%zu: the operation \"%.80s\" has no outcome", path,
                               last->line.number, last->line.text);
    return BASE_OK;
}

enum base_status golden_log_read(const char *path, struct golden_log *log) {
    char *data;
    size_t size;
    enum base_status status = base_file_read(path, LOG_SIZE_MAX, &data, &size);
    if (status != BASE_OK)
        return status;
    *log = (struct golden_log){.data = data};
    size_t count = 1;
    for (size_t index = 0; index < size; index++)
        count += data[index] == '\n';
    log->lines = calloc(count, sizeof *log->lines);
    log->operations = calloc(count, sizeof *log->operations);
    if (log->lines == NULL || log->operations == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "%s: no memory for %zu lines", path, count);
    else if (strlen(data) != size)
        status =
            base_status_set(BASE_FORMAT, "%s: byte %zu is 0: not a text file", path, strlen(data));
    else
        status = lines_split(log, path);
    if (status != BASE_OK)
        golden_log_deinit(log);
    return status;
}

void golden_log_deinit(struct golden_log *log) {
    free(log->lines);
    free(log->operations);
    free(log->data);
    *log = (struct golden_log){0};
}
