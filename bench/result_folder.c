// See result_folder.h. bench/runner.py does the same for the programs that run others.
#include "bench/result_folder.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_NUMBER_MAX 1000
#define MARKER ".running"
#define PATH_SIZE 4400 // of a folder and a file in it

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
    char path[PATH_SIZE];
    for (size_t i = 0; files[i] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (stat(path, &found) == 0) return true;
    }
    return false;
}

// Whether the process that runs this one has taken the folder, for it to write into.
static bool is_taken_by_parent(const char *marker) {
    char *text;
    size_t size;
    if (base_file_read(marker, 64, &text, &size) != BASE_OK) return false;
    const bool taken = strtol(text, NULL, 10) == (long)getppid();
    free(text);
    return taken;
}

static void remove_marker(const char *folder) {
    char marker[PATH_SIZE];
    (void)snprintf(marker, sizeof marker, "%s/" MARKER, folder);
    (void)unlink(marker);
}

enum claim { CLAIM_OWN, CLAIM_OF_PARENT, CLAIM_OCCUPIED, CLAIM_GONE, CLAIM_FAILED };

// CLAIM_GONE: its user took the folder away at this moment.
static enum claim claim_folder(const char *folder) {
    char marker[PATH_SIZE];
    (void)snprintf(marker, sizeof marker, "%s/" MARKER, folder);
    const int descriptor = open(marker, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST)
        return is_taken_by_parent(marker) ? CLAIM_OF_PARENT : CLAIM_OCCUPIED;
    if (descriptor < 0 && errno == ENOENT) return CLAIM_GONE;
    const bool written = descriptor >= 0 && dprintf(descriptor, "%ld\n", (long)getpid()) > 0;
    if (!written) {
        (void)base_status_set(BASE_IO, "--out %s: cannot be written: %s", folder, strerror(errno));
        if (descriptor >= 0) (void)unlink(marker);
    }
    if (descriptor >= 0) (void)close(descriptor);
    return written ? CLAIM_OWN : CLAIM_FAILED;
}

// One name: *taken says whether it is ours now. Without an error and not taken: the next one.
static enum base_status try_folder(const char *path, const char *const *files,
                                   struct bench_result_folder *folder, bool *taken) {
    enum claim claim = CLAIM_GONE;
    *taken = false;
    if (holds_results(path, files)) return BASE_OK;
    for (int attempt = 0; attempt < 3 && claim == CLAIM_GONE; attempt++) {
        const enum base_status status = make_folders(path);
        if (status != BASE_OK) return status;
        claim = claim_folder(path);
    }
    if (claim == CLAIM_FAILED) return BASE_IO;
    if (claim == CLAIM_OCCUPIED || claim == CLAIM_GONE) return BASE_OK;
    folder->owned = claim == CLAIM_OWN;
    // Another run may have come to its end between the look and the claim.
    if (holds_results(path, files)) {
        if (folder->owned) remove_marker(path);
        return BASE_OK;
    }
    folder->path = strdup(path);
    if (folder->path == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a path");
    *taken = true;
    return BASE_OK;
}

enum base_status bench_result_folder_make(const char *program, const char *wanted,
                                          const char *const *files,
                                          struct bench_result_folder *folder) {
    char path[4200];
    for (int number = 1; number <= FOLDER_NUMBER_MAX; number++) {
        int length = (int)strlen(wanted);
        while (length > 1 && wanted[length - 1] == '/') length--;
        const int written = number == 1
                                ? snprintf(path, sizeof path, "%.*s", length, wanted)
                                : snprintf(path, sizeof path, "%.*s-%d", length, wanted, number);
        if (written >= (int)sizeof path) break;
        bool taken;
        const enum base_status status = try_folder(path, files, folder, &taken);
        if (status != BASE_OK) return status;
        if (!taken) continue;
        if (number > 1)
            fprintf(stderr, "%s: %s holds results already or is in use; writing to %s\n", program,
                    wanted, path);
        return BASE_OK;
    }
    return base_status_set(BASE_IO, "--out %s: no free name from it to %s-%d", wanted, wanted,
                           FOLDER_NUMBER_MAX);
}

void bench_result_folder_release(struct bench_result_folder *folder) {
    if (folder->path == NULL) return;
    if (folder->owned) {
        remove_marker(folder->path);
        (void)rmdir(folder->path); // fails if it holds something
    }
    free(folder->path);
    folder->path = NULL;
}
