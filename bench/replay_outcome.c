// The list of outcomes, and what ranks them.
#include "bench/replay_outcome.h"

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
    outcome.is_baseline = !bench_replay_config_caches(texts->config);
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

static int compare(const void *a, const void *b) {
    const struct bench_replay_outcome *left = a, *right = b;
    const struct workload_replay_result *l = &left->result, *r = &right->result;
    if (left->is_baseline != right->is_baseline) return left->is_baseline ? 1 : -1;
    if (l->out_of_memory != r->out_of_memory) return l->out_of_memory ? 1 : -1;
    // Of two that ran out, the one that came further.
    if (l->out_of_memory && l->event_count != r->event_count)
        return l->event_count < r->event_count ? 1 : -1;
    if (l->peak_reserved_bytes != r->peak_reserved_bytes)
        return l->peak_reserved_bytes > r->peak_reserved_bytes ? 1 : -1;
    const uint64_t left_calls = l->device_malloc_count + l->device_free_count;
    const uint64_t right_calls = r->device_malloc_count + r->device_free_count;
    if (left_calls != right_calls) return left_calls > right_calls ? 1 : -1;
    return strcmp(left->config_name, right->config_name);
}

void bench_replay_rank(struct bench_replay_outcome *outcomes, size_t count) {
    if (count > 1) qsort(outcomes, count, sizeof *outcomes, compare);
}

double bench_replay_overhead(const struct workload_replay_result *result) {
    if (result->peak_allocated_bytes == 0) return 0;
    return (double)result->peak_reserved_bytes / (double)result->peak_allocated_bytes;
}
