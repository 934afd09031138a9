// Fuzzes the readers with libFuzzer, from the corpus on:
//
//     bazel run --config=fuzz //trace:fuzz -- --seconds 600
//
// Other options are libFuzzer's own. What it finds is written to the folder you stand in
// (crash-...); a file put into trace/corpus as found_... is from then on read by corpus_test.
#include "trace/fuzz_one.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENT_COUNT_MAX 64

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char *join(const char *name, const char *value, const char *end) {
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", name, value, end) < 0) abort();
    return text;
}

// Turns our way of writing options into libFuzzer's, and adds the folders: new inputs go to the
// first one. Of an option given twice the last counts, so that ours stand before the user's.
int LLVMFuzzerInitialize(int *count, char ***arguments) {
    static char *changed[ARGUMENT_COUNT_MAX + 8];
    static char folder[] = "/tmp/tidemark-fuzz-XXXXXX";
    const char *standing = getenv("BUILD_WORKING_DIRECTORY");
    int changed_count = 0;
    changed[changed_count++] = (*arguments)[0];
    changed[changed_count++] = join("-max_len=", "16384", "");
    changed[changed_count++] = join("-rss_limit_mb=", "1024", "");
    if (standing != NULL) changed[changed_count++] = join("-artifact_prefix=", standing, "/");
    for (int i = 1; i < *count && changed_count < ARGUMENT_COUNT_MAX; i++) {
        if (strcmp((*arguments)[i], "--seconds") == 0 && i + 1 < *count)
            changed[changed_count++] = join("-max_total_time=", (*arguments)[++i], "");
        else
            changed[changed_count++] = (*arguments)[i];
    }
    if (standing != NULL) {
        if (mkdtemp(folder) == NULL) {
            perror("a folder for new inputs");
            exit(3);
        }
        changed[changed_count++] = folder;
        changed[changed_count++] = join("trace/", "corpus", "");
    }
    *count = changed_count;
    *arguments = changed;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    (void)trace__fuzz_one(bytes, size);
    return 0;
}
