// The observed pass: every operation in order, what the allocator says of it counted, compared and
// kept as a series.
//
// A deferred free is issued at its request, behind a fence on a side stream that the simulator
// holds until the recording says that the work there was done; so the allocator's own waits find
// what PyTorch's found. Where there are no held streams (a real device) or the allocator takes no
// record_stream, it is issued at its completion instead: bytes still count from the request, and
// only a request that waited for completions itself may decide differently.
//
// Single-threaded; the observer runs within this thread's calls.
#include "workload/replay_device.h"
#include "workload/replay_pools.h"
#include "workload/replay_series.h"
#include "workload/replay_start.h"
#include "workload/self_check.h"

#include "base/address_map.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    uint64_t block_bytes;
    uint16_t stream;
    bool requested; // to be freed; not yet, if it is not fenced
    bool fenced;    // freed behind a fence
};

struct run {
    const struct workload_replay_plan *plan;
    struct allocator *allocator;
    const struct workload_replay_options *options;
    struct workload_replay_result *result;
    struct workload__device device;
    struct workload__pools pools;
    void **pointers; // by slot
    struct slot *slots;
    struct base_address_map stream_indices; // by handle
    struct workload__series series;
    struct workload__check check;
    bool with_addresses; // new segments lie where the recording has them
    bool checking;
    bool recording; // the start state is made: events count from here
    enum base_status observer_status;

    size_t operation;        // under way
    size_t segment_cursor;   // recorded segments up to here were offered to the device
    uint64_t wanted_address; // of them, one that was held when it was offered; 0: none
    bool offered;            // one was offered for the operation under way
    uint64_t event;          // requests done
    uint64_t grown_count, shrunk_count; // segments taken and released
    uint64_t reserved_bytes, allocated_bytes, active_bytes;
    uint64_t block_bytes;                // of the last allocation
    struct workload_stream_use *streams; // by the recording's index
    uint64_t *stream_active_bytes;
    uint16_t *touched; // streams whose use changed in this operation
    size_t touched_count;
    bool *is_touched;
};

//--------------------------------------------------------------------------------------------------
// What the allocator says.

static uint16_t stream_index(struct run *run, cudaStream_t stream) {
    uint64_t index = 0;
    (void)base_address_map_get(&run->stream_indices, (uintptr_t)stream, &index);
    if (!run->is_touched[index]) {
        run->is_touched[index] = true;
        run->touched[run->touched_count++] = (uint16_t)index;
    }
    return (uint16_t)index;
}

static void observe(void *context, const struct allocator_event *event) {
    struct run *run = context;
    const uint16_t stream = stream_index(run, event->stream);
    switch (event->action) {
    case ALLOCATOR_ALLOC:
        run->block_bytes = event->block_size;
        run->active_bytes += event->block_size;
        run->stream_active_bytes[stream] += event->block_size;
        break;
    case ALLOCATOR_FREE_COMPLETED:
        run->active_bytes -= event->block_size;
        run->stream_active_bytes[stream] -= event->block_size;
        break;
    case ALLOCATOR_SEGMENT_ALLOC:
    case ALLOCATOR_SEGMENT_MAP:
        run->grown_count += run->recording && event->action == ALLOCATOR_SEGMENT_ALLOC;
        run->reserved_bytes += event->size;
        run->streams[stream].reserved_bytes += event->size;
        if (run->checking && run->recording)
            workload__check_segment(&run->check, run->operation, event->size);
        break;
    case ALLOCATOR_SEGMENT_FREE:
    case ALLOCATOR_SEGMENT_UNMAP:
        run->shrunk_count += run->recording && event->action == ALLOCATOR_SEGMENT_FREE;
        run->reserved_bytes -= event->size;
        run->streams[stream].reserved_bytes -= event->size;
        if (run->wanted_address != 0 && workload__device_next_address(run->wanted_address))
            run->wanted_address = 0;
        if (run->checking && run->recording && run->observer_status == BASE_OK)
            run->observer_status = workload__check_release(&run->check, (uintptr_t)event->address);
        break;
    case ALLOCATOR_FREE_REQUESTED:
    case ALLOCATOR_SNAPSHOT:
    case ALLOCATOR_OOM:
    case ALLOCATOR_EMPTY_CACHE:
    case ALLOCATOR_SEGMENT_RESERVE:
    case ALLOCATOR_SEGMENT_UNRESERVE:
    case ALLOCATOR_ACTION_COUNT:
        break;
    }
}

// A driver's pool does not say for whose requests it holds memory.
static uint64_t idle_of(const struct run *run, uint16_t stream) {
    const uint64_t reserved = run->streams[stream].reserved_bytes;
    const uint64_t active = run->stream_active_bytes[stream];
    return reserved > active ? reserved - active : 0;
}

// One moment: into the peaks and the series.
static void sample(struct run *run) {
    const struct workload_point point = {.event = run->event,
                                         .reserved_bytes = run->reserved_bytes,
                                         .allocated_bytes = run->allocated_bytes,
                                         .active_bytes = run->active_bytes};
    if (point.allocated_bytes > run->result->peak_allocated_bytes)
        run->result->peak_allocated_bytes = point.allocated_bytes;
    workload__series_add(&run->series, &point);
    for (size_t i = 0; i < run->touched_count; i++) {
        const uint16_t stream = run->touched[i];
        const uint64_t idle = idle_of(run, stream);
        if (idle > run->streams[stream].peak_idle_bytes)
            run->streams[stream].peak_idle_bytes = idle;
        run->is_touched[stream] = false;
    }
    run->touched_count = 0;
}

static void count_alloc(struct run *run, uint32_t slot, uint16_t stream) {
    run->slots[slot] = (struct slot){.block_bytes = run->block_bytes, .stream = stream};
    run->allocated_bytes += run->block_bytes;
    run->streams[stream].allocated_bytes += run->block_bytes;
}

static void count_free(struct run *run, uint32_t slot) {
    run->allocated_bytes -= run->slots[slot].block_bytes;
    run->streams[run->slots[slot].stream].allocated_bytes -= run->slots[slot].block_bytes;
}

//--------------------------------------------------------------------------------------------------
// Operations.

static enum base_status out_of_memory(struct run *run, uint64_t size) {
    struct workload_replay_result *result = run->result;
    result->out_of_memory = true;
    result->out_of_memory_event = run->event;
    result->out_of_memory_size_bytes = size;
    (void)strncpy(result->out_of_memory_message, base_status_message(),
                  sizeof result->out_of_memory_message - 1);
    return BASE_OK;
}

// Offers the device the address of the segment that the recording took at this operation, if it
// took one. Where memory is held now, the offer waits for its release (see observe).
static void offer_address(struct run *run) {
    const struct workload_replay_plan *plan = run->plan;
    if (!run->with_addresses) return;
    while (run->segment_cursor < plan->segment_count &&
           plan->segments[run->segment_cursor].operation == run->operation) {
        const struct workload__segment_event *segment = &plan->segments[run->segment_cursor++];
        run->offered = true;
        if (segment->is_mapped) {
            // Where a new range begins; the device passes over what lies in one that is there.
            (void)workload__device_next_range(segment->address);
            continue;
        }
        run->wanted_address = segment->address;
        if (workload__device_next_address(run->wanted_address)) run->wanted_address = 0;
    }
}

static enum base_status ask(struct run *run, const struct workload__operation *operation,
                            void **pointer) {
    offer_address(run);
    enum base_status status = allocator_malloc(run->allocator, 0, operation->size,
                                               run->device.streams[operation->stream], pointer);
    if (run->offered) workload__device_next_address_clear();
    run->offered = false;
    run->wanted_address = 0;
    return status;
}

// Frees that the request under way waited for in the recording are done after it, also where it had
// not to wait now.
static void pass_inside_fences(struct run *run) {
    for (size_t i = run->operation; i > 0; i--) {
        const struct workload__operation *before = &run->plan->operations[i - 1];
        if (before->kind != WORKLOAD__FREE_COMPLETE || !before->inside_request) break;
        workload__device_fence_pass(&run->device, before->stream, before->size);
    }
}

static enum base_status do_alloc(struct run *run, const struct workload__operation *operation) {
    void *pointer = NULL;
    run->block_bytes = 0; // a request of 0 bytes has no event
    enum base_status status = ask(run, operation, &pointer);
    if (status == BASE_OUT_OF_MEMORY) return out_of_memory(run, operation->size);
    if (status != BASE_OK) return status;
    run->pointers[operation->slot] = pointer;
    count_alloc(run, operation->slot, operation->stream);
    run->event++;
    if (run->checking) workload__check_alloc(&run->check, run->operation, pointer);
    pass_inside_fences(run);
    return BASE_OK;
}

// The recording's program went on after this failure, so the replay does: a block that is had now
// is given back.
static enum base_status do_alloc_failed(struct run *run,
                                        const struct workload__operation *operation) {
    void *pointer = NULL;
    run->block_bytes = 0;
    enum base_status status = ask(run, operation, &pointer);
    pass_inside_fences(run);
    run->event++;
    if (status == BASE_OUT_OF_MEMORY) return BASE_OK;
    if (status != BASE_OK) return status;
    run->allocated_bytes += run->block_bytes;
    sample(run);
    run->allocated_bytes -= run->block_bytes;
    return allocator_free(run->allocator, pointer);
}

static enum base_status do_free(struct run *run, const struct workload__operation *operation) {
    count_free(run, operation->slot);
    run->event++;
    return allocator_free(run->allocator, run->pointers[operation->slot]);
}

static enum base_status do_free_request(struct run *run,
                                        const struct workload__operation *operation) {
    struct slot *slot = &run->slots[operation->slot];
    count_free(run, operation->slot);
    slot->requested = true;
    if (run->operation >= run->plan->start_operation_count) run->event++;
    if (operation->stream >= run->device.side_stream_count) return BASE_OK;
    const cudaStream_t side_stream = run->device.side_streams[operation->stream];
    enum base_status status =
        allocator_record_stream(run->allocator, run->pointers[operation->slot], side_stream);
    if (status == BASE_UNSUPPORTED) return BASE_OK;
    if (status != BASE_OK) return status;
    slot->fenced = true;
    run->device.fence_counts[operation->stream]++;
    return allocator_free(run->allocator, run->pointers[operation->slot]);
}

static enum base_status do_free_complete(struct run *run,
                                         const struct workload__operation *operation) {
    struct slot *slot = &run->slots[operation->slot];
    slot->requested = false;
    if (!slot->fenced) return allocator_free(run->allocator, run->pointers[operation->slot]);
    if (!operation->inside_request)
        workload__device_fence_pass(&run->device, operation->stream, operation->size);
    return BASE_OK;
}

static enum base_status do_operation(struct run *run, const struct workload__operation *operation) {
    switch ((enum workload__operation_kind)operation->kind) {
    case WORKLOAD__ALLOC:
        return do_alloc(run, operation);
    case WORKLOAD__ALLOC_FAILED:
        return do_alloc_failed(run, operation);
    case WORKLOAD__FREE:
        return do_free(run, operation);
    case WORKLOAD__FREE_REQUEST:
        return do_free_request(run, operation);
    case WORKLOAD__FREE_COMPLETE:
        return do_free_complete(run, operation);
    case WORKLOAD__EMPTY_CACHE:
        return workload__pools_empty_cache(&run->pools, (uint16_t)operation->slot);
    case WORKLOAD__POOL_ROUTE:
        return workload__pools_route(&run->pools, (uint16_t)operation->slot);
    case WORKLOAD__POOL_RELEASE:
        return workload__pools_release(&run->pools, (uint16_t)operation->slot);
    }
    return BASE_OK;
}

static enum base_status do_operations(struct run *run) {
    const struct workload_replay_plan *plan = run->plan;
    for (run->operation = 0; run->operation < plan->operation_count; run->operation++) {
        if (run->operation == plan->start_operation_count) sample(run);
        if ((run->operation & 1023) == 0 && base_interrupted())
            return base_status_set(BASE_INTERRUPTED, "interrupted after %llu events",
                                   (unsigned long long)run->event);
        enum base_status status = do_operation(run, &plan->operations[run->operation]);
        if (status == BASE_OK) status = run->observer_status;
        if (status != BASE_OK) return base_status_prefix(status, "operation %zu", run->operation);
        if (run->checking) workload__check_operation_end(&run->check, run->operation);
        if (run->operation >= plan->start_operation_count) sample(run);
        if (run->result->out_of_memory) break;
    }
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// Before and after.

static enum base_status run_init(struct run *run) {
    const struct workload_replay_plan *plan = run->plan;
    enum base_status status = workload__series_init(&run->series, plan->event_count);
    if (status == BASE_OK) status = workload__device_init(&run->device, plan);
    if (status == BASE_OK) status = workload__pools_init(&run->pools, plan, run->allocator);
    if (status != BASE_OK) return status;
    const size_t stream_count = (size_t)plan->trace->stream_count + 1;
    run->pointers = calloc((size_t)plan->slot_count + 1, sizeof(void *));
    run->slots = calloc((size_t)plan->slot_count + 1, sizeof *run->slots);
    run->streams = calloc(stream_count, sizeof *run->streams);
    run->stream_active_bytes = calloc(stream_count, sizeof *run->stream_active_bytes);
    run->touched = calloc(stream_count, sizeof *run->touched);
    run->is_touched = calloc(stream_count, sizeof *run->is_touched);
    if (run->pointers == NULL || run->slots == NULL || run->streams == NULL ||
        run->stream_active_bytes == NULL || run->touched == NULL || run->is_touched == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %u live blocks", plan->slot_count);
    for (uint32_t i = 1; i < plan->trace->stream_count && status == BASE_OK; i++)
        if (run->device.streams[i] != NULL)
            status =
                base_address_map_set(&run->stream_indices, (uintptr_t)run->device.streams[i], i);
    workload__check_init(&run->check, plan);
    run->with_addresses = run->options->recorded_addresses && workload__device_takes_addresses();
    run->checking =
        run->options->recorded_configuration && run->with_addresses && plan->has_placement;
    return status;
}

static void run_deinit(struct run *run) {
    workload__pools_deinit(&run->pools);
    workload__device_deinit(&run->device);
    base_address_map_deinit(&run->stream_indices);
    workload__series_deinit(&run->series);
    workload__check_deinit(&run->check);
    free(run->pointers);
    free(run->slots);
    free(run->streams);
    free(run->stream_active_bytes);
    free(run->touched);
    free(run->is_touched);
}

static enum base_status make_start(struct run *run) {
    const struct workload_replay_plan *plan = run->plan;
    bool exact = false;
    enum base_status status = workload__start_make(
        plan, run->allocator, &run->device, &run->pools,
        run->options->recorded_configuration && run->with_addresses, run->pointers, &exact);
    if (status == BASE_OUT_OF_MEMORY) {
        run->result->start_assumed = true;
        return out_of_memory(run, 0);
    }
    run->result->start_assumed = !exact;
    return status;
}

// The blocks of the start state as the allocator has them, which may be larger than the
// recording's.
static enum base_status count_start(struct run *run) {
    const struct workload_replay_plan *plan = run->plan;
    struct allocator_snapshot snapshot;
    if (plan->start.segment_count == 0) return BASE_OK;
    enum base_status status = allocator_snapshot(run->allocator, &snapshot);
    const bool is_known = status != BASE_UNSUPPORTED;
    if (status != BASE_OK && is_known) return status;
    struct base_address_map sizes = {0};
    status = BASE_OK;
    for (size_t i = 0; i < snapshot.block_count && status == BASE_OK; i++)
        status = base_address_map_set(&sizes, (uintptr_t)snapshot.blocks[i].address, i);
    for (size_t i = 0; i < plan->start.segment_count && status == BASE_OK; i++) {
        const struct trace_segment *segment = &plan->start.segments[i];
        for (uint32_t j = 0; j < segment->block_count; j++) {
            const size_t index = segment->block_first + j;
            uint64_t found;
            if (plan->start.blocks[index].state == TRACE_BLOCK_INACTIVE) continue;
            const uint32_t slot = plan->start_slots[index];
            if (base_address_map_get(&sizes, (uintptr_t)run->pointers[slot], &found))
                run->block_bytes = snapshot.blocks[found].size;
            else if (is_known)
                continue;
            else // as it was asked for
                run->block_bytes = plan->start.blocks[index].requested_size;
            count_alloc(run, slot, segment->stream);
        }
    }
    base_address_map_deinit(&sizes);
    allocator_snapshot_deinit(&snapshot);
    return status;
}

static enum base_status take_streams(struct run *run) {
    struct workload_replay_result *result = run->result;
    const struct trace *trace = run->plan->trace;
    result->streams = calloc((size_t)trace->stream_count + 1, sizeof *result->streams);
    if (result->streams == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %u streams", trace->stream_count);
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        struct workload_stream_use *use = &run->streams[i];
        if (i != 0 && run->device.streams[i] == NULL) continue;
        use->stream = trace->streams[i];
        use->idle_bytes = idle_of(run, (uint16_t)i);
        result->streams[result->stream_count++] = *use;
    }
    return BASE_OK;
}

static enum base_status check_layout(struct run *run, const struct allocator_snapshot *snapshot) {
    struct base_address_map requested = {0};
    enum base_status status = BASE_OK;
    for (uint32_t slot = 0; slot < run->plan->slot_count && status == BASE_OK; slot++)
        if (run->slots[slot].requested && !run->slots[slot].fenced)
            status = base_address_map_set(&requested, (uintptr_t)run->pointers[slot], slot);
    if (status == BASE_OK) workload__check_layout(&run->check, snapshot, &requested);
    base_address_map_deinit(&requested);
    return status;
}

// The streams end with the run; who reads the layout knows the recording's.
static void name_streams_as_recorded(struct run *run, struct allocator_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->segment_count; i++) {
        uint64_t index = 0;
        (void)base_address_map_get(&run->stream_indices, (uintptr_t)snapshot->segments[i].stream,
                                   &index);
        snapshot->segments[i].stream = (cudaStream_t)(uintptr_t)run->plan->trace->streams[index];
    }
}

static enum base_status finish(struct run *run) {
    struct workload_replay_result *result = run->result;
    struct allocator_snapshot snapshot = {0};
    enum base_status status = allocator_stats(run->allocator, 0, &result->stats);
    if (status == BASE_OK && (run->checking || run->options->snapshot))
        status = allocator_snapshot(run->allocator, &snapshot);
    if (status == BASE_UNSUPPORTED) status = BASE_OK; // then it stays empty
    if (status == BASE_OK) status = take_streams(run);
    if (status == BASE_OK && run->checking) {
        status = check_layout(run, &snapshot);
        workload__check_finish(&run->check);
        result->self_check = run->check.result;
    }
    if (status == BASE_OK && run->options->snapshot) {
        result->final_snapshot = snapshot;
        name_streams_as_recorded(run, &result->final_snapshot);
    } else {
        allocator_snapshot_deinit(&snapshot);
    }
    result->series = workload__series_take(&run->series, &result->series_count);
    const struct allocator_stats *stats = &result->stats;
    result->event_count = run->event;
    result->peak_reserved_bytes = (uint64_t)stats->reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    result->peak_active_bytes = (uint64_t)stats->active_bytes[ALLOCATOR_STAT_ALL].peak;
    result->peak_requested_bytes = (uint64_t)stats->requested_bytes[ALLOCATOR_STAT_ALL].peak;
    result->device_malloc_count = (uint64_t)stats->num_device_alloc;
    result->device_free_count = (uint64_t)stats->num_device_free;
    if (result->device_malloc_count == 0) { // it does not count: a driver's pool grew and shrank
        result->device_malloc_count = run->grown_count;
        result->device_free_count = run->shrunk_count;
    }
    if (result->peak_reserved_bytes > 0)
        result->fragmentation =
            1 - (double)result->peak_allocated_bytes / (double)result->peak_reserved_bytes;
    return status;
}

enum base_status workload_replay_run(const struct workload_replay_plan *plan,
                                     struct allocator *allocator,
                                     const struct workload_replay_options *options,
                                     struct workload_replay_result *result) {
    struct run run = {.plan = plan, .allocator = allocator, .options = options, .result = result};
    *result = (struct workload_replay_result){0};
    enum base_status status = run_init(&run);
    const struct allocator_observer observer = {.event = observe, .context = &run};
    if (status == BASE_OK) status = allocator_set_observer(allocator, &observer);
    if (status == BASE_OK) status = make_start(&run);
    if (status == BASE_OK && !result->out_of_memory) status = count_start(&run);
    run.recording = true;
    if (status == BASE_OK && !result->out_of_memory) status = do_operations(&run);
    if (status == BASE_OK) status = finish(&run);
    (void)allocator_set_observer(allocator, NULL);
    run_deinit(&run);
    if (status != BASE_OK) workload_replay_result_deinit(result);
    return status;
}

void workload_replay_result_deinit(struct workload_replay_result *result) {
    free(result->series);
    free(result->streams);
    allocator_snapshot_deinit(&result->final_snapshot);
    *result = (struct workload_replay_result){0};
}
