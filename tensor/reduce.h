// Of sums, what other reductions share.
#ifndef TIDEMARK_TENSOR_REDUCE_H
#define TIDEMARK_TENSOR_REDUCE_H

#include "tensor/formulas.h"

// What the gradient of a sum of SELF over DIMS (none: all) needs.
enum base_status tensor__sum_payload(struct tensor self, const int64_t *dims, int count, bool keep,
                                     struct tape_sum_payload *payload) BASE_MUST_USE;

#endif
