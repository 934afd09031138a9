// The walks over the configuration string, and what a second string resets. See config.h.
#include "allocator/config.h"

#include "allocator/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Life.

void cca__config_init(struct cca__config *config) {
    *config = (struct cca__config){
        .sizes =
            {
                .large_segment = CCA_LARGE_SEGMENT,
                .max_split_size = CCA_UNLIMITED,
                .max_non_split_rounding = CCA_LARGE_SEGMENT,
            },
        .per_process_memory_fraction = 1.0,
        .torch_minor = CCA__TORCH_MINOR_LATEST,
        .pinned =
            {
                .num_register_threads = 1,
                .max_round = CCA_UNLIMITED,
                .max_cached_size = CCA_UNLIMITED,
            },
    };
}

void cca__config_deinit(struct cca__config *config) {
    cca__reserve_classes_free(config->reserve_classes, config->reserve_class_count);
    free(config->last);
}

static enum base_status copy_text(const char *text, char **copy) {
    *copy = strdup(text);
    if (*copy != NULL) return BASE_OK;
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for a configuration of %zu bytes",
                           strlen(text));
}

enum base_status cca__config_copy(struct cca__config *copy, const struct cca__config *config) {
    struct cca__config copied = *config;
    copied.last = NULL;
    enum base_status status = cca__reserve_classes_copy(
        config->reserve_classes, config->reserve_class_count, &copied.reserve_classes);
    if (status != BASE_OK) return status;
    if (config->last != NULL) status = copy_text(config->last, &copied.last);
    if (status != BASE_OK)
        cca__config_deinit(&copied);
    else
        *copy = copied;
    return status;
}

//------------------------------------------------------------------------------------------------
// The walks.

// Over the value of a key that this pass does not handle: a word, or a list in brackets.
static enum base_status skip_value(struct cca__parser *parser, const char *key) {
    const char *token;
    enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK || strcmp(token, "[") != 0) return status;
    do {
        if (cca__peek(parser) == NULL)
            return cca__refuse("c10::Error",
                               "Expected closing bracket ']' in ConfigTokenizer but reached end of "
                               "config",
                               "%s: its list has no ']'", key);
        status = cca__next_token(parser, key, &token);
    } while (status == BASE_OK && strcmp(token, "]") != 0);
    return status;
}

// A key that exists only in later releases is unknown as well.
static enum base_status unknown_key(const struct cca__parser *parser, const char *token,
                                    enum cca__config_pass pass) {
    const struct cca__config_key *const key = cca__config_key_find(token);
    char hint[160] = "";
    if (key != NULL)
        snprintf(hint, sizeof hint, "%s came with PyTorch 2.%d, x_torch asks for 2.%d", key->name,
                 key->since, parser->config->torch_minor);
    else if (strncmp(token, "x_", 2) == 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Unrecognized key '" CCA__QUOTED
                               "': the keys of our own are x_torch, x_torch_faults, x_capture_reuse, "
                               "x_retry_search, x_wait, x_skip_stuck, x_bound_growth, "
                               "x_reclaim_idle, x_poll and, in front of all others, x_allocator",
                               token);
    else if (parser->strict)
        snprintf(hint, sizeof hint, "PyTorch 2.%d has no key '" CCA__QUOTED "'",
                 parser->config->torch_minor, token);
    char sentence[512];
    if (parser->strict)
        snprintf(sentence, sizeof sentence, "Unrecognized CachingAllocator option: %.400s", token);
    else
        snprintf(sentence, sizeof sentence, "Unrecognized key '%.400s' in %s allocator config.",
                 token, pass == CCA__PASS_CUDA ? "CUDA" : "Accelerator");
    if (hint[0] == '\0') return base_status_set(BASE_INVALID_CONFIG, "%s", sentence);
    return cca__refuse(parser->strict ? "c10::Error" : "c10::ValueError", sentence, "%s", hint);
}

// Walks the whole string and applies the keys of the passes FROM to TO. Unknown keys are met by
// every walk but the one for keys that come first.
static enum base_status walk(struct cca__parser *parser, enum cca__config_pass from,
                             enum cca__config_pass to) {
    parser->position = 0;
    const char *token;
    while ((token = cca__peek(parser)) != NULL) {
        ++parser->position;
        const struct cca__config_key *const key = cca__config_key_find(token);
        if (key == NULL || !cca__config_key_known(key, parser->config->torch_minor))
            return unknown_key(parser, token, from);
        const bool mine = key->pass >= from && key->pass <= to;
        enum base_status status =
            mine ? key->parse(parser, key->name) : skip_value(parser, key->name);
        if (status == BASE_OK && cca__peek(parser) != NULL)
            status = cca__skip_separator(parser, key->name, ",");
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

// Reads KEY anywhere among the tokens, whatever stands around it.
static enum base_status walk_first(struct cca__parser *parser, const char *name) {
    const struct cca__config_key *const key = cca__config_key_find(name);
    if (!cca__config_key_known(key, parser->config->torch_minor)) return BASE_OK;
    const struct cca__tokens *const tokens = parser->tokens;
    for (size_t index = 0; index < tokens->count; ++index) {
        if (strcmp(tokens->token[index], name) != 0) continue;
        parser->position = index + 1;
        const enum base_status status = key->parse(parser, name);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static void reset(struct cca__config *config) {
    config->sizes.max_split_size = CCA_UNLIMITED;
    config->sizes.max_non_split_rounding = config->sizes.large_segment;
    memset(config->sizes.divisions, 0, sizeof config->sizes.divisions);
    config->garbage_collection_threshold = 0.0;
}

// PyTorch up to 2.8.
static bool is_strict(const struct cca__config *config) { return config->torch_minor <= 8; }

static enum base_status apply_tokens(struct cca__parser *parser) {
    parser->strict = is_strict(parser->config);
    enum base_status status = walk_first(parser, "large_segment_size_mb");
    if (status != BASE_OK) return status;
    if (parser->strict) return walk(parser, CCA__PASS_GENERIC, CCA__PASS_OWN);
    for (enum cca__config_pass pass = CCA__PASS_GENERIC; pass <= CCA__PASS_OWN; ++pass) {
        status = walk(parser, pass, pass);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

// The version first, since it rules how the rest is read.
static enum base_status apply_text(struct cca__config *config, const char *text,
                                   const struct cca_warning_observer *warnings) {
    struct cca__tokens tokens;
    struct cca__parser parser = {.tokens = &tokens, .config = config, .warnings = warnings};
    enum base_status status = cca__tokens_init(&tokens, text, false);
    if (status != BASE_OK) return status;
    status = walk_first(&parser, "x_torch");
    if (status == BASE_OK && is_strict(config)) {
        cca__tokens_deinit(&tokens);
        status = cca__tokens_init(&tokens, text, true);
        if (status != BASE_OK) return status;
    }
    if (status == BASE_OK) status = apply_tokens(&parser);
    cca__tokens_deinit(&tokens);
    return status;
}

enum base_status cca__config_apply(struct cca__config *config, const char *text,
                                   const struct cca_warning_observer *warnings) {
    char *last;
    enum base_status status = copy_text(text != NULL ? text : "", &last);
    if (status != BASE_OK) return status;
    free(config->last);
    config->last = last;
    reset(config);
    status = apply_text(config, last, warnings);
    cca__size_rules_update(&config->sizes);
    return status;
}
