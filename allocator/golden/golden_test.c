// The caching allocator decides as PyTorch 2.15's own did, line by line.
#include "allocator/golden/logs_check.h"
#include "allocator/golden/recorded_logs.h"

static const char *const logs[] = {GOLDEN_LOGS};
static const char *const stream_logs[] = {GOLDEN_STREAM_LOGS};
static const char *const table_logs[] = {GOLDEN_TABLE_LOGS};
static const char *const config_logs[] = {GOLDEN_CONFIG_LOGS};
static const char *const expandable_logs[] = {GOLDEN_EXPANDABLE_LOGS};
static const char *const memory_logs[] = {GOLDEN_MEMORY_LOGS};
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
    memory_in_use_stays_when_max_split_size_is_lowered();
}
