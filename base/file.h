// Output that appears under its final name only when it is complete.
//
//     struct base_file file;
//     status = base_file_create(&file, "out/report.json");   opens out/report.json.PID.tmp
//     fprintf(file.stream, ...);
//     status = base_file_commit(&file);                      flush, check, rename
//
// Both end the file, whatever they return: a commit that fails has removed the temporary, and what
// stood under the final name stays. base_file_abandon removes the temporary. Files still open when
// the process ends through exit() are removed as well.
#ifndef TIDEMARK_BASE_FILE_H
#define TIDEMARK_BASE_FILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

struct base_file {
    FILE *stream;
    char *path;           // final name
    char *temporary_path; // written to until commit
};

enum base_status base_file_create(struct base_file *file, const char *path) BASE_MUST_USE;
enum base_status base_file_commit(struct base_file *file) BASE_MUST_USE;
void base_file_abandon(struct base_file *file);

// Reads a whole file, with a terminating 0 that *size does not count; the caller frees *data.
// BASE_LIMIT if it is larger than LIMIT bytes.
enum base_status base_file_read(const char *path, size_t limit, char **data,
                                size_t *size) BASE_MUST_USE;

#endif
