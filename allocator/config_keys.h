// The keys of the configuration string: what each is, and the function that reads its value.
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

// What a key is about; the order of the documentation.
enum cca__config_group {
    CCA__GROUP_SIZES,
    CCA__GROUP_LIMITS,
    CCA__GROUP_EXPANDABLE,
    CCA__GROUP_BEHAVIOUR,
    CCA__GROUP_PINNED,
    CCA__GROUP_OWN,
    CCA__GROUP_COUNT,
};

enum cca__config_effect {
    CCA__WORKS, // as PyTorch's
    CCA__IDLE,  // parsed; what it would act on is not here
};

// Stands behind the key, reads separator and value, applies the value to parser->config.
typedef enum base_status cca__parse(struct cca__parser *parser, const char *key);

struct cca__config_key {
    const char *name;
    enum cca__config_pass pass;
    enum cca__config_group group;
    enum cca__config_effect effect;
    int since;         // first release, PyTorch 2.this; 0: 2.0 or before
    bool about;        // the release was inferred: one more or less is possible
    bool resets;       // a later string without this key puts the default back
    const char *value; // as it is written
    const char *range, *standard, *does;
    cca__parse *parse;
};

// All keys, in the order of the documentation.
extern const struct cca__config_key cca__config_keys[];
extern const size_t cca__config_key_count;

// The key of that name, NULL for none.
const struct cca__config_key *cca__config_key_find(const char *name);
// Whether PyTorch 2.MINOR reads the key.
bool cca__config_key_known(const struct cca__config_key *key, int minor);

// x_torch's value, "2.5" or "2.15.0+cu130"; false if it is no version from 2.0 to 2.15.
bool cca__torch_minor(const char *version, int *minor);

// config_keys.c
cca__parse cca__parse_large_segment, cca__parse_max_split_size, cca__parse_max_non_split_rounding;
cca__parse cca__parse_gc_threshold, cca__parse_fraction, cca__parse_throw;
cca__parse cca__parse_release_lock, cca__parse_expandable, cca__parse_reuse, cca__parse_backend;
cca__parse cca__parse_host_register, cca__parse_background_threads, cca__parse_free_catch_all;
cca__parse cca__parse_register_threads, cca__parse_pinned_reserve, cca__parse_max_round;
cca__parse cca__parse_max_cached;
cca__parse cca__parse_version, cca__parse_retry_search, cca__parse_wait, cca__parse_skip_stuck;
cca__parse cca__parse_bound_growth, cca__parse_reclaim_idle, cca__parse_poll;
cca__parse cca__parse_torch_faults, cca__parse_capture_reuse;

// config_divisions.c
cca__parse cca__parse_divisions;

// config_reserve.c
cca__parse cca__parse_reserve, cca__parse_reserve_by_class;
enum base_status cca__reserve_classes_copy(const struct cca__reserve_class *classes, size_t count,
                                           struct cca__reserve_class **copies) BASE_MUST_USE;
void cca__reserve_classes_free(struct cca__reserve_class *classes, size_t count);

#endif
