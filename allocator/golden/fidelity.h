// docs/fidelity.md: how far the allocator decides as PyTorch's own does, and where it does not. All
// of it is run to be printed: logs are replayed, reported faults are played; what does not hold
// aborts.
//
//     bazel run //allocator:fidelity > docs/fidelity.md
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_FIDELITY_H
#define TIDEMARK_ALLOCATOR_GOLDEN_FIDELITY_H

#include <stdio.h>

// Of the working directory, where the recordings are.
#define FIDELITY_LOGS "allocator/golden/testdata"

void fidelity_print(FILE *output);

#endif
