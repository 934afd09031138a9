// The caching allocator decides as PyTorch 2.15's own did, line by line.
#include "allocator/golden/compare.h"
#include "allocator/golden/logs_check.h"
#include "allocator/golden/recorded_logs.h"
#include "base/check.h"

#include <stdio.h>

static const char *const logs[] = {GOLDEN_LOGS};
static const char *const stream_logs[] = {GOLDEN_STREAM_LOGS};
static const char *const table_logs[] = {GOLDEN_TABLE_LOGS};
static const char *const config_logs[] = {GOLDEN_CONFIG_LOGS};
static const char *const expandable_logs[] = {GOLDEN_EXPANDABLE_LOGS};
static const char *const setter_logs[] = {GOLDEN_SETTER_LOGS};
static const char *const memory_logs[] = {GOLDEN_MEMORY_LOGS};
static const char *const pool_logs[] = {GOLDEN_POOL_LOGS};
static const char *const fault_logs[] = {GOLDEN_FAULT_LOGS};
static const char *const sound_logs[] = {GOLDEN_SOUND_LOGS};

static void caching_allocator_agrees_with_every_line_recorded_from_pytorch(void) {
    golden_logs_check(&golden_subject_caching, logs, sizeof logs / sizeof logs[0], GOLDEN_LOG_COUNT,
                      GOLDEN_LINE_COUNT);
}

static void caching_allocator_agrees_on_record_stream_and_device_faults(void) {
    golden_logs_check(&golden_subject_caching, stream_logs,
                      sizeof stream_logs / sizeof stream_logs[0], GOLDEN_STREAM_LOG_COUNT,
                      GOLDEN_STREAM_LINE_COUNT);
}

static void caching_allocator_agrees_on_sizes_under_settings(void) {
    golden_logs_check(&golden_subject_caching, table_logs, sizeof table_logs / sizeof table_logs[0],
                      GOLDEN_TABLE_LOG_COUNT, GOLDEN_TABLE_LINE_COUNT);
}

static void settings_strings_are_read_as_pytorch_reads_them(void) {
    golden_logs_check(&golden_subject_caching, config_logs,
                      sizeof config_logs / sizeof config_logs[0], GOLDEN_CONFIG_LOG_COUNT,
                      GOLDEN_CONFIG_LINE_COUNT);
    golden_logs_check(&golden_subject_caching, setter_logs,
                      sizeof setter_logs / sizeof setter_logs[0], GOLDEN_SETTER_LOG_COUNT,
                      GOLDEN_SETTER_LINE_COUNT);
}

static void caching_allocator_agrees_on_expandable_segments(void) {
    golden_logs_check(&golden_subject_caching, expandable_logs,
                      sizeof expandable_logs / sizeof expandable_logs[0],
                      GOLDEN_EXPANDABLE_LOG_COUNT, GOLDEN_EXPANDABLE_LINE_COUNT);
}

static void caching_allocator_agrees_where_memory_runs_short_and_on_the_other_entry_points(void) {
    golden_logs_check(&golden_subject_caching, memory_logs,
                      sizeof memory_logs / sizeof memory_logs[0], GOLDEN_MEMORY_LOG_COUNT,
                      GOLDEN_MEMORY_LINE_COUNT);
}

static void caching_allocator_agrees_on_private_pools(void) {
    golden_logs_check(&golden_subject_caching, pool_logs, sizeof pool_logs / sizeof pool_logs[0],
                      GOLDEN_POOL_LOG_COUNT, GOLDEN_POOL_LINE_COUNT);
}

// By default they differ from the first request on that PyTorch does wrong: the line of its file.
static void pytorchs_faults_are_copied_where_that_is_asked_for(void) {
    golden_logs_check_under(&golden_subject_caching, "x_torch_faults:True", fault_logs,
                            sizeof fault_logs / sizeof fault_logs[0], GOLDEN_FAULT_LOG_COUNT,
                            GOLDEN_FAULT_LINE_COUNT);
    static const size_t different_lines[GOLDEN_FAULT_LOG_COUNT] = {14, 9};
    for (size_t index = 0; index < GOLDEN_FAULT_LOG_COUNT; index++) {
        static struct golden_result result;
        char path[256];
        snprintf(path, sizeof path, "allocator/golden/testdata/%s.log", fault_logs[index]);
        golden_compare(path, &golden_subject_caching, NULL, &result);
        BASE_CHECK_EQ(result.verdict, GOLDEN_DIFFERS);
        BASE_CHECK_EQ(result.line_number, different_lines[index]);
    }
}

// All there are. The errors are as many as `grep -c " = oom "` finds in them.
static void nothing_recorded_was_left_out_and_the_numbers_of_every_error_add_up(void) {
    const struct golden_tally tally = golden_logs_tally();
    BASE_CHECK_EQ(tally.logs, 132);
    BASE_CHECK_EQ(tally.lines, 135652);
    BASE_CHECK_EQ(tally.out_of_memory, 2002);
}

static void memory_in_use_stays_when_max_split_size_is_lowered(void) {
    golden_logs_check(&golden_subject_caching, sound_logs, sizeof sound_logs / sizeof sound_logs[0],
                      GOLDEN_SOUND_LOG_COUNT, GOLDEN_SOUND_LINE_COUNT);
}

int main(void) {
    caching_allocator_agrees_with_every_line_recorded_from_pytorch();
    caching_allocator_agrees_on_record_stream_and_device_faults();
    caching_allocator_agrees_on_sizes_under_settings();
    settings_strings_are_read_as_pytorch_reads_them();
    caching_allocator_agrees_on_expandable_segments();
    caching_allocator_agrees_where_memory_runs_short_and_on_the_other_entry_points();
    caching_allocator_agrees_on_private_pools();
    pytorchs_faults_are_copied_where_that_is_asked_for();
    nothing_recorded_was_left_out_and_the_numbers_of_every_error_add_up();
    memory_in_use_stays_when_max_split_size_is_lowered();
}
