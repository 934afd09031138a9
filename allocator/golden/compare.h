// Replays a decision log through a subject and compares every line.
//
//     struct golden_result result;
//     golden_compare("rule-gc.log", &golden_subject_caching, NULL, &result);
//     golden_result_print(&result, stdout);
//         rule-gc: 180 lines agree
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_COMPARE_H
#define TIDEMARK_ALLOCATOR_GOLDEN_COMPARE_H

#include "allocator/golden/subject.h"

#include <stdio.h>

enum golden_verdict {
    GOLDEN_AGREES,
    GOLDEN_DIFFERS,
    GOLDEN_DIFFERS_BY_DESIGN, // it records a fault of PyTorch (differences.h)
    GOLDEN_UNSUPPORTED, // needs what is not built: nothing of it counts
    GOLDEN_UNREADABLE,  // missing or malformed
};

#define GOLDEN_LINE_LENGTH_MAX 8192

struct golden_difference;

struct golden_result {
    const char *path; // as given
    const char *subject_name;
    enum golden_verdict verdict;
    size_t line_count;  // lines that agreed, up to the first difference
    size_t survived_count; // operations that crash PyTorch, and not the allocator
    const struct golden_difference *difference; // by design
    size_t out_of_memory_count; // errors whose numbers were checked (session_relations.c)
    size_t line_number; // of the first difference, in the file
    char recorded[GOLDEN_LINE_LENGTH_MAX],
        replayed[GOLDEN_LINE_LENGTH_MAX];  // the two lines that differ
    char reason[BASE_STATUS_MESSAGE_SIZE]; // what is needed, or what is wrong
};

// Never fails as a call: whatever happens is in the result. MORE: settings of our own, behind those
// that the log starts with; NULL for none.
void golden_compare(const char *path, const struct golden_subject *subject, const char *more,
                    struct golden_result *result);

// One line, or four for a difference: file, line number and both lines.
void golden_result_print(const struct golden_result *result, FILE *output);

// Whether a line that was replayed says what was recorded. Equal text does; besides, where the
// format leaves freedom: `counts` with no more event queries than recorded, a CUDA error in other
// words of the driver, and an internal assert in another file or line.
bool golden_lines_agree(const char *recorded, const char *replayed);

#endif
