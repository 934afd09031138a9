// Expandable segments, the setting that everyone is told to try.
#include "allocator/public_faults/case.h"
#include "allocator/public_faults/themes.h"

#include <cuda.h>
#include <stdlib.h>

static const char on[] = "expandable_segments:True";

// 91 and 45.5 MiB together, a block of 2 MiB that stays, both freed; 101 times, beside a buffer of
// 64 MiB.
#define CYCLES 101
static void cycle(struct allocator *allocator) {
    void *const a = case_malloc(allocator, 91 * MIB, NULL);
    void *const b = case_malloc(allocator, 45 * MIB + MIB / 2, NULL);
    (void)case_malloc(allocator, 2 * MIB, NULL);
    testing_free(allocator, a);
    testing_free(allocator, b);
}

static void grows_without_end(const struct public_fault_teller *teller) {
    static const char *const configs[] = {
        "max_split_size_mb:128,expandable_segments:True", "max_split_size_mb:128",
        "expandable_segments:True",
        "max_split_size_mb:128,expandable_segments:True,x_bound_growth:True"};
    // As reported, at the end of cycles 0, 20, 40, 60, 80 and 100.
    static const int64_t reported[] = {220, 2980, 5760, 8520, 11300, 14060};
    for (int index = 0; index < 4; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 80 * GIB);
        (void)testing_malloc(allocator, 64 * MIB, NULL);
        for (int number = 0; number < CYCLES; ++number) {
            cycle(allocator);
            if (index == 0 && number % 20 == 0)
                tell(teller, configs[0], "reserved MiB, as reported", reported[number / 20],
                     reserved_mib(allocator));
        }
        if (index > 0)
            tell_below(teller, configs[index], "reserved MiB", 500, reserved_mib(allocator));
        case_end(allocator);
    }
}

// The same loop on 16 GiB with a canary of 64 MiB, until pages are unmapped to go on.
static void canary(const struct public_fault_teller *teller) {
    static const char config[] = "max_split_size_mb:128,expandable_segments:True";
    struct allocator *const allocator = case_begin(config, 16 * GIB);
    char *const live = testing_malloc(allocator, 64 * MIB, NULL);
    int cycles = 0;
    while (testing_stats(allocator).num_alloc_retries == 0 && cycles < 200) {
        cycle(allocator);
        ++cycles;
    }
    tell_below(teller, config, "cycles until pages are unmapped", 200, cycles);
    tell_above(teller, config, "pages unmapped", 0, (int64_t)sim_call_count(SIM_CALL_MEM_UNMAP));
    int64_t missing = 0;
    for (size_t at = 0; at < 64 * MIB; at += 2 * MIB) {
        unsigned long long flags = 0;
        const CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
        missing +=
            cuMemGetAccess(&flags, &device, (CUdeviceptr)(uintptr_t)(live + at)) != CUDA_SUCCESS ||
            flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    tell(teller, config, "pages of the canary that are gone", 0, missing);
    case_end(allocator);
}

// 550 MiB freed, then blocks of 110 until the device is full.
static void full_device(const struct public_fault_teller *teller) {
    static const char config[] = "max_split_size_mb:500,expandable_segments:True";
    struct allocator *const allocator = case_begin(config, 2 * GIB);
    testing_free(allocator, testing_malloc(allocator, 550 * MIB, NULL));
    int64_t count = 0;
    while (case_malloc(allocator, 110 * MIB, NULL) != NULL && count < 100)
        ++count;
    // The oversize block serves none of them; it goes back when the device is full, and leaves less
    // than a block and its pages of 20 MiB.
    tell(teller, config, "blocks until out of memory", (2048 / 20 * 20) / 110, count);
    tell(teller, config, "out of memory", OOM, testing_stats(allocator).num_ooms);
    case_end(allocator);
}

// One oversize block is all there is, and is released for a larger one.
static void last_of_its_set(const struct public_fault_teller *teller) {
    static const char config[] = "expandable_segments:True,max_split_size_mb:2048";
    struct allocator *const allocator = case_begin(config, 6 * GIB);
    testing_free(allocator, testing_malloc(allocator, 3 * GIB, NULL));
    tell(teller, config, "out of memory", 0, case_malloc(allocator, 5 * GIB, NULL) == NULL);
    case_end(allocator);
}

// 100 MiB are five pages, of which the device has K: the K go back, and a smaller request works.
// Then the driver fails to map the K-th of five, which is an error of its own.
static void fails_at_each_page(const struct public_fault_teller *teller) {
    int64_t succeeded = 0, left_mapped = 0, next_fails = 0;
    for (uint64_t k = 1; k <= 9; ++k) {
        const bool runs_out = k < 5;
        struct allocator *const allocator = case_begin(on, runs_out ? k * 20 * MIB : 2 * GIB);
        if (!runs_out) sim_fault_next(SIM_CALL_MEM_MAP, k - 4, cudaErrorUnknown);
        void *pointer;
        succeeded += allocator_malloc(allocator, 0, 100 * MIB, NULL, &pointer) !=
                     (runs_out ? BASE_OUT_OF_MEMORY : BASE_CUDA);
        left_mapped += reserved_mib(allocator) + (int64_t)sim_used_bytes(0);
        cca_check(allocator);
        next_fails += case_malloc(allocator, 15 * MIB, NULL) == NULL;
        case_end(allocator);
    }
    tell(teller, on, "failures of another kind than the driver's", 0, succeeded);
    tell(teller, on, "pages left by failures", 0, left_mapped);
    tell(teller, on, "smaller requests that fail afterwards", 0, next_fails);
}

// Out of memory is one kind of error, whatever runs out.
static void one_kind_of_error(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "expandable_segments:True"};
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 8 * GIB);
        void *pointer;
        int64_t count = 0;
        enum base_status status;
        while ((status = allocator_malloc(allocator, 0, GIB - 20 * MIB, NULL, &pointer)) == BASE_OK)
            ++count;
        tell(teller, configs[index], "the error is out of memory", 1, status == BASE_OUT_OF_MEMORY);
        tell(teller, configs[index], "its text is PyTorch's", 1,
             strncmp(base_status_message(), "CUDA out of memory", 18) == 0);
        tell(teller, configs[index], "blocks of 1004 MiB on 8 GiB", 8, count);
        case_end(allocator);
    }
}

static void handle_for_another_process(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin(on, 8 * GIB);
    void *const pointer = testing_malloc(allocator, 64 * MIB, NULL), *base;
    size_t size;
    tell(teller, on, "refused", 1,
         allocator_base_allocation(allocator, pointer, &base, &size) == BASE_INVALID_VALUE);
    tell(teller, on, "the message names the setting", 1,
         testing_message_has("expandable_segments:False"));
    case_end(allocator);
}

// Each stream and pool reserves 9/8 of 80 GiB; 1 TiB of addresses is for 11 of them.
static void addresses_run_out(const struct public_fault_teller *teller) {
    static const char *const configs[] = {
        "expandable_segments:True", "expandable_segments:True,expandable_segments_reserve:10G"};
    static const int64_t reserve_gib[] = {90, 10};
    for (int index = 0; index < 2; ++index) {
        struct allocator *allocator = NULL;
        BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 80 * GIB,
                                                          .address_bytes = 1024 * GIB,
                                                          .numerics = SIM_NUMERICS_OFF}),
                      BASE_OK);
        BASE_CHECK_EQ(
            cca_allocator_create(&(struct cca_options){.config = configs[index]}, &allocator),
            BASE_OK);
        cca_set_warning_observer(allocator, &(struct cca_warning_observer){ignore_warning, NULL});
        int64_t count = 0;
        void *pointer;
        while (count < 200 &&
               allocator_malloc(allocator, 0, 2 * MIB, testing_stream(), &pointer) == BASE_OK)
            ++count;
        tell(teller, configs[index], "streams that have a segment", 1024 / reserve_gib[index],
             count);
        tell(teller, configs[index], "the message names the key", 1,
             testing_message_has("expandable_segments_reserve"));
        case_end(allocator);
    }
}

static void advice(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "expandable_segments:True"};
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], GIB);
        (void)case_malloc(allocator, 2 * GIB, NULL);
        tell(teller, configs[index], "the message advises expandable_segments:True", index == 0,
             testing_message_has("expandable_segments:True"));
        case_end(allocator);
    }
}

static const char processes[] = "handles for other processes are not built";

const struct public_fault_case public_faults_expandable[PUBLIC_FAULTS_EXPANDABLE_COUNT] = {
    {.names = "pt#193400 pt#123548",
     .pattern = "91 and 45.5 MiB freed behind a block that stays, 101 times",
     .better = "x_bound_growth:True",
     .run = grows_without_end},
    {.names = "ROCm#6603",
     .pattern = "the same until pages are unmapped, beside a live buffer",
     .run = canary},
    {.names = "pt#119452 pt#120022 pt#134338",
     .pattern = "an assertion near the end of memory; 550 MiB freed, blocks of 110",
     .run = full_device},
    {.names = "pt#159567",
     .pattern = "the last block of its set is released",
     .run = last_of_its_set},
    {.names = "pt#188008", .pattern = "the driver fails at page k of n", .run = fails_at_each_page},
    {.names = "torch-max-mem#45",
     .pattern = "callers do not recognise the error",
     .run = one_kind_of_error},
    {.names = "pt#165685 pt#179220 pt#130890",
     .pattern = "a handle for another process is asked for",
     .run = handle_for_another_process},
    {.names = "pt#186213",
     .pattern = "each imported handle reserves 9/8 of the device",
     .elsewhere = processes},
    {.names = "pt#192269",
     .pattern = "address space runs out with many streams",
     .run = addresses_run_out},
    {.names = "pt#198305",
     .pattern = "two tensors of one segment give different handles",
     .elsewhere = processes},
    {.names = "pt#173049", .pattern = "the message advises what is on already", .run = advice},
    {.names = "Mooncake#2511 torch_memory_saver#24",
     .pattern = "mapped memory is handed to libraries that cannot take it",
     .elsewhere = "a matter of those libraries: without the setting memory is cudaMalloc's"},
    {.names = "pt#147851",
     .pattern = "no effect with an allocator of the program's own in a pool",
     .elsewhere = "segments of such a pool are never expandable (allocator/pools.h), as in 2.15"},
    {.names = "pt#196209",
     .pattern = "compute-sanitizer's false alarm across mapped pages",
     .elsewhere = "a tool's fault, where there is a GPU"},
};
