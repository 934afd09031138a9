// A text that is written anew for each operation, in memory that stays: open_memstream clears
// 8 KiB each time, which is more work than most operations.
//
//     struct golden_text text;
//     golden_text_init(&text);
//     fprintf(golden_text_begin(&text), "%d", 7);
//     puts(golden_text_end(&text));                    7; valid until the next begin
//     golden_text_deinit(&text);
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_TEXT_H
#define TIDEMARK_ALLOCATOR_GOLDEN_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct golden_text {
    FILE *file;
    char *bytes;
    size_t size;
};

// Aborts without host memory, as writing does.
void golden_text_init(struct golden_text *text);
void golden_text_deinit(struct golden_text *text);

FILE *golden_text_begin(struct golden_text *text);
char *golden_text_end(struct golden_text *text);

#endif
