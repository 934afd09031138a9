// The keys, one function each: it stands behind its key, reads separator and value, checks the
// range and applies the value. Refusals end with PyTorch's own sentence where ours says more.
#include "allocator/config_keys.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

//------------------------------------------------------------------------------------------------
// Sizes.

// max_non_split_rounding follows the large segment, also when it was set before in the same
// string.
enum base_status cca__parse_large_segment(struct cca__parser *parser, const char *key) {
    uint64_t mib;
    const enum base_status status = cca__value_integer(parser, key, &mib);
    if (status != BASE_OK) return status;
    if (mib <= 10)
        return base_status_set(BASE_INVALID_CONFIG, "CachingAllocator option %s must be > 10 MB",
                               key);
    parser->config->sizes.large_segment = cca__bytes_of_mib(mib);
    parser->config->sizes.max_non_split_rounding = parser->config->sizes.large_segment;
    return BASE_OK;
}

static enum base_status parse_at_least_segment(struct cca__parser *parser, const char *key,
                                               size_t *bytes) {
    uint64_t mib;
    const enum base_status status = cca__value_integer(parser, key, &mib);
    if (status != BASE_OK) return status;
    const uint64_t least = parser->config->sizes.large_segment / MIB;
    // Large segments of other sizes came with the bound that includes its end.
    const bool strict = !cca__config_key_known(cca__config_key_find("large_segment_size_mb"),
                                               parser->config->torch_minor);
    if (mib < least || (strict && mib == least))
        return base_status_set(BASE_INVALID_CONFIG,
                               "CachingAllocator option %s too small, must be %s %llu", key,
                               strict ? ">" : ">=", (unsigned long long)least);
    *bytes = cca__bytes_of_mib(mib);
    return BASE_OK;
}

enum base_status cca__parse_max_split_size(struct cca__parser *parser, const char *key) {
    return parse_at_least_segment(parser, key, &parser->config->sizes.max_split_size);
}

enum base_status cca__parse_max_non_split_rounding(struct cca__parser *parser, const char *key) {
    return parse_at_least_segment(parser, key, &parser->config->sizes.max_non_split_rounding);
}

//------------------------------------------------------------------------------------------------
// Limits and growth.

enum base_status cca__parse_gc_threshold(struct cca__parser *parser, const char *key) {
    double threshold;
    const enum base_status status = cca__value_real(parser, key, &threshold);
    if (status != BASE_OK) return status;
    if (!(threshold > 0.0 && threshold < 1.0))
        return base_status_set(BASE_INVALID_CONFIG,
                               "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    parser->config->garbage_collection_threshold = threshold;
    return BASE_OK;
}

enum base_status cca__parse_fraction(struct cca__parser *parser, const char *key) {
    double fraction;
    const enum base_status status = cca__value_real(parser, key, &fraction);
    if (status != BASE_OK) return status;
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return base_status_set(BASE_INVALID_CONFIG,
                               "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    parser->config->per_process_memory_fraction = fraction;
    return BASE_OK;
}

enum base_status cca__parse_release_lock(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->release_lock_on_cudamalloc);
}

enum base_status cca__parse_throw(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->throw_on_cudamalloc_oom);
}

enum base_status cca__parse_expandable(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->expandable_segments);
}

enum base_status cca__parse_reuse(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->graph_capture_record_stream_reuse);
}

enum base_status cca__parse_backend(struct cca__parser *parser, const char *key) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK || strcmp(token, "native") == 0) return status;
    if (strcmp(token, "cudaMallocAsync") != 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Unknown allocator backend, options are native and cudaMallocAsync");
    return cca__refuse("c10::Error",
                       "Allocator backend parsed at runtime != allocator backend parsed at load "
                       "time, cudaMallocAsync != native",
                       "%s: this is the native back end, which no setting changes", key);
}

//------------------------------------------------------------------------------------------------
// Page-locked host memory.

enum base_status cca__parse_host_register(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->pinned.use_cuda_host_register);
}

enum base_status cca__parse_background_threads(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->pinned.use_background_threads);
}

enum base_status cca__parse_free_catch_all(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->pinned.free_catch_all);
}

enum base_status cca__parse_register_threads(struct cca__parser *parser, const char *key) {
    uint64_t threads;
    const enum base_status status = cca__value_integer(parser, key, &threads);
    if (status != BASE_OK) return status;
    if (!is_power_of_two(threads))
        return base_status_set(BASE_INVALID_CONFIG,
                               "Number of register threads has to be power of 2, got %llu",
                               (unsigned long long)threads);
    if (threads > 128)
        return base_status_set(
            BASE_INVALID_CONFIG,
            "Number of register threads should be less than or equal to 128, got %llu",
            (unsigned long long)threads);
    parser->config->pinned.num_register_threads = threads;
    return BASE_OK;
}

enum base_status cca__parse_pinned_reserve(struct cca__parser *parser, const char *key) {
    uint64_t mib;
    const enum base_status status = cca__value_integer(parser, key, &mib);
    if (status != BASE_OK) return status;
    if (mib == 0)
        return base_status_set(BASE_INVALID_CONFIG,
                               "Pinned reserve segment size has to be greater than 0");
    parser->config->pinned.reserve_segment_mib = mib;
    return BASE_OK;
}

static enum base_status parse_pinned_size(struct cca__parser *parser, const char *key,
                                          size_t *bytes) {
    uint64_t mib;
    const enum base_status status = cca__value_integer(parser, key, &mib);
    if (status == BASE_OK) *bytes = cca__bytes_of_mib(mib);
    return status;
}

enum base_status cca__parse_max_round(struct cca__parser *parser, const char *key) {
    return parse_pinned_size(parser, key, &parser->config->pinned.max_round);
}

enum base_status cca__parse_max_cached(struct cca__parser *parser, const char *key) {
    return parse_pinned_size(parser, key, &parser->config->pinned.max_cached_size);
}

//------------------------------------------------------------------------------------------------
// Ours.

// A release that is not told from 2.15 by its rules is one nevertheless.
bool cca__torch_minor(const char *version, int *minor) {
    int major = 0, number = 0, length = 0;
    if (sscanf(version, "%1d.%2d%n", &major, &number, &length) != 2) return false;
    if (major != 2 || number < 0 || number > CCA__TORCH_MINOR_LATEST) return false;
    if (version[length] != '\0' && version[length] != '.' && version[length] != '+') return false;
    *minor = number;
    return true;
}

// From 2.12 on equal blocks are told apart by the age of their segment.
enum base_status cca__parse_version(struct cca__parser *parser, const char *key) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    int minor;
    if (!cca__torch_minor(token, &minor))
        return base_status_set(BASE_INVALID_CONFIG,
                               "%s: '" CCA__QUOTED
                               "' is not a version of PyTorch from 2.0 to 2.15, such as 2.5",
                               key, token);
    parser->config->torch_minor = minor;
    parser->config->tie_by_address = minor <= 11;
    return BASE_OK;
}

// A value that is one of two words.
static enum base_status parse_word(struct cca__parser *parser, const char *key, const char *off,
                                   const char *on, bool *value) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, off) != 0 && strcmp(token, on) != 0)
        return base_status_set(BASE_INVALID_CONFIG, "%s: '" CCA__QUOTED "' is neither %s nor %s",
                               key, token, off, on);
    *value = strcmp(token, on) == 0;
    return BASE_OK;
}

enum base_status cca__parse_wait(struct cca__parser *parser, const char *key) {
    return parse_word(parser, key, "all", "enough", &parser->config->own.wait_enough);
}

enum base_status cca__parse_poll(struct cca__parser *parser, const char *key) {
    return parse_word(parser, key, "all", "own", &parser->config->own.poll_own);
}

enum base_status cca__parse_retry_search(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->own.retry_search);
}

enum base_status cca__parse_skip_stuck(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->own.skip_stuck);
}

enum base_status cca__parse_bound_growth(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->own.bound_growth);
}

enum base_status cca__parse_reclaim_idle(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->own.reclaim_idle);
}

enum base_status cca__parse_torch_faults(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->own.torch_faults);
}

enum base_status cca__parse_capture_reuse(struct cca__parser *parser, const char *key) {
    static const char *const words[] = {
        [CCA__CAPTURE_REUSE_TORCH] = "torch",
        [CCA__CAPTURE_REUSE_TERMINALS] = "terminals",
        [CCA__CAPTURE_REUSE_MARKERS] = "markers",
        [CCA__CAPTURE_REUSE_MARKERS_GRAPH] = "markers_graph",
    };
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    for (size_t index = 0; index < sizeof words / sizeof words[0]; ++index) {
        if (strcmp(token, words[index]) != 0) continue;
        parser->config->own.capture_reuse = (enum cca__capture_reuse_form)index;
        return BASE_OK;
    }
    return base_status_set(BASE_INVALID_CONFIG,
                           "%s: '" CCA__QUOTED
                           "' is none of torch, terminals, markers and markers_graph",
                           key, token);
}
