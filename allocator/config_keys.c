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
    if (mib < least)
        return base_status_set(BASE_INVALID_CONFIG,
                               "CachingAllocator option %s too small, must be >= %llu", key,
                               (unsigned long long)least);
    *bytes = cca__bytes_of_mib(mib);
    return BASE_OK;
}

static enum base_status parse_max_split_size(struct cca__parser *parser, const char *key) {
    return parse_at_least_segment(parser, key, &parser->config->sizes.max_split_size);
}

static enum base_status parse_max_non_split_rounding(struct cca__parser *parser, const char *key) {
    return parse_at_least_segment(parser, key, &parser->config->sizes.max_non_split_rounding);
}

//------------------------------------------------------------------------------------------------
// roundup_power2_divisions: one division for all sizes, or a list of intervals.

static enum base_status parse_division(const char *key, const char *token, bool zero_disables,
                                       uint64_t *division) {
    const enum base_status status = cca__integer_of(key, token, division);
    if (status != BASE_OK) return status;
    if (is_power_of_two(*division) || (zero_disables && *division == 0)) return BASE_OK;
    return cca__refuse("c10::ValueError",
                       zero_disables
                           ? "For roundups, the divisions has to be power of 2 or 0 to disable "
                             "roundup "
                           : "For roundups, the divisions has to be power of 2 ",
                       "%s: the division " CCA__QUOTED " is no power of two", key, token);
}

// The entry of an interval key, in MiB.
static enum base_status division_entry(const char *key, const char *token, size_t *entry) {
    uint64_t mib;
    const enum base_status status = cca__integer_of(key, token, &mib);
    if (status != BASE_OK) return status;
    if (!is_power_of_two(mib))
        return cca__refuse("c10::ValueError", "For roundups, the intervals have to be power of 2 ",
                           "%s: the interval " CCA__QUOTED " is no power of two of MiB", key,
                           token);
    const size_t power = 63u - (size_t)__builtin_clzll(mib);
    *entry = power < CCA_DIVISION_COUNT ? power : CCA_DIVISION_COUNT - 1;
    return BASE_OK;
}

// One `KEY:DIVISION` of the list. LAST is the entry of the interval before, FIRST says there was
// none; `>` is no interval.
static enum base_status parse_division_pair(struct cca__parser *parser, const char *key,
                                            bool *first, size_t *last) {
    uint64_t *const table = parser->config->sizes.divisions;
    const char *interval, *token;
    enum base_status status = cca__next_token(parser, key, &interval);
    if (status == BASE_OK) status = cca__skip_separator(parser, key);
    if (status != BASE_OK) return status;
    const bool rest = strcmp(interval, ">") == 0;
    size_t entry = 0;
    if (!rest) status = division_entry(key, interval, &entry);
    if (status == BASE_OK) status = cca__next_token(parser, key, &token);
    uint64_t division = 0;
    if (status == BASE_OK) status = parse_division(key, token, true, &division);
    if (status != BASE_OK) return status;
    if (rest) {
        for (size_t above = *last + 1; above < CCA_DIVISION_COUNT; ++above) table[above] = division;
        return BASE_OK;
    }
    if (*first)
        for (size_t below = 0; below < entry; ++below) table[below] = division;
    *first = false;
    table[entry] = division;
    *last = entry;
    return BASE_OK;
}

static bool closes(const char *token) { return token != NULL && strcmp(token, "]") == 0; }

static enum base_status parse_division_list(struct cca__parser *parser, const char *key) {
    size_t last = 0;
    bool first = true;
    while (!closes(cca__peek(parser))) {
        enum base_status status = parse_division_pair(parser, key, &first, &last);
        if (status == BASE_OK && !closes(cca__peek(parser)))
            status = cca__skip_separator(parser, key);
        if (status != BASE_OK) return status;
    }
    ++parser->position;
    return BASE_OK;
}

static enum base_status parse_divisions(struct cca__parser *parser, const char *key) {
    const char *token;
    enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    if (strcmp(token, "[") == 0) return parse_division_list(parser, key);
    uint64_t division = 0;
    status = parse_division(key, token, false, &division);
    if (status != BASE_OK) return status;
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry)
        parser->config->sizes.divisions[entry] = division;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Limits and growth.

static enum base_status parse_gc_threshold(struct cca__parser *parser, const char *key) {
    double threshold;
    const enum base_status status = cca__value_real(parser, key, &threshold);
    if (status != BASE_OK) return status;
    if (!(threshold > 0.0 && threshold < 1.0))
        return base_status_set(BASE_INVALID_CONFIG,
                               "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    parser->config->garbage_collection_threshold = threshold;
    return BASE_OK;
}

static enum base_status parse_fraction(struct cca__parser *parser, const char *key) {
    double fraction;
    const enum base_status status = cca__value_real(parser, key, &fraction);
    if (status != BASE_OK) return status;
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return base_status_set(BASE_INVALID_CONFIG,
                               "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    parser->config->per_process_memory_fraction = fraction;
    return BASE_OK;
}

static enum base_status parse_release_lock(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->release_lock_on_cudamalloc);
}

static enum base_status parse_throw(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->throw_on_cudamalloc_oom);
}

static enum base_status parse_expandable(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->expandable_segments);
}

static enum base_status parse_reuse(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->graph_capture_record_stream_reuse);
}

static enum base_status parse_backend(struct cca__parser *parser, const char *key) {
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

static enum base_status parse_host_register(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->pinned.use_cuda_host_register);
}

static enum base_status parse_background_threads(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->pinned.use_background_threads);
}

static enum base_status parse_free_catch_all(struct cca__parser *parser, const char *key) {
    return cca__value_bool(parser, key, &parser->config->pinned.free_catch_all);
}

static enum base_status parse_register_threads(struct cca__parser *parser, const char *key) {
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

static enum base_status parse_pinned_reserve(struct cca__parser *parser, const char *key) {
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

static enum base_status parse_max_round(struct cca__parser *parser, const char *key) {
    return parse_pinned_size(parser, key, &parser->config->pinned.max_round);
}

static enum base_status parse_max_cached(struct cca__parser *parser, const char *key) {
    return parse_pinned_size(parser, key, &parser->config->pinned.max_cached_size);
}

//------------------------------------------------------------------------------------------------
// Ours.

// x_torch:VERSION, "2.5" or "2.15.0": from 2.12 on equal blocks are told apart by the age of
// their segment.
static enum base_status parse_version(struct cca__parser *parser, const char *key) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status != BASE_OK) return status;
    int major = 0, minor = 0, length = 0;
    if (sscanf(token, "%1d.%2d%n", &major, &minor, &length) != 2 || major != 2 || minor < 0 ||
        minor > 15 || (token[length] != '\0' && token[length] != '.' && token[length] != '+'))
        return base_status_set(BASE_INVALID_CONFIG,
                               "%s: '" CCA__QUOTED
                               "' is not a version of PyTorch from 2.0 to 2.15, such as 2.5",
                               key, token);
    parser->config->tie_by_address = minor <= 11;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The table.

static const struct cca__config_key keys[] = {
    {"large_segment_size_mb", CCA__PASS_FIRST, cca__parse_large_segment},
    {"max_split_size_mb", CCA__PASS_GENERIC, parse_max_split_size},
    {"max_non_split_rounding_mb", CCA__PASS_GENERIC, parse_max_non_split_rounding},
    {"garbage_collection_threshold", CCA__PASS_GENERIC, parse_gc_threshold},
    {"roundup_power2_divisions", CCA__PASS_GENERIC, parse_divisions},
    {"expandable_segments", CCA__PASS_GENERIC, parse_expandable},
    {"pinned_use_background_threads", CCA__PASS_GENERIC, parse_background_threads},
    {"pinned_max_round_threshold_mb", CCA__PASS_GENERIC, parse_max_round},
    {"pinned_max_cached_size_mb", CCA__PASS_GENERIC, parse_max_cached},
    {"backend", CCA__PASS_CUDA, parse_backend},
    {"release_lock_on_cudamalloc", CCA__PASS_CUDA, parse_release_lock},
    {"release_lock_on_hipmalloc", CCA__PASS_CUDA, parse_release_lock},
    {"pinned_use_cuda_host_register", CCA__PASS_CUDA, parse_host_register},
    {"pinned_use_hip_host_register", CCA__PASS_CUDA, parse_host_register},
    {"pinned_num_register_threads", CCA__PASS_CUDA, parse_register_threads},
    {"pinned_reserve_segment_size_mb", CCA__PASS_CUDA, parse_pinned_reserve},
    {"pinned_free_catch_all", CCA__PASS_CUDA, parse_free_catch_all},
    {"graph_capture_record_stream_reuse", CCA__PASS_CUDA, parse_reuse},
    {"per_process_memory_fraction", CCA__PASS_CUDA, parse_fraction},
    {"throw_on_cudamalloc_oom", CCA__PASS_CUDA, parse_throw},
    {"expandable_segments_reserve", CCA__PASS_CUDA, cca__parse_reserve},
    {"expandable_segments_reserve_by_class", CCA__PASS_CUDA, cca__parse_reserve_by_class},
    {"x_torch", CCA__PASS_OWN, parse_version},
};

const struct cca__config_key *cca__config_key_find(const char *name) {
    for (size_t index = 0; index < sizeof keys / sizeof keys[0]; ++index)
        if (strcmp(keys[index].name, name) == 0) return &keys[index];
    return NULL;
}
