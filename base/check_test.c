// Checks: what a failing one prints, and that passing ones evaluate their operands once. Failures
// abort, so each runs in a child; a broken base_check would hide itself, hence plain comparisons
// and exit codes here.
#include "base/check.h"

#include "base/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                  \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static void fail_condition(void *argument) {
    const int *const size = argument;
    BASE_CHECK(*size > 10);
}

static void fail_comparison(void *argument) {
    const int *const size = argument;
    BASE_CHECK_EQ(*size, -2);
}

static void fail_with_context(void *argument) {
    base_check_context("seed %d, step %d", 42, 17);
    fail_comparison(argument);
}

static void fail_after_context_was_cleared(void *argument) {
    base_check_context("seed %d", 42);
    base_check_context(NULL);
    fail_condition(argument);
}

static void fail_with_long_context(void *argument) {
    char context[1000];
    memset(context, 'c', sizeof context - 1);
    context[sizeof context - 1] = 0;
    base_check_context("%s", context);
    fail_condition(argument);
}

// Runs BODY, which must abort, and returns its report, which the caller frees.
static char *report_of(void (*body)(void *)) {
    int size = 7;
    struct base_child child = base_child_run(body, &size);
    REQUIRE(child.signal_number == SIGABRT);
    char *const report = strdup(child.error_text);
    base_child_deinit(&child);
    return report;
}

static void require_ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    if (length >= end_length && strcmp(text + length - end_length, end) == 0)
        return;
    fprintf(stderr, "'%s' does not end with '%s'\n", text, end);
    exit(1);
}

static void condition_reports_place_and_expression(void) {
    char *const report = report_of(fail_condition);
    REQUIRE(strstr(report, "base/check_test.c:") != NULL);
    require_ends_with(report, ": check failed: *size > 10\n");
    free(report);
}

static void comparison_reports_both_values(void) {
    char *const report = report_of(fail_comparison);
    require_ends_with(report, ": check failed: *size == -2: left is 7 (0x7), "
                              "right is -2 (0xfffffffffffffffe)\n");
    free(report);
}

static void context_is_reported(void) {
    char *const report = report_of(fail_with_context);
    require_ends_with(report, "(0xfffffffffffffffe) | seed 42, step 17\n");
    free(report);
}

static void cleared_context_is_gone(void) {
    char *const report = report_of(fail_after_context_was_cleared);
    require_ends_with(report, ": check failed: *size > 10\n");
    free(report);
}

static void long_context_is_cut_at_255_bytes(void) {
    char *const report = report_of(fail_with_long_context);
    const char *const context = strstr(report, " | ");
    REQUIRE(context != NULL);
    REQUIRE(strlen(context + 3) == 255 + 1);
    free(report);
}

static void passing_checks_evaluate_operands_once(void) {
    int evaluations = 0;
    BASE_CHECK(++evaluations == 1);
    BASE_CHECK_EQ(++evaluations, 2);
    BASE_CHECK_NE(++evaluations, 2);
    BASE_CHECK_LT(++evaluations, 5);
    BASE_CHECK_LE(++evaluations, 5);
    BASE_CHECK_GT(++evaluations, 5);
    BASE_CHECK_GE(++evaluations, 7);
    REQUIRE(evaluations == 7);
}

static void fail_each_relation(void *argument) {
    switch (*(const int *)argument) {
    case 0:
        BASE_CHECK_EQ(1, 2);
        break;
    case 1:
        BASE_CHECK_NE(2, 2);
        break;
    case 2:
        BASE_CHECK_LT(2, 2);
        break;
    case 3:
        BASE_CHECK_LE(3, 2);
        break;
    case 4:
        BASE_CHECK_GT(2, 2);
        break;
    case 5:
        BASE_CHECK_GE(1, 2);
        break;
    }
}

static void every_relation_can_fail(void) {
    for (int relation = 0; relation < 6; relation++) {
        struct base_child child = base_child_run(fail_each_relation, &relation);
        REQUIRE(child.signal_number == SIGABRT);
        base_child_deinit(&child);
    }
}

int main(void) {
    condition_reports_place_and_expression();
    comparison_reports_both_values();
    context_is_reported();
    cleared_context_is_gone();
    long_context_is_cut_at_255_bytes();
    passing_checks_evaluate_operands_once();
    every_relation_can_fail();
    return 0;
}
