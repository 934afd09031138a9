// The litmus program from outside: what it prints, and how it ends.
#include "base/check.h"
#include "base/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM   "simulator/litmus/litmus"
#define GOOD_FILE "simulator/litmus/testdata/stream.litmus"

static const char *file_write(const char *name, const char *text) {
    static char path[4096];
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/%s", folder == NULL ? "/tmp" : folder, name);
    FILE *file = fopen(path, "w");
    BASE_CHECK(file != NULL);
    fputs(text, file);
    BASE_CHECK_EQ(fclose(file), 0);
    return path;
}

struct arguments {
    const char *items[4];
};

static void program_run(void *context) {
    const struct arguments *arguments = context;
    char *argv[8] = {PROGRAM, "--seeds", "40"};
    for (int i = 0; i < 4; ++i)
        argv[3 + i] = (char *)(uintptr_t)arguments->items[i];
    unsetenv("BUILD_WORKING_DIRECTORY");
    execv(PROGRAM, argv);
    _exit(127);
}

static struct base_child run(const char *first, const char *second, const char *third) {
    struct arguments arguments = {{first, second, third, NULL}};
    return base_child_run(program_run, &arguments);
}

static void check_contains(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fprintf(stderr, "\"%s\" is not in:\n%s\n", part, text);
    BASE_CHECK(strstr(text, part) != NULL);
}

static void right_cases_exit_0_and_are_counted(void) {
    struct base_child child = run(GOOD_FILE, NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    check_contains(child.output_text, "seeds 1 to 40\n");
    // 21 * (1 + 1 + 40 + 40) runs; grep counts ten races.
    check_contains(child.output_text,
                   "races found          listed    eager     lazy   random     held\n");
    check_contains(child.output_text,
                   "all                      10       10       10       10       10\n");
    check_contains(child.output_text, "21 cases judged in 1722 runs, 1722 of them under the race "
                                      "checker: 21 right, 0 wrong;");
    base_child_deinit(&child);
}

static void one_case_under_one_schedule_can_be_chosen(void) {
    struct base_child child = run("--schedule=random", "--case=stream-write-write", GOOD_FILE);
    BASE_CHECK_EQ(child.exit_code, 0);
    check_contains(child.output_text, "1 cases judged in 40 runs, 40 of them under the race "
                                      "checker: 1 right, 0 wrong;");
    base_child_deinit(&child);
}

static void wrong_outcome_exits_1_and_shows_it(void) {
    const char *path = file_write("wrong.litmus", "case wrong\nkind stream\n"
                                                  "stream s nonblocking 0\ndevice a 1 0 0\n"
                                                  "do 0 A kernel s set a 1\n"
                                                  "verdict ok\noutcome a=2\nend\n");
    struct base_child child = run("--quiet", path, NULL);
    BASE_CHECK_EQ(child.exit_code, 1);
    check_contains(child.output_text, "WRONG in 82 runs; the first: wrong under eager: a forbidden "
                                      "outcome\n    left a=1\n    allowed a=2\n");
    base_child_deinit(&child);
    child = run("--format=json", path, NULL);
    BASE_CHECK_EQ(child.exit_code, 1);
    check_contains(child.output_text, "{\"case\":\"wrong\",\"kind\":\"stream\",\"right\":false,");
    base_child_deinit(&child);
}

static void wrong_verdict_exits_1_and_shows_what_was_reported(void) {
    const char *path = file_write("quiet.litmus", "case quiet\nkind stream\n"
                                                  "stream s nonblocking 0\n"
                                                  "stream t nonblocking 0\ndevice a 1 0 0\n"
                                                  "do 0 A kernel s set a 1\n"
                                                  "do 0 B kernel t set a 1\n"
                                                  "verdict ok\noutcome a=1\nend\n");
    struct base_child child = run("--schedule=random", path, NULL);
    BASE_CHECK_EQ(child.exit_code, 1);
    check_contains(child.output_text,
                   "WRONG in 40 runs; the first: quiet under random:1: a race that is none: "
                   "write-write A B a\n    reported write-write A B a\n    listed nothing\n");
    base_child_deinit(&child);
    child = run("--verdicts=0", path, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    base_child_deinit(&child);
}

static void answers_are_what_was_observed(void) {
    const char *path = file_write("answers.litmus", "case answers\nkind stream\n"
                                                    "stream s nonblocking 0\n"
                                                    "stream t nonblocking 0\ndevice a 2 0 0\n"
                                                    "do 0 A kernel s set a 1\n"
                                                    "do 0 B kernel t set a:0:1 2\n"
                                                    "do 0 C begin s bad\n"
                                                    "verdict ok\noutcome a=7\nend\n");
    struct base_child child = run("--answers=-", "--schedule=eager", path);
    BASE_CHECK_EQ(child.exit_code, 1); // what the file expects is wrong
    BASE_CHECK(strcmp(child.output_text, "answers verdict race\n"
                                         "answers race write-write A B a\n"
                                         "answers return C 1\n"
                                         "answers outcome a=2*1,1*1\n") == 0);
    base_child_deinit(&child);
}

static void case_that_is_not_there_exits_3(void) {
    struct base_child child = run("--case=no-such", GOOD_FILE, NULL);
    BASE_CHECK_EQ(child.exit_code, 3);
    check_contains(child.error_text, "litmus: no case \"no-such\" in these files\n");
    base_child_deinit(&child);
}

static void bad_input_exits_2_with_one_line(void) {
    const char *path = file_write("bad.litmus", "case bad\nkind stream\ndo 0 A jump\n");
    struct base_child child = run(path, NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 2);
    check_contains(child.error_text, "bad.litmus:3: unknown verb \"jump\"\n");
    base_child_deinit(&child);
    child = run("no/such.litmus", NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 2);
    check_contains(child.error_text, "no/such.litmus");
    base_child_deinit(&child);
    child = run("--schedule=quick", GOOD_FILE, NULL);
    BASE_CHECK_EQ(child.exit_code, 2);
    check_contains(child.error_text, "no schedule \"quick\": eager, lazy, random, held or all");
    base_child_deinit(&child);
}

int main(void) {
    right_cases_exit_0_and_are_counted();
    one_case_under_one_schedule_can_be_chosen();
    wrong_outcome_exits_1_and_shows_it();
    wrong_verdict_exits_1_and_shows_what_was_reported();
    answers_are_what_was_observed();
    case_that_is_not_there_exits_3();
    bad_input_exits_2_with_one_line();
    return 0;
}
