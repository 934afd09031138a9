// Between the files that read cases: read.c takes lines and keywords, operation.c an operation's
// operands, effect.c what operations touch, expect.c what a case may leave behind.
#ifndef TIDEMARK_SIMULATOR_LITMUS_READ_H
#define TIDEMARK_SIMULATOR_LITMUS_READ_H

#include "simulator/litmus/case.h"

// "do THREAD LABEL VERB", the operands, and "if LABEL".
#define LITMUS_LINE_WORD_COUNT_MAX (4 + LITMUS_WORD_COUNT_MAX + 2)

struct litmus_line {
    int number;
    int word_count;
    char *words[LITMUS_LINE_WORD_COUNT_MAX];
};

struct litmus_reader {
    const char *path;
    const struct litmus_line *line;
    struct litmus_case *current; // NULL outside a case
    size_t case_size;            // of the file's array
    struct litmus_bytes blocks[LITMUS_OPERATION_COUNT_MAX]; // what each of the case's names now
};

// "PATH:LINE: " and the sentence, as BASE_FORMAT.
enum base_status litmus__fault(const struct litmus_reader *reader, const char *format, ...)
    BASE_PRINTF(2, 3);
// A decimal number from LOW to HIGH; WHAT names it in the sentence.
enum base_status litmus__number(const struct litmus_reader *reader, const char *word,
                                const char *what, int low, int high, int *number) BASE_MUST_USE;

enum base_status litmus__read_operation(struct litmus_reader *reader) BASE_MUST_USE;
// NAME, NAME:OFFSET:LENGTH or NAME:OFFSET:LENGTH:STRIDE:COUNT.
enum base_status litmus__read_bytes(const struct litmus_reader *reader, const char *word,
                                    struct litmus_bytes *bytes) BASE_MUST_USE;
// "set a 1 + read b".
enum base_status litmus__read_effect(const struct litmus_reader *reader, char *const *words,
                                     int word_count, struct litmus_effect *effect) BASE_MUST_USE;
// "reading", "verdict", "race", "return", "outcome".
enum base_status litmus__read_expectation(struct litmus_reader *reader) BASE_MUST_USE;

// Indices in the current case, -1 if there is none of that name.
int litmus__buffer_find(const struct litmus_case *current, const char *name);
int litmus__operation_find(const struct litmus_case *current, const char *label);
int litmus__block_find(const struct litmus_case *current, const char *name);

#endif
