// See replay_run.h.
#include "bench/replay_run.h"

#include "allocator/create.h"
#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

static const char allocator_key[] = "x_allocator:";

struct bench_replay_limits bench_replay_limits_of(const struct trace *trace, uint64_t capacity,
                                                  double fraction) {
    const struct trace_settings *settings = &trace->settings;
    struct bench_replay_limits limits = {
        .capacity_bytes = capacity != 0 ? capacity : settings->capacity_bytes,
        .fraction = fraction >= 0 ? fraction : settings->memory_fraction};
    limits.capacity_known = limits.capacity_bytes != 0;
    if (!limits.capacity_known) limits.capacity_bytes = BENCH_REPLAY_CAPACITY_UNLIMITED;
    return limits;
}

uint64_t bench_replay_limit_bytes(const struct bench_replay_limits *limits) {
    if (limits->fraction > 0 && limits->fraction < 1)
        return (uint64_t)llround(limits->fraction * (double)limits->capacity_bytes);
    return limits->capacity_known ? limits->capacity_bytes : 0;
}

bool bench_replay_config_caches(const char *config) { return allocator_text_is_caching(config); }

static enum base_status configure_device(const struct bench_replay_setup *setup) {
#ifdef TIDEMARK_SIMULATOR
    const struct bench_replay_limits *limits = &setup->limits;
    uint64_t capacity = limits->capacity_bytes;
    // Another allocator than the caching one knows no fraction: its device is as small as its
    // share.
    const uint64_t limit_bytes = bench_replay_limit_bytes(limits);
    if (limit_bytes != 0 && !bench_replay_config_caches(setup->config))
        capacity = limit_bytes > SIM_PAGE_BYTES ? limit_bytes : SIM_PAGE_BYTES;
    return sim_configure(&(struct sim_options){.device_count = 1,
                                               .capacity_bytes = capacity,
                                               .numerics = SIM_NUMERICS_OFF,
                                               .addresses = SIM_ADDRESSES_REUSED});
#else
    (void)setup;
    return BASE_OK;
#endif
}

// The sentence for a text that was refused: where it says a place, that of the text as the user
// wrote it, without our key in front.
static enum base_status refuse_config(const char *config, const char *whole, double fraction) {
    struct allocator *allocator;
    enum base_status status = allocator_create(config, fraction, &allocator);
    if (status != BASE_OK) return status;
    allocator_destroy(allocator); // refused only together with our key
    status = allocator_create(whole, fraction, &allocator);
    BASE_CHECK(status != BASE_OK);
    return status;
}

enum base_status bench_replay_allocator(const struct bench_replay_setup *setup,
                                        struct allocator **allocator) {
    enum base_status status = configure_device(setup);
    if (status != BASE_OK) return status;
    const double fraction = setup->limits.fraction > 0 ? setup->limits.fraction : 1;
    if (!bench_replay_config_caches(setup->config))
        return allocator_create(setup->config, fraction, allocator);
    const char *rest = setup->config;
    if (strncmp(rest, allocator_key, strlen(allocator_key)) == 0)
        rest += strcspn(rest, ",") + (strchr(rest, ',') != NULL);
    const size_t size = strlen(rest) + strlen(setup->rules) + sizeof "x_torch:,";
    char *text = malloc(size);
    if (text == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a configuration of %zu bytes",
                               size);
    (void)snprintf(text, size, "x_torch:%s%s%s", setup->rules, rest[0] != 0 ? "," : "", rest);
    status = allocator_create(text, fraction, allocator);
    if (status == BASE_INVALID_CONFIG) status = refuse_config(setup->config, text, fraction);
    free(text);
    return status;
}

static struct bench_replay_device_time modelled_time(void) {
#ifdef TIDEMARK_SIMULATOR
    const struct sim_interval time = sim_call_time();
    return (struct bench_replay_device_time){.known = true,
                                             .low_s = (double)time.low_ns / 1e9,
                                             .typical_s = (double)time.typical_ns / 1e9,
                                             .high_s = (double)time.high_ns / 1e9};
#else
    return (struct bench_replay_device_time){0};
#endif
}

enum base_status bench_replay_observe(const struct bench_replay_setup *setup,
                                      struct workload_replay_result *result,
                                      struct bench_replay_device_time *device_time) {
    struct allocator *allocator;
    enum base_status status = bench_replay_allocator(setup, &allocator);
    if (status != BASE_OK) return status;
    const struct workload_replay_options options = {.recorded_configuration = setup->recorded,
                                                    .recorded_addresses = setup->recorded,
                                                    .snapshot = true};
    status = workload_replay_run(setup->plan, allocator, &options, result);
    // Before the allocator gives back what it holds, which is no part of the replay.
    if (device_time != NULL) *device_time = modelled_time();
    allocator_destroy(allocator);
    return status;
}

enum base_status bench_replay_time(const struct bench_replay_setup *setup,
                                   struct workload_replay_time *time) {
    struct allocator *allocator;
    enum base_status status = bench_replay_allocator(setup, &allocator);
    if (status != BASE_OK) return status;
    status = workload_replay_time(setup->plan, allocator, time);
    allocator_destroy(allocator);
    return status;
}

double bench_replay_share_equal(const struct workload_self_check *check) {
    const uint64_t all =
        check->block_count + check->segment_count + check->release_count + check->layout_count;
    const uint64_t equal = check->block_equal_count + check->segment_equal_count +
                           check->release_equal_count + check->layout_equal_count;
    return all == 0 ? 1 : (double)equal / (double)all;
}
