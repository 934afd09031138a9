// See settings.h.
#include "allocator/settings.h"

#include "allocator/core.h"
#include "allocator/fork.h"
#include "allocator/warning.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(CCA_SETTINGS_DIVISION_COUNT == CCA_DIVISION_COUNT, "one table");
_Static_assert(CCA_SETTINGS_UNLIMITED == CCA_UNLIMITED, "one word for no limit");

// CONFIG belongs to the settings from here on.
static void settings_init(struct cca_settings *settings, struct cca__config *config) {
    const struct cca__pinned_config *const pinned = &config->pinned;
    *settings = (struct cca_settings){
        .large_segment_size = config->sizes.large_segment,
        .max_split_size = config->sizes.max_split_size,
        .max_non_split_rounding = config->sizes.max_non_split_rounding,
        .garbage_collection_threshold = config->garbage_collection_threshold,
        .per_process_memory_fraction = config->per_process_memory_fraction,
        .expandable_segments = config->expandable_segments,
        .release_lock_on_cudamalloc = config->release_lock_on_cudamalloc,
        .graph_capture_record_stream_reuse = config->graph_capture_record_stream_reuse,
        .throw_on_cudamalloc_oom = config->throw_on_cudamalloc_oom,
        .pinned_use_cuda_host_register = pinned->use_cuda_host_register,
        .pinned_use_background_threads = pinned->use_background_threads,
        .pinned_free_catch_all = pinned->free_catch_all,
        .pinned_num_register_threads = pinned->num_register_threads,
        .pinned_reserve_segment_size_mb = pinned->reserve_segment_mib,
        .pinned_max_round_threshold = pinned->max_round,
        .pinned_max_cached_size = pinned->max_cached_size,
        .text = config->last != NULL ? config->last : "",
        .config = config,
    };
    memcpy(settings->roundup_power2_divisions, config->sizes.divisions,
           sizeof settings->roundup_power2_divisions);
}

void cca_settings_deinit(struct cca_settings *settings) {
    if (settings->config != NULL) cca__config_deinit(settings->config);
    free(settings->config);
    *settings = (struct cca_settings){0};
}

static enum base_status config_alloc(struct cca__config **config) {
    *config = malloc(sizeof **config);
    if (*config != NULL) return BASE_OK;
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for settings");
}

enum base_status cca_settings(struct allocator *allocator, struct cca_settings *settings) {
    struct cca *const cca = cca__of(allocator);
    struct cca__config *config;
    enum base_status status = cca__require_caching(allocator, "settings");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status == BASE_OK) status = config_alloc(&config);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->settings_lock);
    status = cca__config_copy(config, &cca->config);
    cca__lock_release(&cca->settings_lock);
    if (status != BASE_OK) {
        free(config);
        return status;
    }
    settings_init(settings, config);
    return BASE_OK;
}

enum base_status cca_settings_read(const char *text, const struct cca_warning_observer *warnings,
                                   struct cca_settings *settings) {
    *settings = (struct cca_settings){.text = ""};
    struct cca__config *config;
    enum base_status status = config_alloc(&config);
    if (status != BASE_OK) return status;
    cca__config_init(config);
    status = cca__config_apply(config, text, warnings);
    settings_init(settings, config);
    return status;
}

size_t cca_settings_reserve(const struct cca_settings *settings, const char *class, size_t total,
                            bool *own) {
    return cca__config_reserve(settings->config, class, total, own);
}

const char *cca_settings_environment(const char **name) {
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};
    for (size_t index = 0; index < sizeof names / sizeof names[0]; ++index) {
        const char *const value = getenv(names[index]);
        if (value == NULL) continue;
        if (name != NULL) *name = names[index];
        return value;
    }
    if (name != NULL) *name = NULL;
    return NULL;
}

void cca_options_from_environment(struct cca_options *options) {
    static const char name[] = "PYTORCH_NO_CUDA_MEMORY_CACHING";
    options->config = cca_settings_environment(NULL);
    const char *const value = getenv(name);
    options->no_caching = value != NULL && strcmp(value, "1") == 0;
    if (value == NULL || strcmp(value, "0") == 0 || strcmp(value, "1") == 0) return;
    cca__warn(options->warnings.warning != NULL ? &options->warnings : &cca__warn_on_stderr,
              "Ignoring invalid value for boolean flag %s: %s; valid values are 0 or 1.", name,
              value);
}
