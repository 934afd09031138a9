// The model's requests: malloc, free, record_stream, empty_cache, in the order of the contract's
// steps.
#include "allocator/golden/model.h"

#include "allocator/golden/model_internal.h"
#include "base/check.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_LIMIT   BASE_MIB
#define MIN_BLOCK     ((size_t)512)
#define REQUEST_LIMIT ((size_t)1 << 60)

size_t model__surplus_max(const struct model_settings *settings) {
    return settings->max_non_split_rounding != 0 ? settings->max_non_split_rounding
                                                 : settings->large_segment_size;
}

// The oversize rules.
bool model__refuses(const struct model *model, const struct model_block *block, size_t rounded) {
    const struct model_settings *settings = &model->settings;
    if (settings->own.bound_growth && block->expandable) return false;
    if (rounded < settings->max_split_size) return block->size >= settings->max_split_size;
    return block->size - rounded >= model__surplus_max(settings);
}

size_t model__search(struct model *model, size_t rounded, unsigned stream, bool small) {
    const struct model_filter filter = {.small = small, .stream = stream, .size_min = rounded};
    const size_t index = model__candidate(model, &filter);
    const bool is_refused =
        index != MODEL_NONE && model__refuses(model, &model->blocks[index], rounded);
    return is_refused ? MODEL_NONE : index;
}

// A search that counts for the age of blocks.
static size_t get_free_block(struct model *model, size_t rounded, unsigned stream, bool small) {
    if (model__collects_garbage(model)) model->free_block_calls[small]++;
    return model__search(model, rounded, stream, small);
}

bool model__should_split(const struct model *model, size_t index, size_t rounded) {
    const size_t remaining = model->blocks[index].size - rounded;
    if (model->blocks[index].small || model__expands(model)) return remaining >= MIN_BLOCK;
    return rounded < model->settings.max_split_size && remaining > SMALL_LIMIT;
}

uint64_t model__hand_out(struct model *model, size_t index, size_t rounded, size_t requested) {
    struct allocator_stats *stats = &model->stats;
    const bool small = model->blocks[index].small;
    const bool was_split = model__is_split(model, index);
    if (model__should_split(model, index, rounded)) {
        struct model_block *tail = &model->blocks[index];
        const struct model_block front = {.address = tail->address,
                                          .size = rounded,
                                          .stream = tail->stream,
                                          .segment = tail->segment,
                                          .expandable = tail->expandable,
                                          .small = small};
        tail->address += rounded;
        tail->size -= rounded;
        tail->gc_base = model->free_block_calls[small];
        if (!front.expandable) {
            model__family_change(stats->inactive_split, small, was_split ? 0 : 1);
            model__family_change(stats->inactive_split_bytes, small,
                                 was_split ? -(int64_t)rounded : (int64_t)tail->size);
        }
        model__block_insert(model, index, &front);
    } else if (was_split && !model->blocks[index].expandable) {
        model__family_change(stats->inactive_split, small, -1);
        model__family_change(stats->inactive_split_bytes, small,
                             -(int64_t)model->blocks[index].size);
    }
    struct model_block *block = &model->blocks[index];
    block->allocated = true;
    block->requested_size = requested;
    model__family_change(stats->allocation, small, 1);
    model__family_change(stats->allocated_bytes, small, (int64_t)block->size);
    model__family_change(stats->active, small, 1);
    model__family_change(stats->active_bytes, small, (int64_t)block->size);
    model__family_change(stats->requested_bytes, small, (int64_t)requested);
    if (model__is_oversize(model, block->size)) model__stat_change(&stats->oversize_allocations, 1);
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
    if (model->no_caching) return model__plain_malloc(model, size, pointer);
    if (size >= REQUEST_LIMIT)
        return base_status_set(BASE_OUT_OF_MEMORY,
                               "CUDA out of memory. Tried to allocate more than 1EB memory.");
    if (model->pending_count > 0) model__process_events(model, stream_number(stream));
    const size_t rounded = model__round_size(&model->settings, size);
    const bool small = rounded <= SMALL_LIMIT;
    size_t index = get_free_block(model, rounded, stream_number(stream), small);
    if (index == MODEL_NONE && model->free_memory != NULL &&
        model->free_memory(model->free_memory_context, 0))
        index = get_free_block(model, rounded, stream_number(stream), small);
    if (index == MODEL_NONE) {
        model__settle_gone(model);
        const enum base_status status =
            model__grow(model, size, rounded, stream_number(stream), small, &index);
        if (status != BASE_OK) return status;
    }
    *pointer = (void *)(uintptr_t)model__hand_out(model, index, rounded, size);
    return BASE_OK;
}

static enum base_status model_free(struct allocator *allocator, void *pointer) {
    struct model *model = model_of(allocator);
    if (pointer == NULL) return BASE_OK;
    if (model->no_caching) return model__plain_free(model, pointer);
    const size_t index = model__block_find(model, (uintptr_t)pointer);
    if (index == MODEL_NONE || !model->blocks[index].allocated)
        return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p", pointer);
    struct model_block *block = &model->blocks[index];
    block->allocated = false;
    model__family_change(model->stats.allocation, block->small, -1);
    model__family_change(model->stats.allocated_bytes, block->small, -(int64_t)block->size);
    if (model__is_oversize(model, block->size))
        model__stat_change(&model->stats.oversize_allocations, -1);
    model__event(model, ALLOCATOR_FREE_REQUESTED, block, block->requested_size);
    if (block->stream_uses != 0)
        model__insert_events(model, index);
    else
        model__free_block(model, index);
    return BASE_OK;
}

static enum base_status model_record_stream(struct allocator *allocator, void *pointer,
                                            cudaStream_t stream) {
    struct model *model = model_of(allocator);
    if (pointer == NULL || model->no_caching) return BASE_OK;
    const size_t index = model__block_find(model, (uintptr_t)pointer);
    if (index == MODEL_NONE || !model->blocks[index].allocated)
        return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p", pointer);
    if (stream_number(stream) != model->blocks[index].stream)
        model->blocks[index].stream_uses |= 1u << stream_number(stream);
    return BASE_OK;
}

static enum base_status model_empty_cache(struct allocator *allocator) {
    model__release_cached_blocks(model_of(allocator));
    return BASE_OK;
}

enum base_status model_set_config(struct allocator *allocator, const char *config) {
    struct model *model = model_of(allocator);
    return model__settings_apply(&model->settings, config, &model->warnings);
}

enum base_status model_read_settings(const char *config,
                                     const struct cca_warning_observer *warnings,
                                     struct model_settings *settings) {
    model__settings_init(settings);
    return model__settings_apply(settings, config, warnings);
}

const struct model_settings *model_settings(struct allocator *allocator) {
    return &model_of(allocator)->settings;
}

enum base_status model_set_memory_fraction(struct allocator *allocator, double fraction) {
    struct model *model = model_of(allocator);
    if (!(fraction >= 0 && fraction <= 1))
        return base_status_set(BASE_INVALID_VALUE, "invalid fraction:%g. Please set within [0, 1].",
                               fraction);
    const double allowed = fraction * (double)model->device.capacity_bytes;
    const bool is_old = model->settings.minor <= 8; // it was cut, and 1 was a limit, too
    model->limited = fraction < 1 || is_old;
    model->allowed = is_old ? (uint64_t)allowed : (uint64_t)llround(allowed);
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

void model_set_rejection_observer(struct allocator *allocator,
                                  void (*rejected)(void *context, size_t size, size_t reserved,
                                                   size_t total),
                                  void *context) {
    model_of(allocator)->rejected = rejected;
    model_of(allocator)->rejected_context = context;
}

void model_add_free_memory_callback(struct allocator *allocator,
                                    bool (*free_memory)(void *context, int device), void *context) {
    model_of(allocator)->free_memory = free_memory;
    model_of(allocator)->free_memory_context = context;
}

void model_set_warning_observer(struct allocator *allocator,
                                const struct cca_warning_observer *observer) {
    model_of(allocator)->warnings =
        observer == NULL ? (struct cca_warning_observer){0} : *observer;
}

struct model_device *model_device(struct allocator *allocator) {
    return &model_of(allocator)->device;
}

static void model_destroy(struct allocator *allocator) {
    struct model *model = model_of(allocator);
    free(model->blocks);
    free(model->pending);
    free(model->plain);
    free(model->ranges);
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
    const enum base_status status = model__settings_apply(&model->settings, config, NULL);
    if (status != BASE_OK) {
        model_destroy(&model->base);
        return status;
    }
    const size_t limit = model->settings.max_split_size;
    model->max_split_size_at_start = limit == MODEL_UNLIMITED ? -1 : (int64_t)limit;
    model_device_init(&model->device, capacity_bytes);
    *allocator = &model->base;
    if (model->settings.start_fraction == 1) return BASE_OK;
    return model_set_memory_fraction(*allocator, model->settings.start_fraction);
}
