// Which reader a file is for, and what a file for none of them is told.
#include "trace/testing.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void check_refused(const char *path, enum base_status wanted, const char *part) {
    struct trace *trace = NULL;
    enum base_status status = trace_read(path, NULL, &trace);
    if (strstr(base_status_message(), part) == NULL)
        fprintf(stderr, "wanted '%s', got '%s'\n", part, base_status_message());
    BASE_CHECK_EQ(status, wanted);
    BASE_CHECK(strstr(base_status_message(), part) != NULL);
    BASE_CHECK(strchr(base_status_message(), '\n') == NULL);
    BASE_CHECK(strncmp(base_status_message(), path, strlen(path)) == 0);
    BASE_CHECK(trace == NULL);
}

static void check_text(const char *text, const char *part) {
    check_refused(trace_test_file("text", text, strlen(text)), BASE_FORMAT, part);
}

static void what_is_no_trace_is_told_what_it_seems_to_be(void) {
    check_text("", "the file is empty; wanted is a .tmt or a PyTorch memory snapshot");
    check_text("hello\n", "neither a .tmt nor a pickle");
    check_text("  {\"a\": 1}", "JSON of an unknown kind");
    check_text("{\"schemaVersion\": 1, \"deviceProperties\": []",
               "profiler JSON: it is not read yet");
    check_text("{\"traceEvents\": []", "profiler JSON: it is not read yet");
    check_text("{\"category\":\"operation\",\"string_args\":{\"allocator_ref\":\"0x1\"}}",
               "Umpire replay log");
    check_text("{ \"payload\": { \"type\":\"umpire::strategy::QuickPool\" } }",
               "Umpire replay log");
    check_text("PK\3\4rest", "a zip archive");
    check_text("\x28\xb5\x2f\xfdrest", "only gzip is read");
    check_text("BZh9", "only gzip is read");
    check_text("\x89TM", "the file ends at byte 3");
    check_text("\x1f\x8bxx", "gzip");
}

static void a_missing_file_a_folder_and_a_dash_are_named(void) {
    char path[512];
    snprintf(path, sizeof path, "%snothing.tmt", trace_test_folder());
    check_refused(path, BASE_IO, "No such file");
    snprintf(path, sizeof path, "%sfolder.tmt", trace_test_folder());
    BASE_CHECK_EQ(mkdir(path, 0700), 0);
    check_refused(path, BASE_IO, "directory");
    check_refused("-", BASE_INVALID_VALUE, "standard input is not read");
}

static void the_content_decides_not_the_name(void) {
    struct trace *trace = trace_test_random(2, 40), *read = NULL;
    char path[512];
    snprintf(path, sizeof path, "%smisnamed.pickle", trace_test_folder());
    BASE_CHECK_EQ(trace_write(trace, path, true), BASE_OK);
    BASE_CHECK_EQ(trace_read(path, NULL, &read), BASE_OK);
    trace_test_check_equal(trace, read);
    trace_destroy(read);
    trace_destroy(trace);
}

static void a_gzipped_tmt_is_read(void) {
    struct trace *trace = trace_test_random(2, 4000), *read = NULL;
    char path[512], command[1200];
    snprintf(path, sizeof path, "%spacked.tmt", trace_test_folder());
    BASE_CHECK_EQ(trace_write(trace, path, false), BASE_OK);
    snprintf(command, sizeof command, "gzip -f %s", path);
    BASE_CHECK_EQ(system(command), 0);
    strcat(path, ".gz");
    BASE_CHECK_EQ(trace_read(path, NULL, &read), BASE_OK);
    trace_test_check_equal(trace, read);
    trace_destroy(read);
    trace_destroy(trace);
}

int main(void) {
    what_is_no_trace_is_told_what_it_seems_to_be();
    a_missing_file_a_folder_and_a_dash_are_named();
    the_content_decides_not_the_name();
    a_gzipped_tmt_is_read();
    return 0;
}
