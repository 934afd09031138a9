// Rankings as text for people and as JSON for programs.
#include "bench/replay_outcome.h"

#include "allocator/create.h"
#include "base/check.h"
#include "base/size.h"
#include "base/text.h"
#include "bench/replay_configs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_TEXT 32
#define DASH "-"

// 15495 -> "15,495"
static const char *count_format(uint64_t value, char text[COUNT_TEXT]) {
    char digits[COUNT_TEXT];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *end = text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *end++ = ',';
        *end++ = digits[i];
    }
    *end = 0;
    return text;
}

// Three significant digits, as on the page: 3543348019 -> "3.30 GiB", which aligns in a column.
static const char *size_format(uint64_t bytes, char text[BASE_SIZE_TEXT]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < BASE_KIB) return base_size_format(bytes, text);
    double size = (double)bytes / (double)BASE_KIB;
    size_t unit = 0;
    for (; size >= 1023.5; unit++) size /= (double)BASE_KIB;
    (void)snprintf(text, BASE_SIZE_TEXT, "%.*f %s", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, size,
                   units[unit]);
    return text;
}

static int name_width(const char *name, int width) {
    return (int)strlen(name) > width ? (int)strlen(name) : width;
}

void bench_replay_print_settings(FILE *stream, const struct base_config *configs, int count) {
    int width = 0;
    for (int i = 0; i < count; i++) width = name_width(configs[i].name, width);
    fprintf(stream, "Settings compared:\n");
    for (int i = 0; i < count; i++) {
        char *text = strdup(configs[i].text[0] != 0 ? configs[i].text : "PyTorch's defaults");
        BASE_CHECK(text != NULL);
        base_text_clean(text); // a terminal obeys some of what a configuration may contain
        fprintf(stream, "  %-*s  %s%s\n", width, configs[i].name, text,
                bench_replay_config_caches(configs[i].text) ? ""
                : allocator_text_is_async(configs[i].text)
                    ? " (the driver's pools, as they are simulated: not ranked)"
                    : " (no cache: what is possible, no setting to run)");
        free(text);
    }
    fputc('\n', stream);
}

// The limit that holds for all who have no tighter one of their own; 0: none.
static uint64_t common_limit(const struct bench_replay_outcome *outcomes, size_t count) {
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t limit_bytes = bench_replay_limit_bytes(&outcomes[i].limits);
        if (limit_bytes == 0) return 0;
        if (limit_bytes > most) most = limit_bytes;
    }
    return most;
}

static void print_head(FILE *stream, const struct bench_replay_outcome *outcomes, size_t count) {
    const struct bench_replay_outcome *first = &outcomes[0];
    const uint64_t limit_bytes = common_limit(outcomes, count);
    uint64_t event_count = 0, requested_bytes = 0; // the most: one that ran out of memory saw less
    char limit[BASE_SIZE_TEXT] = "unlimited", requested[BASE_SIZE_TEXT], events[COUNT_TEXT];
    for (size_t i = 0; i < count; i++) {
        const struct workload_replay_result *result = &outcomes[i].result;
        if (result->event_count > event_count) event_count = result->event_count;
        if (result->peak_requested_bytes > requested_bytes)
            requested_bytes = result->peak_requested_bytes;
    }
    if (limit_bytes != 0) base_size_format(limit_bytes, limit);
    fprintf(stream, "%s: %s allocations and frees, at most %s in use at a time\n", first->trace,
            count_format(event_count, events), size_format(requested_bytes, requested));
    fprintf(stream, "  Device memory: %s. Rules: PyTorch %s%s.\n", limit, first->rules,
            first->rules_assumed ? ", assumed, since the recording does not say" : "");
}

static const char *out_of_memory_text(const struct workload_replay_result *result, char *text,
                                      size_t size) {
    char event[COUNT_TEXT];
    if (result->out_of_memory)
        (void)snprintf(text, size, "at %s", count_format(result->out_of_memory_event, event));
    else
        (void)snprintf(text, size, "%s", bench_replay_failed(result) ? "as recorded" : "no");
    return text;
}

static void print_row(FILE *stream, const struct bench_replay_outcome *outcome, size_t place,
                      int width) {
    const struct workload_replay_result *result = &outcome->result;
    const bool is_choice = !outcome->is_limit && !bench_replay_failed(result);
    char reserved[BASE_SIZE_TEXT], memory[2 * COUNT_TEXT], retries[COUNT_TEXT], calls[COUNT_TEXT];
    char over[COUNT_TEXT] = DASH, cost[COUNT_TEXT] = DASH, number[COUNT_TEXT] = DASH;
    if (is_choice) (void)snprintf(number, sizeof number, "%zu.", place);
    if (result->peak_allocated_bytes > 0)
        (void)snprintf(over, sizeof over, "%.3fx", bench_replay_overhead(result));
    if (outcome->ns_per_event >= 0)
        (void)snprintf(cost, sizeof cost, "%.1f ns", outcome->ns_per_event);
    fprintf(stream, "%3s %-*s%s  %13s  %14s  %13s  %7s  %12s  %10s\n", number, width,
            outcome->config_name, outcome->recorded ? " *" : "  ",
            size_format(result->peak_reserved_bytes, reserved), over,
            out_of_memory_text(result, memory, sizeof memory),
            count_format((uint64_t)result->stats.num_alloc_retries, retries),
            count_format(result->device_malloc_count + result->device_free_count, calls), cost);
}

//--------------------------------------------------------------------------------------------------
// What has to be known about single rows.

static void print_self_check(FILE *stream, const struct workload_self_check *check) {
    if (check->exact) {
        fprintf(stream,
                "  * as recorded; self-check 100 %%: %" PRIu64 " blocks, %" PRIu64
                " segments, %" PRIu64 " releases, %" PRIu64 " parts of the layout\n",
                check->block_count, check->segment_count, check->release_count,
                check->layout_count);
        return;
    }
    // Cut off, never rounded up to 100.
    fprintf(stream, "  * as recorded; self-check %.1f %%: the recording differs\n",
            (double)(int)(bench_replay_share_equal(check) * 999) / 10);
    fprintf(stream,
            "    equal are blocks %" PRIu64 "/%" PRIu64 ", segments %" PRIu64 "/%" PRIu64
            ", releases %" PRIu64 "/%" PRIu64 ", layout %" PRIu64 "/%" PRIu64 "\n",
            check->block_equal_count, check->block_count, check->segment_equal_count,
            check->segment_count, check->release_equal_count, check->release_count,
            check->layout_equal_count, check->layout_count);
    fprintf(stream, "    first difference: %s\n", check->first_difference);
}

static void print_recorded(FILE *stream, const struct bench_replay_outcome *outcome) {
    if (strcmp(outcome->config_name, BENCH_REPLAY_RECORDED_NAME) == 0)
        fprintf(stream, "  %s: %s\n", outcome->config_name,
                outcome->config[0] != 0 ? outcome->config : "PyTorch's defaults");
    if (!outcome->recorded) return;
    if (outcome->result.self_check.checked)
        print_self_check(stream, &outcome->result.self_check);
    else
        fprintf(stream, "  * as recorded; no self-check: the trace does not say where its blocks "
                        "were\n");
}

static void print_notes(FILE *stream, const struct bench_replay_outcome *outcomes, size_t count) {
    const uint64_t common_bytes = common_limit(outcomes, count);
    bool assumed = false, went_on = false;
    for (size_t i = 0; i < count; i++) {
        const struct bench_replay_outcome *outcome = &outcomes[i];
        const uint64_t limit_bytes = bench_replay_limit_bytes(&outcome->limits);
        char limit[BASE_SIZE_TEXT];
        print_recorded(stream, outcome);
        if (limit_bytes != common_bytes)
            fprintf(stream,
                    "  %s: process limited to %s, %.1f times default's peak; without a limit it "
                    "collects nothing\n",
                    outcome->config_name, size_format(limit_bytes, limit),
                    BENCH_REPLAY_COLLECTION_LIMIT);
        assumed = assumed || outcome->result.start_assumed;
        went_on = went_on || (!outcome->result.out_of_memory &&
                              bench_replay_failed(&outcome->result));
    }
    if (went_on)
        fprintf(stream, "  Out of memory as recorded: the recorded program met this too, and went "
                        "on.\n");
    if (assumed)
        fprintf(stream, "  The recording begins mid-run: other settings start with its blocks in "
                        "use, without its cache.\n");
}

void bench_replay_print_table(FILE *stream, const struct bench_replay_outcome *outcomes,
                              size_t count) {
    if (count == 0) return;
    int width = (int)strlen("setting");
    for (size_t i = 0; i < count; i++) width = name_width(outcomes[i].config_name, width);
    print_head(stream, outcomes, count);
    fprintf(stream, "    %-*s    %13s  %14s  %13s  %7s  %12s  %10s\n", width, "setting",
            "peak reserved", "over allocated", "out of memory", "retries", "device calls",
            "host/event");
    for (size_t i = 0; i < count; i++) print_row(stream, &outcomes[i], i + 1, width);
    print_notes(stream, outcomes, count);
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
