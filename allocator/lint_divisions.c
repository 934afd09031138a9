// The rules about roundup_power2_divisions. PyTorch's documentation reads each interval of the list
// as an upper bound; the code applies it from there up to twice as much.
#include "allocator/lint_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY    "roundup_power2_divisions"
#define LATEST CCA__TORCH_MINOR_LATEST

// `MIB:N` of the list.
struct interval {
    uint64_t mib, division;
};

struct list {
    struct interval intervals[64];
    size_t count;
    bool rest; // it has a `>`
    uint64_t rest_division;
    bool ascends;
};

static void tell(struct cca__lint *lint, const char *rule, const char *instead,
                 const char *sentence) {
    cca__lint_tell(lint, &(struct cca__lint_place){rule, KEY, 0, LATEST}, instead, "%s", sentence);
}

// The value was read without an error: pairs of tokens with a separator between and behind.
static void read_list(const struct cca__lint *lint, const struct cca__lint_pair *pair,
                      struct list *list) {
    *list = (struct list){.ascends = true};
    char *const *const token = lint->tokens.token;
    for (size_t at = pair->first + 1; at + 3 < pair->end && list->count < 64; at += 4) {
        const uint64_t division = strtoull(token[at + 2], NULL, 10);
        if (strcmp(token[at], ">") == 0) {
            list->rest = true;
            list->rest_division = division;
            continue;
        }
        const uint64_t mib = strtoull(token[at], NULL, 10);
        if (list->rest || (list->count > 0 && mib <= list->intervals[list->count - 1].mib))
            list->ascends = false;
        list->intervals[list->count++] = (struct interval){.mib = mib, .division = division};
    }
}

static bool rounds(uint64_t division) { return division > 1; }

static void check_bounds(struct cca__lint *lint, const struct list *list) {
    // Where neighbours round alike, the bound between them is of no matter.
    for (size_t index = 0; index + 1 < list->count + (list->rest ? 1 : 0); ++index) {
        const struct interval *const interval = &list->intervals[index];
        const uint64_t above =
            index + 1 < list->count ? list->intervals[index + 1].division : list->rest_division;
        if (interval->division == above || !(rounds(interval->division) || rounds(above))) continue;
        char sentence[256], instead[128];
        snprintf(
            sentence, sizeof sentence,
            "%llu:%llu rules sizes from %llu MiB to below %llu MiB%s, not those below %llu MiB "
            "as the documentation reads",
            (unsigned long long)interval->mib, (unsigned long long)interval->division,
            (unsigned long long)interval->mib, 2 * (unsigned long long)interval->mib,
            index == 0 ? " and all below" : "", (unsigned long long)interval->mib);
        snprintf(instead, sizeof instead, "for an upper bound of %llu MiB write %llu:%llu",
                 (unsigned long long)interval->mib,
                 (unsigned long long)(interval->mib > 1 ? interval->mib / 2 : 1),
                 (unsigned long long)interval->division);
        tell(lint, "division-bounds", instead, sentence);
        return; // one example tells it
    }
}

static void check_gaps(struct cca__lint *lint, const struct list *list) {
    for (size_t index = 0; index + 1 < list->count; ++index) {
        const struct interval *const low = &list->intervals[index];
        const struct interval *const high = &list->intervals[index + 1];
        if (high->mib / low->mib <= 2) continue;
        char sentence[256], instead[128];
        snprintf(sentence, sizeof sentence,
                 "sizes from %llu MiB to below %llu MiB are not listed and round nothing",
                 2 * (unsigned long long)low->mib, (unsigned long long)high->mib);
        snprintf(instead, sizeof instead, "list every power of two in between, from %llu on",
                 2 * (unsigned long long)low->mib);
        tell(lint, "division-gap", instead, sentence);
    }
}

static void check_list(struct cca__lint *lint, const struct cca__lint_pair *pair) {
    struct list list;
    read_list(lint, pair, &list);
    if (!list.ascends) {
        tell(lint, "division-order", "sort the list, '>' last",
             "the list is applied in its order: the first entry fills all below it, '>' all above "
             "the entry before it, whatever was there");
        return;
    }
    if (list.count == 0 && list.rest)
        tell(lint, "division-above-only", "write 1:N before it for the sizes below 2 MiB",
             lint->minor <= 8 ? "alone, '>' rules all sizes"
                              : "alone, '>' rules sizes from 2 MiB on: those below round nothing");
    bool any = list.rest && rounds(list.rest_division);
    for (size_t index = 0; index < list.count; ++index)
        any = any || rounds(list.intervals[index].division);
    if (!any && (list.count > 0 || list.rest))
        tell(lint, "division-of-one", "write 2 or more to round, or leave the key out",
             "divisions of 1 and 0 round nothing, not up to the next power of two");
    check_bounds(lint, &list);
    check_gaps(lint, &list);
}

void cca__lint_divisions(struct cca__lint *lint) {
    const struct cca__lint_pair *const pair = cca__lint_find(lint, KEY);
    if (pair == NULL) return;
    if (strcmp(pair->value, "[") == 0)
        check_list(lint, pair);
    else if (strtoull(pair->value, NULL, 10) == 1)
        tell(lint, "division-of-one", "write 2 or more to round, or leave the key out",
             "a division of 1 rounds nothing, not up to the next power of two");
}
