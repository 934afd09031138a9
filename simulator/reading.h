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
    X(RECORD_600, "record-600", "no", "yes")                  \
    X(EMPTY_FORK, "empty-fork", "joined", "unjoined")         \
    X(NEVER_WAIT, "never-wait", "noop", "refused")            \
    X(ENDED_WAIT, "ended-wait", "noop", "refused")            \
    X(QUERY_CAPTURED, "query-captured", "invalidates", "harmless") \
    X(CAPTURED_UNSAFE, "captured-unsafe", "907", "900")       \
    X(WRONG_END, "wrong-end", "invalidates", "harmless")      \
    X(LOST_UNSAFE, "lost-unsafe", "allowed", "refused")       \
    X(SYNC_COPY, "sync-copy", "unsafe", "safe")               \
    X(EAGER_FREE, "eager-free", "invalidates", "harmless")    \
    X(STREAM_CREATE, "stream-create", "unsafe", "safe")       \
    X(LEGACY_WAIT, "legacy-wait", "906", "unsafe")            \
    X(EXTERNAL_OUTSIDE, "external-outside", "1", "401")

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
