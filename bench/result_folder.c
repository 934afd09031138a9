// See result_folder.h.
#include "bench/result_folder.h"

#include "base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_NUMBER_MAX 1000

// mkdir -p.
static enum base_status make_folders(const char *path) {
    char part[4096];
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return base_status_set(BASE_IO, "--out '%s': no name for a folder", path);
    for (size_t i = 1; i <= length; i++) {
        if (i != length && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return base_status_set(BASE_IO, "--out %s: the folder cannot be made: %s", part,
                                   strerror(errno));
    }
    struct stat found;
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
        return base_status_set(BASE_IO, "--out %s: is no folder", path);
    return BASE_OK;
}

static bool holds_results(const char *folder, const char *const *files) {
    struct stat found;
    char path[4400];
    for (size_t i = 0; files[i] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (stat(path, &found) == 0) return true;
    }
    return false;
}

static enum base_status try_writing(const char *folder) {
    char path[4400];
    struct base_file file;
    (void)snprintf(path, sizeof path, "%s/.write-test", folder);
    enum base_status status = base_file_create(&file, path);
    if (status != BASE_OK) return base_status_prefix(status, "--out");
    base_file_abandon(&file);
    return BASE_OK;
}

enum base_status bench_result_folder_make(const char *program, const char *wanted,
                                          const char *const *files, char **folder) {
    char path[4200];
    for (int number = 1; number <= FOLDER_NUMBER_MAX; number++) {
        int length = (int)strlen(wanted);
        while (length > 1 && wanted[length - 1] == '/') length--;
        const int written = number == 1
                                ? snprintf(path, sizeof path, "%.*s", length, wanted)
                                : snprintf(path, sizeof path, "%.*s-%d", length, wanted, number);
        if (written >= (int)sizeof path) break;
        if (holds_results(path, files)) continue;
        enum base_status status = make_folders(path);
        if (status == BASE_OK) status = try_writing(path);
        if (status != BASE_OK) return status;
        *folder = strdup(path);
        if (*folder == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a path");
        if (number > 1)
            fprintf(stderr, "%s: %s holds results already; writing to %s\n", program, wanted, path);
        return BASE_OK;
    }
    return base_status_set(BASE_IO, "--out %s: no free name from it to %s-%d", wanted, wanted,
                           FOLDER_NUMBER_MAX);
}
