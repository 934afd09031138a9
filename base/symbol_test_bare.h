// A function that was compiled without debug information; for symbol_test.
#ifndef TIDEMARK_BASE_SYMBOL_TEST_BARE_H
#define TIDEMARK_BASE_SYMBOL_TEST_BARE_H

// Calls FUNCTION and returns what that does.
const void *symbol_test_bare(const void *(*function)(void));

#endif
