// The timed pass. Everything that could cost time beside the allocator is done before the clock
// starts: operations become calls with their stream in hand, bookkeeping drops out. Deferred frees
// are issued where the recording completed them.
#include "workload/replay_device.h"
#include "workload/replay_pools.h"
#include "workload/replay_start.h"

#include "base/progress.h"

#include <stdlib.h>

enum call_kind {
    CALL_MALLOC,
    CALL_FREE,
    CALL_TRY_MALLOC,
    // No events:
    CALL_EMPTY_CACHE,
    CALL_POOL_ROUTE,
    CALL_POOL_RELEASE
};

struct call {
    size_t size;
    cudaStream_t stream;
    uint32_t slot;
    uint32_t kind;
};

static struct call *make_calls(const struct workload_replay_plan *plan,
                               const struct workload__device *device, size_t *count) {
    static const enum call_kind kinds[] = {
        [WORKLOAD__ALLOC] = CALL_MALLOC,
        [WORKLOAD__ALLOC_FAILED] = CALL_TRY_MALLOC,
        [WORKLOAD__FREE] = CALL_FREE,
        [WORKLOAD__FREE_REQUEST] = CALL_FREE,
        [WORKLOAD__FREE_COMPLETE] = CALL_FREE,
        [WORKLOAD__EMPTY_CACHE] = CALL_EMPTY_CACHE,
        [WORKLOAD__POOL_ROUTE] = CALL_POOL_ROUTE,
        [WORKLOAD__POOL_RELEASE] = CALL_POOL_RELEASE};
    struct call *calls = malloc((plan->operation_count + 1) * sizeof *calls);
    *count = 0;
    for (size_t i = 0; i < plan->operation_count && calls != NULL; i++) {
        const struct workload__operation *operation = &plan->operations[i];
        if (operation->kind == WORKLOAD__FREE_REQUEST) continue;
        struct call *call = &calls[(*count)++];
        *call = (struct call){.kind = kinds[operation->kind], .slot = operation->slot};
        if (call->kind != CALL_MALLOC && call->kind != CALL_TRY_MALLOC) continue;
        call->size = operation->size;
        call->stream = device->streams[operation->stream];
    }
    return calls;
}

// The loop. Returns the events done; stops at the first status that is not BASE_OK.
static uint64_t run_calls(struct allocator *allocator, struct workload__pools *pools,
                          const struct call *calls, size_t count, void **pointers,
                          enum base_status *status) {
    uint64_t other_count = 0; // calls that are no events
    for (size_t i = 0; i < count; i++) {
        const struct call *call = &calls[i];
        void *pointer;
        switch ((enum call_kind)call->kind) {
        case CALL_MALLOC:
            *status =
                allocator_malloc(allocator, 0, call->size, call->stream, &pointers[call->slot]);
            break;
        case CALL_FREE:
            *status = allocator_free(allocator, pointers[call->slot]);
            break;
        case CALL_TRY_MALLOC:
            *status = allocator_malloc(allocator, 0, call->size, call->stream, &pointer);
            if (*status == BASE_OK)
                *status = allocator_free(allocator, pointer);
            else if (*status == BASE_OUT_OF_MEMORY)
                *status = BASE_OK;
            break;
        case CALL_EMPTY_CACHE:
            *status = workload__pools_empty_cache(pools, (uint16_t)call->slot);
            other_count++;
            break;
        case CALL_POOL_ROUTE:
            *status = workload__pools_route(pools, (uint16_t)call->slot);
            other_count++;
            break;
        case CALL_POOL_RELEASE:
            *status = workload__pools_release(pools, (uint16_t)call->slot);
            other_count++;
            break;
        }
        if (__builtin_expect(*status != BASE_OK, 0)) return i - other_count;
    }
    return count - other_count;
}

static enum base_status time_calls(const struct workload_replay_plan *plan,
                                   struct allocator *allocator,
                                   const struct workload__device *device,
                                   struct workload_replay_time *time) {
    size_t count;
    struct call *calls = make_calls(plan, device, &count);
    void **pointers = calloc((size_t)plan->slot_count + 1, sizeof(void *));
    enum base_status status = BASE_OK;
    struct workload__pools pools = {0};
    bool exact;
    if (calls == NULL || pointers == NULL)
        status =
            base_status_set(BASE_HOST_MEMORY, "no memory for %zu calls", plan->operation_count);
    if (status == BASE_OK) status = workload__pools_init(&pools, plan, allocator);
    if (status == BASE_OK)
        status = workload__start_make(plan, allocator, device, &pools, false, pointers, &exact);
    if (status == BASE_OK) {
        const double start_s = base_time_s();
        time->event_count = run_calls(allocator, &pools, calls, count, pointers, &status);
        time->total_s = base_time_s() - start_s;
    }
    workload__pools_deinit(&pools);
    free(calls);
    free(pointers);
    return status == BASE_OUT_OF_MEMORY ? BASE_OK : status;
}

enum base_status workload_replay_time(const struct workload_replay_plan *plan,
                                      struct allocator *allocator,
                                      struct workload_replay_time *time) {
    struct workload__device device;
    *time = (struct workload_replay_time){0};
    enum base_status status = workload__device_init(&device, plan);
    if (status != BASE_OK) return status;
    status = time_calls(plan, allocator, &device, time);
    workload__device_deinit(&device);
    return status;
}
