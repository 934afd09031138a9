// Random settings strings over all keys. See script_internal.h.
#include "allocator/golden/script_internal.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define VALUE_MAX 256
#define PAIR_MAX  48

__attribute__((format(printf, 2, 3))) static void append(char text[SCRIPT_CONFIG_MAX],
                                                         const char *format, ...) {
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(text + length, SCRIPT_CONFIG_MAX - length, format, arguments);
    va_end(arguments);
    BASE_CHECK(added >= 0 && length + (size_t)added < SCRIPT_CONFIG_MAX);
}

//--------------------------------------------------------------------------------------------------
// Values.

static void bool_value(struct script_plan *plan, char *value) {
    append(value, "%s", script__chance(plan, 0.5) ? "True" : "False");
}

// Mostly what the program is about; now and then the other.
static void expandable_value(struct script_plan *plan, char *value) {
    append(value, "%s", plan->is_expandable != script__chance(plan, 0.2) ? "True" : "False");
}

// The driver maps whole granules of 2 MiB only, so sizes are even.
static void large_segment_value(struct script_plan *plan, char *value) {
    plan->large_segment_mb = 12 + 2 * script__below(plan, 27);
    append(value, "%" PRIu64, plan->large_segment_mb);
}

static uint64_t least_mb(const struct script_plan *plan) {
    return plan->large_segment_mb + (plan->minor < 11 ? 1 : 0);
}

static void split_value(struct script_plan *plan, char *value) {
    append(value, "%" PRIu64, least_mb(plan) + script__below(plan, 100));
}

static void rounding_value(struct script_plan *plan, char *value) {
    append(value, "%" PRIu64, least_mb(plan) + script__below(plan, 60));
}

static void share_value(struct script_plan *plan, char *value) {
    append(value, "0.%" PRIu64, 1 + script__below(plan, 9));
}

static void divisions_value(struct script_plan *plan, char *value) {
    if (script__chance(plan, 0.5)) {
        append(value, "%d", 1 << script__below(plan, 5));
        return;
    }
    append(value, "[");
    for (uint64_t key = script__below(plan, 3); key < 8; key += 1 + script__below(plan, 3))
        append(value, "%d:%d,", 1 << key,
               script__chance(plan, 0.2) ? 0 : 1 << script__below(plan, 5));
    append(value, ">:%d]", 1 << script__below(plan, 5));
}

static void reserve_value(struct script_plan *plan, char *value) {
    if (script__chance(plan, 0.5))
        append(value, "0.%" PRIu64, 5 + script__below(plan, 90));
    else
        append(value, "%g%c", (double)(1 + script__below(plan, 64)) / 16,
               script__chance(plan, 0.9) ? 'G' : 'g');
}

static void reserves_value(struct script_plan *plan, char *value) {
    static const char *const names[] = {"a", "b", "c", "a"};
    const char *separator = "[";
    for (uint64_t count = script__below(plan, 4); count > 0; count--, separator = ",") {
        append(value, "%s%s:", separator, names[script__below(plan, 4)]);
        reserve_value(plan, value);
    }
    append(value, "%s]", separator[0] == '[' ? "[" : "");
}

static void native_value(struct script_plan *plan, char *value) {
    (void)plan;
    append(value, "native");
}

static void count_value(struct script_plan *plan, char *value) {
    append(value, "%d", 1 << script__below(plan, 8));
}

static void poll_value(struct script_plan *plan, char *value) {
    append(value, "%s", script__chance(plan, 0.7) ? "own" : "all");
}

static void wait_value(struct script_plan *plan, char *value) {
    append(value, "%s", script__chance(plan, 0.7) ? "enough" : "all");
}

//--------------------------------------------------------------------------------------------------
// The table.

static const struct key {
    const char *name;
    unsigned first_minor; // the release that first read it
    double share;         // of strings that have it
    void (*value)(struct script_plan *plan, char *value);
} keys[] = {
    {"large_segment_size_mb", 11, 0.25, large_segment_value}, // first: it bounds others
    {"max_split_size_mb", 0, 0.4, split_value},
    {"max_non_split_rounding_mb", 6, 0.3, rounding_value},
    {"garbage_collection_threshold", 0, 0.4, share_value},
    {"roundup_power2_divisions", 0, 0.4, divisions_value},
    {"expandable_segments", 1, 0.3, expandable_value},
    {"expandable_segments_reserve", 14, 0.15, reserve_value},
    {"expandable_segments_reserve_by_class", 14, 0.15, reserves_value},
    {"per_process_memory_fraction", 9, 0.1, share_value},
    {"throw_on_cudamalloc_oom", 12, 0.15, bool_value},
    {"release_lock_on_cudamalloc", 1, 0.1, bool_value},
    {"release_lock_on_hipmalloc", 2, 0.05, bool_value},
    {"graph_capture_record_stream_reuse", 9, 0.05, bool_value},
    {"backend", 0, 0.05, native_value},
    {"pinned_use_cuda_host_register", 2, 0.05, bool_value},
    {"pinned_use_hip_host_register", 2, 0.05, bool_value},
    {"pinned_num_register_threads", 2, 0.05, count_value},
    {"pinned_use_background_threads", 5, 0.05, bool_value},
    {"pinned_reserve_segment_size_mb", 10, 0.05, count_value},
    {"pinned_free_catch_all", 13, 0.05, bool_value},
    {"pinned_max_round_threshold_mb", 13, 0.05, count_value},
    {"pinned_max_cached_size_mb", 13, 0.05, count_value},
    {"x_bound_growth", 0, 0.15, bool_value},
    {"x_skip_stuck", 0, 0.15, bool_value},
    {"x_poll", 0, 0.15, poll_value},
    {"x_wait", 0, 0.15, wait_value},
    {"x_retry_search", 0, 0.15, bool_value},
    {"x_reclaim_idle", 0, 0.7, bool_value},
    {"x_torch_faults", 0, 0.2, bool_value},
};
#define KEY_COUNT (sizeof keys / sizeof keys[0])

// What PyTorch refuses, or takes with a warning.
static const char *const wrong_pairs[] = {"max_split_size_mb:11",
                                          "max_non_split_rounding_mb:10",
                                          "large_segment_size_mb:10",
                                          "garbage_collection_threshold:1.5",
                                          "garbage_collection_threshold:0",
                                          "per_process_memory_fraction:1.01",
                                          "roundup_power2_divisions:3",
                                          "roundup_power2_divisions:[3:2]",
                                          "roundup_power2_divisions:[4:3,>:2]",
                                          "expandable_segments:yes",
                                          "expandable_segments_reserve:abc",
                                          "expandable_segments_reserve_by_class:[a:0.5,b:-1]",
                                          "expandable_segments_reserve_by_class:[a:0.5",
                                          "throw_on_cudamalloc_oom",
                                          "release_lock_on_cudamalloc:1",
                                          "backend:cudaMallocAsync",
                                          "backend:none",
                                          "pinned_num_register_threads:3",
                                          "pinned_reserve_segment_size_mb:0",
                                          "max_split_size_mb:abc",
                                          "max_split_size_mb:99999999999999999999",
                                          "garbage_collection_threshold:1e-400",
                                          "bogus:1",
                                          ","};

// Pairs in any order, though values were drawn in the table's.
struct pairs {
    char texts[PAIR_MAX][VALUE_MAX];
    size_t count;
};

static void add_pair(struct script_plan *plan, struct pairs *pairs, const char *text) {
    BASE_CHECK_LT(pairs->count, PAIR_MAX);
    const size_t place = (size_t)script__below(plan, pairs->count + 1);
    memmove(&pairs->texts[place + 1], &pairs->texts[place],
            (pairs->count - place) * sizeof pairs->texts[0]);
    snprintf(pairs->texts[place], VALUE_MAX, "%s", text);
    pairs->count++;
}

static void add_key(struct script_plan *plan, struct pairs *pairs, const struct key *key) {
    char text[SCRIPT_CONFIG_MAX] = "";
    append(text, "%s:", key->name);
    key->value(plan, text);
    add_pair(plan, pairs, text);
}

static void join(const struct pairs *pairs, char config[SCRIPT_CONFIG_MAX]) {
    config[0] = '\0';
    for (size_t index = 0; index < pairs->count; index++)
        append(config, "%s%s", index == 0 ? "" : ",", pairs->texts[index]);
}

static double share_of(const struct script_plan *plan, const struct key *key) {
    if (strcmp(key->name, "x_reclaim_idle") == 0 && !plan->may_reclaim) return 0;
    const bool decides_oversize = strncmp(key->name, "max_", 4) == 0;
    return plan->is_oversize && decides_oversize ? 0.9 : key->share;
}

void script__config_start(struct script_plan *plan, char config[SCRIPT_CONFIG_MAX]) {
    static struct pairs pairs;
    pairs.count = 0;
    char version[32];
    snprintf(version, sizeof version, "x_torch:2.%u", plan->minor);
    if (plan->minor < 15 || script__chance(plan, 0.05)) add_pair(plan, &pairs, version);
    for (size_t index = 0; index < KEY_COUNT; index++) {
        const struct key *const key = &keys[index];
        if (plan->minor < key->first_minor) continue;
        if (strcmp(key->name, "expandable_segments") == 0 && plan->is_expandable)
            add_pair(plan, &pairs, "expandable_segments:True");
        else if (script__chance(plan, share_of(plan, key)))
            add_key(plan, &pairs, key);
    }
    join(&pairs, config);
}

void script__config_set(struct script_plan *plan, char config[SCRIPT_CONFIG_MAX]) {
    static struct pairs pairs;
    pairs.count = 0;
    for (size_t index = 0; index < KEY_COUNT; index++) {
        // An older release refuses keys that came later, which need not be every time.
        if (plan->minor < keys[index].first_minor && script__chance(plan, 0.95)) continue;
        if (script__chance(plan, share_of(plan, &keys[index]))) add_key(plan, &pairs, &keys[index]);
    }
    if (script__chance(plan, 0.25))
        add_pair(plan, &pairs,
                 wrong_pairs[script__below(plan, sizeof wrong_pairs / sizeof wrong_pairs[0])]);
    join(&pairs, config);
}

void script__config_any(struct script_plan *plan, char config[SCRIPT_CONFIG_MAX]) {
    static const char *const words[] = {",",    ":",    "[",     "]",   ",",  ":",  ":",
                                        " ",    "True", "False", "0.5", "64", "-1", "1e9",
                                        "0x20", "40G",  "abc",   "a",   ">"};
    config[0] = '\0';
    if (script__chance(plan, 0.3))
        append(config, "x_torch:2.%" PRIu64 ",", script__below(plan, 16));
    for (uint64_t count = 1 + script__below(plan, 8); count > 0; count--) {
        const struct key *const key = &keys[script__below(plan, KEY_COUNT)];
        const uint64_t kind = script__below(plan, 10);
        if (kind < 4) {
            append(config, "%s:", key->name);
            key->value(plan, config);
            append(config, "%s", script__chance(plan, 0.9) ? "," : "");
        } else if (kind < 5) {
            // What begins like a key of our own has our own words in the error.
            append(config, "%s%s", key->name, key->name[1] == '_' ? ":" : "");
        } else if (kind < 6) {
            append(config, "%s,",
                   wrong_pairs[script__below(plan, sizeof wrong_pairs / sizeof wrong_pairs[0])]);
        } else {
            append(config, "%s", words[script__below(plan, sizeof words / sizeof words[0])]);
        }
    }
}
