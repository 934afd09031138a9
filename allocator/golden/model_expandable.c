// The model's expandable segments: ranges of addresses in which memory is mapped page by page. The
// blocks of a range lie in the array like all others; those without memory are `unmapped`.
#include "allocator/golden/model_internal.h"

#include "base/check.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool model__expands(const struct model *model) { return model->settings.expandable; }

//--------------------------------------------------------------------------------------------------
// Best fit: among blocks that fit, less room to grow is better, up to the first that is not.

static size_t extent(const struct model *model, size_t index) {
    const struct model_block *block = &model->blocks[index];
    const bool grows =
        index + 1 < model->block_count && block[1].segment == block->segment && block[1].unmapped;
    return block->size + (grows ? block[1].size : 0);
}

size_t model__candidate(const struct model *model, const struct model_filter *filter) {
    size_t index = model__first_match(model, filter);
    if (index == MODEL_NONE || !model->blocks[index].expandable) return index;
    if (!model__expands(model)) {
        struct model_filter plain = *filter;
        plain.plain = true;
        return model__first_match(model, &plain);
    }
    while (model->blocks[index].expandable) {
        const size_t next = model__next_match(model, filter, index);
        if (next == MODEL_NONE || extent(model, next) >= extent(model, index)) break;
        index = next;
    }
    return index;
}

//--------------------------------------------------------------------------------------------------
// Reserves.

static struct model_class *class_of(struct model *model, const char *name) {
    for (size_t index = 0; index < model->class_count; index++)
        if (strcmp(model->classes[index].name, name) == 0) return &model->classes[index];
    BASE_CHECK_LT(model->class_count, MODEL_CLASS_MAX);
    struct model_class *class = &model->classes[model->class_count++];
    *class = (struct model_class){0};
    snprintf(class->name, sizeof class->name, "%s", name);
    return class;
}

uint64_t model_reserve(const struct model_settings *settings, const char *class, uint64_t total,
                       bool *own) {
    const struct model_reserve *reserve = &settings->reserve;
    *own = false;
    for (size_t index = 0; index < settings->reserve_class_count; index++)
        if (strcmp(settings->reserve_classes[index].name, class) == 0) {
            reserve = &settings->reserve_classes[index].reserve;
            *own = true;
        }
    const double bytes = reserve->amount * (double)(reserve->in_gib ? BASE_GIB : total);
    return bytes >= 0x1p63 ? UINT64_MAX : (uint64_t)bytes;
}

// Of a new segment of the stream, not rounded; *configured unless it is nine eighths of the device
// for want of anything else.
static uint64_t reserve_for(struct model *model, unsigned stream, bool *configured) {
    const uint64_t most = model->device.capacity_bytes + model->device.capacity_bytes / 8;
    const char *class = model->stream_classes[stream];
    bool own;
    uint64_t bytes = model_reserve(&model->settings, class, model->device.capacity_bytes, &own);
    if (bytes != 0 && !own && class[0] != '\0' && !class_of(model, class)->warned) {
        class_of(model, class)->warned = true;
        model__warn(model,
                    "expandable_segments reserve class '%s' has no configured reserve in "
                    "expandable_segments_reserve_by_class; using the default reserve.",
                    class);
    }
    if (bytes == 0 && class[0] != '\0')
        bytes = (uint64_t)(class_of(model, class)->fraction * (double)model->device.capacity_bytes);
    *configured = bytes != 0;
    return bytes != 0 && bytes < most ? bytes : most;
}

void model_set_stream_class(struct allocator *allocator, unsigned stream, const char *name) {
    struct model *model = model_of(allocator);
    snprintf(model->stream_classes[stream], sizeof model->stream_classes[stream], "%s", name);
}

void model_set_class_default(struct allocator *allocator, const char *name, double fraction) {
    class_of(model_of(allocator), name)->fraction = fraction;
}

//--------------------------------------------------------------------------------------------------
// Ranges.

static struct model_range *range_of(const struct model *model, unsigned segment) {
    for (size_t index = 0; index < model->range_count; index++)
        if (model->ranges[index].segment == segment) return &model->ranges[index];
    BASE_CHECK(false);
    return NULL;
}

static void range_event(struct model *model, enum allocator_action action, uint64_t address,
                        size_t size, unsigned stream) {
    const struct model_block range = {.address = address, .stream = stream};
    model__event(model, action, &range, size);
}

static enum base_status new_range(struct model *model, size_t rounded, unsigned stream, bool small,
                                  size_t *index) {
    bool configured;
    const uint64_t reserve = reserve_for(model, stream, &configured);
    const size_t page = small ? 2 * BASE_MIB : model->settings.large_segment_size;
    const size_t size = base_round_up(reserve, page);
    const uint64_t address = model_device_reserve(&model->device, size);
    range_event(model, ALLOCATOR_SEGMENT_RESERVE, address, size, stream);
    const unsigned segment = model->segment_count++;
    if (rounded > size) {
        if (configured) model->exceeded_reserve = reserve;
        model_device_address_free(&model->device);
        range_event(model, ALLOCATOR_SEGMENT_UNRESERVE, address, size, stream);
        return BASE_OUT_OF_MEMORY;
    }
    model->ranges = realloc(model->ranges, (model->range_count + 1) * sizeof *model->ranges);
    BASE_CHECK(model->ranges != NULL);
    model->ranges[model->range_count++] =
        (struct model_range){.segment = segment, .address = address, .size = size, .page = page};
    const struct model_block block = {.address = address,
                                      .size = size,
                                      .stream = stream,
                                      .segment = segment,
                                      .small = small,
                                      .expandable = true,
                                      .unmapped = true};
    *index = model__segment_insert(model, &block);
    return BASE_OK;
}

static void range_remove(struct model *model, size_t index) {
    const struct model_block block = model->blocks[index];
    struct model_range *range = range_of(model, block.segment);
    model_device_address_free(&model->device);
    range_event(model, ALLOCATOR_SEGMENT_UNRESERVE, range->address, range->size, block.stream);
    model->range_count--;
    memmove(range, range + 1, (size_t)(&model->ranges[model->range_count] - range) * sizeof *range);
    model__block_remove(model, index);
}

static void count_mapping(struct model *model, bool small, int64_t bytes) {
    model->total_allocated = (uint64_t)((int64_t)model->total_allocated + bytes);
    model__family_change(model->stats.reserved_bytes, small, bytes);
    if (bytes > 0)
        model->stats.num_device_alloc++;
    else
        model->stats.num_device_free++;
}

//--------------------------------------------------------------------------------------------------
// Growing.

static bool is_usable(const struct model_block *block) {
    return !block->allocated && block->event_count == 0 && block->stream_uses == 0;
}

// The start of the first run that has room for ROUNDED bytes.
static size_t find(const struct model *model, size_t rounded, unsigned stream, bool small) {
    for (size_t index = 0; index < model->block_count; index++) {
        const struct model_block *block = &model->blocks[index];
        if (!block->unmapped || block->stream != stream || block->small != small) continue;
        size_t start = index;
        if (index > 0 && block[-1].segment == block->segment && is_usable(&block[-1])) start--;
        size_t sum = 0;
        for (size_t at = start;
             at < model->block_count && model->blocks[at].segment == block->segment &&
             is_usable(&model->blocks[at]);
             at++) {
            sum += model->blocks[at].size;
            if (sum >= rounded) return start;
        }
    }
    return MODEL_NONE;
}

// Creates COUNT pages, or none.
static enum base_status create_pages(struct model *model, size_t page, size_t count) {
    for (size_t created = 0; created < count; created++) {
        const int code = model_device_create(&model->device, page);
        if (code == 0) continue;
        if (code == cudaErrorMemoryAllocation)
            model__warn(
                model,
                "expandable_segments: memory mapping failed with OOM on device 0 while trying to "
                "map %zu bytes (free: %llu, total: %llu).",
                page, (unsigned long long)model_device_free_bytes(&model->device),
                (unsigned long long)model->device.capacity_bytes);
        while (created-- > 0)
            model_device_release(&model->device, page);
        if (code == cudaErrorMemoryAllocation) return BASE_OUT_OF_MEMORY;
        return base_status_set(
            BASE_CUDA, "CUDA error: cuMemCreate of %zu bytes failed: cudaError %d", page, code);
    }
    return BASE_OK;
}

// Maps the first WANTED bytes of the unmapped block at *INDEX, which joins its free neighbours.
static enum base_status map_block(struct model *model, size_t *index, size_t wanted) {
    const struct model_block before = model->blocks[*index];
    const size_t page = range_of(model, before.segment)->page;
    const size_t size = base_round_up(wanted, page);
    const enum base_status status = create_pages(model, page, size / page);
    if (status != BASE_OK) return status;
    model_device_map(&model->device, size / page);
    if (size < before.size) {
        struct model_block rest = before;
        rest.address += size;
        rest.size -= size;
        rest.requested_size = 0;
        model->blocks[*index].size = size;
        model__block_insert(model, *index + 1, &rest);
    }
    model->blocks[*index].unmapped = false;
    if (*index > 0 && model__merge(model, *index, *index - 1) > 0) --*index;
    if (*index + 1 < model->block_count) model__merge(model, *index, *index + 1);
    count_mapping(model, before.small, (int64_t)size);
    range_event(model, ALLOCATOR_SEGMENT_MAP, before.address, size, before.stream);
    return BASE_OK;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

enum base_status model__expandable_allocate(struct model *model, size_t rounded, unsigned stream,
                                            bool small, size_t *index) {
    enum base_status status = BASE_OK;
    size_t at = find(model, rounded, stream, small);
    if (at == MODEL_NONE) status = new_range(model, rounded, stream, small, &at);
    if (status == BASE_OK && model->blocks[at].unmapped)
        status = map_block(model, &at, least(model->blocks[at].size, rounded));
    while (status == BASE_OK && model->blocks[at].size < rounded) {
        size_t next = at + 1;
        status = map_block(model, &next,
                           least(rounded - model->blocks[at].size, model->blocks[next].size));
        at = status == BASE_OK ? next : at;
    }
    *index = at;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Releasing.

// Cuts the block at INDEX at ADDRESS: the part before it stays at INDEX, the other comes behind.
static void cut(struct model *model, size_t index, uint64_t address) {
    struct model_block behind = model->blocks[index];
    const size_t size = (size_t)(address - behind.address);
    behind.address += size;
    behind.size -= size;
    model->blocks[index].size = size;
    model__block_insert(model, index + 1, &behind);
}

static bool joins(const struct model *model, size_t index) {
    return model->blocks[index].unmapped && model->blocks[index + 1].unmapped &&
           model->blocks[index].segment == model->blocks[index + 1].segment;
}

static void unmap_block(struct model *model, size_t index) {
    const struct model_block block = model->blocks[index];
    const struct model_range range = *range_of(model, block.segment);
    const uint64_t begin = range.address + base_round_up(block.address - range.address, range.page);
    const uint64_t end =
        range.address + (block.address + block.size - range.address) / range.page * range.page;
    if (end <= begin) return;
    const size_t size = (size_t)(end - begin);
    model_device_unmap(&model->device, block.stream, size / range.page, range.page);
    if (begin > block.address) {
        cut(model, index, begin);
        model->blocks[index++].requested_size = 0;
    }
    if (end < block.address + block.size) {
        cut(model, index, end);
        model->blocks[index + 1].requested_size = 0;
    }
    model->blocks[index].unmapped = true;
    if (index + 1 < model->block_count && joins(model, index)) {
        model->blocks[index].size += model->blocks[index + 1].size;
        model__block_remove(model, index + 1);
    }
    if (index > 0 && joins(model, index - 1)) {
        model->blocks[index - 1].size += model->blocks[index].size;
        model->blocks[index - 1].requested_size = model->blocks[index].requested_size;
        model__block_remove(model, index--);
    }
    count_mapping(model, block.small, -(int64_t)size);
    range_event(model, ALLOCATOR_SEGMENT_UNMAP, begin, size, block.stream);
    if (model->blocks[index].size == range.size) range_remove(model, index);
}

void model__release_expandable(struct model *model, bool small) {
    const struct model_filter filter = {.small = small, .any_stream = true};
    uint64_t *addresses = calloc(model->block_count + 1, sizeof *addresses);
    BASE_CHECK(addresses != NULL);
    size_t count = 0;
    for (size_t index = model__first_match(model, &filter); index != MODEL_NONE;
         index = model__next_match(model, &filter, index))
        if (model->blocks[index].expandable) addresses[count++] = model->blocks[index].address;
    for (size_t index = 0; index < count; index++)
        unmap_block(model, model__block_find(model, addresses[index]));
    free(addresses);
}

enum base_status model_expandable_segments(struct allocator *allocator,
                                           struct cca_expandable_segment **segments,
                                           size_t *count) {
    struct model *model = model_of(allocator);
    *segments = calloc(model->range_count + 1, sizeof **segments);
    BASE_CHECK(*segments != NULL);
    *count = 0;
    for (size_t range = 0; range < model->range_count; range++) {
        struct cca_expandable_segment listed = {0};
        for (size_t index = 0; index < model->block_count; index++) {
            const struct model_block *block = &model->blocks[index];
            if (block->segment != model->ranges[range].segment) continue;
            listed.stream = (cudaStream_t)(uintptr_t)block->stream;
            listed.is_large = !block->small;
            listed.mapped_bytes += block->unmapped ? 0 : block->size;
        }
        if (listed.stream != NULL) (*segments)[(*count)++] = listed;
    }
    return BASE_OK;
}
