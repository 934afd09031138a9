// Complete or absent: everything is written to a file without a name in the same folder, which gets
// the final one at the end. Where the file system has no such files it is a temporary beside the
// final name, renamed over it.
//
// Files that are still open are kept in a list. Temporaries of it are removed at exit by the process
// that made them (a forked child leaves them alone). Lock order: registry.lock is taken alone.
#include "base/file.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct open_file {
    char *path, *temporary_path; // owned here: a caller may lose its struct base_file
    pid_t creator;
    struct open_file *next;
};

static struct {
    struct base_mutex lock;
    struct open_file *first; // guarded by lock
    bool exit_installed;     // guarded by lock
} registry = {.lock = BASE_MUTEX_INITIALIZER};

static void registry_remove_all(void) {
    base_mutex_lock(&registry.lock);
    for (const struct open_file *open = registry.first; open != NULL; open = open->next) {
        if (open->creator == getpid())
            unlink(open->temporary_path);
    }
    base_mutex_unlock(&registry.lock);
}

// False if the path is there already: two writers of one name would mix their bytes.
static bool registry_insert(struct open_file *added) {
    base_mutex_lock(&registry.lock);
    bool unique = true;
    for (const struct open_file *open = registry.first; open != NULL; open = open->next)
        unique = unique && strcmp(open->temporary_path, added->temporary_path) != 0;
    if (unique) {
        added->next = registry.first;
        registry.first = added;
        if (!registry.exit_installed)
            registry.exit_installed = atexit(registry_remove_all) == 0;
    }
    base_mutex_unlock(&registry.lock);
    return unique;
}

static void registry_erase(const char *temporary_path) {
    base_mutex_lock(&registry.lock);
    struct open_file **link = &registry.first;
    while (*link != NULL && (*link)->temporary_path != temporary_path)
        link = &(*link)->next;
    struct open_file *const open = *link;
    BASE_CHECK(open != NULL);
    *link = open->next;
    base_mutex_unlock(&registry.lock);
    free(open->path);
    free(open->temporary_path);
    free(open);
}

static enum base_status set_write_error(const char *path, int error) {
    return base_status_set(BASE_IO, "cannot write %s: %s", path, strerror(error));
}

// Forgets the temporary, which has been renamed or removed.
static void file_deinit(struct base_file *file) {
    registry_erase(file->temporary_path);
    *file = (struct base_file){0};
}

// How a file without a name is named while it is open.
static void unnamed_path(int descriptor, char path[32]) {
    snprintf(path, 32, "/proc/self/fd/%d", descriptor);
}

// A file without a name in the folder of PATH; -1: there are none.
static int unnamed_open(const char *path) {
    const char *const slash = strrchr(path, '/');
    char folder[4096], shown[32];
    if (snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
                 slash == NULL ? "." : path) >= (int)sizeof folder)
        return -1;
    const int descriptor = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return -1;
    unnamed_path(descriptor, shown);
    if (access(shown, F_OK) == 0)
        return descriptor;
    close(descriptor);
    return -1;
}

// Opens what is written to; errno is set if it fails.
static FILE *temporary_open(struct base_file *file) {
    int descriptor = unnamed_open(file->path);
    file->is_unnamed = descriptor >= 0;
    if (descriptor < 0)
        descriptor = open(file->temporary_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return NULL;
    FILE *const stream = fdopen(descriptor, "w");
    if (stream == NULL) {
        const int error = errno;
        close(descriptor);
        if (!file->is_unnamed)
            unlink(file->temporary_path);
        errno = error;
    }
    return stream;
}

// Gives it the final name, or, where something has that, the temporary one. 0, or an error.
static int unnamed_link(const struct base_file *file, bool *is_final) {
    char shown[32];
    unnamed_path(fileno(file->stream), shown);
    *is_final = linkat(AT_FDCWD, shown, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW) == 0;
    if (*is_final || errno != EEXIST)
        return *is_final ? 0 : errno;
    unlink(file->temporary_path); // of a dead process that had our number
    const int linked = linkat(AT_FDCWD, shown, AT_FDCWD, file->temporary_path, AT_SYMLINK_FOLLOW);
    return linked == 0 ? 0 : errno;
}

enum base_status base_file_create(struct base_file *file, const char *path) {
    // A rename would replace a directory entry such as /dev/null by a regular file.
    struct stat present;
    if (stat(path, &present) == 0 && !S_ISREG(present.st_mode))
        return base_status_set(
            BASE_IO, "cannot write %s: it is no regular file; give the name of a new file", path);
    struct open_file *const open = calloc(1, sizeof *open);
    struct base_file created = {.stream = NULL, .path = strdup(path)};
    if (open == NULL || created.path == NULL ||
        asprintf(&created.temporary_path, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        free(open);
        free(created.path);
        return base_status_set(BASE_HOST_MEMORY, "cannot write %s: out of host memory", path);
    }
    *open = (struct open_file){created.path, created.temporary_path, getpid(), NULL};
    if (!registry_insert(open)) {
        free(open);
        free(created.path);
        free(created.temporary_path);
        return base_status_set(BASE_IO, "cannot write %s: this process is already writing it",
                               path);
    }
    // A name that cannot be had is told now, also where nothing has it until the end.
    const bool is_possible = access(created.temporary_path, F_OK) == 0 || errno == ENOENT;
    created.stream = is_possible ? temporary_open(&created) : NULL;
    if (created.stream == NULL) {
        const int error = errno;
        file_deinit(&created);
        return set_write_error(path, error);
    }
    *file = created;
    return BASE_OK;
}

enum base_status base_file_commit(struct base_file *file) {
    // An error of an earlier write may have left errno long ago; the buffer's own errors set it
    // here.
    errno = 0;
    const bool written =
        !ferror(file->stream) && fflush(file->stream) == 0 && fsync(fileno(file->stream)) == 0;
    int error = written ? 0 : errno != 0 ? errno : EIO;
    bool is_final = false;
    if (error == 0 && file->is_unnamed)
        error = unnamed_link(file, &is_final);
    if (fclose(file->stream) != 0 && error == 0)
        error = errno;
    file->stream = NULL;
    if (error == 0 && !is_final && rename(file->temporary_path, file->path) != 0)
        error = errno;
    const enum base_status status = error == 0 ? BASE_OK : set_write_error(file->path, error);
    if (error != 0)
        unlink(file->temporary_path);
    file_deinit(file);
    return status;
}

void base_file_abandon(struct base_file *file) {
    if (file->stream == NULL)
        return;
    // What the buffer still holds goes to a file about to vanish: its errors mean nothing.
    fclose(file->stream);
    unlink(file->temporary_path);
    file_deinit(file);
}

static enum base_status set_limit_error(const char *path, size_t limit) {
    return base_status_set(BASE_LIMIT, "%s: larger than the %zu bytes that are read at most", path,
                           limit);
}

// Reads STREAM to its end into a growing buffer that starts with CAPACITY bytes.
static enum base_status stream_read(FILE *stream, const char *path, size_t limit, size_t capacity,
                                    char **data, size_t *size) {
    char *buffer = NULL;
    size_t used = 0;
    for (;;) {
        char *const grown = realloc(buffer, capacity + 1);
        if (grown == NULL) {
            free(buffer);
            return base_status_set(BASE_HOST_MEMORY,
                                   "cannot read %s: out of host memory at %zu bytes", path,
                                   capacity);
        }
        buffer = grown;
        used += fread(buffer + used, 1, capacity - used, stream);
        if (used < capacity)
            break;
        if (used > limit) {
            free(buffer);
            return set_limit_error(path, limit);
        }
        capacity = capacity <= limit / 2 ? capacity * 2 : limit + 1;
    }
    if (ferror(stream)) {
        const int error = errno;
        free(buffer);
        return base_status_set(BASE_IO, "cannot read %s: %s", path, strerror(error));
    }
    buffer[used] = 0;
    *data = buffer;
    *size = used;
    return BASE_OK;
}

enum base_status base_file_read(const char *path, size_t limit, char **data, size_t *size) {
    BASE_CHECK(limit < SIZE_MAX - 1);
    FILE *const stream = fopen(path, "re");
    if (stream == NULL)
        return base_status_set(BASE_IO, "cannot read %s: %s", path, strerror(errno));
    struct stat present;
    const bool sized = fstat(fileno(stream), &present) == 0 && S_ISREG(present.st_mode);
    enum base_status status;
    if (sized && (uint64_t)present.st_size > limit) {
        status = set_limit_error(path, limit);
    } else {
        // One byte more than the file has, so that the first read already meets its end.
        const size_t guess = sized ? (size_t)present.st_size + 1 : 4096;
        status = stream_read(stream, path, limit, guess <= limit ? guess : limit + 1, data, size);
    }
    fclose(stream);
    return status;
}
