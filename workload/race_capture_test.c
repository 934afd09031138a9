// Graphs are captured under every form of reuse, launched in many orders, and every byte is there;
// with a wrong rule the race checker speaks.
//
//     race_capture_test [SEED [PROGRAMS]]
#include "workload/race_capture.h"

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

static void right_programs_have_no_race(uint64_t seed, int programs) {
    struct workload_race_found found;
    for (size_t config = 0; config < COUNT(configs); config++) {
        uint64_t captures = 0, launches = 0, proven = 0;
        for (int program = 0; program < programs; program++)
            for (int unjoins = 0; unjoins < 2; unjoins++) {
                workload_race_capture(
                    &(struct workload_race_capture){
                        .config = configs[config],
                        .schedule = schedules[(size_t)program % COUNT(schedules)],
                        .seed = seed + (uint64_t)program,
                        .unjoins = unjoins == 1},
                    &found);
                if (found.races > 0)
                    printf("%s", sim_race_report_at(0)->text);
                BASE_CHECK_EQ(found.races, 0);
                BASE_CHECK_EQ(found.wrong_bytes, 0);
                BASE_CHECK_EQ(found.reserved_at_end, 0);
                captures += found.captures;
                launches += found.launches;
                proven += found.proven;
            }
        printf("\"%s\": %" PRIu64 " captures, %" PRIu64 " launches; %" PRIu64
               " frees proven in their capture\n",
               configs[config], captures, launches, proven);
        BASE_CHECK((proven > 0) == (configs[config][0] != '\0'));
    }
}

// How many of the programs the checker tells something of.
static int count_told(const char *config, enum workload_race_plant plant, bool unjoins,
                      uint64_t seed, int programs) {
    struct workload_race_found found;
    int told = 0;
    for (int program = 0; program < programs; program++) {
        workload_race_capture(
            &(struct workload_race_capture){.config = config,
                                            .schedule =
                                                schedules[(size_t)program % COUNT(schedules)],
                                            .seed = seed + (uint64_t)program,
                                            .plant = plant,
                                            .unjoins = unjoins,
                                            .alone = true},
            &found);
        told += found.races > 0;
    }
    printf("\"%s\", planted rule %d, joins %s: %d of %d programs tell\n", config, (int)plant,
           unjoins ? "taken back" : "stay", told, programs);
    return told;
}

static void wrong_rules_are_found(uint64_t seed, int programs) {
    const int most = programs / 2;
    BASE_CHECK_GT(count_told(REUSE, WORKLOAD_RACE_FORGETS_USES, true, seed, programs), most);
    BASE_CHECK_GT(count_told(REUSE, WORKLOAD_RACE_MISSES_STREAM, true, seed, programs), most);
}

static void pytorchs_memory_of_joins_is_found_where_they_are_taken_back(uint64_t seed,
                                                                        int programs) {
    static const char config[] = REUSE ",x_torch_faults:True";
    BASE_CHECK_GT(count_told(config, WORKLOAD_RACE_SOUND, true, seed, programs), programs / 2);
    BASE_CHECK_EQ(count_told(config, WORKLOAD_RACE_SOUND, false, seed, programs), 0);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : SEED;
    const int programs = argc > 2 ? atoi(argv[2]) : 6;
    printf("seed %" PRIu64 "\n", seed);
    right_programs_have_no_race(seed, programs);
    wrong_rules_are_found(seed, programs);
    pytorchs_memory_of_joins_is_found_where_they_are_taken_back(seed, programs);
    base_check_context(NULL);
    return 0;
}
