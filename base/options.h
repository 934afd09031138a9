// Command lines, the same everywhere: GNU argp underneath, the project's common options on top.
//
// A program fills a struct base_program, names the common options it takes, adds options of its own
// as a plain table, and calls base_options_parse. `--help` and `--usage` come from argp (exit 0); a
// wrong command line is one line on stderr with a pointer to --help, exit 2.
//
//     static const struct base_option options[] = {
//         {"fraction", "F", BASE_OPTION_NUMBER, &fraction, "memory fraction, 0 to 1"},
//         {0}};
//     struct base_common common = BASE_COMMON_DEFAULTS;
//     const struct base_program program = {
//         .name = "replay",
//         .arguments = "TRACE...",
//         .summary = "Replays recorded traces under allocator configurations.",
//         .common = BASE_COMMON_CONFIG | BASE_COMMON_OUT | BASE_COMMON_SEED,
//         .options = options,
//         .argument_count_minimum = 1,
//         .argument_count_maximum = -1};
//     base_options_parse(&program, argc, argv, &common);
//
// On return relative paths in arguments and --out mean the directory the user stood in
// (BUILD_WORKING_DIRECTORY, which `bazel run` sets): the process has changed into it. From here on
// the standard streams are open, and a program that ends with output it could not write (a full
// disk) says so and ends with 2.
#ifndef TIDEMARK_BASE_OPTIONS_H
#define TIDEMARK_BASE_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

// One `--config NAME=CONF`: a named allocator configuration string.
struct base_config {
    const char *name;
    const char *text;
};

// Which of the common options a program takes.
enum {
    BASE_COMMON_CONFIG = 1 << 0,   // --config NAME=CONF, repeatable
    BASE_COMMON_OUT = 1 << 1,      // --out DIR
    BASE_COMMON_SEED = 1 << 2,     // --seed N
    BASE_COMMON_QUICK = 1 << 3,    // --quick
    BASE_COMMON_DEVICE = 1 << 4,   // --device PROFILE
    BASE_COMMON_CAPACITY = 1 << 5, // --capacity SIZE
    BASE_COMMON_FORMAT = 1 << 6,   // --format text|json
    BASE_COMMON_FAULTS = 1 << 7,   // --faults FILE
};

struct base_common {
    struct base_config *configs; // in order of the command line; the caller frees the array
    int config_count;
    const char *out; // NULL if not given
    uint64_t seed;
    bool seed_given;
    bool quick;
    const char *device; // NULL if not given
    uint64_t capacity;  // bytes; 0 if not given
    const char *faults; // a fault plan of the simulator (docs/simulator.md); NULL if not given
    bool format_json;   // --format json
    char **arguments;   // what is left, in order
    int argument_count;
};
#define BASE_COMMON_DEFAULTS {.seed = 1}

enum base_option_kind {
    BASE_OPTION_FLAG,   // bool
    BASE_OPTION_COUNT,  // uint64_t, decimal
    BASE_OPTION_SIZE,   // uint64_t, base_size_parse
    BASE_OPTION_NUMBER, // double
    BASE_OPTION_TEXT,   // const char *
    BASE_OPTION_LIST,   // struct base_list: repeatable text
};

struct base_list {
    const char **items; // the caller frees the array
    int count;
};

struct base_option {
    const char *name;  // long name, without dashes; NULL ends the table
    const char *value; // what --help calls its value, NULL for a flag
    enum base_option_kind kind;
    void *target; // written when the option is given; its value before is the default
    const char *help;
};

struct base_program {
    const char *name;
    const char *arguments; // as shown in --help, for example "TRACE..."; NULL for none
    const char *summary;   // one sentence
    const char *details;   // further text of --help, or NULL
    unsigned common;       // BASE_COMMON_*
    const struct base_option *options;
    int argument_count_minimum, argument_count_maximum; // maximum -1: any number
};

// Parses, or prints one line and exits with 2 (0 after --help).
void base_options_parse(const struct base_program *program, int argc, char **argv,
                        struct base_common *common);

// For checks that argp cannot make: prints "PROGRAM: MESSAGE" and "Try 'PROGRAM --help'", exits 2.
void base_options_usage_error(const struct base_program *program, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

// How main ends: 0, or STATUS's sentence behind the program's name on stderr and its exit status; of
// an interrupt (base/progress.h) the signal's.
int base_program_end(const struct base_program *program, enum base_status status) BASE_MUST_USE;

#endif
