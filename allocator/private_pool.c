// See private_pool.h. A device has few pools: lists are walked.
#include "allocator/private_pool.h"

#include "allocator/array.h"
#include "allocator/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void cca__pools_deinit(struct cca__pool_registry *registry) {
    for (struct cca__pool_scope *scope = registry->newest, *older; scope != NULL; scope = older) {
        older = scope->older;
        free(scope);
    }
    for (struct cca__private_pool *pool = registry->first, *next; pool != NULL; pool = next) {
        next = pool->next;
        free(pool->streams);
        free(pool);
    }
    *registry = (struct cca__pool_registry){0};
}

// Fibonacci hashing: the upper bits of the product are the place in a table.
uint64_t cca__pool_id_place(struct allocator_pool_id id) {
    return (id.capture != 0 ? id.capture : id.user) * UINT64_C(11400714819323198485);
}

struct cca__private_pool *cca__pools_find(const struct cca__pool_registry *registry,
                                          struct allocator_pool_id id) {
    for (struct cca__private_pool *pool = registry->first; pool != NULL; pool = pool->next)
        if (cca__pool_id_equal(pool->id, id)) return pool;
    return NULL;
}

enum base_status cca__pools_get(const struct cca__pool_registry *registry,
                                struct allocator_pool_id id, struct cca__private_pool **pool) {
    struct cca__private_pool *const found = cca__pools_find(registry, id);
    if (found == NULL || !found->exists)
        return base_status_set(BASE_INVALID_VALUE,
                               "there is no private pool %" PRIu64 ".%" PRIu64
                               " on this device (PyTorch: c10::Error it != graph_pools.end())",
                               id.capture, id.user);
    *pool = found;
    return BASE_OK;
}

static void insert_by_place(struct cca__pool_registry *registry, struct cca__private_pool *pool) {
    struct cca__private_pool **link = &registry->first;
    while (*link != NULL && cca__pool_id_place((*link)->id) <= cca__pool_id_place(pool->id))
        link = &(*link)->next;
    pool->next = *link;
    *link = pool;
}

enum base_status cca__pools_remember(struct cca__pool_registry *registry,
                                     struct allocator_pool_id id, struct cca__private_pool **pool) {
    *pool = cca__pools_find(registry, id);
    if (*pool != NULL) return BASE_OK;
    struct cca__private_pool *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a private pool");
    made->id = id;
    insert_by_place(registry, made);
    *pool = made;
    return BASE_OK;
}

enum base_status cca__pools_create(struct cca__pool_registry *registry, struct allocator_pool_id id,
                                   const struct cca_raw_allocator *raw,
                                   struct cca__private_pool **pool) {
    const enum base_status status = cca__pools_remember(registry, id, pool);
    if (status != BASE_OK) return status;
    struct cca__private_pool *const known = *pool;
    if (!known->exists) {
        known->exists = true;
        known->count = 1;
        known->no_split = false;
        known->has_raw = raw != NULL;
        if (raw != NULL) known->raw = *raw;
        return BASE_OK;
    }
    if (known->count == 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "private pool %" PRIu64 ".%" PRIu64
                               " was released by its last user and is about to go",
                               id.capture, id.user);
    if (raw != NULL)
        return base_status_set(BASE_INVALID_VALUE,
                               "private pool %" PRIu64 ".%" PRIu64
                               " exists: where its memory comes from was said when it was made",
                               id.capture, id.user);
    ++known->count;
    return BASE_OK;
}

enum base_status cca__pools_release(struct cca__pool_registry *registry,
                                    struct allocator_pool_id id) {
    struct cca__private_pool *pool;
    const enum base_status status = cca__pools_get(registry, id, &pool);
    if (status != BASE_OK) return status;
    if (pool->count == 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "private pool %" PRIu64 ".%" PRIu64
                               " is released more often than it was created",
                               id.capture, id.user);
    --pool->count;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Scopes.

bool cca__pools_has_scope(const struct cca__pool_registry *registry,
                          const struct cca__private_pool *pool) {
    for (const struct cca__pool_scope *scope = registry->newest; scope != NULL;
         scope = scope->older)
        if (scope->pool == pool) return true;
    return false;
}

enum base_status cca__pools_already_open(struct allocator_pool_id id) {
    return base_status_set(
        BASE_INVALID_VALUE,
        "a scope of private pool %" PRIu64 ".%" PRIu64
        " is open already (PyTorch: c10::Error beginAllocateToPool: already recording to "
        "mempool_id)",
        id.capture, id.user);
}

enum base_status cca__pools_begin(struct cca__pool_registry *registry, struct allocator_pool_id id,
                                  const struct cca_pool_filter *filter) {
    struct cca__pool_scope *const scope = calloc(1, sizeof *scope);
    if (scope == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a scope of a pool");
    enum base_status status = cca__pools_create(registry, id, NULL, &scope->pool);
    if (status == BASE_OK && cca__pools_has_scope(registry, scope->pool))
        status = cca__pools_already_open(id);
    if (status != BASE_OK) {
        free(scope);
        return status;
    }
    if (filter != NULL) scope->filter = *filter;
    scope->older = registry->newest;
    registry->newest = scope;
    return BASE_OK;
}

enum base_status cca__pools_end(struct cca__pool_registry *registry, struct allocator_pool_id id,
                                struct cca__pool_scope **closed) {
    for (struct cca__pool_scope **link = &registry->newest; *link != NULL; link = &(*link)->older) {
        struct cca__pool_scope *const scope = *link;
        if (!cca__pool_id_equal(scope->pool->id, id)) continue;
        *link = scope->older;
        scope->is_closed = true;
        *closed = scope;
        return BASE_OK;
    }
    return base_status_set(BASE_INVALID_VALUE,
                           "no scope of private pool %" PRIu64 ".%" PRIu64
                           " is open (PyTorch: c10::Error endAllocatePool: not currently recording "
                           "to mempool_id)",
                           id.capture, id.user);
}

void cca__pool_scope_destroy(struct cca__pool_scope *scope) {
    // Acquire pairs with the release in ask().
    while (atomic_load_explicit(&scope->askers, memory_order_acquire) != 0)
        base_thread_yield();
    free(scope);
}

// What the filter says. *is_closed: the scope was closed meanwhile, and may be gone now.
static bool ask(struct cca__pool_scope *scope, cudaStream_t handle, struct cca__lock *lock,
                bool *is_closed) {
    atomic_fetch_add_explicit(&scope->askers, 1, memory_order_relaxed);
    cca__lock_release(lock);
    const bool accepts = scope->filter.accepts(scope->filter.context, handle);
    cca__lock_take(lock);
    *is_closed = scope->is_closed;
    // Release pairs with the acquire of who destroys it.
    atomic_fetch_sub_explicit(&scope->askers, 1, memory_order_release);
    return accepts;
}

static bool answer_at_once(const struct cca__pool_scope *scope, struct cca__known_capture known,
                           bool *accepts) {
    *accepts = scope->filter.accepts == NULL;
    return *accepts ||
           (known.is_known && cca__capture_filter_knows(&scope->filter, known.id, accepts));
}

struct cca__private_pool *cca__pools_route(struct cca__pool_registry *registry, cudaStream_t handle,
                                           struct cca__known_capture known,
                                           struct cca__lock *lock) {
    struct cca__pool_scope *scope = registry->newest;
    while (scope != NULL) {
        bool accepts, is_closed = false;
        if (!answer_at_once(scope, known, &accepts)) accepts = ask(scope, handle, lock, &is_closed);
        if (!is_closed && accepts) return scope->pool;
        scope = is_closed ? registry->newest : scope->older;
    }
    return NULL;
}

//------------------------------------------------------------------------------------------------
// The streams of a pool.

struct cca__stream *cca__private_pool_stream(const struct cca__private_pool *pool,
                                             cudaStream_t handle) {
    for (size_t index = 0; index < pool->stream_count; ++index)
        if (pool->streams[index]->handle == handle) return pool->streams[index];
    return NULL;
}

enum base_status cca__private_pool_reserve(struct cca__private_pool *pool) {
    if (pool->stream_count < pool->stream_capacity) return BASE_OK;
    struct cca__stream **const streams = cca__array_grow(pool->streams, &pool->stream_capacity,
                                                         sizeof *streams, 4, "streams of a pool");
    if (streams == NULL) return BASE_HOST_MEMORY;
    pool->streams = streams;
    return BASE_OK;
}

void cca__private_pool_add(struct cca__private_pool *pool, struct cca__stream *stream) {
    size_t place = pool->stream_count++;
    for (; place > 0 && (uintptr_t)pool->streams[place - 1]->handle > (uintptr_t)stream->handle;
         --place)
        pool->streams[place] = pool->streams[place - 1];
    pool->streams[place] = stream;
}

void cca__private_pool_remove(struct cca__private_pool *pool, const struct cca__stream *stream) {
    size_t place = 0;
    while (pool->streams[place] != stream)
        ++place;
    --pool->stream_count;
    for (; place < pool->stream_count; ++place)
        pool->streams[place] = pool->streams[place + 1];
}
