// The keys of the configuration string, each with the function that reads it.
#ifndef TIDEMARK_ALLOCATOR_CONFIG_KEYS_H
#define TIDEMARK_ALLOCATOR_CONFIG_KEYS_H

#include "allocator/config_text.h"

// In which walk over the string a key is read.
enum cca__config_pass {
    CCA__PASS_FIRST,   // before all others, wherever it stands
    CCA__PASS_GENERIC, // keys that every back end of PyTorch knows
    CCA__PASS_CUDA,
    CCA__PASS_OWN, // ours
};

struct cca__config_key {
    const char *name;
    enum cca__config_pass pass;
    // Stands behind the key, reads separator and value, applies the value to parser->config.
    enum base_status (*parse)(struct cca__parser *parser, const char *key);
};

// The key of that name, NULL for none.
const struct cca__config_key *cca__config_key_find(const char *name);

// config_keys.c
enum base_status cca__parse_large_segment(struct cca__parser *parser,
                                          const char *key) BASE_MUST_USE;

// config_reserve.c
enum base_status cca__parse_reserve(struct cca__parser *parser, const char *key) BASE_MUST_USE;
enum base_status cca__parse_reserve_by_class(struct cca__parser *parser,
                                             const char *key) BASE_MUST_USE;
enum base_status cca__reserve_classes_copy(const struct cca__reserve_class *classes, size_t count,
                                           struct cca__reserve_class **copies) BASE_MUST_USE;
void cca__reserve_classes_free(struct cca__reserve_class *classes, size_t count);

#endif
