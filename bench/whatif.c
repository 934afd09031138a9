// Is a replay what PyTorch would have done? From the recording of each program under the default
// settings, every other setting of the matrix is computed and compared with what PyTorch did under
// it: peaks, what is reserved at the end, segments, device calls, retries, requests that failed.
// One line a cell that differs, and a table of all.
//
//     whatif FOLDER      with matrix.json, and PROGRAM__default.pickle, .pickle.gz or .tmt
//
// matrix.json: {PROGRAM: {SETTING: {"conf", "fraction", "capacity", and the figures}}}.
#include "base/options.h"
#include "bench/replay_run.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTING_DEFAULT "default"
#define FIGURE_COUNT    11
#define COLUMNS_MAX     32

static uint64_t expected_cells;

static const struct base_option options[] = {{"expect-exact", "N", BASE_OPTION_COUNT,
                                              &expected_cells,
                                              "fail if fewer than N cells came out exactly"},
                                             {0}};

static const struct base_program program = {
    .name = "whatif",
    .arguments = "FOLDER",
    .summary = "Computes from default recordings what PyTorch does under other settings, and "
               "compares it with what PyTorch did.",
    .details = "FOLDER holds matrix.json and the recordings PROGRAM__default. Exit status 1 if a "
               "figure differs.",
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = 1,
};

static const char *const names[FIGURE_COUNT] = {
    "peak_reserved",   "peak_active",      "peak_allocated",    "peak_requested",
    "final_reserved",  "peak_segments",    "final_segments",    "num_device_alloc",
    "num_device_free", "num_alloc_retries", "num_ooms",
};

static _Noreturn void fail(const char *what, const char *name, enum base_status status) {
    fprintf(stderr, "whatif: %s: %s\n", name, what);
    exit(base_status_exit_code(status));
}

//--------------------------------------------------------------------------------------------------
// One cell.

static void figures_of(const struct workload_replay_result *result, int64_t figures[FIGURE_COUNT]) {
    const struct allocator_stats *stats = &result->stats;
    const int64_t taken[FIGURE_COUNT] = {
        stats->reserved_bytes[ALLOCATOR_STAT_ALL].peak,
        stats->active_bytes[ALLOCATOR_STAT_ALL].peak,
        stats->allocated_bytes[ALLOCATOR_STAT_ALL].peak,
        stats->requested_bytes[ALLOCATOR_STAT_ALL].peak,
        stats->reserved_bytes[ALLOCATOR_STAT_ALL].current,
        stats->segment[ALLOCATOR_STAT_ALL].peak,
        (int64_t)result->final_snapshot.segment_count,
        stats->num_device_alloc,
        stats->num_device_free,
        stats->num_alloc_retries,
        stats->num_ooms,
    };
    memcpy(figures, taken, sizeof taken);
}

// How many figures differ; each is told.
static int compare(const char *workload, const char *setting, json_t *cell,
                   const struct workload_replay_result *result) {
    int64_t figures[FIGURE_COUNT];
    int different = 0;
    figures_of(result, figures);
    for (int i = 0; i < FIGURE_COUNT; i++) {
        const json_t *recorded = json_object_get(cell, names[i]);
        if (!json_is_integer(recorded)) fail("a figure is missing", names[i], BASE_FORMAT);
        if (json_integer_value(recorded) == figures[i]) continue;
        printf("%s %s: %s is %lld, PyTorch's %lld\n", workload, setting, names[i],
               (long long)figures[i], (long long)json_integer_value(recorded));
        different++;
    }
    return different;
}

static int run_cell(const char *workload, const char *setting, json_t *cell,
                    const struct trace *trace, const struct workload_replay_plan *plan) {
    const json_t *fraction = json_object_get(cell, "fraction");
    const char *config = json_string_value(json_object_get(cell, "conf"));
    if (config == NULL) fail("\"conf\" is missing", setting, BASE_FORMAT);
    bool assumed;
    const struct bench_replay_setup setup = {
        .plan = plan,
        .rules = trace_rules_version(trace, &assumed),
        .config = config,
        .limits = bench_replay_limits_of(
            trace, (uint64_t)json_integer_value(json_object_get(cell, "capacity")),
            json_is_number(fraction) ? json_number_value(fraction) : -1),
        .recorded = strcmp(setting, SETTING_DEFAULT) == 0};
    struct workload_replay_result result;
    const enum base_status status = bench_replay_observe(&setup, &result, NULL);
    if (status != BASE_OK) {
        printf("%s %s: %s\n", workload, setting, base_status_message());
        return FIGURE_COUNT;
    }
    const int different = compare(workload, setting, cell, &result);
    workload_replay_result_deinit(&result);
    return different;
}

//--------------------------------------------------------------------------------------------------
// One program, a line of the table.

struct tally {
    uint64_t exact, cells;
};

static struct trace *read_default(const char *folder, const char *workload) {
    static const char *const endings[] = {"pickle", "pickle.gz", "tmt"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s__" SETTING_DEFAULT ".%s", folder, workload,
                     endings[i]) >= (int)sizeof path ||
            access(path, R_OK) != 0)
            continue;
        struct trace *trace;
        const enum base_status status =
            trace_read(path, &(struct trace_read_options){.no_stacks = true}, &trace);
        if (status != BASE_OK) fail(base_status_message(), path, status);
        return trace;
    }
    fail("has no recording under the default settings", workload, BASE_IO);
}

static void run_workload(const char *folder, const char *workload, json_t *cells, char *line,
                         size_t line_size, struct tally *tally) {
    struct trace *const trace = read_default(folder, workload);
    struct workload_replay_plan *plan;
    enum base_status status = workload_replay_plan_create(trace, 0, &plan);
    if (status != BASE_OK) fail(base_status_message(), workload, status);
    size_t length = (size_t)snprintf(line, line_size, "%-10s", workload);
    const char *setting;
    json_t *cell;
    json_object_foreach(cells, setting, cell) {
        const int different = run_cell(workload, setting, cell, trace, plan);
        if (length < line_size)
            length += (size_t)snprintf(line + length, line_size - length, "  %*s",
                                       (int)strlen(setting), different == 0 ? "=" : "DIFFERS");
        tally->cells++;
        tally->exact += different == 0;
    }
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void print_head(json_t *cells) {
    const char *setting;
    json_t *cell;
    printf("%-10s", "");
    json_object_foreach(cells, setting, cell) printf("  %s", setting);
    putchar('\n');
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    const char *const folder = common.arguments[0];
    char path[4096];
    snprintf(path, sizeof path, "%s/matrix.json", folder);
    json_error_t error;
    json_t *const matrix = json_load_file(path, 0, &error);
    if (matrix == NULL) fail(error.text, path, BASE_FORMAT);
    struct tally tally = {0};
    static char lines[COLUMNS_MAX][1024];
    size_t line_count = 0;
    const char *workload;
    json_t *cells, *first = NULL;
    json_object_foreach(matrix, workload, cells) {
        if (line_count == COLUMNS_MAX) fail("too many programs", path, BASE_LIMIT);
        if (first == NULL) first = cells;
        run_workload(folder, workload, cells, lines[line_count], sizeof lines[0], &tally);
        (void)fflush(stdout);
        line_count++;
    }
    if (tally.cells == 0) fail("names no program with its settings", path, BASE_FORMAT);
    print_head(first);
    for (size_t i = 0; i < line_count; i++) puts(lines[i]);
    printf("exact: %llu of %llu cells\n", (unsigned long long)tally.exact,
           (unsigned long long)tally.cells);
    json_decref(matrix);
    const bool enough = tally.exact >= expected_cells;
    if (!enough) printf("expected at least %llu\n", (unsigned long long)expected_cells);
    return tally.exact == tally.cells && enough ? 0 : 1;
}
