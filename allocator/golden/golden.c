// Replays PyTorch's decision logs: does the allocator decide as PyTorch's own did?
//
//     bazel run //allocator:golden -- rule-gc.log r01.txt
//
// Exit 1 if any log differs, each shown at its first difference; 2 for a log that cannot be read; 3
// if nothing could be compared at all. A log that needs what is not built is listed with the reason
// and not counted; one that records a fault of PyTorch is listed with what is done instead.
#include "allocator/golden/differences.h"
#include "base/check.h"
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#define VERDICT_COUNT (GOLDEN_UNREADABLE + 1)

static const char *subject_name = "caching", *more_settings;

static const struct base_option options[] = {
    {"subject", "NAME", BASE_OPTION_TEXT, &subject_name,
     "what replays: caching (default), or model, the naive one"},
    {"config", "TEXT", BASE_OPTION_TEXT, &more_settings,
     "settings added to each log's, such as x_torch_faults:True"},
    {0}};

static const struct base_program program = {
    .name = "golden",
    .arguments = "LOG...",
    .summary = "Replays decision logs of PyTorch's allocator and compares every placement, "
               "statistic and trace entry.",
    .details = "A script NAME.txt stands for the logs of graph captures beside it, NAME.off.log and "
               "NAME.on.log. A log is replayed once; pages (*.md) are passed over.\n"
               "Exit status: 0 all logs that could be compared agree, or differ by design; 1 one "
               "differs, 2 one cannot be read, 3 none could be compared.",
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1};

struct tally {
    const struct golden_subject *subject;
    size_t counts[VERDICT_COUNT], line_count;
    char **judged; // paths
    size_t judged_count;
};

static void judge(struct tally *tally, const char *path) {
    static struct golden_result result;
    for (size_t index = 0; index < tally->judged_count; index++)
        if (strcmp(tally->judged[index], path) == 0) return;
    char *const copy = strdup(path);
    BASE_CHECK(copy != NULL);
    tally->judged[tally->judged_count++] = copy;
    golden_judge(copy, tally->subject, more_settings, &result);
    tally->counts[result.verdict]++;
    if (result.verdict == GOLDEN_AGREES) tally->line_count += result.line_count;
    golden_result_print(&result, result.verdict == GOLDEN_UNREADABLE ? stderr : stdout);
}

// The length of PATH without SUFFIX; 0 if it does not end so.
static size_t stem_of(const char *path, const char *suffix) {
    const size_t length = strlen(path), suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0
               ? length - suffix_length
               : 0;
}

static void judge_argument(struct tally *tally, const char *path) {
    static const char *const suffixes[] = {"off.log", "on.log"};
    const size_t stem_length = stem_of(path, ".txt");
    if (stem_of(path, ".md") > 0) return;
    if (stem_length == 0) {
        judge(tally, path);
        return;
    }
    for (size_t index = 0; index < 2; index++) {
        char log[4096];
        snprintf(log, sizeof log, "%.*s.%s", (int)stem_length, path, suffixes[index]);
        judge(tally, log);
    }
}

static int summarize(const struct tally *tally) {
    const size_t *const counts = tally->counts;
    printf("%zu logs agree, %zu lines; %zu differ by design, %zu differ, %zu not compared, %zu "
           "unreadable\n",
           counts[GOLDEN_AGREES], tally->line_count, counts[GOLDEN_DIFFERS_BY_DESIGN],
           counts[GOLDEN_DIFFERS], counts[GOLDEN_UNSUPPORTED], counts[GOLDEN_UNREADABLE]);
    if (counts[GOLDEN_UNREADABLE] > 0) return 2;
    if (counts[GOLDEN_DIFFERS] > 0) return 1;
    return counts[GOLDEN_AGREES] + counts[GOLDEN_DIFFERS_BY_DESIGN] > 0 ? 0 : 3;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    struct tally tally = {.subject = golden_subject_find(subject_name)};
    if (tally.subject == NULL)
        base_options_usage_error(&program, "no subject \"%s\": caching or model", subject_name);
    tally.judged = calloc(2 * (size_t)common.argument_count, sizeof *tally.judged);
    BASE_CHECK(tally.judged != NULL);
    for (int argument = 0; argument < common.argument_count; argument++)
        judge_argument(&tally, common.arguments[argument]);
    for (size_t index = 0; index < tally.judged_count; index++) free(tally.judged[index]);
    free(tally.judged);
    return summarize(&tally);
}
