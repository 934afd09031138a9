// Readings: points that CUDA's documents leave open. Each is a switch with one default; the names
// and values are those of the litmus cases.
#ifndef TIDEMARK_SIMULATOR_READING_H
#define TIDEMARK_SIMULATOR_READING_H

#include "base/status.h"

#include <stdbool.h>

// X(NAME, TEXT, DEFAULT, OTHER)
#define SIM__READING_LIST(X)                              \
    X(PAGEABLE_SOURCE, "pageable-source", "consumed", "late") \
    X(PAGEABLE_DEST, "pageable-dest", "async", "sync")        \
    X(FREE, "free", "wait", "strict")                         \
    X(THREADS, "threads", "shared", "strict")                 \
    X(RECORD_600, "record-600", "no", "yes")

enum sim__reading {
#define SIM__READING_ENUMERATOR(name, text, standard, other) SIM__READING_##name,
    SIM__READING_LIST(SIM__READING_ENUMERATOR)
#undef SIM__READING_ENUMERATOR
        SIM__READING_COUNT
};

// Whether READING has its other value.
extern bool sim__reading_other[SIM__READING_COUNT];

// NAME=VALUE[,NAME=VALUE]... of TIDEMARK_SIM_READINGS.
enum base_status sim__readings_from_environment(void);

#endif
