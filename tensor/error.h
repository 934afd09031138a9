// Refusals with PyTorch's sentence, and the class of exception that Python would raise.
#ifndef TIDEMARK_TENSOR_ERROR_H
#define TIDEMARK_TENSOR_ERROR_H

#include "base/status.h"

// All leave the sentence in base_status_message() and the class in tensor_error_class().
enum base_status tensor__error(const char *format, ...) BASE_PRINTF(1, 2);       // RuntimeError
enum base_status tensor__error_index(const char *format, ...) BASE_PRINTF(1, 2); // IndexError
enum base_status tensor__error_not_implemented(const char *format, ...) BASE_PRINTF(1, 2);

// To whom this thread's warnings go; see tensor_on_warning in tensor.h.
void tensor__warn(const char *format, ...) BASE_PRINTF(1, 2);

// A function that makes a sentence, with its buffers, stays apart from the one that is called all
// the time.
#define TENSOR_RARE __attribute__((noinline, cold))

#endif
