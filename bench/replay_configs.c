// See replay_configs.h.
#include "bench/replay_configs.h"

#include <string.h>

const struct base_config *bench_replay_configs_default(int *count) {
    static const struct base_config configs[] = {
        {BENCH_REPLAY_DEFAULT_NAME, ""},
        {"split128", "max_split_size_mb:128"},
        {"round4", "roundup_power2_divisions:4"},
        {"large64", "large_segment_size_mb:64"},
        {"gc08", "garbage_collection_threshold:0.8"},
        {"direct", "x_allocator:direct"},
    };
    *count = sizeof configs / sizeof configs[0];
    return configs;
}

enum base_status bench_replay_configs_check(const struct base_config *configs, int count) {
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++)
            if (strcmp(configs[i].name, configs[j].name) == 0)
                return base_status_set(BASE_INVALID_VALUE, "--config %s: the name is given twice",
                                       configs[i].name);
        struct allocator *allocator;
        const struct bench_replay_setup setup = {
            .rules = "2.15",
            .config = configs[i].text,
            .limits = {.capacity_bytes = BENCH_REPLAY_CAPACITY_UNLIMITED}};
        enum base_status status = bench_replay_allocator(&setup, &allocator);
        if (status != BASE_OK) return base_status_prefix(status, "--config %s", configs[i].name);
        allocator_destroy(allocator);
    }
    return BASE_OK;
}

bool bench_replay_config_is_recorded(const struct trace *trace, const char *config,
                                     const struct bench_replay_limits *limits) {
    const struct trace_settings *settings = &trace->settings;
    const char *recorded = settings->config != NULL ? settings->config : "";
    const struct bench_replay_limits own = bench_replay_limits_of(trace, 0, -1);
    return strcmp(config, recorded) == 0 && limits->capacity_bytes == own.capacity_bytes &&
           limits->fraction == own.fraction;
}

bool bench_replay_config_needs_limit(const char *config, const struct bench_replay_limits *limits) {
    return limits->fraction <= 0 && strstr(config, "garbage_collection_threshold") != NULL &&
           strstr(config, "per_process_memory_fraction") == NULL;
}

void bench_replay_limit_collection(struct bench_replay_limits *limits, uint64_t peak_bytes) {
    const double wanted =
        BENCH_REPLAY_COLLECTION_LIMIT * (double)peak_bytes / (double)limits->capacity_bytes;
    if (wanted > 0 && wanted < 1) limits->fraction = wanted;
}
