// For the tests of trace/: random traces, and whether two are the same.
#ifndef TIDEMARK_TRACE_TESTING_H
#define TIDEMARK_TRACE_TESTING_H

#include "trace/build.h"

#include "base/random.h"

// A trace with something in every table and every field, sense not included.
struct trace *trace_test_random(uint64_t seed, size_t event_count);

// Aborts with the field's name where two traces differ; formats and table order count, the origin
// does not.
void trace_test_check_equal(const struct trace *a, const struct trace *b);

// A folder for files of a test, made once, with a slash at its end.
const char *trace_test_folder(void);

// Writes SIZE bytes to NAME in that folder and gives its path (static, valid until the next call).
const char *trace_test_file(const char *name, const void *bytes, size_t size);

#endif
