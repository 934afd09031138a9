// The naive model as a subject.
#include "allocator/golden/model.h"
#include "allocator/golden/subject.h"
#include "base/size.h"

#include <stdio.h>

static enum base_status model_open(const struct golden_options *options,
                                   struct allocator **allocator) {
    const enum base_status status =
        model_create(options->config, options->capacity_bytes, allocator);
    if (status == BASE_OK && options->no_caching) model_stop_caching(*allocator);
    return status;
}

static void translate_settings(const struct model_settings *modelled,
                               struct golden_settings *settings) {
    *settings = (struct golden_settings){.large = modelled->large_segment_size,
                                         .split = modelled->max_split_size,
                                         .rounding = modelled->max_non_split_rounding != 0
                                                         ? modelled->max_non_split_rounding
                                                         : modelled->large_segment_size,
                                         .gc = modelled->gc_threshold,
                                         .fraction = modelled->start_fraction,
                                         .unlock = modelled->releases_lock,
                                         .throws = modelled->throws,
                                         .reuse = modelled->reuses,
                                         .expandable = modelled->expandable,
                                         .host_register = modelled->pinned.host_register,
                                         .background = modelled->pinned.background,
                                         .catches = modelled->pinned.catches,
                                         .threads = modelled->pinned.threads,
                                         .pinned_reserve = modelled->pinned.reserve_mib,
                                         .round = modelled->pinned.max_round,
                                         .cached = modelled->pinned.max_cached};
    static const char *const classes[3] = {"", "a", "b"};
    for (int index = 0; index < 3; index++)
        settings->reserve[index].bytes = model_reserve(modelled, classes[index], 80 * BASE_GIB,
                                                       &settings->reserve[index].own);
    for (int entry = 0; entry < MODEL_DIVISION_COUNT; entry++)
        settings->divisions[entry] = modelled->divisions[entry];
    snprintf(settings->last, sizeof settings->last, "%s", modelled->last);
}

static enum base_status model_all_settings(struct allocator *allocator,
                                           struct golden_settings *settings) {
    translate_settings(model_settings(allocator), settings);
    return BASE_OK;
}

static enum base_status model_fresh_settings(const char *config,
                                             const struct cca_warning_observer *warnings,
                                             struct golden_settings *settings) {
    struct model_settings modelled;
    const enum base_status status = model_read_settings(config, warnings, &modelled);
    translate_settings(&modelled, settings);
    return status;
}

static void model_observe_warnings(struct allocator *allocator,
                                   const struct cca_warning_observer *observer) {
    model_set_warning_observer(allocator, observer);
}

static enum base_status model_set_fraction(struct allocator *allocator, double fraction) {
    return model_set_memory_fraction(allocator, fraction);
}

static enum base_status model_fraction(struct allocator *allocator, double *fraction) {
    *fraction = model_memory_fraction(allocator);
    return BASE_OK;
}

static enum base_status model_sizes(struct allocator *allocator, size_t size, size_t *rounded,
                                    size_t *segment) {
    model_round_size(allocator, size, rounded, segment);
    return BASE_OK;
}

static enum base_status model_observe(struct allocator *allocator,
                                      const struct cca_out_of_memory_observer *observer) {
    model_set_out_of_memory_observer(allocator, observer);
    return BASE_OK;
}

static enum base_status model_on_miss(struct allocator *allocator,
                                      bool (*free_memory)(void *context, int device),
                                      void *context) {
    model_add_free_memory_callback(allocator, free_memory, context);
    return BASE_OK;
}

static void model_list_processes(struct allocator *allocator, bool on) {
    model_device(allocator)->lists_processes = on;
}

static cudaStream_t model_stream(unsigned number) { return (cudaStream_t)(uintptr_t)number; }

static void model_complete(struct allocator *allocator, unsigned stream) {
    model_device_complete(model_device(allocator), stream);
}

static void model_complete_at_once(struct allocator *allocator) {
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++)
        model_device_complete(model_device(allocator), stream);
    model_device(allocator)->completes_at_once = true;
}

static void model_queue_addresses(struct allocator *allocator, const uint64_t *addresses,
                                  size_t count) {
    model_device_queue_addresses(model_device(allocator), addresses, count);
}

static void model_set_foreign_bytes(struct allocator *allocator, uint64_t bytes) {
    model_device(allocator)->foreign_bytes = bytes;
}

static void model_fail_malloc(struct allocator *allocator, uint64_t n, int code) {
    model_device(allocator)->fault_countdown = n;
    model_device(allocator)->fault_code = code;
}

static void model_fail_create(struct allocator *allocator, uint64_t n, int code) {
    model_device(allocator)->create_fault_countdown = n;
    model_device(allocator)->create_fault_code = code;
}

static enum base_status model_stream_class(struct allocator *allocator, cudaStream_t stream,
                                           const char *name) {
    model_set_stream_class(allocator, (unsigned)(uintptr_t)stream, name);
    return BASE_OK;
}

static enum base_status model_class_default(struct allocator *allocator, const char *name,
                                            double fraction) {
    model_set_class_default(allocator, name, fraction);
    return BASE_OK;
}

static void model_counts(struct allocator *allocator, struct golden_counts *counts) {
    const struct model_device *device = model_device(allocator);
    *counts = (struct golden_counts){.malloc = device->malloc_count,
                                     .malloc_failed = device->malloc_failed_count,
                                     .free = device->free_count,
                                     .address_reserve = device->reserve_count,
                                     .address_free = device->address_free_count,
                                     .create = device->create_count,
                                     .create_failed = device->create_failed_count,
                                     .release = device->release_count,
                                     .map = device->map_count,
                                     .unmap = device->unmap_count,
                                     .set_access = device->set_access_count,
                                     .stream_synchronize = device->stream_synchronize_count,
                                     .event_record = device->event_record_count,
                                     .event_synchronize = device->event_synchronize_count,
                                     .event_query = device->event_query_count,
                                     .event_create = device->event_create_count,
                                     .used_bytes = device->used_bytes};
}

static void model_check(struct allocator *allocator) {
    (void)allocator;
} // one array: there is nothing that could disagree

const struct golden_subject golden_subject_model = {
    .name = "model",
    .open = model_open,
    .close = allocator_destroy,
    .set_config = model_set_config,
    .settings = model_all_settings,
    .read_settings = model_fresh_settings,
    .observe_warnings = model_observe_warnings,
    .set_fraction = model_set_fraction,
    .fraction = model_fraction,
    .round_size = model_sizes,
    .observe_out_of_memory = model_observe,
    .observe_rejections = model_set_rejection_observer,
    .add_free_memory_callback = model_on_miss,
    .malloc_at = model_malloc_at,
    .list_processes = model_list_processes,
    .stream = model_stream,
    .complete = model_complete,
    .complete_at_once = model_complete_at_once,
    .queue_addresses = model_queue_addresses,
    .set_foreign_bytes = model_set_foreign_bytes,
    .fail_malloc = model_fail_malloc,
    .fail_create = model_fail_create,
    .set_stream_class = model_stream_class,
    .set_class_default = model_class_default,
    .expandable_segments = model_expandable_segments,
    .counts = model_counts,
    .check = model_check};
