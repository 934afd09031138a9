// Every file of the corpus is read or refused as its name says; cut anywhere it is refused; with
// any byte changed it is read or refused, but never more than that.
//
//     corpus_test FILE...
#include "trace/fuzz_one.h"

#include "base/check.h"
#include "base/file.h"
#include "base/size.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Files up to this size get every value of every byte, larger ones a few.
#define SMALL_FILE_BYTES 300

static enum base_status read_copy(const char *bytes, size_t size) {
    // Of just the size, so that a byte read behind the end is found by the checkers.
    char *copy = malloc(size > 0 ? size : 1);
    BASE_CHECK(copy != NULL);
    memcpy(copy, bytes, size);
    enum base_status status = trace__fuzz_one(copy, size);
    free(copy);
    return status;
}

static void a_cut_file_is_refused(const char *bytes, size_t size) {
    for (size_t cut = 0; cut < size; cut++) {
        base_check_context("cut after %zu bytes", cut);
        BASE_CHECK_NE(read_copy(bytes, cut), BASE_OK);
    }
}

static void a_changed_byte_does_no_harm(char *bytes, size_t size) {
    unsigned step = size <= SMALL_FILE_BYTES ? 1 : 85; // 255 is 3 * 85
    size_t refused = 0, read = 0;
    for (size_t i = 0; i < size; i++) {
        char kept = bytes[i];
        for (unsigned change = step; change < 256; change += step) {
            bytes[i] = (char)((unsigned char)kept ^ change);
            base_check_context("byte %zu changed to %u", i, (unsigned char)bytes[i]);
            if (read_copy(bytes, size) == BASE_OK)
                read++;
            else
                refused++;
        }
        bytes[i] = kept;
    }
    BASE_CHECK_GT(refused, read / 4); // most of what a file says is not free to be anything
}

int main(int count, char **paths) {
    int files = 0;
    for (int i = 1; i < count; i++) {
        const char *name = strrchr(paths[i], '/');
        name = name == NULL ? paths[i] : name + 1;
        char *bytes;
        size_t size;
        base_check_context("%s", name);
        BASE_CHECK_EQ(base_file_read(paths[i], BASE_MIB, &bytes, &size), BASE_OK);
        enum base_status status = read_copy(bytes, size);
        bool good = strncmp(name, "good_", 5) == 0, bad = strncmp(name, "bad_", 4) == 0;
        if ((good && status != BASE_OK) || (bad && status == BASE_OK))
            fprintf(stderr, "%s: %s\n", name, status == BASE_OK ? "read" : base_status_message());
        BASE_CHECK(!good || status == BASE_OK);
        BASE_CHECK(!bad || status != BASE_OK);
        if (good) {
            a_cut_file_is_refused(bytes, size);
            a_changed_byte_does_no_harm(bytes, size);
        }
        free(bytes);
        files++;
    }
    base_check_context(NULL);
    BASE_CHECK_GT(files, 10);
    return 0;
}
