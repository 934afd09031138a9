// Output that appears under its final name only when it is complete.
//
//     struct base_file file;
//     status = base_file_create(&file, "out/report.json");
//     fprintf(file.stream, ...);
//     status = base_file_commit(&file);                      flush, check, name
//
// Both end the file, whatever they return: of a commit that fails nothing is left, and what stood
// under the final name stays. base_file_abandon leaves nothing either; nor do files still open when
// the process ends, however it does. On file systems without unnamed files they are written to
// out/report.json.PID.tmp meanwhile, and a process that a signal ends leaves that.
#ifndef TIDEMARK_BASE_FILE_H
#define TIDEMARK_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct base_file {
    FILE *stream;
    char *path;           // final name
    char *temporary_path; // of its own until commit
    bool is_unnamed;      // until commit
};

enum base_status base_file_create(struct base_file *file, const char *path) BASE_MUST_USE;
enum base_status base_file_commit(struct base_file *file) BASE_MUST_USE;
void base_file_abandon(struct base_file *file);

// Reads a whole file, with a terminating 0 that *size does not count; the caller frees *data.
// BASE_LIMIT if it is larger than LIMIT bytes.
enum base_status base_file_read(const char *path, size_t limit, char **data,
                                size_t *size) BASE_MUST_USE;

#endif
