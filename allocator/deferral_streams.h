// The streams that a deferred block concerns, and which of them are captured.
#ifndef TIDEMARK_ALLOCATOR_DEFERRAL_STREAMS_H
#define TIDEMARK_ALLOCATOR_DEFERRAL_STREAMS_H

#include "allocator/pool.h"

enum cca__which_uses { CCA__ALL_USES, CCA__CAPTURED_USES, CCA__OTHER_USES };

bool cca__has_uses(const struct cca *cca, const struct cca__block *block,
                   enum cca__which_uses which);
// One record, of deferral.h's cca__use_of.
bool cca__has_use(const struct cca *cca, const struct cca__block *block, uint16_t use);

struct cca__block_streams {
    cudaStream_t *handles; // its own, then those of the uses that were asked for, each once
    size_t count, capacity;
    cudaStream_t few[32];
};

enum base_status cca__block_streams_init(struct cca *cca, const struct cca__block *block,
                                         enum cca__which_uses which,
                                         struct cca__block_streams *streams) BASE_MUST_USE;
void cca__block_streams_deinit(struct cca__block_streams *streams);

// Whether one of the streams, from FIRST on, is captured.
enum base_status cca__block_streams_find_captured(const struct cca__block_streams *streams,
                                                  size_t first, bool *found) BASE_MUST_USE;
// Leaves a block's own stream, and of the others those that are captured: a stream leaves a capture
// only with its end, so the rest (*some_left) has no work in one that is under way, but in parts.
enum base_status cca__block_streams_keep_captured(struct cca__block_streams *streams,
                                                  bool *some_left) BASE_MUST_USE;

static inline struct cca__stream *cca__stream_of_block(struct cca *cca,
                                                       const struct cca__block *block) {
    return cca__pool_at(cca, cca__block_pool(block))->stream;
}

#endif
