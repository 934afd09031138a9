// The golden program itself: that a difference cannot hide, and what bad input gets. A referee that
// never says no is worth nothing, so recorded logs are broken on purpose, line by line.
#include "base/check.h"
#include "base/child.h"
#include "base/file.h"
#include "base/size.h"
#include "tensor/golden/compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "tensor/golden/golden"
#define FOLDER "tensor/golden/testdata/"

static const char *temporary_path(const char *name) {
    static char path[4096];
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/%s", folder == NULL ? "/tmp" : folder, name);
    return path;
}

static const char *log_write(const char *name, const char *text) {
    const char *path = temporary_path(name);
    FILE *file = fopen(path, "w");
    BASE_CHECK(file != NULL);
    fputs(text, file);
    BASE_CHECK_EQ(fclose(file), 0);
    return path;
}

static void program_run(void *context) {
    char *argv[] = {PROGRAM, (char *)context, NULL};
    unsetenv("BUILD_WORKING_DIRECTORY");
    execv(PROGRAM, argv);
    _exit(127);
}

static void check_contains(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fprintf(stderr, "\"%s\" is not in:\n%s\n", part, text);
    BASE_CHECK(strstr(text, part) != NULL);
}

static void check_run(const char *path, int exit_code, const char *output, const char *error) {
    struct base_child child = base_child_run(program_run, (void *)(uintptr_t)path);
    BASE_CHECK_EQ(child.exit_code, exit_code);
    check_contains(child.output_text, output);
    check_contains(child.error_text, error);
    base_child_deinit(&child);
}

static void agreeing_log_exits_0_and_counts(void) {
    check_run(FOLDER "rule-is-set-to.log", 0,
              "1 logs agree, 21 operations, 51 lines; 0 differ, 0 not built, 0 unreadable\n", "");
}

static void changed_value_exits_1_and_shows_both_lines(void) {
    const char *path =
        log_write("changed.log", "ones t0 float32 [2]\n= ok\n"
                                 "t t0 i0 s0 float32 [2] [1] 0 2 v0 - C--D r0 l1 - -\n"
                                 "v t0 1 2\ns s0 8 1 1\n");
    check_run(path, 1, "changed.log: differs at line 4", "");
    check_run(path, 1, "recorded  v t0 1 2\n  replayed  v t0 1 1\n", "");
}

static void operation_that_is_not_built_is_listed_and_exits_1(void) {
    const char *path = log_write("unknown.log", "levitate t0\n= ok\n");
    check_run(path, 1, "unknown.log: line 1: the operation \"levitate\" is not built\n", "");
}

static void unreadable_logs_exit_2_with_a_line(void) {
    check_run("/nonexistent.log", 2, "1 unreadable", "/nonexistent.log");
    check_run(log_write("a.log", "ones t0 float32 [2]\n"), 2, "", "has no outcome");
    check_run(log_write("b.log", "= ok\n"), 2, "", "does not follow an operation");
    check_run(log_write("c.log", "t t0\n"), 2, "", "does not follow an outcome");
    check_run(log_write("d.log", "# nothing\n"), 2, "", "has no operation");
    check_run(log_write("e.log", "ones t0 float33 [2]\n= ok\n"), 2, "", "\"float33\" is no type");
    check_run(log_write("f.log", "ones t0 float32\n= ok\n"), 2, "", "too few arguments");
    check_run(log_write("g.log", "ones t0 float32 [x]\n= ok\n"), 2, "", "\"x\" is no number");
    check_run(log_write("h.log", "ones t float32 [1]\n= ok\n"), 2, "", "is no name");
    check_run(log_write("i.log", "pop\n= ok\n"), 2, "", "no mode to pop");
}

// Every outcome and every detail, in turn with a letter more and left out.
static void any_broken_line_is_found(const char *name) {
    static struct golden_result result;
    char path[256], *text;
    size_t size, tried = 0;
    snprintf(path, sizeof path, FOLDER "%s.log", name);
    BASE_CHECK_EQ(base_file_read(path, BASE_MIB, &text, &size), BASE_OK);
    char *broken = malloc(size + 2);
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n');
        // The words of PyTorch's CPU allocator are the one line that is free.
        const char *free_words = strstr(line, "alloc_cpu");
        const bool is_free = free_words != NULL && free_words < end;
        const bool is_result = (line[0] == '=' || line[1] == ' ') && line[0] != '#' && !is_free;
        for (int way = 0; way < 2 && is_result; way++) {
            const size_t head = (size_t)((way == 0 ? end : line) - text);
            memcpy(broken, text, head);
            if (way == 0) {
                broken[head] = 'X';
                memcpy(broken + head + 1, end, size - head + 1);
            } else {
                strcpy(broken + head, end + 1);
            }
            golden_compare(log_write("broken.log", broken), &result);
            if (result.verdict == GOLDEN_AGREES)
                fprintf(stderr, "%s: not found: %.*s\n", name, (int)(end - line), line);
            BASE_CHECK(result.verdict == GOLDEN_DIFFERS || result.verdict == GOLDEN_UNREADABLE);
            tried++;
        }
        line = end + 1;
    }
    BASE_CHECK_GT(tried, 40);
    free(broken);
    free(text);
}

int main(void) {
    agreeing_log_exits_0_and_counts();
    changed_value_exits_1_and_shows_both_lines();
    operation_that_is_not_built_is_listed_and_exits_1();
    unreadable_logs_exit_2_with_a_line();
    any_broken_line_is_found("rule-view-basic");
    any_broken_line_is_found("rule-weak-refs");
    any_broken_line_is_found("rule-out-and-grad");
    any_broken_line_is_found("rule-storage-resize-zero");
}
