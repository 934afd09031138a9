// A tensor of this library becomes what PyTorch's became, operation by operation.
#include "base/check.h"
#include "tensor/golden/compare.h"
#include "tensor/golden/recorded_logs.h"

#include <stdio.h>
#include <string.h>

static const char *const random_logs[] = {GOLDEN_RANDOM_LOGS};
static const char *const rule_logs[] = {GOLDEN_RULE_LOGS};
static const char *const fault_logs[] = {GOLDEN_FAULT_LOGS};
static const char *const sound_logs[] = {GOLDEN_SOUND_LOGS};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void compare(const char *name, struct golden_result *result) {
    char path[256];
    snprintf(path, sizeof path, "tensor/golden/testdata/%s.log", name);
    golden_compare(path, result);
    golden_result_print(result, stdout);
    fflush(stdout);
    BASE_CHECK_EQ(result->leaked_blocks, 0);
}

static void logs_check(const char *const *names, size_t count, size_t operations, size_t lines) {
    size_t agreed_operations = 0, agreed_lines = 0;
    for (size_t index = 0; index < count; index++) {
        static struct golden_result result;
        compare(names[index], &result);
        BASE_CHECK_EQ(result.verdict, GOLDEN_AGREES);
        agreed_operations += result.operation_count;
        agreed_lines += result.line_count;
    }
    printf("%zu logs, %zu operations, %zu lines\n", count, agreed_operations, agreed_lines);
    BASE_CHECK_EQ(agreed_operations, operations);
    BASE_CHECK_EQ(agreed_lines, lines);
}

static void random_programs_leave_what_pytorch_leaves(void) {
    BASE_CHECK_EQ(COUNT(random_logs), 49);
    logs_check(random_logs, COUNT(random_logs), 5804, 17193);
}

static void every_rule_by_hand_holds(void) {
    BASE_CHECK_EQ(COUNT(rule_logs), 66);
    logs_check(rule_logs, COUNT(rule_logs), 1432, 4704);
}

// The line is the first that the fault shows in.
static void faults_of_pytorch_are_not_copied(void) {
    static const size_t lines[] = {352, 13, 18, 113, 9};
    static const char *const replayed = "(no more lines)";
    BASE_CHECK_EQ(COUNT(fault_logs), COUNT(lines));
    for (size_t index = 0; index < COUNT(fault_logs); index++) {
        static struct golden_result result;
        compare(fault_logs[index], &result);
        BASE_CHECK_EQ(result.verdict, GOLDEN_DIFFERS);
        BASE_CHECK_EQ(result.line_number, lines[index]);
        BASE_CHECK_EQ(strcmp(result.replayed, replayed), 0);
    }
    logs_check(sound_logs, COUNT(sound_logs), 173, 443);
}

int main(void) {
    random_programs_leave_what_pytorch_leaves();
    every_rule_by_hand_holds();
    faults_of_pytorch_are_not_copied();
}
