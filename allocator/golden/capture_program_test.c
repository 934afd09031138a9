// The golden program over logs of graph captures: which arguments mean which logs, and what bad
// scripts get.
#include "allocator/golden/capture_logs.h"
#include "allocator/golden/program_check.h"
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEM GOLDEN_CAPTURE_FOLDER "h23_use_mem_pool"

static void a_script_stands_for_its_two_logs_and_a_log_is_replayed_once(void) {
    struct base_child child = program_run((const char *const[]){
        STEM ".off.log", STEM ".on.log", STEM ".txt", GOLDEN_CAPTURE_FOLDER "README.md", NULL});
    BASE_CHECK_EQ(child.exit_code, 0);
    program_check_contains(child.output_text, "h23_use_mem_pool.off: 75 lines agree\n"
                                              "h23_use_mem_pool.on: 75 lines agree\n"
                                              "2 logs agree, 150 lines; 0 differ by design, "
                                              "0 differ, 0 not compared, 0 unreadable\n");
    base_child_deinit(&child);
    child = program_run((const char *const[]){STEM ".txt", NULL});
    program_check_contains(child.output_text, "2 logs agree, 150 lines; ");
    base_child_deinit(&child);
}

static void both_kinds_of_logs_go_in_one_command(void) {
    struct base_child child =
        program_run((const char *const[]){STEM ".on.log", GOLDEN_LOGS_FOLDER "rule-pending.log",
                                          GOLDEN_LOGS_FOLDER "rule-release-split-block.log", NULL});
    BASE_CHECK_EQ(child.exit_code, 0);
    program_check_contains(child.output_text, "h23_use_mem_pool.on: 75 lines agree\n"
                                              "rule-pending: 125 lines agree\n"
                                              "rule-release-split-block: differs by design from "
                                              "line 14 on, agrees under x_torch_faults:True\n");
    program_check_contains(child.output_text, "2 logs agree, 200 lines; 1 differ by design, ");
    base_child_deinit(&child);
}

static void the_model_has_no_captures(void) {
    struct base_child child =
        program_run((const char *const[]){"--subject", "model", STEM ".on.log", NULL});
    BASE_CHECK_EQ(child.exit_code, 3);
    program_check_contains(child.output_text,
                           "h23_use_mem_pool.on: not compared: needs graph captures\n");
    base_child_deinit(&child);
}

static void a_changed_line_exits_1_and_shows_both_lines(void) {
    program_write("h.txt", "stream s1\nmalloc a s1 512\n");
    const char *const log = program_write(
        "h.on.log", "stream s1\n= ok\nmalloc a s1 512\n= 0+0 size 1024 fresh q=[ic:1 cm:1]\n");
    struct base_child child = program_run((const char *const[]){log, STEM ".off.log", NULL});
    BASE_CHECK_EQ(child.exit_code, 1);
    program_check_contains(child.output_text, "h.on: DIFFERS after 3 lines that agree\n");
    program_check_contains(child.output_text, "/h.on.log:4\n");
    program_check_contains(child.output_text, "recorded  = 0+0 size 1024 fresh q=[ic:1 cm:1]\n");
    program_check_contains(
        child.output_text,
        "caching   = 0+0 size 512 fresh ev=[segment_alloc 0+0:2097152@s1; alloc 0+0:512@s1]\n");
    program_check_contains(child.output_text, "h23_use_mem_pool.off: 75 lines agree\n");
    base_child_deinit(&child);
}

static void check_one_line(struct base_child *child, const char *part) {
    BASE_CHECK_EQ(child->exit_code, 2);
    program_check_contains(child->error_text, part);
    BASE_CHECK_EQ(strchr(child->error_text, '\n')[1], '\0');
    base_child_deinit(child);
}

static void malformed_scripts_exit_2_with_file_line_and_reason(void) {
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"stream s1\nmallok a s1 5\n", "/b.txt:2: no operation has this name: \"mallok\""},
        {"malloc a s1 5\n", "/b.txt:1: no earlier line makes this stream: \"s1\""},
        {"malloc a s0\n", "/b.txt:1: a word is missing behind: \"malloc a s0\""},
        {"malloc a s0 5 s0 s0\n", "/b.txt:1: too many words: \"s0\""},
        {"malloc a s0 many\n", "/b.txt:1: a decimal number is needed here: \"many\""},
        {"malloc a+b s0 5\n", "/b.txt:1: a name has letters, digits and _ only: \"a+b\""},
        {"stream s1\nstream s1\n", "/b.txt:2: there is one of this name already: \"s1\""},
        {"\n# x\nevrec e s0\n", "/b.txt:3: no earlier line makes this event: \"e\""},
        {"end G\n", "/b.txt:1: no earlier line begins this capture: \"G\""},
        {"stream s1\nbegin G s1 1;0\n",
         "/b.txt:2: a pool \"A,B\", or \"new\", is needed here: \"1;0\""},
        {"stream s1\nbegin G s1 new lax\n",
         "/b.txt:2: a mode is global, thread or relaxed: \"lax\""},
        {"stream s1\nbegin.to G s1 head\n",
         "/b.txt:2: a stream that an earlier line made, or \"body\", is needed here: \"head\""},
        {"pool_end 1\n", "/b.txt:1: a pool \"A,B\" is needed here: \"1\""},
        {"complete 2\n", "/b.txt:1: 0 or 1 is needed here: \"2\""},
        {"@9 stat\n", "/b.txt:1: helper threads are @1 to @8: \"@9\""},
        {"@1\n", "/b.txt:1: an operation is missing behind: \"@1\""},
        {"probe\n", "/b.txt:1: an operation is missing behind: \"probe\""},
        {"loop 1 2\nloop 1 2\n", "/b.txt:2: a loop stands in a loop"},
        {"loop 1 2\nstat\n", "/b.txt:2: the last loop has no endloop"},
        {"endloop\n", "/b.txt:1: no loop is open"},
        {"# nothing\n", "/b.txt:1: the script has no operation"},
        {"", "/b.txt:0: the script has no operation"},
        {"# conf max_split_size_mb:1\nstat\n", "/b.on.log: "},
    };
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        program_write("b.txt", cases[index].text);
        const char *const log = program_write("b.on.log", "stat\n");
        struct base_child child = program_run((const char *const[]){log, NULL});
        base_check_context("case %zu", index);
        check_one_line(&child, cases[index].reason);
    }
    base_check_context(NULL);
}

static void a_missing_script_or_log_exits_2_and_is_named(void) {
    const char *const alone = program_write("alone.off.log", "stat\n");
    struct base_child child = program_run((const char *const[]){alone, NULL});
    check_one_line(&child, "/alone.txt: ");
    const char *const script = program_write("half.txt", "stream s1\n");
    program_write("half.off.log", "stream s1\n= ok\n");
    child = program_run((const char *const[]){script, NULL});
    program_check_contains(child.output_text, "half.off: 2 lines agree\n");
    check_one_line(&child, "/half.on.log: ");
}

int main(void) {
    a_script_stands_for_its_two_logs_and_a_log_is_replayed_once();
    both_kinds_of_logs_go_in_one_command();
    the_model_has_no_captures();
    a_changed_line_exits_1_and_shows_both_lines();
    malformed_scripts_exit_2_with_file_line_and_reason();
    a_missing_script_or_log_exits_2_and_is_named();
}
