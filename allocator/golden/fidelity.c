// See fidelity.h. Each table here is what its test runs: a row without a run does not exist.
#include "allocator/golden/fidelity.h"

#include "allocator/config_keys.h"
#include "allocator/golden/capture_compare.h"
#include "allocator/golden/capture_logs.h"
#include "allocator/golden/differences.h"
#include "allocator/golden/recorded_logs.h"
#include "allocator/pools.h"
#include "allocator/public_faults/public_faults.h"
#include "allocator/testing.h"

#include <inttypes.h>
#include <string.h>

//--------------------------------------------------------------------------------------------------
// What agrees.

static const char *const hits[] = {GOLDEN_LOGS};
static const char *const streams[] = {GOLDEN_STREAM_LOGS};
static const char *const tables[] = {GOLDEN_TABLE_LOGS};
static const char *const config[] = {GOLDEN_CONFIG_LOGS};
static const char *const setter[] = {GOLDEN_SETTER_LOGS};
static const char *const expandable[] = {GOLDEN_EXPANDABLE_LOGS};
static const char *const memory[] = {GOLDEN_MEMORY_LOGS};
static const char *const pools[] = {GOLDEN_POOL_LOGS};
static const char *const faults[] = {GOLDEN_FAULT_LOGS};

static const struct group {
    const char *about, *config; // what is added to the settings of the logs
    const char *const *logs;
    size_t count, line_count;
} groups[] = {
    {"placement, splitting, merging, garbage collection, statistics", "", hits, GOLDEN_LOG_COUNT,
     GOLDEN_LINE_COUNT},
    {"record_stream, events, device faults", "", streams, GOLDEN_STREAM_LOG_COUNT,
     GOLDEN_STREAM_LINE_COUNT},
    {"rounded sizes", "", tables, GOLDEN_TABLE_LOG_COUNT, GOLDEN_TABLE_LINE_COUNT},
    {"settings strings", "", config, GOLDEN_CONFIG_LOG_COUNT, GOLDEN_CONFIG_LINE_COUNT},
    {"settings given at run time", "", setter, GOLDEN_SETTER_LOG_COUNT, GOLDEN_SETTER_LINE_COUNT},
    {"expandable segments", "", expandable, GOLDEN_EXPANDABLE_LOG_COUNT,
     GOLDEN_EXPANDABLE_LINE_COUNT},
    {"callbacks, rejections, out of memory, no cache", "", memory, GOLDEN_MEMORY_LOG_COUNT,
     GOLDEN_MEMORY_LINE_COUNT},
    {"private and user pools", "", pools, GOLDEN_POOL_LOG_COUNT, GOLDEN_POOL_LINE_COUNT},
    {"PyTorch's faults", "x_torch_faults:True", faults, GOLDEN_FAULT_LOG_COUNT,
     GOLDEN_FAULT_LINE_COUNT},
};
#define GROUP_COUNT (sizeof groups / sizeof groups[0])

#define RECORDED_LOG_COUNT (132 + 240) // all but two, which no setting copies
#define CAPTURE_FAULTS     "x_torch_faults:True"

static const struct golden_result *replay(const char *log, const char *more) {
    static struct golden_result result;
    char path[256];
    const bool is_capture = strchr(log, '.') != NULL;
    snprintf(path, sizeof path, "%s%s.log", is_capture ? GOLDEN_CAPTURE_FOLDER : FIDELITY_LOGS "/",
             log);
    golden_judge(path, &golden_subject_caching, more[0] != '\0' ? more : NULL, &result);
    return &result;
}

// Those that agree, with reuse on or off, and those that record a fault.
struct capture_sums {
    size_t logs[3], lines[3];
};

static struct capture_sums judge_captures(void) {
    struct capture_sums sums = {0};
    size_t count;
    char **const paths = golden_capture_logs(&count);
    for (size_t index = 0; index < count; index++) {
        static struct golden_result result;
        size_t row = strstr(paths[index], ".on.log") != NULL;
        base_check_context("%s line %zu", paths[index], result.line_number);
        golden_judge(paths[index], &golden_subject_caching, NULL, &result);
        if (result.verdict == GOLDEN_DIFFERS_BY_DESIGN && result.difference->fault->setting == NULL)
            continue;
        if (result.verdict == GOLDEN_DIFFERS_BY_DESIGN) {
            row = 2;
            golden_judge(paths[index], &golden_subject_caching, CAPTURE_FAULTS, &result);
        }
        BASE_CHECK_EQ(result.verdict, GOLDEN_AGREES);
        sums.logs[row]++;
        sums.lines[row] += result.line_count;
    }
    base_check_context(NULL);
    golden_capture_logs_free(paths, count);
    return sums;
}

static void print_captures(FILE *output, size_t *logs, size_t *lines) {
    static const char *const about[3] = {
        "graph captures: streams, events, graphs, errors | ",
        "the same with reuse inside a capture | `graph_capture_record_stream_reuse:True`",
        "PyTorch's faults in captures | `" CAPTURE_FAULTS "`"};
    const struct capture_sums sums = judge_captures();
    for (int row = 0; row < 3; row++) {
        fprintf(output, "| %s | %zu | %zu |\n", about[row], sums.logs[row], sums.lines[row]);
        *logs += sums.logs[row];
        *lines += sums.lines[row];
    }
}

static void print_agreement(FILE *output) {
    size_t logs = 0, lines = 0;
    fputs("| about | setting added | logs | lines |\n|---|---|---|---|\n", output);
    for (size_t group = 0; group < GROUP_COUNT; group++) {
        size_t line_count = 0;
        for (size_t log = 0; log < groups[group].count; log++) {
            const struct golden_result *const result =
                replay(groups[group].logs[log], groups[group].config);
            base_check_context("%s line %zu", groups[group].logs[log], result->line_number);
            BASE_CHECK_EQ(result->verdict, GOLDEN_AGREES);
            line_count += result->line_count;
        }
        BASE_CHECK_EQ(line_count, groups[group].line_count);
        fprintf(output, "| %s | %s%s%s | %zu | %zu |\n", groups[group].about,
                groups[group].config[0] != '\0' ? "`" : "", groups[group].config,
                groups[group].config[0] != '\0' ? "`" : "", groups[group].count, line_count);
        logs += groups[group].count;
        lines += line_count;
    }
    base_check_context(NULL);
    print_captures(output, &logs, &lines);
    BASE_CHECK_EQ(logs, RECORDED_LOG_COUNT);
    fprintf(output, "| **together** | | **%zu** | **%zu** |\n", logs, lines);
}

// Lines that count as equal, by an example each: recorded, replayed, and one that does not.
static const struct {
    const char *freedom, *recorded, *replayed, *wrong;
} freedoms[] = {
    {"fewer event queries than PyTorch", "counts = query=117 record=9 event_sync=0",
     "counts = query=100 record=9 event_sync=0", "counts = query=118 record=9 event_sync=0"},
    {"where in PyTorch's source an internal assertion stands",
     "cfg a: = error c10::Error i < n INTERNAL ASSERT FAILED at \"A.h\":123, please report a bug "
     "to "
     "PyTorch. Index",
     "cfg a: = error c10::Error i < n INTERNAL ASSERT FAILED at \"\":0, please report a bug to "
     "PyTorch. Index",
     "cfg a: = error c10::Error i < n INTERNAL ASSERT FAILED at \"\":0, please report a bug to "
     "PyTorch. Other"},
    {"the driver's words in a CUDA error",
     "alloc 4 943718400 0 = error c10::AcceleratorError CUDA error: error\\nSearch for `error' | "
     "m1",
     "alloc 4 943718400 0 = error c10::AcceleratorError CUDA error: invalid argument | m1",
     "alloc 4 943718400 0 = error c10::Error CUDA error: invalid argument | m1"},
};

// The same for lines of a capture.
static const struct {
    const char *freedom, *recorded, *replayed, *wrong;
} capture_freedoms[] = {
    {"in captures PyTorch's own questions to the driver, `q=[...]`", "= ok n1 q=[ci:2 nd:3]",
     "= ok n1", "= ok n2"},
    {"what the streams of an invalidated capture depended on: CUDA does not tell",
     "= status 2 set n0", "= status 2", "= status 1"},
};

static void print_capture_freedoms(FILE *output) {
    for (size_t row = 0; row < sizeof capture_freedoms / sizeof capture_freedoms[0]; row++) {
        base_check_context("%s", capture_freedoms[row].freedom);
        BASE_CHECK(golden_capture_lines_agree("", capture_freedoms[row].recorded,
                                              capture_freedoms[row].replayed));
        BASE_CHECK(!golden_capture_lines_agree("", capture_freedoms[row].recorded,
                                               capture_freedoms[row].wrong));
        fprintf(output, "- %s\n", capture_freedoms[row].freedom);
    }
    fputs("- an operation that crashes PyTorch, tried in a process of its own, does not crash here\n",
          output);
    base_check_context(NULL);
}

static void print_freedoms(FILE *output) {
    for (size_t row = 0; row < sizeof freedoms / sizeof freedoms[0]; row++) {
        base_check_context("%s", freedoms[row].freedom);
        BASE_CHECK(golden_lines_agree(freedoms[row].recorded, freedoms[row].replayed));
        BASE_CHECK(!golden_lines_agree(freedoms[row].recorded, freedoms[row].wrong));
        fprintf(output, "- %s\n", freedoms[row].freedom);
    }
    base_check_context(NULL);
    print_capture_freedoms(output);
}

//--------------------------------------------------------------------------------------------------
// Deliberate differences.

static void print_difference(const struct golden_difference *difference) {
    base_check_context("%s", difference->log);
    const struct golden_result *const result = replay(difference->log, "");
    BASE_CHECK_EQ(result->verdict, GOLDEN_DIFFERS_BY_DESIGN);
    base_check_context(NULL);
}

// A row a fault: the logs that record it follow each other.
static void print_differences(FILE *output) {
    fputs("| recorded in | PyTorch 2.15 | here | why | PyTorch's by |\n|---|---|---|---|---|\n",
          output);
    for (size_t row = 0; row < golden_difference_count;) {
        const struct golden_fault *const fault = golden_differences[row].fault;
        const char *separator = "| ";
        for (; row < golden_difference_count && golden_differences[row].fault == fault; row++) {
            print_difference(&golden_differences[row]);
            fprintf(output, "%s`%s`, from line %zu on", separator, golden_differences[row].log,
                    golden_differences[row].line);
            separator = "; ";
        }
        const char *const quote = fault->setting != NULL ? "`" : "";
        fprintf(output, " | %s | %s | %s | %s%s%s |\n", fault->torch, fault->ours, fault->reason,
                quote, fault->setting != NULL ? fault->setting : "none", quote);
    }
}

// In no log: what is done instead, shown by a few calls.
static bool a_view_means_its_block(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    const cudaStream_t user = testing_stream();
    sim_stream_hold(user, true);
    char *const base = testing_malloc(allocator, 4 << 20, NULL);
    const bool taken = allocator_record_stream(allocator, base + 20, user) == BASE_OK;
    testing_free(allocator, base);
    struct cca_pending_frees numbers;
    BASE_CHECK_EQ(cca_pending_frees(allocator, 0, &numbers), BASE_OK);
    allocator_destroy(allocator);
    return taken && numbers.blocks == 1;
}

static bool a_second_free_is_a_status(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    void *const pointer = testing_malloc(allocator, 4 << 20, NULL);
    testing_free(allocator, pointer);
    const bool refused = allocator_free(allocator, pointer) == BASE_INVALID_POINTER;
    cca_check(allocator);
    allocator_destroy(allocator);
    return refused;
}

static bool a_query_that_fails_keeps_its_event(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    const cudaStream_t user = testing_stream();
    void *const pointer = testing_malloc(allocator, 4 << 20, NULL);
    BASE_CHECK_EQ(allocator_record_stream(allocator, pointer, user), BASE_OK);
    testing_free(allocator, pointer);
    sim_fault_next(SIM_CALL_EVENT_QUERY, 1, cudaErrorUnknown);
    void *other = NULL;
    const bool failed = allocator_malloc(allocator, 0, 512, NULL, &other) == BASE_CUDA;
    const bool goes_on = allocator_malloc(allocator, 0, 4 << 20, NULL, &other) == BASE_OK;
    cca_check(allocator);
    allocator_destroy(allocator);
    return failed && goes_on && other == pointer;
}

static bool accepts_no_stream(void *context, cudaStream_t stream) {
    (void)context;
    (void)stream;
    return false;
}

static bool a_refused_fallback_leaves_the_count(void) {
    struct allocator *const allocator = testing_create("", 64 << 20);
    const struct allocator_pool_id id = {.user = 1};
    void *pointer = NULL;
    int64_t users = 0;
    BASE_CHECK_EQ(cca_pool_begin(allocator, 0, id, NULL), BASE_OK);
    testing_free(allocator, testing_malloc(allocator, 40 << 20, NULL));
    BASE_CHECK_EQ(cca_pool_end(allocator, 0, id), BASE_OK);
    BASE_CHECK_EQ(cca_pool_set_use_on_oom(allocator, 0, id, true), BASE_OK);
    BASE_CHECK_EQ(
        cca_pool_begin(allocator, 0, id, &(struct cca_pool_filter){.accepts = accepts_no_stream}),
        BASE_OK);
    const bool refused =
        allocator_malloc(allocator, 0, 40 << 20, NULL, &pointer) == BASE_INVALID_VALUE;
    BASE_CHECK_EQ(cca_pool_count(allocator, 0, id, &users), BASE_OK);
    allocator_destroy(allocator);
    return refused && users == 2; // two scopes were opened
}

static bool a_pool_with_memory_in_use_stays(void) {
    struct allocator *const allocator = testing_create("expandable_segments:True", BASE_GIB);
    const struct allocator_pool_id id = {.user = 1};
    int64_t users = -1;
    BASE_CHECK_EQ(cca_pool_begin(allocator, 0, id, NULL), BASE_OK);
    testing_free(allocator, testing_malloc(allocator, 40 << 20, NULL)); // mapped at once
    void *const front = testing_malloc(allocator, 20 << 20, NULL);
    (void)testing_malloc(allocator, 20 << 20, NULL);
    BASE_CHECK_EQ(cca_pool_end(allocator, 0, id), BASE_OK);
    testing_free(allocator, front);
    BASE_CHECK_EQ(cca_pool_destroy(allocator, 0, id), BASE_OK); // as many ranges unmapped
    const bool stays = cca_pool_count(allocator, 0, id, &users) == BASE_OK && users == 0;
    cca_check(allocator);
    allocator_destroy(allocator);
    return stays;
}

static const struct {
    const char *torch, *ours;
    bool (*holds)(void);
} instead[] = {
    {"record_stream of an address inside a block finds no block",
     "it means the block around it; `cca_options.refuse_interior_pointers` refuses it",
     a_view_means_its_block},
    {"an address that was freed already is an exception",
     "the same error as a status, with what the address is; nothing changes",
     a_second_free_is_a_status},
    {"a request that falls back on a pool with an open scope fails and leaves a use too many: the "
     "pool is never freed",
     "it fails, and the count stays; `x_torch_faults:True` counts as PyTorch",
     a_refused_fallback_leaves_the_count},
    {"a private pool of expandable segments is forgotten when as many ranges were unmapped as "
     "mapped, memory in use or not",
     "it goes with its last segment", a_pool_with_memory_in_use_stays},
    {"an event query that fails leaves an emptied entry behind, and a later call crashes",
     "the request fails with the driver's error; the event stays queued and is asked again",
     a_query_that_fails_keeps_its_event},
};

static void print_instead(FILE *output) {
    fputs("| PyTorch 2.15 | here |\n|---|---|\n", output);
    for (size_t row = 0; row < sizeof instead / sizeof instead[0]; row++) {
        base_check_context("%s", instead[row].ours);
        BASE_CHECK(instead[row].holds());
        fprintf(output, "| %s | %s |\n", instead[row].torch, instead[row].ours);
    }
    base_check_context(NULL);
}

//--------------------------------------------------------------------------------------------------
// What is wasteful and followed.

static void print_line(void *context, const struct public_fault_line *line) {
    static const char *const relations[] = {"", "below ", "above "};
    base_check_context("%s under '%s'", line->what, line->config);
    BASE_CHECK(public_fault_line_agrees(line));
    base_check_context(NULL);
    fprintf(context, "| | | `%s` | %s: %s%" PRId64 " |\n",
            line->config[0] != '\0' ? line->config : "default", line->what,
            relations[line->relation], line->expected);
}

static void print_wasteful(FILE *output) {
    fputs("| report | what happens | setting | value |\n|---|---|---|---|\n", output);
    for (size_t theme = 0; theme < PUBLIC_FAULT_THEME_COUNT; theme++)
        for (size_t index = 0; index < public_fault_themes[theme].count; index++) {
            const struct public_fault_case *const one = &public_fault_themes[theme].cases[index];
            if (one->better == NULL) continue;
            fprintf(output, "| %s | %s | better: `%s` | |\n", one->names, one->pattern,
                    one->better);
            one->run(&(struct public_fault_teller){print_line, output});
        }
}

//--------------------------------------------------------------------------------------------------
// What is not there.

static void print_absent(FILE *output) {
    fputs("- Settings that are read and told, but act on what is not here:", output);
    const char *separator = "";
    for (size_t key = 0; key < cca__config_key_count; key++) {
        if (cca__config_keys[key].effect != CCA__IDLE) continue;
        fprintf(output, "%s `%s`", separator, cca__config_keys[key].name);
        separator = ",";
    }
    fputs(".\n- Reported faults that are not run here:\n", output);
    for (size_t theme = 0; theme < PUBLIC_FAULT_THEME_COUNT; theme++)
        for (size_t index = 0; index < public_fault_themes[theme].count; index++) {
            const struct public_fault_case *const one = &public_fault_themes[theme].cases[index];
            if (one->run == NULL)
                fprintf(output, "    - %s (%s): %s\n", one->names, one->pattern, one->elsewhere);
        }
}

void fidelity_print(FILE *output) {
    fputs("<!-- Made by `bazel run //allocator:fidelity`; a test keeps it current. -->\n"
          "# How far the allocator decides as PyTorch's does\n\n"
          "PyTorch 2.15's own allocator was recorded, operation by operation: placement, device "
          "calls, statistics, trace, errors and\ntheir numbers. The same operations are performed "
          "here and compared line by line. This page is made by doing so.\n\n"
          "## What agrees\n\n",
          output);
    print_agreement(output);
    fputs("\nLines agree when they are equal. Besides, these freedoms:\n\n", output);
    print_freedoms(output);
    fputs("\nA naive model, written from the rules alone, is compared with the allocator by random "
          "programs over all settings\n(`bazel test //allocator/golden:all`). How to see it: "
          "`bazel run //allocator:golden -- LOG...`; which function decides what:\n"
          "[rules](rules.md).\n\n"
          "## Where it differs on purpose\n\n"
          "Where PyTorch is unsound the default is not:\n\n",
          output);
    print_differences(output);
    fputs("\nOf these there is no recording:\n\n", output);
    print_instead(output);
    fputs(
        "\n## What is wasteful, and followed\n\n"
        "The default decides as PyTorch does also where users reported waste. Settings of our own "
        "([settings](configuration.md))\ndo better, one by one and together; each is off unless "
        "asked for. `bazel run //allocator:public_faults` runs all reports.\n\n",
        output);
    print_wasteful(output);
    fputs("\n## What is not there\n\n", output);
    print_absent(output);
}
