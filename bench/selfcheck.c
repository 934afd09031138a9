// Replays every recording that it finds under its own configuration and limits: what share of its
// blocks, segments, releases and final layout comes out as recorded? One line a file; a file that
// cannot be replayed has to say why, by name.
//
// Passed: all equal, or refused for a named reason (a feature that the replay does not have, no
// history, another kind of file). Failed: any difference, a file that should be readable and is
// not.
#include "base/options.h"
#include "base/progress.h"
#include "bench/replay_run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_DEPTH_MAX 16

struct tally {
    uint64_t passed, failed, exact;
};

static uint64_t expected_exact;

static const struct base_option options[] = {{"expect-exact", "N", BASE_OPTION_COUNT,
                                              &expected_exact,
                                              "fail if fewer than N files were replayed exactly"},
                                             {0}};

static const struct base_program program = {
    .name = "selfcheck",
    .arguments = "FILE|FOLDER...",
    .summary =
        "Replays recordings under their own configuration and says how much came out as recorded.",
    .details = "Folders are searched for *.pickle, *.tmt, *.json and *.replay files, each also "
               "gzipped. Exit status 1 if a "
               "recording that can be replayed did not come out exactly.",
    .common = BASE_COMMON_CAPACITY,
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1,
};

//--------------------------------------------------------------------------------------------------
// Files.

struct file_list {
    char **paths;
    size_t count, capacity;
};

static void list_add(struct file_list *list, const char *path) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        list->paths = realloc(list->paths, list->capacity * sizeof *list->paths);
    }
    char *copy = strdup(path);
    if (list->paths == NULL || copy == NULL) {
        fprintf(stderr, "selfcheck: no memory for a list of files\n");
        exit(base_status_exit_code(BASE_HOST_MEMORY));
    }
    list->paths[list->count++] = copy;
}

static bool ends_in(const char *name, size_t length, const char *suffix) {
    const size_t suffix_length = strlen(suffix);
    return length > suffix_length &&
           memcmp(name + length - suffix_length, suffix, suffix_length) == 0;
}

static bool is_recording(const char *name) {
    static const char *const suffixes[] = {".pickle", ".pkl", ".tmt", ".json", ".replay"};
    size_t length = strlen(name);
    if (ends_in(name, length, ".gz")) length -= 3;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (ends_in(name, length, suffixes[i])) return true;
    return false;
}

// A JSON beside a snapshot of the same name describes it and is read with it.
static bool is_sidecar(const char *path) {
    static const char *const snapshots[] = {".pickle", ".pickle.gz", ".pkl", ".pkl.gz"};
    const size_t length = strlen(path);
    if (!ends_in(path, length, ".json")) return false;
    for (size_t i = 0; i < sizeof snapshots / sizeof snapshots[0]; i++) {
        char other[4096];
        struct stat found;
        if (snprintf(other, sizeof other, "%.*s%s", (int)(length - 5), path, snapshots[i]) >=
            (int)sizeof other)
            continue;
        if (stat(other, &found) == 0) return true;
    }
    return false;
}

static _Noreturn void refuse_argument(const char *path, const char *why) {
    fprintf(stderr, "selfcheck: '%s' %s\n", path, why);
    exit(base_status_exit_code(BASE_IO));
}

static void find_files(struct file_list *list, const char *path, int depth);

static void find_in_folder(struct file_list *list, const char *path, int depth) {
    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "selfcheck: %s: cannot be read: %s\n", path, strerror(errno));
        exit(base_status_exit_code(BASE_IO));
    }
    for (int i = 0; i < count; i++) {
        char below[4096];
        const bool fits =
            snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name) < (int)sizeof below;
        if (entries[i]->d_name[0] != '.' && fits) find_files(list, below, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

// At depth 0 stands what the user named: it is taken whatever its name is.
static void find_files(struct file_list *list, const char *path, int depth) {
    struct stat found;
    const bool there = stat(path, &found) == 0;
    if (there && S_ISDIR(found.st_mode)) {
        if (depth < FOLDER_DEPTH_MAX) find_in_folder(list, path, depth);
    } else if (depth == 0 || (is_recording(path) && !is_sidecar(path))) {
        list_add(list, path);
    }
}

// What the user names is there and holds something to check: else nothing would be checked, and
// nothing could fail.
static void find_named(struct file_list *list, const char *path) {
    const size_t count = list->count;
    if (access(path, R_OK) != 0) {
        char why[256];
        (void)snprintf(why, sizeof why, "cannot be read: %s", strerror(errno));
        refuse_argument(path, why);
    }
    find_files(list, path, 0);
    if (list->count == count) refuse_argument(path, "holds no recording");
}

//--------------------------------------------------------------------------------------------------
// One file.

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void print_result(const char *name, const struct workload_replay_result *result) {
    const struct workload_self_check *check = &result->self_check;
    // Rounded down, so that 100 % means all.
    const double percent =
        check->exact ? 100 : (double)(int)(bench_replay_share_equal(check) * 999) / 10;
    printf(
        "%5.1f %%  blocks %llu/%llu segments %llu/%llu releases %llu/%llu layout %llu/%llu  %s\n",
        percent, (unsigned long long)check->block_equal_count,
        (unsigned long long)check->block_count, (unsigned long long)check->segment_equal_count,
        (unsigned long long)check->segment_count, (unsigned long long)check->release_equal_count,
        (unsigned long long)check->release_count, (unsigned long long)check->layout_equal_count,
        (unsigned long long)check->layout_count, name);
    if (check->exact) return;
    if (result->out_of_memory)
        printf("         ended at event %llu, which found no memory: %s\n",
               (unsigned long long)result->out_of_memory_event, result->out_of_memory_message);
    printf("         first difference: %s\n", check->first_difference);
}

static enum base_status check_device(const struct trace *trace, int device, const char *name,
                                     uint64_t capacity, struct tally *tally) {
    struct workload_replay_plan *plan;
    enum base_status status = workload_replay_plan_create(trace, device, &plan);
    if (status != BASE_OK) return status;
    bool assumed;
    const struct bench_replay_setup setup = {
        .plan = plan,
        .rules = trace_rules_version(trace, &assumed),
        .config = trace->settings.config != NULL ? trace->settings.config : "",
        .limits = bench_replay_limits_of(trace, capacity, -1),
        .recorded = true};
    struct workload_replay_result result;
    status = bench_replay_observe(&setup, &result, NULL);
    workload_replay_plan_destroy(plan);
    if (status != BASE_OK) return status;
    if (!result.self_check.checked) {
        status =
            base_status_set(BASE_UNSUPPORTED, "holds requests only, no placement to compare with");
    } else {
        print_result(name, &result);
        tally->exact += result.self_check.exact;
        if (result.self_check.exact)
            tally->passed++;
        else
            tally->failed++;
    }
    workload_replay_result_deinit(&result);
    return status;
}

static bool has_events(const struct trace *trace, int device) {
    return trace->device_event_first[device + 1] > trace->device_event_first[device];
}

// The name of a device's history: the file's, and which device if several have one.
static void history_name(const struct trace *trace, int device, const char *path, char name[512]) {
    unsigned histories = 0;
    for (uint32_t i = 0; i < trace->device_count; i++) histories += has_events(trace, (int)i);
    if (histories > 1)
        (void)snprintf(name, 512, "%s device %d", base_name(path), device);
    else
        (void)snprintf(name, 512, "%s", base_name(path));
}

// A reason was given. GRACEFUL: it is one that a file may have; else the file is damaged or
// misread.
static void refuse(const char *name, const char *path, bool graceful, struct tally *tally) {
    const char *message = base_status_message();
    const size_t length = strlen(path);
    if (strncmp(message, path, length) == 0 && message[length] == ':') message += length + 2;
    printf("not replayed: %s  %s\n", message, name);
    if (graceful)
        tally->passed++;
    else
        tally->failed++;
}

// Of the kinds of files that are looked at, these are logs of other programs.
static bool is_other_log(const char *path) {
    size_t length = strlen(path);
    if (ends_in(path, length, ".gz")) length -= 3;
    return ends_in(path, length, ".json") || ends_in(path, length, ".replay");
}

static void check_file(const char *path, uint64_t capacity, struct tally *tally) {
    struct trace *trace;
    enum base_status status =
        trace_read(path, &(struct trace_read_options){.no_stacks = true}, &trace);
    if (status != BASE_OK) {
        const bool other = status == BASE_FORMAT && is_other_log(path);
        refuse(base_name(path), path, other || status == BASE_UNSUPPORTED, tally);
        return;
    }
    bool any = false;
    for (int device = 0; device < (int)trace->device_count; device++) {
        // A file without any history says so once, for its first device.
        if (!has_events(trace, device) && (any || device + 1 < (int)trace->device_count)) continue;
        any = true;
        char name[512];
        history_name(trace, device, path, name);
        status = check_device(trace, device, name, capacity, tally);
        if (status != BASE_OK)
            refuse(name, path, status == BASE_UNSUPPORTED || status == BASE_FORMAT, tally);
    }
    trace_destroy(trace);
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    struct file_list list = {0};
    for (int i = 0; i < common.argument_count; i++) find_named(&list, common.arguments[i]);
    struct tally tally = {0};
    for (size_t i = 0; i < list.count; i++) {
        if (base_interrupted()) {
            fprintf(stderr, "selfcheck: interrupted; %zu of %zu files are checked\n", i,
                    list.count);
            return base_interrupt_exit_code();
        }
        check_file(list.paths[i], common.capacity, &tally);
        (void)fflush(stdout);
        free(list.paths[i]);
    }
    free(list.paths);
    printf("replayed exactly: %llu of %zu files\n", (unsigned long long)tally.exact, list.count);
    bool enough = tally.exact >= expected_exact;
    if (!enough) printf("expected at least %llu\n", (unsigned long long)expected_exact);
    printf("selfcheck: %llu passed, %llu failed\n", (unsigned long long)tally.passed,
           (unsigned long long)(tally.failed + !enough));
    return tally.failed == 0 && enough ? 0 : 1;
}
