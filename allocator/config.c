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

static enum base_status unknown_key(const char *token, enum cca__config_pass pass) {
    if (strncmp(token, "x_", 2) == 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Unrecognized key '" CCA__QUOTED "': the key of our own is x_torch",
                               token);
    return base_status_set(BASE_INVALID_CONFIG,
                           "Unrecognized key '%.400s' in %s allocator config.", token,
                           pass == CCA__PASS_CUDA ? "CUDA" : "Accelerator");
}

// Walks the whole string and applies the keys of one pass. Unknown keys are met by every pass but
// the one for large_segment_size_mb, which looks for its key anywhere among the tokens.
static enum base_status walk(struct cca__parser *parser, enum cca__config_pass pass) {
    parser->position = 0;
    const char *token;
    while ((token = cca__peek(parser)) != NULL) {
        ++parser->position;
        const struct cca__config_key *const key = cca__config_key_find(token);
        if (key == NULL) return unknown_key(token, pass);
        const enum base_status status =
            key->pass == pass ? key->parse(parser, key->name) : skip_value(parser, key->name);
        if (status != BASE_OK) return status;
        if (cca__peek(parser) != NULL) ++parser->position;
    }
    return BASE_OK;
}

static enum base_status walk_first(struct cca__parser *parser) {
    const struct cca__tokens *const tokens = parser->tokens;
    for (size_t index = 0; index < tokens->count; ++index) {
        if (strcmp(tokens->token[index], "large_segment_size_mb") != 0) continue;
        parser->position = index + 1;
        const enum base_status status = cca__parse_large_segment(parser, "large_segment_size_mb");
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

enum base_status cca__config_apply(struct cca__config *config, const char *text,
                                   const struct cca_warning_observer *warnings) {
    if (text == NULL) text = "";
    struct cca__tokens tokens;
    char *last;
    enum base_status status = copy_text(text, &last);
    if (status != BASE_OK) return status;
    status = cca__tokens_init(&tokens, text);
    if (status != BASE_OK) {
        free(last);
        return status;
    }
    free(config->last);
    config->last = last;
    struct cca__parser parser = {.tokens = &tokens, .config = config, .warnings = warnings};
    reset(config);
    status = walk_first(&parser);
    if (status == BASE_OK) status = walk(&parser, CCA__PASS_GENERIC);
    if (status == BASE_OK) status = walk(&parser, CCA__PASS_CUDA);
    if (status == BASE_OK) status = walk(&parser, CCA__PASS_OWN);
    cca__size_rules_update(&config->sizes);
    cca__tokens_deinit(&tokens);
    return status;
}

const char *cca__config_unbuilt(const struct cca__config *config) {
    if (config->throw_on_cudamalloc_oom) return "throw_on_cudamalloc_oom:True";
    return NULL;
}
