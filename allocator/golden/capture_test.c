// The caching allocator decides during graph captures as PyTorch 2.15's own did, line by line; and
// these logs tell an allocator that does not.
#include "allocator/golden/capture_compare.h"
#include "allocator/golden/capture_logs.h"
#include "allocator/golden/differences.h"
#include "allocator/golden/program_check.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

// What is recorded: 121 scripts, each with reuse off and on.
#define LOG_COUNT 242
#define AGREE_COUNT 215
#define LINE_COUNT 48610
#define DESIGN_COUNT 27
// As PyTorch in all but the counters of a block that is restored while it waits.
#define COPIED_COUNT 240
#define SURVIVED_COUNT 12

static struct golden_result result;

struct sums {
    size_t agree, lines, design, survived;
};

static struct sums judge_all(const char *more) {
    struct sums sums = {0};
    size_t count;
    char **const paths = golden_capture_logs(&count);
    BASE_CHECK_EQ(count, LOG_COUNT);
    for (size_t index = 0; index < count; index++) {
        golden_judge(paths[index], &golden_subject_caching, more, &result);
        golden_result_print(&result, stdout);
        sums.survived += result.survived_count;
        sums.design += result.verdict == GOLDEN_DIFFERS_BY_DESIGN;
        if (result.verdict != GOLDEN_AGREES)
            continue;
        sums.agree++;
        sums.lines += result.line_count;
    }
    golden_capture_logs_free(paths, count);
    printf("%zu logs agree, %zu lines; %zu differ by design; %zu crashes survived\n", sums.agree,
           sums.lines, sums.design, sums.survived);
    fflush(stdout);
    return sums;
}

static void every_log_agrees_or_records_a_fault(void) {
    const struct sums sums = judge_all(NULL);
    BASE_CHECK_EQ(sums.agree, AGREE_COUNT);
    BASE_CHECK_EQ(sums.lines, LINE_COUNT);
    BASE_CHECK_EQ(sums.design, DESIGN_COUNT);
    BASE_CHECK_EQ(sums.agree + sums.design, LOG_COUNT);
}

static void pytorchs_faults_are_copied_short_of_crashing(void) {
    const struct sums sums = judge_all("x_torch_faults:True");
    BASE_CHECK_EQ(sums.agree, COPIED_COUNT);
    BASE_CHECK_EQ(sums.agree + sums.design, LOG_COUNT);
    BASE_CHECK_EQ(sums.survived, SURVIVED_COUNT);
}

//--------------------------------------------------------------------------------------------------
// A referee that never says no is worth nothing.

// The last character of a line, before what is not compared.
static char *last_of(char *line) {
    char *end = strchr(line, '\n');
    char *const queries = strstr(line, " q=[");
    if (queries != NULL && queries < end)
        end = queries;
    while (end > line && end[-1] == ' ')
        end--;
    return end > line ? end - 1 : line;
}

static void every_line_that_is_changed_is_found(void) {
    char *const script = program_read(GOLDEN_CAPTURE_FOLDER "h38b_expandable_many.txt");
    char *const log = program_read(GOLDEN_CAPTURE_FOLDER "h38b_expandable_many.on.log");
    program_write("broken.txt", script);
    size_t number = 0;
    for (char *line = log; *line != '\0'; line = strchr(line, '\n') + 1) {
        number++;
        char *const last = last_of(line);
        const char kept = *last;
        *last = kept == '7' ? '8' : '7';
        golden_capture_compare(program_write("broken.on.log", log), NULL, GOLDEN_CAPTURE_SOUND,
                               &result);
        base_check_context("line %zu", number);
        BASE_CHECK_EQ(result.verdict, GOLDEN_DIFFERS);
        BASE_CHECK_EQ(result.line_number, number);
        *last = kept;
    }
    base_check_context(NULL);
    free(script);
    free(log);
}

static void planted_faults_are_found(void) {
    size_t count;
    char **const paths = golden_capture_logs(&count);
    for (int plant = GOLDEN_CAPTURE_SOUND + 1; plant < GOLDEN_CAPTURE_PLANT_COUNT; plant++) {
        size_t found = 0;
        for (size_t index = 0; index < count; index++) {
            golden_capture_compare(paths[index], "x_torch_faults:True",
                                   (enum golden_capture_plant)plant, &result);
            found += result.verdict == GOLDEN_DIFFERS;
        }
        printf("planted fault %d: %zu logs differ\n", plant, found);
        BASE_CHECK_LT(3, found);
    }
    golden_capture_logs_free(paths, count);
}

int main(void) {
    every_log_agrees_or_records_a_fault();
    pytorchs_faults_are_copied_short_of_crashing();
    every_line_that_is_changed_is_found();
    planted_faults_are_found();
}
