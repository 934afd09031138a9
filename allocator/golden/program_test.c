// The golden program itself: that a difference cannot hide, and what bad input gets. A referee that
// never says no is worth nothing, so a recorded log is broken on purpose, line by line.
#include "allocator/golden/compare.h"
#include "allocator/golden/program_check.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#define GOOD_LOG GOLDEN_LOGS_FOLDER "rule-pending.log"

// Runs the program over one or two logs.
static struct base_child run_over(const char *first, const char *second) {
    return program_run((const char *const[]){"--subject", "model", first, second, NULL});
}

static void agreeing_log_exits_0_and_counts_its_lines(void) {
    struct base_child child = run_over(GOOD_LOG, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    program_check_contains(child.output_text, "rule-pending: 125 lines agree\n");
    program_check_contains(child.output_text,
                   "1 logs agree, 125 lines; 0 differ by design, 0 differ, 0 not compared, "
                           "0 unreadable\n");
    base_child_deinit(&child);
}

static void one_changed_number_exits_1_and_shows_both_lines(void) {
    const char *path = program_write("changed.log", "capacity 1073741824\n"
                                                "alloc 1 1000 0 = 0 0 1024 | M1\n"
                                                "alloc 2 1000 0 = 0 1536 1024\n"
                                                "free 1 = ok\n");
    struct base_child child = run_over(path, GOOD_LOG);
    BASE_CHECK_EQ(child.exit_code, 1);
    program_check_contains(child.output_text, "changed: DIFFERS after 1 lines that agree\n");
    program_check_contains(child.output_text, "changed.log:3\n");
    program_check_contains(child.output_text, "recorded  alloc 2 1000 0 = 0 1536 1024\n");
    program_check_contains(child.output_text, "model     alloc 2 1000 0 = 0 1024 1024\n");
    program_check_contains(child.output_text,
                   "rule-pending: 125 lines agree\n"); // the next file is still compared
    base_child_deinit(&child);
}

static enum golden_verdict compare_text(const char *text, struct golden_result *result) {
    golden_compare(program_write("broken.log", text), &golden_subject_model, NULL, result);
    return result->verdict;
}

// The last character of a line belongs to its outcome or details.
static void every_line_that_is_changed_is_found(void) {
    static struct golden_result result;
    char *text = program_read(GOOD_LOG);
    size_t number = 0;
    for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        number++;
        if (line[0] == '#' || strncmp(line, "capacity", 8) == 0) continue;
        char *last = strchr(line, '\n') - 1;
        const char kept = *last;
        *last = kept == '7' ? '8' : '7';
        base_check_context("line %zu", number);
        BASE_CHECK_EQ(compare_text(text, &result), GOLDEN_DIFFERS);
        BASE_CHECK_EQ(result.line_number, number);
        *last = kept;
    }
    base_check_context(NULL);
    free(text);
}

static void every_detail_line_that_is_missing_or_doubled_is_found(void) {
    static struct golden_result result;
    char *text = program_read(GOOD_LOG);
    char *changed = malloc(2 * strlen(text) + 1);
    BASE_CHECK(changed != NULL);
    for (char *line = text; *line != '\0';) {
        char *next = strchr(line, '\n') + 1;
        if (line[1] == ' ' && line[0] != '#') {
            sprintf(changed, "%.*s%s", (int)(line - text), text, next);
            BASE_CHECK_EQ(compare_text(changed, &result), GOLDEN_DIFFERS);
            sprintf(changed, "%.*s%s", (int)(next - text), text, line);
            BASE_CHECK_EQ(compare_text(changed, &result), GOLDEN_DIFFERS);
        }
        line = next;
    }
    free(changed);
    free(text);
}

static void malformed_lines_exit_2_with_file_line_and_reason(void) {
    const struct {
        const char *text, *reason;
    } cases[] = {
        {"capacity much\nstat = ok\n",
         "bad.log:1: \"capacity much\": the capacity must be a decimal number of bytes"},
        {"capacity 1024\n# x\nalloc 1 1000 0\n", "bad.log:3: \"alloc 1 1000 0\" has no outcome"},
        {"s allocation 0\n",
         "bad.log:1: the detail line \"s allocation 0\" has no operation before it"},
        {"free 1 = none\nconfig max_split_size_mb:64\n",
         "bad.log:2: the header \"config max_split_size_mb:64\" stands after"},
        {"allocate 1 1000 0 = 0 0 1024\n",
         "bad.log:1: \"allocate 1 1000 0\": no operation has this name"},
        {"free 1 = none\nalloc 1 1000 = 0 0 1024\n",
         "bad.log:2: \"alloc 1 1000\": the operation reads \"alloc ID BYTES STREAM\""},
        {"alloc 1 -5 0 = 0 0 1024\n",
         "bad.log:1: \"alloc 1 -5 0\": the size must be a decimal number, not \"-5\""},
        {"alloc 1 5 8 = 0 0 1024\n",
         "bad.log:1: \"alloc 1 5 8\": the stream is 8, at most 7 is possible"},
        {"alloc 99999999999 5 0 = 0 0 512\n", "the id is 99999999999, at most"},
        {"alloc 1 0 0 = - 0 0\nalloc 1 0 0 = - 0 0\n",
         "bad.log:2: \"alloc 1 0 0\": this id is in use"},
        {"fraction x = ok\n", "bad.log:1: \"fraction x\": the fraction must be a number"},
        {"# nothing\n", "bad.log:1: the log has no operation"},
        {"", "bad.log:0: the log has no operation"},
        {"config max_split_size_mb:1\nstat = ok\n", "bad.log: "},
        {"config max_split_size_mb:1\nstat = ok\n", "max_split_size_mb too small"},
    };
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        struct base_child child = run_over(program_write("bad.log", cases[index].text), NULL);
        base_check_context("case %zu", index);
        BASE_CHECK_EQ(child.exit_code, 2);
        program_check_contains(child.error_text, cases[index].reason);
        BASE_CHECK_EQ(strchr(child.error_text, '\n')[1], '\0'); // one line
        base_child_deinit(&child);
    }
    base_check_context(NULL);
}

static void missing_file_exits_2_and_names_it(void) {
    struct base_child child = run_over("no/such.log", GOOD_LOG);
    BASE_CHECK_EQ(child.exit_code, 2);
    program_check_contains(child.error_text, "no/such.log");
    program_check_contains(child.output_text, "rule-pending: 125 lines agree\n");
    base_child_deinit(&child);
}

static void log_without_its_last_newline_is_read_whole(void) {
    static struct golden_result result;
    BASE_CHECK_EQ(compare_text("alloc 1 0 0 = - 0 0\nfree 1 = ok", &result), GOLDEN_AGREES);
    BASE_CHECK_EQ(result.line_count, 2);
}

static void what_is_not_built_is_named_and_not_counted(void) {
    const char *path = program_write("later.log", "pool create 1 0 0 = ok\nalloc 1 0 0 = - 0 0\n");
    struct base_child alone = run_over(path, NULL);
    BASE_CHECK_EQ(alone.exit_code, 3);
    program_check_contains(alone.output_text, "later: not compared: needs private pools (line 1)\n");
    program_check_contains(alone.output_text,
                   "0 logs agree, 0 lines; 0 differ by design, 0 differ, 1 not compared, "
                           "0 unreadable\n");
    base_child_deinit(&alone);
    struct base_child beside = run_over(path, GOOD_LOG);
    BASE_CHECK_EQ(beside.exit_code, 0);
    program_check_contains(beside.output_text,
                   "1 logs agree, 125 lines; 0 differ by design, 0 differ, 1 not compared, "
                           "0 unreadable\n");
    base_child_deinit(&beside);

    static struct golden_result result;
    BASE_CHECK_EQ(compare_text("alloc 1 0 0 = - 0 0\npool create 1 0 0 = ok\n", &result),
                  GOLDEN_UNSUPPORTED);
    BASE_CHECK_EQ(result.line_number, 2);
    BASE_CHECK(strcmp(result.reason, "needs private pools") == 0);
}

static void freedoms_of_the_format_are_the_only_ones(void) {
    BASE_CHECK(
        golden_lines_agree("counts = query=7 record=5 used=0", "counts = query=3 record=5 used=0"));
    BASE_CHECK(!golden_lines_agree("counts = query=7 record=5 used=0",
                                   "counts = query=8 record=5 used=0"));
    BASE_CHECK(!golden_lines_agree("counts = query=7 record=5 used=0",
                                   "counts = query=7 record=4 used=0"));
    const char *const recorded = "alloc 7 9 0 = error c10::AcceleratorError CUDA error: x | m1";
    BASE_CHECK(golden_lines_agree(recorded, "alloc 7 9 0 = error c10::AcceleratorError y | m1"));
    BASE_CHECK(!golden_lines_agree(recorded, "alloc 7 9 0 = error c10::AcceleratorError y | m2"));
    BASE_CHECK(!golden_lines_agree(recorded, "alloc 7 9 0 = error c10::Error CUDA error: x | m1"));
    BASE_CHECK(golden_lines_agree("error = CUDA error: x", "error = no luck: cudaErrorUnknown"));
    BASE_CHECK(!golden_lines_agree("error = CUDA error: x", "error = CUDA out of memory"));
    BASE_CHECK(!golden_lines_agree("free 1 = ok", "free 1 = none"));
    const char *const assertion = "set x = error c10::Error i < n INTERNAL ASSERT FAILED at "
                                  "\"a.h\":7, please report a bug to "
                                  "PyTorch. Out of bounds";
    BASE_CHECK(golden_lines_agree(
        assertion,
        "set x = error c10::Error i < n INTERNAL ASSERT FAILED at \"\":0, please report a "
        "bug to PyTorch. Out of bounds"));
    BASE_CHECK(!golden_lines_agree(
        assertion,
        "set x = error c10::Error i < n INTERNAL ASSERT FAILED at \"\":0, please report a "
        "bug to PyTorch. Out of order"));
    BASE_CHECK(!golden_lines_agree(
        assertion,
        "set x = error c10::Error j < n INTERNAL ASSERT FAILED at \"\":0, please report a "
        "bug to PyTorch. Out of bounds"));
}

int main(void) {
    agreeing_log_exits_0_and_counts_its_lines();
    one_changed_number_exits_1_and_shows_both_lines();
    every_line_that_is_changed_is_found();
    every_detail_line_that_is_missing_or_doubled_is_found();
    malformed_lines_exit_2_with_file_line_and_reason();
    missing_file_exits_2_and_names_it();
    log_without_its_last_newline_is_read_whole();
    what_is_not_built_is_named_and_not_counted();
    freedoms_of_the_format_are_the_only_ones();
}
