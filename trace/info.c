// trace:info: what files hold and whether they can be replayed, a few lines each.
#include "trace/summary.h"

#include "base/options.h"
#include "base/size.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t memory_limit_bytes;

static const struct base_option options[] = {{"memory", "SIZE", BASE_OPTION_SIZE,
                                              &memory_limit_bytes,
                                              "the most memory that reading a file may take"},
                                             {0}};

static const struct base_program program = {
    .name = "info",
    .arguments = "FILE...",
    .summary = "Says what traces hold: .tmt files and PyTorch memory snapshots, plain or gzipped.",
    .details = "Exit status 2 if a file cannot be read; one that can be read but not replayed is "
               "told with its reason.",
    .common = BASE_COMMON_FORMAT,
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1,
};

//------------------------------------------------------------------------------------------------
// Text.

static void print_size(const char *before, uint64_t bytes) {
    char text[BASE_SIZE_TEXT];
    printf("%s%s", before, base_size_format(bytes, text));
}

static void print_settings(const struct trace *trace) {
    const struct trace_settings *settings = &trace->settings;
    bool assumed;
    const char *version = trace_rules_version(trace, &assumed);
    printf("  rules     torch %s%s\n", version,
           !assumed              ? ""
           : trace->has_pool_ids ? " (assumed: its entries carry pool ids)"
                                 : " (assumed: its entries carry no pool ids)");
    printf("  settings  ");
    if (!settings->known)
        printf("not in the file");
    else
        printf("\"%s\"", settings->config);
    if (settings->capacity_bytes > 0) print_size(", device of ", settings->capacity_bytes);
    if (settings->memory_fraction > 0) printf(", memory fraction %.6g", settings->memory_fraction);
    printf("\n");
    if (trace->source[0] != 0) printf("  source    %s\n", trace->source);
}

static void print_events(const struct trace_summary *summary) {
    printf("%" PRIu64 " events", summary->event_count);
    if (summary->last_time_us > summary->first_time_us)
        printf(" over %.3f s", (double)(summary->last_time_us - summary->first_time_us) / 1e6);
    const char *separator = ": ";
    for (int action = 0; action < TRACE_ACTION_COUNT; action++) {
        if (summary->action_count[action] == 0) continue;
        printf("%s%" PRIu64 " %s", separator, summary->action_count[action],
               trace_action_name((enum trace_action)action));
        separator = ", ";
    }
    printf("\n");
}

static void print_device(const struct trace *trace, int device,
                         const struct trace_summary *summary) {
    printf("  device %-2d ", device);
    print_events(summary);
    printf("            %" PRIu32 " stream%s, %" PRIu32 " pool%s", summary->stream_count,
           summary->stream_count == 1 ? "" : "s", summary->pool_count,
           summary->pool_count == 1 ? "" : "s");
    if (summary->event_count > 0)
        print_size(summary->peak_exact ? ", peak allocated " : ", peak requested by its events ",
                   summary->peak_allocated_bytes);
    if (summary->start_block_count > 0)
        printf(", begins with %" PRIu64 " live blocks in %" PRIu64 " segments",
               summary->start_block_count, summary->start_segment_count);
    printf("\n            ");
    if (!trace_has_placement(trace, device)) {
        printf("placement not recorded: requests only\n");
    } else {
        printf("at the end %" PRIu64 " segments", summary->segment_count);
        print_size(" of ", summary->reserved_bytes);
        printf(": %" PRIu64 " blocks allocated", summary->block_count[TRACE_BLOCK_ALLOCATED]);
        print_size(" (", summary->block_bytes[TRACE_BLOCK_ALLOCATED]);
        printf("), %" PRIu64 " pending free, %" PRIu64 " free\n",
               summary->block_count[TRACE_BLOCK_PENDING_FREE],
               summary->block_count[TRACE_BLOCK_INACTIVE]);
    }
    if (summary->replay_status == BASE_OK)
        printf("  replay    yes\n");
    else
        printf("  replay    no: %s\n", summary->replay_message);
}

static enum base_status print_trace(const struct trace *trace) {
    printf("%s  (%s, %" PRIu32 " device%s)\n", trace->name, trace->format, trace->device_count,
           trace->device_count == 1 ? "" : "s");
    print_settings(trace);
    for (uint32_t device = 0; device < trace->device_count; device++) {
        struct trace_summary summary;
        enum base_status status = trace__summarize(trace, (int)device, &summary);
        if (status != BASE_OK) return status;
        print_device(trace, (int)device, &summary);
    }
    if (trace->device_count == 0) printf("  replay    no: no device, no events, no segments\n");
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// JSON.

static json_t *json_of(uint64_t value) { return json_integer((json_int_t)value); }

static json_t *device_json(int device, bool placement, const struct trace_summary *summary) {
    json_t *actions = json_object();
    for (int action = 0; action < TRACE_ACTION_COUNT; action++) {
        if (summary->action_count[action] > 0)
            json_object_set_new(actions, trace_action_name((enum trace_action)action),
                                json_of(summary->action_count[action]));
    }
    json_t *object = json_object();
    json_object_set_new(object, "device", json_integer(device));
    json_object_set_new(object, "events", json_of(summary->event_count));
    json_object_set_new(object, "actions", actions);
    json_object_set_new(object, "span_us", json_of(summary->last_time_us - summary->first_time_us));
    json_object_set_new(object, "streams", json_of(summary->stream_count));
    json_object_set_new(object, "pools", json_of(summary->pool_count));
    json_object_set_new(object, "start_segments", json_of(summary->start_segment_count));
    json_object_set_new(object, "start_live_blocks", json_of(summary->start_block_count));
    json_object_set_new(object, "placement_recorded", json_boolean(placement));
    json_object_set_new(object, "segments", json_of(summary->segment_count));
    json_object_set_new(object, "reserved_bytes", json_of(summary->reserved_bytes));
    json_object_set_new(object, "blocks_allocated",
                        json_of(summary->block_count[TRACE_BLOCK_ALLOCATED]));
    json_object_set_new(object, "blocks_pending_free",
                        json_of(summary->block_count[TRACE_BLOCK_PENDING_FREE]));
    json_object_set_new(object, "blocks_free", json_of(summary->block_count[TRACE_BLOCK_INACTIVE]));
    json_object_set_new(object, "allocated_bytes",
                        json_of(summary->block_bytes[TRACE_BLOCK_ALLOCATED]));
    json_object_set_new(object,
                        summary->peak_exact ? "peak_allocated_bytes" : "peak_requested_bytes",
                        json_of(summary->peak_allocated_bytes));
    json_object_set_new(object, "replayable", json_boolean(summary->replay_status == BASE_OK));
    if (summary->replay_status != BASE_OK)
        json_object_set_new(object, "reason", json_string(summary->replay_message));
    return object;
}

static json_t *settings_json(const struct trace_settings *settings) {
    json_t *object = json_object();
    json_object_set_new(object, "known", json_boolean(settings->known));
    json_object_set_new(object, "config", json_string(settings->config));
    json_object_set_new(object, "capacity_bytes",
                        settings->capacity_bytes > 0 ? json_of(settings->capacity_bytes)
                                                     : json_null());
    json_object_set_new(object, "memory_fraction",
                        settings->memory_fraction > 0 ? json_real(settings->memory_fraction)
                                                      : json_null());
    return object;
}

static enum base_status add_json(const struct trace *trace, const char *path, json_t *files) {
    bool assumed;
    const char *version = trace_rules_version(trace, &assumed);
    json_t *object = json_object(), *devices = json_array();
    json_object_set_new(object, "file", json_string(path));
    json_object_set_new(object, "name", json_string(trace->name));
    json_object_set_new(object, "format", json_string(trace->format));
    json_object_set_new(object, "source", json_string(trace->source));
    json_object_set_new(object, "rules", json_string(version));
    json_object_set_new(object, "rules_assumed", json_boolean(assumed));
    json_object_set_new(object, "settings", settings_json(&trace->settings));
    json_object_set_new(object, "devices", devices);
    json_array_append_new(files, object);
    for (uint32_t device = 0; device < trace->device_count; device++) {
        struct trace_summary summary;
        enum base_status status = trace__summarize(trace, (int)device, &summary);
        if (status != BASE_OK) return status;
        json_array_append_new(
            devices, device_json((int)device, trace_has_placement(trace, (int)device), &summary));
    }
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The command line.

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    const struct trace_read_options read_options = {.memory_limit_bytes = memory_limit_bytes,
                                                    .no_stacks = true};
    json_t *files = json_array();
    int exit_code = 0;
    for (int i = 0; i < common.argument_count; i++) {
        struct trace *trace = NULL;
        enum base_status status = trace_read(common.arguments[i], &read_options, &trace);
        if (status == BASE_OK)
            status = common.format_json ? add_json(trace, common.arguments[i], files)
                                        : print_trace(trace);
        trace_destroy(trace);
        if (status == BASE_OK) continue;
        fflush(stdout);
        fprintf(stderr, "info: %s\n", base_status_message());
        if (exit_code == 0) exit_code = base_status_exit_code(status);
    }
    if (common.format_json) {
        json_dumpf(files, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(files);
    return exit_code;
}
