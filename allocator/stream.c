// See stream.h. A table of streams is read without a lock: a larger one takes its place, and it
// stays until the end.
#include "allocator/stream.h"

#include "allocator/capture_guard.h"
#include "allocator/pool.h"
#include "allocator/private_pool.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_TABLE_CAPACITY_FIRST 16

void cca__streams_lock_all(struct cca__device *device) {
    // A stream is appended under the locks of all others, so whoever holds the last one sees the
    // end.
    for (struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next)
        cca__lock_take_hurried(&stream->lock);
}

void cca__streams_unlock_all(struct cca__device *device) {
    for (struct cca__stream *stream = device->first_created, *next; stream != NULL; stream = next) {
        next = stream->created_next;
        cca__lock_release(&stream->lock);
    }
}

static struct cca__stream_table *stream_table_make(size_t capacity) {
    struct cca__stream_table *const table =
        malloc(sizeof *table + capacity * sizeof table->slots[0]);
    if (table == NULL) return NULL;
    table->older = NULL;
    table->capacity = capacity;
    table->mask = (capacity - 1) * sizeof table->slots[0];
    for (size_t place = 0; place < capacity; ++place) {
        atomic_init(&table->slots[place].handle, cca__stream_no_handle(table));
        table->slots[place].stream = NULL;
    }
    return table;
}

// The slot of the handle, or the empty one where it belongs.
static struct cca__stream_slot *stream_table_slot(struct cca__stream_table *table,
                                                  cudaStream_t handle) {
    struct cca__stream_slot *slot = cca__stream_first_slot(table, handle);
    for (;;) {
        // Acquire pairs with stream_table_insert.
        const cudaStream_t found = atomic_load_explicit(&slot->handle, memory_order_acquire);
        if (found == handle || found == cca__stream_no_handle(table)) return slot;
        if (++slot == table->slots + table->capacity) slot = table->slots;
    }
}

static void stream_table_insert(struct cca__stream_table *table, struct cca__stream *stream) {
    struct cca__stream_slot *const slot = stream_table_slot(table, stream->handle);
    slot->stream = stream;
    // Pairs with cca__stream_known and stream_table_slot.
    atomic_store_explicit(&slot->handle, stream->handle, memory_order_release);
}

// Room for one more, so that publishing cannot fail.
static enum base_status stream_table_reserve(struct cca__device *device) {
    struct cca__stream_table *const table =
        atomic_load_explicit(&device->stream_table, memory_order_relaxed);
    if (2 * (device->stream_count + 1) <= table->capacity) return BASE_OK;
    struct cca__stream_table *const larger = stream_table_make(2 * table->capacity);
    if (larger == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a table of streams");
    for (size_t index = 0; index < device->stream_count; ++index)
        if (device->by_handle[index]->private_pool == NULL)
            stream_table_insert(larger, device->by_handle[index]);
    larger->older = table;
    atomic_store_explicit(&device->stream_table, larger,
                          memory_order_release); // pairs with cca__stream_known
    return BASE_OK;
}

static void stream_deinit(struct cca__stream *stream) {
    for (int index = 0; index < 2; ++index)
        cca__free_index_deinit(&stream->pools[index].index);
    cca__block_cache_deinit(&stream->unused_blocks);
    free(stream->queue.entries);
    free(stream->reserve_class);
    cca__guards_free(stream);
    cca__lock_deinit(&stream->lock);
}

// While a scope of a private pool is open, requests ask where they belong.
void cca__stream_set_special_locked(struct cca__stream *stream) {
    const struct cca__device *const device = stream->device;
    const struct cca *const cca = device->owner;
    const bool by_setting = cca->config.sizes.max_split_size != CCA_UNLIMITED ||
                            cca->config.sizes.divided || device->has_expandable ||
                            device->counted_requests ||
                            (stream->private_pool == NULL && device->pools.newest != NULL) ||
                            (stream->guards != NULL && stream->guards->count > 0);
    stream->special = by_setting || cca->watched;
    stream->only_watched = cca->watched && !by_setting;
}

// A stream that nobody else can see yet.
static enum base_status stream_init(struct cca__device *device, cudaStream_t handle,
                                    struct cca__stream **made) {
    struct cca *const cca = device->owner;
    uint32_t number;
    enum base_status status = cca__arena_take(&cca->streams, &number);
    if (status != BASE_OK) return status;
    struct cca__stream *const stream = cca__stream_at(cca, number);
    memset(stream, 0, sizeof *stream);
    cca__lock_init(&stream->lock);
    stream->device = device;
    stream->handle = handle;
    stream->home = stream;
    cca__stream_set_special_locked(stream);
    for (uint32_t index = 0; index < 2 && status == BASE_OK; ++index) {
        struct cca__pool *const pool = &stream->pools[index];
        pool->stream = stream;
        pool->device = device;
        pool->other = &stream->pools[1 - index];
        pool->number = (uint16_t)(2 * number + index);
        pool->is_small = index == CCA__POOL_SMALL;
        pool->kind_of_free_blocks = cca__block_kind(pool->number, CCA__BLOCK_FREE);
        status = cca__free_index_init(&pool->index, &device->owner->free_runs);
    }
    if (status != BASE_OK) {
        stream_deinit(stream);
        cca__arena_give_back(&cca->streams, number);
        return status;
    }
    *made = stream;
    return BASE_OK;
}

static enum base_status reserve_by_handle(struct cca__device *device) {
    if (device->stream_count < device->stream_capacity) return BASE_OK;
    const size_t capacity = device->stream_capacity == 0 ? 8 : 2 * device->stream_capacity;
    struct cca__stream **const by_handle =
        realloc(device->by_handle, capacity * sizeof(struct cca__stream *));
    if (by_handle == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams", capacity);
    device->by_handle = by_handle;
    device->stream_capacity = capacity;
    return BASE_OK;
}

static void insert_by_handle(struct cca__device *device, struct cca__stream *stream) {
    size_t place = device->stream_count++;
    for (; place > 0 && (uintptr_t)device->by_handle[place - 1]->handle > (uintptr_t)stream->handle;
         --place)
        device->by_handle[place] = device->by_handle[place - 1];
    device->by_handle[place] = stream;
}

static void append_created(struct cca__device *device, struct cca__stream *stream) {
    if (device->first_created == NULL) {
        device->first_created = stream;
        return;
    }
    cca__streams_lock_all(device);
    struct cca__stream *last = device->first_created;
    while (last->created_next != NULL)
        last = last->created_next;
    last->created_next = stream;
    // The new stream was not locked: nobody can have it before it is in the table.
    for (struct cca__stream *each = device->first_created; each != stream;) {
        struct cca__stream *const next = each->created_next;
        cca__lock_release(&each->lock);
        each = next;
    }
}

static struct cca__stream *find_by_handle(const struct cca__device *device, cudaStream_t handle) {
    for (size_t index = 0; index < device->stream_count; ++index)
        if (device->by_handle[index]->handle == handle &&
            device->by_handle[index]->private_pool == NULL)
            return device->by_handle[index];
    return NULL;
}

static enum base_status add_stream_locked(struct cca__device *device, cudaStream_t handle,
                                          struct cca__stream **stream) {
    *stream = find_by_handle(device, handle);
    if (*stream != NULL) return BASE_OK; // another thread was first
    enum base_status status = stream_table_reserve(device);
    if (status == BASE_OK) status = reserve_by_handle(device);
    if (status == BASE_OK) status = stream_init(device, handle, stream);
    if (status != BASE_OK) return status;
    // It can be found, and so be used, only when it is on all lists.
    append_created(device, *stream);
    insert_by_handle(device, *stream);
    stream_table_insert(atomic_load_explicit(&device->stream_table, memory_order_relaxed), *stream);
    return BASE_OK;
}

enum base_status cca__stream_get(struct cca__device *device, cudaStream_t handle,
                                 struct cca__stream **stream) {
    // Acquire pairs with stream_table_reserve.
    const struct cca__stream_slot *const slot = stream_table_slot(
        atomic_load_explicit(&device->stream_table, memory_order_acquire), handle);
    struct cca__stream *made = NULL;
    // Acquire pairs with stream_table_insert; an empty slot has another handle.
    if (atomic_load_explicit(&slot->handle, memory_order_acquire) == handle) {
        *stream = slot->stream;
        return BASE_OK;
    }
    cca__lock_take(&device->owner->settings_lock);
    cca__lock_take(&device->growth_lock);
    cca__lock_take(&device->events_lock);
    const enum base_status status = add_stream_locked(device, handle, &made);
    cca__lock_release(&device->events_lock);
    cca__lock_release(&device->growth_lock);
    cca__lock_release(&device->owner->settings_lock);
    if (status == BASE_OK) *stream = made;
    return status;
}

// One that a pool which is gone left behind, with the same handle. Its number is in the history,
// which must go on to mean that pool.
static struct cca__stream *take_over_locked(struct cca__stream *home,
                                            struct cca__private_pool *pool) {
    struct cca__device *const device = home->device;
    if (device->history != NULL) return NULL;
    for (struct cca__stream *stream =
             atomic_load_explicit(&device->private_streams, memory_order_relaxed);
         stream != NULL; stream = stream->private_next) {
        if (stream->home != home || stream->private_pool->exists || stream->first_segment != 0)
            continue;
        cca__private_pool_remove(stream->private_pool, stream);
        stream->private_pool = pool;
        return stream;
    }
    return NULL;
}

static void enter_pool_locked(struct cca__stream *stream, struct cca__private_pool *pool) {
    for (int kind = 0; kind < 2; ++kind) {
        stream->pools[kind].no_split = pool->no_split;
        stream->pools[kind].has_raw = pool->has_raw;
    }
    cca__private_pool_add(pool, stream);
}

// Like add_stream_locked, but requests find it by its pool.
static enum base_status add_private_stream_locked(struct cca__stream *home,
                                                  struct cca__private_pool *pool,
                                                  struct cca__stream **stream) {
    struct cca__device *const device = home->device;
    enum base_status status = reserve_by_handle(device);
    if (status == BASE_OK) status = stream_init(device, home->handle, stream);
    if (status != BASE_OK) return status;
    (*stream)->home = home;
    (*stream)->private_pool = pool;
    cca__stream_set_special_locked(*stream);
    (*stream)->private_next = atomic_load_explicit(&device->private_streams, memory_order_relaxed);
    append_created(device, *stream);
    insert_by_handle(device, *stream);
    atomic_store_explicit(&device->private_streams, *stream,
                          memory_order_release); // pairs with find_in_device
    return BASE_OK;
}

enum base_status cca__private_stream_get(struct cca__stream *home, struct cca__private_pool *pool,
                                         struct cca__stream **stream) {
    struct cca__device *const device = home->device;
    *stream = cca__private_pool_stream(pool, home->handle);
    if (*stream != NULL) return BASE_OK; // another thread was first
    cca__streams_lock_all(device);
    enum base_status status = cca__private_pool_reserve(pool);
    if (status == BASE_OK) *stream = take_over_locked(home, pool);
    cca__streams_unlock_all(device);
    if (status == BASE_OK && *stream == NULL)
        status = add_private_stream_locked(home, pool, stream);
    if (status != BASE_OK) return status;
    cca__streams_lock_all(device);
    cca__private_pool_revive(pool);
    enter_pool_locked(*stream, pool);
    cca__streams_unlock_all(device);
    return BASE_OK;
}

bool cca__streams_init(struct cca__device *device) {
    struct cca__stream_table *const table = stream_table_make(STREAM_TABLE_CAPACITY_FIRST);
    atomic_init(&device->stream_table, table);
    return table != NULL;
}

void cca__streams_deinit(struct cca__device *device) {
    for (struct cca__stream_table *table = atomic_load(&device->stream_table), *older;
         table != NULL; table = older) {
        older = table->older;
        free(table);
    }
    for (size_t index = 0; index < device->stream_count; ++index)
        stream_deinit(device->by_handle[index]);
    free(device->by_handle);
}
