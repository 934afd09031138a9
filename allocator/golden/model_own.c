// Settings beyond PyTorch (x_ keys), in the model: two more rungs of its ladder.
#include "allocator/golden/model_internal.h"

#include "base/check.h"

#include <stdint.h>

//--------------------------------------------------------------------------------------------------
// x_reclaim_idle.

// How many free blocks of a stream are looked at for one that is a whole segment.
#define LOOKS_MAX 64

static size_t idle_segment_of(const struct model *model, const struct model_filter *filter,
                              size_t segment_size) {
    const size_t surplus = model__surplus_max(&model->settings);
    size_t index = model__first_match(model, filter);
    for (int looks = 0; index != MODEL_NONE && looks < LOOKS_MAX; looks++) {
        const struct model_block *block = &model->blocks[index];
        if (block->size >= segment_size && block->size - segment_size >= surplus) break;
        if (!model__is_split(model, index) && !block->expandable &&
            !model__refuses(model, block, filter->size_min))
            return index;
        index = model__next_match(model, filter, index);
    }
    return MODEL_NONE;
}

bool model__reclaim_idle(struct model *model, size_t rounded, size_t segment_size, unsigned stream,
                         bool small) {
    size_t best = MODEL_NONE;
    for (unsigned other = 0; other < MODEL_STREAM_MAX; other++) {
        if (other == stream) continue;
        const struct model_filter filter = {.small = small, .stream = other, .size_min = rounded};
        const size_t index = idle_segment_of(model, &filter, segment_size);
        if (index != MODEL_NONE &&
            (best == MODEL_NONE || model->blocks[index].size < model->blocks[best].size))
            best = index;
    }
    if (best == MODEL_NONE) return false;

    // The work of the two streams is ordered on the device: an event, and a wait for it.
    struct model_block *const block = &model->blocks[best];
    model_device_event_record(&model->device, block->stream);
    model_device_event_release(&model->device);
    model__event(model, ALLOCATOR_SEGMENT_FREE, block, block->size);
    block->stream = stream;
    block->segment = model->segment_count++;
    block->requested_size = 0;
    block->gc_base = model->free_block_calls[small];
    model__event(model, ALLOCATOR_SEGMENT_ALLOC, block, block->size);
    return true;
}

//--------------------------------------------------------------------------------------------------
// x_wait:enough.

static bool is_free_soon(const struct model_block *block) {
    return !block->allocated && !block->unmapped && block->gone_bytes == 0;
}

// The neighbours around a block that will be one free block when their events are complete.
static size_t run_around(const struct model *model, size_t index, unsigned *pending) {
    const unsigned segment = model->blocks[index].segment;
    while (index > 0 && model->blocks[index - 1].segment == segment &&
           is_free_soon(&model->blocks[index - 1]))
        index--;
    size_t bytes = 0;
    *pending = 0;
    for (; index < model->block_count && model->blocks[index].segment == segment &&
           is_free_soon(&model->blocks[index]);
         index++) {
        bytes += model->blocks[index].size;
        *pending += model->blocks[index].event_count > 0;
    }
    return bytes;
}

// Waits for the first event of the run that serves the request and has the fewest blocks to wait
// for; false if no run does.
static bool wait_for_one(struct model *model, size_t rounded, unsigned stream, bool small) {
    size_t best = MODEL_NONE;
    unsigned best_pending = 0;
    for (unsigned queue = 0; queue < MODEL_STREAM_MAX; queue++)
        for (size_t entry = 0; entry < model->pending_count; entry++) {
            if (model->pending[entry].event.stream != queue) continue;
            const size_t index = model__block_find(model, model->pending[entry].address);
            const struct model_block *const block = &model->blocks[index];
            if (block->stream != stream || block->small != small) continue;
            unsigned pending;
            struct model_block run = *block;
            run.size = run_around(model, index, &pending);
            if (run.size < rounded || (run.expandable && !model__expands(model)) ||
                model__refuses(model, &run, rounded))
                continue;
            if (best != MODEL_NONE && pending >= best_pending) continue;
            best = entry;
            best_pending = pending;
        }
    if (best == MODEL_NONE) return false;
    model_device_event_wait(&model->device, model->pending[best].event);
    model__finish_pending(model, best);
    return true;
}

size_t model__wait_for_enough(struct model *model, size_t rounded, unsigned stream, bool small) {
    model__process_events(model, stream);
    size_t index = model__search(model, rounded, stream, small);
    while (index == MODEL_NONE && wait_for_one(model, rounded, stream, small))
        index = model__search(model, rounded, stream, small);
    return index;
}
