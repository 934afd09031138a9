// Output files are complete or absent, whatever happens in between; reading has its limit.
#include "base/file.h"

#include "base/check.h"
#include "base/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// A directory of this run; the process stands in it, so that names below are short.
static void directory_create(void) {
    const char *const parent = getenv("TEST_TMPDIR");
    char template[4096];
    snprintf(template, sizeof template, "%s/file_test.XXXXXX", parent != NULL ? parent : "/tmp");
    BASE_CHECK(mkdtemp(template) != NULL);
    BASE_CHECK_EQ(chdir(template), 0);
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

// Entries of the present directory.
static int entry_count(void) {
    DIR *const directory = opendir(".");
    BASE_CHECK(directory != NULL);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void expect_content(const char *path, const char *expected) {
    char *data;
    size_t size;
    BASE_CHECK_EQ(base_file_read(path, 1000, &data, &size), BASE_OK);
    BASE_CHECK_EQ(size, strlen(expected));
    BASE_CHECK_EQ(strcmp(data, expected), 0);
    free(data);
}

static void write_whole(const char *path, const char *text) {
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, path), BASE_OK);
    BASE_CHECK(fputs(text, file.stream) >= 0);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
}

static void file_appears_at_commit_and_not_before(void) {
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, "report"), BASE_OK);
    fputs("whole", file.stream);
    fflush(file.stream);
    BASE_CHECK(!exists("report"));
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
    expect_content("report", "whole");
    BASE_CHECK_EQ(entry_count(), 1);
    BASE_CHECK_EQ(unlink("report"), 0);
}

static void abandoned_file_leaves_the_old_one_and_no_temporary(void) {
    write_whole("report", "old");
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, "report"), BASE_OK);
    fputs("half", file.stream);
    base_file_abandon(&file);
    base_file_abandon(&file); // a second call, as clean-up paths make it, does nothing
    expect_content("report", "old");
    BASE_CHECK_EQ(entry_count(), 1);
    write_whole("report", "new");
    expect_content("report", "new");
    BASE_CHECK_EQ(unlink("report"), 0);
}

static void leave_open(void *argument) {
    (void)argument;
    struct base_file first, second;
    BASE_CHECK_EQ(base_file_create(&first, "first"), BASE_OK);
    BASE_CHECK_EQ(base_file_create(&second, "second"), BASE_OK);
    fputs("half", first.stream);
}

static void exit_removes_what_is_still_open(void) {
    struct base_child child = base_child_run(leave_open, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    base_child_deinit(&child);
    BASE_CHECK_EQ(entry_count(), 0);
}

static bool has_unnamed_files(void) {
    const int descriptor = open(".", O_WRONLY | O_TMPFILE, 0666);
    return descriptor >= 0 && close(descriptor) == 0;
}

static void be_killed(void *argument) {
    leave_open(argument);
    (void)raise(SIGKILL);
}

// A user who presses Ctrl-C has no half report, and no old one less.
static void a_process_that_is_killed_leaves_nothing(void) {
    if (!has_unnamed_files())
        return;
    write_whole("first", "old");
    struct base_child child = base_child_run(be_killed, NULL);
    BASE_CHECK_EQ(child.signal_number, SIGKILL);
    base_child_deinit(&child);
    BASE_CHECK_EQ(entry_count(), 1);
    expect_content("first", "old");
    BASE_CHECK_EQ(unlink("first"), 0);
}

static void do_nothing(void *argument) { (void)argument; }

static void exit_of_a_forked_child_leaves_the_parents_files(void) {
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, "report"), BASE_OK);
    struct base_child child = base_child_run(do_nothing, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    base_child_deinit(&child);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
    BASE_CHECK_EQ(unlink("report"), 0);
}

// A full disk, by the limit on file sizes: in a child, since the limit cannot be lifted again.
static void write_past_the_limit(void *argument) {
    (void)argument;
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {1000, 1000};
    BASE_CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, "report"), BASE_OK);
    for (int byte = 0; byte < 2000; byte++)
        putc('x', file.stream);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_IO);
    fputs(base_status_message(), stderr);
}

static void commit_reports_a_failed_write_and_leaves_nothing(void) {
    struct base_child child = base_child_run(write_past_the_limit, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strcmp(child.error_text, "cannot write report: File too large"), 0);
    base_child_deinit(&child);
    BASE_CHECK_EQ(entry_count(), 0);
}

static void create_refuses_what_it_cannot_write(void) {
    struct base_file file;
    BASE_CHECK_EQ(base_file_create(&file, "missing/report"), BASE_IO);
    BASE_CHECK_EQ(
        strcmp(base_status_message(), "cannot write missing/report: No such file or directory"), 0);
    BASE_CHECK_EQ(base_file_create(&file, "/dev/null"), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "/dev/null: it is no regular file") != NULL);
    BASE_CHECK_EQ(base_file_create(&file, "."), BASE_IO);
    char long_name[300];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[250] = '\0'; // has room as it is, but not while it is written
    BASE_CHECK_EQ(base_file_create(&file, long_name), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "File name too long") != NULL);
    struct base_file second;
    BASE_CHECK_EQ(base_file_create(&file, "report"), BASE_OK);
    BASE_CHECK_EQ(base_file_create(&second, "report"), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "already writing") != NULL);
    base_file_abandon(&file);
    BASE_CHECK_EQ(entry_count(), 0);
}

static void read_takes_files_up_to_its_limit(void) {
    write_whole("ten", "0123456789");
    char *data = NULL;
    size_t size;
    BASE_CHECK_EQ(base_file_read("ten", 10, &data, &size), BASE_OK);
    BASE_CHECK_EQ(size, 10);
    BASE_CHECK_EQ(memcmp(data, "0123456789", 11), 0);
    free(data);
    BASE_CHECK_EQ(base_file_read("ten", 9, &data, &size), BASE_LIMIT);
    BASE_CHECK_EQ(
        strcmp(base_status_message(), "ten: larger than the 9 bytes that are read at most"), 0);
    BASE_CHECK_EQ(unlink("ten"), 0);
    write_whole("empty", "");
    BASE_CHECK_EQ(base_file_read("empty", 0, &data, &size), BASE_OK);
    BASE_CHECK_EQ(size, 0);
    BASE_CHECK_EQ(data[0], 0);
    free(data);
    BASE_CHECK_EQ(unlink("empty"), 0);
}

// Files of /proc and pipes say that they have no bytes: the size cannot be trusted.
static void read_takes_streams_of_unknown_size(void) {
    char *data;
    size_t size;
    BASE_CHECK_EQ(base_file_read("/proc/self/status", 1 << 20, &data, &size), BASE_OK);
    BASE_CHECK_GT(size, 100);
    BASE_CHECK_EQ(strlen(data), size);
    free(data);
    BASE_CHECK_EQ(base_file_read("/dev/zero", 100000, &data, &size), BASE_LIMIT);
    BASE_CHECK_EQ(base_file_read("/proc/self/status", 50, &data, &size), BASE_LIMIT);
}

static void read_names_what_is_missing_or_no_file(void) {
    char *data;
    size_t size;
    BASE_CHECK_EQ(base_file_read("missing", 10, &data, &size), BASE_IO);
    BASE_CHECK_EQ(strcmp(base_status_message(), "cannot read missing: No such file or directory"),
                  0);
    BASE_CHECK_EQ(base_file_read(".", 10, &data, &size), BASE_IO);
    BASE_CHECK_EQ(strcmp(base_status_message(), "cannot read .: Is a directory"), 0);
}

int main(void) {
    directory_create();
    file_appears_at_commit_and_not_before();
    abandoned_file_leaves_the_old_one_and_no_temporary();
    exit_removes_what_is_still_open();
    a_process_that_is_killed_leaves_nothing();
    exit_of_a_forked_child_leaves_the_parents_files();
    commit_reports_a_failed_write_and_leaves_nothing();
    create_refuses_what_it_cannot_write();
    read_takes_files_up_to_its_limit();
    read_takes_streams_of_unknown_size();
    read_names_what_is_missing_or_no_file();
    return 0;
}
