// Rankings as text for people and as JSON for programs.
#include "bench/replay_outcome.h"

#include "base/size.h"

#include <jansson.h>
#include <string.h>

static void print_head(FILE *stream, const struct bench_replay_outcome *first) {
    char capacity[BASE_SIZE_TEXT] = "unlimited", requested[BASE_SIZE_TEXT];
    if (first->limits.capacity_known)
        (void)base_size_format(first->limits.capacity_bytes, capacity);
    fprintf(stream,
            "%s: %llu allocations and frees, peak requested %s, device memory %s, rules of PyTorch "
            "%s%s\n",
            first->trace, (unsigned long long)first->result.event_count,
            base_size_format(first->result.peak_requested_bytes, requested), capacity, first->rules,
            first->rules_assumed ? " (assumed)" : "");
}

// What was set: the text, and the limit where there is one.
static void setting_text(const struct bench_replay_outcome *outcome, char *text, size_t size) {
    char limit[BASE_SIZE_TEXT];
    const struct bench_replay_limits *limits = &outcome->limits;
    (void)snprintf(text, size, "%s", outcome->config);
    if (limits->fraction <= 0 || limits->fraction >= 1) return;
    const size_t length = strlen(text);
    const uint64_t bytes = (uint64_t)(limits->fraction * (double)limits->capacity_bytes);
    (void)snprintf(text + length, size - length, "%swithin %s", length > 0 ? ", " : "",
                   base_size_format(bytes, limit));
}

static void print_row(FILE *stream, const struct bench_replay_outcome *outcome, size_t place,
                      int name_width) {
    const struct workload_replay_result *result = &outcome->result;
    char reserved[BASE_SIZE_TEXT], cost[32] = "-", memory[48] = "no", number[24] = "-";
    char setting[256];
    if (!outcome->is_baseline) (void)snprintf(number, sizeof number, "%zu.", place);
    if (outcome->ns_per_event >= 0)
        (void)snprintf(cost, sizeof cost, "%.1f ns", outcome->ns_per_event);
    if (result->out_of_memory)
        (void)snprintf(memory, sizeof memory, "at %llu",
                       (unsigned long long)result->out_of_memory_event);
    else if (result->stats.num_ooms > 0)
        (void)snprintf(memory, sizeof memory, "as recorded");
    setting_text(outcome, setting, sizeof setting);
    fprintf(stream, "%3s %-*s%s %13s %12.3fx %12.1f %% %13s %8lld %13llu %10s  %s\n", number,
            name_width, outcome->config_name, outcome->recorded ? "*" : " ",
            base_size_format(result->peak_reserved_bytes, reserved), bench_replay_overhead(result),
            result->fragmentation * 100, memory, (long long)result->stats.num_alloc_retries,
            (unsigned long long)(result->device_malloc_count + result->device_free_count), cost,
            setting);
}

static void print_self_check(FILE *stream, const struct workload_self_check *check) {
    fprintf(
        stream,
        "   * as recorded; self-check %.1f %%: blocks %llu/%llu, segments %llu/%llu, releases "
        "%llu/%llu, layout %llu/%llu\n",
        check->exact ? 100 : (double)(int)(bench_replay_share_equal(check) * 999) / 10,
        (unsigned long long)check->block_equal_count, (unsigned long long)check->block_count,
        (unsigned long long)check->segment_equal_count, (unsigned long long)check->segment_count,
        (unsigned long long)check->release_equal_count, (unsigned long long)check->release_count,
        (unsigned long long)check->layout_equal_count, (unsigned long long)check->layout_count);
    if (!check->exact) fprintf(stream, "     first difference: %s\n", check->first_difference);
}

void bench_replay_print_table(FILE *stream, const struct bench_replay_outcome *outcomes,
                              size_t count) {
    if (count == 0) return;
    int width = (int)strlen("configuration");
    bool assumed = false;
    for (size_t i = 0; i < count; i++) {
        if ((int)strlen(outcomes[i].config_name) > width)
            width = (int)strlen(outcomes[i].config_name);
        assumed = assumed || outcomes[i].result.start_assumed;
    }
    print_head(stream, &outcomes[0]);
    fprintf(stream, "    %-*s  %13s %13s %14s %13s %8s %13s %10s  %s\n", width, "configuration",
            "peak reserved", "of allocated", "fragmentation", "out of memory", "retries",
            "device calls", "host/event", "setting");
    for (size_t i = 0; i < count; i++) print_row(stream, &outcomes[i], i + 1, width);
    for (size_t i = 0; i < count; i++) {
        if (!outcomes[i].recorded) continue;
        if (outcomes[i].result.self_check.checked)
            print_self_check(stream, &outcomes[i].result.self_check);
        else
            fprintf(
                stream,
                "   * as recorded; no self-check: the trace does not say where its blocks were\n");
    }
    if (assumed)
        fprintf(stream, "   The recording begins mid-run: other settings start from its blocks in "
                        "use, without its cache.\n");
    fputc('\n', stream);
}

//--------------------------------------------------------------------------------------------------
// JSON.

static json_t *outcome_json(const struct bench_replay_outcome *outcome) {
    const struct workload_replay_result *result = &outcome->result;
    json_t *json = json_pack(
        "{s:s, s:s, s:b, s:I, s:I, s:f, s:f, s:b, s:I, s:I, s:I}", "config_name",
        outcome->config_name, "config", outcome->config, "recorded", outcome->recorded,
        "peak_reserved_bytes", (json_int_t)result->peak_reserved_bytes, "peak_allocated_bytes",
        (json_int_t)result->peak_allocated_bytes, "reserved_over_allocated",
        bench_replay_overhead(result), "fragmentation", result->fragmentation, "out_of_memory",
        result->out_of_memory, "retries", (json_int_t)result->stats.num_alloc_retries,
        "device_mallocs", (json_int_t)result->device_malloc_count, "device_frees",
        (json_int_t)result->device_free_count);
    if (json == NULL) return NULL;
    if (outcome->ns_per_event >= 0)
        (void)json_object_set_new(json, "ns_per_event", json_real(outcome->ns_per_event));
    if (result->self_check.checked) {
        (void)json_object_set_new(json, "self_check",
                                  json_real(bench_replay_share_equal(&result->self_check)));
        (void)json_object_set_new(json, "self_check_exact", json_boolean(result->self_check.exact));
    }
    return json;
}

enum base_status bench_replay_print_json(FILE *stream,
                                         const struct bench_replay_outcomes *outcomes) {
    json_t *traces = json_array(), *ranking = NULL;
    for (size_t i = 0; i < outcomes->count; i++) {
        const struct bench_replay_outcome *outcome = &outcomes->items[i];
        if (i == 0 || strcmp(outcome->trace, outcomes->items[i - 1].trace) != 0) {
            ranking = json_array();
            (void)json_array_append_new(traces,
                                        json_pack("{s:s, s:s, s:o}", "trace", outcome->trace,
                                                  "rules", outcome->rules, "ranking", ranking));
        }
        (void)json_array_append_new(ranking, outcome_json(outcome));
    }
    json_t *root = json_pack("{s:o}", "traces", traces);
    const bool written =
        root != NULL && json_dumpf(root, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) == 0;
    json_decref(root);
    fputc('\n', stream);
    return written ? BASE_OK : base_status_set(BASE_IO, "the ranking could not be written as JSON");
}
