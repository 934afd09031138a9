// The list of outcomes, and what ranks them.
#include "bench/replay_outcome.h"

#include "bench/replay_configs.h"

#include <stdlib.h>
#include <string.h>

static void outcome_deinit(struct bench_replay_outcome *outcome) {
    free(outcome->trace);
    free(outcome->source);
    free(outcome->rules);
    free(outcome->config_name);
    free(outcome->config);
    workload_replay_result_deinit(&outcome->result);
}

static char *copy(const char *text) {
    return strdup(text != NULL ? text : "");
}

enum base_status bench_replay_outcome_add(struct bench_replay_outcomes *outcomes,
                                          const struct bench_replay_outcome *texts,
                                          struct bench_replay_outcome **added) {
    if (outcomes->count == outcomes->capacity) {
        const size_t capacity = outcomes->capacity == 0 ? 16 : outcomes->capacity * 2;
        struct bench_replay_outcome *items = realloc(outcomes->items, capacity * sizeof *items);
        if (items == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for %zu outcomes", capacity);
        outcomes->items = items;
        outcomes->capacity = capacity;
    }
    struct bench_replay_outcome outcome = *texts;
    outcome.result = (struct workload_replay_result){0};
    outcome.trace = copy(texts->trace);
    outcome.source = copy(texts->source);
    outcome.rules = copy(texts->rules);
    outcome.config_name = copy(texts->config_name);
    outcome.config = copy(texts->config);
    outcome.is_limit = !bench_replay_config_caches(texts->config);
    outcome.ns_per_event = -1;
    if (outcome.trace == NULL || outcome.source == NULL || outcome.rules == NULL ||
        outcome.config_name == NULL || outcome.config == NULL) {
        outcome_deinit(&outcome);
        return base_status_set(BASE_HOST_MEMORY, "no memory for an outcome");
    }
    *added = &outcomes->items[outcomes->count++];
    **added = outcome;
    return BASE_OK;
}

void bench_replay_outcome_drop(struct bench_replay_outcomes *outcomes) {
    outcome_deinit(&outcomes->items[--outcomes->count]);
}

void bench_replay_outcomes_deinit(struct bench_replay_outcomes *outcomes) {
    while (outcomes->count > 0) bench_replay_outcome_drop(outcomes);
    free(outcomes->items);
    *outcomes = (struct bench_replay_outcomes){0};
}

bool bench_replay_failed(const struct workload_replay_result *result) {
    return result->out_of_memory || result->stats.num_ooms > 0;
}

// Negative if the left one is smaller.
static int compare_counts(uint64_t left, uint64_t right) {
    return (left > right) - (left < right);
}

static int group_of(const struct bench_replay_outcome *outcome) {
    return bench_replay_failed(&outcome->result) ? 2 : outcome->is_limit ? 1 : 0;
}

// Of two that ran out of memory: the one that came further, and furthest the one that went on.
static int compare_failed(const struct workload_replay_result *left,
                          const struct workload_replay_result *right) {
    if (left->out_of_memory != right->out_of_memory) return left->out_of_memory ? 1 : -1;
    return left->out_of_memory
               ? compare_counts(right->out_of_memory_event, left->out_of_memory_event)
               : 0;
}

static int compare_calls(const struct workload_replay_result *left,
                         const struct workload_replay_result *right) {
    const int retries = compare_counts((uint64_t)left->stats.num_alloc_retries,
                                       (uint64_t)right->stats.num_alloc_retries);
    if (retries != 0) return retries;
    return compare_counts(left->device_malloc_count + left->device_free_count,
                          right->device_malloc_count + right->device_free_count);
}

static bool is_default(const struct bench_replay_outcome *outcome) {
    return strcmp(outcome->config_name, BENCH_REPLAY_DEFAULT_NAME) == 0;
}

static int compare(const void *a, const void *b) {
    const struct bench_replay_outcome *left = a, *right = b;
    const struct workload_replay_result *l = &left->result, *r = &right->result;
    int order = group_of(left) - group_of(right);
    if (order != 0) return order;
    const bool failed = bench_replay_failed(l);
    if (failed) order = compare_failed(l, r);
    if (order == 0) order = compare_counts(l->peak_reserved_bytes, r->peak_reserved_bytes);
    if (order == 0 && !failed) order = compare_calls(l, r);
    if (order == 0) order = is_default(right) - is_default(left);
    return order != 0 ? order : strcmp(left->config_name, right->config_name);
}

void bench_replay_rank(struct bench_replay_outcome *outcomes, size_t count) {
    if (count > 1) qsort(outcomes, count, sizeof *outcomes, compare);
}

double bench_replay_overhead(const struct workload_replay_result *result) {
    if (result->peak_allocated_bytes == 0) return 0;
    return (double)result->peak_reserved_bytes / (double)result->peak_allocated_bytes;
}
