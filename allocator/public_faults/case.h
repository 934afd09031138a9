// What the cases share: an allocator on a device of their own, and telling values.
#ifndef TIDEMARK_ALLOCATOR_PUBLIC_FAULTS_CASE_H
#define TIDEMARK_ALLOCATOR_PUBLIC_FAULTS_CASE_H

#include "allocator/public_faults/public_faults.h"
#include "allocator/testing.h"

#include <stdio.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

// Where something counts, not only whether it happens.
#define OOM ((int64_t)1)

static inline void tell(const struct public_fault_teller *teller, const char *config,
                        const char *what, int64_t expected, int64_t got) {
    teller->line(teller->context,
                 &(struct public_fault_line){config, what, PUBLIC_FAULT_EQUAL, expected, got});
}
static inline void tell_below(const struct public_fault_teller *teller, const char *config,
                              const char *what, int64_t limit, int64_t got) {
    teller->line(teller->context,
                 &(struct public_fault_line){config, what, PUBLIC_FAULT_BELOW, limit, got});
}
static inline void tell_above(const struct public_fault_teller *teller, const char *config,
                              const char *what, int64_t limit, int64_t got) {
    teller->line(teller->context,
                 &(struct public_fault_line){config, what, PUBLIC_FAULT_ABOVE, limit, got});
}

static void ignore_warning(void *context, const char *text) {
    (void)context;
    (void)text;
}

static inline struct allocator *case_begin(const char *config, uint64_t capacity) {
    struct allocator *const allocator = testing_create(config, capacity);
    cca_set_warning_observer(allocator, &(struct cca_warning_observer){ignore_warning, NULL});
    return allocator;
}

// Everything is in order, and nothing is left behind.
static inline void case_end(struct allocator *allocator) {
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

// NULL: out of memory. Other failures end the program.
static inline void *case_malloc(struct allocator *allocator, size_t size, cudaStream_t stream) {
    void *pointer = NULL;
    const enum base_status status = allocator_malloc(allocator, 0, size, stream, &pointer);
    if (status == BASE_OUT_OF_MEMORY) return NULL;
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return pointer;
}

static inline int64_t reserved_mib(struct allocator *allocator) {
    return testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current >> 20;
}
static inline int64_t active_mib(struct allocator *allocator) {
    return testing_stats(allocator).active_bytes[ALLOCATOR_STAT_ALL].current >> 20;
}
static inline int64_t allocated_mib(struct allocator *allocator) {
    return testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].current >> 20;
}

#endif
