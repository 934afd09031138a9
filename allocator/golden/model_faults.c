// x_torch_faults in the model: PyTorch releases a block of max_split_size or more without a look
// whether it is whole, so that memory in use goes back to the device.
//
// A segment that went so is gone: its blocks stay in the array until the last one in use is freed,
// but none is ever found, and snapshots leave them out.
#include "allocator/golden/model_internal.h"

#include "base/check.h"

static size_t first_of_segment(const struct model *model, size_t index) {
    while (index > 0 && model->blocks[index - 1].segment == model->blocks[index].segment)
        index--;
    return index;
}

// The driver knows only the beginning of a segment.
static enum base_status release_split(struct model *model, size_t index) {
    const struct model_block block = model->blocks[index];
    model__event(model, ALLOCATOR_SEGMENT_FREE, &block, block.size);
    model->stats.num_device_free++;
    if (first_of_segment(model, index) != index)
        return base_status_set(BASE_CUDA,
                               "CUDA error: cudaFree inside a segment failed: cudaError %d",
                               (int)cudaErrorInvalidValue);
    size_t total = 0;
    for (; index < model->block_count && model->blocks[index].segment == block.segment; index++) {
        model->blocks[index].gone_bytes = block.size;
        total += model->blocks[index].size;
    }
    model_device_free(&model->device, total);
    model__count_release(model, &block);
    return BASE_OK;
}

enum base_status model__release_unseen(struct model *model, size_t index) {
    if (model__is_split(model, index)) return release_split(model, index);
    model__release_block(model, index);
    return BASE_OK;
}

void model__settle_gone(struct model *model) {
    for (size_t index = 0; index < model->block_count; index++) {
        const struct model_block block = model->blocks[index];
        if (block.gone_bytes == 0 || block.allocated || block.event_count > 0 ||
            model__is_split(model, index))
            continue;
        const size_t left = block.size - block.gone_bytes;
        model->total_allocated -= left;
        model__family_change(model->stats.reserved_bytes, block.small, -(int64_t)left);
        model__block_remove(model, index--);
    }
}
