// Command lines: what each one sets, or the exact words and status with which it is refused. Each
// runs in a child, which exits with 7 when the command line is accepted and prints what it
// understood.
#include "base/options.h"

#include "base/check.h"
#include "base/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ACCEPTED 7
#define ARGUMENTS_MAX 24

static bool verbose;
static uint64_t repetitions = 3, budget = 1024;
static double fraction = 0.5;
static const char *label = "none";
static struct base_list traces;

static const struct base_option options[] = {
    {"verbose", NULL, BASE_OPTION_FLAG, &verbose, "say more"},
    {"repetitions", "N", BASE_OPTION_COUNT, &repetitions, "how often"},
    {"budget", "SIZE", BASE_OPTION_SIZE, &budget, "memory to use"},
    {"fraction", "F", BASE_OPTION_NUMBER, &fraction, "share of the memory"},
    {"label", "TEXT", BASE_OPTION_TEXT, &label, "what to call it"},
    {"trace", "FILE", BASE_OPTION_LIST, &traces, "a trace, repeatable"},
    {0}};

static const struct base_program full = {
    .name = "replay",
    .arguments = "TRACE...",
    .summary = "Replays recorded traces.",
    .details = "More is in the README.",
    .common = BASE_COMMON_CONFIG | BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK |
              BASE_COMMON_DEVICE | BASE_COMMON_CAPACITY | BASE_COMMON_FORMAT | BASE_COMMON_FAULTS,
    .options = options,
    .argument_count_minimum = 0,
    .argument_count_maximum = 3};

static const struct base_program bare = {.name = "bare", .summary = "Takes nothing."};

static const struct base_program needs_two = {.name = "convert",
                                              .arguments = "IN OUT",
                                              .summary = "Converts.",
                                              .argument_count_minimum = 2,
                                              .argument_count_maximum = 2};

struct command {
    const struct base_program *program;
    const char *line[ARGUMENTS_MAX]; // without the program; NULL ends it
};

static void print_understood(const struct base_common *common) {
    for (int config = 0; config < common->config_count; config++)
        printf("config %s is '%s'\n", common->configs[config].name, common->configs[config].text);
    printf("out %s seed %llu%s quick %d device %s capacity %llu json %d\n",
           common->out == NULL ? "-" : common->out, (unsigned long long)common->seed,
           common->seed_given ? " given" : "", common->quick,
           common->device == NULL ? "-" : common->device, (unsigned long long)common->capacity,
           common->format_json);
    printf("verbose %d repetitions %llu budget %llu fraction %g label %s\n", verbose,
           (unsigned long long)repetitions, (unsigned long long)budget, fraction, label);
    for (int trace = 0; trace < traces.count; trace++)
        printf("trace %s\n", traces.items[trace]);
    for (int argument = 0; argument < common->argument_count; argument++)
        printf("argument %s\n", common->arguments[argument]);
}

static void parse_command(void *argument) {
    const struct command *const command = argument;
    char *argv[ARGUMENTS_MAX + 2] = {strdup("/long/path/of/bazel-bin/bench/replay_binary")};
    int argc = 1;
    for (; command->line[argc - 1] != NULL; argc++)
        argv[argc] = strdup(command->line[argc - 1]);
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(command->program, argc, argv, &common);
    BASE_CHECK_EQ(strcmp(argv[0], "/long/path/of/bazel-bin/bench/replay_binary"), 0);
    print_understood(&common);
    fflush(stdout);
    // Without the leak checker's pass over copies that a program's own argv would not need.
    _exit(ACCEPTED);
}

static void expect_text(const char *got, const char *expected) {
    if (strcmp(got, expected) == 0)
        return;
    fprintf(stderr, "expected:\n%s\ngot:\n%s\n", expected, got);
    abort();
}

static void expect_accepted(struct command command, const char *understood) {
    struct base_child child = base_child_run(parse_command, &command);
    expect_text(child.error_text, "");
    BASE_CHECK_EQ(child.exit_code, ACCEPTED);
    expect_text(child.output_text, understood);
    base_child_deinit(&child);
}

// REFUSAL is the first line of stderr without the program's name.
static void expect_refused(struct command command, const char *refusal) {
    char expected[2048];
    const char *const name = command.program->name;
    snprintf(expected, sizeof expected, "%s: %s\nTry '%s --help'\n", name, refusal, name);
    struct base_child child = base_child_run(parse_command, &command);
    expect_text(child.error_text, expected);
    expect_text(child.output_text, "");
    BASE_CHECK_EQ(child.exit_code, 2);
    base_child_deinit(&child);
}

#define COMMAND(program, ...) ((struct command){&(program), {__VA_ARGS__ __VA_OPT__(, ) NULL}})

static void no_options_leave_every_default(void) {
    expect_accepted(COMMAND(full), "out - seed 1 quick 0 device - capacity 0 json 0\n"
                                   "verbose 0 repetitions 3 budget 1024 fraction 0.5 label none\n");
}

static void every_option_is_understood_in_any_order(void) {
    expect_accepted(
        COMMAND(full, "a.tmt", "--config", "split=max_split_size_mb:64", "--config=empty=", "--out",
                "results", "--seed", "18446744073709551615", "--verbose", "b.tmt", "--quick"),
        "config split is 'max_split_size_mb:64'\n"
        "config empty is ''\n"
        "out results seed 18446744073709551615 given quick 1 device - capacity 0 json 0\n"
        "verbose 1 repetitions 3 budget 1024 fraction 0.5 label none\n"
        "argument a.tmt\nargument b.tmt\n");
    expect_accepted(COMMAND(full, "--device", "h200", "--capacity", "1.5GiB", "--format", "json",
                            "--repetitions", "0", "--budget=20MiB", "--fraction", ".25", "--label",
                            "", "--trace", "a", "--trace", "b"),
                    "out - seed 1 quick 0 device h200 capacity 1610612736 json 1\n"
                    "verbose 0 repetitions 0 budget 20971520 fraction 0.25 label \n"
                    "trace a\ntrace b\n");
}

static void dashes_alone_end_the_options(void) {
    expect_accepted(COMMAND(full, "a", "--", "--quick", "-"),
                    "out - seed 1 quick 0 device - capacity 0 json 0\n"
                    "verbose 0 repetitions 3 budget 1024 fraction 0.5 label none\n"
                    "argument a\nargument --quick\nargument -\n");
}

static void last_of_a_single_option_counts_and_a_text_may_hold_equals(void) {
    expect_accepted(COMMAND(full, "--format=json", "--format=text", "--config", "a=b=c,d:e"),
                    "config a is 'b=c,d:e'\n"
                    "out - seed 1 quick 0 device - capacity 0 json 0\n"
                    "verbose 0 repetitions 3 budget 1024 fraction 0.5 label none\n");
}

static void wrong_configs_are_refused(void) {
    static const char no_name[] = "is no name: use letters, digits, '_', '.' and '-', for example "
                                  "--config split=max_split_size_mb:64";
    static const char *const wrong_names[] = {"", "a b", "a/b", "a:b", "\xc3\xa4"};
    expect_refused(COMMAND(full, "--config", "max_split_size_mb:64"),
                   "--config: 'max_split_size_mb:64' has no '=': write NAME=CONF, for example "
                   "--config split=max_split_size_mb:64");
    for (int row = 0; row < 5; row++) {
        char config[64], refusal[256];
        snprintf(config, sizeof config, "%s=x:1", wrong_names[row]);
        snprintf(refusal, sizeof refusal, "--config: '%s' %s", wrong_names[row], no_name);
        expect_refused(COMMAND(full, "--config", config), refusal);
    }
    expect_refused(COMMAND(full, "--config", "a=x:1", "--config", "b=", "--config", "a=y:2"),
                   "--config: the name 'a' is given twice; names must differ");
}

static void wrong_numbers_are_refused(void) {
    static const char *const counts[] = {"", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.5", "1e3"};
    for (int row = 0; row < 9; row++) {
        char refusal[256];
        snprintf(refusal, sizeof refusal,
                 "--seed: '%s' is not a number: write digits only, for example 42", counts[row]);
        expect_refused(COMMAND(full, "--seed", counts[row]), refusal);
    }
    expect_refused(
        COMMAND(full, "--repetitions", "18446744073709551616"),
        "--repetitions: 18446744073709551616 is too large: at most 18446744073709551615");
    static const char *const numbers[] = {"",   "-0.5",  "+1",  " 1",  "1 ",
                                          "1x", "0x1p3", "nan", "inf", "."};
    for (int row = 0; row < 10; row++) {
        char refusal[256];
        snprintf(refusal, sizeof refusal, "--fraction: '%s' is not a number: write for example 0.5",
                 numbers[row]);
        expect_refused(COMMAND(full, "--fraction", numbers[row]), refusal);
    }
    expect_refused(COMMAND(full, "--fraction", "1e999"), "--fraction: 1e999 is too large");
}

static void wrong_sizes_are_refused(void) {
    expect_refused(
        COMMAND(full, "--capacity", "-1GiB"),
        "--capacity: '-1GiB' is not a size: write a whole number of bytes below 8 EiB, in B, "
        "KiB, MiB, GiB or TiB, for example 512, 20MiB or 1.5GiB");
    expect_refused(COMMAND(full, "--capacity", "0"),
                   "--capacity: a device needs some memory, for example 80GiB");
    expect_refused(COMMAND(full, "--budget", "9EiB"),
                   "--budget: '9EiB' is not a size: write a whole number of bytes below 8 EiB, in B, "
                   "KiB, MiB, GiB or TiB, for example 512, 20MiB or 1.5GiB");
}

static void wrong_words_are_refused(void) {
    expect_refused(COMMAND(full, "--format", "xml"),
                   "--format: 'xml' is unknown: write text or json");
    expect_refused(COMMAND(full, "--out", ""), "--out: the value is empty");
    expect_refused(COMMAND(full, "--device", ""), "--device: the value is empty");
}

static void unknown_options_are_refused_by_the_programs_name(void) {
    expect_refused(COMMAND(full, "--see", "1", "--unknown"), "unrecognized option '--unknown'");
    expect_refused(COMMAND(full, "-x"), "invalid option -- 'x'");
    expect_refused(COMMAND(full, "--seed"), "option '--seed' requires an argument");
    expect_refused(COMMAND(full, "--quick=1"), "option '--quick' doesn't allow an argument");
    // Common options that the program does not take are unknown to it.
    expect_refused(COMMAND(bare, "--seed", "1"), "unrecognized option '--seed'");
}

static void wrong_argument_counts_are_refused(void) {
    expect_refused(COMMAND(bare, "x"), "'x' is unexpected: no arguments are taken");
    expect_refused(COMMAND(needs_two), "arguments are missing: expected IN OUT");
    expect_refused(COMMAND(needs_two, "a"), "an argument is missing: expected IN OUT");
    expect_refused(COMMAND(needs_two, "a", "b", "c"),
                   "'c' is one argument too many: expected IN OUT");
}

static void help_lists_what_the_program_takes(void) {
    struct command command = COMMAND(full, "--help");
    struct base_child child = base_child_run(parse_command, &command);
    BASE_CHECK_EQ(child.exit_code, 0);
    expect_text(child.error_text, "");
    static const char *const parts[] = {"Usage: replay [OPTION...] TRACE...\n",
                                        "Replays recorded traces.",
                                        "--config=NAME=CONF",
                                        "--repetitions=N",
                                        "--verbose",
                                        "More is in the README."};
    for (int part = 0; part < 6; part++)
        BASE_CHECK(strstr(child.output_text, parts[part]) != NULL);
    BASE_CHECK(strstr(child.output_text, "bazel-bin") == NULL);
    base_child_deinit(&child);
    command = COMMAND(bare, "--help");
    child = base_child_run(parse_command, &command);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK(strstr(child.output_text, "--seed") == NULL);
    base_child_deinit(&child);
}

static void print_directory(void *argument) {
    const char *const directory = argument;
    BASE_CHECK_EQ(setenv("BUILD_WORKING_DIRECTORY", directory, 1), 0);
    struct base_common common = BASE_COMMON_DEFAULTS;
    char *argv[] = {strdup("bare"), NULL};
    base_options_parse(&bare, 1, argv, &common);
    char present[4096];
    BASE_CHECK(getcwd(present, sizeof present) != NULL);
    puts(present);
    free(argv[0]);
}

static void relative_paths_mean_the_users_directory(void) {
    struct base_child child = base_child_run(print_directory, (char[]){"/"});
    BASE_CHECK_EQ(child.exit_code, 0);
    expect_text(child.output_text, "/\n");
    base_child_deinit(&child);
    child = base_child_run(print_directory, (char[]){"/nowhere"});
    BASE_CHECK_EQ(child.exit_code, 3);
    expect_text(
        child.error_text,
        "bare: cannot enter /nowhere (BUILD_WORKING_DIRECTORY): No such file or directory\n");
    base_child_deinit(&child);
}

static void print_much(void *argument) {
    const char *const path = argument;
    struct base_common common = BASE_COMMON_DEFAULTS;
    char *argv[] = {strdup("bare"), NULL};
    if (path == NULL)
        BASE_CHECK_EQ(close(STDOUT_FILENO), 0);
    else
        BASE_CHECK(freopen(path, "w", stdout) != NULL);
    base_options_parse(&bare, 1, argv, &common);
    // A file opened now must not become the standard output.
    FILE *const file = fopen("/dev/null", "w");
    BASE_CHECK(file != NULL && fileno(file) > STDERR_FILENO);
    fclose(file);
    free(argv[0]);
    puts("a result");
    exit(0);
}

static void output_that_cannot_be_written_is_an_error(void) {
    struct base_child child = base_child_run(print_much, (char[]){"/dev/full"});
    expect_text(child.error_text,
                "bare: cannot write standard output: No space left on device\n");
    BASE_CHECK_EQ(child.exit_code, 2);
    base_child_deinit(&child);
}

static void print_beyond_the_limit(void *argument) {
    (void)argument;
    BASE_CHECK_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0}), 0);
    struct base_common common = BASE_COMMON_DEFAULTS;
    char *argv[] = {strdup("bare"), NULL};
    base_options_parse(&bare, 1, argv, &common);
    free(argv[0]);
    puts("a result");
    exit(0);
}

static void a_limit_on_file_sizes_is_a_failed_write(void) {
    struct base_child child = base_child_run(print_beyond_the_limit, NULL);
    // Its sentence is lost too: the child's stderr is a file.
    expect_text(child.error_text, "");
    BASE_CHECK_EQ(child.signal_number, 0);
    BASE_CHECK_EQ(child.exit_code, 2);
    base_child_deinit(&child);
}

static void a_closed_stream_is_opened_to_nowhere(void) {
    struct base_child child = base_child_run(print_much, NULL);
    expect_text(child.error_text, "");
    BASE_CHECK_EQ(child.exit_code, 0);
    base_child_deinit(&child);
}

int main(void) {
    BASE_CHECK_EQ(unsetenv("BUILD_WORKING_DIRECTORY"), 0);
    no_options_leave_every_default();
    every_option_is_understood_in_any_order();
    dashes_alone_end_the_options();
    last_of_a_single_option_counts_and_a_text_may_hold_equals();
    wrong_configs_are_refused();
    wrong_numbers_are_refused();
    wrong_sizes_are_refused();
    wrong_words_are_refused();
    unknown_options_are_refused_by_the_programs_name();
    wrong_argument_counts_are_refused();
    help_lists_what_the_program_takes();
    relative_paths_mean_the_users_directory();
    output_that_cannot_be_written_is_an_error();
    a_limit_on_file_sizes_is_a_failed_write();
    a_closed_stream_is_opened_to_nowhere();
    return 0;
}
