// When work runs under each schedule, and in which orders. What the orders are for memory, the
// litmus cases say (simulator/litmus); here is what they do not: chances, repetition, progress of
// polling, and what a program may rely on once it has seen a completion.
#include "base/check.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <string.h>

static char trail[64]; // what ran, a letter each

static void note(void *letter) { strncat(trail, letter, sizeof trail - strlen(trail) - 1); }

static void note_in(cudaStream_t stream, const char *letter) {
    BASE_CHECK_EQ(cudaLaunchHostFunc(stream, note, (void *)(uintptr_t)letter), cudaSuccess);
}

static void trail_is(const char *expected) {
    base_check_context("ran \"%s\", expected \"%s\"", trail, expected);
    BASE_CHECK(strcmp(trail, expected) == 0);
    base_check_context(NULL);
}

static cudaStream_t stream_new(unsigned int flags) {
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
}

static cudaEvent_t event_new(void) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    return event;
}

static void start(const char *schedule, int devices) {
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = devices,
                                                      .capacity_bytes = 64 << 20,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    trail[0] = '\0';
}

static void start_random(uint64_t seed) {
    char text[32];
    snprintf(text, sizeof text, "random:%llu", (unsigned long long)seed);
    start(text, 2);
}

static void words_that_name_no_schedule_are_refused(void) {
    static const char *const bad[] = {"",          "eagre",      "random",     "random:",
                                      "random:-1", "random:1x", "random: 1", "timed:1",
                                      "random:18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        BASE_CHECK_EQ(sim_schedule(bad[i]), BASE_INVALID_VALUE);
        BASE_CHECK(strstr(base_status_message(), "want eager, lazy, timed or random:SEED") != NULL);
    }
}

// --- Lazy ---

static void lazy_runs_what_a_wait_needs_and_nothing_else(void) {
    start("lazy", 1);
    cudaStream_t one = stream_new(cudaStreamNonBlocking), two = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event = event_new();
    note_in(one, "a");
    BASE_CHECK_EQ(cudaEventRecord(event, one), cudaSuccess);
    note_in(one, "b");
    note_in(two, "c");
    BASE_CHECK_EQ(cudaStreamWaitEvent(two, event, 0), cudaSuccess);
    note_in(two, "d");
    trail_is("");
    BASE_CHECK_EQ(cudaStreamSynchronize(two), cudaSuccess);
    BASE_CHECK_EQ(strlen(trail), 3); // a, c in either order, d
    BASE_CHECK_EQ(trail[2], 'd');
    BASE_CHECK(strchr(trail, 'b') == NULL);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(trail[3], 'b');
}

static void lazy_runs_one_operation_for_each_query_that_says_not_ready(void) {
    start("lazy", 1);
    cudaStream_t stream = stream_new(cudaStreamNonBlocking), other = stream_new(cudaStreamDefault);
    cudaEvent_t event = event_new();
    note_in(other, "x");
    note_in(stream, "a");
    note_in(stream, "b");
    BASE_CHECK_EQ(cudaEventRecord(event, stream), cudaSuccess);
    for (int i = 0; i < 3; ++i)
        BASE_CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
    trail_is("ab");
    BASE_CHECK_EQ(cudaEventQuery(event), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaErrorNotReady); // the blocking stream's work
    trail_is("abx");
    BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaSuccess);
}

static void polling_ends_under_every_schedule_unless_held(const char *schedule) {
    start(schedule, 1);
    base_check_context("%s", schedule);
    cudaStream_t one = stream_new(cudaStreamNonBlocking), two = stream_new(cudaStreamDefault);
    cudaEvent_t event = event_new(), last = event_new();
    for (int i = 0; i < 10; ++i) {
        note_in(one, "a");
        BASE_CHECK_EQ(cudaEventRecord(event, one), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(two, event, 0), cudaSuccess);
        note_in(two, "b");
        BASE_CHECK_EQ(cudaEventRecord(event, two), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(one, event, 0), cudaSuccess);
    }
    BASE_CHECK_EQ(cudaEventRecord(last, two), cudaSuccess);
    int polls = 0;
    while (cudaEventQuery(last) == cudaErrorNotReady)
        BASE_CHECK_LT(++polls, 100000);
    trail_is("abababababababababab");
    note_in(NULL, "c");
    while (cudaStreamQuery(NULL) == cudaErrorNotReady)
        BASE_CHECK_LT(++polls, 100000);
    BASE_CHECK_EQ(trail[20], 'c');

    // A loop that watches memory; and held work, which queries leave alone.
    note_in(two, "d");
    for (; strlen(trail) < 22; sim_progress())
        BASE_CHECK_LT(++polls, 100000);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    sim_stream_hold(one, true);
    note_in(one, "e");
    for (int i = 0; i < 100; ++i)
        BASE_CHECK_EQ(cudaStreamQuery(one), cudaErrorNotReady);
    sim_stream_hold(one, false);
    BASE_CHECK_EQ(cudaStreamSynchronize(one), cudaSuccess);
    BASE_CHECK_EQ(trail[22], 'e');
    base_check_context(NULL);
}

// --- Random: chances ---

// How a pair of unordered operations stands in a program: what comes before, between and behind.
struct pair {
    const char *name;
    unsigned int flags[2];
    int calls_between;
    bool events;       // each operation is followed by a record
    bool warmed;       // each stream had work, and was waited for
    bool single_waits; // stream by stream, instead of the device
    bool polls;        // queries until they succeed, stream by stream, the second one first
    int devices;       // 2: each operation on its own; 0: one
};

static const struct pair pairs[] = {
    {.name = "plain", .flags = {cudaStreamNonBlocking, cudaStreamNonBlocking}},
    {.name = "blocking", .flags = {cudaStreamDefault, cudaStreamDefault}},
    {.name = "mixed", .flags = {cudaStreamDefault, cudaStreamNonBlocking}, .single_waits = true},
    {.name = "three calls apart", .flags = {1, 1}, .calls_between = 3},
    {.name = "thirty calls apart", .flags = {1, 1}, .calls_between = 30},
    {.name = "recorded", .flags = {1, 1}, .events = true},
    {.name = "warmed", .flags = {1, 1}, .events = true, .warmed = true},
    {.name = "polled", .flags = {1, 1}, .polls = true},
    {.name = "two devices", .flags = {0, 0}, .devices = 2},
};

static bool first_comes_first(const struct pair *pair, uint64_t seed) {
    start_random(seed);
    cudaStream_t streams[2], idle = stream_new(cudaStreamNonBlocking);
    for (int i = 0; i < 2; ++i) {
        BASE_CHECK_EQ(cudaSetDevice(i < pair->devices ? i : 0), cudaSuccess);
        streams[i] = stream_new(pair->flags[i]);
    }
    for (int i = 0; i < 2 && pair->warmed; ++i)
        note_in(streams[i], "w");
    if (pair->warmed)
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    trail[0] = '\0';
    for (int i = 0; i < 2; ++i) {
        note_in(streams[i], i == 0 ? "a" : "b");
        if (pair->events)
            BASE_CHECK_EQ(cudaEventRecord(event_new(), streams[i]), cudaSuccess);
        for (int call = 0; call < pair->calls_between && i == 0; ++call)
            BASE_CHECK_EQ(cudaStreamQuery(idle), cudaSuccess);
    }
    for (int i = 0; i < 2 && pair->single_waits; ++i)
        BASE_CHECK_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
    for (int i = 1; i >= 0 && pair->polls; --i)
        while (cudaStreamQuery(streams[i]) == cudaErrorNotReady) {
        }
    for (int i = 1; i >= 0; --i) {
        BASE_CHECK_EQ(cudaSetDevice(i < pair->devices ? i : 0), cudaSuccess);
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    BASE_CHECK_EQ(strlen(trail), 2);
    return trail[0] == 'a';
}

static void of_two_unordered_operations_either_comes_first_in_half_of_the_seeds(void) {
    enum { SEEDS = 2000 };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
        int first = 0;
        for (uint64_t seed = 0; seed < SEEDS; ++seed)
            first += first_comes_first(&pairs[i], seed);
        printf("pair, %s: first in %.1f %% of %d seeds\n", pairs[i].name, 100.0 * first / SEEDS,
               SEEDS);
        base_check_context("pair \"%s\": first in %d of %d seeds", pairs[i].name, first, SEEDS);
        BASE_CHECK_GE(first * 100, SEEDS * 47);
        BASE_CHECK_LE(first * 100, SEEDS * 53);
        base_check_context(NULL);
    }
}

static void all_interleavings_of_two_streams_come(void) {
    enum { SEEDS = 2000, EACH = 3, ALL = 20 };
    static char seen[ALL][2 * EACH + 1];
    int count = 0;
    for (uint64_t seed = 0; seed < SEEDS; ++seed) {
        start_random(seed);
        cudaStream_t one = stream_new(cudaStreamNonBlocking),
                     two = stream_new(cudaStreamNonBlocking);
        for (int i = 0; i < EACH; ++i) {
            note_in(one, "a");
            note_in(two, "b");
        }
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
        int at = 0;
        while (at < count && strcmp(seen[at], trail) != 0)
            ++at;
        BASE_CHECK_LT(at, ALL);
        if (at == count)
            strcpy(seen[count++], trail);
    }
    printf("two streams of %d operations: %d of %d interleavings in %d seeds\n", EACH, count,
           (int)ALL, SEEDS);
    BASE_CHECK_EQ(count, ALL);
}

// A chain of hand-offs that has to fall into a gap: the third stream's operation comes between two
// steps of a long chain, at each of its places.
static void an_operation_comes_at_every_place_of_a_chain(void) {
    enum { SEEDS = 2000, CHAIN = 8 };
    int places[CHAIN + 1] = {0};
    for (uint64_t seed = 0; seed < SEEDS; ++seed) {
        start_random(seed);
        cudaStream_t ring[2] = {stream_new(cudaStreamNonBlocking),
                                stream_new(cudaStreamNonBlocking)};
        cudaStream_t lone = stream_new(cudaStreamNonBlocking);
        cudaEvent_t event = event_new();
        note_in(lone, "x");
        for (int i = 0; i < CHAIN; ++i) {
            note_in(ring[i % 2], "c");
            BASE_CHECK_EQ(cudaEventRecord(event, ring[i % 2]), cudaSuccess);
            BASE_CHECK_EQ(cudaStreamWaitEvent(ring[(i + 1) % 2], event, 0), cudaSuccess);
        }
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
        ++places[strchr(trail, 'x') - trail];
    }
    printf("places of one operation in a chain of %d:", CHAIN);
    for (int i = 0; i <= CHAIN; ++i)
        printf(" %d", places[i]);
    printf("\n");
    for (int i = 0; i <= CHAIN; ++i)
        BASE_CHECK_GT(places[i], 0);
}

static void both_answers_of_a_query_come_with_the_work_done_and_not_done(void) {
    int seen[2][2] = {{0}};
    for (uint64_t seed = 0; seed < 500; ++seed) {
        start_random(seed);
        cudaStream_t stream = stream_new(cudaStreamNonBlocking);
        note_in(stream, "a");
        const cudaError_t answer = cudaStreamQuery(stream);
        const bool ran = trail[0] == 'a';
        BASE_CHECK(answer == cudaErrorNotReady || (answer == cudaSuccess && ran));
        ++seen[answer == cudaSuccess][ran];
    }
    BASE_CHECK_GT(seen[0][0], 0);
    BASE_CHECK_GT(seen[0][1], 0);
    BASE_CHECK_GT(seen[1][1], 0);
}

// --- Random: what a program may rely on ---

static void what_the_host_has_seen_is_not_doubted(void) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
        base_check_context("seed %llu", (unsigned long long)seed);
        start_random(seed);
        cudaStream_t one = stream_new(cudaStreamNonBlocking),
                     two = stream_new(cudaStreamNonBlocking), three = stream_new(cudaStreamDefault);
        cudaEvent_t early = event_new(), late = event_new(), legacy = event_new();
        note_in(one, "a");
        BASE_CHECK_EQ(cudaEventRecord(early, one), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(two, early, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(late, two), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(legacy, NULL), cudaSuccess);
        note_in(three, "b"); // behind the legacy stream

        BASE_CHECK_EQ(cudaEventSynchronize(late), cudaSuccess); // and with it early
        BASE_CHECK_EQ(cudaEventQuery(early), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamQuery(one), cudaSuccess);
        while (cudaStreamQuery(three) != cudaSuccess) {
        }
        BASE_CHECK_EQ(cudaEventQuery(legacy), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaSuccess);
        note_in(one, "c");
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamQuery(one), cudaSuccess);
        float ms;
        BASE_CHECK_EQ(cudaEventElapsedTime(&ms, early, late), cudaSuccess);
    }
    base_check_context(NULL);
}

// --- Any schedule ---

static uint64_t work_hash(uint64_t seed) {
    uint64_t hash = 1469598103934665603u;
    start_random(seed);
    cudaStream_t streams[4];
    cudaEvent_t event = event_new();
    for (int i = 0; i < 4; ++i)
        streams[i] = stream_new(i % 2 == 0 ? cudaStreamDefault : cudaStreamNonBlocking);
    for (int i = 0; i < 40; ++i) {
        note_in(streams[i * 7 % 4], &"abcdefgh\0"[i % 8]); // a suffix: its first letter tells
        BASE_CHECK_EQ(cudaEventRecord(event, streams[i * 3 % 4]), cudaSuccess);
        hash = (hash ^ (uint64_t)cudaEventQuery(event)) * 1099511628211u;
        for (const char *at = trail; *at != '\0'; ++at)
            hash = (hash ^ (uint64_t)*at) * 1099511628211u;
        if (strlen(trail) > 40)
            trail[0] = '\0';
    }
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const char *at = trail; *at != '\0'; ++at)
        hash = (hash ^ (uint64_t)*at) * 1099511628211u;
    return hash;
}

static void the_same_seed_gives_the_same_run(void) {
    int different = 0;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        const uint64_t first = work_hash(seed);
        BASE_CHECK_EQ(work_hash(seed), first);
        different += work_hash(seed + 1) != first;
    }
    BASE_CHECK_GT(different, 45);
}

static void a_schedule_takes_over_what_another_one_left_pending(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:1", "random:2", "timed"};
    start("lazy", 1);
    cudaStream_t one = stream_new(cudaStreamNonBlocking), two = stream_new(cudaStreamDefault);
    cudaEvent_t event = event_new();
    for (int i = 0; i < 20; ++i) {
        note_in(one, "a");
        BASE_CHECK_EQ(cudaEventRecord(event, one), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(two, event, 0), cudaSuccess);
        note_in(two, "b");
        BASE_CHECK_EQ(sim_schedule(schedules[i % 5]), BASE_OK);
    }
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(strlen(trail), 40);
    BASE_CHECK_EQ(sim_schedule("lazy"), BASE_OK);
    note_in(one, "c");
    BASE_CHECK_EQ(strlen(trail), 40);
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    BASE_CHECK_EQ(strlen(trail), 41);
}

int main(void) {
    words_that_name_no_schedule_are_refused();
    lazy_runs_what_a_wait_needs_and_nothing_else();
    lazy_runs_one_operation_for_each_query_that_says_not_ready();
    polling_ends_under_every_schedule_unless_held("eager");
    polling_ends_under_every_schedule_unless_held("lazy");
    polling_ends_under_every_schedule_unless_held("timed");
    for (int seed = 0; seed < 100; ++seed) {
        char text[32];
        snprintf(text, sizeof text, "random:%d", seed);
        polling_ends_under_every_schedule_unless_held(text);
    }
    of_two_unordered_operations_either_comes_first_in_half_of_the_seeds();
    all_interleavings_of_two_streams_come();
    an_operation_comes_at_every_place_of_a_chain();
    both_answers_of_a_query_come_with_the_work_done_and_not_done();
    what_the_host_has_seen_is_not_doubted();
    the_same_seed_gives_the_same_run();
    a_schedule_takes_over_what_another_one_left_pending();
    return 0;
}
