// docs/cuda-coverage.md is what the cases make of it.
#include "base/check.h"
#include "base/file.h"
#include "simulator/conformance/coverage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT "docs/cuda-coverage.md"

static void document_is_up_to_date(void) {
    char *committed, *made;
    size_t committed_size, made_size;
    BASE_CHECK_EQ(base_file_read(DOCUMENT, (size_t)1 << 20, &committed, &committed_size), BASE_OK);
    FILE *output = open_memstream(&made, &made_size);
    BASE_CHECK(output != NULL);
    conformance_coverage_print(output);
    BASE_CHECK_EQ(fclose(output), 0);
    const bool same = committed_size == made_size && memcmp(committed, made, made_size) == 0;
    if (!same)
        fprintf(stderr, DOCUMENT " is not what the cases make of it; write it anew:\n"
                        "    bazel run //simulator:conformance -- --coverage > " DOCUMENT "\n");
    BASE_CHECK(same);
    free(committed);
    free(made);
}

// A call without a case would be one that nothing holds against the contract.
static void every_call_that_is_there_has_a_case(void) {
    char *made, *line = NULL;
    size_t size, line_size = 0;
    int count = 0;
    FILE *output = open_memstream(&made, &size);
    conformance_coverage_print(output);
    BASE_CHECK_EQ(fclose(output), 0);
    FILE *input = fmemopen(made, size, "r");
    while (getline(&line, &line_size, input) >= 0) {
        if (strstr(line, " | yes | ") == NULL)
            continue;
        ++count;
        if (strstr(line, " | yes |  |") != NULL)
            fprintf(stderr, "no case: %s", line);
        BASE_CHECK(strstr(line, " | yes |  |") == NULL);
    }
    BASE_CHECK_GE(count, 100);
    fclose(input);
    free(line);
    free(made);
}

int main(void) {
    document_is_up_to_date();
    every_call_that_is_there_has_a_case();
    return 0;
}
