// See capture_guard.h. Guards are few and short-lived: lists are walked.
#include "allocator/capture_guard.h"

#include "allocator/array.h"
#include "allocator/device.h"
#include "allocator/expandable_blocks.h"

#include <stdlib.h>
#include <string.h>

enum base_status cca__guards_reserve_locked(struct cca__stream *stream, uint32_t *number) {
    if (stream->guards == NULL) {
        stream->guards = calloc(1, sizeof *stream->guards);
        if (stream->guards == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for memory of a capture");
    }
    struct cca__guards *const guards = stream->guards;
    *number = guards->made;
    if (guards->count < guards->capacity) return BASE_OK;
    struct cca__guard *const more =
        cca__array_grow(guards->guards, &guards->capacity, sizeof *more, 16, "blocks of a capture");
    if (more == NULL) return BASE_HOST_MEMORY;
    guards->guards = more;
    return BASE_OK;
}

void cca__guards_add_locked(struct cca__stream *stream, const struct cca__guard *guard) {
    struct cca__guards *const guards = stream->guards;
    guards->guards[guards->count++] = *guard;
    ++guards->made;
    ++stream->device->captures.guard_count;
    cca__stream_set_special_locked(stream);
}

enum base_status cca__guard_set_streams(struct cca__guard *guard, const cudaStream_t *streams,
                                        size_t count) {
    guard->streams = malloc(count * sizeof *streams);
    if (guard->streams == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams", count);
    memcpy(guard->streams, streams, count * sizeof *streams);
    guard->stream_count = count;
    return BASE_OK;
}

static enum base_status watch(struct cca__stream *home, const struct cca__stream *stream,
                              struct cca__guard *guard, struct cca__capture_reuse *reuse,
                              struct cca__capture_state *state) {
    enum base_status status =
        cca__reuse_defer(reuse, state, guard->streams, guard->stream_count,
                         cca__guard_token(stream, guard->number), &guard->ticket);
    if (status != BASE_OK) return status;
    free(guard->streams);
    guard->streams = NULL;
    return cca__capture_state_read(home->handle, state); // it went with the questions
}

enum base_status cca__guards_watch_locked(struct cca__stream *home,
                                          struct cca__capture_reuse *reuse,
                                          struct cca__capture_state *state) {
    const struct cca__device *const device = home->device;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index) {
        const struct cca__stream *const stream = device->by_handle[index];
        if (stream->handle != home->handle || stream->guards == NULL) continue;
        for (size_t place = 0; place < stream->guards->count && status == BASE_OK; ++place)
            if (stream->guards->guards[place].streams != NULL)
                status = watch(home, stream, &stream->guards->guards[place], reuse, state);
    }
    return status;
}

static void remove_at(struct cca__stream *stream, size_t place) {
    free(stream->guards->guards[place].streams);
    stream->guards->guards[place] = stream->guards->guards[--stream->guards->count];
    --stream->device->captures.guard_count;
    cca__stream_set_special_locked(stream);
}

void cca__guards_remove_locked(struct cca__stream *stream, uint32_t number) {
    for (size_t place = 0; place < stream->guards->count; ++place) {
        if (stream->guards->guards[place].number != number) continue;
        remove_at(stream, place);
        return;
    }
}

void cca__guards_end_capture_locked(struct cca__stream *stream, uint64_t capture) {
    struct cca__guards *const guards = stream->guards;
    for (size_t place = 0; guards != NULL && place < guards->count;) {
        struct cca__guard *const guard = &guards->guards[place];
        guard->captures &= ~capture;
        if (guard->captures != 0) {
            ++place;
            continue;
        }
        cca__reuse_drop(&stream->device->captures.reuse, guard->ticket);
        remove_at(stream, place);
    }
}

void cca__guards_free(struct cca__stream *stream) {
    for (size_t place = 0; stream->guards != NULL && place < stream->guards->count; ++place)
        free(stream->guards->guards[place].streams);
    if (stream->guards != NULL) free(stream->guards->guards);
    free(stream->guards);
    stream->guards = NULL;
}

//------------------------------------------------------------------------------------------------

bool cca__guards_forbid_locked(const struct cca__stream *stream, uint64_t start, uint64_t end) {
    const struct cca__guards *const guards = stream->guards;
    for (size_t place = 0; guards != NULL && place < guards->count; ++place) {
        const struct cca__guard *const guard = &guards->guards[place];
        if (guard->address < end && start < guard->address + guard->size) return true;
    }
    return false;
}

// Whether the block's front, as it would be handed out, overlaps a guard.
static bool is_guarded(const struct cca *cca, const struct cca__pool *pool,
                       const struct cca__block *block, size_t rounded) {
    const bool splits = !pool->no_split &&
                        cca__should_split(cca__pool_expands(cca, pool) | pool->is_small,
                                          block->size, rounded, cca->config.sizes.max_split_size);
    return cca__guards_forbid_locked(pool->stream, block->address,
                                     block->address + (splits ? rounded : block->size));
}

uint32_t cca__guards_pass_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                 size_t rounded) {
    if (pool->stream->guards->count == 0) return number;
    while (number != 0) {
        const struct cca__block *const block = cca__block_at(cca, number);
        const bool is_usable = !cca__block_is_expandable(block) || cca->config.expandable_segments;
        if (is_usable && !is_guarded(cca, pool, block, rounded)) return number;
        number = cca__free_index_next(&pool->index, cca->blocks, number);
    }
    return 0;
}
