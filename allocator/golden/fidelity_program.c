// Prints docs/fidelity.md.
#include "allocator/golden/fidelity.h"

int main(void) {
    fidelity_print(stdout);
    return ferror(stdout) || fflush(stdout) != 0 ? 2 : 0;
}
