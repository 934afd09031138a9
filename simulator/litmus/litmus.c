// Plays litmus cases under every schedule of the simulator: is what they leave allowed, and is
// every allowed outcome reached?
//
//     bazel run //simulator:litmus -- simulator/litmus/testdata/event.litmus
//     bazel run //simulator:litmus -- --case event-diamond --seed 17 --seeds 1 FILE
//
// A case that needs what is not played (capture, graphs) is listed with the reason and not counted.
#include "base/options.h"
#include "simulator/litmus/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t seed_count = LITMUS_REACHING_SEED_COUNT;
static const char *schedule_name = "all";
static const char *case_name;
static bool quiet, checked;

static const struct base_option options[] = {
    {"seeds", "N", BASE_OPTION_COUNT, &seed_count, "seeds of random and of held; default 2000"},
    {"schedule", "NAME", BASE_OPTION_TEXT, &schedule_name,
     "eager, lazy, random, held (operations of held streams run at random), or all (default)"},
    {"case", "NAME", BASE_OPTION_TEXT, &case_name, "this case only"},
    {"checked", NULL, BASE_OPTION_FLAG, &checked,
     "in checked mode: it also says what the cases do wrong, on standard error"},
    {"quiet", NULL, BASE_OPTION_FLAG, &quiet, "only what is wrong, and the last lines"},
    {0}};

static const struct base_program program = {
    .name = "litmus",
    .arguments = "FILE...",
    .summary = "Plays litmus cases on the simulated device under every schedule: error codes and "
               "outcomes against those that CUDA's order allows.",
    .details = "Each case prints how many of its allowed outcomes the random schedule reached. "
               "From 2000 seeds on, one that was not reached is a fault.\n"
               "Exit status: 0 all is right, 1 something is not, 2 a file cannot be read, 3 "
               "nothing could be judged.",
    .common = BASE_COMMON_SEED | BASE_COMMON_FORMAT,
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1};

struct totals {
    uint64_t case_count, judged_count, wrong_count, skipped_count;
    uint64_t outcome_count, reached_count, run_count;
};

static void plan_schedules(struct litmus_plan *plan) {
    bool found = false;
    for (int i = 0; i < LITMUS_SCHEDULE_COUNT; ++i) {
        plan->schedules[i] = strcmp(schedule_name, "all") == 0 ||
                             strcmp(schedule_name, litmus_schedule_name(i)) == 0;
        found |= plan->schedules[i];
    }
    if (!found)
        base_options_usage_error(&program, "no schedule \"%s\": eager, lazy, random, held or all",
                                 schedule_name);
}

// --- Output ---

static void print_reading_text(const struct litmus_case *subject,
                               const struct litmus_reading_result *reading, bool right) {
    const struct litmus_expectation *expectation = reading->expectation;
    if (quiet && right)
        return;
    printf("%s%s%s%s%s: %d of %d outcomes reached in %" PRIu64 " runs", subject->name,
           expectation->reading == NULL ? "" : " ",
           expectation->reading == NULL ? "" : expectation->reading,
           expectation->reading == NULL ? "" : "=",
           expectation->reading == NULL ? "" : expectation->reading_value, reading->reached_count,
           expectation->outcome_count, reading->run_count);
    if (reading->illegal_address_count > 0)
        printf(", %" PRIu64 " ended in error 700", reading->illegal_address_count);
    printf("\n");
    if (reading->violation_count > 0)
        printf("  WRONG in %" PRIu64 " runs; the first: %s\n", reading->violation_count,
               reading->violation);
    for (int i = 0; i < expectation->outcome_count; ++i)
        if (reading->reached[i] == 0)
            printf("    not reached: %s\n", expectation->outcomes[i].text);
}

static void print_string(const char *text) {
    putchar('"');
    for (; *text != '\0'; ++text) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_reading_json(const struct litmus_case *subject,
                               const struct litmus_reading_result *reading, bool right) {
    const struct litmus_expectation *expectation = reading->expectation;
    printf("{\"case\":\"%s\",\"kind\":\"%s\"", subject->name, subject->kind);
    if (expectation->reading != NULL)
        printf(",\"reading\":\"%s=%s\"", expectation->reading, expectation->reading_value);
    printf(",\"right\":%s,\"runs\":%" PRIu64 ",\"illegal_address_runs\":%" PRIu64
           ",\"wrong_runs\":%" PRIu64 ",\"reached\":%d,\"allowed\":%d,\"outcomes\":[",
           right ? "true" : "false", reading->run_count, reading->illegal_address_count,
           reading->violation_count, reading->reached_count, expectation->outcome_count);
    for (int i = 0; i < expectation->outcome_count; ++i) {
        printf("%s{\"outcome\":", i > 0 ? "," : "");
        print_string(expectation->outcomes[i].text);
        printf(",\"runs\":%" PRIu64 "}", reading->reached[i]);
    }
    printf("]");
    if (reading->violation_count > 0) {
        printf(",\"wrong\":");
        print_string(reading->violation);
    }
    printf("}\n");
}

static void print_skipped(const struct litmus_case *subject, bool format_json) {
    if (format_json)
        printf("{\"case\":\"%s\",\"kind\":\"%s\",\"needs\":\"%s\"}\n", subject->name,
               subject->kind, subject->needs);
    else if (!quiet)
        printf("%s: not judged, needs %s\n", subject->name, subject->needs);
}

static void print_totals(const struct totals *totals, bool format_json) {
    if (format_json)
        return;
    printf("%" PRIu64 " cases judged in %" PRIu64 " runs: %" PRIu64 " right, %" PRIu64
           " wrong; %" PRIu64 " of %" PRIu64 " allowed outcomes reached; %" PRIu64
           " cases of %" PRIu64 " not judged\n",
           totals->judged_count, totals->run_count, totals->judged_count - totals->wrong_count,
           totals->wrong_count, totals->reached_count, totals->outcome_count,
           totals->skipped_count, totals->case_count);
}

// --- Judging ---

static enum base_status judge_case(struct litmus_player *player, const struct litmus_case *subject,
                                   const struct litmus_plan *plan, bool format_json,
                                   struct totals *totals) {
    ++totals->case_count;
    if (subject->needs != NULL) {
        ++totals->skipped_count;
        print_skipped(subject, format_json);
        return BASE_OK;
    }
    struct litmus_judgement judgement;
    const enum base_status status = litmus_judge(player, subject, plan, &judgement);
    if (status != BASE_OK)
        return status;
    bool all_right = true;
    for (int i = 0; i < judgement.reading_count; ++i) {
        const struct litmus_reading_result *reading = &judgement.readings[i];
        const bool right = litmus_reading_is_right(reading, plan);
        all_right &= right;
        (format_json ? print_reading_json : print_reading_text)(subject, reading, right);
        totals->outcome_count += (uint64_t)reading->expectation->outcome_count;
        totals->reached_count += (uint64_t)reading->reached_count;
        totals->run_count += reading->run_count;
    }
    ++totals->judged_count;
    totals->wrong_count += !all_right;
    litmus_judgement_deinit(&judgement);
    return BASE_OK;
}

static enum base_status judge_file(struct litmus_player *player, const char *path,
                                   const struct litmus_plan *plan, bool format_json,
                                   struct totals *totals) {
    struct litmus_file file;
    enum base_status status = litmus_file_read(path, &file);
    if (status != BASE_OK)
        return status;
    for (size_t i = 0; i < file.case_count && status == BASE_OK; ++i)
        if (case_name == NULL || strcmp(case_name, file.cases[i].name) == 0)
            status = judge_case(player, &file.cases[i], plan, format_json, totals);
    litmus_file_deinit(&file);
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    struct litmus_plan plan = {.first_seed = common.seed, .seed_count = seed_count};
    plan_schedules(&plan);
    if (!common.format_json)
        printf("seeds %" PRIu64 " to %" PRIu64 "\n", plan.first_seed,
               plan.first_seed + (seed_count == 0 ? 0 : seed_count - 1));

    struct litmus_player *player = litmus_player_create(checked);
    struct totals totals = {0};
    enum base_status status = BASE_OK;
    for (int i = 0; i < common.argument_count && status == BASE_OK; ++i)
        status = judge_file(player, common.arguments[i], &plan, common.format_json, &totals);
    litmus_player_destroy(player);
    if (status != BASE_OK) {
        fprintf(stderr, "litmus: %s\n", base_status_message());
        return base_status_exit_code(status);
    }
    print_totals(&totals, common.format_json);
    if (totals.wrong_count > 0)
        return 1;
    if (totals.judged_count == 0 && case_name != NULL && totals.skipped_count == 0)
        fprintf(stderr, "litmus: no case \"%s\" in these files\n", case_name);
    return totals.judged_count > 0 ? 0 : 3;
}
