// See program_check.h.
#include "allocator/golden/program_check.h"

#include "base/check.h"
#include "base/file.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "allocator/golden/golden"
#define ARGUMENT_COUNT_MAX 15

const char *program_write(const char *name, const char *text) {
    static char paths[8][4096];
    static unsigned next;
    char *const path = paths[next++ % 8];
    const char *const folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof paths[0], "%s/%s", folder == NULL ? "/tmp" : folder, name);
    FILE *const file = fopen(path, "w");
    BASE_CHECK(file != NULL);
    fputs(text, file);
    BASE_CHECK_EQ(fclose(file), 0);
    return path;
}

char *program_read(const char *path) {
    char *text;
    size_t size;
    BASE_CHECK_EQ(base_file_read(path, BASE_MIB, &text, &size), BASE_OK);
    return text;
}

static void run(void *context) {
    const char *const *const arguments = context;
    char *argv[ARGUMENT_COUNT_MAX + 2] = {PROGRAM};
    for (size_t index = 0; index < ARGUMENT_COUNT_MAX && arguments[index] != NULL; index++)
        argv[index + 1] = (char *)(uintptr_t)arguments[index];
    unsetenv("BUILD_WORKING_DIRECTORY");
    execv(PROGRAM, argv);
    _exit(127);
}

struct base_child program_run(const char *const *arguments) {
    return base_child_run(run, (void *)(uintptr_t)arguments);
}

void program_check_contains(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fprintf(stderr, "\"%s\" is not in:\n%s\n", part, text);
    BASE_CHECK(strstr(text, part) != NULL);
}
