// See torch_captures.h.
#include "allocator/torch_captures.h"

#include "allocator/capture_graph.h"
#include "allocator/event_poll.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"

// What a stuck block's link[0] is; its events are none.
#define STUCK UINT32_MAX

static enum base_status refuse(struct cca__stream *stream, uint32_t number, const char *why) {
    struct cca *const cca = stream->device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    block->link[0] = STUCK;
    atomic_fetch_add_explicit(&stream->device->captures.stuck_count, 1, memory_order_relaxed);
    if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(stream->device, -1);
    if (cca->watched) cca__free_observe(stream, number);
    return base_status_set(BASE_INVALID_VALUE,
                           "%p is freed in a capture, and %s: free it again after the capture "
                           "(PyTorch: c10::Error INTERNAL ASSERT; the block is lost)",
                           (void *)(uintptr_t)block->address, why);
}

// Whether all streams of a block are captured, and not all into one graph.
static enum base_status find_graphs(struct cca__stream *stream, const struct cca__block *block,
                                    bool *several) {
    struct cca *const cca = stream->device->owner;
    struct cca__capture_state state;
    enum base_status status = cca__capture_state_read(stream->handle, &state);
    bool all = state.is_active;
    const cudaGraph_t graph = state.graph;
    *several = false;
    for (uint32_t number = block->uses; number != 0 && status == BASE_OK && all;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count && status == BASE_OK && all; ++index) {
            const struct cca__stream *const user = cca__stream_at(cca, record->pools[index] / 2);
            status = cca__capture_state_read(user->handle, &state);
            all = status == BASE_OK && state.is_active;
            if (all && state.graph != graph) *several = true;
        }
    }
    *several = *several && all;
    return status;
}

enum base_status cca__torch_free_in_capture(struct cca__stream *stream, uint32_t number,
                                            bool is_invalidated, bool reuses) {
    const struct cca__block *const block = cca__block_at(stream->device->owner, number);
    bool several = false;
    if (is_invalidated) return refuse(stream, number, "the capture was invalidated");
    const enum base_status status =
        reuses ? find_graphs(stream, block, &several) : BASE_OK;
    if (status != BASE_OK || !several) return status;
    return refuse(stream, number, "its streams are captured into several graphs");
}

bool cca__torch_is_stuck(const struct cca *cca, const struct cca__block *block,
                         const struct cca__pool *pool, const void *pointer) {
    return cca->config.own.torch_faults && cca__block_pool(block) == pool->number &&
           block->state == CCA__BLOCK_PENDING &&
           block->address == (uint64_t)(uintptr_t)pointer && block->link[0] == STUCK &&
           cca__use_record_at(cca, block->uses)->events == 0;
}

void cca__torch_free_stuck_locked(struct cca__stream *stream, uint32_t number, bool *over_limit) {
    atomic_fetch_sub_explicit(&stream->device->captures.stuck_count, 1, memory_order_relaxed);
    cca__free_complete_locked(stream->device->owner, stream, number, over_limit);
}
