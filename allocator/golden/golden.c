// Replays PyTorch's decision logs: does the allocator decide as PyTorch's own did?
//
//     bazel run //allocator:golden -- rule-gc.log default-tight.log
//
// Exit 1 if any log differs, each shown at its first difference; 2 for a log that cannot be read; 3
// if nothing could be compared at all. A log that needs what is not built is listed with the reason
// and not counted.
#include "allocator/golden/compare.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>

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
    .details = "Exit status: 0 all logs that could be compared agree, 1 one differs, 2 one cannot "
               "be read, 3 none could "
               "be compared.",
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1};

static int summarize(const size_t counts[VERDICT_COUNT], size_t line_count) {
    printf("%zu logs agree, %zu lines; %zu differ, %zu not compared, %zu unreadable\n",
           counts[GOLDEN_AGREES], line_count, counts[GOLDEN_DIFFERS], counts[GOLDEN_UNSUPPORTED],
           counts[GOLDEN_UNREADABLE]);
    if (counts[GOLDEN_UNREADABLE] > 0) return 2;
    if (counts[GOLDEN_DIFFERS] > 0) return 1;
    return counts[GOLDEN_AGREES] > 0 ? 0 : 3;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    const struct golden_subject *subject = golden_subject_find(subject_name);
    if (subject == NULL)
        base_options_usage_error(&program, "no subject \"%s\": caching or model", subject_name);

    size_t counts[VERDICT_COUNT] = {0}, line_count = 0;
    for (int argument = 0; argument < common.argument_count; argument++) {
        static struct golden_result result;
        golden_compare(common.arguments[argument], subject, more_settings, &result);
        counts[result.verdict]++;
        if (result.verdict == GOLDEN_AGREES) line_count += result.line_count;
        golden_result_print(&result, result.verdict == GOLDEN_UNREADABLE ? stderr : stdout);
    }
    return summarize(counts, line_count);
}
