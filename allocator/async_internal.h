// What the files of the async allocator share: async.c has requests and frees, async_device.c what
// is asked of the driver about a device, async_capture.c captures, async_observe.c what is told.
#ifndef TIDEMARK_ALLOCATOR_ASYNC_INTERNAL_H
#define TIDEMARK_ALLOCATOR_ASYNC_INTERNAL_H

#include "allocator/async.h"
#include "allocator/device.h"
#include "allocator/lock.h"
#include "base/address_map.h"

#define ASYNC_DEVICES_MAX 64

struct async_block {
    struct async_block *previous, *next; // all that are handed out; or, deferred, the next one
    void *address;
    size_t size;
    int device;
    cudaStream_t stream;   // of the request
    cudaStream_t *streams; // others that use it
    size_t stream_count;
    bool captured; // taken during a capture
};

struct async_device {
    bool is_set_up;
    cudaMemPool_t pool;
    cudaStream_t unifying; // frees what several streams use
    uint64_t used_bytes, limit_bytes;
    uint64_t told_reserved; // what the observer knows of the pool's bytes
};

struct async {
    struct allocator interface;
    struct async_options options; // never changes
    struct cca__lock lock;        // guards all below
    struct base_address_map blocks;
    struct allocator_observer observer;
    struct async_block *first_block;
    struct async_device devices[ASYNC_DEVICES_MAX];
    bool warned_own_stream, warned_free_in_capture;
    // The capture under way.
    bool captures;
    int captured_device;
    cudaStream_t captured_stream;
    cudaStream_t *free_streams; // on which something was freed in it
    size_t free_stream_count, free_stream_capacity;
    struct async_block *first_deferred, **last_deferred; // frees that wait for its end
};

static inline struct async *async_of(struct allocator *allocator) {
    return (struct async *)(void *)allocator;
}

// The device, set up. The lock held. BASE_INVALID_VALUE, BASE_CUDA.
enum base_status async__device_get_locked(struct async *async, int ordinal,
                                          struct async_device **device) BASE_MUST_USE;
// Gives everything of the device back.
void async__device_deinit(struct async_device *device, int ordinal);

// Makes a device current for calls that go by it, and lets this thread make calls that would break
// another's capture.
struct async_scope {
    struct cca__device_scope device;
    enum cudaStreamCaptureMode mode;
    bool is_relaxed;
};
enum base_status async__scope_begin(struct async_scope *scope, int ordinal) BASE_MUST_USE;
void async__scope_end(struct async_scope *scope);

// FOLLOWER waits, on the device ORDINAL, for what is in STREAM now.
enum base_status async__order(int ordinal, cudaStream_t stream,
                              cudaStream_t follower) BASE_MUST_USE;

// Frees a block on the device. The lock held. On failure it is as it was.
enum base_status async__free_now_locked(struct async *async,
                                        struct async_block *block) BASE_MUST_USE;

// Room for one more stream on which something is freed in a capture; and notes it.
enum base_status async__capture_reserve_locked(struct async *async) BASE_MUST_USE;
void async__capture_note_locked(struct async *async, cudaStream_t stream);
// Frees what waited for the end of a capture.
enum base_status async__capture_flush_locked(struct async *async) BASE_MUST_USE;

// What an observer is told, if there is one. The lock held.
void async__tell_locked(const struct async *async, enum allocator_action action,
                        const struct async_block *block);
void async__tell_out_of_memory_locked(const struct async *async, const struct async_block *block,
                                      size_t free_bytes);
// Whether the pool of the device grew or shrank since it was last told.
void async__tell_reserved_locked(struct async *async, int ordinal);
void async__tell_empty_cache_locked(const struct async *async, int ordinal);

// Entries of the table of operations.
enum base_status async__set_observer(struct allocator *allocator,
                                     const struct allocator_observer *observer) BASE_MUST_USE;
enum base_status async__empty_cache(struct allocator *allocator) BASE_MUST_USE;
enum base_status async__largest_block(struct allocator *allocator, int ordinal,
                                      size_t *size) BASE_MUST_USE;
enum base_status async__stats(struct allocator *allocator, int ordinal,
                              struct allocator_stats *stats) BASE_MUST_USE;
enum base_status async__reset_peak_stats(struct allocator *allocator, int ordinal) BASE_MUST_USE;
enum base_status async__reset_accumulated_stats(struct allocator *allocator,
                                                int ordinal) BASE_MUST_USE;

#endif
