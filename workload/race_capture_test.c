// Graphs are captured under every form of reuse, launched in many orders, and every byte is there;
// with a wrong rule the race checker speaks.
//
//     race_capture_test [SEED [PROGRAMS]]
//
// That each kind of thing happens, and each wrong rule is found, is required of the default seed;
// of other ones it is told.
#include "workload/race_capture.h"

#include "allocator/capture_markers.h"
#include "base/check.h"
#include "simulator/sim_race.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED 11
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define REUSE "graph_capture_record_stream_reuse:True"

static const char *const configs[] = {
    "",
    REUSE,
    REUSE ",expandable_segments:True",
    "x_capture_reuse:terminals",
    "x_capture_reuse:markers",
    "x_capture_reuse:markers_graph",
    "x_capture_reuse:markers,expandable_segments:True",
    REUSE ",max_split_size_mb:20,x_skip_stuck:True",
};
static const char *const schedules[] = {"eager", "lazy", "random:1"};

struct mode {
    const char *name;
    bool unjoins, turns, nests, fails, alone;
    int threads;
};
static const struct mode modes[] = {
    {.name = "plain"},
    {.name = "joins taken back", .unjoins = true},
    {.name = "pools and parts", .nests = true, .unjoins = true},
    {.name = "failures", .nests = true, .fails = true},
    {.name = "threads in turns",
     .threads = 2,
     .turns = true,
     .nests = true,
     .unjoins = true,
     .fails = true},
    {.name = "threads", .threads = 3, .nests = true, .unjoins = true, .fails = true},
};

static struct workload_race_found run(const char *config, const struct mode *mode,
                                      enum workload_race_plant plant, uint64_t seed, int program) {
    struct workload_race_found found;
    workload_race_capture(
        &(struct workload_race_capture){.config = config,
                                        .schedule = schedules[(size_t)program % COUNT(schedules)],
                                        .seed = seed + (uint64_t)program,
                                        .plant = plant,
                                        .unjoins = mode->unjoins,
                                        .alone = mode->alone,
                                        .threads = mode->threads,
                                        .turns = mode->turns,
                                        .nests = mode->nests,
                                        .fails = mode->fails},
        &found);
    return found;
}

static void add(struct workload_race_found *sum, const struct workload_race_found *found) {
    sum->captures += found->captures;
    sum->launches += found->launches;
    sum->proven += found->proven;
    sum->parts += found->parts;
    sum->user_scopes += found->user_scopes;
    sum->unjoined += found->unjoined;
    sum->invalidated += found->invalidated;
    sum->out_of_memory += found->out_of_memory;
    sum->beside += found->beside;
}

static void right_programs_have_no_race(const char *config, const struct mode *mode, uint64_t seed,
                                        int programs, struct workload_race_found *sum) {
    for (int program = 0; program < programs; program++) {
        const struct workload_race_found found =
            run(config, mode, WORKLOAD_RACE_SOUND, seed, program);
        if (found.races > 0) fprintf(stderr, "%s", sim_race_report_at(0)->text);
        BASE_CHECK_EQ(found.races, 0);
        BASE_CHECK_EQ(found.wrong_bytes, 0);
        BASE_CHECK_EQ(found.reserved_at_end, 0);
        add(sum, &found);
    }
}

static bool is_default;

// That the programs do what they are for.
static void print_mode(const struct mode *mode, const struct workload_race_found *sum) {
    printf("%s: %" PRIu64 " captures (lost: %" PRIu64 " unjoined, %" PRIu64 " invalidated; %" PRIu64
           " out of memory), %" PRIu64 " launches, %" PRIu64 " parts, %" PRIu64 " scopes; %" PRIu64
           " frees proven in their capture, %" PRIu64 " requests beside it\n",
           mode->name, sum->captures, sum->unjoined, sum->invalidated, sum->out_of_memory,
           sum->launches, sum->parts, sum->user_scopes, sum->proven, sum->beside);
    if (!is_default) return;
    BASE_CHECK(sum->proven > 0);
    BASE_CHECK((sum->parts > 0 && sum->user_scopes > 0) == mode->nests);
    BASE_CHECK((sum->unjoined > 0 && sum->invalidated > 0 && sum->out_of_memory > 0) ==
               mode->fails);
    BASE_CHECK((sum->beside > 0) == (mode->threads > 0));
}

static void right_programs_have_no_race_under_any_setting(uint64_t seed, int programs) {
    uint64_t proven[COUNT(configs)] = {0};
    for (size_t mode = 0; mode < COUNT(modes); mode++) {
        struct workload_race_found sum = {0};
        for (size_t config = 0; config < COUNT(configs); config++) {
            const uint64_t before = sum.proven;
            right_programs_have_no_race(configs[config], &modes[mode], seed, programs, &sum);
            proven[config] += sum.proven - before;
        }
        print_mode(&modes[mode], &sum);
    }
    for (size_t config = 0; config < COUNT(configs); config++) {
        printf("\"%s\": %" PRIu64 " frees proven in their capture\n", configs[config],
               proven[config]);
        if (is_default) BASE_CHECK((proven[config] > 0) == (configs[config][0] != '\0'));
    }
}

// How many of the programs the checker tells something of.
static int count_told(const char *config, const struct mode *mode, enum workload_race_plant plant,
                      uint64_t seed, int programs) {
    int told = 0;
    for (int program = 0; program < programs; program++)
        told += run(config, mode, plant, seed, program).races > 0;
    printf("\"%s\", planted rule %d, joins %s, %d threads more: %d of %d programs tell\n", config,
           (int)plant, mode->unjoins ? "taken back" : "stay", mode->threads, told, programs);
    return told;
}

static void expect_more(int told, int than) {
    if (is_default) BASE_CHECK_GT(told, than);
}

// Wrong rules that are in no setting are put between the allocator and what it asks.
static bool any_terminal;
__typeof__(cca__markers_look) __real_cca__markers_look, __wrap_cca__markers_look;
enum base_status __wrap_cca__markers_look(struct cca__capture_markers *markers, cudaStream_t stream,
                                          const struct cca__capture_state *state,
                                          const cudaStream_t *streams, size_t stream_count,
                                          const uint64_t **tokens, size_t *count) {
    if (any_terminal)
        return __real_cca__markers_look(markers, stream, state, &stream, 1, tokens, count);
    return __real_cca__markers_look(markers, stream, state, streams, stream_count, tokens, count);
}

static void wrong_rules_are_found(const struct mode *mode, uint64_t seed, int programs) {
    static const char graph_wide[] = "x_capture_reuse:markers_graph";
    const int most = programs / 2;
    expect_more(count_told(REUSE, mode, WORKLOAD_RACE_FORGETS_USES, seed, programs), most);
    expect_more(count_told(REUSE, mode, WORKLOAD_RACE_MISSES_STREAM, seed, programs), most);
    // The graph-wide rule, by the terminals of one stream instead of all.
    any_terminal = true;
    expect_more(count_told(graph_wide, mode, WORKLOAD_RACE_SOUND, seed, programs), 0);
    any_terminal = false;
    BASE_CHECK_EQ(count_told(graph_wide, mode, WORKLOAD_RACE_SOUND, seed, programs), 0);
}

static void pytorchs_memory_of_joins_is_found_where_they_are_taken_back(struct mode mode,
                                                                        uint64_t seed,
                                                                        int programs) {
    static const char config[] = REUSE ",x_torch_faults:True";
    mode.unjoins = true;
    expect_more(count_told(config, &mode, WORKLOAD_RACE_SOUND, seed, programs), programs / 2);
    mode.unjoins = false;
    BASE_CHECK_EQ(count_told(config, &mode, WORKLOAD_RACE_SOUND, seed, programs), 0);
}

int main(int argc, char **argv) {
    static const struct mode one_thread = {.unjoins = true, .alone = true},
                             threads = {
                                 .unjoins = true, .alone = true, .threads = 2, .turns = true};
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : SEED;
    const int programs = argc > 2 ? atoi(argv[2]) : 3;
    is_default = argc == 1;
    printf("seed %" PRIu64 "\n", seed);
    right_programs_have_no_race_under_any_setting(seed, programs);
    wrong_rules_are_found(&one_thread, seed, 2 * programs);
    wrong_rules_are_found(&threads, seed, 2 * programs);
    pytorchs_memory_of_joins_is_found_where_they_are_taken_back(one_thread, seed, programs);
    pytorchs_memory_of_joins_is_found_where_they_are_taken_back(threads, seed, programs);
    base_check_context(NULL);
    return 0;
}
