// What the table makes of rounds, with benchmarks that say how long they took.
#include "bench/allocator_speed.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

// Seconds of an iteration; the second call of a benchmark takes twice as long, as on a machine that
// slows down. (The shim calls each once a round when the number of iterations is given.)
struct pace {
    double seconds;
    int calls;
};

static void take(struct bench_state *state, void *argument) {
    struct pace *pace = argument;
    uint64_t count;
    const double slower = pace->calls++ == 1 ? 2 : 1;
    while (bench_batch_begin(state, &count))
        bench_time_add(state, pace->seconds * slower * (double)count);
}

static struct speed_case *add(const char *name, struct pace *pace, double pair_count) {
    struct speed_case *added = speed_case_add(SPEED_GROUP_BULK, "%s", name);
    added->pair_count = pair_count;
    added->clock = BENCH_CLOCK_REAL;
    bench_register_manual(added->name, take, pace);
    return added;
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-6 * fabs(b);
}

static double counter(const struct speed_case *of, const char *name) {
    double value = NAN;
    const size_t index = bench_results_find(speed_results, of->name);
    (void)bench_results_counter_get(speed_results, index, name, &value);
    return value;
}

static void a_pairs_time_is_the_iterations_by_its_pairs(const struct speed_case *script,
                                                        const struct speed_case *list) {
    BASE_CHECK(strcmp(script->name, "allocator/script") == 0);
    BASE_CHECK_EQ(speed_round_count(script), 3);
    BASE_CHECK(near(speed_ns(script, 0), 50)); // 4,000 ns over 80 pairs
    BASE_CHECK(near(speed_ns(script, 1), 100));
    BASE_CHECK(near(speed_fastest_ns(script), 50));
    BASE_CHECK(near(speed_quotient(script, list, 1), 2.5)); // 50 over 20, in each round
    BASE_CHECK(near(speed_quotient(list, script, 2), 0.8));
}

static void what_is_added_is_taken_within_rounds(const struct speed_case *script,
                                                 const struct speed_case *list) {
    BASE_CHECK(near(speed_added(script, list, list), 1.5)); // (50 - 20) / 20
    BASE_CHECK(near(speed_added(script, list, NULL), 30));  // 30, 60, 30
    BASE_CHECK(near(speed_added(script, NULL, NULL), 50));
}

static void what_was_not_measured_has_no_row(const struct speed_case *script,
                                             const struct speed_case *absent) {
    BASE_CHECK_EQ(speed_round_count(absent), 0);
    BASE_CHECK(isnan(speed_fastest_ns(absent)));
    BASE_CHECK(isnan(speed_quotient(script, absent, 1)));
    BASE_CHECK(isnan(speed_added(script, absent, NULL)));
    BASE_CHECK(isnan(speed_added(absent, NULL, NULL)));
    speed_row_add(&(struct speed_row){.text = "absent", .measured = NAN, .limit = 1}, script, "%s",
                  "");
    BASE_CHECK(isnan(counter(script, "measured")));
}

static void a_row_notes_its_verdict_with_the_case(const struct speed_case *script,
                                                  const struct speed_case *list) {
    const struct {
        double measured, limit;
        bool at_least, within;
    } rows[] = {{1.5, 1.5, false, true},
                {1.51, 1.5, false, false},
                {1.8, 1.8, true, true},
                {1.79, 1.8, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct speed_row row = {.text = "row",
                                      .measured = rows[i].measured,
                                      .limit = rows[i].limit,
                                      .at_least = rows[i].at_least};
        speed_row_add(&row, script, "%s", "");
        BASE_CHECK(near(counter(script, "measured"), rows[i].measured));
        BASE_CHECK(near(counter(script, "limit"), rows[i].limit));
        BASE_CHECK_EQ(counter(script, "within_limit") == 1, rows[i].within);
    }
    const struct speed_row unlimited = {.text = "row", .measured = 7, .limit = NAN};
    speed_row_add(&unlimited, list, "%s", "");
    BASE_CHECK(near(counter(list, "measured"), 7));
    BASE_CHECK(isnan(counter(list, "limit")));
    BASE_CHECK(isnan(counter(list, "within_limit")));
}

int main(void) {
    struct pace script_pace = {.seconds = 4e-6}, list_pace = {.seconds = 2e-8};
    struct speed_case *script = add("script", &script_pace, 80);
    struct speed_case *list = add("list", &list_pace, 1);
    const struct bench_options run = {.rounds = 3, .iterations = 10};
    BASE_CHECK_EQ(bench_run(&run, &speed_results), BASE_OK);
    const struct speed_case *absent = speed_case_add(SPEED_GROUP_BULK, "absent");
    a_pairs_time_is_the_iterations_by_its_pairs(script, list);
    what_is_added_is_taken_within_rounds(script, list);
    what_was_not_measured_has_no_row(script, absent);
    a_row_notes_its_verdict_with_the_case(script, list);
    bench_results_destroy(speed_results);
    return 0;
}
