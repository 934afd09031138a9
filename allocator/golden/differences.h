// The recorded logs that the allocator does not agree with by default, because they record a fault
// of PyTorch: which, from which line on, and why.
//
//     golden_judge("rule-gc.log", &golden_subject_caching, NULL, &result);
//
// Such a log agrees under the fault's setting, and that is checked: one that differs elsewhere, or
// under the setting too, is a difference like any other.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_DIFFERENCES_H
#define TIDEMARK_ALLOCATOR_GOLDEN_DIFFERENCES_H

#include "allocator/golden/compare.h"

struct golden_fault {
    const char *setting; // that does as PyTorch; NULL: none does in all
    const char *torch, *ours, *reason;
};

struct golden_difference {
    const char *log; // without folder and ".log"
    size_t line;     // the first that differs, in the file
    const struct golden_fault *fault;
};

extern const struct golden_difference golden_differences[];
extern const size_t golden_difference_count;

// Compares the log at PATH, of a capture or not, and knows the differences above: the verdict is
// GOLDEN_DIFFERS_BY_DESIGN then, where nothing is added to the log's settings, or no setting helps.
void golden_judge(const char *path, const struct golden_subject *subject, const char *more,
                  struct golden_result *result);

#endif
