// Warnings: what PyTorch tells of and goes on.
#ifndef TIDEMARK_ALLOCATOR_WARNING_H
#define TIDEMARK_ALLOCATOR_WARNING_H

#include "allocator/cca.h"

// Tells the observer, one line; nobody if it is NULL or has no function. Locks may be held.
void cca__warn(const struct cca_warning_observer *observer, const char *format, ...)
    BASE_PRINTF(2, 3);

// What an allocator starts with: a line on stderr.
extern const struct cca_warning_observer cca__warn_on_stderr;

#endif
