// A page under docs/ that a program prints is what it prints now.
#ifndef TIDEMARK_ALLOCATOR_TESTING_PAGE_H
#define TIDEMARK_ALLOCATOR_TESTING_PAGE_H

#include "base/check.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

// COMMAND prints the page; a test names it where PATH differs from what PRINT writes.
static inline void testing_page_is_current(const char *path, const char *command,
                                           void (*print)(FILE *output)) {
    char *page, *document;
    size_t page_size, document_size;
    FILE *const output = open_memstream(&page, &page_size);
    BASE_CHECK(output != NULL);
    print(output);
    fclose(output);
    BASE_CHECK_EQ(base_file_read(path, 1 << 20, &document, &document_size), BASE_OK);
    size_t line = 1;
    for (size_t byte = 0; byte < page_size && byte < document_size; ++byte) {
        base_check_context("line %zu of %s is not current: %s > %s", line, path, command, path);
        BASE_CHECK_EQ(document[byte], page[byte]);
        line += page[byte] == '\n';
    }
    BASE_CHECK_EQ(document_size, page_size);
    base_check_context(NULL);
    free(page);
    free(document);
}

#endif
