// The room's programs from outside: their lines, their exit statuses, and that equal seeds make
// equal files. Arguments: the paths of info, convert, make and of a recorded trace of 417 entries.
#include "trace/testing.h"

#include "base/check.h"
#include "base/file.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *info, *convert, *make, *recorded;

// Runs a command line in the test's folder; its output, both streams together, valid until the next
// call.
static const char *output_of(int wanted_exit, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *output_of(int wanted_exit, const char *format, ...) {
    static char output[16384];
    char command[2048], line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "F=%s; { %s ; } 2>&1", trace_test_folder(), command);
    FILE *pipe = popen(line, "r");
    BASE_CHECK(pipe != NULL);
    const size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = 0;
    const int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted_exit)
        fprintf(stderr, "%s\n%s", command, output);
    BASE_CHECK(WIFEXITED(status));
    BASE_CHECK_EQ(WEXITSTATUS(status), wanted_exit);
    return output;
}

static void check_contains(const char *output, const char *part) {
    if (strstr(output, part) == NULL) fprintf(stderr, "wanted '%s' in:\n%s", part, output);
    BASE_CHECK(strstr(output, part) != NULL);
}

static bool equal_files(const char *a, const char *b) {
    char path[2][512], *data[2];
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s%s", trace_test_folder(), i == 0 ? a : b);
        BASE_CHECK_EQ(base_file_read(path[i], BASE_GIB, &data[i], &size[i]), BASE_OK);
    }
    const bool equal = size[0] == size[1] && memcmp(data[0], data[1], size[0]) == 0;
    free(data[0]);
    free(data[1]);
    return equal;
}

// The figures are those that PyTorch's own statistics gave for this run.
static void info_tells_what_a_recorded_run_holds(void) {
    const char *output = output_of(0, "%s %s", info, recorded);
    check_contains(output, "mlp__default  (.tmt, 1 device)\n");
    check_contains(output, "rules     torch 2.15.0\n");
    check_contains(output, "settings  \"\", device of 80 GiB\n");
    check_contains(output, "417 events over 3.339 s: 148 alloc, 130 free_requested, 130 "
                           "free_completed, 9 segment_alloc");
    check_contains(output, "1 stream, 1 pool, peak allocated 171 MiB");
    check_contains(output, "at the end 9 segments of 250 MiB: 18 blocks allocated (34.7 MiB), 0 "
                           "pending free, 12 free");
    check_contains(output, "replay    yes\n");
    output = output_of(0, "%s --format json %s", info, recorded);
    check_contains(output, "\"peak_allocated_bytes\": 179325952");
    check_contains(output, "\"reserved_bytes\": 262144000");
    check_contains(output, "\"replayable\": true");
}

static void info_goes_on_after_a_file_it_cannot_read_and_ends_with_2(void) {
    trace_test_file("text", "hello", 5);
    const char *output = output_of(2, "%s $F/text %s $F/none", info, recorded);
    check_contains(output, "text: byte 0: neither a .tmt nor a pickle");
    check_contains(output, "mlp__default  (.tmt");
    check_contains(output, "none: cannot be opened");
    output_of(2, "%s", info);
    output_of(2, "%s --nonsense %s", info, recorded);
}

static void convert_goes_to_a_snapshot_and_back(void) {
    output_of(0, "%s %s $F/way.pickle && %s $F/way.pickle $F/back.tmt --name mlp__default", convert,
              recorded, convert);
    const char *output = output_of(0, "%s $F/back.tmt", info);
    check_contains(output, "mlp__default  (.tmt, 1 device)\n");
    // A snapshot has no place for the version; the pool ids tell.
    check_contains(output, "torch 2.15 (assumed: its entries carry pool ids)");
    check_contains(output, "417 events over 3.339 s");
    check_contains(output, "replay    yes\n");
    output_of(0, "%s %s $F/long.tmt --uncompressed --source 'from a test'", convert, recorded);
    check_contains(output_of(0, "%s $F/long.tmt", info), "source    from a test\n");
}

static void convert_says_what_is_wrong(void) {
    check_contains(output_of(2, "%s %s $F/out.json", convert, recorded),
                   "must end in .tmt or .pickle");
    check_contains(output_of(2, "%s $F/text $F/out.tmt", convert), "neither a .tmt nor a pickle");
    check_contains(output_of(2, "%s %s $F/no/such/folder/out.tmt", convert, recorded),
                   "cannot write");
    check_contains(output_of(2, "%s --memory 1KiB %s $F/out.tmt", convert, recorded),
                   "memory limit of 1 KiB");
    output_of(1, "test -e $F/out.tmt");
}

static void convert_never_writes_over_what_it_reads(void) {
    output_of(0, "cp %s $F/kept.tmt && ln $F/kept.tmt $F/linked.tmt", recorded);
    check_contains(output_of(2, "%s $F/kept.tmt $F/kept.tmt --no-stacks", convert),
                   "OUT is the file IN");
    check_contains(output_of(2, "%s $F/kept.tmt $F/linked.tmt", convert), "OUT is the file IN");
    output_of(0, "cmp %s $F/kept.tmt", recorded);
}

// A stranger's file must not speak to the terminal.
static void names_are_shown_without_control_characters(void) {
    output_of(0, "%s %s $F/named.tmt --name \"$(printf 'a\\033[2Jb\\377')\"", convert, recorded);
    check_contains(output_of(0, "%s $F/named.tmt", info), "a?[2Jb?  (.tmt, 1 device)\n");
    check_contains(output_of(0, "%s --format json $F/named.tmt", info), "\"name\": \"a?[2Jb?\"");
    check_contains(output_of(2, "%s \"$(printf '$F/no\\nfile')\"", info),
                   "no?file: cannot be opened");
}

static void output_that_is_lost_is_an_error(void) {
    check_contains(output_of(2, "%s %s > /dev/full", info, recorded),
                   "info: cannot write standard output");
    check_contains(output_of(2, "%s --help > /dev/full", info),
                   "info: cannot write standard output");
}

static void make_gives_the_same_bytes_for_the_same_seed(void) {
    output_of(0,
              "%s $F/a.tmt --events 20000 --seed 5 --streams 3 && %s $F/b.tmt --events 20000 "
              "--seed 5 --streams 3",
              make, make);
    output_of(0, "%s $F/c.tmt --events 20000 --seed 6 --streams 3", make);
    BASE_CHECK(equal_files("a.tmt", "b.tmt"));
    BASE_CHECK(!equal_files("a.tmt", "c.tmt"));
    const char *output = output_of(0, "%s $F/a.tmt", info);
    check_contains(output, "made by trace:make: profile training, seed 5, 3 streams, 20000 events");
    check_contains(output, "placement not recorded: requests only");
    check_contains(output, "replay    yes\n");
    // As many allocations and frees as were asked for.
    uint64_t allocated = 0, freed = 0;
    BASE_CHECK_EQ(sscanf(strstr(output, " s: ") + 4,
                         "%" SCNu64 " alloc, %" SCNu64 " free_requested", &allocated, &freed),
                  2);
    BASE_CHECK_EQ(allocated + freed, 20000);
}

static void make_streams_a_snapshot_of_the_size_asked_for(void) {
    output_of(0, "%s $F/m.pickle --size 3MiB --seed 9 && %s $F/n.pickle --size 3MiB --seed 9", make,
              make);
    BASE_CHECK(equal_files("m.pickle", "n.pickle"));
    const char *output = output_of(0, "%s $F/m.pickle && wc -c < $F/m.pickle", info);
    check_contains(output, "(PyTorch snapshot, 1 device)");
    check_contains(output, "replay    yes\n");
    const long size = atol(strrchr(strstr(output, "replay"), 's') + 1);
    BASE_CHECK(size > 3 * 1024 * 1024 && size < 3 * 1024 * 1024 + 4096);
}

static void make_says_what_is_wrong(void) {
    check_contains(output_of(2, "%s $F/x.tmt --profile other", make),
                   "must be training, varlen or serving");
    check_contains(output_of(2, "%s $F/x.tmt --streams 65", make), "must be 1 to 64");
    check_contains(output_of(2, "%s $F/x.tmt --size 1MiB", make), "--size is for --format pickle");
    check_contains(output_of(2, "%s $F/x.pickle --size 1MiB --events 5", make),
                   "exclude each other");
    check_contains(output_of(2, "%s $F/x.tmt --format csv", make), "must be tmt or pickle");
    check_contains(output_of(2, "%s $F/x.tmt --events 0", make), "must be 1 or more");
    check_contains(output_of(2, "%s $F/x.tmt --events 1000000000000000", make),
                   "of memory of this machine");
    output_of(1, "test -e $F/x.tmt || test -e $F/x.pickle");
}

int main(int argc, char **argv) {
    BASE_CHECK_EQ(argc, 5);
    info = argv[1];
    convert = argv[2];
    make = argv[3];
    recorded = argv[4];
    info_tells_what_a_recorded_run_holds();
    info_goes_on_after_a_file_it_cannot_read_and_ends_with_2();
    convert_goes_to_a_snapshot_and_back();
    convert_says_what_is_wrong();
    convert_never_writes_over_what_it_reads();
    names_are_shown_without_control_characters();
    output_that_is_lost_is_an_error();
    make_gives_the_same_bytes_for_the_same_seed();
    make_streams_a_snapshot_of_the_size_asked_for();
    make_says_what_is_wrong();
    return 0;
}
