// The model's segments: back to the device by rule, and new ones from it.
#include "allocator/golden/model_internal.h"

void model__count_release(struct model *model, const struct model_block *block) {
    model->total_allocated -= block->size;
    model__family_change(model->stats.segment, block->small, -1);
    model__family_change(model->stats.reserved_bytes, block->small, -(int64_t)block->size);
    if (model__is_oversize(model, block->size))
        model__stat_change(&model->stats.oversize_segments, -1);
}

void model__release_block(struct model *model, size_t index) {
    const struct model_block block = model->blocks[index];
    model_device_free(&model->device, block.size);
    model->stats.num_device_free++;
    model__count_release(model, &block);
    model__event(model, ALLOCATOR_SEGMENT_FREE, &block, block.size);
    model__block_remove(model, index);
}

static void release_free_segments(struct model *model) {
    for (int small = 0; small <= 1; small++) {
        const struct model_filter filter = {
            .small = small != 0, .any_stream = true, .whole_segment = true, .plain = true};
        for (size_t index; (index = model__first_match(model, &filter)) != MODEL_NONE;)
            model__release_block(model, index);
        model__release_expandable(model, small != 0);
    }
}

void model__release_cached_blocks(struct model *model) {
    model__synchronize_and_free_events(model);
    release_free_segments(model);
}

// Gives oversize blocks of the stream back until a segment of the wanted size may fit; *ENOUGH is
// false if they do not suffice. PyTorch does not look whether such a block is split, which only a
// max_split_size lowered at run time brings about. Here a split block is no candidate, but where
// its faults are asked for.
static enum base_status release_available_cached_blocks(struct model *model, size_t rounded,
                                                        unsigned stream, bool small, bool *enough) {
    const size_t limit = model->settings.max_split_size;
    *enough = false;
    if (limit == MODEL_UNLIMITED) return BASE_OK;
    const size_t wanted = rounded < limit ? limit : rounded;
    struct model_filter filter = {.small = small,
                                  .stream = stream,
                                  .size_min = wanted,
                                  .whole_segment = !model->settings.own.torch_faults,
                                  .plain = true};
    const size_t single = model__first_match(model, &filter);
    *enough = single != MODEL_NONE;
    if (*enough) return model__release_unseen(model, single);
    filter.size_min = limit;
    enum base_status status = BASE_OK;
    size_t released = 0;
    for (size_t index; status == BASE_OK && released < wanted &&
                       (index = model__last_match(model, &filter)) != MODEL_NONE;) {
        released += model->blocks[index].size;
        status = model__release_unseen(model, index);
    }
    *enough = released >= wanted;
    return status;
}

bool model__collects_garbage(const struct model *model) {
    return model->limited && model->settings.gc_threshold > 0;
}

static void collect_garbage(struct model *model) {
    const uint64_t threshold = (uint64_t)(model->settings.gc_threshold * (double)model->allowed);
    if (model->total_allocated <= threshold) return;
    const uint64_t target = model->total_allocated - threshold;
    struct model_filter filter = {.any_stream = true, .whole_segment = true, .plain = true};
    for (uint64_t reclaimed = 0; reclaimed < target;) {
        double total_age = 0;
        size_t count = 0;
        filter.age_min = 0;
        for (size_t index = 0; index < model->block_count; index++) {
            if (!model__matches(model, index, &filter)) continue;
            total_age += (double)(model->free_block_calls[0] - model->blocks[index].gc_base);
            count++;
        }
        if (count == 0) return;
        filter.age_min = total_age / (double)count;
        bool freed = false;
        for (size_t index; (index = model__first_match(model, &filter)) != MODEL_NONE;
             freed = true) {
            reclaimed += model->blocks[index].size;
            model__release_block(model, index);
        }
        if (!freed) return;
    }
}

static enum base_status device_error(size_t size, int code) {
    return base_status_set(BASE_CUDA, "CUDA error: cudaMalloc of %zu bytes failed: cudaError %d",
                           size, code);
}

size_t model__segment_insert(struct model *model, const struct model_block *block) {
    size_t index = 0;
    while (index < model->block_count && model->blocks[index].address < block->address)
        index++;
    model__block_insert(model, index, block);
    return index;
}

// Refused before the device is asked, and for good.
static bool is_rejected(const struct model *model, size_t segment_size) {
    const double limit = model->settings.start_fraction * (double)model->device.capacity_bytes;
    return model->settings.throws && model->total_allocated + segment_size > (uint64_t)limit;
}

static bool is_over_fraction(const struct model *model, size_t segment_size) {
    return model->limited && model->total_allocated + segment_size > model->allowed;
}

// Takes a segment from the device and says where its one block is. BASE_LIMIT if it is rejected;
// this and BASE_OUT_OF_MEMORY without a
// sentence.
static enum base_status alloc_block(struct model *model, size_t rounded, size_t segment_size,
                                    unsigned stream, bool small, bool is_retry, size_t *index) {
    if (is_retry) model->stats.num_alloc_retries++;
    if (is_over_fraction(model, segment_size)) return BASE_OUT_OF_MEMORY;
    if (is_rejected(model, segment_size)) return BASE_LIMIT;
    if (model__expands(model))
        return model__expandable_allocate(model, rounded, stream, small, index);
    uint64_t address = 0;
    const int code = model_device_malloc(&model->device, segment_size, &address);
    if (code == cudaErrorMemoryAllocation) return BASE_OUT_OF_MEMORY;
    if (code != 0) return device_error(segment_size, code);

    const struct model_block block = {.address = address,
                                      .size = segment_size,
                                      .stream = stream,
                                      .segment = model->segment_count++,
                                      .small = small};
    *index = model__segment_insert(model, &block);
    model->total_allocated += segment_size;
    model->stats.num_device_alloc++;
    model__family_change(model->stats.segment, small, 1);
    model__family_change(model->stats.reserved_bytes, small, (int64_t)segment_size);
    if (model__is_oversize(model, segment_size))
        model__stat_change(&model->stats.oversize_segments, 1);
    model__event(model, ALLOCATOR_SEGMENT_ALLOC, &block, segment_size);
    return BASE_OK;
}

// The last rung: everything that waits is waited for, all that is cached goes back. Settings of our
// own look for a block in between.
static enum base_status wait_and_release(struct model *model, size_t rounded, size_t segment_size,
                                         unsigned stream, bool small, size_t *index) {
    *index = MODEL_NONE;
    if (model->settings.own.wait_enough)
        *index = model__wait_for_enough(model, rounded, stream, small);
    if (*index != MODEL_NONE) return BASE_OK;
    model__synchronize_and_free_events(model);
    if (model->settings.own.retry_search) *index = model__search(model, rounded, stream, small);
    if (*index != MODEL_NONE) return BASE_OK;
    release_free_segments(model);
    return alloc_block(model, rounded, segment_size, stream, small, true, index);
}

static enum base_status climb(struct model *model, size_t rounded, size_t segment_size,
                              unsigned stream, bool small, size_t *index) {
    if (model->settings.own.reclaim_idle &&
        model__reclaim_idle(model, rounded, segment_size, stream, small) &&
        (*index = model__search(model, rounded, stream, small)) != MODEL_NONE)
        return BASE_OK;
    if (model__collects_garbage(model)) collect_garbage(model);
    enum base_status status =
        alloc_block(model, rounded, segment_size, stream, small, false, index);
    if (status == BASE_OUT_OF_MEMORY) {
        bool enough;
        const enum base_status released =
            release_available_cached_blocks(model, rounded, stream, small, &enough);
        if (released != BASE_OK) return released;
        if (enough) status = alloc_block(model, rounded, segment_size, stream, small, false, index);
    }
    if (status == BASE_OUT_OF_MEMORY)
        status = wait_and_release(model, rounded, segment_size, stream, small, index);
    return status;
}

// The ladder after a miss.
enum base_status model__grow(struct model *model, size_t requested, size_t rounded, unsigned stream,
                             bool small, size_t *index) {
    const size_t segment_size = model__segment_size(&model->settings, rounded);
    model->exceeded_reserve = 0;
    const enum base_status status = climb(model, rounded, segment_size, stream, small, index);
    if (status == BASE_LIMIT) return model__reject(model, segment_size, requested);
    if (status == BASE_OUT_OF_MEMORY)
        return model__out_of_memory(model, rounded, segment_size, stream);
    return status;
}
