// The naive model decides as PyTorch 2.15's own allocator did: only then is it an oracle. The model
// knows nothing of the caching allocator, so this also proves the replay of the logs by itself.
#include "allocator/golden/logs_check.h"
#include "allocator/golden/model.h"
#include "allocator/golden/recorded_logs.h"
#include "base/check.h"
#include "base/size.h"


static const char *const logs[] = {GOLDEN_LOGS};
static const char *const stream_logs[] = {GOLDEN_STREAM_LOGS};
static const char *const table_logs[] = {GOLDEN_TABLE_LOGS};
static const char *const expandable_logs[] = {GOLDEN_EXPANDABLE_LOGS};
static const char *const config_logs[] = {GOLDEN_CONFIG_LOGS};
static const char *const setter_logs[] = {GOLDEN_SETTER_LOGS};
static const char *const memory_logs[] = {GOLDEN_MEMORY_LOGS};
static const char *const fault_logs[] = {GOLDEN_FAULT_LOGS};
static const char *const sound_logs[] = {GOLDEN_SOUND_LOGS};

static void model_agrees_with_every_line_recorded_from_pytorch(void) {
    golden_logs_check(&golden_subject_model, logs, sizeof logs / sizeof logs[0], GOLDEN_LOG_COUNT,
                      GOLDEN_LINE_COUNT);
}

static void model_agrees_on_record_stream_and_device_faults(void) {
    golden_logs_check(&golden_subject_model, stream_logs,
                      sizeof stream_logs / sizeof stream_logs[0], GOLDEN_STREAM_LOG_COUNT,
                      GOLDEN_STREAM_LINE_COUNT);
}

static void model_agrees_on_sizes_under_settings(void) {
    golden_logs_check(&golden_subject_model, table_logs, sizeof table_logs / sizeof table_logs[0],
                      GOLDEN_TABLE_LOG_COUNT, GOLDEN_TABLE_LINE_COUNT);
}

static void model_agrees_on_expandable_segments(void) {
    golden_logs_check(&golden_subject_model, expandable_logs,
                      sizeof expandable_logs / sizeof expandable_logs[0],
                      GOLDEN_EXPANDABLE_LOG_COUNT, GOLDEN_EXPANDABLE_LINE_COUNT);
}

static void model_reads_settings_strings_as_pytorch_reads_them(void) {
    golden_logs_check(&golden_subject_model, config_logs,
                      sizeof config_logs / sizeof config_logs[0], GOLDEN_CONFIG_LOG_COUNT,
                      GOLDEN_CONFIG_LINE_COUNT);
    golden_logs_check(&golden_subject_model, setter_logs,
                      sizeof setter_logs / sizeof setter_logs[0], GOLDEN_SETTER_LOG_COUNT,
                      GOLDEN_SETTER_LINE_COUNT);
}

static void model_agrees_on_other_ways_to_memory_and_to_its_end(void) {
    golden_logs_check(&golden_subject_model, memory_logs,
                      sizeof memory_logs / sizeof memory_logs[0], GOLDEN_MEMORY_LOG_COUNT,
                      GOLDEN_MEMORY_LINE_COUNT);
}

static void model_is_sound_where_pytorch_is_not(void) {
    golden_logs_check(&golden_subject_model, sound_logs, sizeof sound_logs / sizeof sound_logs[0],
                      GOLDEN_SOUND_LOG_COUNT, GOLDEN_SOUND_LINE_COUNT);
}

static void model_copies_pytorchs_faults_where_that_is_asked_for(void) {
    golden_logs_check_under(&golden_subject_model, "x_torch_faults:True", fault_logs,
                            sizeof fault_logs / sizeof fault_logs[0], GOLDEN_FAULT_LOG_COUNT,
                            GOLDEN_FAULT_LINE_COUNT);
}

static void nothing_recorded_was_left_out(void) {
    const struct golden_tally tally = golden_logs_tally();
    BASE_CHECK_EQ(tally.logs, 116);
    BASE_CHECK_EQ(tally.lines, 126026);
}

static void model_refuses_bad_pointers(void) {
    struct allocator *model;
    BASE_CHECK_EQ(model_create("", BASE_GIB, &model), BASE_OK);
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(model, 0, 1000, NULL, &pointer), BASE_OK);
    BASE_CHECK_EQ(allocator_free(model, (char *)pointer + 512), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(model, pointer), BASE_OK);
    BASE_CHECK_EQ(allocator_free(model, pointer), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(model, NULL), BASE_OK);
    allocator_destroy(model);
}

int main(void) {
    model_agrees_with_every_line_recorded_from_pytorch();
    model_agrees_on_record_stream_and_device_faults();
    model_agrees_on_sizes_under_settings();
    model_agrees_on_expandable_segments();
    model_reads_settings_strings_as_pytorch_reads_them();
    model_agrees_on_other_ways_to_memory_and_to_its_end();
    model_copies_pytorchs_faults_where_that_is_asked_for();
    nothing_recorded_was_left_out();
    model_is_sound_where_pytorch_is_not();
    model_refuses_bad_pointers();
}
