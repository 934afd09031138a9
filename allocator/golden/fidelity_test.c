// docs/fidelity.md says what the logs and the reported faults come to now.
#include "allocator/golden/fidelity.h"

#include "base/check.h"
#include "base/file.h"

#include <stdlib.h>

#define DOCUMENT "docs/fidelity.md"

static void the_page_says_what_a_run_says(void) {
    char *page, *document;
    size_t page_size, document_size;
    FILE *const output = open_memstream(&page, &page_size);
    BASE_CHECK(output != NULL);
    fidelity_print(output);
    fclose(output);
    BASE_CHECK_EQ(base_file_read(DOCUMENT, 1 << 20, &document, &document_size), BASE_OK);
    size_t line = 1;
    for (size_t byte = 0; byte < page_size && byte < document_size; ++byte) {
        base_check_context("line %zu of " DOCUMENT " is not current: bazel run "
                           "//allocator:fidelity > " DOCUMENT,
                           line);
        BASE_CHECK_EQ(document[byte], page[byte]);
        line += page[byte] == '\n';
    }
    BASE_CHECK_EQ(document_size, page_size);
    free(page);
    free(document);
}

int main(void) { the_page_says_what_a_run_says(); }
