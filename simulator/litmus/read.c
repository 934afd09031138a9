// Litmus files: lines, keywords and declarations. The format is line by line, words separated by
// blanks, so the text is cut apart in place and every name points into it.
#include "simulator/litmus/read.h"

#include "base/check.h"
#include "base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)16 << 20)

enum base_status litmus__fault(const struct litmus_reader *reader, const char *format, ...) {
    char sentence[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return base_status_set(BASE_FORMAT, "%s:%d: %s", reader->path, reader->line->number, sentence);
}

enum base_status litmus__number(const struct litmus_reader *reader, const char *word,
                                const char *what, int low, int high, int *number) {
    char *end;
    const long value = strtol(word, &end, 10);
    if (*word == '\0' || *end != '\0' || value < low || value > high)
        return litmus__fault(reader, "\"%s\": want %s, a number from %d to %d", word, what, low,
                             high);
    *number = (int)value;
    return BASE_OK;
}

int litmus__buffer_find(const struct litmus_case *current, const char *name) {
    for (int i = 0; i < current->buffer_count; ++i)
        if (strcmp(current->buffers[i].name, name) == 0)
            return i;
    return -1;
}

int litmus__operation_find(const struct litmus_case *current, const char *label) {
    for (int i = 0; i < current->operation_count; ++i)
        if (strcmp(current->operations[i].label, label) == 0)
            return i;
    return -1;
}

int litmus__block_find(const struct litmus_case *current, const char *name) {
    for (int i = 0; i < current->block_count; ++i)
        if (strcmp(current->blocks[i], name) == 0)
            return i;
    return -1;
}

// --- Declarations ---

static enum base_status read_stream(struct litmus_reader *reader) {
    static const char *const kinds[] = {
        [LITMUS_STREAM_BLOCKING] = "blocking",
        [LITMUS_STREAM_NONBLOCKING] = "nonblocking",
        [LITMUS_STREAM_LEGACY] = "legacy",
        [LITMUS_STREAM_PER_THREAD] = "perthread",
    };
    char *const *words = reader->line->words;
    struct litmus_stream *stream = &reader->current->streams[reader->current->stream_count++];
    stream->name = words[1];
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
        if (strcmp(words[2], kinds[kind]) != 0)
            continue;
        stream->kind = (enum litmus_stream_kind)kind;
        return litmus__number(reader, words[3], "a device", 0, LITMUS_DEVICE_COUNT - 1,
                              &stream->device);
    }
    return litmus__fault(reader, "stream kind \"%s\": want blocking, nonblocking, legacy or "
                                 "perthread", words[2]);
}

static enum base_status read_event(struct litmus_reader *reader) {
    struct litmus_event *event = &reader->current->events[reader->current->event_count++];
    event->name = reader->line->words[1];
    return litmus__number(reader, reader->line->words[2], "a device", 0, LITMUS_DEVICE_COUNT - 1,
                          &event->device);
}

static enum base_status read_timeline(struct litmus_reader *reader) {
    reader->current->timelines[reader->current->timeline_count++] = reader->line->words[1];
    return BASE_OK;
}

static enum base_status read_buffer(struct litmus_reader *reader, enum litmus_memory memory) {
    char *const *words = reader->line->words;
    struct litmus_buffer *buffer = &reader->current->buffers[reader->current->buffer_count++];
    const char *initial = words[memory == LITMUS_MEMORY_DEVICE ? 4 : 3];
    buffer->name = words[1];
    buffer->memory = memory;
    buffer->initial = LITMUS_UNDEFINED;
    enum base_status status = litmus__number(reader, words[2], "a size in bytes", 1,
                                             LITMUS_BYTE_COUNT_MAX, &buffer->size);
    if (status == BASE_OK && memory == LITMUS_MEMORY_DEVICE)
        status = litmus__number(reader, words[3], "a device", 0, LITMUS_DEVICE_COUNT - 1,
                                &buffer->device);
    if (status == BASE_OK && strcmp(initial, "?") != 0)
        status = litmus__number(reader, initial, "a byte or ?", 0, 255, &buffer->initial);
    return status;
}

static enum base_status read_device_buffer(struct litmus_reader *reader) {
    return read_buffer(reader, LITMUS_MEMORY_DEVICE);
}
static enum base_status read_managed_buffer(struct litmus_reader *reader) {
    return read_buffer(reader, LITMUS_MEMORY_MANAGED);
}
static enum base_status read_pinned_buffer(struct litmus_reader *reader) {
    return read_buffer(reader, LITMUS_MEMORY_PINNED);
}
static enum base_status read_pageable_buffer(struct litmus_reader *reader) {
    return read_buffer(reader, LITMUS_MEMORY_PAGEABLE);
}

static bool is_declared(const struct litmus_case *current, const char *name) {
    for (int i = 0; i < current->stream_count; ++i)
        if (strcmp(current->streams[i].name, name) == 0)
            return true;
    for (int i = 0; i < current->event_count; ++i)
        if (strcmp(current->events[i].name, name) == 0)
            return true;
    for (int i = 0; i < current->timeline_count; ++i)
        if (strcmp(current->timelines[i], name) == 0)
            return true;
    return litmus__buffer_find(current, name) >= 0;
}

// --- Keywords ---

static enum base_status read_kind(struct litmus_reader *reader) {
    reader->current->kind = reader->line->words[1];
    return BASE_OK;
}

// For the reader of the case, of no use here: why, twin, origin.
static enum base_status read_remark(struct litmus_reader *reader) {
    (void)reader;
    return BASE_OK;
}

static const struct keyword {
    const char *word;
    int word_count_min, word_count_max; // keyword included
    bool declares;
    enum base_status (*read)(struct litmus_reader *reader);
} keywords[] = {
    {"kind", 2, 2, false, read_kind},
    {"why", 2, 0, false, read_remark},
    {"origin", 2, 0, false, read_remark},
    {"twin", 2, 2, false, read_remark},
    {"stream", 4, 4, true, read_stream},
    {"event", 3, 3, true, read_event},
    {"timeline", 2, 2, true, read_timeline},
    {"device", 5, 5, true, read_device_buffer},
    {"managed", 4, 4, true, read_managed_buffer},
    {"pinned", 4, 4, true, read_pinned_buffer},
    {"pageable", 4, 4, true, read_pageable_buffer},
    {"do", 4, LITMUS_LINE_WORD_COUNT_MAX, false, litmus__read_operation},
    {"reading", 2, 2, false, litmus__read_expectation},
    {"verdict", 2, 2, false, litmus__read_expectation},
    {"race", 5, 5, false, litmus__read_expectation},
    {"return", 3, 3, false, litmus__read_expectation},
    {"outcome", 2, LITMUS_LINE_WORD_COUNT_MAX, false, litmus__read_expectation},
};

static const struct keyword *keyword_find(const char *word) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; ++i)
        if (strcmp(keywords[i].word, word) == 0)
            return &keywords[i];
    return NULL;
}

static enum base_status read_declaration(struct litmus_reader *reader,
                                         const struct keyword *keyword) {
    const struct litmus_case *current = reader->current;
    const char *name = reader->line->words[1];
    if (strlen(name) > LITMUS_NAME_LENGTH_MAX)
        return litmus__fault(reader, "the name \"%s\" is longer than %d characters", name,
                             LITMUS_NAME_LENGTH_MAX);
    if (is_declared(current, name))
        return litmus__fault(reader, "\"%s\" is declared twice", name);
    if (current->operation_count > 0)
        return litmus__fault(reader, "declare \"%s\" before the first \"do\"", name);
    if (current->stream_count + current->event_count + current->timeline_count +
            current->buffer_count == LITMUS_DECLARATION_COUNT_MAX)
        return litmus__fault(reader, "more than %d declarations", LITMUS_DECLARATION_COUNT_MAX);
    return keyword->read(reader);
}

static enum base_status read_in_case(struct litmus_reader *reader) {
    const struct litmus_line *line = reader->line;
    const struct keyword *keyword = keyword_find(line->words[0]);
    if (keyword == NULL)
        return litmus__fault(reader, "unknown keyword \"%s\"", line->words[0]);
    if (line->word_count < keyword->word_count_min)
        return litmus__fault(reader, "\"%s\" wants %d words behind it", keyword->word,
                             keyword->word_count_min - 1);
    if (keyword->word_count_max > 0 && line->word_count > keyword->word_count_max)
        return litmus__fault(reader, "\"%s\" wants no more than %d words behind it", keyword->word,
                             keyword->word_count_max - 1);
    return keyword->declares ? read_declaration(reader, keyword) : keyword->read(reader);
}

// --- Cases ---

static enum base_status case_begin(struct litmus_reader *reader, struct litmus_file *file) {
    const struct litmus_line *line = reader->line;
    if (strcmp(line->words[0], "case") != 0)
        return litmus__fault(reader, "\"%s\" outside a case: want \"case NAME\"", line->words[0]);
    if (line->word_count != 2 || strlen(line->words[1]) > LITMUS_NAME_LENGTH_MAX)
        return litmus__fault(reader, "want \"case NAME\", the name of at most %d characters",
                             LITMUS_NAME_LENGTH_MAX);
    for (size_t i = 0; i < file->case_count; ++i)
        if (strcmp(file->cases[i].name, line->words[1]) == 0)
            return litmus__fault(reader, "a second case \"%s\"; the first is in line %d",
                                 line->words[1], file->cases[i].line);
    if (file->case_count == reader->case_size) {
        reader->case_size = reader->case_size == 0 ? 16 : 2 * reader->case_size;
        struct litmus_case *cases = realloc(file->cases, reader->case_size * sizeof *cases);
        if (cases == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu litmus cases",
                                   reader->case_size);
        file->cases = cases;
    }
    reader->current = &file->cases[file->case_count++];
    *reader->current = (struct litmus_case){.name = line->words[1], .line = line->number};
    return BASE_OK;
}

static enum base_status case_end(struct litmus_reader *reader) {
    const struct litmus_case *current = reader->current;
    const char *missing = current->kind == NULL             ? "kind"
                          : current->operation_count == 0   ? "do"
                          : current->expectation_count == 0 ? "verdict"
                                                            : NULL;
    for (int i = 0; missing == NULL && i < current->expectation_count; ++i)
        if (current->expectations[i].outcome_count == 0)
            missing = "outcome";
    if (missing != NULL)
        return litmus__fault(reader, "the case \"%s\" ends without a line \"%s\"", current->name,
                             missing);
    reader->current = NULL;
    return BASE_OK;
}

static enum base_status read_line(struct litmus_reader *reader, struct litmus_file *file) {
    if (reader->current == NULL)
        return case_begin(reader, file);
    if (strcmp(reader->line->words[0], "end") == 0)
        return case_end(reader);
    return read_in_case(reader);
}

// Cuts TEXT at blanks. "why" and "origin" run to the end of the line, however many words that is.
static enum base_status line_split(const struct litmus_reader *reader, struct litmus_line *line,
                                   char *text) {
    char *state = NULL;
    line->word_count = 0;
    for (char *word = strtok_r(text, " \t\r", &state); word != NULL;
         word = strtok_r(NULL, " \t\r", &state)) {
        if (line->word_count == LITMUS_LINE_WORD_COUNT_MAX) {
            const struct keyword *keyword = keyword_find(line->words[0]);
            if (keyword != NULL && keyword->word_count_max == 0)
                return BASE_OK;
            return litmus__fault(reader, "more than %d words", LITMUS_LINE_WORD_COUNT_MAX);
        }
        line->words[line->word_count++] = word;
    }
    return BASE_OK;
}

static enum base_status read_lines(struct litmus_reader *reader, struct litmus_file *file) {
    struct litmus_line line = {0};
    reader->line = &line;
    enum base_status status = BASE_OK;
    for (char *text = file->text; text != NULL && status == BASE_OK;) {
        char *end = strchr(text, '\n');
        if (end != NULL)
            *end = '\0';
        ++line.number;
        status = line_split(reader, &line, text);
        if (status == BASE_OK && line.word_count > 0 && line.words[0][0] != '#')
            status = read_line(reader, file);
        text = end == NULL ? NULL : end + 1;
    }
    if (status == BASE_OK && reader->current != NULL)
        status = litmus__fault(reader, "the case \"%s\" of line %d has no \"end\"",
                               reader->current->name, reader->current->line);
    return status;
}

static enum base_status read_owned(const char *path, char *text, size_t size,
                                   struct litmus_file *file) {
    *file = (struct litmus_file){.path = path, .text = text};
    struct litmus_reader reader = {.path = path};
    enum base_status status =
        strlen(text) == size ? read_lines(&reader, file)
                             : base_status_set(BASE_FORMAT, "%s: holds a zero byte: no text", path);
    if (status != BASE_OK)
        litmus_file_deinit(file);
    return status;
}

enum base_status litmus_file_read(const char *path, struct litmus_file *file) {
    char *text;
    size_t size;
    const enum base_status status = base_file_read(path, FILE_SIZE_MAX, &text, &size);
    return status == BASE_OK ? read_owned(path, text, size, file) : status;
}

enum base_status litmus_text_read(const char *path, const char *text, struct litmus_file *file) {
    char *copy = strdup(text);
    if (copy == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %s", path);
    return read_owned(path, copy, strlen(copy), file);
}

static void expectation_deinit(struct litmus_expectation *expectation) {
    for (int i = 0; i < expectation->outcome_count; ++i)
        free(expectation->outcomes[i].contents);
    free(expectation->outcomes);
    free(expectation->returns);
    free(expectation->races);
}

void litmus_file_deinit(struct litmus_file *file) {
    for (size_t i = 0; i < file->case_count; ++i) {
        for (int k = 0; k < file->cases[i].expectation_count; ++k)
            expectation_deinit(&file->cases[i].expectations[k]);
        free(file->cases[i].expectations);
    }
    free(file->cases);
    free(file->text);
    *file = (struct litmus_file){0};
}
