// docs/configuration.md is what the tables make of it.
#include "allocator/config_page.h"

#include "base/check.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define DOCUMENT "docs/configuration.md"

static void document_is_current(void) {
    char *page, *document;
    size_t page_size, document_size;
    FILE *const output = open_memstream(&page, &page_size);
    BASE_CHECK(output != NULL);
    config_page_print(output);
    fclose(output);
    BASE_CHECK_EQ(base_file_read(DOCUMENT, 1 << 20, &document, &document_size), BASE_OK);
    size_t line = 1;
    for (size_t byte = 0; byte < page_size && byte < document_size; ++byte) {
        base_check_context("line %zu of " DOCUMENT " is not current: bazel run "
                           "//allocator:configuration > " DOCUMENT,
                           line);
        BASE_CHECK_EQ(document[byte], page[byte]);
        line += page[byte] == '\n';
    }
    BASE_CHECK_EQ(document_size, page_size);
    free(page);
    free(document);
}

int main(void) {
    document_is_current();
    return 0;
}
