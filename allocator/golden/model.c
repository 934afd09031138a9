// The model's requests: malloc, free, record_stream, empty_cache, in the order of the contract's
// steps.
//
// Every search is a walk over the one array of blocks. The order in which PyTorch's sets are walked
// (stream, size, registration, address) is written once, in `precedes`.
#include "allocator/golden/model.h"

#include "allocator/golden/model_internal.h"
#include "base/check.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_LIMIT   BASE_MIB
#define MIN_BLOCK     ((size_t)512)
#define REQUEST_LIMIT ((size_t)1 << 60)
#define NONE          SIZE_MAX

//--------------------------------------------------------------------------------------------------
// Statistics.

static void stat_change(struct allocator_stat *stat, int64_t by) {
    stat->current += by;
    if (stat->current > stat->peak) stat->peak = stat->current;
    if (by > 0) stat->allocated += by;
    if (by < 0) stat->freed -= by;
}

static void family_change(struct allocator_stat family[ALLOCATOR_STAT_KIND_COUNT], bool small,
                          int64_t by) {
    stat_change(&family[ALLOCATOR_STAT_ALL], by);
    stat_change(&family[small ? ALLOCATOR_STAT_SMALL_POOL : ALLOCATOR_STAT_LARGE_POOL], by);
}

static bool is_oversize(const struct model *model, size_t size) {
    return size >= model->settings.max_split_size;
}

//--------------------------------------------------------------------------------------------------
// The array of blocks.

static void *array_grow(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) return items;
    *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    items = realloc(items, *capacity * item_size);
    BASE_CHECK(items != NULL);
    return items;
}

static void block_insert(struct model *model, size_t index, const struct model_block *block) {
    model->blocks = array_grow(model->blocks, model->block_count, &model->block_capacity,
                               sizeof *model->blocks);
    memmove(&model->blocks[index + 1], &model->blocks[index],
            (model->block_count - index) * sizeof *model->blocks);
    model->blocks[index] = *block;
    model->block_count++;
}

static void block_remove(struct model *model, size_t index) {
    model->block_count--;
    memmove(&model->blocks[index], &model->blocks[index + 1],
            (model->block_count - index) * sizeof *model->blocks);
}

static size_t block_find(const struct model *model, uint64_t address) {
    for (size_t index = 0; index < model->block_count; index++)
        if (model->blocks[index].address == address) return index;
    return NONE;
}

static bool is_free(const struct model_block *block) {
    return !block->allocated && block->event_count == 0;
}
static bool is_split(const struct model *model, size_t index) {
    return model__neighbour_count(model, index) > 0;
}

// What a walk over free blocks asks for; a zero field asks for nothing.
struct filter {
    bool small;      // which pool
    bool any_stream; // else only this stream
    unsigned stream;
    size_t size_min;
    double age_min;     // turns of the pool since the block became free
    bool whole_segment; // not split
};

static bool matches(const struct model *model, size_t index, const struct filter *filter) {
    const struct model_block *block = &model->blocks[index];
    if (!is_free(block) || block->small != filter->small) return false;
    if (!filter->any_stream && block->stream != filter->stream) return false;
    if (block->size < filter->size_min) return false;
    if ((double)(model->free_block_calls[block->small] - block->gc_base) < filter->age_min)
        return false;
    return !filter->whole_segment || !is_split(model, index);
}

static bool precedes(const struct model_block *a, const struct model_block *b) {
    if (a->stream != b->stream) return a->stream < b->stream;
    if (a->size != b->size) return a->size < b->size;
    if (a->segment != b->segment) return a->segment < b->segment;
    return a->address < b->address;
}

static size_t first_match(const struct model *model, const struct filter *filter) {
    size_t best = NONE;
    for (size_t index = 0; index < model->block_count; index++)
        if (matches(model, index, filter) &&
            (best == NONE || precedes(&model->blocks[index], &model->blocks[best])))
            best = index;
    return best;
}

static size_t last_match(const struct model *model, const struct filter *filter) {
    size_t best = NONE;
    for (size_t index = 0; index < model->block_count; index++)
        if (matches(model, index, filter) &&
            (best == NONE || precedes(&model->blocks[best], &model->blocks[index])))
            best = index;
    return best;
}

//--------------------------------------------------------------------------------------------------
// Completed frees, and events that hold them up.

// Takes the neighbour at OTHER into the block at INDEX if it is free; returns the bytes it brought.
static size_t merge(struct model *model, size_t index, size_t other) {
    const struct model_block neighbour = model->blocks[other];
    if (!is_free(&neighbour) || neighbour.segment != model->blocks[index].segment) return 0;
    if (neighbour.address < model->blocks[index].address)
        model->blocks[index].address = neighbour.address;
    model->blocks[index].size += neighbour.size;
    block_remove(model, other);
    return neighbour.size;
}

static void free_block(struct model *model, size_t index) {
    const struct model_block freed = model->blocks[index];
    model__event(model, ALLOCATOR_FREE_COMPLETED, &freed, freed.requested_size);

    int64_t split_count = 0, split_bytes = 0;
    if (index > 0) {
        const size_t taken = merge(model, index, index - 1);
        if (taken > 0) index--, split_count--, split_bytes -= (int64_t)taken;
    }
    if (index + 1 < model->block_count) {
        const size_t taken = merge(model, index, index + 1);
        if (taken > 0) split_count--, split_bytes -= (int64_t)taken;
    }
    struct model_block *block = &model->blocks[index];
    block->gc_base = model->free_block_calls[block->small];
    if (is_split(model, index)) split_count++, split_bytes += (int64_t)block->size;

    struct allocator_stats *stats = &model->stats;
    family_change(stats->inactive_split, freed.small, split_count);
    family_change(stats->inactive_split_bytes, freed.small, split_bytes);
    family_change(stats->active, freed.small, -1);
    family_change(stats->active_bytes, freed.small, -(int64_t)freed.size);
    family_change(stats->requested_bytes, freed.small, -(int64_t)freed.requested_size);
}

static void insert_events(struct model *model, size_t index) {
    struct model_block *block = &model->blocks[index];
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++) {
        if ((block->stream_uses & 1u << stream) == 0) continue;
        model->pending = array_grow(model->pending, model->pending_count, &model->pending_capacity,
                                    sizeof *model->pending);
        model->pending[model->pending_count++] = (struct model_pending){
            .event = model_device_event_record(&model->device, stream), .address = block->address};
        block->event_count++;
    }
    block->stream_uses = 0;
}

static size_t oldest_pending(const struct model *model, unsigned stream) {
    for (size_t index = 0; index < model->pending_count; index++)
        if (model->pending[index].event.stream == stream) return index;
    return NONE;
}

static void finish_pending(struct model *model, size_t index) {
    const uint64_t address = model->pending[index].address;
    model->pending_count--;
    memmove(&model->pending[index], &model->pending[index + 1],
            (model->pending_count - index) * sizeof *model->pending);
    model_device_event_release(&model->device);
    const size_t block = block_find(model, address);
    BASE_CHECK_NE(block, NONE);
    if (--model->blocks[block].event_count == 0) free_block(model, block);
}

static void process_events(struct model *model) {
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++)
        for (size_t front; (front = oldest_pending(model, stream)) != NONE;) {
            if (!model_device_event_query(&model->device, model->pending[front].event)) break;
            finish_pending(model, front);
        }
}

static void synchronize_and_free_events(struct model *model) {
    model->stats.num_sync_all_streams++;
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++)
        for (size_t front; (front = oldest_pending(model, stream)) != NONE;) {
            model_device_event_wait(&model->device, model->pending[front].event);
            finish_pending(model, front);
        }
}

//--------------------------------------------------------------------------------------------------
// Segments: back to the device, and new ones.

static void release_block(struct model *model, size_t index) {
    const struct model_block block = model->blocks[index];
    model_device_free(&model->device, block.size);
    model->total_allocated -= block.size;
    model->stats.num_device_free++;
    family_change(model->stats.segment, block.small, -1);
    family_change(model->stats.reserved_bytes, block.small, -(int64_t)block.size);
    if (is_oversize(model, block.size)) stat_change(&model->stats.oversize_segments, -1);
    model__event(model, ALLOCATOR_SEGMENT_FREE, &block, block.size);
    block_remove(model, index);
}

static void release_cached_blocks(struct model *model) {
    synchronize_and_free_events(model);
    for (int small = 0; small <= 1; small++) {
        const struct filter filter = {
            .small = small != 0, .any_stream = true, .whole_segment = true};
        for (size_t index; (index = first_match(model, &filter)) != NONE;)
            release_block(model, index);
    }
}

// Gives oversize blocks of the stream back until a segment of the wanted size may fit; false if
// they do not suffice. PyTorch does not look whether such a block is split, which only a
// max_split_size lowered at run time brings about: a fault (memory in use goes back to the device).
// Here a split block is no candidate.
static bool release_available_cached_blocks(struct model *model, size_t rounded, unsigned stream,
                                            bool small) {
    const size_t limit = model->settings.max_split_size;
    if (limit == MODEL_UNLIMITED) return false;
    const size_t wanted = rounded < limit ? limit : rounded;
    struct filter filter = {
        .small = small, .stream = stream, .size_min = wanted, .whole_segment = true};
    const size_t single = first_match(model, &filter);
    if (single != NONE) {
        release_block(model, single);
        return true;
    }
    filter.size_min = limit;
    size_t released = 0;
    for (size_t index; released < wanted && (index = last_match(model, &filter)) != NONE;) {
        released += model->blocks[index].size;
        release_block(model, index);
    }
    return released >= wanted;
}

static bool collects_garbage(const struct model *model) {
    return model->limited && model->settings.gc_threshold > 0;
}

static void collect_garbage(struct model *model) {
    const uint64_t threshold = (uint64_t)(model->settings.gc_threshold * (double)model->allowed);
    if (model->total_allocated <= threshold) return;
    const uint64_t target = model->total_allocated - threshold;
    struct filter filter = {.any_stream = true, .whole_segment = true};
    for (uint64_t reclaimed = 0; reclaimed < target;) {
        double total_age = 0;
        size_t count = 0;
        filter.age_min = 0;
        for (size_t index = 0; index < model->block_count; index++) {
            if (!matches(model, index, &filter)) continue;
            total_age += (double)(model->free_block_calls[0] - model->blocks[index].gc_base);
            count++;
        }
        if (count == 0) return;
        filter.age_min = total_age / (double)count;
        bool freed = false;
        for (size_t index; (index = first_match(model, &filter)) != NONE; freed = true) {
            reclaimed += model->blocks[index].size;
            release_block(model, index);
        }
        if (!freed) return;
    }
}

static enum base_status device_error(int code) {
    return base_status_set(BASE_CUDA, "CUDA error: cudaMalloc failed with code %d", code);
}

// Takes a segment from the device; its one block comes last in the array. BASE_OUT_OF_MEMORY
// without a sentence.
static enum base_status alloc_block(struct model *model, size_t segment_size, unsigned stream,
                                    bool small, bool is_retry) {
    if (is_retry) model->stats.num_alloc_retries++;
    if (model->limited && model->total_allocated + segment_size > model->allowed)
        return BASE_OUT_OF_MEMORY;
    uint64_t address = 0;
    const int code = model_device_malloc(&model->device, segment_size, &address);
    if (code == cudaErrorMemoryAllocation) return BASE_OUT_OF_MEMORY;
    if (code != 0) return device_error(code);

    const struct model_block block = {.address = address,
                                      .size = segment_size,
                                      .stream = stream,
                                      .segment = model->segment_count++,
                                      .small = small};
    block_insert(model, model->block_count, &block);
    model->total_allocated += segment_size;
    model->stats.num_device_alloc++;
    family_change(model->stats.segment, small, 1);
    family_change(model->stats.reserved_bytes, small, (int64_t)segment_size);
    if (is_oversize(model, segment_size)) stat_change(&model->stats.oversize_segments, 1);
    model__event(model, ALLOCATOR_SEGMENT_ALLOC, &block, segment_size);
    return BASE_OK;
}

// The ladder after a miss.
static enum base_status grow(struct model *model, size_t rounded, unsigned stream, bool small) {
    const size_t segment_size = model__segment_size(&model->settings, rounded);
    if (collects_garbage(model)) collect_garbage(model);
    enum base_status status = alloc_block(model, segment_size, stream, small, false);
    if (status == BASE_OUT_OF_MEMORY &&
        release_available_cached_blocks(model, rounded, stream, small))
        status = alloc_block(model, segment_size, stream, small, false);
    if (status == BASE_OUT_OF_MEMORY) {
        release_cached_blocks(model);
        status = alloc_block(model, segment_size, stream, small, true);
    }
    if (status == BASE_OUT_OF_MEMORY)
        return model__out_of_memory(model, rounded, segment_size, stream);
    return status;
}

//--------------------------------------------------------------------------------------------------
// Requests.

// The best fit, unless the oversize rules reject it.
static size_t get_free_block(struct model *model, size_t rounded, unsigned stream, bool small) {
    if (collects_garbage(model)) model->free_block_calls[small]++;
    const struct filter filter = {.small = small, .stream = stream, .size_min = rounded};
    const size_t index = first_match(model, &filter);
    if (index == NONE) return NONE;
    const struct model_settings *settings = &model->settings;
    const size_t size = model->blocks[index].size, limit = settings->max_split_size;
    const size_t surplus = settings->max_non_split_rounding != 0 ? settings->max_non_split_rounding
                                                                 : settings->large_segment_size;
    if (rounded < limit && size >= limit) return NONE;
    if (rounded >= limit && size - rounded >= surplus) return NONE;
    return index;
}

static bool should_split(const struct model *model, size_t index, size_t rounded) {
    const size_t remaining = model->blocks[index].size - rounded;
    if (model->blocks[index].small) return remaining >= MIN_BLOCK;
    return rounded < model->settings.max_split_size && remaining > SMALL_LIMIT;
}

// Gives the block at INDEX to the program, split if it is much larger than needed; returns its
// address.
static uint64_t hand_out(struct model *model, size_t index, size_t rounded, size_t requested) {
    struct allocator_stats *stats = &model->stats;
    const bool small = model->blocks[index].small;
    const bool was_split = is_split(model, index);
    if (should_split(model, index, rounded)) {
        struct model_block *tail = &model->blocks[index];
        const struct model_block front = {.address = tail->address,
                                          .size = rounded,
                                          .stream = tail->stream,
                                          .segment = tail->segment,
                                          .small = small};
        tail->address += rounded;
        tail->size -= rounded;
        tail->gc_base = model->free_block_calls[small];
        family_change(stats->inactive_split, small, was_split ? 0 : 1);
        family_change(stats->inactive_split_bytes, small,
                      was_split ? -(int64_t)rounded : (int64_t)tail->size);
        block_insert(model, index, &front);
    } else if (was_split) {
        family_change(stats->inactive_split, small, -1);
        family_change(stats->inactive_split_bytes, small, -(int64_t)model->blocks[index].size);
    }
    struct model_block *block = &model->blocks[index];
    block->allocated = true;
    block->requested_size = requested;
    family_change(stats->allocation, small, 1);
    family_change(stats->allocated_bytes, small, (int64_t)block->size);
    family_change(stats->active, small, 1);
    family_change(stats->active_bytes, small, (int64_t)block->size);
    family_change(stats->requested_bytes, small, (int64_t)requested);
    if (is_oversize(model, block->size)) stat_change(&stats->oversize_allocations, 1);
    model__event(model, ALLOCATOR_ALLOC, block, requested);
    return block->address;
}

static unsigned stream_number(cudaStream_t stream) {
    BASE_CHECK_LT((uintptr_t)stream, MODEL_STREAM_MAX);
    return (unsigned)(uintptr_t)stream;
}

static enum base_status model_malloc(struct allocator *allocator, int device, size_t size,
                                     cudaStream_t stream, void **pointer) {
    (void)device;
    struct model *model = model_of(allocator);
    if (size == 0) {
        *pointer = NULL;
        return BASE_OK;
    }
    if (size >= REQUEST_LIMIT)
        return base_status_set(BASE_OUT_OF_MEMORY,
                               "CUDA out of memory. Tried to allocate more than 1EB memory.");
    process_events(model);
    const size_t rounded = model__round_size(&model->settings, size);
    const bool small = rounded <= SMALL_LIMIT;
    size_t index = get_free_block(model, rounded, stream_number(stream), small);
    if (index == NONE) {
        const enum base_status status = grow(model, rounded, stream_number(stream), small);
        if (status != BASE_OK) return status;
        index = model->block_count - 1;
    }
    *pointer = (void *)(uintptr_t)hand_out(model, index, rounded, size);
    return BASE_OK;
}

static enum base_status model_free(struct allocator *allocator, void *pointer) {
    struct model *model = model_of(allocator);
    if (pointer == NULL) return BASE_OK;
    const size_t index = block_find(model, (uintptr_t)pointer);
    if (index == NONE || !model->blocks[index].allocated)
        return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p", pointer);
    struct model_block *block = &model->blocks[index];
    block->allocated = false;
    family_change(model->stats.allocation, block->small, -1);
    family_change(model->stats.allocated_bytes, block->small, -(int64_t)block->size);
    if (is_oversize(model, block->size)) stat_change(&model->stats.oversize_allocations, -1);
    model__event(model, ALLOCATOR_FREE_REQUESTED, block, block->requested_size);
    if (block->stream_uses != 0)
        insert_events(model, index);
    else
        free_block(model, index);
    return BASE_OK;
}

static enum base_status model_record_stream(struct allocator *allocator, void *pointer,
                                            cudaStream_t stream) {
    struct model *model = model_of(allocator);
    if (pointer == NULL) return BASE_OK;
    const size_t index = block_find(model, (uintptr_t)pointer);
    if (index == NONE || !model->blocks[index].allocated)
        return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p", pointer);
    if (stream_number(stream) != model->blocks[index].stream)
        model->blocks[index].stream_uses |= 1u << stream_number(stream);
    return BASE_OK;
}

static enum base_status model_empty_cache(struct allocator *allocator) {
    release_cached_blocks(model_of(allocator));
    return BASE_OK;
}

enum base_status model_set_config(struct allocator *allocator, const char *config) {
    return model__settings_apply(&model_of(allocator)->settings, config);
}

enum base_status model_set_memory_fraction(struct allocator *allocator, double fraction) {
    struct model *model = model_of(allocator);
    if (!(fraction >= 0 && fraction <= 1))
        return base_status_set(BASE_INVALID_VALUE, "invalid fraction:%g. Please set within [0, 1].",
                               fraction);
    model->limited = fraction < 1;
    model->allowed = (uint64_t)llround(fraction * (double)model->device.capacity_bytes);
    return BASE_OK;
}

double model_memory_fraction(struct allocator *allocator) {
    const struct model *model = model_of(allocator);
    return model->limited ? (double)model->allowed / (double)model->device.capacity_bytes : 1;
}

void model_round_size(struct allocator *allocator, size_t size, size_t *rounded, size_t *segment) {
    *rounded = model__round_size(&model_of(allocator)->settings, size);
    *segment = model__segment_size(&model_of(allocator)->settings, *rounded);
}

static enum base_status model_set_observer(struct allocator *allocator,
                                           const struct allocator_observer *observer) {
    model_of(allocator)->observer = observer == NULL ? (struct allocator_observer){0} : *observer;
    return BASE_OK;
}

void model_set_out_of_memory_observer(struct allocator *allocator,
                                      const struct cca_out_of_memory_observer *observer) {
    model_of(allocator)->out_of_memory_observer =
        observer == NULL ? (struct cca_out_of_memory_observer){0} : *observer;
}

struct model_device *model_device(struct allocator *allocator) {
    return &model_of(allocator)->device;
}

static void model_destroy(struct allocator *allocator) {
    struct model *model = model_of(allocator);
    free(model->blocks);
    free(model->pending);
    free(model);
}

enum base_status model_create(const char *config, uint64_t capacity_bytes,
                              struct allocator **allocator) {
    static struct allocator_operations operations = {.name = "model",
                                                     .malloc = model_malloc,
                                                     .free = model_free,
                                                     .record_stream = model_record_stream,
                                                     .empty_cache = model_empty_cache,
                                                     .set_observer = model_set_observer,
                                                     .destroy = model_destroy};
    model__query_operations(&operations);

    struct model *model = calloc(1, sizeof *model);
    BASE_CHECK(model != NULL);
    model->base.operations = &operations;
    model__settings_init(&model->settings);
    const enum base_status status = model__settings_apply(&model->settings, config);
    if (status != BASE_OK) {
        model_destroy(&model->base);
        return status;
    }
    const size_t limit = model->settings.max_split_size;
    model->max_split_size_at_start = limit == MODEL_UNLIMITED ? -1 : (int64_t)limit;
    model_device_init(&model->device, capacity_bytes);
    *allocator = &model->base;
    return model_set_memory_fraction(*allocator, model->settings.start_fraction);
}
