// Two sequences of requests, small enough to count by hand.
#include "workload/replay_test_trace.h"
#include "workload/requests.h"

#include "base/check.h"

#include <stdlib.h>

// A text is a trace: a letter allocates its place in the alphabet in KiB, its capital frees that.
static struct workload_requests requests_of(const char *text) {
    struct test_trace made;
    struct workload_requests requests;
    test_trace_begin(&made, "");
    for (const char *at = text; *at != 0; at++) {
        const bool is_free = *at < 'a';
        const uint64_t kib = (uint64_t)(*at - (is_free ? 'A' : 'a') + 1);
        if (is_free)
            test_free(&made, kib << 20, 0, 0);
        else
            test_alloc(&made, kib << 20, kib << 10, 0);
    }
    struct trace *trace = test_trace_end(&made);
    BASE_CHECK_EQ(workload_requests_of(trace, 0, &requests), BASE_OK);
    trace_destroy(trace);
    return requests;
}

static void peak_is_what_was_live_at_once(void) {
    struct workload_requests requests = requests_of("abcBCdAD");
    BASE_CHECK_EQ(requests.count, 4);
    BASE_CHECK_EQ(requests.step_count, 8);
    BASE_CHECK_EQ(requests.peak_bytes, 6 << 10); // a b c; later a d: 5
    BASE_CHECK_EQ(requests.steps[3], -(2 << 10));
    workload_requests_deinit(&requests);
}

static void frees_of_unseen_blocks_are_left_out(void) {
    struct workload_requests requests = requests_of("ZaAbYB");
    BASE_CHECK_EQ(requests.step_count, 4);
    BASE_CHECK_EQ(requests.peak_bytes, 2 << 10);
    workload_requests_deinit(&requests);
}

static void a_step_is_found_where_the_second_half_repeats(void) {
    static const struct {
        const char *text;
        size_t period;
    } cases[] = {
        {"zyxwvaAbBcCaAbBcCaAbBcCaAbBcC", 3}, // the start is another
        {"aAaAaAaA", 1},
        {"aAbBcCdDeEfFgGhH", 0},
        {"aAaAaAaAaAbBcCaAbBdD", 0}, // nearly
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct workload_requests requests = requests_of(cases[i].text);
        base_check_context("%s", cases[i].text);
        BASE_CHECK_EQ(requests.period, cases[i].period);
        workload_requests_deinit(&requests);
    }
    base_check_context(NULL);
}

static void a_sequence_is_no_way_from_itself(void) {
    struct workload_requests requests = requests_of("abABcCabAB");
    struct workload_requests_difference difference;
    BASE_CHECK_EQ(workload_requests_compare(&requests, &requests, &difference), BASE_OK);
    BASE_CHECK(difference.peak == 0 && difference.count == 0 && difference.size_distance == 0);
    BASE_CHECK_EQ(difference.first, requests.count);
    BASE_CHECK_EQ(difference.common, requests.step_count);
    workload_requests_difference_deinit(&difference);
    workload_requests_deinit(&requests);
}

// Sizes 1 1 2 4 beside 1 2 2 3 3: shares up to 1 are 2/4 and 1/5, up to 2 3/4 and 3/5, up to 3 3/4
// and 1.
static void distance_is_the_largest_between_the_shares(void) {
    struct workload_requests a = requests_of("aAabd"), b = requests_of("abBbcCc");
    struct workload_requests_difference difference;
    BASE_CHECK_EQ(workload_requests_compare(&a, &b, &difference), BASE_OK);
    BASE_CHECK(difference.size_distance > 0.2999 && difference.size_distance < 0.3001);
    BASE_CHECK(difference.count > -0.2001 && difference.count < -0.1999);
    BASE_CHECK(difference.peak > 7.0 / 6 - 1.0001 && difference.peak < 7.0 / 6 - 0.9999);
    BASE_CHECK_EQ(difference.first, 1);
    BASE_CHECK_EQ(difference.use_count, 4);
    BASE_CHECK_EQ(difference.uses[1].size, 2 << 10);
    BASE_CHECK_EQ(difference.uses[1].count_a, 1);
    BASE_CHECK_EQ(difference.uses[1].count_b, 2);
    workload_requests_difference_deinit(&difference);
    workload_requests_deinit(&a);
    workload_requests_deinit(&b);
}

static void common_order_counts_frees_too(void) {
    // All of the first but the free of a, which comes later in the second: "abBcCA" has "abBcC".
    struct workload_requests a = requests_of("aAbBcC"), b = requests_of("abBcCA");
    struct workload_requests_difference difference;
    BASE_CHECK_EQ(workload_requests_compare(&a, &b, &difference), BASE_OK);
    BASE_CHECK_EQ(difference.first, 3);
    BASE_CHECK_EQ(difference.common, 5);
    workload_requests_difference_deinit(&difference);
    workload_requests_deinit(&a);
    workload_requests_deinit(&b);
}

static void a_trace_without_requests_is_refused(void) {
    struct test_trace made;
    struct workload_requests requests = {.count = 7};
    test_trace_begin(&made, "");
    test_free(&made, 1 << 20, 0, 0);
    struct trace *trace = test_trace_end(&made);
    BASE_CHECK_EQ(workload_requests_of(trace, 0, &requests), BASE_FORMAT);
    BASE_CHECK_EQ(workload_requests_of(trace, 1, &requests), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(requests.count, 7);
    trace_destroy(trace);
}

// The first: 1 3 4 are live, 2 went. The second: 2 and 4, before and after which less is.
static void what_is_live_at_the_peaks(void) {
    struct workload_requests a = requests_of("abBcdDC"), b = requests_of("bdDcBa");
    struct workload_size_use *uses;
    size_t count;
    BASE_CHECK_EQ(workload_requests_at_peaks(&a, &b, &uses, &count), BASE_OK);
    BASE_CHECK_EQ(count, 4);
    static const uint64_t wanted[][3] = {{1, 1, 0}, {2, 0, 1}, {3, 1, 0}, {4, 1, 1}};
    for (size_t i = 0; i < count; i++) {
        BASE_CHECK_EQ(uses[i].size, wanted[i][0] << 10);
        BASE_CHECK_EQ(uses[i].count_a, wanted[i][1]);
        BASE_CHECK_EQ(uses[i].count_b, wanted[i][2]);
    }
    free(uses);
    workload_requests_deinit(&a);
    workload_requests_deinit(&b);
}

int main(void) {
    peak_is_what_was_live_at_once();
    frees_of_unseen_blocks_are_left_out();
    a_step_is_found_where_the_second_half_repeats();
    a_sequence_is_no_way_from_itself();
    distance_is_the_largest_between_the_shares();
    common_order_counts_frees_too();
    what_is_live_at_the_peaks();
    a_trace_without_requests_is_refused();
    return 0;
}
