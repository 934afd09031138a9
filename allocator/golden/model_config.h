// What the two files that read the model's configuration string share.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_MODEL_CONFIG_H
#define TIDEMARK_ALLOCATOR_GOLDEN_MODEL_CONFIG_H

#include "allocator/golden/model_internal.h"

#define MODEL_WORDS_MAX (MODEL_CONFIG_LENGTH_MAX + 1)

// The string cut into words, and how far it has been read.
struct model_words {
    char text[2 * MODEL_WORDS_MAX]; // each word with its end
    const char *starts[MODEL_WORDS_MAX];
    size_t count, at;
    bool is_strict; // separators must be what they should be
};

void model__words_init(struct model_words *words, const char *text, bool is_strict);

// Refusals as PyTorch words them, in an exception of a class.
enum base_status model__refuse(const char *class, const char *sentence);

// The word at hand, "" at the end.
const char *model__word(const struct model_words *words);
bool model__at_end(const struct model_words *words);
enum base_status model__word_next(struct model_words *words, const char **word);
enum base_status model__separator_next(struct model_words *words, const char *wanted);
// A separator and a value, as every key has them.
enum base_status model__value_next(struct model_words *words, const char **word);
enum base_status model__value_skip(struct model_words *words);
enum base_status model__integer_of(const char *word, uint64_t *value);
enum base_status model__integer_next(struct model_words *words, uint64_t *value);
enum base_status model__real_next(struct model_words *words, double *value);
enum base_status model__switch_next(struct model_words *words, const char *key, const char *off,
                                    const char *on, bool *value);
size_t model__bytes_of_mib(uint64_t mib);

// model_lists.c: the values in brackets.
struct model_reader {
    struct model_words words;
    struct model_settings *settings;
    const struct cca_warning_observer *warnings; // may be NULL
};
enum base_status model__divisions_next(struct model_reader *reader);
enum base_status model__reserve_next(struct model_reader *reader);
enum base_status model__reserve_classes_next(struct model_reader *reader);

#endif
