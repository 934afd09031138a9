// Device and page-locked memory: pages, capacity, addresses, lookups, and the codes for misuse.
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <string.h>

#define PAGE SIM_PAGE_BYTES

static void configure(enum sim_numerics numerics, enum sim_addresses addresses,
                      uint64_t capacity_bytes) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2,
                                                      .capacity_bytes = capacity_bytes,
                                                      .numerics = numerics,
                                                      .addresses = addresses}),
                  BASE_OK);
}

static uint64_t malloc_ok(uint64_t size) {
    void *pointer = NULL;
    BASE_CHECK_EQ(cudaMalloc(&pointer, size), cudaSuccess);
    return (uint64_t)(uintptr_t)pointer;
}

static void free_ok(uint64_t address) {
    BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)address), cudaSuccess);
}

static void malloc_accounts_whole_pages(enum sim_numerics numerics) {
    configure(numerics, SIM_ADDRESSES_ASCENDING, 64 * BASE_MIB);
    size_t free_bytes, total_bytes;
    const uint64_t a = malloc_ok(1), b = malloc_ok(PAGE), c = malloc_ok(PAGE + 1);
    BASE_CHECK_EQ(sim_used_bytes(0), 4 * PAGE);
    BASE_CHECK_EQ(sim_used_bytes(1), 0);
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(free_bytes, 64 * BASE_MIB - 4 * PAGE);
    BASE_CHECK_EQ(total_bytes, 64 * BASE_MIB);
    sim_set_foreign_bytes(0, 10 * BASE_MIB);
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(free_bytes, 54 * BASE_MIB - 4 * PAGE);
    free_ok(a);
    free_ok(b);
    free_ok(c);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    sim_set_foreign_bytes(0, 65 * BASE_MIB);
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(free_bytes, 0);
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
}

static void malloc_fails_when_the_capacity_is_used_up(enum sim_numerics numerics) {
    configure(numerics, SIM_ADDRESSES_ASCENDING, 8 * PAGE);
    void *pointer = &pointer;
    const uint64_t seven = malloc_ok(7 * PAGE);
    sim_set_foreign_bytes(0, PAGE);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
    BASE_CHECK(pointer == &pointer);
    BASE_CHECK_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    sim_set_foreign_bytes(0, 0);
    const uint64_t last = malloc_ok(PAGE);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, SIZE_MAX - PAGE), cudaErrorMemoryAllocation);
    free_ok(seven);
    free_ok(last);
    free_ok(malloc_ok(8 * PAGE));
}

static void misuse_gets_the_codes_of_cuda(void) {
    configure(SIM_NUMERICS_OFF, SIM_ADDRESSES_ASCENDING, 64 * BASE_MIB);
    struct cudaPointerAttributes attributes;
    size_t bytes;
    void *pointer = &pointer;
    char local;
    BASE_CHECK_EQ(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
    BASE_CHECK(pointer == NULL);
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(&local), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost(&local), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost(NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaMemGetInfo(NULL, &bytes), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaPointerGetAttributes(NULL, &local), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostAlloc(NULL, 1, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostAlloc(&pointer, 1, 0x80), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostAlloc(&pointer, SIZE_MAX, 0), cudaErrorMemoryAllocation);

    const uint64_t address = malloc_ok(4096);
    BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)(address + 512)), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost((void *)(uintptr_t)address), cudaErrorInvalidValue);
    free_ok(address);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue); // a success between does not clear it
    BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)address), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMallocHost(&pointer, 100), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost((char *)pointer + 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost(pointer), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeHost(pointer), cudaErrorInvalidValue);
}

static void pointers_are_known_from_inside(void) {
    configure(SIM_NUMERICS_ON, SIM_ADDRESSES_ASCENDING, 64 * BASE_MIB);
    struct cudaPointerAttributes attributes;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    const uint64_t address = malloc_ok(5 * BASE_MIB);
    void *host, *inside = (void *)(uintptr_t)(address + 5 * BASE_MIB - 1);
    BASE_CHECK_EQ(cudaMallocHost(&host, 10000), cudaSuccess);
    BASE_CHECK_EQ((uint64_t)(uintptr_t)host % 4096, 0);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);

    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, inside), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
    BASE_CHECK_EQ(attributes.device, 1);
    BASE_CHECK(attributes.devicePointer == inside && attributes.hostPointer == NULL);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, (char *)host + 9999), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeHost);
    BASE_CHECK_EQ(attributes.device, 1);
    BASE_CHECK(attributes.devicePointer == attributes.hostPointer);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, &address), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
    BASE_CHECK_EQ(attributes.device, -2);
    BASE_CHECK(attributes.devicePointer == NULL && attributes.hostPointer == &address);

    free_ok(address); // of the other device
    BASE_CHECK_EQ(sim_used_bytes(1), 0);
    BASE_CHECK(sim_device_bytes(inside) == NULL);
    BASE_CHECK_EQ(cudaFreeHost(host), cudaSuccess);
}

static void ascending_addresses_are_never_used_again(void) {
    configure(SIM_NUMERICS_OFF, SIM_ADDRESSES_ASCENDING, 64 * BASE_MIB);
    uint64_t before = malloc_ok(1);
    for (int i = 0; i < 100; ++i) {
        const uint64_t address = malloc_ok(PAGE);
        BASE_CHECK_EQ(address, before + 2 * PAGE); // one page each, and a gap
        free_ok(address);
        before = address;
    }
}

static void reused_addresses_are_the_lowest_that_fit(enum sim_numerics numerics) {
    configure(numerics, SIM_ADDRESSES_REUSED, 64 * BASE_MIB);
    const uint64_t a = malloc_ok(PAGE), b = malloc_ok(3 * PAGE), c = malloc_ok(PAGE);
    BASE_CHECK_EQ(b, a + PAGE);
    BASE_CHECK_EQ(c, b + 3 * PAGE);
    free_ok(a);
    free_ok(b);
    BASE_CHECK_EQ(malloc_ok(2 * PAGE), a);
    BASE_CHECK_EQ(malloc_ok(PAGE + 1), b + PAGE);
    BASE_CHECK_EQ(malloc_ok(1), c + PAGE);
}

static void scattered_pages_make_one_allocation(void) {
    configure(SIM_NUMERICS_ON, SIM_ADDRESSES_ASCENDING, 8 * PAGE);
    uint64_t pages[8];
    for (int i = 0; i < 8; ++i)
        pages[i] = malloc_ok(PAGE);
    for (int i = 0; i < 8; i += 2)
        free_ok(pages[i]);
    const uint64_t address = malloc_ok(4 * PAGE); // no two free pages are neighbours
    unsigned char *bytes = sim_device_bytes((void *)(uintptr_t)address);
    memset(bytes, 7, 4 * PAGE);
    for (int i = 1; i < 8; i += 2)
        BASE_CHECK_EQ(*(unsigned char *)sim_device_bytes((void *)(uintptr_t)pages[i]), 0);
    BASE_CHECK_EQ(bytes[0] + bytes[4 * PAGE - 1], 14);
    free_ok(address);
    BASE_CHECK_EQ(sim_used_bytes(0), 4 * PAGE);
}

static void freed_memory_goes_back_to_the_host(void) {
    configure(SIM_NUMERICS_ON, SIM_ADDRESSES_ASCENDING, PAGE);
    for (int i = 0; i < 2; ++i) {
        const uint64_t address = malloc_ok(PAGE); // the device's only page each time
        unsigned char *bytes = sim_device_bytes((void *)(uintptr_t)address);
        BASE_CHECK_EQ(bytes[PAGE - 1], 0);
        memset(bytes, 7, PAGE);
        free_ok(address);
    }
}

static void queued_addresses_come_first_in_first_out(enum sim_addresses addresses) {
    configure(SIM_NUMERICS_OFF, addresses, 64 * BASE_MIB);
    const uint64_t wanted = 0x7f0000000200;
    BASE_CHECK_EQ(sim_next_address(0, wanted), BASE_OK);
    BASE_CHECK_EQ(sim_next_address(0, 4096), BASE_OK);
    BASE_CHECK_EQ(malloc_ok(1000), wanted);
    BASE_CHECK_EQ(malloc_ok(2 * PAGE), 4096);
    BASE_CHECK_EQ(sim_used_bytes(0), 3 * PAGE);

    // A neighbour at 512 bytes distance is legal, as recordings have them; an overlap is not.
    BASE_CHECK_EQ(sim_next_address(0, wanted + 512), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_next_address(0, wanted + 1024), BASE_OK);
    BASE_CHECK_EQ(malloc_ok(512), wanted + 1024);
    // It would reach into live memory: the policy chooses instead.
    BASE_CHECK_EQ(sim_next_address(0, wanted - 512), BASE_OK);
    const uint64_t other = malloc_ok(PAGE);
    BASE_CHECK_NE(other, wanted - 512);

    BASE_CHECK_EQ(sim_next_address(0, 0x1000), BASE_INVALID_VALUE); // live
    BASE_CHECK_EQ(sim_next_address(0, 512), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_next_address(0, 0x7f0000000100), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_next_address(0, (uint64_t)1 << 56), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_next_address(2, 1 << 20), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "device 2") != NULL);

    BASE_CHECK_EQ(sim_next_address(0, 0x600000000000), BASE_OK);
    sim_next_address_clear(0);
    const uint64_t chosen = malloc_ok(1);
    BASE_CHECK_NE(chosen, 0x600000000000);
    free_ok(wanted);
    free_ok(wanted + 1024);
    free_ok(other);
    free_ok(chosen);
    free_ok(4096);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void chosen_addresses_avoid_queued_ones(enum sim_addresses addresses) {
    configure(SIM_NUMERICS_OFF, addresses, 64 * BASE_MIB);
    const uint64_t first = malloc_ok(1);
    // In the way of what either policy would choose next, and not at a page's start.
    const uint64_t in_the_way = first + 2 * PAGE + 512;
    BASE_CHECK_EQ(sim_next_address(0, in_the_way), BASE_OK);
    BASE_CHECK_EQ(malloc_ok(PAGE), in_the_way);
    for (int i = 0; i < 4; ++i) {
        const uint64_t address = malloc_ok(PAGE);
        BASE_CHECK(address + PAGE <= in_the_way || address >= in_the_way + PAGE);
        BASE_CHECK_EQ(address % PAGE, 0);
    }
    free_ok(in_the_way);
}

static void a_queued_address_works_with_numerics_on(void) {
    configure(SIM_NUMERICS_ON, SIM_ADDRESSES_ASCENDING, 64 * BASE_MIB);
    const uint64_t first = malloc_ok(1);
    BASE_CHECK_EQ(sim_next_address(0, first + BASE_GIB + 4096), BASE_OK);
    BASE_CHECK_EQ(malloc_ok(100), first + BASE_GIB + 4096);
    memset(sim_device_bytes((void *)(uintptr_t)(first + BASE_GIB + 4096)), 1, 100);
    BASE_CHECK_EQ(sim_next_address(0, first + BASE_GIB + 512), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_next_address(0, 1 << 20), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_next_address(1, first + 2 * BASE_GIB), BASE_INVALID_VALUE);
}

static void reset_starts_anew(void) {
    configure(SIM_NUMERICS_ON, SIM_ADDRESSES_ASCENDING, 8 * PAGE);
    cudaStream_t stream;
    cudaEvent_t event;
    const uint64_t address = malloc_ok(8 * PAGE);
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    sim_reset();
    int device;
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 0);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)address), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaEventQuery(event), cudaErrorContextIsDestroyed);
    free_ok(malloc_ok(8 * PAGE));
}

int main(void) {
    malloc_accounts_whole_pages(SIM_NUMERICS_ON);
    malloc_accounts_whole_pages(SIM_NUMERICS_OFF);
    malloc_fails_when_the_capacity_is_used_up(SIM_NUMERICS_ON);
    malloc_fails_when_the_capacity_is_used_up(SIM_NUMERICS_OFF);
    misuse_gets_the_codes_of_cuda();
    pointers_are_known_from_inside();
    ascending_addresses_are_never_used_again();
    reused_addresses_are_the_lowest_that_fit(SIM_NUMERICS_ON);
    reused_addresses_are_the_lowest_that_fit(SIM_NUMERICS_OFF);
    scattered_pages_make_one_allocation();
    freed_memory_goes_back_to_the_host();
    queued_addresses_come_first_in_first_out(SIM_ADDRESSES_ASCENDING);
    queued_addresses_come_first_in_first_out(SIM_ADDRESSES_REUSED);
    chosen_addresses_avoid_queued_ones(SIM_ADDRESSES_ASCENDING);
    chosen_addresses_avoid_queued_ones(SIM_ADDRESSES_REUSED);
    a_queued_address_works_with_numerics_on();
    reset_starts_anew();
    return 0;
}
