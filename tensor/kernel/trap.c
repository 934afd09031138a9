// What a kernel says when an index is none. See rows.h.
#include "tensor/kernel/rows.h"

_Thread_local bool tensor_kernel_trapped;
