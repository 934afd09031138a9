// Random programs in the words of a decision log, and their run over two subjects side by side.
//
//     struct golden_script script;
//     golden_script_make(&script, seed, 2000);
//     struct golden_difference difference;
//     if (golden_script_compare(&script, &golden_subject_model, &golden_subject_caching,
//                               &difference))
//         ... difference.step, difference.first, difference.second ...
//     golden_script_deinit(&script);
//
// The seed decides everything: configuration over all keys, capacity, streams, sizes, order of
// frees and which kinds of operation occur at all, so that some programs are, say, tight and full
// of garbage collection while others never see a fraction.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_SCRIPT_H
#define TIDEMARK_ALLOCATOR_GOLDEN_SCRIPT_H

#include "allocator/golden/subject.h"

#include <stdio.h>

struct golden_script {
    uint64_t seed;
    char *config;
    uint64_t capacity_bytes;
    bool no_caching;
    char **operations; // each without an outcome
    size_t operation_count;
};

void golden_script_make(struct golden_script *script, uint64_t seed, size_t operation_count);
void golden_script_deinit(struct golden_script *script);

struct golden_difference {
    size_t step;          // which operation, from 0
    char *first, *second; // what the subjects printed for it; the caller frees both
};

// Performs every operation with both subjects and walks their invariants now and then; true at the
// first difference.
bool golden_script_compare(const struct golden_script *script, const struct golden_subject *first,
                           const struct golden_subject *second,
                           struct golden_difference *difference);
void golden_difference_deinit(struct golden_difference *difference);

// Takes operations out of a script that differs, as long as it still does.
void golden_script_shrink(struct golden_script *script, const struct golden_subject *first,
                          const struct golden_subject *second);

// Writes the script as a decision log with SUBJECT's outcomes; `bazel run //allocator:golden`
// replays it.
void golden_script_print(const struct golden_script *script, const struct golden_subject *subject,
                         FILE *output);

#endif
