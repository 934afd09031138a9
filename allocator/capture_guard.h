// Guards: free memory that a capture in flight still uses (deferral.h). A guard belongs to a stream
// object; while there is one, best fit passes over what overlaps it.
//
// Guarded by the stream's lock; added and removed under captures_lock as well.
#ifndef TIDEMARK_ALLOCATOR_CAPTURE_GUARD_H
#define TIDEMARK_ALLOCATOR_CAPTURE_GUARD_H

#include "allocator/capture_graph.h"
#include "allocator/core.h"

struct cca__guard {
    uint64_t address, size;
    uint64_t captures; // marks: it goes with the last of them
    uint32_t number;   // of the guards of the stream
    uint32_t ticket;   // of capture_reuse.h; 0: nothing proves it
    // To be asked for what proves it, the block's own first; NULL: done, or there is nothing. The
    // guard's, and under captures_lock.
    cudaStream_t *streams;
    size_t stream_count;
};

struct cca__guards {
    struct cca__guard *guards;
    size_t count, capacity;
    uint32_t made;
};

// What a guard is known by to the policy; blocks are known by their numbers.
#define CCA__TOKEN_OF_GUARD ((uint64_t)1 << 63)
static inline uint64_t cca__guard_token(const struct cca__stream *stream, uint32_t number) {
    return CCA__TOKEN_OF_GUARD | (uint64_t)(stream->pools[CCA__POOL_SMALL].number / 2) << 32 |
           number;
}
static inline uint32_t cca__guard_stream_number(uint64_t token) {
    return (uint32_t)(token >> 32) & 0x7fffffff;
}

// The streams of a guard that is about to be added. BASE_HOST_MEMORY.
enum base_status cca__guard_set_streams(struct cca__guard *guard, const cudaStream_t *streams,
                                        size_t count) BASE_MUST_USE;
// Asks for tickets of guards that have none yet. Only who captures may look at what a stream
// depends on: the next call for it takes the answer away. So a flush, which any thread makes,
// leaves it to the next request in the capture. STATE is that of the stream HOME. captures_lock
// held.
enum base_status cca__guards_watch_locked(struct cca__stream *home,
                                          struct cca__capture_reuse *reuse,
                                          struct cca__capture_state *state) BASE_MUST_USE;

// Room for one more; *number is the one that it will have. BASE_HOST_MEMORY. Both locks held.
enum base_status cca__guards_reserve_locked(struct cca__stream *stream,
                                            uint32_t *number) BASE_MUST_USE;
void cca__guards_add_locked(struct cca__stream *stream, const struct cca__guard *guard);
void cca__guards_remove_locked(struct cca__stream *stream, uint32_t number);
// CAPTURE, a bit, is over, and a part of PARENT (0: of none). The tickets of guards that go are
// dropped.
void cca__guards_end_capture_locked(struct cca__stream *stream, uint64_t capture);

void cca__guards_free(struct cca__stream *stream);

// Whether a guard forbids a part of these addresses. The stream's lock held.
bool cca__guards_forbid_locked(const struct cca__stream *stream, uint64_t start, uint64_t end);

// The best fit from NUMBER on, a free block or 0, that no guard forbids. The stream's lock held.
uint32_t cca__guards_pass_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                 size_t rounded);

#endif
