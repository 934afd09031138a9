// Fuzzes the settings string with libFuzzer, whose options these are:
//
//     bazel run --config=fuzz //allocator:config_fuzz -- -max_total_time=600
#include "allocator/config_fuzz_one.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *const text = malloc(size + 1);
    if (text == NULL) return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    (void)config_fuzz_one(text);
    free(text);
    return 0;
}
