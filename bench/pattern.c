// See pattern.h.
#include "bench/pattern.h"

#include "base/check.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE 0
#define STEP_COUNT_MIN ((uint64_t)16384) // too long for a branch predictor to learn, 128 KiB

const char *bench_pattern_name(enum bench_pattern_kind kind) {
    static const char *const names[] = {"pair", "window", "mixed", "record", "script"};
    BASE_CHECK_LT((size_t)kind, sizeof names / sizeof names[0]);
    return names[kind];
}

void bench_pattern_init(struct bench_pattern *pattern, enum bench_pattern_kind kind, size_t bytes,
                        uint64_t seed) {
    if (kind == BENCH_PATTERN_MIXED) {
        bench_pattern_init_mixed(pattern, BENCH_PATTERN_MIXED_LIVE_COUNT,
                                 BENCH_PATTERN_MIXED_BYTES_MIN, BENCH_PATTERN_MIXED_BYTES_MAX,
                                 seed);
        return;
    }
    BASE_CHECK(kind != BENCH_PATTERN_SCRIPT);
    *pattern = (struct bench_pattern){
        .kind = kind, .bytes = bytes, .live_count = 1, .stream_count = 1, .pair_count = 1};
    if (kind == BENCH_PATTERN_WINDOW) pattern->live_count = BENCH_PATTERN_WINDOW_LIVE_COUNT;
    if (kind == BENCH_PATTERN_RECORD) pattern->stream_count = 2;
}

void bench_pattern_init_mixed(struct bench_pattern *pattern, uint32_t live_count,
                              uint64_t bytes_min, uint64_t bytes_max, uint64_t seed) {
    uint64_t step_count = STEP_COUNT_MIN;
    while (step_count < 2 * (uint64_t)live_count) step_count *= 2;
    *pattern = (struct bench_pattern){.kind = BENCH_PATTERN_MIXED,
                                      .live_count = live_count,
                                      .stream_count = 1,
                                      .pair_count = 1,
                                      .step_mask = step_count - 1};
    BASE_CHECK_LE(bytes_max, UINT32_MAX);
    pattern->steps = malloc(step_count * sizeof *pattern->steps);
    BASE_CHECK(pattern->steps != NULL);
    struct base_random sizes = base_random_init(seed, "host_cost sizes");
    struct base_random slots = base_random_init(seed, "host_cost slots");
    for (uint64_t i = 0; i < step_count; i++) {
        pattern->steps[i].slot = (uint32_t)base_random_below(&slots, live_count);
        pattern->steps[i].bytes = (uint32_t)base_random_log_between(&sizes, bytes_min, bytes_max);
    }
}

void bench_pattern_init_script(struct bench_pattern *pattern, const struct bench_script *script) {
    *pattern = (struct bench_pattern){.kind = BENCH_PATTERN_SCRIPT,
                                      .live_count = script->slot_count,
                                      .stream_count = script->stream_count,
                                      .pair_count = script->pair_count,
                                      .script = script};
    BASE_CHECK_EQ(script->step_count - script->cycle_first, 2 * script->pair_count);
}

void bench_pattern_deinit(struct bench_pattern *pattern) {
    free(pattern->steps);
    pattern->steps = NULL;
}

// Patterns whose blocks are all gone after an iteration.
static bool keeps_nothing(const struct bench_pattern *pattern) {
    return pattern->kind == BENCH_PATTERN_PAIR || pattern->kind == BENCH_PATTERN_RECORD;
}

// Which slot step POSITION replaces, and by how many bytes.
static inline struct bench_pattern_step step_at(const struct bench_pattern *pattern,
                                                uint64_t position) {
    if (pattern->kind == BENCH_PATTERN_MIXED) return pattern->steps[position & pattern->step_mask];
    return (struct bench_pattern_step){.slot = (uint32_t)(position % pattern->live_count),
                                       .bytes = (uint32_t)pattern->bytes};
}

static inline unsigned script_step(struct bench_user *user, const struct bench_script_step *step) {
    struct bench_slot *slot = &user->slots[step->slot];
    if (step->bytes == 0) {
        const unsigned failed = (unsigned)allocator_free(user->allocator, slot->pointer);
        slot->pointer = NULL;
        return failed;
    }
    slot->bytes = step->bytes;
    return (unsigned)allocator_malloc(user->allocator, DEVICE, step->bytes,
                                      user->streams[step->stream], &slot->pointer);
}

static enum base_status live_set_fill(struct bench_user *user, uint64_t start) {
    const struct bench_pattern *pattern = user->pattern;
    for (uint32_t i = 0; i < pattern->live_count; i++) {
        struct bench_slot *slot = &user->slots[i];
        slot->bytes = step_at(pattern, start + i).bytes;
        const enum base_status status = allocator_malloc(user->allocator, DEVICE, slot->bytes,
                                                         user->streams[0], &slot->pointer);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

enum base_status bench_user_init(struct bench_user *user, const struct bench_pattern *pattern,
                                 struct allocator *allocator, const cudaStream_t *streams,
                                 uint64_t start) {
    *user = (struct bench_user){
        .pattern = pattern, .allocator = allocator, .streams = streams, .position = start};
    user->slots = calloc(pattern->live_count, sizeof *user->slots);
    BASE_CHECK(user->slots != NULL);
    if (keeps_nothing(pattern)) return BASE_OK;
    if (pattern->kind != BENCH_PATTERN_SCRIPT) return live_set_fill(user, start);
    for (size_t i = 0; i < pattern->script->cycle_first; i++)
        if (script_step(user, &pattern->script->steps[i]) != BASE_OK)
            return base_status_set(BASE_CHECK_FAILED, "step %zu of the script: %s", i,
                                   base_status_message());
    return BASE_OK;
}

enum base_status bench_user_deinit(struct bench_user *user) {
    enum base_status first = BASE_OK;
    for (uint32_t i = 0; i < user->pattern->live_count; i++) {
        const enum base_status status = allocator_free(user->allocator, user->slots[i].pointer);
        if (first == BASE_OK) first = status;
    }
    free(user->slots);
    user->slots = NULL;
    return first;
}

static inline unsigned pair_once(struct bench_user *user, size_t bytes) {
    void *pointer = NULL;
    const unsigned failed =
        (unsigned)allocator_malloc(user->allocator, DEVICE, bytes, user->streams[0], &pointer);
    return failed | (unsigned)allocator_free(user->allocator, pointer);
}

static inline unsigned record_once(struct bench_user *user, size_t bytes) {
    void *pointer = NULL;
    unsigned failed =
        (unsigned)allocator_malloc(user->allocator, DEVICE, bytes, user->streams[0], &pointer);
    failed |= (unsigned)allocator_record_stream(user->allocator, pointer, user->streams[1]);
    return failed | (unsigned)allocator_free(user->allocator, pointer);
}

static inline unsigned replace_once(struct bench_user *user, struct bench_pattern_step step) {
    struct bench_slot *slot = &user->slots[step.slot];
    unsigned failed = (unsigned)allocator_free(user->allocator, slot->pointer);
    slot->pointer = NULL; // stays so if the request fails, and is then not freed again
    slot->bytes = step.bytes;
    failed |= (unsigned)allocator_malloc(user->allocator, DEVICE, step.bytes, user->streams[0],
                                         &slot->pointer);
    return failed;
}

static unsigned script_run(struct bench_user *user, uint64_t count) {
    const struct bench_script *script = user->pattern->script;
    unsigned failed = 0;
    for (uint64_t i = 0; i < count; i++)
        for (size_t j = script->cycle_first; j < script->step_count; j++)
            failed |= script_step(user, &script->steps[j]);
    return failed;
}

// One loop a kind, so that the kind is decided outside.
bool bench_user_run(struct bench_user *user, uint64_t count) {
    const struct bench_pattern *pattern = user->pattern;
    const uint64_t first = user->position;
    unsigned failed = 0;
    switch (pattern->kind) {
    case BENCH_PATTERN_PAIR:
        for (uint64_t i = 0; i < count; i++) failed |= pair_once(user, pattern->bytes);
        break;
    case BENCH_PATTERN_WINDOW: {
        const uint32_t bytes = (uint32_t)pattern->bytes;
        for (uint64_t i = first; i < first + count; i++)
            failed |= replace_once(
                user, (struct bench_pattern_step){
                          .slot = (uint32_t)(i % BENCH_PATTERN_WINDOW_LIVE_COUNT), .bytes = bytes});
        break;
    }
    case BENCH_PATTERN_MIXED: {
        const struct bench_pattern_step *steps = pattern->steps;
        const uint64_t mask = pattern->step_mask;
        for (uint64_t i = first; i < first + count; i++)
            failed |= replace_once(user, steps[i & mask]);
        break;
    }
    case BENCH_PATTERN_RECORD:
        for (uint64_t i = 0; i < count; i++) failed |= record_once(user, pattern->bytes);
        break;
    case BENCH_PATTERN_SCRIPT: failed = script_run(user, count); break;
    }
    user->position += count;
    return failed == 0;
}

bool bench_user_run_timed(struct bench_user *user, uint64_t count,
                          struct base_histogram *histogram) {
    const bool pair = user->pattern->kind == BENCH_PATTERN_PAIR;
    unsigned failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct bench_pattern_step step = step_at(user->pattern, user->position++);
        const uint64_t start_ns = base_time_ns();
        failed |= pair ? pair_once(user, step.bytes) : replace_once(user, step);
        base_histogram_record(histogram, base_time_ns() - start_ns);
    }
    return failed == 0;
}

static bool blocks_overlap(const struct bench_slot *a, const struct bench_slot *b) {
    const uint64_t first = (uint64_t)a->pointer, second = (uint64_t)b->pointer;
    return first < second + b->bytes && second < first + a->bytes;
}

static enum base_status overlap_found(const struct bench_slot *a, const struct bench_slot *b) {
    return base_status_set(BASE_CHECK_FAILED,
                           "two live blocks overlap: %zu bytes at %p and %zu bytes at %p", a->bytes,
                           a->pointer, b->bytes, b->pointer);
}

// The block in SLOT against all that live.
static enum base_status newcomer_check(struct bench_user *user, uint32_t slot) {
    const struct bench_slot *newcomer = &user->slots[slot];
    for (uint32_t i = 0; i < user->pattern->live_count; i++) {
        const struct bench_slot *other = &user->slots[i];
        if (i != slot && other->pointer != NULL && blocks_overlap(newcomer, other))
            return overlap_found(newcomer, other);
    }
    user->checked_count++;
    return BASE_OK;
}

static enum base_status call_failed(uint64_t iteration, uint64_t bytes) {
    return base_status_set(BASE_CHECK_FAILED, "iteration %" PRIu64 ", %" PRIu64 " bytes: %s",
                           iteration, bytes, base_status_message());
}

static enum base_status script_run_checked(struct bench_user *user, uint64_t count) {
    const struct bench_script *script = user->pattern->script;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t j = script->cycle_first; j < script->step_count; j++) {
            const struct bench_script_step *step = &script->steps[j];
            if (script_step(user, step)) return call_failed(i, step->bytes);
            if (step->bytes == 0) continue;
            const enum base_status status = newcomer_check(user, step->slot);
            if (status != BASE_OK) return status;
        }
    }
    return BASE_OK;
}

enum base_status bench_user_run_checked(struct bench_user *user, uint64_t count) {
    const struct bench_pattern *pattern = user->pattern;
    if (pattern->kind == BENCH_PATTERN_SCRIPT) return script_run_checked(user, count);
    for (uint64_t i = 0; i < count; i++) {
        const struct bench_pattern_step step = step_at(pattern, user->position++);
        const unsigned failed = pattern->kind == BENCH_PATTERN_PAIR ? pair_once(user, step.bytes)
                                : pattern->kind == BENCH_PATTERN_RECORD
                                    ? record_once(user, step.bytes)
                                    : replace_once(user, step);
        if (failed) return call_failed(i, step.bytes);
        if (keeps_nothing(pattern)) continue;
        const enum base_status status = newcomer_check(user, step.slot);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static int slot_compare(const void *a, const void *b) {
    const uint64_t first = (uint64_t)((const struct bench_slot *)a)->pointer;
    const uint64_t second = (uint64_t)((const struct bench_slot *)b)->pointer;
    return first < second ? -1 : first > second;
}

static enum base_status sorted_blocks_check(const struct bench_slot *blocks, size_t count,
                                            struct allocator *allocator) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].pointer == NULL)
            return base_status_set(BASE_CHECK_FAILED, "a live block has no address");
        if (i > 0 && blocks_overlap(&blocks[i - 1], &blocks[i]))
            return overlap_found(&blocks[i - 1], &blocks[i]);
        bytes += blocks[i].bytes;
    }
    struct allocator_stats stats;
    const enum base_status status = allocator_stats(allocator, DEVICE, &stats);
    if (status != BASE_OK) return status;
    // Of its pool the driver counts bytes alone.
    const bool counts_blocks = strcmp(allocator->operations->name, "async") != 0;
    if (counts_blocks && stats.allocation[ALLOCATOR_STAT_ALL].current != (int64_t)count)
        return base_status_set(BASE_CHECK_FAILED,
                               "%zu blocks are live, the allocator counts %" PRId64, count,
                               stats.allocation[ALLOCATOR_STAT_ALL].current);
    if (stats.allocated_bytes[ALLOCATOR_STAT_ALL].current < (int64_t)bytes)
        return base_status_set(BASE_CHECK_FAILED,
                               "%" PRIu64 " bytes are live, the allocator counts %" PRId64, bytes,
                               stats.allocated_bytes[ALLOCATOR_STAT_ALL].current);
    return BASE_OK;
}

enum base_status bench_users_check(const struct bench_user *users, size_t user_count) {
    size_t count = 0;
    const struct bench_pattern *pattern = users[0].pattern;
    struct bench_slot *all = calloc(user_count * pattern->live_count, sizeof *all);
    BASE_CHECK(all != NULL);
    for (size_t i = 0; i < user_count && !keeps_nothing(pattern); i++)
        for (uint32_t j = 0; j < pattern->live_count; j++)
            if (pattern->script == NULL || bench_script_filled(pattern->script, j))
                all[count++] = users[i].slots[j];
    qsort(all, count, sizeof *all, slot_compare);
    const enum base_status status = sorted_blocks_check(all, count, users[0].allocator);
    free(all);
    return status;
}

enum base_status bench_leaked_blocks(struct allocator *allocator, int64_t *block_count) {
    struct allocator_stats stats;
    const enum base_status status = allocator_stats(allocator, DEVICE, &stats);
    if (status != BASE_OK) return status;
    *block_count = stats.allocation[ALLOCATOR_STAT_ALL].current;
    if (*block_count == 0 && stats.allocated_bytes[ALLOCATOR_STAT_ALL].current != 0)
        return base_status_set(BASE_CHECK_FAILED,
                               "no block is allocated, yet %" PRId64 " bytes are",
                               stats.allocated_bytes[ALLOCATOR_STAT_ALL].current);
    return BASE_OK;
}
