// See workload_watch.h.
#include "bench/workload_watch.h"

#include "base/check.h"
#include "base/thread.h"
#include "workload/wrapper.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

struct workload_watch {
    struct workload_wrapper wrapper;
    struct allocator_operations operations;
    enum workload_watch_kind kind;
    _Atomic uint64_t cpu_calls, cpu_ns;
    struct base_mutex mutex; // of STALLS: held throughout a call; guards the rest
    struct workload_watch_totals totals;
};

static struct workload_watch *watch_of(struct allocator *allocator) {
    return (struct workload_watch *)(void *)allocator;
}

//--------------------------------------------------------------------------------------------------
// Clocks.

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    BASE_CHECK_EQ(clock_gettime(clock, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t workload_watch_thread_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
uint64_t workload_watch_process_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

static int compare_ns(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

#define CLOCK_READING_COUNT 4095

uint64_t workload_watch_clock_ns(void) {
    uint64_t spent[CLOCK_READING_COUNT];
    for (int i = 0; i < CLOCK_READING_COUNT; ++i) {
        const uint64_t start = workload_watch_thread_ns();
        spent[i] = workload_watch_thread_ns() - start;
    }
    qsort(spent, CLOCK_READING_COUNT, sizeof *spent, compare_ns);
    return spent[CLOCK_READING_COUNT / 2];
}

//--------------------------------------------------------------------------------------------------
// Around a call.

// Where the clock stood before it, and what device calls had cost by then. A schedule that takes
// turns can pass to another thread at each look, so there are few.
struct moment {
    uint64_t ns, call_ns;
};

#ifdef TIDEMARK_SIMULATOR

static struct moment moment_begin(void) {
    sim_busy_begin();
    return (struct moment){.ns = sim_time_ns(), .call_ns = sim_call_time().typical_ns};
}

static void totals_add(struct workload_watch_totals *totals, struct moment before) {
    const uint64_t stall_ns = sim_time_ns() - before.ns;
    ++totals->calls;
    if (stall_ns == 0) return;
    const uint64_t call_ns = sim_call_time().typical_ns - before.call_ns;
    const uint64_t busy_ns = sim_busy_ns();
    totals->stall_ns += stall_ns;
    if (stall_ns > totals->longest_ns) totals->longest_ns = stall_ns;
    if (stall_ns > busy_ns) totals->dry_ns += stall_ns - busy_ns;
    if (stall_ns > call_ns) {
        totals->wait_ns += stall_ns - call_ns;
        ++totals->waits;
    }
}

#else

static struct moment moment_begin(void) { return (struct moment){.ns = clock_ns(CLOCK_MONOTONIC)}; }

static void totals_add(struct workload_watch_totals *totals, struct moment before) {
    const uint64_t stall_ns = clock_ns(CLOCK_MONOTONIC) - before.ns;
    ++totals->calls;
    totals->stall_ns += stall_ns;
    if (stall_ns > totals->longest_ns) totals->longest_ns = stall_ns;
}

#endif

// As many as there are ways into an allocator would need as many pairs of clocks: one function
// takes them all.
struct call {
    enum { CALL_MALLOC, CALL_FREE, CALL_RECORD_STREAM, CALL_EMPTY_CACHE } what;
    int device;
    size_t size;
    cudaStream_t stream;
    void **result, *pointer;
};

static enum base_status call_pass(struct allocator *inner, const struct call *call) {
    switch (call->what) {
    case CALL_MALLOC:
        return allocator_malloc(inner, call->device, call->size, call->stream, call->result);
    case CALL_FREE:
        return allocator_free(inner, call->pointer);
    case CALL_RECORD_STREAM:
        return allocator_record_stream(inner, call->pointer, call->stream);
    case CALL_EMPTY_CACHE:
        break;
    }
    return allocator_empty_cache(inner);
}

static enum base_status call_watch(struct allocator *allocator, const struct call *call) {
    struct workload_watch *const watch = watch_of(allocator);
    struct allocator *const inner = workload_wrapper_inner(allocator);
    if (watch->kind == WORKLOAD_WATCH_CPU) {
        const uint64_t start = workload_watch_thread_ns();
        const enum base_status status = call_pass(inner, call);
        const uint64_t spent = workload_watch_thread_ns() - start;
        atomic_fetch_add_explicit(&watch->cpu_ns, spent, memory_order_relaxed);
        atomic_fetch_add_explicit(&watch->cpu_calls, 1, memory_order_relaxed);
        return status;
    }
    base_mutex_lock(&watch->mutex);
    const struct moment before = moment_begin();
    const enum base_status status = call_pass(inner, call);
    totals_add(&watch->totals, before);
    base_mutex_unlock(&watch->mutex);
    return status;
}

static enum base_status watch_malloc(struct allocator *allocator, int device, size_t size,
                                     cudaStream_t stream, void **pointer) {
    return call_watch(allocator, &(struct call){.what = CALL_MALLOC,
                                                .device = device,
                                                .size = size,
                                                .stream = stream,
                                                .result = pointer});
}

static enum base_status watch_free(struct allocator *allocator, void *pointer) {
    return call_watch(allocator, &(struct call){.what = CALL_FREE, .pointer = pointer});
}

static enum base_status watch_record_stream(struct allocator *allocator, void *pointer,
                                            cudaStream_t stream) {
    return call_watch(
        allocator,
        &(struct call){.what = CALL_RECORD_STREAM, .pointer = pointer, .stream = stream});
}

static enum base_status watch_empty_cache(struct allocator *allocator) {
    return call_watch(allocator, &(struct call){.what = CALL_EMPTY_CACHE});
}

//--------------------------------------------------------------------------------------------------
// The watch.

enum base_status workload_watch_create(struct allocator *inner, enum workload_watch_kind kind,
                                       struct workload_watch **watch) {
    *watch = calloc(1, sizeof **watch);
    if (*watch == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a watch");
    struct allocator_operations *const operations = &(*watch)->operations;
    *operations = workload_wrapper_operations;
    operations->name = "watch";
    operations->malloc = watch_malloc;
    operations->free = watch_free;
    operations->record_stream = watch_record_stream;
    operations->empty_cache = watch_empty_cache;
    (*watch)->wrapper = (struct workload_wrapper){{operations}, inner};
    (*watch)->kind = kind;
    base_mutex_init(&(*watch)->mutex);
    return BASE_OK;
}

void workload_watch_destroy(struct workload_watch *watch) {
    if (watch == NULL) return;
    base_mutex_deinit(&watch->mutex);
    free(watch);
}

struct allocator *workload_watch_allocator(struct workload_watch *watch) {
    return &watch->wrapper.allocator;
}

struct workload_watch_totals workload_watch_totals(struct workload_watch *watch) {
    base_mutex_lock(&watch->mutex);
    struct workload_watch_totals totals = watch->totals;
    base_mutex_unlock(&watch->mutex);
    if (watch->kind == WORKLOAD_WATCH_CPU) {
        totals.calls = atomic_load_explicit(&watch->cpu_calls, memory_order_relaxed);
        totals.cpu_ns = atomic_load_explicit(&watch->cpu_ns, memory_order_relaxed);
    }
    return totals;
}
