// What the allocator's tests share: a simulated device, requests that must succeed, a recorder of
// events.
#ifndef TIDEMARK_ALLOCATOR_TESTING_H
#define TIDEMARK_ALLOCATOR_TESTING_H

#include "allocator/allocator.h"
#include "allocator/cca.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <string.h>

// A fresh device of CAPACITY bytes, accounting only, and a caching allocator with CONFIG.
static inline struct allocator *testing_create(const char *config, uint64_t capacity) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = capacity,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = config}, &allocator),
                  BASE_OK);
    return allocator;
}

static inline void *testing_malloc(struct allocator *allocator, size_t size, cudaStream_t stream) {
    void *pointer = NULL;
    const enum base_status status = allocator_malloc(allocator, 0, size, stream, &pointer);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return pointer;
}

static inline void testing_free(struct allocator *allocator, void *pointer) {
    const enum base_status status = allocator_free(allocator, pointer);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static inline struct allocator_stats testing_stats(struct allocator *allocator) {
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(allocator, 0, &stats), BASE_OK);
    return stats;
}

static inline cudaStream_t testing_stream(void) {
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

// Whose work is done when the test says so.
static inline cudaStream_t testing_held_stream(void) {
    const cudaStream_t stream = testing_stream();
    sim_stream_hold(stream, true);
    return stream;
}

// Frees a block that USER used, too.
static inline void testing_free_after_use(struct allocator *allocator, void *pointer,
                                          cudaStream_t user) {
    BASE_CHECK_EQ(allocator_record_stream(allocator, pointer, user), BASE_OK);
    testing_free(allocator, pointer);
}

static inline bool testing_message_has(const char *text) {
    return strstr(base_status_message(), text) != NULL;
}

#endif
