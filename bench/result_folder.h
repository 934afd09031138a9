// Where a program's result files go.
//
// While a program is at work its folder holds the file `.running` with the number of its process:
// whoever makes that file first has the folder, so that two runs never share one.
#ifndef TIDEMARK_BENCH_RESULT_FOLDER_H
#define TIDEMARK_BENCH_RESULT_FOLDER_H

#include "base/status.h"

#include <stdbool.h>

struct bench_result_folder {
    char *path; // NULL: none
    bool owned; // .running is ours; else it is the parent's, which runs several programs
};

// Makes the folder WANTED of --out and those above it, and takes it. If it holds one of FILES (a
// NULL-terminated list) already, or another program is at work there, WANTED-2, WANTED-3 ... is
// taken instead, and a line of PROGRAM on stderr says so. A folder that the parent process has
// taken is taken for this program as well. BASE_IO says what stands in the way.
enum base_status bench_result_folder_make(const char *program, const char *wanted,
                                          const char *const *files,
                                          struct bench_result_folder *folder) BASE_MUST_USE;

// Ends the use; a folder that got no file is taken away. Nothing happens without a folder.
void bench_result_folder_release(struct bench_result_folder *folder);

#endif
