// The model's other ways to memory: at a wanted address, and without a cache.
#include "allocator/golden/model_internal.h"

#include "base/check.h"
#include "base/size.h"

#include <string.h>

#define SMALL_LIMIT BASE_MIB
#define MIN_BLOCK   ((uint64_t)512)

//--------------------------------------------------------------------------------------------------
// At an address.

// The free block of the stream that holds all of [ADDRESS, ADDRESS + ROUNDED).
static size_t free_block_around(const struct model *model, uint64_t address, size_t rounded,
                                unsigned stream, bool small) {
    const struct model_filter filter = {.small = small, .stream = stream};
    for (size_t index = 0; index < model->block_count; index++) {
        const struct model_block *block = &model->blocks[index];
        if (model__matches(model, index, &filter) && block->address <= address &&
            block->address + block->size >= address + rounded)
            return index;
    }
    return MODEL_NONE;
}

static enum base_status unavailable(uint64_t address) {
    return base_status_set(BASE_INVALID_VALUE,
                           "Could not allocate CUDA storage at exact address 0x%llx",
                           (unsigned long long)address);
}

static void free_at(struct model *model, uint64_t address) {
    const enum base_status status = allocator_free(&model->base, (void *)(uintptr_t)address);
    BASE_CHECK_EQ(status, BASE_OK);
}

// What lies before the address is handed out and given back, so that a block begins there.
enum base_status model_malloc_at(struct allocator *allocator, size_t size, cudaStream_t stream,
                                 uint64_t address, void **pointer) {
    struct model *model = model_of(allocator);
    *pointer = NULL;
    if (size == 0) return BASE_OK;
    if (address % MIN_BLOCK != 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "mallocWithAddress: addr must be aligned to kMinBlockSize (512 "
                               "bytes), got 0x%llx",
                               (unsigned long long)address);
    const size_t rounded = model__round_size(&model->settings, size);
    const bool small = rounded <= SMALL_LIMIT;
    const unsigned number = (unsigned)(uintptr_t)stream;
    if (model->pending_count > 0) model__process_events(model, number);
    size_t index = free_block_around(model, address, rounded, number, small);
    if (index == MODEL_NONE) return unavailable(address);

    const uint64_t begin = model->blocks[index].address;
    const size_t prefix = (size_t)(address - begin);
    if (prefix > 0) {
        if (!model__should_split(model, index, prefix)) return unavailable(address);
        model__hand_out(model, index, prefix, prefix);
        index++;
    }
    *pointer = (void *)(uintptr_t)model__hand_out(model, index, rounded, size);
    if (prefix > 0) free_at(model, begin);
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Without a cache.

void model_stop_caching(struct allocator *allocator) { model_of(allocator)->no_caching = true; }

enum base_status model__plain_malloc(struct model *model, size_t size, void **pointer) {
    uint64_t address = 0;
    const int code = model_device_malloc(&model->device, size, &address);
    if (code != 0)
        return base_status_set(
            BASE_CUDA, "CUDA error: cudaMalloc of %zu bytes failed: cudaError %d", size, code);
    model->plain = model__array_grow(model->plain, model->plain_count, &model->plain_capacity,
                                     sizeof *model->plain);
    model->plain[model->plain_count++] = (struct model_plain){.address = address, .size = size};
    *pointer = (void *)(uintptr_t)address;
    return BASE_OK;
}

enum base_status model__plain_free(struct model *model, void *pointer) {
    for (size_t index = 0; index < model->plain_count; index++) {
        if (model->plain[index].address != (uintptr_t)pointer) continue;
        model_device_free(&model->device, model->plain[index].size);
        model->plain[index] = model->plain[--model->plain_count];
        return BASE_OK;
    }
    return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p", pointer);
}
