// Section 3: stream-ordered memory.
#include "simulator/conformance/cases.h"

#define SIZE ((size_t)1 << 20)
// As much as a pool takes from its device at least, so that nothing is left beside it.
#define CHUNK ((size_t)64 << 20)

static cudaMemPool_t default_pool(struct conformance *c) {
    cudaMemPool_t pool = NULL;
    const cudaError_t error = cudaDeviceGetDefaultMemPool(&pool, 0);
    if (error != cudaSuccess)
        answer_code(c, "cudaDeviceGetDefaultMemPool", error);
    return pool;
}

// A pool of device 0 that keeps what it has.
static cudaMemPool_t keeping_pool(struct conformance *c) {
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t pool = NULL;
    uint64_t threshold = UINT64_MAX;
    cudaError_t error = cudaMemPoolCreate(&pool, &properties);
    if (error == cudaSuccess)
        error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    if (error != cudaSuccess)
        answer_code(c, "cudaMemPoolCreate", error);
    return pool;
}

static uint64_t pool_size(struct conformance *c, cudaMemPool_t pool,
                          enum cudaMemPoolAttr attribute) {
    uint64_t size = 0;
    const cudaError_t error = cudaMemPoolGetAttribute(pool, attribute, &size);
    if (error != cudaSuccess)
        answer_code(c, "cudaMemPoolGetAttribute", error);
    return size;
}

static void *pool_take(struct conformance *c, cudaMemPool_t pool, cudaStream_t stream,
                       size_t size) {
    void *pointer = NULL;
    const cudaError_t error = cudaMallocFromPoolAsync(&pointer, size, pool, stream);
    if (error != cudaSuccess)
        answer_code(c, "cudaMallocFromPoolAsync", error);
    return pointer;
}

// --- Calls ---

static void malloc_async_bad(struct conformance *c) {
    void *pointer;
    cudaStream_t stream;
    answer_code(c, "null", cudaMallocAsync(NULL, SIZE, NULL));
    MUST(c, cudaStreamCreate(&stream));
    MUST(c, cudaStreamDestroy(stream));
    const cudaError_t error = cudaMallocAsync(&pointer, SIZE, stream);
    answer_yes(c, "stream", error == cudaErrorInvalidResourceHandle ||
                                error == cudaErrorContextIsDestroyed);
    (void)cudaGetLastError();
}

static void malloc_async_too_large(struct conformance *c) {
    void *pointer;
    size_t free_bytes, total_bytes;
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    answer_code(c, "malloc", cudaMallocAsync(&pointer, total_bytes + SIZE, NULL));
    answer_code(c, "after", cudaMallocAsync(&pointer, SIZE, NULL));
    answer_code(c, "free", cudaFreeAsync(pointer, NULL));
}

static void malloc_async_returns(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    answer_yes(c, "address", pointer != NULL);
    answer_event(c, "work", conformance_mark(c, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
}

static void malloc_async_in_order(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, 16);
    void *pointer;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    pinned[0] = 0;
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    MUST(c, cudaMemsetAsync(pointer, 7, SIZE, stream));
    MUST(c, cudaMemcpyAsync(pinned, pointer, 16, cudaMemcpyDefault, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "byte", pinned[0]);
}

static void malloc_async_device(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    void *pointer;
    MUST(c, cudaSetDevice(1));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(0));
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    MUST(c, cudaPointerGetAttributes(&attributes, pointer));
    answer_number(c, "device", attributes.device);
    answer_number(c, "type", attributes.type);
    MUST(c, cudaFreeAsync(pointer, stream));
}

static void free_async_bad(struct conformance *c) {
    void *pointer;
    answer_code(c, "null", cudaFreeAsync(NULL, NULL));
    MUST(c, cudaMallocAsync(&pointer, SIZE, NULL));
    answer_code(c, "interior", cudaFreeAsync((unsigned char *)pointer + 512, NULL));
    answer_code(c, "first", cudaFreeAsync(pointer, NULL));
    answer_code(c, "second", cudaFreeAsync(pointer, NULL));
}

static void free_async_other_stream(struct conformance *c) {
    void *pointer;
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t second = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMallocAsync(&pointer, SIZE, first));
    MUST(c, cudaStreamWaitEvent(second, conformance_mark(c, first), 0));
    answer_code(c, "free", cudaFreeAsync(pointer, second));
    answer_code(c, "synchronize", cudaStreamSynchronize(second));
}

static void plain_free_of_pool_memory(struct conformance *c) {
    void *pointer;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    MUST(c, cudaStreamSynchronize(stream));
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "free", cudaFree(pointer));
    answer_event(c, "work", event);
}

// --- What a pool holds ---

static void pool_threshold_default(struct conformance *c) {
    cudaMemPool_t pool = default_pool(c);
    void *pointer;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_number(c, "threshold", (int64_t)pool_size(c, pool, cudaMemPoolAttrReleaseThreshold));
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
    answer_yes(c, "at-free", pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent) >= SIZE);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", (int64_t)pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent));
}

// Whatever kind of wait the host makes.
static void answer_released(struct conformance *c, const char *label,
                            cudaError_t (*wait)(cudaStream_t stream)) {
    void *pointer;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, wait(stream));
    answer_number(c, label,
                  (int64_t)pool_size(c, default_pool(c), cudaMemPoolAttrReservedMemCurrent));
}

static cudaError_t wait_for_device(cudaStream_t stream) {
    (void)stream;
    return cudaDeviceSynchronize();
}

static cudaError_t wait_for_event(cudaStream_t stream) {
    cudaEvent_t event;
    cudaError_t error = cudaEventCreate(&event);
    if (error == cudaSuccess)
        error = cudaEventRecord(event, stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(event);
    (void)cudaEventDestroy(event);
    return error;
}

static void pool_released_at_waits(struct conformance *c) {
    answer_released(c, "stream", cudaStreamSynchronize);
    answer_released(c, "device", wait_for_device);
    answer_released(c, "event", wait_for_event);
}

static void pool_growth(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    unsigned char *first = pool_take(c, pool, stream, 1), *second = pool_take(c, pool, stream, 1);
    answer_number(c, "MiB",
                  (int64_t)(pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent) >> 20));
    answer_yes(c, "512", ((uintptr_t)first | (uintptr_t)second) % 512 == 0);
    MUST(c, cudaFreeAsync(first, stream));
    MUST(c, cudaFreeAsync(second, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_threshold_kept(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *pointer = pool_take(c, pool, stream, SIZE);
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_yes(c, "kept", pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent) >= SIZE);
    answer_number(c, "used", (int64_t)pool_size(c, pool, cudaMemPoolAttrUsedMemCurrent));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_counts(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *first = pool_take(c, pool, stream, SIZE), *second = pool_take(c, pool, stream, SIZE);
    const uint64_t used = pool_size(c, pool, cudaMemPoolAttrUsedMemCurrent);
    answer_yes(c, "used", used == 2 * SIZE);
    answer_yes(c, "reserved", pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent) >= used);
    MUST(c, cudaFreeAsync(first, stream));
    answer_yes(c, "freed", pool_size(c, pool, cudaMemPoolAttrUsedMemCurrent) == SIZE);
    answer_yes(c, "high", pool_size(c, pool, cudaMemPoolAttrUsedMemHigh) == 2 * SIZE);
    MUST(c, cudaFreeAsync(second, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_reserved_is_not_free(struct conformance *c) {
    size_t before, after, total;
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemGetInfo(&before, &total));
    void *pointer = pool_take(c, pool, stream, 64 * SIZE);
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_yes(c, "counted", before - after >= 64 * SIZE);
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_attributes(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    int value = -1;
    for (int attribute = 1; attribute <= 3; ++attribute) {
        MUST(c, cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attribute, &value));
        answer_number(c, "reuse", value);
    }
    answer_code(c, "get", cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)77, &value));
    answer_code(c, "set", cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)77, &value));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_high_water(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    uint64_t one = 1, zero = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *pointer = pool_take(c, pool, stream, SIZE);
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "one", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one));
    answer_code(c, "zero", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    answer_number(c, "high", (int64_t)pool_size(c, pool, cudaMemPoolAttrUsedMemHigh));
    answer_code(c, "reserved", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &one));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_trim(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *live = pool_take(c, pool, stream, SIZE), *freed = pool_take(c, pool, stream, 64 * SIZE);
    MUST(c, cudaFreeAsync(freed, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolTrimTo(pool, 0));
    const uint64_t reserved = pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent);
    answer_yes(c, "live-stays", reserved >= SIZE);
    answer_yes(c, "free-goes", reserved < 64 * SIZE);
    MUST(c, cudaFreeAsync(live, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolTrimTo(pool, 0));
    answer_number(c, "empty", (int64_t)pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void pool_trim_spares_unobserved(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *pointer = pool_take(c, pool, stream, SIZE);
    conformance_gate(c, stream);
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaMemPoolTrimTo(pool, 0));
    answer_yes(c, "spared", pool_size(c, pool, cudaMemPoolAttrReservedMemCurrent) >= SIZE);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolDestroy(pool));
}

// --- Reuse: whether a second allocation gets the first one's address ---

static void reuse_same_stream(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    void *first = pool_take(c, pool, stream, SIZE);
    MUST(c, cudaFreeAsync(first, stream));
    void *second = pool_take(c, pool, stream, SIZE);
    answer_yes(c, "reused", first == second);
    MUST(c, cudaFreeAsync(second, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolDestroy(pool));
}

static void reuse_behind_event(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    void *first = pool_take(c, pool, stream, CHUNK);
    MUST(c, cudaFreeAsync(first, stream));
    MUST(c, cudaStreamWaitEvent(other, conformance_mark(c, stream), 0));
    void *second = pool_take(c, pool, other, CHUNK);
    answer_yes(c, "reused", first == second);
    MUST(c, cudaFreeAsync(second, other));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaMemPoolDestroy(pool));
}

static void reuse_unordered(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    void *first = pool_take(c, pool, stream, CHUNK);
    MUST(c, cudaStreamSynchronize(stream));
    conformance_gate(c, stream);
    MUST(c, cudaMemsetAsync(first, 1, CHUNK, stream));
    MUST(c, cudaFreeAsync(first, stream));
    void *second = pool_take(c, pool, other, CHUNK);
    answer_yes(c, "reused", first == second);
    answer_event(c, "other", conformance_mark(c, other));
    MUST(c, cudaFreeAsync(second, other));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaMemPoolDestroy(pool));
}

// The free has run, but no event says so; with the attribute off that does not count.
static void answer_opportunistic(struct conformance *c, const char *label, int on) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &on));
    void *first = pool_take(c, pool, stream, CHUNK);
    MUST(c, cudaFreeAsync(first, stream));
#ifndef TIDEMARK_SIMULATOR
    answer_event(c, "free", conformance_mark(c, stream)); // gives the device time
#endif
    void *second = pool_take(c, pool, other, CHUNK);
    answer_yes(c, label, first == second);
    MUST(c, cudaFreeAsync(second, other));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaMemPoolDestroy(pool));
}

static void reuse_opportunistic(struct conformance *c) {
    answer_opportunistic(c, "on", 1);
    answer_opportunistic(c, "off", 0);
}

// Three fifths of the device's memory twice: the second allocation has to wait for the first free.
static void answer_internal(struct conformance *c, const char *label, int on) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    size_t free_bytes, total_bytes;
    void *second = NULL;
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    const size_t size = free_bytes / 5 * 3 >> 21 << 21;
    MUST(c, cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &on));
    void *first = pool_take(c, pool, stream, size);
    MUST(c, cudaStreamSynchronize(stream));
    conformance_gate(c, stream);
    MUST(c, cudaFreeAsync(first, stream));
    answer_code(c, label, cudaMallocFromPoolAsync(&second, size, pool, other));
    if (second != NULL) {
        answer_event(c, "work", conformance_mark(c, other));
        MUST(c, cudaFreeAsync(second, other));
    }
    conformance_open(c);
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaMemPoolDestroy(pool));
}

static void reuse_internal_dependency(struct conformance *c) {
    answer_internal(c, "on", 1);
    answer_internal(c, "off", 0);
}

// --- Pools as objects ---

static void pool_create_bad(struct conformance *c) {
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t pool;
    answer_code(c, "null", cudaMemPoolCreate(NULL, &properties));
    answer_code(c, "properties", cudaMemPoolCreate(&pool, NULL));
    properties.allocType = cudaMemAllocationTypeInvalid;
    answer_code(c, "type", cudaMemPoolCreate(&pool, &properties));
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.id = 99;
    answer_code(c, "device", cudaMemPoolCreate(&pool, &properties));
}

static void pool_of_no_device(struct conformance *c) {
    cudaMemPool_t pool;
    answer_code(c, "default", cudaDeviceGetDefaultMemPool(&pool, 99));
    answer_code(c, "current", cudaDeviceGetMemPool(&pool, -1));
    answer_code(c, "null", cudaDeviceGetDefaultMemPool(NULL, 0));
}

static void pool_destroy_default(struct conformance *c) {
    answer_code(c, "destroy", cudaMemPoolDestroy(default_pool(c)));
}

static void pool_destroy_live(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *pointer = pool_take(c, pool, stream, SIZE);
    answer_code(c, "destroy", cudaMemPoolDestroy(pool));
    answer_code(c, "use", cudaMemsetAsync(pointer, 1, SIZE, stream));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    answer_code(c, "synchronize", cudaStreamSynchronize(stream));
}

static void pool_current(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c), current = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *pointer;
    MUST(c, cudaDeviceGetMemPool(&current, 0));
    answer_yes(c, "default-first", current == default_pool(c));
    MUST(c, cudaDeviceSetMemPool(0, pool));
    MUST(c, cudaMallocAsync(&pointer, SIZE, stream));
    answer_yes(c, "taken-from", pool_size(c, pool, cudaMemPoolAttrUsedMemCurrent) == SIZE);
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaMemPoolDestroy(pool));
    MUST(c, cudaDeviceGetMemPool(&current, 0));
    answer_yes(c, "reverts", current == default_pool(c));
}

static void pool_access(struct conformance *c) {
    cudaMemPool_t pool = keeping_pool(c);
    struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 1};
    struct cudaMemAccessDesc access = {location, cudaMemAccessFlagsProtReadWrite};
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtReadWrite;
    MUST(c, cudaMemPoolGetAccess(&flags, pool, &location));
    answer_number(c, "before", flags);
    MUST(c, cudaMemPoolSetAccess(pool, &access, 1));
    MUST(c, cudaMemPoolGetAccess(&flags, pool, &location));
    answer_number(c, "after", flags);
    access.location.id = 99;
    answer_code(c, "bad", cudaMemPoolSetAccess(pool, &access, 1));
    location.id = 0;
    MUST(c, cudaMemPoolGetAccess(&flags, pool, &location));
    answer_number(c, "own", flags);
    MUST(c, cudaMemPoolDestroy(pool));
}

const struct conformance_case conformance__cases_pool[] = {
    CASE("malloc-async-bad", "3", VERIFIED, malloc_async_bad,
        "cudaMallocAsync without a result pointer: 1; in no stream: 400 or 709",
        "null=1 stream=yes", NULL),
    CASE("malloc-async-too-large", "3", VERIFIED, malloc_async_too_large,
        "cudaMallocAsync of more than there is: 2, and the next one succeeds",
        "malloc=2 after=0 free=0", NULL),
    CASE("malloc-async-returns", "3", VERIFIED, malloc_async_returns,
        "cudaMallocAsync gives the address at once, whatever is pending",
        "address=yes work=pending", NULL),
    CASE("malloc-async-in-order", "3", VERIFIED, malloc_async_in_order,
        "the memory may be used between allocation and free in stream order",
        "byte=7", NULL),
    CASE_2("malloc-async-device", "3", VERIFIED, malloc_async_device,
        "the memory belongs to the stream's device, not to the current one",
        "device=1 type=2", NULL),
    CASE("free-async-bad", "3", VERIFIED, free_async_bad,
        "cudaFreeAsync of NULL, of an interior pointer, or twice: 1",
        "null=1 interior=1 first=0 second=1", NULL),
    CASE("free-async-other-stream", "3", VERIFIED, free_async_other_stream,
        "another stream may free, if it comes after all use",
        "free=0 synchronize=0", NULL),
    CASE("plain-free-of-pool-memory", "2", VERIFIED, plain_free_of_pool_memory,
        "cudaFree of pool memory does not wait",
        "free=0 work=pending", NULL),
    CASE("pool-threshold-default", "3", VERIFIED, pool_threshold_default,
        "the release threshold is 0 at first: unused memory goes back at the next synchronise, not "
        "at the free",
        "threshold=0 at-free=yes after=0", NULL),
    CASE("pool-released-at-waits", "3", VERIFIED, pool_released_at_waits,
        "unused memory goes back at a stream's, an event's or the device's synchronise",
        "stream=0 device=0 event=0", NULL),
    CASE("pool-growth", "3", UNVERIFIED, pool_growth,
        "a pool grows by 32 MiB and aligns to 512",
        "MiB=32 512=yes", NULL),
    CASE("pool-threshold-kept", "3", VERIFIED, pool_threshold_kept,
        "below the threshold unused memory stays",
        "kept=yes used=0", NULL),
    CASE("pool-counts", "3", VERIFIED, pool_counts,
        "used is what is live, reserved what the device gave; high-water marks stay",
        "used=yes reserved=yes freed=yes high=yes", NULL),
    CASE("pool-reserved-is-not-free", "2", VERIFIED, pool_reserved_is_not_free,
        "what a pool holds without use is not free to cudaMemGetInfo",
        "counted=yes", NULL),
    CASE("pool-attributes", "3", VERIFIED, pool_attributes,
        "all reuse policies are on at first; an unknown attribute: 1",
        "reuse=1 reuse=1 reuse=1 get=1 set=1", NULL),
    CASE("pool-high-water", "3", VERIFIED, pool_high_water,
        "high-water marks can be set to 0 only, else 1",
        "one=1 zero=0 high=0 reserved=1", NULL),
    CASE("pool-trim", "3", VERIFIED, pool_trim,
        "cudaMemPoolTrimTo gives back what is free and spares what is live",
        "live-stays=yes free-goes=yes empty=0", NULL),
    CASE("pool-trim-spares-unobserved", "3", VERIFIED, pool_trim_spares_unobserved,
        "cudaMemPoolTrimTo spares frees that the host has not seen complete",
        "spared=yes", NULL),
    CASE("reuse-same-stream", "3", VERIFIED, reuse_same_stream,
        "the stream that freed gets the memory again at once",
        "reused=yes", NULL),
    CASE("reuse-behind-event", "3", VERIFIED, reuse_behind_event,
        "a stream behind the free by an event gets the memory",
        "reused=yes", NULL),
    CASE("reuse-unordered", "8", VERIFIED, reuse_unordered,
        "a stream that does not come after the free gets other memory",
        "reused=no other=done", NULL),
    CASE("reuse-opportunistic", "3", UNVERIFIED, reuse_opportunistic,
        "a free that has run counts as one that is behind, if the pool allows it",
#ifdef TIDEMARK_SIMULATOR
        "on=yes off=no", NULL),
#else
        "free=done on=yes free=done off=no", NULL),
#endif
    CASE("reuse-internal-dependency", "3", UNVERIFIED, reuse_internal_dependency,
        "a device that has no more lets an allocation wait for another stream's free, if the pool "
        "allows it, else 2",
        "on=0 work=pending off=2", NULL),
    CASE("pool-create-bad", "3", VERIFIED, pool_create_bad,
        "cudaMemPoolCreate without a result pointer or with bad properties: 1",
        "null=1 properties=1 type=1 device=1", NULL),
    CASE("pool-of-no-device", "3", UNVERIFIED, pool_of_no_device,
        "the pool of a bad ordinal: 101; no result pointer: 1",
        "default=101 current=101 null=1", NULL),
    CASE("pool-destroy-default", "3", VERIFIED, pool_destroy_default,
        "the default pool cannot be destroyed: 1",
        "destroy=1", NULL),
    CASE("pool-destroy-live", "3", VERIFIED, pool_destroy_live,
        "a pool with live memory is destroyed, and goes when that is freed",
        "destroy=0 use=0 free=0 synchronize=0", NULL),
    CASE("pool-current", "3", VERIFIED, pool_current,
        "cudaMallocAsync takes from the current pool; a destroyed one reverts to the default",
        "default-first=yes taken-from=yes reverts=yes", NULL),
    CASE_2("pool-access", "3", UNVERIFIED, pool_access,
        "other devices have no access to a pool until they are given it; a bad device: 101",
        "before=0 after=3 bad=101 own=3", NULL),
    {0},
};
