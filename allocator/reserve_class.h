// How much address space a new expandable segment takes: the whole device and an eighth, unless
// settings or the program say otherwise for the class of its stream.
#ifndef TIDEMARK_ALLOCATOR_RESERVE_CLASS_H
#define TIDEMARK_ALLOCATOR_RESERVE_CLASS_H

#include "allocator/core.h"

// A class that the program named, or that was warned of.
struct cca__reserve_class_memory {
    struct cca__reserve_class_memory *next;
    double fraction; // of the device, the program's own default; 0: none
    bool warned;
    char name[];
};

// Bytes, before rounding to pages, at most 9/8 of the device. *configured: they were asked for, by
// a setting or the program. Warns once of a class that the settings leave out. growth_lock held.
size_t cca__reserve_of(const struct cca__stream *stream, bool *configured);

void cca__reserve_classes_deinit(struct cca *cca);

#endif
