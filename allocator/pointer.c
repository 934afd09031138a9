// See pointer.h. The page table knows where blocks begin, and stale beginnings
// as well; what lies between is found by walking the segments, which only
// mistakes and views pay for.
#include "allocator/pointer.h"

#include "allocator/device.h"
#include "allocator/pool.h"

#include <stdio.h>

#define WHAT_BYTES 192

// The stream's lock held.
static struct cca__block *find_in_stream_locked(struct cca *cca, const struct cca__stream *stream,
                                                uint64_t address) {
    for (uint32_t number = stream->first_segment; number != 0;
         number = cca->segments[number].next) {
        const struct cca__segment *const segment = &cca->segments[number];
        if (address - segment->address >= segment->size) continue;
        struct cca__block *block = cca__block_at(cca, segment->first_block);
        while (address - block->address >= block->size)
            block = cca__block_at(cca, block->next);
        return block;
    }
    return NULL;
}

static struct cca__block *find_in_device(struct cca__device *device, uint64_t address) {
    // Acquire pairs with the releases of cca__stream_make. A stream that appears meanwhile has no
    // block that the caller could know.
    const struct cca__stream_table *const table =
        atomic_load_explicit(&device->stream_table, memory_order_acquire);
    for (size_t place = 0; place < table->capacity; ++place) {
        struct cca__stream *const stream = cca__stream_in_slot(table, place);
        if (stream == NULL) continue;
        cca__lock_take(&stream->lock);
        struct cca__block *const block = find_in_stream_locked(device->owner, stream, address);
        if (block != NULL) return block;
        cca__lock_release(&stream->lock);
    }
    // Acquire pairs with cca__private_stream_get.
    for (struct cca__stream *stream =
             atomic_load_explicit(&device->private_streams, memory_order_acquire);
         stream != NULL; stream = stream->private_next) {
        cca__lock_take(&stream->lock);
        struct cca__block *const block = find_in_stream_locked(device->owner, stream, address);
        if (block != NULL) return block;
        cca__lock_release(&stream->lock);
    }
    return NULL;
}

struct cca__block *cca__pointer_lock_block(struct cca *cca, const void *pointer,
                                           struct cca__pool **pool) {
    struct cca__block *block = NULL;
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX && block == NULL; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device != NULL) block = find_in_device(device, (uint64_t)(uintptr_t)pointer);
    }
    if (block != NULL) *pool = cca__pool_at(cca, cca__block_pool(block));
    return block;
}

// The lock of the block's stream held.
static void describe(const struct cca__block *block, const void *pointer, char what[WHAT_BYTES]) {
    const uint64_t offset = (uint64_t)(uintptr_t)pointer - block->address;
    const char *text = "it was freed already, or is in memory that was never handed out";
    if (block->state == CCA__BLOCK_PENDING)
        text = "it was freed already and waits for its streams";
    else if (block->state == CCA__BLOCK_UNMAPPED)
        text = "its memory went back to the device, or was never there";
    else if (block->state == CCA__BLOCK_ALLOCATED && offset == 0)
        text = "it was freed already, and another thread was handed the memory "
               "just now";
    if (block->state == CCA__BLOCK_ALLOCATED && offset != 0)
        snprintf(what, WHAT_BYTES,
                 "it points into a block, %llu bytes behind its start; pass %#llx, "
                 "the address "
                 "that allocator_malloc returned",
                 (unsigned long long)offset, (unsigned long long)block->address);
    else
        snprintf(what, WHAT_BYTES, "%s", text);
}

enum base_status cca__pointer_invalid(struct cca *cca, const void *pointer) {
    char what[WHAT_BYTES] = "this allocator never handed it out, or its memory "
                            "went back to the device";
    struct cca__pool *pool;
    const struct cca__block *const block = cca__pointer_lock_block(cca, pointer, &pool);
    if (block != NULL) {
        describe(block, pointer, what);
        cca__lock_release(&pool->stream->lock);
    }
    return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p: %s", pointer, what);
}

//------------------------------------------------------------------------------------------------
// With a lock.

// Finds the handed-out block at POINTER and returns with its stream locked; false: there is none.
static bool find_and_lock(struct cca *cca, const void *pointer, struct cca__pool **pool,
                          struct cca__block **block) {
    const uint32_t number = cca__block_lookup(cca, pointer);
    *block = cca__block_at(cca, number);
    *pool = number != 0 ? cca__pool_at(cca, cca__block_pool(*block)) : NULL;
    if (*pool == NULL) return false;
    cca__lock_take(&(*pool)->stream->lock);
    if (cca__block_is_handed_out(*block, *pool, pointer)) return true;
    cca__lock_release(&(*pool)->stream->lock);
    return false;
}

enum base_status cca__pointer_lock(struct cca *cca, const void *pointer, struct cca__pool **pool,
                                   struct cca__block **block) {
    return find_and_lock(cca, pointer, pool, block) ? BASE_OK : cca__pointer_invalid(cca, pointer);
}

enum base_status cca__pointer_lock_around(struct cca *cca, const void *pointer,
                                          struct cca__pool **pool, struct cca__block **block) {
    if (find_and_lock(cca, pointer, pool, block)) return BASE_OK;
    if (!cca->refuse_interior_pointers) {
        *block = cca__pointer_lock_block(cca, pointer, pool);
        if (*block != NULL && (*block)->state == CCA__BLOCK_ALLOCATED) return BASE_OK;
        if (*block != NULL) cca__lock_release(&(*pool)->stream->lock);
    }
    return cca__pointer_invalid(cca, pointer);
}

enum base_status cca__pointer_not_live(const void *pointer) {
    return base_status_set(BASE_INVALID_POINTER,
                           "invalid device pointer: %p: it is not what allocator_malloc returned, "
                           "or it was freed already",
                           pointer);
}
