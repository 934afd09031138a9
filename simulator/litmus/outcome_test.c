// Comparing what a run left with what a case allows, over results made by hand: a referee that
// never says no is worth nothing.
#include "base/check.h"
#include "simulator/litmus/outcome.h"

#include <stdio.h>
#include <string.h>

static const char text[] = "case one\nkind query\n"
                           "event e 0\n"
                           "pinned a 4 0\n"
                           "do 0 A hostalloc p 2\n"
                           "do 0 Q eventquery e\n"
                           "do 0 R hostread a:0:2 if Q\n"
                           "do 0 F hostfree p\n"
                           "verdict ok\n"
                           "return F 1\n"
                           "outcome a=1*2,?*2 p=7 R=1 Q=0\n"
                           "outcome a=0 p=? Q=600\nend\n";
enum { BUFFER_A, BUFFER_P };
enum { OPERATION_A, OPERATION_Q, OPERATION_R, OPERATION_F };

static struct litmus_file file;
static const struct litmus_case *one;
static const struct litmus_expectation *expectation;

// A run in which the query succeeded, and left the first outcome.
static struct litmus_result good_result(void) {
    return (struct litmus_result){
        .performed = {true, true, true, true},
        .codes = {0, 0, 0, 1},
        .observed = {[OPERATION_Q] = {0}, [OPERATION_R] = {1, 1}},
        .live = {true, true},
        .contents = {[BUFFER_A] = {1, 1, 200, 3}, [BUFFER_P] = {7, 7}},
        .never_succeeded = -1,
    };
}

static bool matches(const struct litmus_result *result, int outcome) {
    return litmus_outcome_matches(one, &expectation->outcomes[outcome], result);
}

static void undefined_byte_matches_any_and_others_only_themselves(void) {
    struct litmus_result result = good_result();
    BASE_CHECK(matches(&result, 0));
    BASE_CHECK(!matches(&result, 1));
    result.contents[BUFFER_A][3] = 77;
    BASE_CHECK(matches(&result, 0));
    result.contents[BUFFER_A][1] = 2;
    BASE_CHECK(!matches(&result, 0));
}

static void one_value_stands_for_all_bytes(void) {
    struct litmus_result result = good_result();
    result.contents[BUFFER_P][1] = 8;
    BASE_CHECK(!matches(&result, 0));
}

static void buffer_must_be_live(void) {
    struct litmus_result result = good_result();
    result.live[BUFFER_P] = false;
    BASE_CHECK(!matches(&result, 0));
}

static void reads_and_queries_must_be_the_ones_that_are_named(void) {
    struct litmus_result result = good_result();
    result.performed[OPERATION_R] = false;
    BASE_CHECK(!matches(&result, 0)); // a read is missing
    result = good_result();
    result.codes[OPERATION_Q] = result.observed[OPERATION_Q][0] = 600;
    memset(result.contents[BUFFER_A], 0, 4);
    BASE_CHECK(!matches(&result, 1)); // a read too many
    result.performed[OPERATION_R] = false;
    BASE_CHECK(matches(&result, 1));
    result = good_result();
    result.observed[OPERATION_R][1] = 2;
    BASE_CHECK(!matches(&result, 0));
}

static void wrong_code_is_found(void) {
    struct litmus_result result = good_result();
    int wrong = -1;
    BASE_CHECK(litmus_codes_match(one, expectation, &result, &wrong));
    result.codes[OPERATION_F] = 0; // should have failed
    BASE_CHECK(!litmus_codes_match(one, expectation, &result, &wrong));
    BASE_CHECK_EQ(wrong, OPERATION_F);
    result = good_result();
    result.codes[OPERATION_A] = 2; // should not have failed
    BASE_CHECK(!litmus_codes_match(one, expectation, &result, &wrong));
    BASE_CHECK_EQ(wrong, OPERATION_A);
    result = good_result();
    result.codes[OPERATION_Q] = 600; // part of the outcome
    BASE_CHECK(litmus_codes_match(one, expectation, &result, &wrong));
    result.codes[OPERATION_Q] = 400;
    BASE_CHECK(!litmus_codes_match(one, expectation, &result, &wrong));
    result.codes[OPERATION_Q] = 0;
    result.codes[OPERATION_R] = 600; // no query
    BASE_CHECK(!litmus_codes_match(one, expectation, &result, &wrong));
}

static void result_is_written_as_an_outcome_line(void) {
    struct litmus_result result = good_result();
    char written[LITMUS_RESULT_TEXT_SIZE];
    litmus_result_format(one, expectation, &result, written);
    BASE_CHECK(strcmp(written, "a=1*2,200*1,3*1 p=7 Q=0 R=1") == 0);
}

int main(void) {
    if (litmus_text_read("one.litmus", text, &file) != BASE_OK)
        fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(file.case_count, 1);
    one = &file.cases[0];
    expectation = &one->expectations[0];
    undefined_byte_matches_any_and_others_only_themselves();
    one_value_stands_for_all_bytes();
    buffer_must_be_live();
    reads_and_queries_must_be_the_ones_that_are_named();
    wrong_code_is_found();
    result_is_written_as_an_outcome_line();
    litmus_file_deinit(&file);
    return 0;
}
