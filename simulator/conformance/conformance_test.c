// Every case on the simulator: its answer is the one in its table. And that cases do not lean on
// each other: each gives the same answer alone, and when all others ran before it.
#include "base/check.h"
#include "simulator/conformance/conformance.h"

#include <stdio.h>
#include <string.h>

// A case that goes away is noticed here.
#define CASE_COUNT 522

static struct conformance c;

static int wrong_count;

static void check(const struct conformance_case *one) {
    conformance_run(one, &c);
    if (strcmp(c.answer, one->expected) == 0)
        return;
    fprintf(stderr, "%s: %s\n    expected: %s\n", one->name, c.answer, one->expected);
    ++wrong_count;
}

static size_t cases_collect(const struct conformance_case *cases[CASE_COUNT]) {
    size_t count = 0;
    BASE_CHECK_EQ(conformance_case_count(), CASE_COUNT);
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            cases[count++] = one;
    return count;
}

static void every_answer_is_the_expected_one(void) {
    const struct conformance_case *cases[CASE_COUNT];
    const size_t count = cases_collect(cases);
    for (size_t i = 0; i < count; ++i)
        check(cases[i]);
    BASE_CHECK_EQ(wrong_count, 0);
}

static void answers_do_not_depend_on_cases_before(void) {
    const struct conformance_case *cases[CASE_COUNT];
    for (size_t left = cases_collect(cases); left > 0; --left)
        check(cases[left - 1]);
    BASE_CHECK_EQ(wrong_count, 0);
}

// Names are for --only; the functions' for the list of calls that each makes.
static void names_and_functions_are_unique(void) {
    const struct conformance_case *cases[CASE_COUNT];
    const size_t count = cases_collect(cases);
    for (size_t i = 0; i < count; ++i) {
        BASE_CHECK(conformance_case_find(cases[i]->name) == cases[i]);
        for (size_t k = 0; k < i; ++k)
            BASE_CHECK(strcmp(cases[i]->function, cases[k]->function) != 0);
    }
    BASE_CHECK(conformance_case_find("no-such-case") == NULL);
}

static void every_section_has_cases(void) {
    static const char *const sections[] = {"1",   "2",   "3",   "4",   "5",   "6",
                                           "7.1", "7.2", "7.3", "7.4", "7.5", "8", "9"};
    const struct conformance_case *cases[CASE_COUNT];
    const size_t count = cases_collect(cases);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; ++i) {
        int found = 0;
        for (size_t k = 0; k < count; ++k)
            found += strcmp(cases[k]->section, sections[i]) == 0;
        BASE_CHECK_GE(found, 10);
    }
}

int main(void) {
    every_answer_is_the_expected_one();
    answers_do_not_depend_on_cases_before();
    names_and_functions_are_unique();
    every_section_has_cases();
    return 0;
}
