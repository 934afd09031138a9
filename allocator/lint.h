// Settings that cannot work as their user thinks, each in a plain sentence.
//
//     bazel run //allocator:lint -- "max_split_size_mb:128,expandable_segments:True"
//
// PyTorch refuses what is malformed; much else it takes without a word although it does nothing,
// does something else, or fights another setting. The rules are listed in docs/configuration.md.
#ifndef TIDEMARK_ALLOCATOR_LINT_H
#define TIDEMARK_ALLOCATOR_LINT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum cca_lint_kind {
    CCA_LINT_REFUSED,   // the string is an error
    CCA_LINT_NO_EFFECT, // accepted, and nothing comes of it
    CCA_LINT_SURPRISE,  // accepted, and read in another way than it looks
    CCA_LINT_CONFLICT,  // two settings in each other's way
};

struct cca_lint_finding {
    enum cca_lint_kind kind;
    const char *rule;     // its short name, such as "gc-without-fraction"
    const char *key;      // as it is written in the text
    const char *sentence; // one line
    const char *instead;  // what to write or do
    int since, until;     // it holds for PyTorch 2.since to 2.until
};

struct cca_lint_options {
    const char *version; // of PyTorch, "2.0" to "2.15"; NULL: 2.15
    bool fraction_set;   // the program sets a memory fraction below 1
    // Called for each finding, in order of the text; its texts live as long as the call. May be
    // NULL.
    void (*found)(void *context, const struct cca_lint_finding *finding);
    void *context;
};

// *COUNT: how many findings (may be NULL). BASE_INVALID_VALUE for a version that is none,
// BASE_HOST_MEMORY. TEXT NULL: "".
enum base_status cca_config_lint(const char *text, const struct cca_lint_options *options,
                                 size_t *count) BASE_MUST_USE;

// "refused", "no effect", "surprise", "conflict".
const char *cca_lint_kind_name(enum cca_lint_kind kind);

// All rules: name, kind, and an example that breaks it.
struct cca_lint_rule {
    const char *name;
    enum cca_lint_kind kind;
    const char *example;
    const char *version; // of the example; NULL: 2.15
};
extern const struct cca_lint_rule cca_lint_rules[];
extern const size_t cca_lint_rule_count;

#endif
