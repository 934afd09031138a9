// The configuration string for the model: words, separators and values, as PyTorch's tokenizer has
// them. `,`, `:`, `[` and `]` are words of their own; white space is nowhere.
#include "allocator/golden/model_config.h"

#include "base/check.h"
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_separator(char character) {
    return character == ',' || character == ':' || character == '[' || character == ']';
}

void model__words_init(struct model_words *words, const char *text, bool is_strict) {
    *words = (struct model_words){.is_strict = is_strict};
    char *out = words->text;
    for (const char *in = text; *in != '\0'; in++) {
        if (is_strict ? *in == ' ' : isspace((unsigned char)*in)) continue;
        const bool follows_a_word = words->count > 0 && !is_separator(out[-1]);
        if (!follows_a_word || is_separator(*in)) {
            if (words->count > 0) *out++ = '\0';
            BASE_CHECK_LT(words->count, MODEL_WORDS_MAX);
            words->starts[words->count++] = out;
        }
        *out++ = *in;
    }
    *out = '\0';
}

enum base_status model__refuse(const char *class, const char *sentence) {
    return base_status_set(BASE_INVALID_CONFIG, "refused (PyTorch: %s %s)", class, sentence);
}

const char *model__word(const struct model_words *words) {
    return words->at < words->count ? words->starts[words->at] : "";
}

bool model__at_end(const struct model_words *words) { return words->at == words->count; }

enum base_status model__word_next(struct model_words *words, const char **word) {
    *word = model__word(words);
    if (model__at_end(words))
        return model__refuse("c10::Error", "Index out of bounds in ConfigTokenizer");
    words->at++;
    return BASE_OK;
}

// Only old releases look at what separates.
enum base_status model__separator_next(struct model_words *words, const char *wanted) {
    const char *word;
    if (words->is_strict && strcmp(model__word(words), wanted) != 0) {
        char sentence[80];
        snprintf(sentence, sizeof sentence, "Error parsing CachingAllocator settings, expected %s",
                 wanted);
        return model__refuse("c10::Error", sentence);
    }
    return model__word_next(words, &word);
}

enum base_status model__value_next(struct model_words *words, const char **word) {
    const enum base_status status = model__separator_next(words, ":");
    return status != BASE_OK ? status : model__word_next(words, word);
}

// A value that is not wanted now: one word, or all up to the closing bracket.
enum base_status model__value_skip(struct model_words *words) {
    const char *word;
    enum base_status status = model__value_next(words, &word);
    if (status != BASE_OK || strcmp(word, "[") != 0) return status;
    while (status == BASE_OK && strcmp(word, "]") != 0) {
        if (model__at_end(words))
            return model__refuse("c10::Error",
                                 "Expected closing bracket ']' in ConfigTokenizer but reached end "
                                 "of config");
        status = model__word_next(words, &word);
    }
    return status;
}

//--------------------------------------------------------------------------------------------------
// Values.

enum base_status model__integer_of(const char *word, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(word, &end, 10);
    if (end == word) return model__refuse("std::invalid_argument", "stoull");
    return errno == 0 ? BASE_OK : model__refuse("std::out_of_range", "stoull");
}

enum base_status model__integer_next(struct model_words *words, uint64_t *value) {
    const char *word;
    const enum base_status status = model__value_next(words, &word);
    return status != BASE_OK ? status : model__integer_of(word, value);
}

enum base_status model__real_next(struct model_words *words, double *value) {
    const char *word;
    const enum base_status status = model__value_next(words, &word);
    if (status != BASE_OK) return status;
    char *end;
    errno = 0;
    *value = strtod(word, &end);
    if (end == word) return model__refuse("std::invalid_argument", "stod");
    return errno == 0 ? BASE_OK : model__refuse("std::out_of_range", "stod");
}

enum base_status model__switch_next(struct model_words *words, const char *key, const char *off,
                                    const char *on, bool *value) {
    const char *word;
    const enum base_status status = model__value_next(words, &word);
    if (status != BASE_OK) return status;
    *value = strcmp(word, on) == 0;
    if (*value || strcmp(word, off) == 0) return BASE_OK;
    if (strcmp(on, "True") != 0)
        return base_status_set(BASE_INVALID_CONFIG, "%s: '%.80s' is neither %s nor %s", key, word,
                               off, on);
    if (words->is_strict)
        return base_status_set(BASE_INVALID_CONFIG, "Expected a single True/False argument for %s",
                               key);
    return base_status_set(BASE_INVALID_CONFIG,
                           "Expected '%s' or '%s' at index %zu in ConfigTokenizer but got '%s'", on,
                           off, words->at - 1, word);
}

size_t model__bytes_of_mib(uint64_t mib) {
    const uint64_t most = SIZE_MAX / BASE_MIB;
    return (mib < most ? mib : most) * BASE_MIB;
}
