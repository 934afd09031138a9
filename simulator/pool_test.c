// Stream-ordered memory: addresses at once, reuse by each of the policies and by none, growth and
// release, trim, high-water marks, destruction with live blocks, rights of other devices, misuse.
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

#define CHUNK (32 * BASE_MIB)

static cudaMemPool_t pool; // the default one of device 0
static cudaStream_t s, t;

static void start(struct sim_options options) {
    if (options.capacity_bytes == 0)
        options.capacity_bytes = BASE_GIB;
    BASE_CHECK_EQ(sim_configure(&options), BASE_OK);
    BASE_CHECK_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking), cudaSuccess);
}

static void start_small(enum sim_numerics numerics) {
    start((struct sim_options){.numerics = numerics});
}

static char *take(uint64_t size, cudaStream_t stream) {
    void *pointer = NULL;
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, size, stream), cudaSuccess);
    return pointer;
}

static void give(void *pointer, cudaStream_t stream) {
    BASE_CHECK_EQ(cudaFreeAsync(pointer, stream), cudaSuccess);
}

static uint64_t attribute(cudaMemPool_t of, enum cudaMemPoolAttr which) {
    uint64_t value = 0;
    BASE_CHECK_EQ(cudaMemPoolGetAttribute(of, which, &value), cudaSuccess);
    return value;
}

static void threshold_set(uint64_t value) {
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value),
                  cudaSuccess);
}

static void policies_set(int follow_events, int opportunistic, int internal) {
    BASE_CHECK_EQ(
        cudaMemPoolSetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &follow_events),
        cudaSuccess);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &opportunistic),
                  cudaSuccess);
    BASE_CHECK_EQ(
        cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &internal),
        cudaSuccess);
}

static void memory_is_counted_as_reserved_and_used(enum sim_numerics numerics) {
    start_small(numerics);
    size_t free_bytes, total_bytes;
    char *a = take(1, s), *b = take(512, s), *c = take(513, t);
    BASE_CHECK_EQ((uint64_t)(uintptr_t)a % 512, 0);
    BASE_CHECK(b == a + 512 && c == b + 512);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 2048);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), CHUNK);
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK);
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(free_bytes, total_bytes - CHUNK);
    take(3 * CHUNK + 1, s); // as large as it must be, in whole pages
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 4 * CHUNK + SIM_PAGE_BYTES);
    give(a, s);
    give(b, s);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 3 * CHUNK + 512 + 1024);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), 3 * CHUNK + 512 + 2048);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemHigh), 4 * CHUNK + SIM_PAGE_BYTES);
}

static void high_water_marks_begin_again_at_what_is_current(void) {
    start_small(SIM_NUMERICS_OFF);
    uint64_t zero = 0, one = 1;
    char *a = take(10 * BASE_MIB, s), *b = take(40 * BASE_MIB, s);
    give(b, s);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), 50 * BASE_MIB);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero), cudaSuccess);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), 10 * BASE_MIB);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), CHUNK);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemHigh), CHUNK + 40 * BASE_MIB);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero),
                  cudaSuccess);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemHigh), CHUNK);
    give(a, s);
}

static void misuse_gets_the_codes_of_cuda(void) {
    start((struct sim_options){.device_count = 2, .numerics = SIM_NUMERICS_OFF});
    void *pointer = &pointer, *plain;
    cudaStream_t gone;
    int value = 1;
    uint64_t wide = 0;
    cudaMemPool_t other;
    BASE_CHECK_EQ(cudaStreamCreate(&gone), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(gone), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocAsync(NULL, 1, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 1, (cudaStream_t)(uintptr_t)1234567),
                  cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 1, gone), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, BASE_GIB + 1, s), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, SIZE_MAX, s), cudaErrorMemoryAllocation);
    BASE_CHECK(pointer == &pointer);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 0, s), cudaSuccess);
    BASE_CHECK(pointer == NULL);
    BASE_CHECK_EQ(cudaMallocFromPoolAsync(&pointer, 1, NULL, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMallocFromPoolAsync(&pointer, 1, (cudaMemPool_t)(uintptr_t)99, s),
                  cudaErrorInvalidValue);

    char *block = take(1000, s);
    BASE_CHECK_EQ(cudaMalloc(&plain, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeAsync(NULL, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeAsync(plain, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeAsync(block + 512, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeAsync(&pointer, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeAsync(block, gone), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaFree(block + 512), cudaErrorInvalidValue);
    give(block, s);
    BASE_CHECK_EQ(cudaFreeAsync(block, s), cudaErrorInvalidValue); // twice
    BASE_CHECK_EQ(cudaFree(block), cudaErrorInvalidValue);

    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)0, &wide),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)9, &wide),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)9, &wide),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, NULL),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &wide),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolSetAttribute(NULL, cudaMemPoolReuseAllowOpportunistic, &value),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolDestroy(pool), cudaErrorInvalidValue); // a default pool
    BASE_CHECK_EQ(cudaMemPoolDestroy(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaDeviceGetDefaultMemPool(&other, 2), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceGetMemPool(NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaDeviceSetMemPool(-1, pool), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceSetMemPool(1, pool), cudaErrorInvalidValue); // of device 0
    BASE_CHECK_EQ(cudaDeviceSetMemPool(0, NULL), cudaErrorInvalidValue);
}

static void the_same_stream_takes_again_what_it_freed(void) {
    start_small(SIM_NUMERICS_OFF);
    policies_set(0, 0, 0);
    sim_stream_hold(s, true);
    char *a = take(BASE_MIB, s);
    take(BASE_MIB, s);
    give(a, s);
    BASE_CHECK(take(BASE_MIB, s) == a); // the free has not even run
    BASE_CHECK_GT(sim_stream_pending(s), 0);
}

// What T frees while it is held, and S asks for.
static char *freed_by_t(uint64_t size) {
    sim_stream_hold(t, true);
    char *a = take(size, t);
    give(a, t);
    return a;
}

static void reuse_follows_events_where_that_is_allowed(bool eager) {
    for (int follow = 0; follow <= 1; ++follow) {
        start_small(SIM_NUMERICS_OFF);
        policies_set(follow, 0, 0);
        cudaEvent_t before, after;
        cudaStream_t u;
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&u, cudaStreamNonBlocking), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&before, cudaEventDisableTiming), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&after, cudaEventDisableTiming), cudaSuccess);
        sim_stream_hold(t, !eager);
        char *kept = take(BASE_MIB, t), *a = take(BASE_MIB, t);
        give(kept, t); // so that there are frees to be told apart
        BASE_CHECK_EQ(cudaEventRecord(before, t), cudaSuccess);
        give(a, t);
        BASE_CHECK_EQ(cudaEventRecord(after, t), cudaSuccess);
        const char *unordered = take(BASE_MIB, s);
        BASE_CHECK(unordered != a && unordered != kept);
        BASE_CHECK_EQ(cudaStreamWaitEvent(s, before, 0), cudaSuccess);
        const char *first = take(BASE_MIB, s);
        BASE_CHECK(first != a && first != kept); // merged with A, which is not behind it
        BASE_CHECK_EQ(cudaStreamWaitEvent(u, after, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(after, u), cudaSuccess); // over a second stream
        BASE_CHECK_EQ(cudaStreamWaitEvent(s, after, 0), cudaSuccess);
        const char *second = take(2 * BASE_MIB, s);
        BASE_CHECK_EQ(second == kept, follow == 1);
    }
}

static void reuse_follows_the_legacy_stream(void) {
    start_small(SIM_NUMERICS_OFF);
    policies_set(1, 0, 0);
    cudaStream_t blocking, other;
    BASE_CHECK_EQ(cudaStreamCreate(&blocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&other), cudaSuccess);
    char *a = take(BASE_MIB, blocking);
    give(a, blocking);
    BASE_CHECK(take(BASE_MIB, other) != a);
    BASE_CHECK(take(BASE_MIB, s) != a);
    char *legacy = take(BASE_MIB, NULL); // behind all blocking streams
    BASE_CHECK(legacy == a);
    give(legacy, NULL);
    BASE_CHECK(take(BASE_MIB, s) != a); // a NonBlocking stream is not behind it
    BASE_CHECK(take(BASE_MIB, other) == a);
}

static void opportunistic_reuse_takes_what_has_run(void) {
    for (int opportunistic = 0; opportunistic <= 1; ++opportunistic) {
        start_small(SIM_NUMERICS_OFF);
        policies_set(0, opportunistic, 0);
        char *a = freed_by_t(BASE_MIB);
        BASE_CHECK(take(BASE_MIB, s) != a);
        sim_stream_hold(t, false); // the free runs; the host does not look
        BASE_CHECK_EQ(take(BASE_MIB, s) == a, opportunistic == 1);
    }
}

static void internal_dependencies_come_when_the_device_is_full(void) {
    for (int internal = 0; internal <= 1; ++internal) {
        start((struct sim_options){.capacity_bytes = 2 * CHUNK, .numerics = SIM_NUMERICS_OFF});
        policies_set(0, 0, internal);
        char *a = freed_by_t(CHUNK);
        BASE_CHECK(take(CHUNK, s) != a); // there was room
        void *b = NULL;
        const cudaError_t error = cudaMallocAsync(&b, CHUNK, s);
        BASE_CHECK_EQ(error, internal ? cudaSuccess : cudaErrorMemoryAllocation);
        if (!internal)
            continue;
        BASE_CHECK(b == a);
        BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorNotReady); // it waits for T
        sim_stream_hold(t, false);
        BASE_CHECK_EQ(cudaStreamQuery(s), cudaSuccess);
    }
}

static void growth_takes_less_where_there_is_less(void) {
    start((struct sim_options){.capacity_bytes = CHUNK + 6 * SIM_PAGE_BYTES,
                               .numerics = SIM_NUMERICS_OFF});
    void *pointer;
    take(CHUNK, s);
    take(SIM_PAGE_BYTES + 1, s); // 32 MiB are not left
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK + 2 * SIM_PAGE_BYTES);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 5 * SIM_PAGE_BYTES, s), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 4 * SIM_PAGE_BYTES), cudaSuccess); // shares the memory
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
}

static void free_memory_of_other_pools_gives_way(void) {
    start((struct sim_options){.capacity_bytes = 2 * CHUNK, .numerics = SIM_NUMERICS_OFF});
    threshold_set(UINT64_MAX);
    cudaMemPool_t second;
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {cudaMemLocationTypeDevice, 0},
    };
    BASE_CHECK_EQ(cudaMemPoolCreate(&second, &properties), cudaSuccess);
    give(take(2 * CHUNK, s), s);
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 2 * CHUNK);
    void *pointer;
    BASE_CHECK_EQ(cudaMallocFromPoolAsync(&pointer, CHUNK, second, s), cudaSuccess);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0);
    BASE_CHECK_EQ(attribute(second, cudaMemPoolAttrReservedMemCurrent), CHUNK);
}

enum wait {
    WAIT_STREAM,
    WAIT_EVENT,
    WAIT_DEVICE,
    WAIT_CONTEXT,
    WAIT_COUNT,
};

static void wait_for(enum wait wait, cudaStream_t stream, cudaEvent_t event) {
    switch (wait) {
    case WAIT_STREAM: BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess); break;
    case WAIT_EVENT: BASE_CHECK_EQ(cudaEventSynchronize(event), cudaSuccess); break;
    case WAIT_DEVICE: BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess); break;
    default: BASE_CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
}

static void a_wait_releases_what_is_above_the_threshold(void) {
    for (int wait = 0; wait < WAIT_COUNT; ++wait) {
        for (uint64_t threshold = 0; threshold <= 4 * CHUNK; threshold += CHUNK) {
            base_check_context("wait %d, threshold %llu", wait, (unsigned long long)threshold);
            start_small(SIM_NUMERICS_ON);
            threshold_set(threshold);
            cudaEvent_t event;
            BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
            char *a = take(CHUNK, s), *b = take(CHUNK, s), *c = take(CHUNK, s);
            give(a, s);
            give(c, s);
            BASE_CHECK_EQ(cudaEventRecord(event, s), cudaSuccess);
            BASE_CHECK_EQ(sim_used_bytes(0), 3 * CHUNK); // not at the free
            wait_for((enum wait)wait, s, event);
            const uint64_t kept = threshold < CHUNK       ? CHUNK // B is live
                                  : threshold > 3 * CHUNK ? 3 * CHUNK
                                                          : threshold;
            BASE_CHECK_EQ(sim_used_bytes(0), kept);
            BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), kept);
            give(b, s);
        }
    }
    base_check_context(NULL);
}

static void a_wait_for_something_else_releases_nothing(void) {
    start_small(SIM_NUMERICS_OFF);
    cudaEvent_t early;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&early, cudaEventDisableTiming), cudaSuccess);
    char *a = take(CHUNK, s);
    BASE_CHECK_EQ(cudaEventRecord(early, s), cudaSuccess);
    give(a, s);
    BASE_CHECK_EQ(cudaStreamSynchronize(t), cudaSuccess);
    BASE_CHECK_EQ(cudaEventSynchronize(early), cudaSuccess); // before the free
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess); // the host has not seen it
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK);
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaSuccess); // now it has
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void a_wait_sees_what_its_stream_waited_for(void) {
    start_small(SIM_NUMERICS_OFF);
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    give(take(CHUNK, s), s);
    BASE_CHECK_EQ(cudaEventRecord(event, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, event, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(t), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void a_stream_that_is_gone_keeps_nothing_back(void) {
    start_small(SIM_NUMERICS_OFF);
    give(take(CHUNK, s), s);
    BASE_CHECK_EQ(cudaStreamDestroy(s), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void trim_keeps_what_it_is_told_to(void) {
    start_small(SIM_NUMERICS_OFF);
    threshold_set(UINT64_MAX);
    char *blocks[5];
    for (int i = 0; i < 5; ++i)
        blocks[i] = take(CHUNK, s);
    for (int i = 0; i < 4; ++i)
        give(blocks[i], s);
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 5 * CHUNK);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 6 * CHUNK), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 5 * CHUNK);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 3 * CHUNK), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 3 * CHUNK);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), CHUNK); // one is live
    memset(blocks, 0, sizeof blocks);
}

static void pools_of_ones_own_can_be_current_and_destroyed(void) {
    start((struct sim_options){.device_count = 2, .numerics = SIM_NUMERICS_OFF});
    struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {cudaMemLocationTypeDevice, 0},
    };
    cudaMemPool_t own, current;
    void *pointer;
    BASE_CHECK_EQ(cudaMemPoolCreate(NULL, &properties), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolCreate(&own, NULL), cudaErrorInvalidValue);
    properties.location.id = 2;
    BASE_CHECK_EQ(cudaMemPoolCreate(&own, &properties), cudaErrorInvalidValue);
    properties.location.id = 0;
    properties.allocType = cudaMemAllocationTypeInvalid;
    BASE_CHECK_EQ(cudaMemPoolCreate(&own, &properties), cudaErrorInvalidValue);
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeFabric;
    BASE_CHECK_EQ(cudaMemPoolCreate(&own, &properties), cudaErrorNotSupported);
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.maxSize = 3 * SIM_PAGE_BYTES;
    BASE_CHECK_EQ(cudaMemPoolCreate(&own, &properties), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
    BASE_CHECK(current == pool);
    BASE_CHECK_EQ(cudaDeviceSetMemPool(0, own), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
    BASE_CHECK(current == own);
    char *a = take(2 * SIM_PAGE_BYTES, s);
    BASE_CHECK_EQ(attribute(own, cudaMemPoolAttrReservedMemCurrent), 2 * SIM_PAGE_BYTES);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0);
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 2 * SIM_PAGE_BYTES, s), cudaErrorMemoryAllocation);

    BASE_CHECK_EQ(cudaMemPoolDestroy(own), cudaSuccess); // with a live block
    BASE_CHECK_EQ(cudaMemPoolDestroy(own), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMallocFromPoolAsync(&pointer, 1, own, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
    BASE_CHECK(current == pool);
    BASE_CHECK_EQ(sim_used_bytes(0), 2 * SIM_PAGE_BYTES);
    sim_stream_hold(s, true);
    BASE_CHECK_EQ(cudaMemsetAsync(a, 1, 100, s), cudaSuccess);
    give(a, s);
    BASE_CHECK_EQ(sim_used_bytes(0), 2 * SIM_PAGE_BYTES); // the free is to come
    sim_stream_hold(s, false);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
}

static void the_pool_is_that_of_the_streams_device(void) {
    start((struct sim_options){.device_count = 2, .numerics = SIM_NUMERICS_OFF});
    cudaStream_t on_1;
    struct cudaPointerAttributes attributes;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&on_1), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    char *a = take(100, on_1);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(sim_used_bytes(1), CHUNK);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, a + 50), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
    BASE_CHECK_EQ(attributes.device, 1);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, a + 1000), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered); // not handed out
    give(a, s);                                                 // any stream may, of any device
}

static void other_devices_have_the_rights_they_are_given(void) {
    start((struct sim_options){.device_count = 3, .numerics = SIM_NUMERICS_ON});
    char *a = take(1000, s), bytes[4] = {0};
    struct cudaMemLocation location = {cudaMemLocationTypeDevice, 1};
    struct cudaMemAccessDesc descriptor = {location, cudaMemAccessFlagsProtRead};
    enum cudaMemAccessFlags flags;
    BASE_CHECK_EQ(cudaMemsetAsync(a, 3, 1000, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess); // is of no avail
    BASE_CHECK_EQ(cudaMemcpy(bytes, a, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolGetAccess(&flags, pool, &location), cudaSuccess);
    BASE_CHECK_EQ(flags, cudaMemAccessFlagsProtNone);
    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, &descriptor, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMemPoolGetAccess(&flags, pool, &location), cudaSuccess);
    BASE_CHECK_EQ(flags, cudaMemAccessFlagsProtRead);
    BASE_CHECK_EQ(cudaMemcpy(bytes, a, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK(memcmp(bytes, "\3\3\3\3", 4) == 0);
    BASE_CHECK_EQ(cudaMemset(a, 1, 4), cudaErrorInvalidValue);
    descriptor.flags = cudaMemAccessFlagsProtReadWrite;
    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, &descriptor, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(a, 1, 4), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(2), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(a, 1, 4), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    char *grown = take(2 * CHUNK, s); // has the same rights
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(grown, 1, 4), cudaSuccess);

    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, NULL, 1), cudaErrorInvalidValue);
    descriptor.location.id = 3;
    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, &descriptor, 1), cudaErrorInvalidDevice);
    descriptor.location.id = 0; // its own device
    descriptor.flags = cudaMemAccessFlagsProtNone;
    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, &descriptor, 1), cudaErrorInvalidValue);
    descriptor.location = (struct cudaMemLocation){cudaMemLocationTypeHost, 0};
    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, &descriptor, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemPoolGetAccess(NULL, pool, &location), cudaErrorInvalidValue);
    location.id = 7;
    BASE_CHECK_EQ(cudaMemPoolGetAccess(&flags, pool, &location), cudaErrorInvalidDevice);
}

static void copies_stay_within_a_block(void) {
    start_small(SIM_NUMERICS_ON);
    char *a = take(1000, s), *b = take(1000, s), bytes[64] = {0};
    BASE_CHECK(b == a + 1024);
    BASE_CHECK_EQ(cudaMemsetAsync(a, 1, 1001, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemsetAsync(a + 999, 1, 1, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(bytes, a + 990, 11, cudaMemcpyDeviceToHost, s),
                  cudaErrorInvalidValue);
    // Work that was enqueued before the free sees the memory, and so does work behind it.
    sim_stream_hold(s, true);
    BASE_CHECK_EQ(cudaMemsetAsync(a, 5, 1000, s), cudaSuccess);
    give(a, s);
    BASE_CHECK_EQ(cudaMemsetAsync(a, 6, 1000, s), cudaSuccess); // CUDA does not look
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress - cudaErrorIllegalAddress);
}

static void cudaFree_of_a_block_waits_for_nothing(void) {
    start_small(SIM_NUMERICS_OFF);
    char *a = take(CHUNK, s);
    sim_stream_hold(t, true);
    BASE_CHECK_EQ(cudaMemsetAsync(a, 0, 1, t), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(a), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(t), 1);
    BASE_CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess); // anybody's at once
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

// Random programs: live blocks never overlap, nor does a block overlap one whose free it is not
// ordered behind, by a naive account of the order; with opportunistic reuse off, the addresses are
// the same whether work runs at once or late.
#define STREAMS 3
#define BLOCKS 64

struct life {
    char *start;
    uint64_t size;
    bool live;
    int freed_by;        // the stream that it was allocated for
    uint64_t freed_step; // when
};

struct history {
    struct life lives[BLOCKS];
    int count;
    uint64_t behind[STREAMS][STREAMS]; // behind[a][b]: a comes after all b did up to this step
    uint64_t recorded[STREAMS][STREAMS];
};

static bool overlap(const struct life *a, const struct life *b) {
    return a->start < b->start + b->size && b->start < a->start + a->size;
}

static void check_birth(const struct history *history, const struct life *born, int stream) {
    for (int i = 0; i < history->count; ++i) {
        const struct life *other = &history->lives[i];
        if (other == born || !overlap(other, born))
            continue;
        BASE_CHECK(!other->live);
        BASE_CHECK(other->freed_by == stream ||
                   history->behind[stream][other->freed_by] > other->freed_step);
    }
}

static uint64_t run_random(uint64_t seed, bool held) {
    struct base_random random = base_random_init(seed, "pool_test");
    struct history history = {0};
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[STREAMS];
    uint64_t hash = 0;
    start((struct sim_options){.numerics = SIM_NUMERICS_OFF});
    policies_set(1, 0, 0);
    threshold_set(UINT64_MAX);
    for (int i = 0; i < STREAMS; ++i) {
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), cudaSuccess);
        sim_stream_hold(streams[i], held);
    }
    for (uint64_t step = 1; history.count < BLOCKS; ++step) {
        base_check_context("seed %llu, step %llu", (unsigned long long)seed,
                           (unsigned long long)step);
        const int stream = (int)base_random_below(&random, STREAMS);
        const int other = (int)base_random_below(&random, STREAMS);
        switch (base_random_below(&random, 5)) {
        case 0:
        case 1: {
            struct life *life = &history.lives[history.count++];
            life->size = base_random_log_between(&random, 1, 4 * BASE_MIB);
            life->start = take(life->size, streams[stream]);
            life->live = true;
            life->freed_by = stream;
            hash = hash * 31 + (uint64_t)(uintptr_t)life->start;
            check_birth(&history, life, stream);
            break;
        }
        case 2:
            for (int i = 0; i < history.count; ++i) {
                struct life *life = &history.lives[i];
                if (!life->live || base_random_below(&random, 2) == 0)
                    continue;
                give(life->start, streams[life->freed_by]);
                life->live = false;
                life->freed_step = step;
                break;
            }
            break;
        case 3:
            BASE_CHECK_EQ(cudaEventRecord(events[stream], streams[stream]), cudaSuccess);
            memcpy(history.recorded[stream], history.behind[stream],
                   sizeof history.recorded[stream]);
            history.recorded[stream][stream] = step;
            break;
        default:
            BASE_CHECK_EQ(cudaStreamWaitEvent(streams[other], events[stream], 0), cudaSuccess);
            for (int i = 0; i < STREAMS; ++i)
                if (history.recorded[stream][i] > history.behind[other][i])
                    history.behind[other][i] = history.recorded[stream][i];
        }
    }
    base_check_context(NULL);
    return hash;
}

int main(void) {
    memory_is_counted_as_reserved_and_used(SIM_NUMERICS_ON);
    memory_is_counted_as_reserved_and_used(SIM_NUMERICS_OFF);
    high_water_marks_begin_again_at_what_is_current();
    misuse_gets_the_codes_of_cuda();
    the_same_stream_takes_again_what_it_freed();
    reuse_follows_events_where_that_is_allowed(true);
    reuse_follows_events_where_that_is_allowed(false);
    reuse_follows_the_legacy_stream();
    opportunistic_reuse_takes_what_has_run();
    internal_dependencies_come_when_the_device_is_full();
    growth_takes_less_where_there_is_less();
    free_memory_of_other_pools_gives_way();
    a_wait_releases_what_is_above_the_threshold();
    a_wait_for_something_else_releases_nothing();
    a_wait_sees_what_its_stream_waited_for();
    a_stream_that_is_gone_keeps_nothing_back();
    trim_keeps_what_it_is_told_to();
    pools_of_ones_own_can_be_current_and_destroyed();
    the_pool_is_that_of_the_streams_device();
    other_devices_have_the_rights_they_are_given();
    copies_stay_within_a_block();
    cudaFree_of_a_block_waits_for_nothing();
    for (uint64_t seed = 1; seed <= 40; ++seed)
        BASE_CHECK_EQ(run_random(seed, false), run_random(seed, true));
    printf("pool: seeds 1 to 40\n");
    return 0;
}
