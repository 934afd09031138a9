// roundup_power2_divisions: one division for all sizes, or a list of intervals,
// `[256:1,512:2,>:8]`. An interval key is the lower bound of the sizes it rules, in MiB.
#include "allocator/config_keys.h"

#include <string.h>

static bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

static enum base_status parse_division(const char *key, const char *token, bool zero_disables,
                                       uint64_t *division) {
    const enum base_status status = cca__integer_of(key, token, division);
    if (status != BASE_OK) return status;
    if (is_power_of_two(*division) || (zero_disables && *division == 0)) return BASE_OK;
    return cca__refuse("c10::ValueError",
                       zero_disables
                           ? "For roundups, the divisions has to be power of 2 or 0 to disable "
                             "roundup "
                           : "For roundups, the divisions has to be power of 2 ",
                       "%s: the division " CCA__QUOTED " is no power of two", key, token);
}

// The entry of an interval key, in MiB.
static enum base_status division_entry(const char *key, const char *token, size_t *entry) {
    uint64_t mib;
    const enum base_status status = cca__integer_of(key, token, &mib);
    if (status != BASE_OK) return status;
    if (!is_power_of_two(mib))
        return cca__refuse("c10::ValueError", "For roundups, the intervals have to be power of 2 ",
                           "%s: the interval " CCA__QUOTED " is no power of two of MiB", key,
                           token);
    const size_t power = 63u - (size_t)__builtin_clzll(mib);
    *entry = power < CCA_DIVISION_COUNT ? power : CCA_DIVISION_COUNT - 1;
    return BASE_OK;
}

// One `KEY:DIVISION` of the list. LAST is the entry of the interval before, FIRST says there was
// none; `>` is no interval.
static enum base_status parse_division_pair(struct cca__parser *parser, const char *key,
                                            bool *first, size_t *last) {
    uint64_t *const table = parser->config->sizes.divisions;
    const char *interval, *token;
    enum base_status status = cca__next_token(parser, key, &interval);
    if (status == BASE_OK) status = cca__skip_separator(parser, key, ":");
    if (status != BASE_OK) return status;
    const bool rest = strcmp(interval, ">") == 0;
    size_t entry = 0;
    if (!rest) status = division_entry(key, interval, &entry);
    if (status == BASE_OK) status = cca__next_token(parser, key, &token);
    uint64_t division = 0;
    if (status == BASE_OK) status = parse_division(key, token, true, &division);
    if (status != BASE_OK) return status;
    if (rest) {
        // Once the last interval was overwritten, too.
        const size_t first_above = parser->strict ? *last : *last + 1;
        for (size_t above = first_above; above < CCA_DIVISION_COUNT; ++above)
            table[above] = division;
        return BASE_OK;
    }
    if (*first)
        for (size_t below = 0; below < entry; ++below) table[below] = division;
    *first = false;
    table[entry] = division;
    *last = entry;
    return BASE_OK;
}

static bool closes(const char *token) { return token != NULL && strcmp(token, "]") == 0; }

static enum base_status parse_division_list(struct cca__parser *parser, const char *key) {
    size_t last = 0;
    bool first = true;
    while (!closes(cca__peek(parser))) {
        enum base_status status = parse_division_pair(parser, key, &first, &last);
        if (status == BASE_OK && !closes(cca__peek(parser)))
            status = cca__skip_separator(parser, key, ",");
        if (status != BASE_OK) return status;
    }
    ++parser->position;
    return BASE_OK;
}

enum base_status cca__parse_divisions(struct cca__parser *parser, const char *key) {
    const char *token;
    enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, "[") == 0) return parse_division_list(parser, key);
    uint64_t division = 0;
    status = parse_division(key, token, false, &division);
    if (status != BASE_OK) return status;
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry)
        parser->config->sizes.divisions[entry] = division;
    return BASE_OK;
}
