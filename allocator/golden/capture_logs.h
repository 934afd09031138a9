// The recorded logs of graph captures, as they lie in testdata/capture.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_LOGS_H
#define TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_LOGS_H

#include <stddef.h>

#define GOLDEN_CAPTURE_FOLDER "allocator/golden/testdata/capture/"

// The paths of all *.on.log and *.off.log, in order of their names; the caller calls
// golden_capture_logs_free. Aborts if the folder cannot be read.
char **golden_capture_logs(size_t *count);
void golden_capture_logs_free(char **paths, size_t count);

#endif
