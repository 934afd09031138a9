// The lint's frame: the string cut into pairs, each value given to the parser by itself, then the
// rules. See lint.h.
#include "allocator/lint.h"

#include "allocator/lint_rules.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cca_lint_rule cca_lint_rules[] = {
    {"unknown-key", CCA_LINT_REFUSED, "garbage_collect_threshold:0.8", NULL},
    {"later-key", CCA_LINT_REFUSED, "expandable_segments:True", "2.0"},
    {"value", CCA_LINT_REFUSED, "expandable_segments:true", NULL},
    {"separator", CCA_LINT_SURPRISE, "max_split_size_mb,64", NULL},
    {"repeated-key", CCA_LINT_SURPRISE, "max_split_size_mb:64,max_split_size_mb:128", NULL},
    {"text-behind-number", CCA_LINT_SURPRISE, "max_split_size_mb:64.9", NULL},
    {"negative-number", CCA_LINT_SURPRISE, "max_split_size_mb:-1", NULL},
    {"beyond-any-device", CCA_LINT_NO_EFFECT, "max_split_size_mb:1048576", NULL},
    {"division-of-one", CCA_LINT_NO_EFFECT, "roundup_power2_divisions:1", NULL},
    {"division-bounds", CCA_LINT_SURPRISE, "roundup_power2_divisions:[256:1,512:2,>:8]", NULL},
    {"division-gap", CCA_LINT_SURPRISE, "roundup_power2_divisions:[64:2,256:4]", NULL},
    {"division-above-only", CCA_LINT_SURPRISE, "roundup_power2_divisions:[>:4]", NULL},
    {"division-order", CCA_LINT_SURPRISE, "roundup_power2_divisions:[256:2,64:4]", NULL},
    {"gc-without-fraction", CCA_LINT_NO_EFFECT, "garbage_collection_threshold:0.8", NULL},
    {"gc-with-expandable", CCA_LINT_CONFLICT,
     "per_process_memory_fraction:0.9,garbage_collection_threshold:0.8,expandable_segments:True",
     NULL},
    {"split-with-expandable", CCA_LINT_CONFLICT, "max_split_size_mb:128,expandable_segments:True",
     NULL},
    {"pages-of-odd-size", CCA_LINT_CONFLICT, "large_segment_size_mb:25,expandable_segments:True",
     NULL},
    {"rounding-without-split", CCA_LINT_NO_EFFECT, "max_non_split_rounding_mb:64", NULL},
    {"reserve-without-expandable", CCA_LINT_NO_EFFECT, "expandable_segments_reserve:0.5", NULL},
    {"reserve-ignored", CCA_LINT_NO_EFFECT,
     "expandable_segments:True,expandable_segments_reserve:40GB", NULL},
    {"reserve-limits-requests", CCA_LINT_SURPRISE,
     "expandable_segments:True,expandable_segments_reserve:0.25", NULL},
    {"reserve-capped", CCA_LINT_SURPRISE, "expandable_segments:True,expandable_segments_reserve:2",
     NULL},
    {"unlock-with-expandable", CCA_LINT_NO_EFFECT,
     "release_lock_on_cudamalloc:True,expandable_segments:True", NULL},
    {"throw-without-fraction", CCA_LINT_SURPRISE, "throw_on_cudamalloc_oom:True", NULL},
    {"throw-behind-fraction", CCA_LINT_CONFLICT,
     "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.9", NULL},
    {"fraction-of-nothing", CCA_LINT_SURPRISE, "per_process_memory_fraction:0", NULL},
    {"async-ignores", CCA_LINT_CONFLICT, "backend:cudaMallocAsync,max_split_size_mb:64", NULL},
    {"threads-without-register", CCA_LINT_NO_EFFECT, "pinned_num_register_threads:8", NULL},
    {"bound-without-growth", CCA_LINT_NO_EFFECT, "x_bound_growth:True", NULL},
    {"reclaim-with-expandable", CCA_LINT_NO_EFFECT, "x_reclaim_idle:True,expandable_segments:True",
     NULL},
    {"torch-faults", CCA_LINT_SURPRISE, "x_torch_faults:True", NULL},
    {"reuse-by-markers", CCA_LINT_SURPRISE, "x_capture_reuse:markers", NULL},
};
const size_t cca_lint_rule_count = sizeof cca_lint_rules / sizeof cca_lint_rules[0];

const char *cca_lint_kind_name(enum cca_lint_kind kind) {
    switch (kind) {
    case CCA_LINT_REFUSED: return "refused";
    case CCA_LINT_NO_EFFECT: return "no effect";
    case CCA_LINT_SURPRISE: return "surprise";
    case CCA_LINT_CONFLICT: return "conflict";
    }
    return "";
}

static const struct cca_lint_rule *rule_find(const char *name) {
    size_t index = 0;
    while (strcmp(cca_lint_rules[index].name, name) != 0) ++index;
    return &cca_lint_rules[index];
}

void cca__lint_tell(struct cca__lint *lint, const struct cca__lint_place *place,
                    const char *instead, const char *format, ...) {
    ++lint->found;
    const struct cca_lint_rule *const rule = rule_find(place->rule);
    if (rule->kind == CCA_LINT_REFUSED) ++lint->refused;
    if (lint->options->found == NULL) return;
    char sentence[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    base_text_clean(sentence);
    const struct cca_lint_finding finding = {.kind = rule->kind,
                                             .rule = place->rule,
                                             .key = place->key,
                                             .sentence = sentence,
                                             .instead = instead,
                                             .since = place->since,
                                             .until = place->until};
    lint->options->found(lint->options->context, &finding);
}

const struct cca__lint_pair *cca__lint_find(const struct cca__lint *lint, const char *key) {
    for (size_t index = lint->pair_count; index > 0; --index) {
        const struct cca__lint_pair *const pair = &lint->pairs[index - 1];
        if (pair->readable && strcmp(pair->key, key) == 0) return pair;
    }
    return NULL;
}

bool cca__lint_is(const struct cca__lint *lint, const char *key, const char *value) {
    const struct cca__lint_pair *const pair = cca__lint_find(lint, key);
    return pair != NULL && strcmp(pair->value, value) == 0;
}

//------------------------------------------------------------------------------------------------
// Pairs.

static enum base_status no_memory(void) {
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for a lint");
}

static const char *token_at(const struct cca__tokens *tokens, size_t index) {
    return index < tokens->count ? tokens->token[index] : NULL;
}

// A list ends behind its bracket, or with the text.
static size_t value_end(const struct cca__tokens *tokens, size_t first) {
    if (first >= tokens->count) return tokens->count;
    if (strcmp(tokens->token[first], "[") != 0) return first + 1;
    for (size_t index = first + 1; index < tokens->count; ++index)
        if (strcmp(tokens->token[index], "]") == 0) return index + 1;
    return tokens->count;
}

static void cut_pairs(struct cca__lint *lint) {
    const struct cca__tokens *const tokens = &lint->tokens;
    for (size_t at = 0; at < tokens->count && lint->pair_count < CCA__LINT_PAIR_MAX;) {
        struct cca__lint_pair *const pair = &lint->pairs[lint->pair_count++];
        *pair = (struct cca__lint_pair){.key = tokens->token[at],
                                        .known = cca__config_key_find(tokens->token[at]),
                                        .separator = token_at(tokens, at + 1),
                                        .value = token_at(tokens, at + 2),
                                        .first = at + 2};
        pair->end = value_end(tokens, pair->first);
        pair->behind = token_at(tokens, pair->end);
        at = pair->end + 1;
    }
}

// The pair as text behind the version, and behind the size that other bounds refer to.
static char *text_alone(const struct cca__lint *lint, const struct cca__lint_pair *pair) {
    char *text;
    size_t size;
    FILE *const output = open_memstream(&text, &size);
    if (output == NULL) return NULL;
    fprintf(output, "x_torch:2.%d", lint->minor);
    const struct cca__lint_pair *const segment = cca__lint_find(lint, "large_segment_size_mb");
    if (segment != NULL && segment != pair)
        fprintf(output, ",large_segment_size_mb:%s", segment->value);
    fprintf(output, ",%s", pair->key);
    if (pair->separator != NULL) fputs(pair->separator, output);
    for (size_t index = pair->first; index < pair->end; ++index)
        fputs(lint->tokens.token[index], output);
    fclose(output);
    return text;
}

static const char *expected_of(const struct cca__config_key *key, char *buffer, size_t size) {
    if (key->range != NULL)
        snprintf(buffer, size, "write %s:%s (%s)", key->name, key->value, key->range);
    else
        snprintf(buffer, size, "write %s:%s", key->name, key->value);
    return buffer;
}

// What the parser said, without the key in front and without PyTorch's words, whose index counts
// other tokens.
static const char *refusal_of(const char *key, char *buffer, size_t size) {
    snprintf(buffer, size, "%s", base_status_message());
    char *const pytorch = strstr(buffer, " (PyTorch: ");
    if (pytorch != NULL) *pytorch = '\0';
    const size_t length = strlen(key);
    const bool prefixed =
        strncmp(buffer, key, length) == 0 && strncmp(buffer + length, ": ", 2) == 0;
    return prefixed ? buffer + length + 2 : buffer;
}

// Which back end there is is no matter of the string.
static bool is_other_backend(const struct cca__lint_pair *pair) {
    return pair->value != NULL && strcmp(pair->key, "backend") == 0 &&
           strcmp(pair->value, "cudaMallocAsync") == 0;
}

static enum base_status read_alone(struct cca__lint *lint, struct cca__lint_pair *pair) {
    char *const text = text_alone(lint, pair);
    if (text == NULL) return no_memory();
    struct cca__config config;
    cca__config_init(&config);
    const enum base_status status = cca__config_apply(&config, text, NULL);
    cca__config_deinit(&config);
    free(text);
    pair->readable = status == BASE_OK;
    if (status != BASE_OK && status != BASE_INVALID_CONFIG) return status;
    if (is_other_backend(pair)) pair->readable = true;
    // A list that swallows what stands behind it can make up for what is wrong there.
    if (pair->readable || lint->accepted) return BASE_OK;
    char instead[256], refusal[BASE_STATUS_MESSAGE_SIZE];
    cca__lint_tell(lint, &(struct cca__lint_place){"value", pair->key, lint->minor, lint->minor},
                   expected_of(pair->known, instead, sizeof instead), "%s",
                   refusal_of(pair->key, refusal, sizeof refusal));
    return BASE_OK;
}

static enum base_status read_values(struct cca__lint *lint) {
    // The size that others refer to first.
    for (int turn = 0; turn < 2; ++turn) {
        for (size_t index = 0; index < lint->pair_count; ++index) {
            struct cca__lint_pair *const pair = &lint->pairs[index];
            if (pair->known == NULL || !cca__config_key_known(pair->known, lint->minor)) continue;
            const bool first = strcmp(pair->key, "large_segment_size_mb") == 0;
            if (first != (turn == 0)) continue;
            const enum base_status status = read_alone(lint, pair);
            if (status != BASE_OK) return status;
        }
    }
    return BASE_OK;
}

static enum base_status read_whole(struct cca__lint *lint, const char *text, char *refusal,
                                   size_t size) {
    char *versioned;
    if (asprintf(&versioned, "x_torch:2.%d,%s", lint->minor, text) < 0) return no_memory();
    struct cca__config config;
    cca__config_init(&config);
    const enum base_status status = cca__config_apply(&config, versioned, NULL);
    cca__config_deinit(&config);
    free(versioned);
    if (status != BASE_OK && status != BASE_INVALID_CONFIG) return status;
    lint->accepted = status == BASE_OK;
    if (!lint->accepted) (void)refusal_of("", refusal, size);
    return BASE_OK;
}

static enum base_status run_rules(struct cca__lint *lint, const char *text) {
    char refusal[BASE_STATUS_MESSAGE_SIZE];
    enum base_status status = read_whole(lint, text, refusal, sizeof refusal);
    if (status != BASE_OK) return status;
    cut_pairs(lint);
    cca__lint_keys(lint);
    status = read_values(lint);
    if (status != BASE_OK) return status;
    cca__lint_values(lint);
    cca__lint_divisions(lint);
    cca__lint_together(lint);
    // The net under the rules: what the parser refuses is told, even if no rule knows why.
    const bool told = lint->refused > 0 || cca__lint_is(lint, "backend", "cudaMallocAsync");
    if (!lint->accepted && !told)
        cca__lint_tell(lint, &(struct cca__lint_place){"value", "", lint->minor, lint->minor},
                       "write KEY:VALUE,KEY:VALUE", "%s", refusal);
    return BASE_OK;
}

// A text that names its version is read by that.
static enum base_status version_of(struct cca__lint *lint, const char *text) {
    struct cca__tokens tokens;
    const enum base_status status = cca__tokens_init(&tokens, text, false);
    if (status != BASE_OK) return status;
    for (size_t index = 0; index + 2 < tokens.count; ++index)
        if (strcmp(tokens.token[index], "x_torch") == 0)
            (void)cca__torch_minor(tokens.token[index + 2], &lint->minor);
    cca__tokens_deinit(&tokens);
    return BASE_OK;
}

enum base_status cca_config_lint(const char *text, const struct cca_lint_options *options,
                                 size_t *count) {
    int minor = CCA__TORCH_MINOR_LATEST;
    if (options->version != NULL && !cca__torch_minor(options->version, &minor))
        return base_status_set(BASE_INVALID_VALUE,
                               "'%.80s' is not a version of PyTorch from 2.0 to 2.15, such as 2.5",
                               options->version);
    struct cca__lint *const lint = calloc(1, sizeof *lint);
    if (lint == NULL) return no_memory();
    lint->options = options;
    lint->minor = minor;
    if (text == NULL) text = "";
    enum base_status status = version_of(lint, text);
    if (status == BASE_OK) status = cca__tokens_init(&lint->tokens, text, lint->minor <= 8);
    if (status == BASE_OK) {
        status = run_rules(lint, text);
        if (count != NULL) *count = lint->found;
        cca__tokens_deinit(&lint->tokens);
    }
    free(lint);
    return status;
}
