// Where a program's result files go.
#ifndef TIDEMARK_BENCH_RESULT_FOLDER_H
#define TIDEMARK_BENCH_RESULT_FOLDER_H

#include "base/status.h"

// Makes the folder WANTED of --out and those above it. If it holds one of FILES (a NULL-terminated
// list) already, the results of before are kept: WANTED-2, WANTED-3 ... is taken instead, and a
// line of PROGRAM on stderr says so. Writes a file into it, to find out before any work that it can
// be done. The caller frees *folder. BASE_IO says what stands in the way.
enum base_status bench_result_folder_make(const char *program, const char *wanted,
                                          const char *const *files, char **folder) BASE_MUST_USE;

#endif
