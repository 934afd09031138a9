// Replays a log and compares every line.
//
//     struct golden_result result;
//     golden_compare("rule-view-basic.log", &result);
//     golden_result_print(&result, stdout);
//         rule-view-basic: 24 operations, 77 lines agree
#ifndef TIDEMARK_TENSOR_GOLDEN_COMPARE_H
#define TIDEMARK_TENSOR_GOLDEN_COMPARE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum golden_verdict {
    GOLDEN_AGREES,
    GOLDEN_DIFFERS,
    GOLDEN_NOT_BUILT,  // an operation that this library does not have
    GOLDEN_UNREADABLE, // missing or malformed
    GOLDEN_VERDICT_COUNT
};

#define GOLDEN_TEXT_MAX 4096

struct golden_result {
    const char *path; // as given
    enum golden_verdict verdict;
    size_t operation_count, line_count; // that agreed, up to the first difference
    size_t line_number;                 // of the first difference, in the file
    char operation[GOLDEN_TEXT_MAX], recorded[GOLDEN_TEXT_MAX], replayed[GOLDEN_TEXT_MAX];
    char reason[BASE_STATUS_MESSAGE_SIZE];
    int64_t leaked_blocks; // still held after the last name went
};

// Never fails as a call: whatever happens is in the result.
void golden_compare(const char *path, struct golden_result *result);
// Writes the log as it is replayed here, comments left out. Whatever goes wrong: a status.
enum base_status golden_write(const char *path, FILE *output) BASE_MUST_USE;
void golden_result_print(const struct golden_result *result, FILE *output);

// Whether a line says what was recorded. Equal text does; besides, where the format leaves freedom:
// the words of a refusal by PyTorch's CPU allocator. Apart from lines, golden_compare allows
// another number of uses for a storage that a graph or a saved tensor holds, and counts a warning
// that one operation gave twice once.
bool golden_lines_agree(const char *recorded, const char *replayed);

#endif
