// Segments: taking memory from the device when no cached block fits, and returning it.
//
// Everything here runs under the device's growth lock and makes device calls with no stream
// locked, so that hits of every stream go on meanwhile.
#ifndef TIDEMARK_ALLOCATOR_SEGMENT_H
#define TIDEMARK_ALLOCATOR_SEGMENT_H

#include "allocator/core.h"

// Serves a request that no cached block fits: the whole ladder from a new segment to out of
// memory. No lock held.
enum base_status cca__grow(struct cca__stream *stream, size_t rounded, size_t requested,
                           void **pointer) BASE_MUST_USE;

// The stream's list of segments. The stream's lock held.
void cca__segment_link_locked(struct cca *cca, struct cca__stream *stream, uint32_t number);
void cca__segment_unlink_locked(struct cca *cca, struct cca__stream *stream, uint32_t number);
// Tells the observer of a segment, or part of one.
void cca__observe_segment(const struct cca *cca, enum allocator_action action,
                          const struct cca__pool *pool, uint64_t address, size_t size);

// Waits for all pending frees and returns every segment that is wholly free. growth_lock held.
enum base_status cca__release_all_locked(struct cca__device *device) BASE_MUST_USE;

#endif
