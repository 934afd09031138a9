// What a configuration string comes to, setting by setting.
//
//     struct cca_settings settings;
//     status = cca_settings(allocator, &settings);               those in force, or
//     status = cca_settings_read("max_split_size_mb:64", NULL, &settings);   without an allocator
//     ... settings.max_split_size ...
//     cca_settings_deinit(&settings);
//
// docs/configuration.md lists the keys. Sizes are bytes; CCA_SETTINGS_UNLIMITED where nothing is
// set.
#ifndef TIDEMARK_ALLOCATOR_SETTINGS_H
#define TIDEMARK_ALLOCATOR_SETTINGS_H

#include "allocator/cca.h"

#define CCA_SETTINGS_UNLIMITED      SIZE_MAX
#define CCA_SETTINGS_DIVISION_COUNT 16

struct cca__config;

struct cca_settings {
    size_t large_segment_size;
    size_t max_split_size;
    size_t max_non_split_rounding;
    // Entry I rules requests in [2^I MiB, 2^(I+1) MiB), the first also all below, the last all
    // above; 0 and 1: no division.
    uint64_t roundup_power2_divisions[CCA_SETTINGS_DIVISION_COUNT];
    double garbage_collection_threshold; // 0: off
    double per_process_memory_fraction;
    bool expandable_segments;
    bool release_lock_on_cudamalloc;
    bool graph_capture_record_stream_reuse;
    bool throw_on_cudamalloc_oom;
    // Of PyTorch's allocator for page-locked host memory: nothing here acts on them.
    bool pinned_use_cuda_host_register;
    bool pinned_use_background_threads;
    bool pinned_free_catch_all;
    uint64_t pinned_num_register_threads;
    uint64_t pinned_reserve_segment_size_mb; // 0: none
    size_t pinned_max_round_threshold;
    size_t pinned_max_cached_size;
    const char *text; // what was given last, right or wrong; "" at first

    struct cca__config *config; // what the fields were read from
};

// The settings in force. BASE_HOST_MEMORY. Takes the lock of settings.
enum base_status cca_settings(struct allocator *allocator,
                              struct cca_settings *settings) BASE_MUST_USE;

// What an allocator that starts with TEXT (NULL: "") would have in force; settings that are not
// built included. *SETTINGS is set, and to be deinitialised, also when TEXT is wrong
// (BASE_INVALID_CONFIG): it then holds what came before the error, as PyTorch does. WARNINGS may
// be NULL.
enum base_status cca_settings_read(const char *text, const struct cca_warning_observer *warnings,
                                   struct cca_settings *settings) BASE_MUST_USE;

void cca_settings_deinit(struct cca_settings *settings);

// How much address space the settings ask an expandable segment to reserve on a device of TOTAL
// bytes for a stream of CLASS (NULL: of none); 0 if they do not say. Not capped, SIZE_MAX for more
// than fits. *OWN (may be NULL): the class has an entry of its own.
size_t cca_settings_reserve(const struct cca_settings *settings, const char *class, size_t total,
                            bool *own);

// The variable of the environment that PyTorch takes its settings from, and its value: the first
// that is set of PYTORCH_CUDA_ALLOC_CONF, PYTORCH_HIP_ALLOC_CONF and PYTORCH_ALLOC_CONF. *NAME
// (may be NULL) and the result are NULL if none is.
const char *cca_settings_environment(const char **name);

#endif
