// Plays litmus cases under every schedule of the simulator: is what they leave allowed, is every
// allowed outcome reached, and does the race checker find the races that there are, and no others?
//
//     bazel run //simulator:litmus -- simulator/litmus/testdata/event.litmus
//     bazel run //simulator:litmus -- --case event-diamond --seed 17 --seeds 1 FILE
#include "base/file.h"
#include "base/options.h"
#include "simulator/litmus/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t seed_count = LITMUS_REACHING_SEED_COUNT;
static uint64_t verdict_count = LITMUS_VERDICT_SEED_COUNT;
static uint64_t reading_number = 1;
static const char *schedule_name = "all";
static const char *case_name;
static const char *answers_path;
static bool quiet, checked;

static const struct base_option options[] = {
    {"seeds", "N", BASE_OPTION_COUNT, &seed_count, "seeds of random and of held; default 2000"},
    {"schedule", "NAME", BASE_OPTION_TEXT, &schedule_name,
     "eager, lazy, random, held (operations of held streams run at random), or all (default)"},
    {"case", "NAME", BASE_OPTION_TEXT, &case_name, "this case only"},
    {"verdicts", "N", BASE_OPTION_COUNT, &verdict_count,
     "of these seeds, so many run under the race checker; default 64, 0: no verdicts"},
    {"answers", "FILE", BASE_OPTION_TEXT, &answers_path,
     "writes what the checker and the runs answer, a line each, for another referee (where queries "
     "decide, those of 64 seeds of random too); - : on standard output, and nothing else there"},
    {"reading", "N", BASE_OPTION_COUNT, &reading_number,
     "of undecided cases, the answers under the first reading (default) or the second one"},
    {"checked", NULL, BASE_OPTION_FLAG, &checked,
     "in checked mode: it also says what the cases do wrong, on standard error"},
    {"quiet", NULL, BASE_OPTION_FLAG, &quiet, "only what is wrong, and the last lines"},
    {0}};

static const struct base_program program = {
    .name = "litmus",
    .arguments = "FILE...",
    .summary = "Plays litmus cases on the simulated device under every schedule: error codes, "
               "outcomes and races against those of CUDA's order.",
    .details = "Each case prints how many of its allowed outcomes the random schedule reached, and "
               "how many of its races the race checker reported under every schedule. From 2000 "
               "seeds on, an outcome that was not reached is a fault; a report that is none of the "
               "case's races always is, and so is no report where there are races.\n"
               "Exit status: 0 all is right, 1 something is not, 2 a file cannot be read, 3 there "
               "is no such case.",
    .common = BASE_COMMON_SEED | BASE_COMMON_FORMAT,
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1};

struct totals {
    uint64_t case_count, wrong_count;
    uint64_t outcome_count, reached_count, run_count, verdict_run_count;
    uint64_t listed[LITMUS_RACE_KIND_COUNT];
    uint64_t found[LITMUS_RACE_KIND_COUNT][LITMUS_SCHEDULE_COUNT];
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

static uint8_t schedules_mask(const struct litmus_plan *plan) {
    uint8_t mask = 0;
    for (int i = 0; i < LITMUS_SCHEDULE_COUNT; ++i)
        mask |= (uint8_t)(plan->schedules[i] << i);
    return mask;
}

// Races found under each of the schedules that were played.
static int found_everywhere(const struct litmus_reading_result *reading,
                            const struct litmus_plan *plan) {
    const uint8_t mask = schedules_mask(plan);
    int count = 0;
    for (int i = 0; i < reading->expectation->race_count; ++i)
        count += (reading->found[i] & mask) == mask;
    return count;
}

static void print_races_text(const struct litmus_case *subject,
                             const struct litmus_reading_result *reading,
                             const struct litmus_plan *plan) {
    const uint8_t mask = schedules_mask(plan);
    char text[LITMUS_RACE_TEXT_SIZE];
    for (int i = 0; i < reading->expectation->race_count; ++i) {
        if (reading->verdict_run_count == 0 || (reading->found[i] & mask) == mask)
            continue;
        litmus_race_format(subject, &reading->expectation->races[i], text);
        printf("    not found under");
        for (int k = 0; k < LITMUS_SCHEDULE_COUNT; ++k)
            if ((mask & ~reading->found[i]) >> k & 1)
                printf(" %s", litmus_schedule_name((enum litmus_schedule)k));
        printf(": %s\n", text);
    }
}

static void print_reading_text(const struct litmus_case *subject,
                               const struct litmus_reading_result *reading,
                               const struct litmus_plan *plan, bool right) {
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
    if (reading->verdict_run_count > 0)
        printf("; %d of %d races found", found_everywhere(reading, plan), expectation->race_count);
    printf("\n");
    if (reading->violation_count > 0)
        printf("  WRONG in %" PRIu64 " runs; the first: %s\n", reading->violation_count,
               reading->violation);
    for (int i = 0; i < expectation->outcome_count; ++i)
        if (reading->reached[i] == 0)
            printf("    not reached: %s\n", expectation->outcomes[i].text);
    print_races_text(subject, reading, plan);
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

static void print_races_json(const struct litmus_case *subject,
                             const struct litmus_reading_result *reading) {
    char text[LITMUS_RACE_TEXT_SIZE];
    for (int i = 0; i < reading->expectation->race_count; ++i) {
        const char *comma = "";
        litmus_race_format(subject, &reading->expectation->races[i], text);
        printf("%s{\"race\":\"%s\",\"found\":[", i > 0 ? "," : "", text);
        for (int k = 0; k < LITMUS_SCHEDULE_COUNT; ++k) {
            if ((reading->found[i] >> k & 1) == 0)
                continue;
            printf("%s\"%s\"", comma, litmus_schedule_name((enum litmus_schedule)k));
            comma = ",";
        }
        printf("]}");
    }
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
    printf("],\"verdict\":\"%s\",\"verdict_runs\":%" PRIu64 ",\"races\":[",
           expectation->race ? "race" : "ok", reading->verdict_run_count);
    print_races_json(subject, reading);
    printf("]");
    if (reading->violation_count > 0) {
        printf(",\"wrong\":");
        print_string(reading->violation);
    }
    printf("}\n");
}

// Races found of those that the cases list, by kind; several readings of a case count each.
static void print_races_table(const struct totals *totals, const struct litmus_plan *plan) {
    uint64_t listed = 0, found[LITMUS_SCHEDULE_COUNT] = {0};
    printf("\n%-18s %8s", "races found", "listed");
    for (int k = 0; k < LITMUS_SCHEDULE_COUNT; ++k)
        if (plan->schedules[k])
            printf(" %8s", litmus_schedule_name((enum litmus_schedule)k));
    printf("\n");
    for (int i = 0; i <= LITMUS_RACE_KIND_COUNT; ++i) {
        const bool is_sum = i == LITMUS_RACE_KIND_COUNT;
        listed += is_sum ? 0 : totals->listed[i];
        printf("%-18s %8" PRIu64,
               is_sum ? "all" : litmus_race_kind_word((enum litmus_race_kind)i),
               is_sum ? listed : totals->listed[i]);
        for (int k = 0; k < LITMUS_SCHEDULE_COUNT; ++k) {
            if (!plan->schedules[k])
                continue;
            found[k] += is_sum ? 0 : totals->found[i][k];
            printf(" %8" PRIu64, is_sum ? found[k] : totals->found[i][k]);
        }
        printf("\n");
    }
    printf("\n");
}

static void print_totals(const struct totals *totals, const struct litmus_plan *plan) {
    if (totals->verdict_run_count > 0)
        print_races_table(totals, plan);
    printf("%" PRIu64 " cases judged in %" PRIu64 " runs, %" PRIu64
           " of them under the race checker: %" PRIu64 " right, %" PRIu64 " wrong; %" PRIu64
           " of %" PRIu64 " allowed outcomes reached\n",
           totals->case_count, totals->run_count, totals->verdict_run_count,
           totals->case_count - totals->wrong_count, totals->wrong_count, totals->reached_count,
           totals->outcome_count);
}

// --- Judging ---

// What the options say, for all cases.
struct job {
    struct litmus_player *player;
    struct litmus_plan plan;
    struct litmus_answers answers;
    FILE *answers_file; // NULL: none are written
    bool format_json, silent;
    struct totals totals;
};

static void count_reading(const struct litmus_reading_result *reading, struct totals *totals) {
    const struct litmus_expectation *expectation = reading->expectation;
    totals->outcome_count += (uint64_t)expectation->outcome_count;
    totals->reached_count += (uint64_t)reading->reached_count;
    totals->run_count += reading->run_count;
    totals->verdict_run_count += reading->verdict_run_count;
    for (int i = 0; i < expectation->race_count; ++i) {
        ++totals->listed[expectation->races[i].kind];
        for (int k = 0; k < LITMUS_SCHEDULE_COUNT; ++k)
            totals->found[expectation->races[i].kind][k] += reading->found[i] >> k & 1;
    }
}

// Which races there are can depend on what a single query answers, and a schedule may know one
// answer only: what such a case is answered with are so many seeds of random besides.
static enum base_status observe_queries(struct job *job, const struct litmus_case *subject) {
    if (job->answers_file == NULL || job->plan.schedules[LITMUS_SCHEDULE_RANDOM] ||
        !litmus_case_asks(subject))
        return BASE_OK;
    struct litmus_plan plan = job->plan;
    memset(plan.schedules, 0, sizeof plan.schedules);
    plan.schedules[LITMUS_SCHEDULE_RANDOM] = true;
    plan.seed_count = plan.verdict_seed_count = LITMUS_VERDICT_SEED_COUNT;
    struct litmus_judgement judgement;
    const enum base_status status = litmus_judge(job->player, subject, &plan, &judgement);
    if (status == BASE_OK)
        litmus_judgement_deinit(&judgement);
    return status;
}

static enum base_status judge_case(struct job *job, const struct litmus_case *subject) {
    struct litmus_judgement judgement;
    enum base_status status = litmus_judge(job->player, subject, &job->plan, &judgement);
    if (status != BASE_OK)
        return status;
    bool all_right = true;
    for (int i = 0; i < judgement.reading_count; ++i) {
        const struct litmus_reading_result *reading = &judgement.readings[i];
        const bool right = litmus_reading_is_right(reading, &job->plan);
        all_right &= right;
        if (!job->silent && job->format_json)
            print_reading_json(subject, reading, right);
        else if (!job->silent)
            print_reading_text(subject, reading, &job->plan, right);
        count_reading(reading, &job->totals);
    }
    ++job->totals.case_count;
    job->totals.wrong_count += !all_right;
    litmus_judgement_deinit(&judgement);
    status = observe_queries(job, subject);
    if (job->answers_file != NULL)
        litmus_answers_write(&job->answers, subject, job->answers_file);
    return status;
}

static enum base_status judge_file(struct job *job, const char *path) {
    struct litmus_file file;
    enum base_status status = litmus_file_read(path, &file);
    if (status != BASE_OK)
        return status;
    for (size_t i = 0; i < file.case_count && status == BASE_OK; ++i)
        if (case_name == NULL || strcmp(case_name, file.cases[i].name) == 0)
            status = judge_case(job, &file.cases[i]);
    litmus_file_deinit(&file);
    return status;
}

static void job_options(struct job *job, const struct base_common *common) {
    job->plan = (struct litmus_plan){.first_seed = common->seed,
                                     .seed_count = seed_count,
                                     .verdict_seed_count = verdict_count};
    job->format_json = common->format_json;
    plan_schedules(&job->plan);
    if (reading_number < 1 || reading_number > 2)
        base_options_usage_error(&program, "no reading %" PRIu64 ": 1 or 2", reading_number);
    if (answers_path != NULL && verdict_count == 0)
        base_options_usage_error(&program, "--answers wants verdicts: --verdicts above 0");
    job->answers.reading = (int)reading_number - 1;
    job->silent = answers_path != NULL && strcmp(answers_path, "-") == 0;
    if (answers_path != NULL) {
        job->plan.observe = litmus_answers_observe;
        job->plan.context = &job->answers;
    }
}

static enum base_status judge_files(struct job *job, const struct base_common *common) {
    struct base_file answers;
    enum base_status status = BASE_OK;
    const bool to_file = answers_path != NULL && !job->silent;
    if (to_file)
        status = base_file_create(&answers, answers_path);
    if (status != BASE_OK)
        return status;
    job->answers_file = to_file ? answers.stream : job->silent ? stdout : NULL;
    for (int i = 0; i < common->argument_count && status == BASE_OK; ++i)
        status = judge_file(job, common->arguments[i]);
    if (to_file && status == BASE_OK)
        status = base_file_commit(&answers);
    else if (to_file)
        base_file_abandon(&answers);
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    struct job job = {0};
    job_options(&job, &common);
    if (!job.format_json && !job.silent)
        printf("seeds %" PRIu64 " to %" PRIu64 "\n", job.plan.first_seed,
               job.plan.first_seed + (seed_count == 0 ? 0 : seed_count - 1));
    job.player = litmus_player_create(checked);
    const enum base_status status = judge_files(&job, &common);
    litmus_player_destroy(job.player);
    if (status != BASE_OK) {
        fprintf(stderr, "litmus: %s\n", base_status_message());
        return base_status_exit_code(status);
    }
    if (!job.format_json && !job.silent)
        print_totals(&job.totals, &job.plan);
    if (job.totals.wrong_count > 0)
        return 1;
    if (job.totals.case_count == 0 && case_name != NULL)
        fprintf(stderr, "litmus: no case \"%s\" in these files\n", case_name);
    return job.totals.case_count > 0 ? 0 : 3;
}
