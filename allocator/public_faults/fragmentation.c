// Out of memory while plenty is free.
#include "allocator/public_faults/case.h"
#include "allocator/public_faults/themes.h"

static const char *const whole[] = {"", "max_split_size_mb:200", "expandable_segments:True"};

// One tensor of 11,643,387,904 B, freed, cut up by blocks of which 499,214,336 B stay; asked for
// again on a device of which it is half. 32 blocks of 15,600,448 B are as many bytes.
static void big_tensor_again(const struct public_fault_teller *teller) {
    const size_t big = 11643387904, small = 499214336 / 32;
    // Unsplit: the big segment and 32 of whole 2 MiB. Growing: 20 MiB pages for both.
    const size_t page = 20 * MIB,
                 unsplit = big + 32 * ((small + 2 * MIB - 1) / (2 * MIB)) * 2 * MIB;
    const size_t grown = (32 * small + big + page - 1) / page * page;
    const int64_t reserved[] = {(int64_t)(big >> 20), (int64_t)(unsplit >> 20),
                                (int64_t)(grown >> 20)};
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(whole[index], 20 * GIB);
        testing_free(allocator, testing_malloc(allocator, big, NULL));
        for (int count = 0; count < 32; ++count)
            (void)testing_malloc(allocator, small, NULL);
        const bool failed = case_malloc(allocator, big, NULL) == NULL;
        tell(teller, whole[index], "out of memory", index == 0, failed);
        tell(teller, whole[index], "reserved MiB", reserved[index], reserved_mib(allocator));
        case_end(allocator);
    }
}

// 36 layers: 530 MiB, freed; 270 MiB that stay.
static void layers(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "max_split_size_mb:20", "expandable_segments:True"};
    // Each 530 keeps its 270; one 530 and 36 of 270; what the last layer has at once, in 20 MiB.
    const int64_t reserved[] = {36 * 530, 530 + 36 * 270, (35 * 270 + 530 + 19) / 20 * 20};
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 80 * GIB);
        for (int layer = 0; layer < 36; ++layer) {
            testing_free(allocator, testing_malloc(allocator, 530 * MIB, NULL));
            (void)testing_malloc(allocator, 270 * MIB, NULL);
        }
        tell(teller, configs[index], "reserved MiB", reserved[index], reserved_mib(allocator));
        tell(teller, configs[index], "allocated MiB", 36 * 270, allocated_mib(allocator));
        case_end(allocator);
    }
}

static void ten_five_six(const struct public_fault_teller *teller) {
    // 10 GiB is 512 pages of 20 MiB, 5 + 6 GiB need 52 more; or the 10 go first.
    const int64_t reserved[] = {10240, 11264, 10240 + 52 * 20};
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(whole[index], 12 * GIB);
        testing_free(allocator, testing_malloc(allocator, 10 * GIB, NULL));
        (void)testing_malloc(allocator, 5 * GIB, NULL);
        const bool failed = case_malloc(allocator, 6 * GIB, NULL) == NULL;
        tell(teller, whole[index], "out of memory", index == 0, failed);
        tell(teller, whole[index], "reserved MiB", reserved[index], reserved_mib(allocator));
        if (failed) {
            const struct allocator_stats stats = testing_stats(allocator);
            tell(teller, "", "free in a split block MiB", 5 * 1024,
                 stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current >> 20);
            tell(teller, "", "free on the device MiB", 2 * 1024,
                 (int64_t)((12 * GIB - sim_used_bytes(0)) >> 20));
        }
        case_end(allocator);
    }
}

// 31 segments of 1 GiB are cut into 36 MiB that stay and 28 MiB that go: 13.56 GiB are free, 50 MiB
// are not to be had.
static void holes_everywhere(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "max_split_size_mb:64", "expandable_segments:True"};
    enum { SEGMENTS = 31, PAIRS = SEGMENTS * 16 };
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(configs[index], SEGMENTS * GIB + 32 * MIB);
        void *segments[SEGMENTS], *holes[PAIRS];
        for (int count = 0; count < SEGMENTS; ++count)
            segments[count] = testing_malloc(allocator, GIB, NULL);
        for (int count = 0; count < SEGMENTS; ++count)
            testing_free(allocator, segments[count]);
        for (int count = 0; count < PAIRS; ++count) {
            (void)testing_malloc(allocator, 36 * MIB, NULL);
            holes[count] = testing_malloc(allocator, 28 * MIB, NULL);
        }
        for (int count = 0; count < PAIRS; ++count)
            testing_free(allocator, holes[count]);
        // What grows does so by 20 MiB.
        const int64_t mapped = (SEGMENTS * 1024 + 19) / 20 * 20;
        tell(teller, configs[index], "free in the cache MiB",
             index == 2 ? mapped - PAIRS * 36 : PAIRS * 28,
             reserved_mib(allocator) - allocated_mib(allocator));
        tell(teller, configs[index], "out of memory", index == 0,
             case_malloc(allocator, 50 * MIB, NULL) == NULL);
        case_end(allocator);
    }
}

static struct cca_out_of_memory last_error;
static void on_out_of_memory(void *context, const struct cca_out_of_memory *numbers) {
    (void)context;
    last_error = *numbers;
}

// ALLOCATED bytes live at the front of a segment whose rest is cached; OTHERS hold what makes FREE.
// TRIED does not fit the rest. MIN: the last piece may be cut no further.
static void refused_with(const struct public_fault_teller *teller, const char *config, size_t total,
                         size_t allocated, size_t cached, size_t free_bytes, size_t tried,
                         bool fails) {
    struct allocator *const allocator = case_begin(config, total);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){on_out_of_memory, NULL}),
                  BASE_OK);
    testing_free(allocator, testing_malloc(allocator, allocated + cached, NULL));
    (void)testing_malloc(allocator, allocated, NULL);
    sim_set_foreign_bytes(0, total - allocated - cached - free_bytes);
    tell(teller, config, "out of memory", fails, case_malloc(allocator, tried, NULL) == NULL);
    if (fails) {
        tell(teller, config, "the message: tried MiB", (int64_t)(tried >> 20),
             (int64_t)(last_error.tried >> 20));
        tell(teller, config, "the message: allocated MiB", (int64_t)(allocated >> 20),
             (int64_t)(last_error.allocated >> 20));
        tell(teller, config, "the message: unallocated MiB", (int64_t)(cached >> 20),
             (int64_t)(last_error.unallocated >> 20));
        tell(teller, config, "the message: free MiB", (int64_t)(free_bytes >> 20),
             (int64_t)(last_error.free >> 20));
    }
    sim_set_foreign_bytes(0, 0);
    case_end(allocator);
}

// 1.86 GiB refused: 31.72 total, 24.58 allocated, 1.28 free, 5.08 cached. Here 5.08 lie in 4 pieces
// between what is allocated; in whole 2 MiB.
static void refused_with_five_cached(const struct public_fault_teller *teller) {
    enum { PIECES = 4 };
    const size_t total = 32480 * MIB, piece = 1300 * MIB, kept = 6292 * MIB, tried = 1904 * MIB;
    const size_t rest = 1310 * MIB;
    struct allocator *const allocator = case_begin("", total);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){on_out_of_memory, NULL}),
                  BASE_OK);
    void *pieces[PIECES];
    testing_free(allocator, testing_malloc(allocator, PIECES * (piece + kept), NULL));
    for (int index = 0; index < PIECES; ++index) {
        pieces[index] = testing_malloc(allocator, piece, NULL);
        (void)testing_malloc(allocator, kept, NULL);
    }
    for (int index = 0; index < PIECES; ++index)
        testing_free(allocator, pieces[index]);
    sim_set_foreign_bytes(0, total - PIECES * (piece + kept) - rest);
    tell(teller, "", "out of memory", OOM, case_malloc(allocator, tried, NULL) == NULL);
    tell(teller, "", "the message: allocated MiB", PIECES * 6292,
         (int64_t)(last_error.allocated >> 20));
    tell(teller, "", "the message: unallocated MiB", PIECES * 1300,
         (int64_t)(last_error.unallocated >> 20));
    tell(teller, "", "the message: free MiB", 1310, (int64_t)(last_error.free >> 20));
    // None of it could have gone back: every piece is pinned.
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    tell(teller, "", "given back by empty_cache MiB", 0,
         PIECES * (1300 + 6292) - reserved_mib(allocator));
    sim_set_foreign_bytes(0, 0);
    case_end(allocator);
}

// 7.31 GiB refused with 307.86 MiB allocated, 4.36 GiB free, 6.80 GiB cached; in whole 2 MiB.
static void refused_with_little_allocated(const struct public_fault_teller *teller) {
    refused_with(teller, "", 12 * GIB, 308 * MIB, 6964 * MIB, 4464 * MIB, 7486 * MIB, true);
    refused_with(teller, "expandable_segments:True", 12 * GIB, 308 * MIB, 6964 * MIB, 4464 * MIB,
                 7486 * MIB, false);
}

// Two epochs of 1.32 and 9.91 GiB; the second one's small block is a little larger.
static void second_epoch(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "max_split_size_mb:2048", "expandable_segments:True"};
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 16 * GIB);
        void *const small = testing_malloc(allocator, 1352 * MIB, NULL);
        testing_free(allocator, testing_malloc(allocator, 10148 * MIB, NULL));
        testing_free(allocator, small);
        (void)testing_malloc(allocator, 1372 * MIB, NULL);
        tell(teller, configs[index], "out of memory in the second epoch", index == 0,
             case_malloc(allocator, 10148 * MIB, NULL) == NULL);
        case_end(allocator);
    }
}

// Another process holds 3 of 4 GiB: the driver refuses, and the message says why.
static void held_by_others(const struct public_fault_teller *teller) {
    refused_with(teller, "", 4 * GIB, 824 * MIB, 24 * MIB, 176 * MIB, 512 * MIB, true);
}

// Sixteen regions of 256 MiB, none of them large enough, are free: they go back before anything
// fails.
static void free_regions_go_back(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 4608 * MIB);
    void *regions[16];
    for (int index = 0; index < 16; ++index)
        regions[index] = testing_malloc(allocator, 256 * MIB, NULL);
    for (int index = 0; index < 16; ++index)
        testing_free(allocator, regions[index]);
    tell(teller, "", "out of memory", 0, case_malloc(allocator, 4 * GIB, NULL) == NULL);
    const struct allocator_stats stats = testing_stats(allocator);
    tell(teller, "", "segments given back", 16, stats.num_device_free);
    tell(teller, "", "retries", 1, stats.num_alloc_retries);
    case_end(allocator);
}

// A program whose buffers grow: each is given back, and something smaller that stays lands in its
// memory. Then one more.
struct growth {
    size_t capacity_mib, buffers_mib[3], kept_mib[3], last;
    size_t up_front_mib;     // of the policy that takes its memory at the start
    int64_t reserved_mib[3]; // growing, up front, expandable; after the last buffer
};

static bool grow_fails(struct allocator *allocator, const struct growth *growth) {
    for (int step = 0; step < 3 && growth->buffers_mib[step] > 0; ++step) {
        testing_free(allocator, testing_malloc(allocator, growth->buffers_mib[step] * MIB, NULL));
        (void)testing_malloc(allocator, growth->kept_mib[step] * MIB, NULL);
    }
    return case_malloc(allocator, growth->last, NULL) == NULL;
}

static void grow_or_take_up_front(const struct public_fault_teller *teller,
                                  const struct growth *growth) {
    static const char *const policies[] = {"", "one segment, taken up front",
                                           "expandable_segments:True"};
    for (int policy = 0; policy < 3; ++policy) {
        struct allocator *const allocator =
            case_begin(policy == 2 ? policies[2] : "", growth->capacity_mib * MIB);
        if (policy == 1)
            testing_free(allocator, testing_malloc(allocator, growth->up_front_mib * MIB, NULL));
        tell(teller, policies[policy], "out of memory", policy == 0, grow_fails(allocator, growth));
        tell(teller, policies[policy], "reserved MiB", growth->reserved_mib[policy],
             reserved_mib(allocator));
        case_end(allocator);
    }
}

// Each segment is pinned by what stays of its buffer. In one segment what stays lies side by side,
// behind it the buffer: 160 + 320 + 480 + 1024 MiB.
static void regions_that_cannot_join(const struct public_fault_teller *teller) {
    grow_or_take_up_front(teller, &(struct growth){.capacity_mib = 2048,
                                                   .buffers_mib = {256, 512, 768},
                                                   .kept_mib = {160, 320, 480},
                                                   .last = 1024 * MIB,
                                                   .up_front_mib = 2048,
                                                   .reserved_mib = {256 + 512 + 768, 2048, 2000}});
}

// 5,520,758,552 B are 5,265.006 MiB; the device and the buffers before are ours. Up front were 90
// %.
static void a_large_request_after_growth(const struct public_fault_teller *teller) {
    grow_or_take_up_front(teller, &(struct growth){.capacity_mib = 11264,
                                                   .buffers_mib = {2048, 4096},
                                                   .kept_mib = {1280, 2560},
                                                   .last = 5520758552,
                                                   .up_front_mib = 10136,
                                                   .reserved_mib = {2048 + 4096, 10136, 456 * 20}});
}

// A library that takes memory by itself finds none, until the cache is flushed.
static void library_beside_the_cache(const struct public_fault_teller *teller) {
    enum { TENSORS = 2000 };
    struct allocator *const allocator = case_begin("", 6 * GIB);
    static void *tensors[TENSORS];
    for (int index = 0; index < TENSORS; ++index)
        tensors[index] = testing_malloc(allocator, 2 * MIB, NULL);
    for (int index = 0; index < TENSORS; ++index)
        testing_free(allocator, tensors[index]);
    void *memory;
    tell(teller, "", "the library's call fails", 1, cudaMalloc(&memory, 3 * GIB) != cudaSuccess);
    (void)cudaGetLastError();
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    tell(teller, "", "it fails after empty_cache", 0, cudaMalloc(&memory, 3 * GIB) != cudaSuccess);
    BASE_CHECK_EQ(cudaFree(memory), cudaSuccess);
    case_end(allocator);
}

// What the program has live and asks for together is the least that any allocator needs: below the
// device's memory, moving blocks would have been enough.
static void lower_bound(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 12 * GIB);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){on_out_of_memory, NULL}),
                  BASE_OK);
    testing_free(allocator, testing_malloc(allocator, 10 * GIB, NULL));
    (void)testing_malloc(allocator, 5 * GIB, NULL);
    tell(teller, "", "out of memory", OOM, case_malloc(allocator, 6 * GIB, NULL) == NULL);
    tell(teller, "", "live and asked for, of 12288 MiB", (5 + 6) * 1024,
         (int64_t)((last_error.allocated + last_error.tried) >> 20));
    case_end(allocator);
}

// What users do about it: all tensors go to host memory and come back, side by side.
static void moved_to_the_host_and_back(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 12 * GIB);
    void *tensors[5];
    testing_free(allocator, testing_malloc(allocator, 10 * GIB, NULL));
    for (int index = 0; index < 5; ++index)
        tensors[index] = testing_malloc(allocator, GIB, NULL);
    tell(teller, "", "out of memory", 1, case_malloc(allocator, 6 * GIB, NULL) == NULL);
    for (int index = 0; index < 5; ++index)
        testing_free(allocator, tensors[index]);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    for (int index = 0; index < 5; ++index)
        tensors[index] = testing_malloc(allocator, GIB, NULL);
    tell(teller, "", "the same after all were moved away and back", 0,
         case_malloc(allocator, 6 * GIB, NULL) == NULL);
    tell(teller, "", "reserved MiB then", 5 * 1024 + 6 * 1024, reserved_mib(allocator));
    case_end(allocator);
}

const struct public_fault_case public_faults_fragmentation[PUBLIC_FAULTS_FRAGMENTATION_COUNT] = {
    {.names = "pt#35901",
     .pattern = "a tensor as large as half the device, its segment cut up, asked for again",
     .run = big_tensor_again},
    {.names = "vllm#41268", .pattern = "36 layers: 530 MiB freed, 270 MiB kept", .run = layers},
    {.names = "flashlight#180", .pattern = "10 GiB freed, then 5 and 6 on 12", .run = ten_five_six},
    {.names = "pt#44742",
     .pattern = "50 MiB refused while 13.56 GiB are free in split pieces",
     .run = holes_everywhere},
    {.names = "pt#31353",
     .pattern = "1.86 GiB refused with 5.08 cached; what of it can go back",
     .run = refused_with_five_cached},
    {.names = "pocket#9",
     .pattern = "7.31 GiB refused with 308 MiB allocated, 4.36 GiB free and 6.80 cached",
     .run = refused_with_little_allocated},
    {.names = "falkon#37 falkon#22",
     .pattern = "the second epoch's small block cuts the first one's large one",
     .run = second_epoch},
    {.names = "pt#31252",
     .pattern = "no recourse but to move all tensors away and back",
     .run = moved_to_the_host_and_back},
    {.names = "pt#84540 pt#88081 taggui#188",
     .pattern = "memory is taken outside the allocator",
     .run = held_by_others},
    {.names = "tf#6111",
     .pattern = "growth makes regions that cannot join",
     .run = regions_that_cannot_join},
    {.names = "tf#30827 tf#26218",
     .pattern = "regions wholly free, but never given back",
     .run = free_regions_go_back},
    {.names = "jax#788",
     .pattern = "5.1 GiB refused after the move to growth",
     .run = a_large_request_after_growth},
    {.names = "tf#10152",
     .pattern = "no defragmentation: would it have been enough",
     .run = lower_bound},
    {.names = "cutorch#707",
     .pattern = "a library that bypasses the allocator, beside 4 GB of freed tensors",
     .run = library_beside_the_cache},
};
