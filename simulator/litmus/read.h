// Between the files that read cases: read.c takes lines and keywords, operation.c an operation's
// operands, expect.c what a case may leave behind.
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

// A block of an allocator names bytes of a buffer.
struct litmus_block {
    const char *name;
    struct litmus_bytes bytes;
};

struct litmus_reader {
    const char *path;
    const struct litmus_line *line;
    struct litmus_case *current; // NULL outside a case
    size_t case_size;            // of the file's array
    int block_count;
    struct litmus_block blocks[LITMUS_OPERATION_COUNT_MAX];
};

// "PATH:LINE: " and the sentence, as BASE_FORMAT.
enum base_status litmus__fault(const struct litmus_reader *reader, const char *format, ...)
    BASE_PRINTF(2, 3);
// A decimal number from LOW to HIGH; WHAT names it in the sentence.
enum base_status litmus__number(const struct litmus_reader *reader, const char *word,
                                const char *what, int low, int high, int *number) BASE_MUST_USE;

enum base_status litmus__read_operation(struct litmus_reader *reader) BASE_MUST_USE;
// "reading", "verdict", "race", "return", "outcome".
enum base_status litmus__read_expectation(struct litmus_reader *reader) BASE_MUST_USE;

// Indices in the current case, -1 if there is none of that name.
int litmus__buffer_find(const struct litmus_case *current, const char *name);
int litmus__operation_find(const struct litmus_case *current, const char *label);

#endif
