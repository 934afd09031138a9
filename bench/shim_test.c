// The shim as its callers see it: what is in the JSON file, and what happens when a benchmark fails
// or is interrupted.
#include "bench/shim.h"

#include "base/check.h"
#include "base/file.h"
#include "base/progress.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tally {
    uint64_t calls, iterations;
};

static void count_iterations(struct bench_state *state, void *argument) {
    struct tally *tally = argument;
    tally->calls++;
    uint64_t count, done = 0;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            done++;
            __asm__ volatile("" ::: "memory");
        }
    tally->iterations += done;
    bench_counter(state, "done", (double)done);
    bench_label(state, "a \"label\"");
    bench_items(state, done);
}

static void tell_time(struct bench_state *state, void *argument) {
    (void)argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        bench_time_add(state, 0.25 * (double)count);
}

static void fail_the_check(struct bench_state *state, void *argument) {
    (void)argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        bench_fail(state, "%d blocks leaked", 3);
    bench_fail(state, "a later sentence");
}

static void fail_before_the_loop(struct bench_state *state, void *argument) {
    (void)argument;
    bench_fail(state, "no device");
}

static void raise_interrupt(struct bench_state *state, void *argument) {
    (void)argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        BASE_CHECK_EQ(raise(SIGINT), 0);
}

static const char *path_in_test_folder(const char *name) {
    static char path[4096];
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/tmp", name);
    return path;
}

static json_t *load(const char *path) {
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL) fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
    BASE_CHECK(root != NULL);
    return root;
}

static void json_has_times_counters_label_and_context(void) {
    struct tally tally = {0};
    bench_unregister_all();
    bench_register("group/one", count_iterations, &tally);
    bench_register_manual("group/told", tell_time, NULL);
    bench_context_set("seed", "replaced");
    bench_context_set("seed", "42");

    struct bench_results *results;
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.iterations = 1000, .rounds = 3}, &results),
                  BASE_OK);
    BASE_CHECK_EQ(tally.calls, 3);
    BASE_CHECK_EQ(tally.iterations, 3000);
    BASE_CHECK_EQ(bench_results_count(results), 2);
    const size_t told = bench_results_find(results, "group/told");
    bench_results_counter(results, told, "added", 2.5);
    double added = 0;
    BASE_CHECK(bench_results_counter_get(results, told, "added", &added) && added == 2.5);
    BASE_CHECK(!bench_results_counter_get(results, told, "unknown", &added));
    const char *path = path_in_test_folder("shim.json");
    BASE_CHECK_EQ(bench_results_write(results, path), BASE_OK);
    BASE_CHECK_EQ(bench_results_write(results, path), BASE_OK); // twice: the context is not refused

    json_t *root = load(path), *runs = json_object_get(root, "benchmarks");
    BASE_CHECK(strcmp(json_string_value(json_object_get(json_object_get(root, "context"), "seed")),
                      "42") == 0);
    BASE_CHECK_EQ(json_array_size(runs), 2);
    json_t *one = json_array_get(runs, 0), *second = json_array_get(runs, 1);
    BASE_CHECK(strcmp(json_string_value(json_object_get(one, "name")), "group/one") == 0);
    BASE_CHECK(strcmp(json_string_value(json_object_get(one, "label")), "a \"label\"") == 0);
    BASE_CHECK(strcmp(json_string_value(json_object_get(one, "time_unit")), "ns") == 0);
    BASE_CHECK_EQ(json_number_value(json_object_get(one, "done")), 1000);
    BASE_CHECK_EQ(json_number_value(json_object_get(one, "rounds")), 3);
    BASE_CHECK(json_number_value(json_object_get(one, "median_ns")) >=
               json_number_value(json_object_get(one, "real_time")));
    BASE_CHECK(json_number_value(json_object_get(one, "items_per_second")) > 0);
    BASE_CHECK(strcmp(json_string_value(json_object_get(second, "name")), "group/told") == 0);
    BASE_CHECK(fabs(json_number_value(json_object_get(second, "real_time")) - 0.25e9) < 1);
    BASE_CHECK(json_number_value(json_object_get(second, "added")) == 2.5);
    json_decref(root);

    const char *some = path_in_test_folder("some.json");
    BASE_CHECK_EQ(bench_results_write_some(results, "group/t", some), BASE_OK);
    root = load(some);
    BASE_CHECK_EQ(json_array_size(json_object_get(root, "benchmarks")), 1);
    json_decref(root);
    const char *none = path_in_test_folder("none.json");
    BASE_CHECK_EQ(bench_results_write_some(results, "absent/", none), BASE_OK);
    BASE_CHECK_NE(access(none, F_OK), 0);
    bench_results_destroy(results);
}

static void a_timed_round_fills_its_time_and_later_rounds_repeat_its_count(void) {
    struct tally tally = {0};
    bench_unregister_all();
    bench_register("filled", count_iterations, &tally);
    struct bench_results *results;
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.min_time_s = 0.01, .rounds = 3}, &results),
                  BASE_OK);
    const struct bench_result result = bench_results_get(results, 0);
    BASE_CHECK_EQ(result.round_count, 3);
    BASE_CHECK_GE((double)result.iterations * result.real_ns[0], 0.009e9);
    BASE_CHECK(result.real_ns_minimum <= result.real_ns_median);
    BASE_CHECK(tally.iterations >= 3 * result.iterations);
    bench_results_destroy(results);
}

static void a_filter_chooses_by_name_and_must_match_something(void) {
    struct tally first = {0}, second = {0};
    bench_unregister_all();
    bench_register("pair/512", count_iterations, &first);
    bench_register("window/512", count_iterations, &second);
    struct bench_results *results = NULL;
    BASE_CHECK_EQ(
        bench_run(&(struct bench_options){.iterations = 1, .filter = "^window/512$"}, &results),
        BASE_OK);
    BASE_CHECK_EQ(first.calls, 0);
    BASE_CHECK_EQ(second.calls, 1);
    BASE_CHECK_EQ(bench_results_count(results), 1);
    bench_results_destroy(results);
    results = NULL;
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.iterations = 1, .filter = "absent"}, &results),
                  BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "absent") != NULL);
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.iterations = 1, .filter = "("}, &results),
                  BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "no regular expression") != NULL);
    BASE_CHECK(results == NULL);
}

static void times_of_the_callers_own_are_written_as_others_are(void) {
    static const double rounds[] = {700, 300, 400};
    struct bench_results *results = bench_results_create();
    BASE_CHECK_EQ(bench_results_add(results, "own/one", "a \"label\"", rounds, 3), 0);
    BASE_CHECK_EQ(bench_results_add(results, "own/second", "", rounds, 1), 1);
    bench_results_counter(results, 1, "nodes", 12);
    BASE_CHECK(fabs(bench_results_get(results, 0).real_ns_median - 400) < 1e-6);
    const char *path = path_in_test_folder("own.json");
    BASE_CHECK_EQ(bench_results_write(results, path), BASE_OK);
    json_t *root = load(path), *runs = json_object_get(root, "benchmarks");
    BASE_CHECK_EQ(json_array_size(runs), 2);
    json_t *one = json_array_get(runs, 0), *second = json_array_get(runs, 1);
    BASE_CHECK(strcmp(json_string_value(json_object_get(one, "name")), "own/one") == 0);
    BASE_CHECK(strcmp(json_string_value(json_object_get(one, "label")), "a \"label\"") == 0);
    BASE_CHECK(strcmp(json_string_value(json_object_get(one, "time_unit")), "ns") == 0);
    BASE_CHECK(fabs(json_number_value(json_object_get(one, "real_time")) - 300) < 1e-6);
    BASE_CHECK(fabs(json_number_value(json_object_get(one, "cpu_time")) - 300) < 1e-6);
    BASE_CHECK(fabs(json_number_value(json_object_get(one, "median_ns")) - 400) < 1e-6);
    BASE_CHECK_EQ(json_number_value(json_object_get(one, "rounds")), 3);
    BASE_CHECK(fabs(json_number_value(json_object_get(second, "real_time")) - 700) < 1e-6);
    BASE_CHECK_EQ(json_number_value(json_object_get(second, "nodes")), 12);
    BASE_CHECK(json_object_get(second, "rounds") == NULL);
    json_decref(root);
    bench_results_destroy(results);
}

static void a_failed_check_ends_the_run_with_its_sentence(void) {
    struct tally after = {0};
    struct bench_results *results = NULL;
    bench_unregister_all();
    bench_register("bad", fail_the_check, NULL);
    bench_register("after", count_iterations, &after);
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.iterations = 10}, &results),
                  BASE_CHECK_FAILED);
    BASE_CHECK(strcmp(base_status_message(), "bad: 3 blocks leaked") == 0);
    BASE_CHECK(results == NULL);
    BASE_CHECK_EQ(after.calls, 0);

    bench_unregister_all();
    bench_register("early", fail_before_the_loop, NULL);
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.rounds = 2}, &results), BASE_CHECK_FAILED);
    BASE_CHECK(strcmp(base_status_message(), "early: no device") == 0);
}

static void an_unwritable_path_is_an_error_and_leaves_nothing(void) {
    struct tally tally = {0};
    struct bench_results *results;
    bench_unregister_all();
    bench_register("one", count_iterations, &tally);
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.iterations = 1}, &results), BASE_OK);
    BASE_CHECK_EQ(bench_results_write(results, "/nonexistent/folder/x.json"), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "/nonexistent/folder") != NULL);
    bench_results_destroy(results);
}

// Last: the interrupt flag stays set.
static void an_interrupt_stops_before_the_next_benchmark(void) {
    struct tally after = {0};
    struct bench_results *results = NULL;
    base_interrupt_install();
    bench_unregister_all();
    bench_register("interrupted", raise_interrupt, NULL);
    bench_register("after", count_iterations, &after);
    BASE_CHECK_EQ(bench_run(&(struct bench_options){.iterations = 1, .rounds = 5}, &results),
                  BASE_INTERRUPTED);
    BASE_CHECK_EQ(base_interrupt_exit_code(), 130);
    BASE_CHECK_EQ(after.calls, 0);
    BASE_CHECK(results == NULL);
}

int main(void) {
    json_has_times_counters_label_and_context();
    a_timed_round_fills_its_time_and_later_rounds_repeat_its_count();
    a_filter_chooses_by_name_and_must_match_something();
    times_of_the_callers_own_are_written_as_others_are();
    a_failed_check_ends_the_run_with_its_sentence();
    an_unwritable_path_is_an_error_and_leaves_nothing();
    an_interrupt_stops_before_the_next_benchmark();
    return 0;
}
