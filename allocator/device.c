// Making of devices and streams: see device.h. A stream that was met once stays until the
// allocator is destroyed: its blocks are its own, and its handle may be used again by the
// program.
#include "allocator/device.h"

#include "allocator/capture_guard.h"
#include "allocator/deferral.h"
#include "allocator/driver.h"
#include "allocator/expandable.h"
#include "allocator/pool.h"
#include "allocator/segment.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_TABLE_CAPACITY_FIRST 16

enum base_status cca__cuda_failed(cudaError_t error, const char *format, ...) {
    char call[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call, sizeof call, format, arguments);
    va_end(arguments);
    (void)cudaGetLastError();
    return base_status_set(BASE_CUDA, "CUDA error: %s (%s) from %s", cudaGetErrorString(error),
                           cudaGetErrorName(error), call);
}

enum base_status cca__device_scope_begin(struct cca__device_scope *scope, int ordinal) {
    cudaError_t error = cudaGetDevice(&scope->previous);
    if (error != cudaSuccess) return cca__cuda_failed(error, "cudaGetDevice");
    scope->ordinal = ordinal;
    if (scope->previous == ordinal) return BASE_OK;
    error = cudaSetDevice(ordinal);
    return error == cudaSuccess ? BASE_OK : cca__cuda_failed(error, "cudaSetDevice(%d)", ordinal);
}

void cca__device_scope_end(const struct cca__device_scope *scope) {
    // It was current before; if it cannot be made so again, the device is lost and the next call
    // says it.
    if (scope->previous != scope->ordinal && cudaSetDevice(scope->previous) != cudaSuccess)
        (void)cudaGetLastError();
}

//------------------------------------------------------------------------------------------------
// Streams.

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

// The next device that was made, ORDINAL or above; NULL: no more.
static struct cca__device *next_device(struct cca *cca, int *ordinal) {
    struct cca__device *device = NULL;
    while (device == NULL && *ordinal < CCA__DEVICES_MAX)
        device = atomic_load_explicit(&cca->devices[(*ordinal)++], memory_order_acquire);
    return device;
}

void cca__devices_lock_all(struct cca *cca) {
    struct cca__device *device;
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__lock_take(&device->growth_lock);
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__lock_take(&device->events_lock);
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__lock_take(&device->captures_lock);
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__streams_lock_all(device);
}

void cca__devices_unlock_all(struct cca *cca) {
    struct cca__device *device;
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;) {
        cca__streams_unlock_all(device);
        cca__lock_release(&device->captures_lock);
        cca__lock_release(&device->events_lock);
        cca__lock_release(&device->growth_lock);
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

//------------------------------------------------------------------------------------------------
// Devices.

void cca__device_update_settings_locked(struct cca__device *device) {
    device->counts_requests =
        device->limited && device->owner->config.garbage_collection_threshold > 0.0;
    if (device->counts_requests) device->counted_requests = true;
    if (device->owner->config.expandable_segments) device->has_expandable = true;
    atomic_store_explicit(&device->polls_own, device->owner->config.own.poll_own,
                          memory_order_relaxed);
    for (size_t index = 0; index < device->stream_count; ++index)
        cca__stream_set_special_locked(device->by_handle[index]);
}

void cca__devices_update_settings_locked(struct cca *cca) {
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device != NULL) cca__device_update_settings_locked(device);
    }
}

// Up to about 2.8 the product was cut instead of rounded, and a fraction of 1 was a limit, too.
void cca__device_set_fraction_locked(struct cca__device *device, double fraction) {
    const bool old = device->owner->config.torch_minor <= 8;
    const double allowed = fraction * (double)device->total_bytes;
    device->limited = fraction < 1.0 || old;
    device->allowed_bytes = device->limited ? (size_t)(old ? floor(allowed) : round(allowed)) : 0;
    cca__device_update_settings_locked(device);
}

static void device_free(struct cca__device *device) {
    cca__pools_deinit(&device->pools);
    for (struct cca__stream_table *table = atomic_load(&device->stream_table), *older;
         table != NULL; table = older) {
        older = table->older;
        free(table);
    }
    cca__history_remove_device(device);
    for (size_t index = 0; index < device->stream_count; ++index)
        stream_deinit(device->by_handle[index]);
    free(device->by_handle);
    free(device->spare_events);
    cca__driver_destroy(device->driver);
    cca__lock_deinit(&device->growth_lock);
    cca__lock_deinit(&device->tally_lock);
    cca__lock_deinit(&device->events_lock);
    cca__lock_deinit(&device->captures_lock);
    cca__captures_deinit(&device->captures);
    free(device);
}

static enum base_status device_init(struct cca *cca, int ordinal, struct cca__device **made) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) return cca__cuda_failed(error, "cudaGetDeviceCount");
    if (ordinal < 0 || ordinal >= count || ordinal >= CCA__DEVICES_MAX)
        return base_status_set(BASE_INVALID_VALUE, "device %d: there are devices 0 to %d", ordinal,
                               (count < CCA__DEVICES_MAX ? count : CCA__DEVICES_MAX) - 1);
    struct cca__device_scope scope;
    enum base_status status = cca__device_scope_begin(&scope, ordinal);
    if (status != BASE_OK) return status;
    size_t free_bytes, total_bytes;
    error = cudaMemGetInfo(&free_bytes, &total_bytes);
    cca__device_scope_end(&scope);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaMemGetInfo on device %d", ordinal);

    struct cca__device *const device = calloc(1, sizeof *device);
    struct cca__stream_table *const table = stream_table_make(STREAM_TABLE_CAPACITY_FIRST);
    if (device == NULL || table == NULL) {
        free(device);
        free(table);
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for device %d", ordinal);
    }
    device->owner = cca;
    device->ordinal = ordinal;
    device->total_bytes = total_bytes;
    atomic_init(&device->stream_table, table);
    cca__lock_init(&device->growth_lock);
    cca__lock_init(&device->tally_lock);
    cca__lock_init(&device->events_lock);
    cca__lock_init(&device->captures_lock);
    if (cca->fraction_set) cca__device_set_fraction_locked(device, cca->fraction);
    cca__device_update_settings_locked(device);
    status = cca__history_add_device(device);
    if (status != BASE_OK) {
        device_free(device);
        return status;
    }
    *made = device;
    return BASE_OK;
}

enum base_status cca__device_make(struct cca *cca, int ordinal, struct cca__device **device) {
    enum base_status status = BASE_OK;
    struct cca__device *made = NULL;
    cca__lock_take(&cca->settings_lock);
    if (ordinal >= 0 && ordinal < CCA__DEVICES_MAX) made = atomic_load(&cca->devices[ordinal]);
    if (made == NULL) {
        status = device_init(cca, ordinal, &made);
        if (status == BASE_OK)
            atomic_store_explicit(&cca->devices[ordinal], made,
                                  memory_order_release); // pairs with cca__device_get
    }
    cca__lock_release(&cca->settings_lock);
    if (status == BASE_OK) *device = made;
    return status;
}

enum base_status cca__device_of(struct allocator *allocator, int ordinal, const char *what,
                                struct cca__device **device) {
    const enum base_status status = cca__require_caching(allocator, what);
    return status == BASE_OK ? cca__device_get(cca__of(allocator), ordinal, device) : status;
}

void cca__device_destroy(struct cca__device *device) {
    struct cca__device_scope scope;
    // Errors have nowhere to go here: what cannot be freed any more was lost with the device.
    const bool is_current = cca__device_scope_begin(&scope, device->ordinal) == BASE_OK;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        for (size_t entry = 0; entry < stream->queue.count; ++entry)
            (void)cudaEventDestroy(cca__event_queue_at(&stream->queue, entry)->event);
        for (uint32_t number = stream->first_segment; number != 0;
             number = device->owner->segments[number].next) {
            const struct cca__segment *const segment = &device->owner->segments[number];
            if (segment->expandable != NULL)
                cca__expandable_destroy(device, segment->expandable);
            else if (segment->gone_bytes == 0)
                (void)cca__segment_give_back(cca__pool_at(device->owner, segment->pool),
                                             (void *)(uintptr_t)segment->address, segment->size);
        }
    }
    for (size_t index = 0; index < device->spare_event_count; ++index)
        (void)cudaEventDestroy(device->spare_events[index]);
    cca__driver_drop_kept(device);
    if (is_current) cca__device_scope_end(&scope);
    (void)cudaGetLastError();
    device_free(device);
}
