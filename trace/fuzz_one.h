// One input for every reader: what the fuzzer and corpus_test run.
#ifndef TIDEMARK_TRACE_FUZZ_ONE_H
#define TIDEMARK_TRACE_FUZZ_ONE_H

#include "base/status.h"

#include <stddef.h>

// Reads BYTES as trace_read reads a file, with little memory, and checks what every reader
// promises: a trace that keeps trace.h's promises, or a status and a sentence of one line.
enum base_status trace__fuzz_one(const void *bytes, size_t size) BASE_MUST_USE;

#endif
