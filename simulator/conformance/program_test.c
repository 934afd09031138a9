// The conformance program from outside: what it prints, and how it ends.
#include "base/check.h"
#include "base/child.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "simulator/conformance/conformance"

struct arguments {
    const char *items[3];
};

static void program_run(void *context) {
    const struct arguments *arguments = context;
    char *argv[5] = {PROGRAM};
    for (int i = 0; i < 3; ++i)
        argv[1 + i] = (char *)(uintptr_t)arguments->items[i];
    unsetenv("BUILD_WORKING_DIRECTORY");
    execv(PROGRAM, argv);
    _exit(127);
}

static struct base_child run(const char *first, const char *second, const char *third) {
    struct arguments arguments = {{first, second, third}};
    return base_child_run(program_run, &arguments);
}

static void check_contains(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fprintf(stderr, "\"%s\" is not in:\n%s\n", part, text);
    BASE_CHECK(strstr(text, part) != NULL);
}

static void all_cases_pass_on_the_simulator(void) {
    struct base_child child = run(NULL, NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    check_contains(child.output_text, "expected  free-null: free=0\n");
    check_contains(child.output_text, "522 cases as expected, 0 otherwise but allowed, 0 different "
                                      "(0 of verified rules), 0 skipped\n");
    base_child_deinit(&child);
}

static void one_case_can_be_chosen(void) {
    struct base_child child = run("--only=free-twice", "--format=json", NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    static const char wanted[] =
        "{\"case\":\"free-twice\",\"section\":\"2\",\"status\":\"verified\","
        "\"verdict\":\"expected\",\"rule\":\"cudaFree of a freed pointer: 1\","
        "\"simulator\":\"first=0 second=1\","
        "\"answer\":\"first=0 second=1\"}\n";
    BASE_CHECK(strcmp(child.output_text, wanted) == 0);
    base_child_deinit(&child);
}

static void planted_fault_exits_1_and_shows_the_case(void) {
    struct base_child child = run("--only=free-twice", "--plant=free-twice", NULL);
    BASE_CHECK_EQ(child.exit_code, 1);
    check_contains(child.output_text,
                   "DIFFERENT free-twice (section 2, verified): cudaFree of a freed pointer: 1\n"
                   "          simulator: first=0 second=0\n"
                   "          expected: first=0 second=1\n");
    base_child_deinit(&child);
}

static void list_names_cases_and_planted_faults(void) {
    struct base_child child = run("--list", NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    check_contains(child.output_text, "free-null (section 2, verified): cudaFree(NULL) succeeds\n");
    check_contains(child.output_text, "--plant free-early: cudaFree does not wait\n");
    base_child_deinit(&child);
}

static void bad_names_exit_2(void) {
    struct base_child child = run("--only=no-such-case", NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 2);
    check_contains(child.error_text, "no case \"no-such-case\": see --list");
    base_child_deinit(&child);
    child = run("--plant=no-such-fault", NULL, NULL);
    BASE_CHECK_EQ(child.exit_code, 2);
    check_contains(child.error_text, "no planted fault \"no-such-fault\"");
    base_child_deinit(&child);
}

int main(void) {
    all_cases_pass_on_the_simulator();
    one_case_can_be_chosen();
    planted_fault_exits_1_and_shows_the_case();
    list_names_cases_and_planted_faults();
    bad_names_exit_2();
    return 0;
}
