// The program behind //workload:compare, which adds the picture: what a run asked of its allocator,
// beside a recording of the same program elsewhere.
#include "workload/requests.h"

#include "base/file.h"
#include "base/options.h"
#include "base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SLICES 400     // of the steps, each drawn at its most bytes
#define SIZES_SHOWN 12 // those whose numbers differ most

static double peak_limit = 0.05, count_limit = 0.10, distance_limit = 0.10;

static const struct base_option options[] = {
    {"peak", "F", BASE_OPTION_NUMBER, &peak_limit, "largest difference of the peaks (0.05)"},
    {"count", "F", BASE_OPTION_NUMBER, &count_limit,
     "largest difference of the numbers of allocations (0.1)"},
    {"distance", "F", BASE_OPTION_NUMBER, &distance_limit,
     "largest distance of the sizes, after Kolmogorov and Smirnov (0.1)"},
    {0}};

static const struct base_program program = {
    .name = "compare",
    .arguments = "RUN RECORDING",
    .summary = "Compares what two traces ask of an allocator: how much at once, how often, in "
               "which sizes and which order.",
    .details = "Traces are .tmt files or PyTorch memory snapshots. Exit status 1 if a difference "
               "is over its limit. With --out, writes DIR/requests.json, .svg and .png.",
    .common = BASE_COMMON_OUT,
    .options = options,
    .argument_count_minimum = 2,
    .argument_count_maximum = 2,
};

struct side {
    struct trace *trace;
    struct workload_requests requests;
};

static enum base_status side_read(const char *path, struct side *side) {
    const struct trace_read_options read_options = {.no_stacks = true};
    enum base_status status = trace_read(path, &read_options, &side->trace);
    if (status == BASE_OK) status = workload_requests_of(side->trace, 0, &side->requests);
    return status;
}

static void side_deinit(struct side *side) {
    workload_requests_deinit(&side->requests);
    trace_destroy(side->trace);
}

//------------------------------------------------------------------------------------------------
// Text

static bool line(const char *what, const char *run, const char *recording, const char *unit,
                 double difference, double limit) {
    const bool is_over = difference > limit || difference < -limit;
    char text[32];
    if (unit[0] == '%')
        snprintf(text, sizeof text, "%+.2f %%", 100 * difference);
    else
        snprintf(text, sizeof text, "%.4f", difference);
    printf("%-22s %14s %14s %12s   %s %.3g%s\n", what, run, recording, text,
           is_over ? "OVER" : "at most", unit[0] == '%' ? 100 * limit : limit,
           unit[0] == '%' ? " %" : "");
    return is_over;
}

static char *number(char text[BASE_SIZE_TEXT], uint64_t value) {
    snprintf(text, BASE_SIZE_TEXT, "%" PRIu64, value);
    return text;
}

static uint64_t apart(const struct workload_size_use *use) {
    return use->count_a > use->count_b ? use->count_a - use->count_b : use->count_b - use->count_a;
}

static int most_apart(const void *a, const void *b) {
    const struct workload_size_use *left = a, *right = b;
    if (apart(left) != apart(right)) return apart(left) < apart(right) ? 1 : -1;
    return left->size < right->size ? 1 : left->size > right->size ? -1 : 0;
}

static enum base_status sizes_print(const struct workload_requests_difference *difference) {
    struct workload_size_use *uses = malloc(difference->use_count * sizeof *uses);
    if (uses == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for sizes");
    memcpy(uses, difference->uses, difference->use_count * sizeof *uses);
    qsort(uses, difference->use_count, sizeof *uses, most_apart);
    size_t apart_count = 0;
    for (size_t i = 0; i < difference->use_count; i++)
        apart_count += apart(&uses[i]) > 0;
    printf("\n%zu of %zu sizes are asked for equally often", difference->use_count - apart_count,
           difference->use_count);
    if (apart_count > 0)
        printf("; most apart:\n%14s %14s %14s %14s", "bytes", "run", "recording", "difference");
    printf("\n");
    for (size_t i = 0; i < apart_count && i < SIZES_SHOWN; i++)
        printf("%14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %+14" PRId64 "\n", uses[i].size,
               uses[i].count_a, uses[i].count_b, (int64_t)(uses[i].count_a - uses[i].count_b));
    free(uses);
    return BASE_OK;
}

// *over: something is over its limit.
static enum base_status print(const struct side *run, const struct side *recording,
                              const struct workload_requests_difference *difference, bool *over) {
    const struct workload_requests *a = &run->requests, *b = &recording->requests;
    char left[BASE_SIZE_TEXT], right[BASE_SIZE_TEXT];
    printf("%-22s %14s %14s %12s\n", "", "run", "recording", "difference");
    *over = line("peak requested", base_size_format(a->peak_bytes, left),
                 base_size_format(b->peak_bytes, right), "%", difference->peak, peak_limit);
    *over |= line("allocations", number(left, a->count), number(right, b->count), "%",
                  difference->count, count_limit);
    *over |= line("distance of the sizes", "", "", "", difference->size_distance, distance_limit);
    if (a->period > 0 && b->period > 0)
        printf("%-22s %14s %14s\n", "allocations a step", number(left, a->period),
               number(right, b->period));
    if (difference->common < SIZE_MAX)
        printf("%-22s %14zu %14zu %12zu   in common order\n", "allocations and frees",
               a->step_count, b->step_count, difference->common);
    if (difference->first < a->count && difference->first < b->count)
        printf("\nThe first allocation that differs is number %zu: %" PRIu64
               " B in the run, %" PRIu64 " B in the recording\n",
               difference->first, a->sizes[difference->first], b->sizes[difference->first]);
    return sizes_print(difference);
}

//------------------------------------------------------------------------------------------------
// JSON

static json_t *curve_json(const struct workload_requests *requests) {
    json_t *curve = json_array();
    int64_t bytes = 0;
    for (size_t slice = 0; slice < SLICES; slice++) {
        const size_t first = slice * requests->step_count / SLICES;
        const size_t end = (slice + 1) * requests->step_count / SLICES;
        int64_t most = bytes;
        for (size_t i = first; i < end; i++) {
            bytes += requests->steps[i];
            if (bytes > most) most = bytes;
        }
        json_array_append_new(curve, json_integer(most));
    }
    return curve;
}

static json_t *side_json(const struct side *side) {
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "name", side->trace->name, "allocations",
                     (json_int_t)side->requests.count, "peak_requested_bytes",
                     (json_int_t)side->requests.peak_bytes, "allocations_a_step",
                     (json_int_t)side->requests.period, "requested_bytes",
                     curve_json(&side->requests));
}

static json_t *comparison_json(const struct side *run, const struct side *recording,
                               const struct workload_requests_difference *difference) {
    json_t *sizes = json_array();
    for (size_t i = 0; i < difference->use_count; i++) {
        const struct workload_size_use *use = &difference->uses[i];
        json_array_append_new(sizes, json_pack("[I, I, I]", (json_int_t)use->size,
                                               (json_int_t)use->count_a, (json_int_t)use->count_b));
    }
    return json_pack("{s:o, s:o, s:f, s:o}", "run", side_json(run), "recording",
                     side_json(recording), "size_distance", difference->size_distance, "sizes",
                     sizes);
}

static enum base_status json_write(const char *folder, const struct side *run,
                                   const struct side *recording,
                                   const struct workload_requests_difference *difference) {
    char path[4096];
    struct base_file file;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return base_status_set(BASE_IO, "'%s' cannot be made: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/requests.json", folder);
    json_t *object = comparison_json(run, recording, difference);
    if (object == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for %s", path);
    enum base_status status = base_file_create(&file, path);
    if (status == BASE_OK) {
        json_dumpf(object, file.stream, JSON_COMPACT);
        status = base_file_commit(&file);
    }
    json_decref(object);
    return status;
}

//------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    struct side run = {0}, recording = {0};
    struct workload_requests_difference difference = {0};
    bool over = false;
    enum base_status status = side_read(common.arguments[0], &run);
    if (status == BASE_OK) status = side_read(common.arguments[1], &recording);
    if (status == BASE_OK)
        status = workload_requests_compare(&run.requests, &recording.requests, &difference);
    if (status == BASE_OK) status = print(&run, &recording, &difference, &over);
    if (status == BASE_OK && common.out != NULL)
        status = json_write(common.out, &run, &recording, &difference);
    workload_requests_difference_deinit(&difference);
    side_deinit(&run);
    side_deinit(&recording);
    if (status != BASE_OK) {
        fprintf(stderr, "compare: %s\n", base_status_message());
        return base_status_exit_code(status);
    }
    return over ? 1 : 0;
}
