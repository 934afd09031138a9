// Streams as the allocator knows them: made when first named, found without a lock afterwards. One
// that was met once stays until the allocator is destroyed: its blocks are its own, and its handle
// may be used again by the program.
#ifndef TIDEMARK_ALLOCATOR_STREAM_H
#define TIDEMARK_ALLOCATOR_STREAM_H

#include "allocator/core.h"

// The tables of a device that has met no stream yet; false: no memory. And their end, with all
// streams.
bool cca__streams_init(struct cca__device *device) BASE_MUST_USE;
void cca__streams_deinit(struct cca__device *device);

// Where in its table a stream is looked for first. The low half of a handle tells the streams of a
// process apart well enough.
static inline struct cca__stream_slot *cca__stream_first_slot(struct cca__stream_table *table,
                                                              cudaStream_t handle) {
    const uint32_t hash = (uint32_t)(uintptr_t)handle * 0x9e3779b1u;
    return (struct cca__stream_slot *)(void *)((char *)table->slots + (hash >> 12 & table->mask));
}

// The stream of that handle if it is at its first place of the table, without a lock; false: it may
// be elsewhere.
static inline bool cca__stream_known(const struct cca__device *device, cudaStream_t handle,
                                     struct cca__stream **stream) {
    // Both acquires pair with releases of cca__stream_get.
    const struct cca__stream_slot *const slot = cca__stream_first_slot(
        atomic_load_explicit(&device->stream_table, memory_order_acquire), handle);
    if (__builtin_expect(atomic_load_explicit(&slot->handle, memory_order_acquire) != handle, 0))
        return false;
    *stream = slot->stream;
    return true;
}

// What the handle of an empty slot is.
static inline cudaStream_t cca__stream_no_handle(const struct cca__stream_table *table) {
    return (cudaStream_t)(uintptr_t)table;
}

// For walks over all streams without a lock: NULL where the slot is empty.
static inline struct cca__stream *cca__stream_in_slot(const struct cca__stream_table *table,
                                                      size_t place) {
    const struct cca__stream_slot *const slot = &table->slots[place];
    // Acquire pairs with a release of cca__stream_get.
    return atomic_load_explicit(&slot->handle, memory_order_acquire) == cca__stream_no_handle(table)
               ? NULL
               : slot->stream;
}

// The stream of that handle, made if it is new; takes no lock if it is known.
enum base_status cca__stream_get(struct cca__device *device, cudaStream_t handle,
                                 struct cca__stream **stream) BASE_MUST_USE;

// The blocks of a private pool on the stream of HOME, made if there are none. settings_lock,
// growth_lock and events_lock held.
enum base_status cca__private_stream_get(struct cca__stream *home, struct cca__private_pool *pool,
                                         struct cca__stream **stream) BASE_MUST_USE;

// The locks of all streams of the device, in order of creation.
void cca__streams_lock_all(struct cca__device *device);
void cca__streams_unlock_all(struct cca__device *device);

// After settings changed, or whether somebody watches: whether the stream is special. Its lock
// held.
void cca__stream_set_special_locked(struct cca__stream *stream);

#endif
