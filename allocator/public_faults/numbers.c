// Numbers that are wrong or mislead, and sizes at the edge of what there is.
#include "allocator/public_faults/case.h"
#include "allocator/public_faults/themes.h"
#include "base/random.h"

// A fraction limits what the allocator reserves, not what the process holds: 0.5 of 10,988 MiB and
// a context of 1,014.
static void fraction_and_context(const struct public_fault_teller *teller) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 10988 * MIB,
                                                      .context_bytes = 1014 * MIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.fraction = 0.5, .fraction_set = true},
                                       &allocator),
                  BASE_OK);
    while (case_malloc(allocator, 2 * MIB, NULL) != NULL)
        continue;
    size_t free_bytes, total;
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    // Half is 5,494 MiB: 274 segments of 20.
    tell(teller, "fraction 0.5", "reserved MiB", 5494 / 20 * 20, reserved_mib(allocator));
    tell(teller, "fraction 0.5", "of the device in use MiB", 5494 / 20 * 20 + 1014,
         (int64_t)((total - free_bytes) >> 20));
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void unlimited_is_minus_one(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", GIB);
    (void)testing_malloc(allocator, 1, NULL);
    tell(teller, "", "max_split_size, unlimited", -1, testing_stats(allocator).max_split_size);
    case_end(allocator);
    struct allocator *const limited = case_begin("max_split_size_mb:64", GIB);
    (void)testing_malloc(limited, 1, NULL);
    tell(teller, "max_split_size_mb:64", "max_split_size bytes", 64 << 20,
         testing_stats(limited).max_split_size);
    case_end(limited);
}

static int64_t negative_numbers(const struct allocator_stats *stats) {
    int64_t count = 0;
#define COUNT(name)                                                                                \
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)                                   \
        count += stats->name[kind].current < 0 || stats->name[kind].peak < 0 ||                    \
                 stats->name[kind].allocated < 0 || stats->name[kind].freed < 0;
    ALLOCATOR_STAT_LIST(COUNT)
#undef COUNT
    return count;
}

// Resets in the middle of everything.
static void never_negative(const struct public_fault_teller *teller) {
    enum { LIVE = 64 };
    struct allocator *const allocator = case_begin("", 4 * GIB);
    struct base_random random = base_random_init(135726, "numbers");
    void *live[LIVE] = {NULL};
    int64_t negative = 0;
    for (int step = 0; step < 4000; ++step) {
        void **const slot = &live[base_random_below(&random, LIVE)];
        testing_free(allocator, *slot);
        *slot = case_malloc(allocator, base_random_log_between(&random, 1, 64 << 20), NULL);
        if (step % 97 == 0) BASE_CHECK_EQ(allocator_reset_accumulated_stats(allocator, 0), BASE_OK);
        if (step % 89 == 0) BASE_CHECK_EQ(allocator_reset_peak_stats(allocator, 0), BASE_OK);
        const struct allocator_stats stats = testing_stats(allocator);
        negative += negative_numbers(&stats);
    }
    tell(teller, "", "numbers below 0 in 4000 steps", 0, negative);
    case_end(allocator);
}

static void no_limit_no_clause(const struct public_fault_teller *teller) {
    struct allocator *allocator = case_begin("", GIB);
    (void)case_malloc(allocator, 2 * GIB, NULL);
    tell(teller, "", "the message states a limit", 0, testing_message_has("allowed"));
    case_end(allocator);
    allocator = case_begin("", GIB);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.5), BASE_OK);
    (void)case_malloc(allocator, 2 * GIB, NULL);
    tell(teller, "fraction 0.5", "the message states a limit", 1, testing_message_has("allowed"));
    case_end(allocator);
}

// Sizes that no device has: each is a plain out of memory, and nothing changed.
static void refuse_sizes(const struct public_fault_teller *teller, const size_t *sizes,
                         size_t count) {
    struct allocator *const allocator = case_begin("", GIB);
    char *const first = testing_malloc(allocator, 1, NULL);
    const struct allocator_stats before = testing_stats(allocator);
    int64_t accepted = 0;
    for (size_t index = 0; index < count; ++index) {
        void *pointer = first;
        accepted +=
            allocator_malloc(allocator, 0, sizes[index], NULL, &pointer) != BASE_OUT_OF_MEMORY ||
            pointer != first;
    }
    const struct allocator_stats after = testing_stats(allocator);
    tell(teller, "", "sizes that are no plain out of memory", 0, accepted);
    tell(teller, "", "numbers changed by them", 0, memcmp(&before, &after, sizeof before) != 0);
    case_end(allocator);
}

// At the edge of a block: no block of no bytes, no address twice.
static void edge_blocks(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", GIB);
    char *const first = testing_malloc(allocator, 1, NULL);
    void *none = first;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 0, NULL, &none), BASE_OK);
    tell(teller, "", "0 bytes give an address", 0, none != NULL);
    static const size_t small[] = {511, 512, 513};
    static const int64_t blocks[] = {512, 512, 1024};
    const char *end = first + 512;
    for (int index = 0; index < 3; ++index) {
        const char *const pointer = testing_malloc(allocator, small[index], NULL);
        tell(teller, "", "511, 512, 513 bytes begin behind the block before by bytes", 0,
             pointer - end);
        end = pointer + blocks[index];
    }
    case_end(allocator);
}

// All 513 of them.
static void sizes_that_round_to_nothing(const struct public_fault_teller *teller) {
    static size_t sizes[513];
    for (size_t index = 0; index < 513; ++index)
        sizes[index] = SIZE_MAX - 512 + index;
    refuse_sizes(teller, sizes, 513);
    edge_blocks(teller);
}

static void a_size_of_nearly_all_addresses(const struct public_fault_teller *teller) {
    refuse_sizes(teller, &(size_t){18446744073708433663u}, 1);
}

static void sizes_of_half_of_all_addresses(const struct public_fault_teller *teller) {
    static const size_t half = (size_t)1 << 63;
    refuse_sizes(teller, (size_t[]){half - 1, half, half + 1, half + half / 2}, 4);
}

const struct public_fault_case public_faults_numbers[PUBLIC_FAULTS_NUMBERS_COUNT] = {
    {.names = "pt#58466 pt#107667 pt#69688 pt#48172",
     .pattern = "a fraction is taken for a limit of the process",
     .run = fraction_and_context},
    {.names = "pt#111555",
     .pattern = "max_split_size in the statistics",
     .run = unlimited_is_minus_one},
    {.names = "pt#135726", .pattern = "a statistic below 0", .run = never_negative},
    {.names = "pt#110194",
     .pattern = "the message states a limit that nobody set",
     .run = no_limit_no_clause},
    {.names = "mflux#730 ColossalAI#650",
     .pattern = "peaks that depend on timing",
     .elsewhere = "the simulator's: virtual time makes each run the same"},
    {.names = "pt#182446",
     .pattern = "sizes near SIZE_MAX round to 0",
     .run = sizes_that_round_to_nothing},
    {.names = "pt#57571",
     .pattern = "18446744073708433663 bytes trip an assertion",
     .run = a_size_of_nearly_all_addresses},
    {.names = "pt#182277", .pattern = "2^63 bytes and more", .run = sizes_of_half_of_all_addresses},
    {.names = "pt#139181 accelerate#2868",
     .pattern = "a shape whose product overflows",
     .elsewhere = "a matter of tensors: sizes are made of shapes there"},
    {.names = "pt#70028",
     .pattern = "a profiler shows negative allocations",
     .elsewhere = "a matter of readers of traces"},
};
