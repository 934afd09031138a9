// See config_text.h.
#include "allocator/config_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

//------------------------------------------------------------------------------------------------
// Tokens.

static bool is_separator(char character) {
    return character != '\0' && strchr(",:[]", character) != NULL;
}

void cca__tokens_deinit(struct cca__tokens *tokens) {
    free(tokens->text);
    free(tokens->token);
}

enum base_status cca__tokens_init(struct cca__tokens *tokens, const char *text, bool blanks_only) {
    const size_t length = strlen(text);
    tokens->text =
        malloc(2 * length + 1); // at worst every character is a token and has its terminator
    tokens->token = malloc((length + 1) * sizeof(char *));
    tokens->count = 0;
    if (tokens->text == NULL || tokens->token == NULL) {
        cca__tokens_deinit(tokens);
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for a configuration of %zu bytes", length);
    }
    char *out = tokens->text;
    bool in_word = false;
    for (const char *in = text; *in != '\0'; ++in) {
        if (blanks_only ? *in == ' ' : isspace((unsigned char)*in)) continue;
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

enum base_status cca__refuse(const char *class, const char *pytorch, const char *format, ...) {
    char ours[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ours, sizeof ours, format, arguments);
    va_end(arguments);
    return base_status_set(BASE_INVALID_CONFIG, "%s (PyTorch: %s %s)", ours, class, pytorch);
}

const char *cca__peek(const struct cca__parser *parser) {
    return parser->position < parser->tokens->count ? parser->tokens->token[parser->position]
                                                    : NULL;
}

enum base_status cca__next_token(struct cca__parser *parser, const char *key, const char **token) {
    *token = cca__peek(parser);
    if (*token == NULL)
        return cca__refuse("c10::Error", "Index out of bounds in ConfigTokenizer",
                           "%s: its value is missing or unfinished, write %s:VALUE", key, key);
    ++parser->position;
    return BASE_OK;
}

enum base_status cca__skip_separator(struct cca__parser *parser, const char *key,
                                     const char *wanted) {
    const char *token = cca__peek(parser);
    if (parser->strict && (token == NULL || strcmp(token, wanted) != 0)) {
        char sentence[96];
        snprintf(sentence, sizeof sentence, "Error parsing CachingAllocator settings, expected %s",
                 wanted);
        return cca__refuse("c10::Error", sentence, "%s: '%s' must follow, not '" CCA__QUOTED "'",
                           key, wanted, token != NULL ? token : "");
    }
    return cca__next_token(parser, key, &token);
}

enum base_status cca__value_token(struct cca__parser *parser, const char *key, const char **token) {
    const enum base_status status = cca__skip_separator(parser, key, ":");
    return status != BASE_OK ? status : cca__next_token(parser, key, token);
}

enum base_status cca__integer_of(const char *key, const char *token, uint64_t *value) {
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(token, &end, 10);
    if (end == token)
        return cca__refuse("std::invalid_argument", "stoull",
                           "%s: '" CCA__QUOTED "' is not a whole number", key, token);
    if (errno == ERANGE)
        return cca__refuse("std::out_of_range", "stoull",
                           "%s: " CCA__QUOTED " is larger than 2^64 - 1", key, token);
    *value = number;
    return BASE_OK;
}

enum base_status cca__value_integer(struct cca__parser *parser, const char *key, uint64_t *value) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    return status != BASE_OK ? status : cca__integer_of(key, token, value);
}

enum base_status cca__value_real(struct cca__parser *parser, const char *key, double *value) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    char *end;
    errno = 0;
    *value = strtod(token, &end);
    if (end == token)
        return cca__refuse("std::invalid_argument", "stod", "%s: '" CCA__QUOTED "' is not a number",
                           key, token);
    if (errno == ERANGE)
        return cca__refuse("std::out_of_range", "stod",
                           "%s: " CCA__QUOTED " is outside the range of a double", key, token);
    return BASE_OK;
}

enum base_status cca__value_bool(struct cca__parser *parser, const char *key, bool *value) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, "True") != 0 && strcmp(token, "False") != 0) {
        char sentence[256];
        if (parser->strict)
            snprintf(sentence, sizeof sentence, "Expected a single True/False argument for %s",
                     key);
        else
            snprintf(
                sentence, sizeof sentence,
                "Expected 'True' or 'False' at index %zu in ConfigTokenizer but got '" CCA__QUOTED
                "'",
                parser->position - 1, token);
        return cca__refuse("c10::ValueError", sentence,
                           "%s: '" CCA__QUOTED "' is neither True nor False", key, token);
    }
    *value = strcmp(token, "True") == 0;
    return BASE_OK;
}

size_t cca__bytes_of_mib(uint64_t mib) {
    const uint64_t most = SIZE_MAX / MIB;
    return (size_t)((mib < most ? mib : most) * MIB);
}
