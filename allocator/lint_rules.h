// What the files of the lint share: the string cut into pairs, and how a finding is told.
#ifndef TIDEMARK_ALLOCATOR_LINT_RULES_H
#define TIDEMARK_ALLOCATOR_LINT_RULES_H

#include "allocator/config_keys.h"
#include "allocator/lint.h"

#define CCA__LINT_PAIR_MAX 256

// `KEY:VALUE` as PyTorch walks over it. A value in brackets is the tokens first to end.
struct cca__lint_pair {
    const char *key;
    const struct cca__config_key *known; // NULL: no release knows it
    const char *separator;               // between key and value; NULL: the text ends
    const char *value;                   // "[" for a list; NULL: the text ends
    size_t first, end;                   // tokens of the value, the brackets included
    const char *behind;                  // the token after the value; NULL: the text ends
    bool readable;                       // this release knows the key and takes the value
};

struct cca__lint {
    const struct cca_lint_options *options;
    int minor;
    struct cca__tokens tokens;
    struct cca__lint_pair pairs[CCA__LINT_PAIR_MAX];
    size_t pair_count;
    bool accepted; // the text as a whole
    size_t found, refused;
};

// Tells a finding of RULE at KEY for the releases from SINCE on.
struct cca__lint_place {
    const char *rule, *key;
    int since, until;
};
void cca__lint_tell(struct cca__lint *lint, const struct cca__lint_place *place,
                    const char *instead, const char *format, ...) BASE_PRINTF(4, 5);

// The last readable pair of that key, since it counts; NULL.
const struct cca__lint_pair *cca__lint_find(const struct cca__lint *lint, const char *key);
// Whether the key's last value is VALUE.
bool cca__lint_is(const struct cca__lint *lint, const char *key, const char *value);

// lint_rules.c: one key by itself, then several together.
void cca__lint_keys(struct cca__lint *lint);
void cca__lint_values(struct cca__lint *lint);
void cca__lint_together(struct cca__lint *lint);

// lint_divisions.c
void cca__lint_divisions(struct cca__lint *lint);

// lint_own.c
void cca__lint_own(struct cca__lint *lint);

#endif
