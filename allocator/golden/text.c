// See text.h.
#include "allocator/golden/text.h"

#include "base/check.h"

#include <stdlib.h>

void golden_text_init(struct golden_text *text) {
    *text = (struct golden_text){0};
    text->file = open_memstream(&text->bytes, &text->size);
    BASE_CHECK(text->file != NULL);
}

void golden_text_deinit(struct golden_text *text) {
    fclose(text->file);
    free(text->bytes);
}

FILE *golden_text_begin(struct golden_text *text) {
    rewind(text->file);
    return text->file;
}

// What an earlier text left behind the end is cut off by the terminator.
char *golden_text_end(struct golden_text *text) {
    fputc('\0', text->file);
    BASE_CHECK_EQ(fflush(text->file), 0);
    return text->bytes;
}
