// The parser of the configuration string. The text is cut into tokens first (separators `, : [ ]`
// are tokens, blanks vanish even inside words), then walked twice. PyTorch's own sentences are
// kept, since people search for them; where one does not name the key or the remedy, ours comes
// first and PyTorch's follows in brackets.
#include "allocator/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

struct tokens {
    char *text; // all tokens, each terminated
    char **token;
    size_t count;
};

// Where the walk stands. Keys are applied to CONFIG as they come.
struct parser {
    const struct tokens *tokens;
    size_t position;
    struct cca__config *config;
};

static bool is_separator(char character) {
    return character != '\0' && strchr(",:[]", character) != NULL;
}

static void tokens_deinit(struct tokens *tokens) {
    free(tokens->text);
    free(tokens->token);
}

static enum base_status tokens_init(struct tokens *tokens, const char *text) {
    const size_t length = strlen(text);
    tokens->text =
        malloc(2 * length + 1); // at worst every character is a token and has its terminator
    tokens->token = malloc((length + 1) * sizeof(char *));
    tokens->count = 0;
    if (tokens->text == NULL || tokens->token == NULL) {
        tokens_deinit(tokens);
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for a configuration of %zu bytes", length);
    }
    char *out = tokens->text;
    bool in_word = false;
    for (const char *in = text; *in != '\0'; ++in) {
        if (isspace((unsigned char)*in)) continue;
        if (is_separator(*in)) {
            if (in_word) *out++ = '\0';
            in_word = false;
            tokens->token[tokens->count++] = out;
            *out++ = *in;
            *out++ = '\0';
            continue;
        }
        if (!in_word) tokens->token[tokens->count++] = out;
        in_word = true;
        *out++ = *in;
    }
    *out = '\0';
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Values.

// The next token; NULL past the end.
static const char *peek(const struct parser *parser) {
    return parser->position < parser->tokens->count ? parser->tokens->token[parser->position]
                                                    : NULL;
}

static enum base_status next_token(struct parser *parser, const char *key, const char **token) {
    *token = peek(parser);
    if (*token == NULL)
        return base_status_set(BASE_INVALID_CONFIG,
                               "%s: its value is missing or unfinished, write %s:VALUE (Index out "
                               "of bounds in ConfigTokenizer)",
                               key, key);
    ++parser->position;
    return BASE_OK;
}

// One token that is not looked at: PyTorch takes anything for `:` and `,`.
static enum base_status skip_separator(struct parser *parser, const char *key) {
    const char *ignored;
    return next_token(parser, key, &ignored);
}

static enum base_status value_token(struct parser *parser, const char *key, const char **token) {
    const enum base_status status = skip_separator(parser, key);
    return status != BASE_OK ? status : next_token(parser, key, token);
}

// std::stoull: a sign is allowed and wraps, text after the digits is ignored.
static enum base_status integer_of(const char *key, const char *token, uint64_t *value) {
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(token, &end, 10);
    if (end == token)
        return base_status_set(BASE_INVALID_CONFIG, "%s: '%s' is not a whole number (stoull)", key,
                               token);
    if (errno == ERANGE)
        return base_status_set(BASE_INVALID_CONFIG, "%s: %s is out of range (stoull)", key, token);
    *value = number;
    return BASE_OK;
}

static enum base_status integer_value(struct parser *parser, const char *key, uint64_t *value) {
    const char *token;
    const enum base_status status = value_token(parser, key, &token);
    return status != BASE_OK ? status : integer_of(key, token, value);
}

static enum base_status real_value(struct parser *parser, const char *key, double *value) {
    const char *token;
    const enum base_status status = value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    char *end;
    errno = 0;
    *value = strtod(token, &end);
    if (end == token)
        return base_status_set(BASE_INVALID_CONFIG, "%s: '%s' is not a number (stod)", key, token);
    if (errno == ERANGE)
        return base_status_set(BASE_INVALID_CONFIG, "%s: %s is out of range (stod)", key, token);
    return BASE_OK;
}

static enum base_status bool_value(struct parser *parser, const char *key, bool *value) {
    const char *token;
    const enum base_status status = value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, "True") != 0 && strcmp(token, "False") != 0)
        return base_status_set(
            BASE_INVALID_CONFIG,
            "%s: Expected 'True' or 'False' at index %zu in ConfigTokenizer but got '%s'", key,
            parser->position - 1, token);
    *value = strcmp(token, "True") == 0;
    return BASE_OK;
}

// A size in MiB; what does not fit becomes the largest whole number of MiB, which is not
// "unlimited".
static size_t bytes_of_mib(uint64_t mib) {
    const uint64_t most = SIZE_MAX / MIB;
    return (size_t)((mib < most ? mib : most) * MIB);
}

static bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

//------------------------------------------------------------------------------------------------
// Keys. A handler stands behind its key and consumes the separator and the value.

static void set_unsupported(struct parser *parser, const char *key) {
    if (parser->config->unsupported == NULL) parser->config->unsupported = key;
}

// max_non_split_rounding follows the large segment, also when it was set before in the same
// string.
static enum base_status parse_large_segment(struct parser *parser, const char *key) {
    uint64_t mib;
    const enum base_status status = integer_value(parser, key, &mib);
    if (status != BASE_OK) return status;
    if (mib <= 10)
        return base_status_set(BASE_INVALID_CONFIG, "CachingAllocator option %s must be > 10 MB",
                               key);
    parser->config->sizes.large_segment = bytes_of_mib(mib);
    parser->config->sizes.max_non_split_rounding = parser->config->sizes.large_segment;
    return BASE_OK;
}

static enum base_status parse_at_least_segment(struct parser *parser, const char *key,
                                               size_t *bytes) {
    uint64_t mib;
    const enum base_status status = integer_value(parser, key, &mib);
    if (status != BASE_OK) return status;
    const uint64_t least = parser->config->sizes.large_segment / MIB;
    if (mib < least)
        return base_status_set(BASE_INVALID_CONFIG,
                               "CachingAllocator option %s too small, must be >= %llu", key,
                               (unsigned long long)least);
    *bytes = bytes_of_mib(mib);
    return BASE_OK;
}

static enum base_status parse_max_split_size(struct parser *parser, const char *key) {
    return parse_at_least_segment(parser, key, &parser->config->sizes.max_split_size);
}

static enum base_status parse_max_non_split_rounding(struct parser *parser, const char *key) {
    return parse_at_least_segment(parser, key, &parser->config->sizes.max_non_split_rounding);
}

static enum base_status parse_gc_threshold(struct parser *parser, const char *key) {
    double threshold;
    const enum base_status status = real_value(parser, key, &threshold);
    if (status != BASE_OK) return status;
    if (!(threshold > 0.0 && threshold < 1.0))
        return base_status_set(BASE_INVALID_CONFIG,
                               "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    parser->config->garbage_collection_threshold = threshold;
    return BASE_OK;
}

static enum base_status parse_division(const char *key, const char *token, bool zero_disables,
                                       uint64_t *division) {
    const enum base_status status = integer_of(key, token, division);
    if (status != BASE_OK) return status;
    if (is_power_of_two(*division) || (zero_disables && *division == 0)) return BASE_OK;
    return base_status_set(BASE_INVALID_CONFIG,
                           "For roundups, the divisions has to be power of 2 %s",
                           zero_disables ? "or 0 to disable roundup " : "");
}

// The entry of an interval key, in MiB.
static enum base_status division_entry(const char *key, const char *token, size_t *entry) {
    uint64_t mib;
    const enum base_status status = integer_of(key, token, &mib);
    if (status != BASE_OK) return status;
    if (!is_power_of_two(mib))
        return base_status_set(BASE_INVALID_CONFIG,
                               "For roundups, the intervals have to be power of 2 ");
    const size_t power = 63u - (size_t)__builtin_clzll(mib);
    *entry = power < CCA_DIVISION_COUNT ? power : CCA_DIVISION_COUNT - 1;
    return BASE_OK;
}

// One `KEY:DIVISION` of the list. LAST is the entry of the interval before, FIRST says there was
// none; `>` is no interval.
static enum base_status parse_division_pair(struct parser *parser, const char *key, bool *first,
                                            size_t *last) {
    uint64_t *const table = parser->config->sizes.divisions;
    const char *interval, *token;
    enum base_status status = next_token(parser, key, &interval);
    if (status == BASE_OK) status = skip_separator(parser, key);
    if (status != BASE_OK) return status;
    const bool rest = strcmp(interval, ">") == 0;
    size_t entry = 0;
    if (!rest) status = division_entry(key, interval, &entry);
    if (status == BASE_OK) status = next_token(parser, key, &token);
    uint64_t division = 0;
    if (status == BASE_OK) status = parse_division(key, token, true, &division);
    if (status != BASE_OK) return status;
    if (rest) {
        for (size_t above = *last + 1; above < CCA_DIVISION_COUNT; ++above) table[above] = division;
        return BASE_OK;
    }
    if (*first)
        for (size_t below = 0; below < entry; ++below) table[below] = division;
    *first = false;
    table[entry] = division;
    *last = entry;
    return BASE_OK;
}

static enum base_status parse_division_list(struct parser *parser, const char *key) {
    size_t last = 0;
    bool first = true;
    for (;;) {
        const char *const token = peek(parser);
        if (token != NULL && strcmp(token, "]") == 0) break;
        enum base_status status = parse_division_pair(parser, key, &first, &last);
        if (status != BASE_OK) return status;
        if (peek(parser) != NULL && strcmp(peek(parser), "]") == 0) break;
        status = skip_separator(parser, key);
        if (status != BASE_OK) return status;
    }
    ++parser->position;
    return BASE_OK;
}

static enum base_status parse_divisions(struct parser *parser, const char *key) {
    const char *token;
    enum base_status status = value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, "[") == 0) {
        status = parse_division_list(parser, key);
    } else {
        uint64_t division = 0;
        status = parse_division(key, token, false, &division);
        if (status == BASE_OK)
            for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry)
                parser->config->sizes.divisions[entry] = division;
    }
    return status;
}

static enum base_status parse_release_lock(struct parser *parser, const char *key) {
    return bool_value(parser, key, &parser->config->release_lock_on_cudamalloc);
}

static enum base_status parse_fraction(struct parser *parser, const char *key) {
    double fraction;
    const enum base_status status = real_value(parser, key, &fraction);
    if (status != BASE_OK) return status;
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return base_status_set(BASE_INVALID_CONFIG,
                               "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    parser->config->per_process_memory_fraction = fraction;
    return BASE_OK;
}

static enum base_status parse_backend(struct parser *parser, const char *key) {
    const char *token;
    const enum base_status status = value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, "native") == 0) return BASE_OK;
    if (strcmp(token, "cudaMallocAsync") != 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Unknown allocator backend, options are native and cudaMallocAsync");
    set_unsupported(parser, "backend:cudaMallocAsync");
    return BASE_OK;
}

// Keys whose default is all this build has: the value is checked as PyTorch does, another one is
// refused.
static enum base_status parse_false(struct parser *parser, const char *key) {
    bool value = false;
    const enum base_status status = bool_value(parser, key, &value);
    if (status == BASE_OK && value) set_unsupported(parser, key);
    return status;
}

static enum base_status parse_register_threads(struct parser *parser, const char *key) {
    uint64_t threads;
    const enum base_status status = integer_value(parser, key, &threads);
    if (status != BASE_OK) return status;
    if (!is_power_of_two(threads))
        return base_status_set(BASE_INVALID_CONFIG,
                               "Number of register threads has to be power of 2, got %llu",
                               (unsigned long long)threads);
    if (threads > 128)
        return base_status_set(
            BASE_INVALID_CONFIG,
            "Number of register threads should be less than or equal to 128, got %llu",
            (unsigned long long)threads);
    if (threads != 1) set_unsupported(parser, key);
    return BASE_OK;
}

static enum base_status parse_pinned_reserve(struct parser *parser, const char *key) {
    uint64_t mib;
    const enum base_status status = integer_value(parser, key, &mib);
    if (status != BASE_OK) return status;
    if (mib == 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Pinned reserve segment size has to be greater than 0");
    set_unsupported(parser, key);
    return BASE_OK;
}

static enum base_status parse_pinned_size(struct parser *parser, const char *key) {
    uint64_t mib;
    const enum base_status status = integer_value(parser, key, &mib);
    if (status == BASE_OK) set_unsupported(parser, key);
    return status;
}

static enum base_status parse_reserve(struct parser *parser, const char *key) {
    const char *token;
    const enum base_status status = value_token(parser, key, &token);
    if (status == BASE_OK) set_unsupported(parser, key);
    return status;
}

// `[NAME:VALUE,...]`; which token separates is not looked at.
static enum base_status parse_reserve_by_class(struct parser *parser, const char *key) {
    const char *token;
    enum base_status status = value_token(parser, key, &token);
    if (status == BASE_OK) status = next_token(parser, key, &token);
    while (status == BASE_OK && strcmp(token, "]") != 0) {
        status = value_token(parser, key, &token);
        if (status == BASE_OK) status = next_token(parser, key, &token);
        if (status == BASE_OK && strcmp(token, "]") != 0) status = next_token(parser, key, &token);
    }
    if (status == BASE_OK) set_unsupported(parser, key);
    return status;
}

// x_torch:VERSION, "2.5" or "2.15.0": from 2.12 on equal blocks are told apart by the age of
// their segment.
static enum base_status parse_version(struct parser *parser, const char *key) {
    const char *token;
    const enum base_status status = value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    int major = 0, minor = 0, length = 0;
    if (sscanf(token, "%1d.%2d%n", &major, &minor, &length) != 2 || major != 2 || minor < 0 ||
        minor > 15 || (token[length] != '\0' && token[length] != '.' && token[length] != '+'))
        return base_status_set(BASE_INVALID_CONFIG,
                               "%s: '%s' is not a version of PyTorch from 2.0 to 2.15, such as 2.5",
                               key, token);
    parser->config->tie_by_address = minor <= 11;
    return BASE_OK;
}

enum pass { PASS_FIRST, PASS_GENERIC, PASS_CUDA, PASS_OWN };

struct key {
    const char *name;
    enum pass pass; // PASS_FIRST: before all other generic ones, wherever it stands
    enum base_status (*parse)(struct parser *parser, const char *key);
};

static const struct key keys[] = {
    {"large_segment_size_mb", PASS_FIRST, parse_large_segment},
    {"max_split_size_mb", PASS_GENERIC, parse_max_split_size},
    {"max_non_split_rounding_mb", PASS_GENERIC, parse_max_non_split_rounding},
    {"garbage_collection_threshold", PASS_GENERIC, parse_gc_threshold},
    {"roundup_power2_divisions", PASS_GENERIC, parse_divisions},
    {"expandable_segments", PASS_GENERIC, parse_false},
    {"pinned_use_background_threads", PASS_GENERIC, parse_false},
    {"pinned_max_round_threshold_mb", PASS_GENERIC, parse_pinned_size},
    {"pinned_max_cached_size_mb", PASS_GENERIC, parse_pinned_size},
    {"backend", PASS_CUDA, parse_backend},
    {"release_lock_on_cudamalloc", PASS_CUDA, parse_release_lock},
    {"release_lock_on_hipmalloc", PASS_CUDA, parse_release_lock},
    {"pinned_use_cuda_host_register", PASS_CUDA, parse_false},
    {"pinned_use_hip_host_register", PASS_CUDA, parse_false},
    {"pinned_num_register_threads", PASS_CUDA, parse_register_threads},
    {"pinned_reserve_segment_size_mb", PASS_CUDA, parse_pinned_reserve},
    {"pinned_free_catch_all", PASS_CUDA, parse_false},
    {"graph_capture_record_stream_reuse", PASS_CUDA, parse_false},
    {"per_process_memory_fraction", PASS_CUDA, parse_fraction},
    {"throw_on_cudamalloc_oom", PASS_CUDA, parse_false},
    {"expandable_segments_reserve", PASS_CUDA, parse_reserve},
    {"expandable_segments_reserve_by_class", PASS_CUDA, parse_reserve_by_class},
    {"x_torch", PASS_OWN, parse_version},
};

//------------------------------------------------------------------------------------------------
// The walk.

static const struct key *find_key(const char *name) {
    for (size_t index = 0; index < sizeof keys / sizeof keys[0]; ++index)
        if (strcmp(keys[index].name, name) == 0) return &keys[index];
    return NULL;
}

// Over the value of a key that this pass does not handle: a word, or a list in brackets.
static enum base_status skip_value(struct parser *parser, const char *key) {
    const char *token;
    enum base_status status = value_token(parser, key, &token);
    if (status != BASE_OK || strcmp(token, "[") != 0) return status;
    do {
        if (peek(parser) == NULL)
            return base_status_set(
                BASE_INVALID_CONFIG,
                "%s: Expected closing bracket ']' in ConfigTokenizer but reached end of config",
                key);
        status = next_token(parser, key, &token);
    } while (status == BASE_OK && strcmp(token, "]") != 0);
    return status;
}

static enum base_status unknown_key(const char *token, enum pass pass) {
    if (strncmp(token, "x_", 2) == 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Unrecognized key '%s': the key of our own is x_torch", token);
    return base_status_set(BASE_INVALID_CONFIG, "Unrecognized key '%s' in %s allocator config.",
                           token, pass == PASS_CUDA ? "CUDA" : "Accelerator");
}

// Walks the whole string and applies the keys of one pass. Unknown keys are met by every pass but
// the one for large_segment_size_mb, which looks for its key anywhere among the tokens.
static enum base_status walk(struct parser *parser, enum pass pass) {
    parser->position = 0;
    const char *token;
    while ((token = peek(parser)) != NULL) {
        ++parser->position;
        const struct key *const key = find_key(token);
        if (key == NULL) return unknown_key(token, pass);
        const enum base_status status =
            key->pass == pass ? key->parse(parser, key->name) : skip_value(parser, key->name);
        if (status != BASE_OK) return status;
        if (peek(parser) != NULL) ++parser->position;
    }
    return BASE_OK;
}

static enum base_status walk_large_segment(struct parser *parser) {
    const struct tokens *const tokens = parser->tokens;
    for (size_t index = 0; index < tokens->count; ++index) {
        if (strcmp(tokens->token[index], "large_segment_size_mb") != 0) continue;
        parser->position = index + 1;
        const enum base_status status = parse_large_segment(parser, "large_segment_size_mb");
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static enum base_status apply_tokens(struct cca__config *config, const struct tokens *tokens) {
    struct parser parser = {.tokens = tokens, .config = config};
    config->sizes.max_split_size = CCA_UNLIMITED;
    config->sizes.max_non_split_rounding = config->sizes.large_segment;
    memset(config->sizes.divisions, 0, sizeof config->sizes.divisions);
    config->garbage_collection_threshold = 0.0;
    enum base_status status = walk_large_segment(&parser);
    if (status == BASE_OK) status = walk(&parser, PASS_GENERIC);
    if (status == BASE_OK) status = walk(&parser, PASS_CUDA);
    if (status == BASE_OK) status = walk(&parser, PASS_OWN);
    cca__size_rules_update(&config->sizes);
    return status;
}

void cca__config_init(struct cca__config *config) {
    *config = (struct cca__config){
        .sizes =
            {
                .large_segment = CCA_LARGE_SEGMENT,
                .max_split_size = CCA_UNLIMITED,
                .max_non_split_rounding = CCA_LARGE_SEGMENT,
            },
        .per_process_memory_fraction = 1.0,
    };
}

enum base_status cca__config_apply(struct cca__config *config, const char *text) {
    struct tokens tokens;
    enum base_status status = tokens_init(&tokens, text != NULL ? text : "");
    if (status != BASE_OK) return status;
    struct cca__config applied = *config;
    status = apply_tokens(&applied, &tokens);
    tokens_deinit(&tokens);
    if (status == BASE_OK && applied.unsupported != NULL)
        return base_status_set(BASE_UNSUPPORTED,
                               "configuration key %s: only its default is supported",
                               applied.unsupported);
    applied.unsupported = NULL;
    *config = applied;
    return status;
}
