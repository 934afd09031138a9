// One settings string, right or wrong, through the parser and the lint: aborts if an answer breaks
// a bound, differs the second time, or the two disagree on what is refused.
#ifndef TIDEMARK_ALLOCATOR_CONFIG_FUZZ_ONE_H
#define TIDEMARK_ALLOCATOR_CONFIG_FUZZ_ONE_H

#include <stdbool.h>

// Whether the text is accepted.
bool config_fuzz_one(const char *text);

#endif
