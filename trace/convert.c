// trace:convert: between trace formats. Reads what trace_read reads; writes .tmt or a PyTorch
// snapshot, by the name of OUT.
#include "trace/build.h"
#include "trace/snapshot_write.h"

#include "base/options.h"
#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool no_stacks, uncompressed;
static const char *source, *name;
static uint64_t memory_limit_bytes;

static const struct base_option options[] = {
    {"no-stacks", NULL, BASE_OPTION_FLAG, &no_stacks, "leave out the call stacks"},
    {"uncompressed", NULL, BASE_OPTION_FLAG, &uncompressed, "leave the .tmt uncompressed"},
    {"source", "TEXT", BASE_OPTION_TEXT, &source,
     "where the recording comes from, kept in the .tmt"},
    {"name", "TEXT", BASE_OPTION_TEXT, &name, "the trace's name (default: the one it has)"},
    {"memory", "SIZE", BASE_OPTION_SIZE, &memory_limit_bytes,
     "the most memory that reading IN may take"},
    {0}};

static const struct base_program program = {
    .name = "convert",
    .arguments = "IN OUT",
    .summary = "Converts between trace formats: OUT ends in .tmt, or in .pickle for a PyTorch "
               "memory snapshot.",
    .details = "Capacity, memory fraction and version from the JSON beside a snapshot are carried "
               "into a .tmt; a snapshot has no place "
               "for them.",
    .options = options,
    .argument_count_minimum = 2,
    .argument_count_maximum = 2,
};

static bool has_suffix(const char *path, const char *suffix) {
    const size_t length = strlen(path), suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

// Under whatever names.
static bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static enum base_status convert(const char *in, const char *out, bool pickle) {
    const struct trace_read_options read_options = {.memory_limit_bytes = memory_limit_bytes,
                                                    .no_stacks = no_stacks};
    struct trace *trace = NULL;
    enum base_status status = trace_read(in, &read_options, &trace);
    if (status == BASE_OK && source != NULL) status = trace_set_text(&trace->source, source);
    if (status == BASE_OK && name != NULL) status = trace_set_text(&trace->name, name);
    if (status == BASE_OK)
        status =
            pickle ? trace_write_snapshot(trace, out) : trace_write(trace, out, !uncompressed);
    trace_destroy(trace);
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    const char *out = common.arguments[1];
    const bool pickle = has_suffix(out, ".pickle") || has_suffix(out, ".pkl");
    if (!pickle && !has_suffix(out, ".tmt"))
        base_options_usage_error(&program, "%s: its name must end in .tmt or .pickle", out);
    // A conversion may lose what OUT's format has no place for: the recording itself stays.
    if (is_same_file(common.arguments[0], out))
        base_options_usage_error(&program, "%s: OUT is the file IN; give another name", out);
    base_interrupt_install();
    enum base_status status = convert(common.arguments[0], out, pickle);
    return base_program_end(&program, status);
}
