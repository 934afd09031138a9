// The caching allocator on the simulator as a subject: accounting only, addresses that only ascend.
//
// The simulated device is one for the process, hence the one set of streams here. Every stream is
// held, so that the events recorded on it stay pending until a log says otherwise.
#include "allocator/golden/subject.h"

#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static cudaStream_t streams[GOLDEN_STREAM_COUNT];
static uint64_t foreign_bytes; // of the device
static bool lists_processes;

// Streams 1 to 7 are non-blocking: the default stream waits for none of them.
static void streams_create(void) {
    streams[0] = NULL;
    for (unsigned number = 1; number < GOLDEN_STREAM_COUNT; number++)
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&streams[number], cudaStreamNonBlocking),
                      cudaSuccess);
    for (unsigned number = 0; number < GOLDEN_STREAM_COUNT; number++)
        sim_stream_hold(streams[number], true);
}

// Every rejection of a log warns: a minute and more passed since the last one.
static uint64_t later(void *context) {
    static uint64_t now_ns;
    (void)context;
    return now_ns += (uint64_t)61 * 1000 * 1000 * 1000;
}

static enum base_status caching_open(const struct golden_options *options,
                                     struct allocator **allocator) {
    const struct sim_options world = {.device_count = 1,
                                      .capacity_bytes = options->capacity_bytes,
                                      .numerics = SIM_NUMERICS_OFF,
                                      .addresses = SIM_ADDRESSES_ASCENDING};
    const enum base_status status = sim_configure(&world);
    if (status != BASE_OK) return status;
    streams_create();
    foreign_bytes = 0;
    lists_processes = false;
    return cca_allocator_create(&(struct cca_options){.config = options->config,
                                                      .no_caching = options->no_caching,
                                                      .clock = {.now_ns = later}},
                                allocator);
}

static void translate_settings(const struct cca_settings *settings,
                               struct golden_settings *translated) {
    *translated =
        (struct golden_settings){.large = settings->large_segment_size,
                                 .split = settings->max_split_size,
                                 .rounding = settings->max_non_split_rounding,
                                 .gc = settings->garbage_collection_threshold,
                                 .fraction = settings->per_process_memory_fraction,
                                 .expandable = settings->expandable_segments,
                                 .unlock = settings->release_lock_on_cudamalloc,
                                 .reuse = settings->graph_capture_record_stream_reuse,
                                 .throws = settings->throw_on_cudamalloc_oom,
                                 .host_register = settings->pinned_use_cuda_host_register,
                                 .background = settings->pinned_use_background_threads,
                                 .catches = settings->pinned_free_catch_all,
                                 .threads = settings->pinned_num_register_threads,
                                 .pinned_reserve = settings->pinned_reserve_segment_size_mb,
                                 .round = settings->pinned_max_round_threshold,
                                 .cached = settings->pinned_max_cached_size};
    memcpy(translated->divisions, settings->roundup_power2_divisions, sizeof translated->divisions);
    static const char *const classes[3] = {NULL, "a", "b"};
    for (int index = 0; index < 3; index++)
        translated->reserve[index].bytes = cca_settings_reserve(
            settings, classes[index], 80 * BASE_GIB, &translated->reserve[index].own);
    snprintf(translated->last, sizeof translated->last, "%s", settings->text);
}

static enum base_status caching_settings(struct allocator *allocator,
                                         struct golden_settings *translated) {
    struct cca_settings settings;
    const enum base_status status = cca_settings(allocator, &settings);
    if (status != BASE_OK) return status;
    translate_settings(&settings, translated);
    cca_settings_deinit(&settings);
    return BASE_OK;
}

static enum base_status caching_read_settings(const char *config,
                                              const struct cca_warning_observer *warnings,
                                              struct golden_settings *translated) {
    struct cca_settings settings;
    const enum base_status status = cca_settings_read(config, warnings, &settings);
    if (status == BASE_OK || status == BASE_INVALID_CONFIG)
        translate_settings(&settings, translated);
    cca_settings_deinit(&settings);
    return status;
}

static enum base_status caching_set_fraction(struct allocator *allocator, double fraction) {
    return cca_set_memory_fraction(allocator, 0, fraction);
}

static enum base_status caching_fraction(struct allocator *allocator, double *fraction) {
    return cca_memory_fraction(allocator, 0, fraction);
}

static struct {
    void (*rejected)(void *context, size_t size, size_t reserved, size_t total);
    void *context;
} rejection_observer;

static void tell_rejection(void *context, const struct cca_rejection *rejection) {
    (void)context;
    rejection_observer.rejected(rejection_observer.context, rejection->segment_size,
                                rejection->reserved, rejection->total);
}

static void caching_observe_warnings(struct allocator *allocator,
                                     const struct cca_warning_observer *observer) {
    BASE_CHECK_EQ(cca_set_warning_observer(allocator, observer), BASE_OK);
}

static void caching_observe_rejections(struct allocator *allocator,
                                       void (*rejected)(void *context, size_t size, size_t reserved,
                                                        size_t total),
                                       void *context) {
    rejection_observer.rejected = rejected;
    rejection_observer.context = context;
    const struct cca_rejection_observer observer = {.rejected = tell_rejection};
    BASE_CHECK_EQ(cca_set_rejection_observer(allocator, &observer), BASE_OK);
}

static enum base_status
caching_add_free_memory_callback(struct allocator *allocator,
                                 bool (*free_memory)(void *context, int device), void *context) {
    return cca_add_free_memory_callback(
        allocator,
        &(struct cca_free_memory_callback){.free_memory = free_memory, .context = context});
}

static enum base_status caching_malloc_at(struct allocator *allocator, size_t size,
                                          cudaStream_t stream, uint64_t address, void **pointer) {
    return cca_malloc_at(allocator, 0, size, stream, (void *)(uintptr_t)address, pointer);
}

// What the recordings' stand-in for NVML says: this process, and 4242 if something is foreign.

static bool list_processes(void *context, int device, struct cca_process *processes,
                           size_t capacity, size_t *count) {
    (void)context;
    if (!lists_processes) return false;
    BASE_CHECK(capacity >= 2);
    processes[0] = (struct cca_process){.number = getpid(), .used_bytes = sim_used_bytes(device)};
    processes[1] = (struct cca_process){.number = 4242, .used_bytes = foreign_bytes};
    *count = foreign_bytes == 0 ? 1 : 2;
    return true;
}

static void caching_list_processes(struct allocator *allocator, bool on) {
    lists_processes = on;
    cca_set_process_source(allocator, &(struct cca_process_source){.list = list_processes});
}

static cudaStream_t caching_stream(unsigned number) { return streams[number]; }

static void caching_complete(struct allocator *allocator, unsigned stream) {
    (void)allocator;
    sim_stream_run(streams[stream], UINT64_MAX);
}

static void caching_complete_at_once(struct allocator *allocator) {
    (void)allocator;
    for (unsigned number = 0; number < GOLDEN_STREAM_COUNT; number++)
        sim_stream_hold(streams[number], false);
}

static void caching_queue_addresses(struct allocator *allocator, const uint64_t *addresses,
                                    size_t count) {
    (void)allocator;
    sim_next_address_clear(0);
    sim_next_reservation_clear();
    for (size_t index = 0; index < count; index++) {
        BASE_CHECK_EQ(sim_next_address(0, addresses[index]), BASE_OK);
        BASE_CHECK_EQ(sim_next_reservation(addresses[index]), BASE_OK);
    }
}

static void caching_set_foreign_bytes(struct allocator *allocator, uint64_t bytes) {
    (void)allocator;
    foreign_bytes = bytes;
    sim_set_foreign_bytes(0, bytes);
}

static void caching_fail_malloc(struct allocator *allocator, uint64_t n, int code) {
    (void)allocator;
    sim_fault_next(SIM_CALL_MALLOC, n, (cudaError_t)code);
}

static void caching_fail_create(struct allocator *allocator, uint64_t n, int code) {
    (void)allocator;
    sim_fault_next(SIM_CALL_MEM_CREATE, n, (cudaError_t)code);
}

static enum base_status caching_set_stream_class(struct allocator *allocator, cudaStream_t stream,
                                                 const char *name) {
    return cca_set_stream_reserve_class(allocator, 0, stream, name);
}

static enum base_status caching_expandable_segments(struct allocator *allocator,
                                                    struct cca_expandable_segment **segments,
                                                    size_t *count) {
    return cca_expandable_segments(allocator, 0, segments, count);
}

//--------------------------------------------------------------------------------------------------
// Private pools.

static void *raw_allocate(void *context, size_t size, int device, cudaStream_t stream) {
    (void)context;
    (void)device;
    (void)stream;
    void *memory = NULL;
    return cudaMalloc(&memory, size) == cudaSuccess ? memory : NULL;
}
static void raw_free(void *context, void *memory, size_t size, int device, cudaStream_t stream) {
    (void)context;
    (void)size;
    (void)device;
    (void)stream;
    BASE_CHECK_EQ(cudaFree(memory), cudaSuccess);
}

static enum base_status pool_create(struct allocator *allocator, struct allocator_pool_id id,
                                    bool raw) {
    static const struct cca_raw_allocator own = {.allocate = raw_allocate, .free = raw_free};
    return cca_pool_create(allocator, 0, id, raw ? &own : NULL);
}
static enum base_status pool_begin(struct allocator *allocator, struct allocator_pool_id id,
                                   const struct cca_pool_filter *filter) {
    return cca_pool_begin(allocator, 0, id, filter);
}
static enum base_status pool_end(struct allocator *allocator, struct allocator_pool_id id) {
    return cca_pool_end(allocator, 0, id);
}
static enum base_status pool_release(struct allocator *allocator, struct allocator_pool_id id) {
    return cca_pool_release(allocator, 0, id);
}
static enum base_status pool_empty(struct allocator *allocator, struct allocator_pool_id id) {
    return cca_pool_empty_cache(allocator, 0, id);
}
static enum base_status pool_destroy(struct allocator *allocator, struct allocator_pool_id id) {
    return cca_pool_destroy(allocator, 0, id);
}
static enum base_status pool_count(struct allocator *allocator, struct allocator_pool_id id,
                                   int64_t *count) {
    return cca_pool_count(allocator, 0, id, count);
}
static enum base_status pool_set_use_on_oom(struct allocator *allocator,
                                            struct allocator_pool_id id, bool on) {
    return cca_pool_set_use_on_oom(allocator, 0, id, on);
}
static enum base_status pool_set_no_split(struct allocator *allocator,
                                          struct allocator_pool_id id) {
    return cca_pool_set_no_split(allocator, 0, id);
}
static enum base_status pool_stats(struct allocator *allocator, struct cca_pool_stats **pools,
                                   size_t *count) {
    return cca_pool_stats(allocator, 0, pools, count);
}

static const struct golden_pools caching_pools = {.create = pool_create,
                                                  .begin = pool_begin,
                                                  .end = pool_end,
                                                  .release = pool_release,
                                                  .empty = pool_empty,
                                                  .destroy = pool_destroy,
                                                  .count = pool_count,
                                                  .set_use_on_oom = pool_set_use_on_oom,
                                                  .set_no_split = pool_set_no_split,
                                                  .stats = pool_stats,
                                                  .snapshot = cca_pool_snapshot};

static void caching_counts(struct allocator *allocator, struct golden_counts *counts) {
    (void)allocator;
    const uint64_t failed = sim_call_failed_count(SIM_CALL_MALLOC);
    const uint64_t create_failed = sim_call_failed_count(SIM_CALL_MEM_CREATE);
    *counts =
        (struct golden_counts){.malloc = sim_call_count(SIM_CALL_MALLOC) - failed,
                               .malloc_failed = failed,
                               .free = sim_call_count(SIM_CALL_FREE) -
                                       sim_call_failed_count(SIM_CALL_FREE),
                               .address_reserve = sim_call_count(SIM_CALL_ADDRESS_RESERVE),
                               .address_free = sim_call_count(SIM_CALL_ADDRESS_FREE),
                               .create = sim_call_count(SIM_CALL_MEM_CREATE) - create_failed,
                               .create_failed = create_failed,
                               .release = sim_call_count(SIM_CALL_MEM_RELEASE),
                               .map = sim_call_count(SIM_CALL_MEM_MAP),
                               .unmap = sim_call_count(SIM_CALL_MEM_UNMAP),
                               .set_access = sim_call_count(SIM_CALL_MEM_SET_ACCESS),
                               .stream_synchronize = sim_call_count(SIM_CALL_STREAM_SYNCHRONIZE),
                               .device_synchronize = sim_call_count(SIM_CALL_DEVICE_SYNCHRONIZE),
                               .event_record = sim_call_count(SIM_CALL_EVENT_RECORD),
                               .event_synchronize = sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE),
                               .event_query = sim_call_count(SIM_CALL_EVENT_QUERY),
                               .event_create = sim_call_count(SIM_CALL_EVENT_CREATE),
                               .used_bytes = sim_used_bytes(0)};
}

const struct golden_subject golden_subject_caching = {
    .name = "caching",
    .pools = &caching_pools,
    .open = caching_open,
    .close = allocator_destroy,
    .set_config = cca_set_config,
    .settings = caching_settings,
    .read_settings = caching_read_settings,
    .observe_warnings = caching_observe_warnings,
    .set_fraction = caching_set_fraction,
    .fraction = caching_fraction,
    .round_size = cca_round_size,
    .observe_out_of_memory = cca_set_out_of_memory_observer,
    .observe_rejections = caching_observe_rejections,
    .add_free_memory_callback = caching_add_free_memory_callback,
    .malloc_at = caching_malloc_at,
    .list_processes = caching_list_processes,
    .stream = caching_stream,
    .complete = caching_complete,
    .complete_at_once = caching_complete_at_once,
    .queue_addresses = caching_queue_addresses,
    .set_foreign_bytes = caching_set_foreign_bytes,
    .fail_malloc = caching_fail_malloc,
    .fail_create = caching_fail_create,
    .set_stream_class = caching_set_stream_class,
    .set_class_default = cca_set_reserve_class_default,
    .expandable_segments = caching_expandable_segments,
    .counts = caching_counts,
    .check = cca_check};
