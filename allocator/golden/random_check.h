// The property that the random tests hold: two subjects cannot be told apart.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_RANDOM_CHECK_H
#define TIDEMARK_ALLOCATOR_GOLDEN_RANDOM_CHECK_H

#include "allocator/golden/script.h"

// Runs COUNT programs of OPERATION_COUNT operations from SEED on. At the first difference prints
// seed, step, operation, both answers and a shrunk program that can be replayed as a log, and
// returns false.
bool golden_random_check(const struct golden_subject *oracle, const struct golden_subject *subject,
                         uint64_t seed, uint64_t count, size_t operation_count, FILE *output);

#endif
