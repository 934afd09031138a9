// The configuration string for the model: the keys, and the walks over the string in which PyTorch
// applies them.
#include "allocator/golden/model_config.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

//--------------------------------------------------------------------------------------------------
// Keys that are more than a value put away.

static enum base_status large_segment_next(struct model_reader *reader) {
    uint64_t mib;
    const enum base_status status = model__integer_next(&reader->words, &mib);
    if (status != BASE_OK) return status;
    if (mib <= 10)
        return base_status_set(BASE_INVALID_CONFIG,
                               "CachingAllocator option large_segment_size_mb must be > 10 MB");
    reader->settings->large_segment_size = model__bytes_of_mib(mib);
    return BASE_OK;
}

// At least a large segment; 20 MiB themselves were refused before its size was a setting.
static enum base_status size_next(struct model_reader *reader, const char *key, size_t *bytes) {
    uint64_t mib;
    const enum base_status status = model__integer_next(&reader->words, &mib);
    if (status != BASE_OK) return status;
    const uint64_t minimum = reader->settings->large_segment_size / BASE_MIB;
    const bool is_old = reader->settings->minor < 11;
    if (mib < minimum || (is_old && mib == minimum))
        return base_status_set(BASE_INVALID_CONFIG,
                               "CachingAllocator option %s too small, must be %s %llu", key,
                               is_old ? ">" : ">=", (unsigned long long)minimum);
    *bytes = model__bytes_of_mib(mib);
    return BASE_OK;
}

static enum base_status max_split_size_next(struct model_reader *reader) {
    return size_next(reader, "max_split_size_mb", &reader->settings->max_split_size);
}

static enum base_status max_non_split_rounding_next(struct model_reader *reader) {
    return size_next(reader, "max_non_split_rounding_mb",
                     &reader->settings->max_non_split_rounding);
}

static enum base_status gc_threshold_next(struct model_reader *reader) {
    double threshold;
    const enum base_status status = model__real_next(&reader->words, &threshold);
    if (status != BASE_OK) return status;
    if (!(threshold > 0 && threshold < 1))
        return base_status_set(BASE_INVALID_CONFIG,
                               "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    reader->settings->gc_threshold = threshold;
    return BASE_OK;
}

static enum base_status fraction_next(struct model_reader *reader) {
    double fraction;
    const enum base_status status = model__real_next(&reader->words, &fraction);
    if (status != BASE_OK) return status;
    if (!(fraction >= 0 && fraction <= 1))
        return base_status_set(BASE_INVALID_CONFIG,
                               "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    reader->settings->start_fraction = fraction;
    return BASE_OK;
}

static enum base_status backend_next(struct model_reader *reader) {
    const char *word;
    const enum base_status status = model__value_next(&reader->words, &word);
    if (status != BASE_OK || strcmp(word, "native") == 0) return status;
    if (strcmp(word, "cudaMallocAsync") == 0)
        return model__refuse("c10::Error",
                             "Allocator backend parsed at runtime != allocator backend parsed at "
                             "load time, cudaMallocAsync != native");
    return base_status_set(BASE_INVALID_CONFIG,
                           "Unknown allocator backend, options are native and cudaMallocAsync");
}

static enum base_status version_next(struct model_reader *reader) {
    const char *word;
    const enum base_status status = model__value_next(&reader->words, &word);
    if (status != BASE_OK) return status;
    if (sscanf(word, "2.%u", &reader->settings->minor) != 1)
        return base_status_set(BASE_INVALID_CONFIG, "x_torch must be a version, such as 2.15");
    reader->settings->ties_by_address = reader->settings->minor <= 11;
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Keys of page-locked host memory: nothing acts on them.

static enum base_status register_threads_next(struct model_reader *reader) {
    uint64_t threads;
    const enum base_status status = model__integer_next(&reader->words, &threads);
    if (status != BASE_OK) return status;
    if (threads == 0 || (threads & (threads - 1)) != 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Number of register threads has to be power of 2, got %llu",
                               (unsigned long long)threads);
    if (threads > 128)
        return base_status_set(
            BASE_INVALID_CONFIG,
            "Number of register threads should be less than or equal to 128, got %llu",
            (unsigned long long)threads);
    reader->settings->pinned.threads = threads;
    return BASE_OK;
}

static enum base_status pinned_reserve_next(struct model_reader *reader) {
    uint64_t mib;
    const enum base_status status = model__integer_next(&reader->words, &mib);
    if (status != BASE_OK) return status;
    if (mib == 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Pinned reserve segment size has to be greater than 0");
    reader->settings->pinned.reserve_mib = mib;
    return BASE_OK;
}

static enum base_status pinned_size_next(struct model_reader *reader, size_t *bytes) {
    uint64_t mib;
    const enum base_status status = model__integer_next(&reader->words, &mib);
    if (status == BASE_OK) *bytes = model__bytes_of_mib(mib);
    return status;
}

static enum base_status max_round_next(struct model_reader *reader) {
    return pinned_size_next(reader, &reader->settings->pinned.max_round);
}

static enum base_status max_cached_next(struct model_reader *reader) {
    return pinned_size_next(reader, &reader->settings->pinned.max_cached);
}

//--------------------------------------------------------------------------------------------------
// The table.

// Each walk over the string applies the keys of its turn and skips the others.
enum turn { TURN_FIRST, TURN_GENERIC, TURN_CUDA, TURN_OWN };

#define SWITCH(name) NULL, offsetof(struct model_settings, name), "False", "True"

static const struct key {
    const char *name;
    enum turn turn;
    unsigned first_minor;                                  // the release that first read it
    enum base_status (*next)(struct model_reader *reader); // NULL: a switch
    size_t offset;                                         // of the switch in the settings
    const char *off, *on;
} keys[] = {
    {"max_split_size_mb", TURN_GENERIC, 0, max_split_size_next, 0, NULL, NULL},
    {"max_non_split_rounding_mb", TURN_GENERIC, 6, max_non_split_rounding_next, 0, NULL, NULL},
    {"large_segment_size_mb", TURN_FIRST, 11, large_segment_next, 0, NULL, NULL},
    {"roundup_power2_divisions", TURN_GENERIC, 0, model__divisions_next, 0, NULL, NULL},
    {"garbage_collection_threshold", TURN_GENERIC, 0, gc_threshold_next, 0, NULL, NULL},
    {"per_process_memory_fraction", TURN_CUDA, 9, fraction_next, 0, NULL, NULL},
    {"throw_on_cudamalloc_oom", TURN_CUDA, 12, SWITCH(throws)},
    {"expandable_segments", TURN_GENERIC, 1, SWITCH(expandable)},
    {"expandable_segments_reserve", TURN_CUDA, 14, model__reserve_next, 0, NULL, NULL},
    {"expandable_segments_reserve_by_class", TURN_CUDA, 14, model__reserve_classes_next, 0, NULL,
     NULL},
    {"backend", TURN_CUDA, 0, backend_next, 0, NULL, NULL},
    {"release_lock_on_cudamalloc", TURN_CUDA, 1, SWITCH(releases_lock)},
    {"release_lock_on_hipmalloc", TURN_CUDA, 2, SWITCH(releases_lock)},
    {"graph_capture_record_stream_reuse", TURN_CUDA, 9, SWITCH(reuses)},
    {"pinned_use_cuda_host_register", TURN_CUDA, 2, SWITCH(pinned.host_register)},
    {"pinned_use_hip_host_register", TURN_CUDA, 2, SWITCH(pinned.host_register)},
    {"pinned_num_register_threads", TURN_CUDA, 2, register_threads_next, 0, NULL, NULL},
    {"pinned_use_background_threads", TURN_GENERIC, 5, SWITCH(pinned.background)},
    {"pinned_reserve_segment_size_mb", TURN_CUDA, 10, pinned_reserve_next, 0, NULL, NULL},
    {"pinned_free_catch_all", TURN_CUDA, 13, SWITCH(pinned.catches)},
    {"pinned_max_round_threshold_mb", TURN_GENERIC, 13, max_round_next, 0, NULL, NULL},
    {"pinned_max_cached_size_mb", TURN_GENERIC, 13, max_cached_next, 0, NULL, NULL},
    {"x_torch", TURN_FIRST, 0, version_next, 0, NULL, NULL},
    {"x_torch_faults", TURN_OWN, 0, SWITCH(own.torch_faults)},
    {"x_retry_search", TURN_OWN, 0, SWITCH(own.retry_search)},
    {"x_wait", TURN_OWN, 0, NULL, offsetof(struct model_settings, own.wait_enough), "all",
     "enough"},
    {"x_skip_stuck", TURN_OWN, 0, SWITCH(own.skip_stuck)},
    {"x_bound_growth", TURN_OWN, 0, SWITCH(own.bound_growth)},
    {"x_reclaim_idle", TURN_OWN, 0, SWITCH(own.reclaim_idle)},
    {"x_poll", TURN_OWN, 0, NULL, offsetof(struct model_settings, own.poll_own), "all", "own"},
};

static const struct key *key_find(const char *name) {
    for (size_t index = 0; index < sizeof keys / sizeof keys[0]; index++)
        if (strcmp(keys[index].name, name) == 0) return &keys[index];
    return NULL;
}

static enum base_status key_apply(struct model_reader *reader, const struct key *key) {
    if (key->next != NULL) return key->next(reader);
    bool value;
    const enum base_status status =
        model__switch_next(&reader->words, key->name, key->off, key->on, &value);
    if (status == BASE_OK) *(bool *)(void *)((char *)reader->settings + key->offset) = value;
    return status;
}

//--------------------------------------------------------------------------------------------------
// The walks.

static enum base_status unknown_key(const struct model_reader *reader, const char *word,
                                    enum turn turn) {
    char sentence[512];
    if (reader->words.is_strict)
        snprintf(sentence, sizeof sentence, "Unrecognized CachingAllocator option: %.400s", word);
    else
        snprintf(sentence, sizeof sentence, "Unrecognized key '%.400s' in %s allocator config.",
                 word, turn == TURN_CUDA ? "CUDA" : "Accelerator");
    return reader->words.is_strict
               ? model__refuse("c10::Error", sentence)
               : base_status_set(BASE_INVALID_CONFIG, "%s", sentence);
}

static enum base_status walk(struct model_reader *reader, enum turn first, enum turn last) {
    enum base_status status = BASE_OK;
    reader->words.at = 0;
    while (status == BASE_OK && !model__at_end(&reader->words)) {
        const char *word;
        status = model__word_next(&reader->words, &word);
        const struct key *const key = key_find(word);
        if (key == NULL || reader->settings->minor < key->first_minor)
            return unknown_key(reader, word, first);
        status = key->turn >= first && key->turn <= last ? key_apply(reader, key)
                                                         : model__value_skip(&reader->words);
        if (status == BASE_OK && !model__at_end(&reader->words))
            status = model__separator_next(&reader->words, ",");
    }
    return status;
}

// The key wherever it stands, whatever stands around it.
static enum base_status apply_early(struct model_reader *reader, const char *name) {
    enum base_status status = BASE_OK;
    if (reader->settings->minor < key_find(name)->first_minor) return BASE_OK;
    for (size_t index = 0; index < reader->words.count && status == BASE_OK; index++) {
        reader->words.at = index + 1;
        if (strcmp(reader->words.starts[index], name) == 0)
            status = key_apply(reader, key_find(name));
    }
    return status;
}

void model__settings_init(struct model_settings *settings) {
    *settings = (struct model_settings){
        .minor = 15,
        .max_split_size = MODEL_UNLIMITED,
        .large_segment_size = 20 * BASE_MIB,
        .start_fraction = 1,
        .pinned = {.threads = 1, .max_round = SIZE_MAX, .max_cached = SIZE_MAX}};
}

enum base_status model__settings_apply(struct model_settings *settings, const char *config,
                                       const struct cca_warning_observer *warnings) {
    if (strlen(config) > MODEL_CONFIG_LENGTH_MAX)
        return base_status_set(BASE_UNSUPPORTED, "settings of %zu bytes are not modelled",
                               strlen(config));
    snprintf(settings->last, sizeof settings->last, "%s", config);
    // A new string resets these, and no others.
    settings->max_split_size = MODEL_UNLIMITED;
    settings->max_non_split_rounding = 0;
    settings->gc_threshold = 0;
    memset(settings->divisions, 0, sizeof settings->divisions);

    static struct model_reader reader;
    reader.settings = settings;
    reader.warnings = warnings;
    model__words_init(&reader.words, config, false);
    enum base_status status = apply_early(&reader, "x_torch");
    if (status != BASE_OK) return status;
    if (settings->minor <= 8) {
        model__words_init(&reader.words, config, true);
        return walk(&reader, TURN_GENERIC, TURN_OWN);
    }
    status = apply_early(&reader, "large_segment_size_mb");
    for (enum turn turn = TURN_GENERIC; turn <= TURN_OWN && status == BASE_OK; turn++)
        status = walk(&reader, turn, turn);
    return status;
}
