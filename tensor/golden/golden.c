// Replays PyTorch's tensor logs: does a tensor of this library become what PyTorch's became?
//
//     bazel run //tensor:golden -- rule-view-basic.log views-01.log
//
// Exit 1 if any log differs, each shown at its first difference, or needs an operation that is not
// built (listed); 2 for a log that cannot be read.
#include "base/options.h"
#include "tensor/golden/compare.h"

#include <stdio.h>

static bool is_write;

static const struct base_option options[] = {{"write", NULL, BASE_OPTION_FLAG, &is_write,
                                              "print the logs as they are replayed here instead"},
                                             {0}};

static int write_all(const struct base_common *common) {
    for (int argument = 0; argument < common->argument_count; argument++) {
        const enum base_status status = golden_write(common->arguments[argument], stdout);
        if (status == BASE_OK)
            continue;
        fprintf(stderr, "golden: %s\n", base_status_message());
        return base_status_exit_code(status);
    }
    return 0;
}

static const struct base_program program = {
    .name = "golden",
    .arguments = "LOG...",
    .summary = "Replays logs of PyTorch's tensors and compares impls, storages, sizes, strides, "
               "versions, values, gradients and errors line by line.",
    .details =
        "Exit status: 0 all logs agree, 1 one differs or needs an operation that is not built, "
        "2 one cannot be read.",
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1};

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    if (is_write)
        return write_all(&common);
    size_t counts[GOLDEN_VERDICT_COUNT] = {0}, operations = 0, lines = 0;
    for (int argument = 0; argument < common.argument_count; argument++) {
        static struct golden_result result;
        golden_compare(common.arguments[argument], &result);
        counts[result.verdict]++;
        if (result.verdict == GOLDEN_AGREES) {
            operations += result.operation_count;
            lines += result.line_count;
        }
        golden_result_print(&result, result.verdict == GOLDEN_UNREADABLE ? stderr : stdout);
    }
    printf("%zu logs agree, %zu operations, %zu lines; %zu differ, %zu not built, %zu unreadable\n",
           counts[GOLDEN_AGREES], operations, lines, counts[GOLDEN_DIFFERS],
           counts[GOLDEN_NOT_BUILT], counts[GOLDEN_UNREADABLE]);
    if (counts[GOLDEN_UNREADABLE] > 0)
        return 2;
    return counts[GOLDEN_DIFFERS] + counts[GOLDEN_NOT_BUILT] > 0 ? 1 : 0;
}
