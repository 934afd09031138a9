// The configuration string: PyTorch 2.15's PYTORCH_CUDA_ALLOC_CONF, plus keys of our own that
// start with `x_`.
//
//     max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]
//
// Parsed as PyTorch 2.15 does, with its quirks: two passes over the whole string (keys that every
// back end knows, then CUDA's), separators that are not enforced, numbers read up to the first
// character that is none. An error leaves what was applied before it in force. A key whose
// behaviour is not built is refused by name, never ignored.
#ifndef TIDEMARK_ALLOCATOR_CONFIG_H
#define TIDEMARK_ALLOCATOR_CONFIG_H

#include "allocator/size_class.h"
#include "base/status.h"

struct cca__config {
    struct cca__size_rules sizes;
    double garbage_collection_threshold; // 0: off
    bool release_lock_on_cudamalloc;
    double per_process_memory_fraction; // the start value of a device's fraction; 1: no limit
    bool tie_by_address; // x_torch up to 2.11: equal sizes by address, not by age of the segment
    const char *unsupported; // a key that was given a value whose behaviour is not built; NULL
};

// Every setting at its default.
void cca__config_init(struct cca__config *config);

// Applies TEXT (NULL: "") to *config: max_split_size, rounding table, gc threshold and
// max_non_split_rounding fall back to their defaults first, other keys keep their value.
// BASE_INVALID_CONFIG with PyTorch's sentence; *config then holds the resets and what came before
// the error. BASE_UNSUPPORTED names the key; *config is then unchanged.
enum base_status cca__config_apply(struct cca__config *config, const char *text) BASE_MUST_USE;

#endif
