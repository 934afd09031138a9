// For the tests of the pickle reader: pickles written opcode by opcode, and read from memory.
#ifndef TIDEMARK_TRACE_PICKLE_TESTING_H
#define TIDEMARK_TRACE_PICKLE_TESTING_H

#include "trace/snapshot_reader.h"

#include <stddef.h>

// Bytes that grow; a test ends with pickle_test_free.
struct pickle_test {
    unsigned char *bytes;
    size_t size, capacity;
};

void pickle_test_add(struct pickle_test *test, const void *bytes, size_t size);
// The bytes of a string literal without its end.
#define PICKLE_TEST_ADD(test, literal) pickle_test_add(test, literal, sizeof(literal) - 1)
void pickle_test_text(struct pickle_test *test, const char *text); // BINUNICODE
void pickle_test_number(struct pickle_test *test, int64_t number); // LONG1 of eight bytes
void pickle_test_repeat(struct pickle_test *test, const char *text, size_t count);
void pickle_test_free(struct pickle_test *test);

// A key and a number, or a key and a text.
void pickle_test_pair(struct pickle_test *test, const char *key, int64_t number);
void pickle_test_text_pair(struct pickle_test *test, const char *key, const char *text);

// {"segments": [], "x": what is added between the two}.
void pickle_test_begin(struct pickle_test *test);
void pickle_test_end(struct pickle_test *test);

enum base_status pickle_test_read(const struct pickle_test *test, uint64_t memory_limit_bytes,
                                  struct trace **trace);
// The same through gzip.
enum base_status pickle_test_read_gzip(const struct pickle_test *test, struct trace **trace);

// Checks that the pickle is refused with STATUS and a sentence that has both parts in it.
void pickle_test_check_refused(const struct pickle_test *test, enum base_status status,
                               const char *part, const char *other);

#endif
