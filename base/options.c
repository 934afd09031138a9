// Command lines over glibc's argp. argp keeps the table, --help and --usage; getopt, below it,
// words the errors of unknown options and missing values. What argp would add by itself (its
// two-part hint, exit status 64, the path of the binary as the program's name) is replaced, so that
// every program fails alike.
//
// Nothing is copied: names, texts and arguments point into argv, which lives as long as the
// process.
#include "base/options.h"

#include "base/check.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/text.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE_EXIT 2
#define ENVIRONMENT_EXIT 3

// Names of configurations become parts of file names and of table headings.
#define CONFIG_NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

// Keys above the characters: none of the options has a short form. A common option's key is
// KEY_COMMON and its row below; a program's own, KEY_OWN and its row in the program's table.
#define KEY_COMMON 0x1000
#define KEY_OWN 0x2000

static const struct {
    unsigned flag;
    const char *name, *value, *help;
} common_options[] = {
    {BASE_COMMON_CONFIG, "config", "NAME=CONF",
     "an allocator configuration in PyTorch's syntax and a name for it; may be given several "
     "times"},
    {BASE_COMMON_OUT, "out", "DIR", "write results to this directory"},
    {BASE_COMMON_SEED, "seed", "N", "seed of everything random (default 1)"},
    {BASE_COMMON_QUICK, "quick", NULL, "a short run: fewer cases, fewer repetitions"},
    {BASE_COMMON_DEVICE, "device", "PROFILE", "device profile to simulate"},
    {BASE_COMMON_CAPACITY, "capacity", "SIZE", "device memory, for example 80GiB"},
    {BASE_COMMON_FORMAT, "format", "text|json", "form of the output (default text)"},
    {BASE_COMMON_FAULTS, "faults", "FILE", "let CUDA calls fail by this plan (docs/simulator.md)"},
};
#define COMMON_COUNT ((int)(sizeof common_options / sizeof common_options[0]))

struct parse {
    const struct base_program *program;
    struct base_common *common;
};

static _Noreturn void exit_with_hint(const struct base_program *program) {
    fprintf(stderr, "Try '%s --help'\n", program->name);
    exit(USAGE_EXIT);
}

void base_options_usage_error(const struct base_program *program, const char *format, ...) {
    char message[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    base_text_clean(message);
    fprintf(stderr, "%s: %s\n", program->name, message);
    exit_with_hint(program);
}

static uint64_t parse_count(const struct base_program *program, const char *name,
                            const char *text) {
    char *end = NULL;
    errno = 0;
    const unsigned long long value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != 0)
        base_options_usage_error(
            program, "--%s: '%s' is not a number: write digits only, for example 42", name, text);
    if (errno == ERANGE)
        base_options_usage_error(program, "--%s: %s is too large: at most %llu", name, text,
                                 (unsigned long long)UINT64_MAX);
    return value;
}

static double parse_number(const struct base_program *program, const char *name, const char *text) {
    // strtod knows signs, "inf", "nan" and hexadecimal as well: none of them is meant by anybody
    // here.
    char *end = NULL;
    const size_t plausible = strspn(text, "0123456789.eE+-");
    const double value = isdigit((unsigned char)text[0]) || text[0] == '.' ? strtod(text, &end) : 0;
    if (end == NULL || end == text || *end != 0 || text[plausible] != 0)
        base_options_usage_error(program, "--%s: '%s' is not a number: write for example 0.5", name,
                                 text);
    if (!isfinite(value))
        base_options_usage_error(program, "--%s: %s is too large", name, text);
    return value;
}

static uint64_t parse_size(const struct base_program *program, const char *name, const char *text) {
    uint64_t bytes = 0;
    if (base_size_parse(text, &bytes) != BASE_OK)
        base_options_usage_error(program, "--%s: %s", name, base_status_message());
    return bytes;
}

static const char *parse_text(const struct base_program *program, const char *name,
                              const char *text) {
    if (text[0] == 0)
        base_options_usage_error(program, "--%s: the value is empty", name);
    return text;
}

// Grows a caller-owned array by one element.
static void *array_grow(void *array, int count, size_t element_size) {
    void *const grown = reallocarray(array, (size_t)count + 1, element_size);
    BASE_CHECK(grown != NULL);
    return grown;
}

static void parse_config(const struct parse *parse, char *text) {
    static const char example[] = "for example --config split=max_split_size_mb:64";
    struct base_common *const common = parse->common;
    char *const equals = strchr(text, '=');
    if (equals == NULL)
        base_options_usage_error(parse->program, "--config: '%s' has no '=': write NAME=CONF, %s",
                                 text, example);
    // The text stays in argv; its name ends where the sign was.
    *equals = 0;
    const size_t length = strspn(text, CONFIG_NAME_CHARACTERS);
    if (length == 0 || text[length] != 0)
        base_options_usage_error(
            parse->program, "--config: '%s' is no name: use letters, digits, '_', '.' and '-', %s",
            text, example);
    for (int config = 0; config < common->config_count; config++) {
        if (strcmp(common->configs[config].name, text) == 0)
            base_options_usage_error(
                parse->program, "--config: the name '%s' is given twice; names must differ", text);
    }
    common->configs = array_grow(common->configs, common->config_count, sizeof *common->configs);
    common->configs[common->config_count++] = (struct base_config){text, equals + 1};
}

static void parse_common(const struct parse *parse, int row, char *text) {
    struct base_common *const common = parse->common;
    const char *const name = common_options[row].name;
    switch (common_options[row].flag) {
    case BASE_COMMON_CONFIG:
        parse_config(parse, text);
        break;
    case BASE_COMMON_OUT:
        common->out = parse_text(parse->program, name, text);
        break;
    case BASE_COMMON_SEED:
        common->seed = parse_count(parse->program, name, text);
        common->seed_given = true;
        break;
    case BASE_COMMON_QUICK:
        common->quick = true;
        break;
    case BASE_COMMON_DEVICE:
        common->device = parse_text(parse->program, name, text);
        break;
    case BASE_COMMON_FAULTS:
        common->faults = parse_text(parse->program, name, text);
        break;
    case BASE_COMMON_CAPACITY:
        common->capacity = parse_size(parse->program, name, text);
        if (common->capacity == 0)
            base_options_usage_error(parse->program,
                                     "--capacity: a device needs some memory, for example 80GiB");
        break;
    case BASE_COMMON_FORMAT:
        if (strcmp(text, "text") != 0 && strcmp(text, "json") != 0)
            base_options_usage_error(parse->program,
                                     "--format: '%s' is unknown: write text or json", text);
        common->format_json = strcmp(text, "json") == 0;
        break;
    }
}

static void parse_own(const struct parse *parse, const struct base_option *option, char *text) {
    switch (option->kind) {
    case BASE_OPTION_FLAG:
        *(bool *)option->target = true;
        break;
    case BASE_OPTION_COUNT:
        *(uint64_t *)option->target = parse_count(parse->program, option->name, text);
        break;
    case BASE_OPTION_SIZE:
        *(uint64_t *)option->target = parse_size(parse->program, option->name, text);
        break;
    case BASE_OPTION_NUMBER:
        *(double *)option->target = parse_number(parse->program, option->name, text);
        break;
    case BASE_OPTION_TEXT:
        *(const char **)option->target = text;
        break;
    case BASE_OPTION_LIST: {
        struct base_list *const list = option->target;
        list->items = array_grow(list->items, list->count, sizeof *list->items);
        list->items[list->count++] = text;
        break;
    }
    }
}

static error_t parse_key(int key, char *text, struct argp_state *state) {
    const struct parse *const parse = state->input;
    if (key >= KEY_OWN && key < ARGP_KEY_END) {
        parse_own(parse, &parse->program->options[key - KEY_OWN], text);
        return 0;
    }
    if (key >= KEY_COMMON && key < KEY_OWN) {
        parse_common(parse, key - KEY_COMMON, text);
        return 0;
    }
    switch (key) {
    case ARGP_KEY_INIT:
        // Without this stream argp neither prints its hint nor exits: argp_parse returns the error.
        state->err_stream = NULL;
        return 0;
    case ARGP_KEY_ARGS:
        parse->common->arguments = state->argv + state->next;
        parse->common->argument_count = state->argc - state->next;
        return 0;
    default:
        // A single ARGP_KEY_ARG too: argp then offers all of them at once as ARGP_KEY_ARGS.
        return ARGP_ERR_UNKNOWN;
    }
}

static int own_count(const struct base_program *program) {
    int count = 0;
    while (program->options != NULL && program->options[count].name != NULL)
        count++;
    return count;
}

// argp's table: the program's own options, then the common ones it takes.
static struct argp_option *table_create(const struct base_program *program) {
    const int count = own_count(program);
    struct argp_option *const table = calloc((size_t)(count + COMMON_COUNT + 1), sizeof *table);
    BASE_CHECK(table != NULL);
    int rows = 0;
    for (int row = 0; row < count; row++) {
        const struct base_option *const option = &program->options[row];
        table[rows++] =
            (struct argp_option){option->name, KEY_OWN + row, option->value, 0, option->help, 1};
    }
    for (int row = 0; row < COMMON_COUNT; row++) {
        if ((program->common & common_options[row].flag) != 0)
            table[rows++] = (struct argp_option){common_options[row].name,  KEY_COMMON + row,
                                                 common_options[row].value, 0,
                                                 common_options[row].help,  2};
    }
    return table;
}

static void check_argument_count(const struct base_program *program,
                                 const struct base_common *common) {
    const int minimum = program->argument_count_minimum, maximum = program->argument_count_maximum;
    if (common->argument_count < minimum)
        base_options_usage_error(program, "%s missing: expected %s",
                                 common->argument_count == 0 ? "arguments are" : "an argument is",
                                 program->arguments == NULL ? "more" : program->arguments);
    if (maximum >= 0 && common->argument_count > maximum) {
        const char *const surplus = common->arguments[maximum];
        if (program->arguments == NULL)
            base_options_usage_error(program, "'%s' is unexpected: no arguments are taken",
                                     surplus);
        base_options_usage_error(program, "'%s' is one argument too many: expected %s", surplus,
                                 program->arguments);
    }
}

// `bazel run` starts programs in a directory of its own and says here where the user stood.
static void enter_users_directory(const struct base_program *program) {
    const char *const directory = getenv("BUILD_WORKING_DIRECTORY");
    if (directory == NULL || directory[0] == 0 || chdir(directory) == 0)
        return;
    fprintf(stderr, "%s: cannot enter %s (BUILD_WORKING_DIRECTORY): %s\n", program->name, directory,
            strerror(errno));
    exit(ENVIRONMENT_EXIT);
}

// A program may be started with a standard stream closed. The next file that it opens would take
// that number, and what is printed would go into the file.
static void open_standard_streams(void) {
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0) continue;
        // The lowest free number is the one that is missing.
        if (open("/dev/null", O_RDWR) != descriptor) exit(ENVIRONMENT_EXIT);
    }
}

// At exit: output that could not be written is an error like any other, whatever the program did
// since.
static void check_output(int exit_code, void *name) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    const int error = errno;
    fprintf(stderr, "%s: cannot write standard output%s%s\n", (const char *)name,
            error == 0 ? "" : ": ", error == 0 ? "" : strerror(error));
    _exit(exit_code == 0 ? USAGE_EXIT : exit_code);
}

void base_options_parse(const struct base_program *program, int argc, char **argv,
                        struct base_common *common) {
    open_standard_streams();
    // A limit on file sizes (ulimit -f) is then a write that fails, and leaves no temporary behind.
    BASE_CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    BASE_CHECK_EQ(on_exit(check_output, (char *)(uintptr_t)program->name), 0);
    struct argp_option *const table = table_create(program);
    char *documentation = NULL;
    BASE_CHECK(asprintf(&documentation, "%s%s%s", program->summary,
                        program->details == NULL ? "" : "\v",
                        program->details == NULL ? "" : program->details) >= 0);
    // argp's help leaks an empty table that is given, but not one that is absent.
    const struct argp argp = {.options = table[0].name == NULL ? NULL : table,
                              .parser = parse_key,
                              .args_doc = program->arguments,
                              .doc = documentation};
    struct parse parse = {program, common};
    common->arguments = argv + argc;
    common->argument_count = 0;
    // argp and getopt take the program's name from here; a bazel binary's path helps nobody.
    char *const path = argv[0];
    argv[0] = (char *)(uintptr_t)program->name;
    const error_t error = argp_parse(&argp, argc, argv, 0, NULL, &parse);
    argv[0] = path;
    free(documentation);
    free(table);
    if (error != 0)
        exit_with_hint(program);
    check_argument_count(program, common);
    enter_users_directory(program);
}

int base_program_end(const struct base_program *program, enum base_status status) {
    if (status == BASE_OK)
        return 0;
    fprintf(stderr, "%s: %s\n", program->name, base_status_message());
    return status == BASE_INTERRUPTED ? base_interrupt_exit_code() : base_status_exit_code(status);
}
