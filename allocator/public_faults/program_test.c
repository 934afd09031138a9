// The program that runs cases by name: exit status, output, and what bad input gets.
#include "base/check.h"
#include "base/child.h"

#include <string.h>
#include <unistd.h>

#define PROGRAM "allocator/public_faults/public_faults"

static void run_program(void *context) {
    execv(PROGRAM, context);
    _exit(127);
}

static void check(const char *first, const char *second, int exit_code, const char *output,
                  const char *error) {
    char *argv[] = {PROGRAM, (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
    struct base_child child = base_child_run(run_program, argv);
    base_check_context("'%s' and '%s'", child.output_text, child.error_text);
    BASE_CHECK_EQ(child.exit_code, exit_code);
    BASE_CHECK(output[0] == '\0' ? child.output_text[0] == '\0'
                                 : strstr(child.output_text, output) != NULL);
    BASE_CHECK(error[0] == '\0' ? child.error_text[0] == '\0'
                                : strstr(child.error_text, error) != NULL);
    base_check_context(NULL);
    base_child_deinit(&child);
}

static void a_case_is_run_by_its_name_and_a_theme_by_its_own(void) {
    check("pt#189504", NULL, 0, "pt#189504", "");
    check("settings", NULL, 0, "settings\n", "");
}

// Nothing was run before the refusal.
static void what_names_nothing_is_refused_before_any_case_runs(void) {
    check("", NULL, 2, "", "there is no theme or report \"\"\n");
    check("settings", "pt#1895", 2, "", "there is no theme or report \"pt#1895\"\n");
    check("pt#189504", "", 2, "", "there is no theme or report \"\"\n");
}

int main(void) {
    a_case_is_run_by_its_name_and_a_theme_by_its_own();
    what_names_nothing_is_refused_before_any_case_runs();
}
