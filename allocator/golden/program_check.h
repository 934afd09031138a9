// What the tests of the golden program share: files that they write, and the program run over them.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_PROGRAM_CHECK_H
#define TIDEMARK_ALLOCATOR_GOLDEN_PROGRAM_CHECK_H

#include "base/child.h"

#define GOLDEN_LOGS_FOLDER "allocator/golden/testdata/"

// Writes a file of the test's and returns its path; valid for the next seven calls.
const char *program_write(const char *name, const char *text);
// The caller frees the text.
char *program_read(const char *path);

// Runs the program with these arguments, NULL behind the last.
struct base_child program_run(const char *const *arguments);

// Aborts, showing both, if PART is not in TEXT.
void program_check_contains(const char *text, const char *part);

#endif
