// Does the device do what the contract says? Runs the conformance cases, on the simulator or, with
// --config=cuda, on a GPU.
//
//     bazel run //simulator:conformance
//     bazel run --config=cuda //simulator:conformance     the simulator's answer beside the GPU's
#include "base/options.h"
#include "simulator/conformance/coverage.h"
#include "simulator/conformance/conformance.h"
#include "simulator/conformance/measure.h"

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#define DEVICE_WORD "simulator"
#else
#define DEVICE_WORD "device"
#endif

static bool list, coverage, measure;
static struct base_list only;
static const char *plant;

static const struct base_option options[] = {
    {"list", NULL, BASE_OPTION_FLAG, &list, "the cases, and the planted faults of the simulator"},
    {"only", "NAME", BASE_OPTION_LIST, &only, "this case; repeatable"},
    {"coverage", NULL, BASE_OPTION_FLAG, &coverage, "docs/cuda-coverage.md on standard output"},
    {"measure", NULL, BASE_OPTION_FLAG, &measure,
     "how long calls and copies take, as lines of a device profile"},
    {"plant", "NAME", BASE_OPTION_TEXT, &plant, "with this fault planted in the simulator"},
    {0}};

static const struct base_program program = {
    .name = "conformance",
    .summary = "Runs each rule of the CUDA contract as a small case and compares the answers.",
    .details = "Exit status: 0 all answers are as expected (on a GPU: those of verified rules), 1 "
               "some are not, 3 there is no device.",
    .common = BASE_COMMON_FORMAT | BASE_COMMON_FAULTS,
    .options = options};

enum verdict { VERDICT_EXPECTED, VERDICT_ALLOWED, VERDICT_DIFFERENT, VERDICT_SKIPPED };
static const char *const verdict_words[] = {
    [VERDICT_EXPECTED] = "expected",
    [VERDICT_ALLOWED] = "allowed",
    [VERDICT_DIFFERENT] = "DIFFERENT",
    [VERDICT_SKIPPED] = "skipped",
};

struct totals {
    int counts[VERDICT_SKIPPED + 1];
    int different_verified;
};

// --- One case ---

static enum verdict judge(const struct conformance_case *one, const struct conformance *c) {
    if (strcmp(c->answer, one->expected) == 0)
        return VERDICT_EXPECTED;
    return one->also != NULL && strcmp(c->answer, one->also) == 0 ? VERDICT_ALLOWED
                                                                  : VERDICT_DIFFERENT;
}

static const char *status_word(const struct conformance_case *one) {
    return one->status == CONFORMANCE_VERIFIED ? "verified" : "unverified";
}

static void print_text(const struct conformance_case *one, const struct conformance *c,
                       enum verdict verdict) {
    printf("%-9s %s", verdict_words[verdict], one->name);
    if (verdict == VERDICT_SKIPPED)
        printf(": needs %d devices\n", one->device_count);
    else if (verdict == VERDICT_EXPECTED)
        printf(": %s\n", c->answer);
    else
        printf(" (section %s, %s): %s\n          %s: %s\n          expected: %s\n", one->section,
               status_word(one), one->rule, DEVICE_WORD, c->answer, one->expected);
}

// Rules and answers hold no character that JSON would want escaped but the quote.
static void print_json_string(const char *text) {
    putchar('"');
    for (; *text != '\0'; ++text)
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('"');
}

static void print_json(const struct conformance_case *one, const struct conformance *c,
                       enum verdict verdict) {
    printf("{\"case\":\"%s\",\"section\":\"%s\",\"status\":\"%s\",\"verdict\":\"%s\",\"rule\":",
           one->name, one->section, status_word(one), verdict_words[verdict]);
    print_json_string(one->rule);
    printf(",\"simulator\":");
    print_json_string(one->expected);
    if (verdict != VERDICT_SKIPPED) {
        printf(",\"answer\":");
        print_json_string(c->answer);
    }
    printf("}\n");
}

static void run(const struct conformance_case *one, int device_count, bool format_json,
                struct totals *totals) {
    static struct conformance c;
    enum verdict verdict = VERDICT_SKIPPED;
    if (one->device_count <= device_count) {
        conformance_run(one, &c);
        verdict = judge(one, &c);
    }
    ++totals->counts[verdict];
    totals->different_verified +=
        verdict == VERDICT_DIFFERENT && one->status == CONFORMANCE_VERIFIED;
    (format_json ? print_json : print_text)(one, &c, verdict);
    fflush(stdout);
}

// --- All ---

static bool is_chosen(const struct conformance_case *one) {
    for (int i = 0; i < only.count; ++i)
        if (strcmp(only.items[i], one->name) == 0)
            return true;
    return only.count == 0;
}

static void check_chosen(void) {
    for (int i = 0; i < only.count; ++i)
        if (conformance_case_find(only.items[i]) == NULL)
            base_options_usage_error(&program, "no case \"%s\": see --list", only.items[i]);
}

static void print_list(void) {
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            printf("%s (section %s, %s): %s\n", one->name, one->section, status_word(one),
                   one->rule);
#ifdef TIDEMARK_SIMULATOR
    for (int i = 0; sim_plant_name(i) != NULL; ++i)
        printf("--plant %s: %s\n", sim_plant_name(i), sim_plant_text(i));
#endif
}

static void plant_set(void) {
    if (plant == NULL)
        return;
#ifdef TIDEMARK_SIMULATOR
    if (sim_plant(plant) != BASE_OK)
        base_options_usage_error(&program, "%s", base_status_message());
#else
    base_options_usage_error(&program, "--plant is for the simulator, not for a GPU");
#endif
}

static void faults_load(const char *path) {
    if (path == NULL)
        return;
#ifdef TIDEMARK_SIMULATOR
    const enum base_status status = sim_faults_load(path);
    if (status != BASE_OK) {
        fprintf(stderr, "conformance: --faults: %s\n", base_status_message());
        exit(base_status_exit_code(status));
    }
#else
    base_options_usage_error(&program, "--faults needs the simulator; a GPU fails by itself");
#endif
}

// What the machine has while cases run.
static int device_count_find(void) {
#ifdef TIDEMARK_SIMULATOR
    return CONFORMANCE_DEVICE_COUNT;
#else
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        fprintf(stderr, "conformance: no CUDA device: %s\n", cudaGetErrorString(error));
        return 0;
    }
    return count;
#endif
}

static int run_all(bool format_json) {
    const int device_count = device_count_find();
    if (device_count == 0)
        return 3;
    struct totals totals = {0};
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            if (is_chosen(one))
                run(one, device_count, format_json, &totals);
    if (!format_json)
        printf("%d cases as expected, %d otherwise but allowed, %d different (%d of verified "
               "rules), %d skipped\n",
               totals.counts[VERDICT_EXPECTED], totals.counts[VERDICT_ALLOWED],
               totals.counts[VERDICT_DIFFERENT], totals.different_verified,
               totals.counts[VERDICT_SKIPPED]);
#ifdef TIDEMARK_SIMULATOR
    // The simulator has one answer to each.
    return totals.counts[VERDICT_DIFFERENT] + totals.counts[VERDICT_ALLOWED] > 0 ? 1 : 0;
#else
    return totals.different_verified > 0 ? 1 : 0;
#endif
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    check_chosen();
    plant_set();
    faults_load(common.faults);
    if (list) {
        print_list();
        return 0;
    }
    if (coverage) {
        conformance_coverage_print(stdout);
        return 0;
    }
    if (measure)
        return device_count_find() == 0 ? 3 : conformance_measure(stdout);
    return run_all(common.format_json);
}
