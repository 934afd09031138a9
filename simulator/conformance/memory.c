// Section 2: cudaMalloc, cudaFree, cudaMemGetInfo.
#include "simulator/conformance/cases.h"

#ifdef TIDEMARK_SIMULATOR
#include "base/check.h"
#include "simulator/sim.h"
#endif


#define PAGE_BYTES ((size_t)2 << 20)

static void malloc_null(struct conformance *c) { answer_code(c, "malloc", cudaMalloc(NULL, 16)); }

static void malloc_zero(struct conformance *c) {
    void *pointer = (void *)16;
    answer_code(c, "malloc", cudaMalloc(&pointer, 0));
    answer_yes(c, "null", pointer == NULL);
}

static void malloc_too_large(struct conformance *c) {
    void *pointer;
    size_t free_bytes, total_bytes;
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    answer_code(c, "total", cudaMalloc(&pointer, total_bytes + PAGE_BYTES));
    answer_code(c, "huge", cudaMalloc(&pointer, SIZE_MAX));
    answer_code(c, "after", cudaMalloc(&pointer, PAGE_BYTES));
    (void)cudaFree(pointer);
}

static void malloc_aligned(struct conformance *c) {
    bool aligned_256 = true, aligned_512 = true;
    for (size_t size = 1; size <= 4096; size = 3 * size + 1) {
        void *pointer = conformance_device_memory(c, size);
        aligned_256 &= (uintptr_t)pointer % 256 == 0;
        aligned_512 &= (uintptr_t)pointer % 512 == 0;
    }
    answer_yes(c, "256", aligned_256);
    answer_yes(c, "512", aligned_512);
}

// How much less is free after an allocation of SIZE bytes.
static int64_t bytes_taken(struct conformance *c, size_t size) {
    size_t before, after, total;
    if (cudaMemGetInfo(&before, &total) != cudaSuccess)
        return -1;
    (void)conformance_device_memory(c, size);
    if (cudaMemGetInfo(&after, &total) != cudaSuccess)
        return -1;
    return (int64_t)(before - after);
}

static void malloc_pages(struct conformance *c) {
    answer_number(c, "6MiB", bytes_taken(c, 3 * PAGE_BYTES) >> 20);
    answer_number(c, "4MiB+1", bytes_taken(c, 2 * PAGE_BYTES + 1) >> 20);
}

static void malloc_small(struct conformance *c) {
    const int64_t first = bytes_taken(c, 512), second = bytes_taken(c, 512);
    answer_number(c, "MiB", (first + second) >> 20);
}

static void malloc_distinct(struct conformance *c) {
    unsigned char *first = conformance_device_memory(c, PAGE_BYTES);
    unsigned char *second = conformance_device_memory(c, PAGE_BYTES);
    MUST(c, cudaMemset(first, 1, PAGE_BYTES));
    MUST(c, cudaMemset(second, 2, PAGE_BYTES));
    answer_number(c, "first", conformance_byte(first));
    answer_number(c, "last", conformance_byte(first + PAGE_BYTES - 1));
    answer_number(c, "second", conformance_byte(second));
}

static void malloc_waits_not(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    (void)conformance_device_memory(c, PAGE_BYTES);
    answer_event(c, "work", event);
}

static void free_null(struct conformance *c) { answer_code(c, "free", cudaFree(NULL)); }

static void free_bad_pointer(struct conformance *c) {
    int on_host = 0;
    unsigned char *memory = conformance_device_memory(c, 4096);
    answer_code(c, "unknown", cudaFree((void *)(uintptr_t)0x123450000));
    answer_code(c, "interior", cudaFree(memory + 256));
    answer_code(c, "host", cudaFree(&on_host));
}

static void free_pinned_pointer(struct conformance *c) {
    answer_code(c, "pinned", cudaFree(conformance_pinned_memory(c, 4096)));
}

static void free_twice(struct conformance *c) {
    void *pointer;
    MUST(c, cudaMalloc(&pointer, 4096));
    answer_code(c, "first", cudaFree(pointer));
    answer_code(c, "second", cudaFree(pointer));
}

static void free_waits(struct conformance *c) {
    void *pointer;
    MUST(c, cudaMalloc(&pointer, 4096));
    cudaStream_t blocking = conformance_stream(c, cudaStreamDefault);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, blocking);
    conformance_gate(c, other);
    cudaEvent_t first = conformance_mark(c, blocking), second = conformance_mark(c, other);
    answer_code(c, "free", cudaFree(pointer));
    answer_code(c, "blocking", cudaEventQuery(first));
    answer_code(c, "nonblocking", cudaEventQuery(second));
}

static void free_other_device(struct conformance *c) {
    void *pointer;
    MUST(c, cudaMalloc(&pointer, 4096));
    MUST(c, cudaSetDevice(1));
    answer_code(c, "free", cudaFree(pointer));
}

static void mem_get_info_follows(struct conformance *c) {
    size_t before, between, after, total;
    void *pointer;
    MUST(c, cudaMemGetInfo(&before, &total));
    MUST(c, cudaMalloc(&pointer, 16 * PAGE_BYTES));
    MUST(c, cudaMemGetInfo(&between, &total));
    MUST(c, cudaFree(pointer));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_number(c, "taken", (int64_t)(before - between) >> 20);
    answer_yes(c, "given-back", after == before);
    answer_yes(c, "below-total", before <= total);
    answer_yes(c, "steps", before % PAGE_BYTES == 0 || before % 65536 == 0);
}

static void mem_get_info_null(struct conformance *c) {
    size_t bytes;
    answer_code(c, "free", cudaMemGetInfo(NULL, &bytes));
    answer_code(c, "total", cudaMemGetInfo(&bytes, NULL));
}

static void mem_get_info_per_device(struct conformance *c) {
    size_t before, after, total;
    MUST(c, cudaSetDevice(1));
    MUST(c, cudaMemGetInfo(&before, &total));
    MUST(c, cudaSetDevice(0));
    (void)conformance_device_memory(c, 16 * PAGE_BYTES);
    MUST(c, cudaSetDevice(1));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_yes(c, "same", before == after);
}

#ifdef TIDEMARK_SIMULATOR
static void mem_get_info_counts_others(struct conformance *c) {
    size_t before, after, total;
    void *pointer;
    MUST(c, cudaMemGetInfo(&before, &total));
    sim_set_foreign_bytes(0, 100 * PAGE_BYTES);
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_number(c, "taken", (int64_t)(before - after) >> 20);
    answer_code(c, "too-much", cudaMalloc(&pointer, after + PAGE_BYTES));
    answer_code(c, "rest", cudaMalloc(&pointer, after));
    sim_set_foreign_bytes(0, 0);
}

static void malloc_again(struct conformance *c, const char *label, enum sim_addresses addresses) {
    void *first, *second;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 1, .addresses = addresses}),
                  BASE_OK);
    MUST(c, cudaMalloc(&first, PAGE_BYTES));
    MUST(c, cudaFree(first));
    MUST(c, cudaMalloc(&second, PAGE_BYTES));
    answer_yes(c, label, first == second);
}

static void malloc_address_again(struct conformance *c) {
    malloc_again(c, "ascending", SIM_ADDRESSES_ASCENDING);
    malloc_again(c, "reused", SIM_ADDRESSES_REUSED);
}
#endif

const struct conformance_case conformance__cases_memory[] = {
    CASE("malloc-null", "2", VERIFIED, malloc_null,
        "cudaMalloc without a result pointer: 1",
        "malloc=1", NULL),
    CASE("malloc-zero", "2", VERIFIED, malloc_zero,
        "cudaMalloc of 0 bytes succeeds with NULL",
        "malloc=0 null=yes", NULL),
    CASE("malloc-too-large", "2", VERIFIED, malloc_too_large,
        "cudaMalloc of more than there is: 2, and the next one succeeds",
        "total=2 huge=2 after=0", NULL),
    CASE("malloc-aligned", "2", UNVERIFIED, malloc_aligned,
        "addresses are multiples of 256 (512 was observed)",
        "256=yes 512=yes", "256=yes 512=no"),
    CASE("malloc-pages", "2", VERIFIED, malloc_pages,
        "large blocks take whole pages of 2 MiB",
        "6MiB=6 4MiB+1=6", NULL),
    CASE("malloc-small", "2", VERIFIED, malloc_small,
        "small blocks share a page on a device; here each has one of its own",
        "MiB=4", "MiB=2"),
    CASE("malloc-distinct", "2", VERIFIED, malloc_distinct,
        "live allocations share no byte",
        "first=1 last=1 second=2", NULL),
    CASE("malloc-waits-not", "5", UNVERIFIED, malloc_waits_not,
        "cudaMalloc need not wait for pending work",
        "work=pending", "work=done"),
    CASE("free-null", "2", VERIFIED, free_null,
        "cudaFree(NULL) succeeds",
        "free=0", NULL),
    CASE("free-bad-pointer", "2", VERIFIED, free_bad_pointer,
        "cudaFree of an unknown, an interior or a host pointer: 1",
        "unknown=1 interior=1 host=1", NULL),
    CASE("free-pinned-pointer", "2", VERIFIED, free_pinned_pointer,
        "cudaFree of page-locked memory: 1",
        "pinned=1", NULL),
    CASE("free-twice", "2", VERIFIED, free_twice,
        "cudaFree of a freed pointer: 1",
        "first=0 second=1", NULL),
    CASE("free-waits", "2", VERIFIED, free_waits,
        "cudaFree waits for all work of the device, NonBlocking streams included",
        "free=0 blocking=0 nonblocking=0", NULL),
    CASE_2("free-other-device", "2", UNVERIFIED, free_other_device,
        "memory may be freed whatever the current device is",
        "free=0", NULL),
    CASE("mem-get-info-follows", "2", VERIFIED, mem_get_info_follows,
        "what cudaMalloc takes is not free, what cudaFree gives back is; in steps",
        "taken=32 given-back=yes below-total=yes steps=yes", NULL),
    CASE("mem-get-info-null", "2", UNVERIFIED, mem_get_info_null,
        "cudaMemGetInfo without a result pointer: 1",
        "free=1 total=1", NULL),
    CASE_2("mem-get-info-per-device", "2", VERIFIED, mem_get_info_per_device,
        "cudaMemGetInfo speaks of the current device",
        "same=yes", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("mem-get-info-counts-others", "2", VERIFIED, mem_get_info_counts_others,
        "memory that other processes hold is neither free nor to be had",
        "taken=200 too-much=2 rest=0", NULL),
    CASE_SIMULATED("malloc-address-again", "8", VERIFIED, malloc_address_again,
        "a freed address may come again at once, or never",
        "ascending=no reused=yes", NULL),
#endif
    {0},
};
