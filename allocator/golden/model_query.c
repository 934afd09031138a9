// The model's answers: sizes, statistics, snapshot, base and largest block, out of memory.
#include "allocator/golden/model_internal.h"

#include "base/check.h"
#include "base/size.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned log2_floor(size_t value) {
    unsigned result = 0;
    while (value >>= 1) result++;
    return result;
}

size_t model__round_size(const struct model_settings *settings, size_t size) {
    if (size < 512) return 512;
    const unsigned log2 = log2_floor(size);
    const unsigned entry = log2 < 20                          ? 0
                           : log2 - 20 < MODEL_DIVISION_COUNT ? log2 - 20
                                                              : MODEL_DIVISION_COUNT - 1;
    const size_t divisions = settings->divisions[entry];
    if (divisions <= 1 || size <= 512 * divisions) return base_round_up(size, 512);
    const size_t power = (size_t)1 << log2;
    if (size == power) return size;
    const size_t step = power >> log2_floor(divisions);
    return step == 0 ? 2 * power : base_round_up(size, step);
}

size_t model__segment_size(const struct model_settings *settings, size_t rounded) {
    if (rounded <= BASE_MIB) return 2 * BASE_MIB;
    if (rounded < 10 * BASE_MIB) return settings->large_segment_size;
    return base_round_up(rounded, 2 * BASE_MIB);
}

static cudaStream_t stream_handle(unsigned stream) { return (cudaStream_t)(uintptr_t)stream; }

void model__event(struct model *model, enum allocator_action action,
                  const struct model_block *block, size_t size) {
    if (model->observer.event == NULL) return;
    const bool of_block = action == ALLOCATOR_ALLOC || action == ALLOCATOR_FREE_REQUESTED ||
                          action == ALLOCATOR_FREE_COMPLETED;
    const struct allocator_event event = {.action = action,
                                          .address = (void *)(uintptr_t)block->address,
                                          .size = size,
                                          .block_size = of_block ? block->size : 0,
                                          .stream = stream_handle(block->stream)};
    model->observer.event(model->observer.context, &event);
}

//--------------------------------------------------------------------------------------------------
// Out of memory.

static void format_size(uint64_t size, char text[BASE_SIZE_TEXT]) {
    if (size <= BASE_KIB)
        snprintf(text, BASE_SIZE_TEXT, "%llu bytes", (unsigned long long)size);
    else if (size <= BASE_MIB)
        snprintf(text, BASE_SIZE_TEXT, "%.2f KiB", (double)size / (double)BASE_KIB);
    else if (size <= BASE_GIB)
        snprintf(text, BASE_SIZE_TEXT, "%.2f MiB", (double)size / (double)BASE_MIB);
    else
        snprintf(text, BASE_SIZE_TEXT, "%.2f GiB", (double)size / (double)BASE_GIB);
}

#define ADVICE_LENGTH_MAX 1024

static const char *format_advice(const struct cca_out_of_memory *numbers,
                                 char text[ADVICE_LENGTH_MAX]) {
    char reserve[BASE_SIZE_TEXT], request[BASE_SIZE_TEXT];
    format_size(numbers->exceeded_reserve, reserve);
    format_size(numbers->rounded, request);
    if (!numbers->expandable)
        return "If reserved but unallocated memory is large try setting "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
               "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
               "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
    if (numbers->exceeded_reserve > 0)
        snprintf(text, ADVICE_LENGTH_MAX,
                 "This allocation exceeds the expandable-segment reserve of %s for this stream, "
                 "and a single allocation cannot span expandable segments. Raise "
                 "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or "
                 "expandable_segments_reserve_by_class (or unset it) so that a segment is at least "
                 "%s.",
                 reserve, request);
    else
        snprintf(text, ADVICE_LENGTH_MAX,
                 "expandable_segments is enabled. If instead the process is running out of virtual "
                 "address space (VSZ), expandable segments may be over-reserving VA (each segment "
                 "reserves ~9/8 of device memory, times the number of streams); reduce it via "
                 "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / "
                 "expandable_segments_reserve_by_class.");
    return text;
}

// What the device's list of processes adds, "" without one.
static const char *format_processes(const struct model_device *device,
                                    char text[ADVICE_LENGTH_MAX]) {
    char own[BASE_SIZE_TEXT], other[BASE_SIZE_TEXT];
    format_size(device->used_bytes, own);
    format_size(device->foreign_bytes, other);
    int length = 0;
    text[0] = '\0';
    if (device->lists_processes)
        length = snprintf(text, ADVICE_LENGTH_MAX,
                          "Including non-PyTorch memory, this process has %s memory in use. ", own);
    if (device->lists_processes && device->foreign_bytes > 0)
        snprintf(text + length, ADVICE_LENGTH_MAX - (size_t)length,
                 "Process 4242 has %s memory in use. ", other);
    return text;
}

static enum base_status out_of_memory_status(const struct model *model,
                                             const struct cca_out_of_memory *numbers) {
    char tried[BASE_SIZE_TEXT], total[BASE_SIZE_TEXT], free_text[BASE_SIZE_TEXT],
        allowed[BASE_SIZE_TEXT];
    char allocated[BASE_SIZE_TEXT], unallocated[BASE_SIZE_TEXT], advice[ADVICE_LENGTH_MAX];
    char processes[ADVICE_LENGTH_MAX];
    format_size(numbers->tried, tried);
    format_size(numbers->total, total);
    format_size(numbers->free, free_text);
    format_size(numbers->allowed, allowed);
    format_size(numbers->allocated, allocated);
    format_size(numbers->unallocated, unallocated);
    return base_status_set(BASE_OUT_OF_MEMORY,
                           "CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity "
                           "of %s of which %s is free. %s%s%sOf the "
                           "allocated memory %s is allocated by PyTorch, and %s is reserved by "
                           "PyTorch but unallocated. %s",
                           tried, total, free_text, format_processes(&model->device, processes),
                           numbers->limited ? allowed : "", numbers->limited ? " allowed; " : "",
                           allocated, unallocated, format_advice(numbers, advice));
}

enum base_status model__out_of_memory(struct model *model, size_t rounded, size_t segment_size,
                                      unsigned stream) {
    const uint64_t allocated = (uint64_t)model->stats.allocated_bytes[ALLOCATOR_STAT_ALL].current;
    const uint64_t reserved = (uint64_t)model->stats.reserved_bytes[ALLOCATOR_STAT_ALL].current;
    const struct cca_out_of_memory numbers = {.tried = segment_size,
                                              .total = model->device.capacity_bytes,
                                              .free = model_device_free_bytes(&model->device),
                                              .limited = model->limited,
                                              .allowed = model->allowed,
                                              .allocated = allocated,
                                              .unallocated = reserved - allocated,
                                              .expandable = model__expands(model),
                                              .exceeded_reserve = model->exceeded_reserve,
                                              .rounded = rounded};
    model->stats.num_ooms++;
    if (model->observer.event != NULL) {
        const struct allocator_event event = {.action = ALLOCATOR_OOM,
                                              .size = rounded,
                                              .device_free = numbers.free,
                                              .stream = stream_handle(stream)};
        model->observer.event(model->observer.context, &event);
    }
    if (model->out_of_memory_observer.event != NULL)
        model->out_of_memory_observer.event(model->out_of_memory_observer.context, &numbers);
    return out_of_memory_status(model, &numbers);
}

void model__warn(const struct model *model, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (model->warnings.warning != NULL) model->warnings.warning(model->warnings.context, text);
}

// Each time with a warning: in the recordings more than a minute passes between two.
enum base_status model__reject(struct model *model, size_t segment_size, size_t requested) {
    const size_t total = model->device.capacity_bytes;
    const double fraction = model->settings.start_fraction;
    char wanted[BASE_SIZE_TEXT], reserved[BASE_SIZE_TEXT], limit[BASE_SIZE_TEXT],
        total_text[BASE_SIZE_TEXT], request[BASE_SIZE_TEXT];
    format_size(segment_size, wanted);
    format_size(model->total_allocated, reserved);
    format_size((uint64_t)(fraction * (double)total), limit);
    format_size(total, total_text);
    format_size(requested, request);
    model->stats.num_oom_rejections++;
    if (model->rejected != NULL)
        model->rejected(model->rejected_context, segment_size, model->total_allocated, total);
    model__warn(model,
                "Preemptively rejecting allocation: requested %s but total_allocated_memory (%s) "
                "+ requested size would exceed memory limit (%s = %g%% of %s). Set "
                "throw_on_cudamalloc_oom:false to disable.",
                wanted, reserved, limit, fraction * 100, total_text);
    return base_status_set(BASE_OUT_OF_MEMORY,
                           "CUDA out of memory. Allocation was preemptively rejected because it "
                           "would exceed per_process_memory_fraction limit. Requested size: %s",
                           request);
}

//--------------------------------------------------------------------------------------------------
// Statistics.

static enum base_status model_stats(struct allocator *allocator, int device,
                                    struct allocator_stats *stats) {
    (void)device;
    model__settle_gone(model_of(allocator));
    *stats = model_of(allocator)->stats;
    stats->max_split_size = model_of(allocator)->max_split_size_at_start;
    return BASE_OK;
}

static void reset_peak(struct allocator_stat *stat) { stat->peak = stat->current; }

static void reset_accumulated(struct allocator_stat *stat) { stat->allocated = stat->freed = 0; }

static void stats_each(struct allocator_stats *stats, void (*change)(struct allocator_stat *stat)) {
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; kind++) {
#define CHANGE_FAMILY(name) change(&stats->name[kind]);
        ALLOCATOR_STAT_LIST(CHANGE_FAMILY)
#undef CHANGE_FAMILY
    }
    change(&stats->oversize_allocations);
    change(&stats->oversize_segments);
}

static enum base_status model_reset_peak_stats(struct allocator *allocator, int device) {
    (void)device;
    model__settle_gone(model_of(allocator));
    stats_each(&model_of(allocator)->stats, reset_peak);
    return BASE_OK;
}

static enum base_status model_reset_accumulated_stats(struct allocator *allocator, int device) {
    (void)device;
    model__settle_gone(model_of(allocator));
    struct allocator_stats *stats = &model_of(allocator)->stats;
    stats_each(stats, reset_accumulated);
    stats->num_alloc_retries = stats->num_ooms = stats->num_sync_all_streams = 0;
    stats->num_device_alloc = stats->num_device_free = stats->num_oom_rejections = 0;
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Snapshot, base and largest block.

static void snapshot_add(struct allocator_snapshot *snapshot, const struct model_block *block,
                         bool opens_segment) {
    if (opens_segment) {
        snapshot->segments[snapshot->segment_count++] =
            (struct allocator_snapshot_segment){.address = (void *)(uintptr_t)block->address,
                                                .stream = stream_handle(block->stream),
                                                .is_large = !block->small,
                                                .is_expandable = block->expandable,
                                                .registration = block->segment,
                                                .block_first = snapshot->block_count};
    }
    struct allocator_snapshot_segment *segment = &snapshot->segments[snapshot->segment_count - 1];
    const bool active = block->allocated || block->event_count > 0;
    segment->total_size += block->size;
    segment->allocated_size += block->allocated ? block->size : 0;
    segment->active_size += active ? block->size : 0;
    segment->requested_size += active ? block->requested_size : 0;
    segment->block_count++;
    snapshot->blocks[snapshot->block_count++] =
        (struct allocator_snapshot_block){.address = (void *)(uintptr_t)block->address,
                                          .size = block->size,
                                          .requested_size = block->requested_size,
                                          .state = block->allocated ? ALLOCATOR_BLOCK_ALLOCATED
                                                   : active         ? ALLOCATOR_BLOCK_PENDING_FREE
                                                                    : ALLOCATOR_BLOCK_INACTIVE};
}

static enum base_status model_snapshot(struct allocator *allocator,
                                       struct allocator_snapshot *snapshot) {
    struct model *model = model_of(allocator);
    *snapshot = (struct allocator_snapshot){
        .segments = calloc(model->block_count + 1, sizeof *snapshot->segments),
        .blocks = calloc(model->block_count + 1, sizeof *snapshot->blocks)};
    BASE_CHECK(snapshot->segments != NULL && snapshot->blocks != NULL);
    size_t active = 0;
    for (size_t index = 0; index < model->block_count; index++) {
        const struct model_block *block = &model->blocks[index];
        if (block->unmapped || block->gone_bytes != 0) continue;
        snapshot_add(snapshot, block,
                     index == 0 || block[-1].segment != block->segment || block[-1].unmapped);
        if (block->allocated || block->event_count > 0) active += block->size;
    }
    if (model->observer.event != NULL) {
        const struct allocator_event event = {.action = ALLOCATOR_SNAPSHOT, .size = active};
        model->observer.event(model->observer.context, &event);
    }
    return BASE_OK;
}

static enum base_status model_base_allocation(struct allocator *allocator, const void *pointer,
                                              void **base, size_t *size) {
    const struct model *model = model_of(allocator);
    const struct model_block *wanted = NULL, *first = NULL;
    for (size_t index = 0; index < model->block_count; index++)
        if (model->blocks[index].address == (uintptr_t)pointer && model->blocks[index].allocated)
            wanted = &model->blocks[index];
    if (wanted == NULL)
        return base_status_set(BASE_INVALID_POINTER, "invalid device pointer: %p", pointer);
    if (wanted->expandable)
        return base_status_set(BASE_INVALID_VALUE,
                               "%p is in an expandable segment, which has no base allocation that "
                               "another process could open; set expandable_segments:False for it",
                               pointer);
    *size = 0;
    for (size_t index = 0; index < model->block_count; index++) {
        if (model->blocks[index].segment != wanted->segment) continue;
        if (first == NULL) first = &model->blocks[index];
        *size += model->blocks[index].size;
    }
    *base = (void *)(uintptr_t)first->address;
    return BASE_OK;
}

static enum base_status model_largest_block(struct allocator *allocator, int device, size_t *size) {
    (void)device;
    const struct model *model = model_of(allocator);
    *size = model_device_free_bytes(&model->device);
    for (size_t index = 0; index < model->block_count; index++) {
        const struct model_block *block = &model->blocks[index];
        if (!block->allocated && block->event_count == 0 && !block->unmapped &&
            block->gone_bytes == 0 && block->size > *size)
            *size = block->size;
    }
    return BASE_OK;
}

void model__query_operations(struct allocator_operations *operations) {
    operations->base_allocation = model_base_allocation;
    operations->largest_block = model_largest_block;
    operations->stats = model_stats;
    operations->reset_peak_stats = model_reset_peak_stats;
    operations->reset_accumulated_stats = model_reset_accumulated_stats;
    operations->snapshot = model_snapshot;
}
