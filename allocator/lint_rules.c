// The rules about keys, about values by themselves, and about settings together.
#include "allocator/lint_rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATEST       CCA__TORCH_MINOR_LATEST
#define MESSAGE_SIZE 512
#define BEYOND_MIB   (UINT64_C(1) << 20) // 1 TiB: more than any device has

//------------------------------------------------------------------------------------------------
// Keys that are none.

// Names that are written about, and what their writers mean.
static const struct {
    const char *name, *instead, *why;
} misnamed[] = {
    {"garbage_collect_threshold", "garbage_collection_threshold",
     "PyTorch's own error text calls the key so"},
    {"gc_threshold", "garbage_collection_threshold", "the key has a longer name"},
    {"max_split_size", "max_split_size_mb", "the key ends with its unit"},
    {"max_split_mb", "max_split_size_mb", "the key has a longer name"},
    {"max_non_split_rounding", "max_non_split_rounding_mb", "the key ends with its unit"},
    {"large_segment_size", "large_segment_size_mb", "the key ends with its unit"},
    {"expandable_segment", "expandable_segments", "the key is a plural"},
    {"expandable_segments_handle_type", NULL,
     "messages of PyTorch name it, but no release reads it"},
    {"roundup_bypass_threshold_mb", "roundup_power2_divisions",
     "it was proposed, but the list form of roundup_power2_divisions came instead"},
    {"per_process_gpu_memory_fraction", "per_process_memory_fraction", "that is TensorFlow's name"},
    {"base_addr_aligned_kb", NULL, "that key is of PYTORCH_NPU_ALLOC_CONF"},
    {"page_size", NULL, "that key is of PYTORCH_NPU_ALLOC_CONF"},
    {"segment_size_mb", "large_segment_size_mb", "that key is of PYTORCH_NPU_ALLOC_CONF"},
};

// How many letters differ, at most: by insertion, removal and exchange.
static size_t distance(const char *a, const char *b) {
    enum { LENGTH = 64 };
    const size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length >= LENGTH || b_length >= LENGTH) return SIZE_MAX;
    size_t row[LENGTH + 1];
    for (size_t column = 0; column <= b_length; ++column) row[column] = column;
    for (size_t line = 1; line <= a_length; ++line) {
        size_t diagonal = row[0];
        row[0] = line;
        for (size_t column = 1; column <= b_length; ++column) {
            const size_t above = row[column];
            size_t best = diagonal + (a[line - 1] != b[column - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[column - 1] + 1 < best) best = row[column - 1] + 1;
            diagonal = above;
            row[column] = best;
        }
    }
    return row[b_length];
}

// The key that the text looks like, NULL for none; without regard to case.
static const char *nearest(const char *name) {
    char lower[64];
    if (strlen(name) >= sizeof lower) return NULL;
    size_t length = 0;
    for (; name[length] != '\0'; ++length)
        lower[length] = (char)tolower((unsigned char)name[length]);
    lower[length] = '\0';
    const char *best = NULL;
    size_t least = length / 4 + 1; // a letter in four, at most
    for (size_t index = 0; index < cca__config_key_count; ++index) {
        const size_t letters = distance(lower, cca__config_keys[index].name);
        if (letters >= least) continue;
        least = letters;
        best = cca__config_keys[index].name;
    }
    return best;
}

static bool is_separator(const char *token) {
    return strlen(token) == 1 && strchr(",:[]", token[0]) != NULL;
}

// The whole text looks like something else; why, or NULL.
static const char *not_settings(const struct cca__lint_pair *pair) {
    const char *const key = pair->key, *const value = pair->value;
    if (strncmp(key, "PYTORCH_", 8) == 0 || strncmp(key, "export", 6) == 0)
        return "the name of the variable stands in its value: write what follows its '='";
    if (key[0] == '"' || key[0] == '\'')
        return "the quotes became part of the value: leave them out";
    const bool drive = strlen(key) == 1 && isalpha((unsigned char)key[0]) && value != NULL;
    if ((drive && (value[0] == '\\' || value[0] == '/')) || key[0] == '/')
        return "this is a path, not settings: something else was written into the variable";
    return NULL;
}

static void tell_unknown(struct cca__lint *lint, const struct cca__lint_pair *pair) {
    const struct cca__lint_place place = {"unknown-key", pair->key, 0, LATEST};
    char instead[MESSAGE_SIZE];
    const char *const other = not_settings(pair);
    if (other != NULL) {
        cca__lint_tell(lint, &place, other, "'%.80s' is no key", pair->key);
        return;
    }
    if (is_separator(pair->key) || pair->key[0] == '.' || isdigit((unsigned char)pair->key[0])) {
        cca__lint_tell(lint, &place, "write KEY:VALUE pairs with one ',' between them",
                       "'%.80s' stands where a key is expected: a separator before it is wrong or "
                       "one too many",
                       pair->key);
        return;
    }
    for (size_t index = 0; index < sizeof misnamed / sizeof misnamed[0]; ++index) {
        if (strcmp(pair->key, misnamed[index].name) != 0) continue;
        snprintf(instead, sizeof instead, "%s%s",
                 misnamed[index].instead != NULL ? "write " : "leave it out",
                 misnamed[index].instead != NULL ? misnamed[index].instead : "");
        cca__lint_tell(lint, &place, instead, "no release of PyTorch has a key '%.80s': %s",
                       pair->key, misnamed[index].why);
        return;
    }
    const char *const equals = strchr(pair->key, '=');
    const char *const near = nearest(pair->key);
    if (equals != NULL)
        snprintf(instead, sizeof instead, "write %.*s:%.80s", (int)(equals - pair->key), pair->key,
                 equals + 1);
    else if (near != NULL)
        snprintf(instead, sizeof instead, "write %s", near);
    else
        snprintf(instead, sizeof instead, "leave it out; docs/configuration.md lists the keys");
    cca__lint_tell(lint, &place, instead,
                   "no release of PyTorch from 2.0 to 2.15 has a key '%.80s'", pair->key);
}

static void tell_later(struct cca__lint *lint, const struct cca__lint_pair *pair) {
    const struct cca__config_key *const key = pair->known;
    char instead[MESSAGE_SIZE];
    snprintf(instead, sizeof instead, "leave it out, or use PyTorch 2.%d", key->since);
    cca__lint_tell(lint, &(struct cca__lint_place){"later-key", pair->key, 0, key->since - 1},
                   instead, "PyTorch 2.%d refuses the whole string: %s came with %s2.%d",
                   lint->minor, key->name, key->about ? "about " : "", key->since);
}

void cca__lint_keys(struct cca__lint *lint) {
    for (size_t index = 0; index < lint->pair_count; ++index) {
        const struct cca__lint_pair *const pair = &lint->pairs[index];
        if (pair->known == NULL)
            tell_unknown(lint, pair);
        else if (!cca__config_key_known(pair->known, lint->minor))
            tell_later(lint, pair);
    }
}

//------------------------------------------------------------------------------------------------
// Values by themselves.

static bool takes_number(const struct cca__config_key *key) {
    return strcmp(key->value, "MIB") == 0 || strcmp(key->value, "N") == 0 ||
           strcmp(key->value, "SHARE") == 0;
}

static void check_number(struct cca__lint *lint, const struct cca__lint_pair *pair) {
    if (!takes_number(pair->known)) return;
    const bool real = strcmp(pair->known->value, "SHARE") == 0;
    char *end;
    errno = 0;
    const double share = real ? strtod(pair->value, &end) : 0.0;
    const unsigned long long whole = real ? 0 : strtoull(pair->value, &end, 10);
    const int kept = (int)(end - pair->value);
    char instead[MESSAGE_SIZE];
    if (*end != '\0') {
        snprintf(instead, sizeof instead,
                 *end == ';' ? "write ',' between settings, not ';'"
                             : "write %s:%.*s if that is meant",
                 pair->key, kept > 40 ? 40 : kept, pair->value);
        cca__lint_tell(lint, &(struct cca__lint_place){"text-behind-number", pair->key, 0, LATEST},
                       instead, "%s:%.40s is read as %.*s: what follows the digits is ignored",
                       pair->key, pair->value, kept > 40 ? 40 : kept, pair->value);
    }
    (void)share;
    const bool mib = strcmp(pair->known->value, "MIB") == 0;
    snprintf(instead, sizeof instead, "leave %s out, which is %s", pair->key,
             pair->known->standard);
    if (!real && pair->value[0] == '-')
        cca__lint_tell(lint, &(struct cca__lint_place){"negative-number", pair->key, 0, LATEST},
                       instead, "%s:%.40s wraps around to %llu, which is not unlimited", pair->key,
                       pair->value, whole);
    else if (mib && whole >= BEYOND_MIB)
        cca__lint_tell(lint, &(struct cca__lint_place){"beyond-any-device", pair->key, 0, LATEST},
                       instead, "%s:%.40s is 1 TiB or more, which no device has", pair->key,
                       pair->value);
}

static void check_separators(struct cca__lint *lint, const struct cca__lint_pair *pair) {
    const char *wrong = NULL, *right = NULL;
    if (strchr(pair->value, ';') != NULL) return; // told already
    if (pair->separator != NULL && strcmp(pair->separator, ":") != 0) {
        wrong = pair->separator;
        right = ":";
    } else if (pair->behind != NULL && strcmp(pair->behind, ",") != 0) {
        wrong = pair->behind;
        right = ",";
    }
    if (wrong == NULL || lint->minor <= 8) return; // up to 2.8 an error, told as such
    char instead[MESSAGE_SIZE];
    snprintf(instead, sizeof instead, "write '%s'", right);
    cca__lint_tell(lint, &(struct cca__lint_place){"separator", pair->key, 9, LATEST}, instead,
                   "'%.40s' at %s passes for '%s' since PyTorch 2.9, which takes any word there; "
                   "earlier releases refuse it",
                   wrong, pair->key, right);
}

static void check_repeated(struct cca__lint *lint, const struct cca__lint_pair *pair) {
    const struct cca__lint_pair *const last = cca__lint_find(lint, pair->key);
    if (last == NULL || last == pair || pair->value[0] == '[') return;
    char instead[MESSAGE_SIZE];
    snprintf(instead, sizeof instead, "keep one of them");
    cca__lint_tell(lint, &(struct cca__lint_place){"repeated-key", pair->key, 0, LATEST}, instead,
                   "%s:%.40s is overridden by %s:%.40s later in the text", pair->key, pair->value,
                   last->key, last->value);
}

void cca__lint_values(struct cca__lint *lint) {
    for (size_t index = 0; index < lint->pair_count; ++index) {
        const struct cca__lint_pair *const pair = &lint->pairs[index];
        if (!pair->readable) continue;
        check_number(lint, pair);
        check_separators(lint, pair);
        check_repeated(lint, pair);
    }
}

//------------------------------------------------------------------------------------------------
// Settings together. Each rule is asked once.

static void tell(struct cca__lint *lint, const char *rule, const char *key, int since,
                 const char *instead, const char *sentence) {
    const struct cca__config_key *const known = cca__config_key_find(key);
    if (since < known->since) since = known->since;
    cca__lint_tell(lint, &(struct cca__lint_place){rule, key, since, LATEST}, instead, "%s",
                   sentence);
}

static bool has(const struct cca__lint *lint, const char *key) {
    return cca__lint_find(lint, key) != NULL;
}

static double share_of(const struct cca__lint *lint, const char *key, double standard) {
    const struct cca__lint_pair *const pair = cca__lint_find(lint, key);
    return pair != NULL ? strtod(pair->value, NULL) : standard;
}

static bool is_expandable(const struct cca__lint *lint) {
    return cca__lint_is(lint, "expandable_segments", "True");
}

static void limits_together(struct cca__lint *lint) {
    const double fraction = share_of(lint, "per_process_memory_fraction", 1.0);
    const bool limited = fraction < 1.0 || lint->options->fraction_set;
    if (has(lint, "garbage_collection_threshold") && !limited)
        tell(
            lint, "gc-without-fraction", "garbage_collection_threshold", 0,
            lint->minor >= 9 ? "add per_process_memory_fraction:0.95, or call "
                               "set_per_process_memory_fraction in the program"
                             : "call set_per_process_memory_fraction in the program",
            "the threshold is a share of what the process may use: without a memory fraction below "
            "1 garbage is never collected");
    if (has(lint, "garbage_collection_threshold") && is_expandable(lint))
        tell(
            lint, "gc-with-expandable", "garbage_collection_threshold", 1, "choose one of the two",
            "garbage collection leaves expandable segments alone: with expandable_segments:True it "
            "finds next to nothing to release");
    if (has(lint, "per_process_memory_fraction") && fraction == 0.0)
        tell(lint, "fraction-of-nothing", "per_process_memory_fraction", 9,
             "leave the key out for no limit",
             "0 means no memory at all, not no limit: every allocation fails");
    if (!cca__lint_is(lint, "throw_on_cudamalloc_oom", "True")) return;
    if (!has(lint, "per_process_memory_fraction"))
        tell(lint, "throw-without-fraction", "throw_on_cudamalloc_oom", 12,
             "leave it out, or add per_process_memory_fraction",
             "its limit is the whole device then, and what is cached counts and is kept: a request "
             "fails that a release of cached memory would have served");
    else if (fraction < 1.0)
        tell(lint, "throw-behind-fraction", "throw_on_cudamalloc_oom", 12,
             "call set_per_process_memory_fraction(1) in the program, which leaves the limit to "
             "throw_on_cudamalloc_oom",
             "per_process_memory_fraction also sets the ordinary limit, which is tested first: the "
             "request fails the ordinary way, cached memory released, and nothing is thrown early");
}

static void sizes_together(struct cca__lint *lint) {
    // x_reclaim_idle asks it, too.
    if (has(lint, "max_non_split_rounding_mb") && !has(lint, "max_split_size_mb") &&
        !cca__lint_is(lint, "x_reclaim_idle", "True"))
        tell(lint, "rounding-without-split", "max_non_split_rounding_mb", 6,
             "add max_split_size_mb, or leave it out",
             "it says how much of an oversize block a request may waste; without max_split_size_mb "
             "no block is oversize");
    if (!has(lint, "max_split_size_mb") || !is_expandable(lint) ||
        cca__lint_is(lint, "x_bound_growth", "True"))
        return;
    const char *const sentence =
        lint->minor < 5
            ? "releases up to 2.4 abort near the end of memory ('!block->expandable_segment_', "
              "pytorch#123548), and free expandable memory of this size is not used again, so "
              "that reserved memory can grow without end (pytorch#193400)"
            : "free expandable memory of this size merges into oversize blocks that smaller "
              "requests may not use, so that reserved memory can grow without end (pytorch#193400)";
    tell(lint, "split-with-expandable", "max_split_size_mb", 1,
         "choose one of the two; this allocator can have both with x_bound_growth:True", sentence);
}

// The driver maps whole pages of 2 MiB.
static void pages_together(struct cca__lint *lint) {
    const struct cca__lint_pair *const segment = cca__lint_find(lint, "large_segment_size_mb");
    if (segment != NULL && is_expandable(lint) && strtoull(segment->value, NULL, 10) % 2 != 0)
        tell(
            lint, "pages-of-odd-size", "large_segment_size_mb", 11, "write an even number",
            "expandable segments grow by this size, which must be whole pages of 2 MiB: the driver "
            "refuses it, and every request above 1 MiB fails");
}

static bool is_reserve(const char *value, double *amount, bool *in_gib) {
    char *end;
    *amount = strtod(value, &end);
    *in_gib = *end == 'G' || *end == 'g';
    if (*in_gib) ++end;
    return end != value && *end == '\0' && *amount > 0.0 && *amount < 1e300;
}

static void check_reserve(struct cca__lint *lint, const char *key, const char *value) {
    double amount;
    bool in_gib;
    char sentence[MESSAGE_SIZE];
    if (!is_reserve(value, &amount, &in_gib)) {
        snprintf(sentence, sizeof sentence,
                 "'%.80s' is neither a share such as 0.5 nor GiB such as 40G: it is ignored with a "
                 "warning",
                 value);
        tell(lint, "reserve-ignored", key, 14, "write 0.5 or 40G", sentence);
    } else if (!in_gib && amount > 1.125) {
        snprintf(sentence, sizeof sentence,
                 "%.80s is a share of the device, of which 9/8 are taken at most", value);
        tell(lint, "reserve-capped", key, 14, "for GiB write the unit, such as 40G", sentence);
    } else if (!in_gib && amount < 1.0) {
        snprintf(sentence, sizeof sentence,
                 "one allocation cannot span two segments: a request above %.80s of the device "
                 "fails, whatever is free",
                 value);
        tell(lint, "reserve-limits-requests", key, 14,
             "reserve at least as much as the largest single allocation", sentence);
    }
}

static void reserves_together(struct cca__lint *lint) {
    static const char one[] = "expandable_segments_reserve";
    static const char by_class[] = "expandable_segments_reserve_by_class";
    const struct cca__lint_pair *const all = cca__lint_find(lint, one);
    const struct cca__lint_pair *const classes = cca__lint_find(lint, by_class);
    if ((all != NULL || classes != NULL) && !is_expandable(lint))
        tell(lint, "reserve-without-expandable", all != NULL ? one : by_class, 14,
             "add expandable_segments:True, or leave it out",
             "only expandable segments reserve address space, and they are off");
    if (all != NULL) check_reserve(lint, one, all->value);
    if (classes == NULL || strcmp(classes->value, "[") != 0) return;
    // NAME : VALUE, and a comma that may be missing.
    for (size_t at = classes->first + 1; at + 3 < classes->end;) {
        check_reserve(lint, by_class, lint->tokens.token[at + 2]);
        at += 3;
        if (strcmp(lint->tokens.token[at], ",") == 0) ++at;
    }
}

static void behaviour_together(struct cca__lint *lint) {
    static const char *const native[] = {
        "max_split_size_mb",        "max_non_split_rounding_mb",    "large_segment_size_mb",
        "roundup_power2_divisions", "garbage_collection_threshold", "expandable_segments"};
    const bool unlocks = cca__lint_is(lint, "release_lock_on_cudamalloc", "True") ||
                         cca__lint_is(lint, "release_lock_on_hipmalloc", "True");
    if (unlocks && is_expandable(lint))
        tell(lint, "unlock-with-expandable", "release_lock_on_cudamalloc", 1, "leave it out",
             "the lock is released around cudaMalloc only; expandable segments do not call it");
    if (cca__lint_is(lint, "backend", "cudaMallocAsync"))
        for (size_t index = 0; index < sizeof native / sizeof native[0]; ++index)
            if (has(lint, native[index]))
                tell(lint, "async-ignores", native[index], 0,
                     "leave it out, or write backend:native",
                     "backend:cudaMallocAsync leaves all of it to the driver: the key is ignored");
    if (has(lint, "pinned_num_register_threads") &&
        !cca__lint_is(lint, "pinned_num_register_threads", "1") &&
        !cca__lint_is(lint, "pinned_use_cuda_host_register", "True") &&
        !cca__lint_is(lint, "pinned_use_hip_host_register", "True"))
        tell(lint, "threads-without-register", "pinned_num_register_threads", 2,
             "add pinned_use_cuda_host_register:True, or leave it out",
             "the threads prepare memory for cudaHostRegister, which is not used");
}

void cca__lint_together(struct cca__lint *lint) {
    sizes_together(lint);
    pages_together(lint);
    limits_together(lint);
    reserves_together(lint);
    behaviour_together(lint);
    cca__lint_own(lint);
}
