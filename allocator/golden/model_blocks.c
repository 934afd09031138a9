// The model's one array of blocks: walks over it, statistics, completed frees and the events that
// hold them up. The order in which PyTorch's sets are walked (stream, size, registration, address)
// is written once, in `precedes`.
#include "allocator/golden/model_internal.h"

#include "base/check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

//--------------------------------------------------------------------------------------------------
// Statistics.

void model__stat_change(struct allocator_stat *stat, int64_t by) {
    stat->current += by;
    if (stat->current > stat->peak) stat->peak = stat->current;
    if (by > 0) stat->allocated += by;
    if (by < 0) stat->freed -= by;
}

void model__family_change(struct allocator_stat family[ALLOCATOR_STAT_KIND_COUNT], bool small,
                          int64_t by) {
    model__stat_change(&family[ALLOCATOR_STAT_ALL], by);
    model__stat_change(&family[small ? ALLOCATOR_STAT_SMALL_POOL : ALLOCATOR_STAT_LARGE_POOL], by);
}

bool model__is_oversize(const struct model *model, size_t size) {
    return size >= model->settings.max_split_size;
}

//--------------------------------------------------------------------------------------------------
// The array of blocks.

void *model__array_grow(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) return items;
    *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    items = realloc(items, *capacity * item_size);
    BASE_CHECK(items != NULL);
    return items;
}

void model__block_insert(struct model *model, size_t index, const struct model_block *block) {
    model->blocks = model__array_grow(model->blocks, model->block_count, &model->block_capacity,
                                      sizeof *model->blocks);
    memmove(&model->blocks[index + 1], &model->blocks[index],
            (model->block_count - index) * sizeof *model->blocks);
    model->blocks[index] = *block;
    model->block_count++;
}

void model__block_remove(struct model *model, size_t index) {
    model->block_count--;
    memmove(&model->blocks[index], &model->blocks[index + 1],
            (model->block_count - index) * sizeof *model->blocks);
}

size_t model__block_find(const struct model *model, uint64_t address) {
    for (size_t index = 0; index < model->block_count; index++)
        if (model->blocks[index].address == address) return index;
    return MODEL_NONE;
}

static bool is_free(const struct model_block *block) {
    return !block->allocated && block->event_count == 0 && !block->unmapped;
}
bool model__is_split(const struct model *model, size_t index) {
    const struct model_block *block = &model->blocks[index];
    return (index > 0 && block[-1].segment == block->segment) ||
           (index + 1 < model->block_count && block[1].segment == block->segment);
}

bool model__matches(const struct model *model, size_t index, const struct model_filter *filter) {
    const struct model_block *block = &model->blocks[index];
    if (!is_free(block) || block->gone_bytes != 0 || block->small != filter->small) return false;
    if (!filter->any_stream && block->stream != filter->stream) return false;
    if (block->size < filter->size_min) return false;
    if (filter->plain && block->expandable) return false;
    if ((double)(model->free_block_calls[block->small] - block->gc_base) < filter->age_min)
        return false;
    return !filter->whole_segment || !model__is_split(model, index);
}

static bool precedes(const struct model *model, const struct model_block *a,
                     const struct model_block *b) {
    if (a->stream != b->stream) return a->stream < b->stream;
    if (a->size != b->size) return a->size < b->size;
    if (a->segment != b->segment && !model->settings.ties_by_address)
        return a->segment < b->segment;
    return a->address < b->address;
}

size_t model__first_match(const struct model *model, const struct model_filter *filter) {
    size_t best = MODEL_NONE;
    for (size_t index = 0; index < model->block_count; index++)
        if (model__matches(model, index, filter) &&
            (best == MODEL_NONE || precedes(model, &model->blocks[index], &model->blocks[best])))
            best = index;
    return best;
}

size_t model__next_match(const struct model *model, const struct model_filter *filter,
                         size_t index) {
    size_t best = MODEL_NONE;
    for (size_t other = 0; other < model->block_count; other++)
        if (model__matches(model, other, filter) &&
            precedes(model, &model->blocks[index], &model->blocks[other]) &&
            (best == MODEL_NONE || precedes(model, &model->blocks[other], &model->blocks[best])))
            best = other;
    return best;
}

size_t model__last_match(const struct model *model, const struct model_filter *filter) {
    size_t best = MODEL_NONE;
    for (size_t index = 0; index < model->block_count; index++)
        if (model__matches(model, index, filter) &&
            (best == MODEL_NONE || precedes(model, &model->blocks[best], &model->blocks[index])))
            best = index;
    return best;
}

//--------------------------------------------------------------------------------------------------
// Completed frees, and events that hold them up.

// Takes the neighbour at OTHER into the block at INDEX if it is free; returns the bytes it brought.
size_t model__merge(struct model *model, size_t index, size_t other) {
    const struct model_block neighbour = model->blocks[other];
    if (!is_free(&neighbour) || neighbour.segment != model->blocks[index].segment) return 0;
    if (neighbour.address < model->blocks[index].address)
        model->blocks[index].address = neighbour.address;
    model->blocks[index].size += neighbour.size;
    model__block_remove(model, other);
    return neighbour.size;
}

void model__free_block(struct model *model, size_t index) {
    const struct model_block freed = model->blocks[index];
    model__event(model, ALLOCATOR_FREE_COMPLETED, &freed, freed.requested_size);

    int64_t split_count = 0, split_bytes = 0;
    if (index > 0) {
        const size_t taken = model__merge(model, index, index - 1);
        if (taken > 0) index--, split_count--, split_bytes -= (int64_t)taken;
    }
    if (index + 1 < model->block_count) {
        const size_t taken = model__merge(model, index, index + 1);
        if (taken > 0) split_count--, split_bytes -= (int64_t)taken;
    }
    struct model_block *block = &model->blocks[index];
    block->gc_base = model->free_block_calls[block->small];
    if (model__is_split(model, index)) split_count++, split_bytes += (int64_t)block->size;

    struct allocator_stats *stats = &model->stats;
    if (!freed.expandable) {
        model__family_change(stats->inactive_split, freed.small, split_count);
        model__family_change(stats->inactive_split_bytes, freed.small, split_bytes);
    }
    model__family_change(stats->active, freed.small, -1);
    model__family_change(stats->active_bytes, freed.small, -(int64_t)freed.size);
    model__family_change(stats->requested_bytes, freed.small, -(int64_t)freed.requested_size);
}

void model__insert_events(struct model *model, size_t index) {
    struct model_block *block = &model->blocks[index];
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++) {
        if ((block->stream_uses & 1u << stream) == 0) continue;
        model->pending = model__array_grow(model->pending, model->pending_count,
                                           &model->pending_capacity, sizeof *model->pending);
        model->pending[model->pending_count++] = (struct model_pending){
            .event = model_device_event_record(&model->device, stream), .address = block->address};
        block->event_count++;
    }
    model->waits_for[block->stream] |= block->stream_uses;
    block->stream_uses = 0;
}

static size_t oldest_pending(const struct model *model, unsigned stream) {
    for (size_t index = 0; index < model->pending_count; index++)
        if (model->pending[index].event.stream == stream) return index;
    return MODEL_NONE;
}

void model__finish_pending(struct model *model, size_t index) {
    const uint64_t address = model->pending[index].address;
    model->pending_count--;
    memmove(&model->pending[index], &model->pending[index + 1],
            (model->pending_count - index) * sizeof *model->pending);
    model_device_event_release(&model->device);
    const size_t block = model__block_find(model, address);
    BASE_CHECK_NE(block, MODEL_NONE);
    if (--model->blocks[block].event_count == 0) model__free_block(model, block);
}

// Behind an unfinished event of a stream nothing is finished, so to look there finds nothing.
static void look_behind(struct model *model, size_t front) {
    const unsigned stream = model->pending[front].event.stream;
    for (size_t index = front + 1; index < model->pending_count; index++)
        if (model->pending[index].event.stream == stream)
            BASE_CHECK(!model_device_event_query(&model->device, model->pending[index].event));
}

void model__process_events(struct model *model, unsigned stream) {
    const unsigned wanted = model->settings.own.poll_own ? model->waits_for[stream] : UINT_MAX;
    for (unsigned other = 0; other < MODEL_STREAM_MAX; other++) {
        if ((wanted & 1u << other) == 0) continue;
        for (size_t front; (front = oldest_pending(model, other)) != MODEL_NONE;) {
            if (!model_device_event_query(&model->device, model->pending[front].event)) {
                if (model->settings.own.skip_stuck) look_behind(model, front);
                break;
            }
            model__finish_pending(model, front);
        }
        if (model->settings.own.poll_own && oldest_pending(model, other) == MODEL_NONE)
            model->waits_for[stream] &= ~(1u << other);
    }
}

void model__synchronize_and_free_events(struct model *model) {
    model->stats.num_sync_all_streams++;
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++)
        for (size_t front; (front = oldest_pending(model, stream)) != MODEL_NONE;) {
            model_device_event_wait(&model->device, model->pending[front].event);
            model__finish_pending(model, front);
        }
}
