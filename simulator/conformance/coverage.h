// docs/cuda-coverage.md: each call of the contract, whether the simulator has it, and its cases.
#ifndef TIDEMARK_SIMULATOR_CONFORMANCE_COVERAGE_H
#define TIDEMARK_SIMULATOR_CONFORMANCE_COVERAGE_H

#include <stdio.h>

void conformance_coverage_print(FILE *output);

#endif
