// The caching allocator's face: what allocator.h and cca.h promise, in terms of the files beside
// this one: queries, settings, life; requests are in request.c. The order of locks is in core.h.
#include "allocator/cca.h"

#include "allocator/device.h"
#include "allocator/pointer.h"
#include "allocator/pool.h"
#include "allocator/request.h"
#include "allocator/reserve_class.h"
#include "allocator/snapshot.h"
#include "allocator/stream_use.h"
#include "allocator/torch_faults.h"
#include "allocator/uncached.h"
#include "allocator/warning.h"

#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Queries.

static enum base_status caching_base_allocation(struct allocator *allocator, const void *pointer,
                                                void **base, size_t *size) {
    struct cca *const cca = cca__of(allocator);
    struct cca__pool *pool;
    struct cca__block *block;
    const enum base_status status = cca__pointer_lock(cca, pointer, &pool, &block);
    if (status != BASE_OK) return status;
    const struct cca__segment *const segment = &cca->segments[block->segment];
    if (segment->expandable != NULL) {
        cca__lock_release(&pool->stream->lock);
        return base_status_set(BASE_INVALID_VALUE,
                               "%p is in an expandable segment, which has no base allocation that "
                               "another process could open; set expandable_segments:False for it",
                               pointer);
    }
    *base = (void *)(uintptr_t)segment->address;
    *size = segment->size;
    cca__lock_release(&pool->stream->lock);
    return BASE_OK;
}

static enum base_status caching_largest_block(struct allocator *allocator, int ordinal,
                                              size_t *size) {
    struct cca *const cca = cca__of(allocator);
    struct cca__device *device;
    enum base_status status = cca__device_get(cca, ordinal, &device);
    if (status != BASE_OK) return status;
    struct cca__device_scope scope;
    status = cca__device_scope_begin(&scope, ordinal);
    if (status != BASE_OK) return status;
    size_t largest, total;
    const cudaError_t error = cudaMemGetInfo(&largest, &total);
    cca__device_scope_end(&scope);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaMemGetInfo on device %d", ordinal);
    cca__lock_take(&device->growth_lock);
    cca__streams_lock_all(device);
    for (size_t index = 0; index < device->stream_count; ++index)
        for (int kind = 0; kind < 2; ++kind) {
            struct cca__pool *const pool = &device->by_handle[index]->pools[kind];
            const uint32_t number = cca__free_index_previous(&pool->index, cca->blocks, 0);
            if (number != 0 && cca__block_at(cca, number)->size > largest)
                largest = cca__block_at(cca, number)->size;
        }
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    *size = largest;
    return BASE_OK;
}

// Runs BODY with the device's growth lock and the locks of all its streams.
static enum base_status with_device(struct allocator *allocator, int ordinal, const char *what,
                                    void (*body)(struct cca__device *, void *), void *argument) {
    struct cca__device *device;
    const enum base_status status = cca__device_of(allocator, ordinal, what, &device);
    if (status != BASE_OK) return status;
    cca__lock_take(&device->growth_lock);
    cca__gone_settle_locked(device);
    cca__streams_lock_all(device);
    body(device, argument);
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    return BASE_OK;
}

static void read_stats(struct cca__device *device, void *stats) {
    cca__stats_read_locked(device, stats);
}
static void reset_peak(struct cca__device *device, void *unused) {
    (void)unused;
    cca__stats_reset_peak_locked(device);
}
static void reset_accumulated(struct cca__device *device, void *unused) {
    (void)unused;
    cca__stats_reset_accumulated_locked(device);
}

static enum base_status caching_stats(struct allocator *allocator, int ordinal,
                                      struct allocator_stats *stats) {
    return with_device(allocator, ordinal, "statistics", read_stats, stats);
}
static enum base_status caching_reset_peak_stats(struct allocator *allocator, int ordinal) {
    return with_device(allocator, ordinal, "statistics", reset_peak, NULL);
}
static enum base_status caching_reset_accumulated_stats(struct allocator *allocator, int ordinal) {
    return with_device(allocator, ordinal, "statistics", reset_accumulated, NULL);
}

static enum base_status caching_snapshot(struct allocator *allocator,
                                         struct allocator_snapshot *snapshot) {
    return cca__snapshot(cca__of(allocator), (struct allocator_pool_id){0}, snapshot);
}

//------------------------------------------------------------------------------------------------
// Settings.

static enum base_status caching_set_observer(struct allocator *allocator,
                                             const struct allocator_observer *observer) {
    struct cca *const cca = cca__of(allocator);
    cca__lock_take(&cca->settings_lock);
    cca__devices_lock_all(cca);
    cca->observer = observer != NULL ? *observer : (struct allocator_observer){0};
    cca->watched = cca->observer.event != NULL || cca->history.enabled != CCA_HISTORY_OFF;
    cca__devices_update_settings_locked(cca);
    cca__devices_unlock_all(cca);
    cca__lock_release(&cca->settings_lock);
    return BASE_OK;
}

enum base_status cca_set_warning_observer(struct allocator *allocator,
                                          const struct cca_warning_observer *observer) {
    const enum base_status status = cca__require_caching(allocator, "warnings");
    if (status != BASE_OK) return status;
    cca__of(allocator)->warnings = observer != NULL ? *observer : cca__warn_on_stderr;
    return BASE_OK;
}

enum base_status cca_config_check(const char *text) {
    struct cca__config config;
    cca__config_init(&config);
    const enum base_status status = cca__config_apply(&config, text, NULL);
    cca__config_deinit(&config);
    return status;
}

enum base_status cca_set_config(struct allocator *allocator, const char *config) {
    struct cca *const cca = cca__of(allocator);
    enum base_status status = cca__require_caching(allocator, "configuration");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->settings_lock);
    struct cca__config changed;
    status = cca__config_copy(&changed, &cca->config);
    if (status == BASE_OK) {
        status = cca__config_apply(&changed, config, &cca->warnings);
        // What was applied before an error stays, as in PyTorch.
        if (status != BASE_HOST_MEMORY) {
            cca__devices_lock_all(cca);
            const struct cca__config before = cca->config;
            cca->config = changed;
            changed = before;
            cca__devices_update_settings_locked(cca);
            cca__devices_unlock_all(cca);
        }
        cca__config_deinit(&changed);
    }
    cca__lock_release(&cca->settings_lock);
    return status;
}

static void set_fraction(struct cca__device *device, void *fraction) {
    cca__device_set_fraction_locked(device, *(const double *)fraction);
}

enum base_status cca_set_memory_fraction(struct allocator *allocator, int ordinal,
                                         double fraction) {
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return base_status_set(BASE_INVALID_VALUE, "invalid fraction:%g. Please set within [0, 1].",
                               fraction);
    return with_device(allocator, ordinal, "memory fraction", set_fraction, &fraction);
}

static void read_fraction(struct cca__device *device, void *fraction) {
    *(double *)fraction =
        device->limited ? (double)device->allowed_bytes / (double)device->total_bytes : 1.0;
}

enum base_status cca_memory_fraction(struct allocator *allocator, int ordinal, double *fraction) {
    return with_device(allocator, ordinal, "memory fraction", read_fraction, fraction);
}

enum base_status cca_round_size(struct allocator *allocator, size_t size, size_t *rounded,
                                size_t *segment) {
    struct cca *const cca = cca__of(allocator);
    if (size == 0 || size >= CCA_REQUEST_LIMIT)
        return base_status_set(BASE_INVALID_VALUE,
                               "size %zu: only requests of 1 byte to 2^60 - 1 bytes are rounded",
                               size);
    enum base_status status = cca__require_caching(allocator, "rounding");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->settings_lock);
    *rounded = cca__round_size(&cca->config.sizes, size);
    *segment = cca__segment_size(&cca->config.sizes, *rounded);
    cca__lock_release(&cca->settings_lock);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Life.

static void destroy_metadata(struct cca *cca) {
    cca__history_deinit(cca);
    cca__arena_deinit(&cca->block_chunks);
    cca__arena_deinit(&cca->segment_records);
    cca__arena_deinit(&cca->use_records);
    cca__arena_deinit(&cca->free_runs);
    cca__page_table_deinit(&cca->page_table);
    cca__lock_deinit(&cca->settings_lock);
    cca__lock_deinit(&cca->reserve_lock);
    cca__lock_deinit(&cca->callbacks_lock);
    cca__reserve_classes_deinit(cca);
    if (cca->streams.base != NULL) cca__lock_deinit(&cca__stream_at(cca, 0)->lock);
    cca__arena_deinit(&cca->streams);
    cca__config_deinit(&cca->config);
    free(cca);
}

static void caching_destroy(struct allocator *allocator) {
    struct cca *const cca = cca__of(allocator);
    cca__fork_forget(cca);
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX; ++ordinal) {
        struct cca__device *const device = atomic_load(&cca->devices[ordinal]);
        if (device != NULL) cca__device_destroy(device);
    }
    allocator_destroy(cca->uncached);
    destroy_metadata(cca);
}

static const struct allocator_operations caching_operations = {
    .name = "caching",
    .malloc = cca__malloc,
    .free = cca__free,
    .record_stream = cca__record_stream,
    .empty_cache = cca__empty_cache,
    .base_allocation = caching_base_allocation,
    .largest_block = caching_largest_block,
    .stats = caching_stats,
    .reset_peak_stats = caching_reset_peak_stats,
    .reset_accumulated_stats = caching_reset_accumulated_stats,
    .snapshot = caching_snapshot,
    .set_observer = caching_set_observer,
    .destroy = caching_destroy,
};

enum base_status cca__require_caching(const struct allocator *allocator, const char *what) {
    static const char *const names[] = {"caching", "uncached", "forked"};
    for (size_t index = 0; index < sizeof names / sizeof *names; ++index)
        if (strcmp(allocator->operations->name, names[index]) == 0) return BASE_OK;
    return base_status_set(BASE_UNSUPPORTED, "the %s allocator has no %s",
                           allocator->operations->name, what);
}

static enum base_status init_metadata(struct cca *cca) {
    enum base_status status =
        cca__arena_init(&cca->block_chunks, "chunks of blocks",
                        CCA__BLOCK_CHUNK * sizeof(struct cca__block), CCA__BLOCK_CHUNKS_MAX);
    if (status == BASE_OK)
        status = cca__arena_init(&cca->segment_records, "segments", sizeof(struct cca__segment),
                                 CCA__SEGMENTS_MAX);
    if (status == BASE_OK)
        status = cca__arena_init(&cca->use_records, "blocks in use by several streams",
                                 sizeof(struct cca__use_record), CCA__USE_RECORDS_MAX);
    if (status == BASE_OK) status = cca__runs_init(&cca->free_runs);
    if (status == BASE_OK)
        status = cca__arena_init(&cca->streams, "streams", CCA__STREAM_STRIDE, CCA__STREAMS_MAX);
    if (status == BASE_OK) cca__lock_init(&cca__stream_at(cca, 0)->lock); // for frees of nothing
    if (status == BASE_OK) status = cca__page_table_init(&cca->page_table);
    cca->blocks = (struct cca__block *)(void *)cca->block_chunks.base;
    cca->segments = (struct cca__segment *)(void *)cca->segment_records.base;
    return status;
}

enum base_status cca_allocator_create(const struct cca_options *options,
                                      struct allocator **allocator) {
    if (options->fraction_set && !(options->fraction >= 0.0 && options->fraction <= 1.0))
        return base_status_set(BASE_INVALID_VALUE, "invalid fraction:%g. Please set within [0, 1].",
                               options->fraction);
    struct cca *const cca = calloc(1, sizeof *cca);
    if (cca == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for an allocator");
    struct cca__config *const config = &cca->config;
    cca->warnings = options->warnings.warning != NULL ? options->warnings : cca__warn_on_stderr;
    cca__config_init(config);
    enum base_status status = cca__config_apply(config, options->config, &cca->warnings);
    if (status != BASE_OK) {
        cca__config_deinit(config);
        free(cca);
        return status;
    }
    cca->refuse_interior_pointers = options->refuse_interior_pointers;
    cca->interface.operations = &caching_operations;
    cca->clock = options->clock;
    cca->fraction = options->fraction_set ? options->fraction : config->per_process_memory_fraction;
    cca->fraction_set = options->fraction_set || cca->fraction < 1.0;
    cca->max_split_size_at_creation =
        config->sizes.max_split_size == CCA_UNLIMITED ? -1 : (int64_t)config->sizes.max_split_size;
    cca__lock_init(&cca->settings_lock);
    cca__lock_init(&cca->reserve_lock);
    cca__lock_init(&cca->callbacks_lock);
    cca__history_init(&cca->history);
    status = init_metadata(cca);
    if (status == BASE_OK && options->no_caching) status = cca__uncached_init(cca);
    if (status == BASE_OK) status = cca__fork_watch(cca);
    if (status != BASE_OK) {
        allocator_destroy(cca->uncached);
        destroy_metadata(cca);
        return status;
    }
    *allocator = &cca->interface;
    return BASE_OK;
}
