// A stretch without gradients inside an operator.
//
//     const bool was_off = tensor__gradients_off();
//     ...
//     tensor__gradients_restore(was_off);
#ifndef TIDEMARK_TENSOR_MODE_H
#define TIDEMARK_TENSOR_MODE_H

#include <stdbool.h>

bool tensor__gradients_off(void);
void tensor__gradients_restore(bool was_off);

#endif
