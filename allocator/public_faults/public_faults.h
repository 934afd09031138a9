// Faults that users of GPU caching allocators reported in public, run by name: each on the
// simulator, under each setting that matters, with the value that is to be expected there. What is
// expected is worked out in the case from the numbers of the report, never from what the allocator
// does.
//
//     bazel run //allocator:public_faults             all of them; exit 1 if a value differs
//     bazel run //allocator:public_faults -- pt#189504
//
// Names are REPOSITORY#ISSUE; pt is pytorch/pytorch, tf tensorflow/tensorflow, vllm
// vllm-project/vllm; a case that nobody reported has a plain one. A report that does not concern
// this allocator stands in the list with the reason.
#ifndef TIDEMARK_ALLOCATOR_PUBLIC_FAULTS_PUBLIC_FAULTS_H
#define TIDEMARK_ALLOCATOR_PUBLIC_FAULTS_PUBLIC_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum public_fault_relation { PUBLIC_FAULT_EQUAL, PUBLIC_FAULT_BELOW, PUBLIC_FAULT_ABOVE };

// One value of one case under one setting.
struct public_fault_line {
    const char *config; // "": the default
    const char *what;   // with its unit: "reserved MiB"
    enum public_fault_relation relation;
    int64_t expected, got;
};
bool public_fault_line_agrees(const struct public_fault_line *line);

struct public_fault_teller {
    void (*line)(void *context, const struct public_fault_line *line);
    void *context;
};

struct public_fault_case {
    const char *names;   // "pt#193400 pt#123548"
    const char *pattern; // what the program did
    // Which setting of our own does better where PyTorch, and so the default, is only wasteful;
    // NULL.
    const char *better;
    void (*run)(const struct public_fault_teller *teller); // NULL: see elsewhere
    const char *elsewhere;                                 // why it is not run here
};

struct public_fault_theme {
    const char *name; // "fragmentation"
    const struct public_fault_case *cases;
    size_t count;
};
#define PUBLIC_FAULT_THEME_COUNT 6
extern const struct public_fault_theme public_fault_themes[PUBLIC_FAULT_THEME_COUNT];

#endif
