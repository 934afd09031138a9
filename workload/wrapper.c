// See wrapper.h.
#include "workload/wrapper.h"

static enum base_status pass_malloc(struct allocator *allocator, int device, size_t size,
                                    cudaStream_t stream, void **pointer) {
    return allocator_malloc(workload_wrapper_inner(allocator), device, size, stream, pointer);
}

static enum base_status pass_free(struct allocator *allocator, void *pointer) {
    return allocator_free(workload_wrapper_inner(allocator), pointer);
}

static enum base_status pass_record_stream(struct allocator *allocator, void *pointer,
                                           cudaStream_t stream) {
    return allocator_record_stream(workload_wrapper_inner(allocator), pointer, stream);
}

static enum base_status pass_empty_cache(struct allocator *allocator) {
    return allocator_empty_cache(workload_wrapper_inner(allocator));
}

static enum base_status pass_base_allocation(struct allocator *allocator, const void *pointer,
                                             void **base, size_t *size) {
    return allocator_base_allocation(workload_wrapper_inner(allocator), pointer, base, size);
}

static enum base_status pass_largest_block(struct allocator *allocator, int device, size_t *size) {
    return allocator_largest_block(workload_wrapper_inner(allocator), device, size);
}

static enum base_status pass_stats(struct allocator *allocator, int device,
                                   struct allocator_stats *stats) {
    return allocator_stats(workload_wrapper_inner(allocator), device, stats);
}

static enum base_status pass_reset_peak_stats(struct allocator *allocator, int device) {
    return allocator_reset_peak_stats(workload_wrapper_inner(allocator), device);
}

static enum base_status pass_reset_accumulated_stats(struct allocator *allocator, int device) {
    return allocator_reset_accumulated_stats(workload_wrapper_inner(allocator), device);
}

static enum base_status pass_snapshot(struct allocator *allocator,
                                      struct allocator_snapshot *snapshot) {
    return allocator_snapshot(workload_wrapper_inner(allocator), snapshot);
}

static enum base_status pass_set_observer(struct allocator *allocator,
                                          const struct allocator_observer *observer) {
    return allocator_set_observer(workload_wrapper_inner(allocator), observer);
}

static void pass_destroy(struct allocator *allocator) { (void)allocator; }

const struct allocator_operations workload_wrapper_operations = {
    .name = "wrapper",
    .malloc = pass_malloc,
    .free = pass_free,
    .record_stream = pass_record_stream,
    .empty_cache = pass_empty_cache,
    .base_allocation = pass_base_allocation,
    .largest_block = pass_largest_block,
    .stats = pass_stats,
    .reset_peak_stats = pass_reset_peak_stats,
    .reset_accumulated_stats = pass_reset_accumulated_stats,
    .snapshot = pass_snapshot,
    .set_observer = pass_set_observer,
    .destroy = pass_destroy,
};

struct allocator *workload_wrapper_innermost(struct allocator *allocator) {
    while (allocator->operations->largest_block == pass_largest_block)
        allocator = workload_wrapper_inner(allocator);
    return allocator;
}
