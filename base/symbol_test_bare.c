// See the header.
#include "base/symbol_test_bare.h"

const void *symbol_test_bare(const void *(*function)(void)) {
    const void *volatile result = function(); // so that it is no jump
    return result;
}
