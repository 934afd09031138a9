// See storage.h, and tensor.h for the functions on struct tensor_storage that programs call.
#include "tensor/storage.h"

#include "tensor/error.h"
#include "tensor/guard.h"

#include <stdlib.h>
#include <string.h>

static enum base_status block_take(const struct tensor_place *place, size_t bytes,
                                   cudaStream_t stream, void **data) {
    *data = NULL;
    if (bytes == 0) return BASE_OK;
    return allocator_malloc(place->allocator, place->device, bytes, stream, data);
}

// A free can be refused (an event that cannot be recorded); the block is then lost to the program
// but still the allocator's, which returns it when it is destroyed.
static void block_give(struct tensor_storage *storage) {
    if (storage->data == NULL) return;
    if (storage->deleter != NULL)
        storage->deleter(storage->context, storage->data);
    else if (storage->place.allocator != NULL)
        (void)allocator_free(storage->place.allocator, storage->data);
    storage->data = NULL;
}

static struct tensor_storage *storage_make(const struct tensor_place *place) {
    struct tensor_storage *storage = malloc(sizeof *storage);
    if (storage == NULL) {
        base_status_set(BASE_HOST_MEMORY, "no host memory for a storage");
        return NULL;
    }
    *storage = (struct tensor_storage){.count = tensor_count_one(), .place = *place};
    return storage;
}

enum base_status tensor__storage_create(const struct tensor_place *place, size_t bytes,
                                        struct tensor_storage **result) {
    struct tensor_storage *storage = storage_make(place);
    if (storage == NULL) return BASE_HOST_MEMORY;
    storage->is_resizable = true;
    const enum base_status status =
        block_take(place, bytes, tensor_stream(place->device), &storage->data);
    if (status != BASE_OK) {
        free(storage);
        return status;
    }
    storage->bytes = bytes;
    *result = storage;
    return BASE_OK;
}

enum base_status tensor__storage_adopt(const struct tensor_place *place, void *data, size_t bytes,
                                       void (*deleter)(void *context, void *data), void *context,
                                       struct tensor_storage **result) {
    struct tensor_storage *storage = storage_make(place);
    if (storage == NULL) return BASE_HOST_MEMORY;
    storage->place.allocator = NULL;
    storage->data = data;
    storage->bytes = bytes;
    storage->deleter = deleter;
    storage->context = context;
    *result = storage;
    return BASE_OK;
}

static enum base_status bytes_copy(const struct tensor_storage *storage, void *to, const void *from,
                                   size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return BASE_OK;
    if (storage->place.kind == TENSOR_CPU) {
        memcpy(to, from, bytes);
        return BASE_OK;
    }
    struct tensor_guard guard;
    const enum base_status status = tensor__guard_begin(storage->place.device, &guard);
    if (status != BASE_OK) return status;
    return tensor__guard_end(
        &guard,
        tensor__cuda_status("cudaMemcpyAsync",
                            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)));
}

enum base_status tensor__storage_resize(struct tensor_storage *storage, size_t bytes) {
    if (!storage->is_resizable)
        return tensor__error("Trying to resize storage that is not resizable");
    const cudaStream_t stream = tensor_stream(storage->place.device);
    void *data;
    enum base_status status = block_take(&storage->place, bytes, stream, &data);
    if (status != BASE_OK) return status;
    status = bytes_copy(storage, data, storage->data,
                        bytes < storage->bytes ? bytes : storage->bytes, stream);
    if (status != BASE_OK) {
        if (data != NULL) (void)allocator_free(storage->place.allocator, data);
        return status;
    }
    block_give(storage);
    storage->data = data;
    storage->bytes = bytes;
    return BASE_OK;
}

struct tensor_storage *tensor__storage_retain(struct tensor_storage *storage) {
    tensor_count_up(&storage->count);
    return storage;
}

static void storage_release(struct tensor_storage *storage) {
    block_give(storage);
    storage->bytes = 0;
}

void tensor__storage_drop(struct tensor_storage *storage) {
    if (storage == NULL) return;
    enum tensor_count_drop drop = tensor_count_drop(&storage->count);
    if (drop == TENSOR_COUNT_KEEP) return;
    storage_release(storage);
    if (drop == TENSOR_COUNT_RELEASE) drop = tensor_count_drop_weak(&storage->count);
    if (drop == TENSOR_COUNT_DESTROY) free(storage);
}

//------------------------------------------------------------------------------------------------
// What programs call

void tensor_storage_release(struct tensor_storage **storage) {
    tensor__storage_drop(*storage);
    *storage = NULL;
}

size_t tensor_storage_bytes(const struct tensor_storage *storage) { return storage->bytes; }
void *tensor_storage_data(const struct tensor_storage *storage) { return storage->data; }
bool tensor_storage_is_resizable(const struct tensor_storage *storage) {
    return storage->is_resizable;
}
uint32_t tensor_storage_count(const struct tensor_storage *storage) {
    return tensor_count_strong(&storage->count);
}

enum base_status tensor_storage_resize(struct tensor_storage *storage, int64_t bytes) {
    if (bytes < 0)
        return tensor__error("a storage cannot have %lld bytes: 0 or more", (long long)bytes);
    return tensor__storage_resize(storage, (size_t)bytes);
}

struct tensor_storage_weak tensor_storage_weak(struct tensor_storage *storage) {
    tensor_count_up_weak(&storage->count);
    return (struct tensor_storage_weak){storage};
}

bool tensor_storage_weak_expired(struct tensor_storage_weak weak) {
    return tensor_count_strong(&weak.storage->count) == 0;
}

struct tensor_storage *tensor_storage_weak_lock(struct tensor_storage_weak weak) {
    return tensor_count_lock(&weak.storage->count) ? weak.storage : NULL;
}

void tensor_storage_weak_release(struct tensor_storage_weak *weak) {
    if (weak->storage != NULL &&
        tensor_count_drop_weak(&weak->storage->count) == TENSOR_COUNT_DESTROY)
        free(weak->storage);
    weak->storage = NULL;
}
