// What bad input gets: a status, a sentence, and an allocator that is as it was
// before.
#include "allocator/testing_state.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t mib = 1 << 20;

// One call that must be refused, and leave everything as it was.
#define REFUSED(allocator, call, status, words)                                                    \
    do {                                                                                           \
        struct testing_state before_;                                                              \
        testing_state_init(&before_, allocator, 1);                                                \
        (void)base_status_set(BASE_OK, "-");                                                       \
        BASE_CHECK_EQ(call, status);                                                               \
        testing_message_is_a_sentence();                                                           \
        base_check_context("\"%s\" in \"%s\"", words, base_status_message());                      \
        BASE_CHECK(testing_message_has(words));                                                    \
        base_check_context(NULL);                                                                  \
        testing_state_is(&before_, allocator);                                                     \
        testing_state_deinit(&before_);                                                            \
        cca_check(allocator);                                                                      \
    } while (0)

//------------------------------------------------------------------------------------------------
// Pointers.

static void refused_everywhere(struct allocator *allocator, void *pointer, const char *words) {
    void *base;
    size_t size;
    REFUSED(allocator, allocator_free(allocator, pointer), BASE_INVALID_POINTER, words);
    REFUSED(allocator, allocator_record_stream(allocator, pointer, NULL), BASE_INVALID_POINTER,
            words);
    REFUSED(allocator, allocator_base_allocation(allocator, pointer, &base, &size),
            BASE_INVALID_POINTER, words);
}

static void *address(uint64_t value) { return (void *)(uintptr_t)value; }

static void foreign_pointers_are_refused(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    struct allocator *other = NULL;
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = config}, &other), BASE_OK);
    void *const host = malloc(1), *const others = testing_malloc(other, 1000, NULL);
    int local;
    void *device = NULL;
    BASE_CHECK_EQ(cudaMalloc(&device, 1), cudaSuccess);
    static const uint64_t odd[] = {1,
                                   511,
                                   512,
                                   (uint64_t)1 << 20,
                                   (uint64_t)1 << 47,
                                   (uint64_t)1 << 48,
                                   (uint64_t)1 << 63,
                                   UINT64_MAX - 511,
                                   UINT64_MAX};
    // Before the allocator has met the device, with nothing but a device, and
    // with blocks.
    BASE_CHECK_EQ(allocator_free(allocator, &local), BASE_INVALID_POINTER);
    for (int round = 0; round < 2; ++round) {
        static const char *const never = "never handed it out";
        refused_everywhere(allocator, &local, never);
        refused_everywhere(allocator, host, never);
        refused_everywhere(allocator, others, never);
        refused_everywhere(allocator, device, never);
        for (size_t index = 0; index < sizeof odd / sizeof odd[0]; ++index)
            refused_everywhere(allocator, address(odd[index]), never);
        testing_malloc(allocator, 1000, NULL);
        testing_malloc(allocator, 30 * mib, NULL);
    }
    BASE_CHECK_EQ(allocator_free(allocator, NULL), BASE_OK);
    BASE_CHECK_EQ(allocator_record_stream(allocator, NULL, NULL), BASE_OK);
    allocator_destroy(allocator);
    // What another allocator refused is still the first one's.
    testing_free(other, others);
    cca_check(other);
    allocator_destroy(other);
    BASE_CHECK_EQ(cudaFree(device), cudaSuccess);
    free(host);
}

// Of all pools, with neighbours of every state.
static void freed_pointers_are_refused(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    static const size_t sizes[] = {1, 512, 100000, 1 << 20, (1 << 20) + 1, 9 << 20, 30 << 20};
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; ++index) {
        void *const before = testing_malloc(allocator, sizes[index], NULL),
                    *const block = testing_malloc(allocator, sizes[index], NULL),
                    *const behind = testing_malloc(allocator, sizes[index], NULL);
        testing_free(allocator, block);
        refused_everywhere(allocator, block, "freed already");
        testing_free(allocator, before); // merges with it
        refused_everywhere(allocator, block, "freed already");
        refused_everywhere(allocator, before, "freed already");
        testing_free(allocator, behind);
        refused_everywhere(allocator, block, "freed already");
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
        refused_everywhere(allocator, block, "went back to the device");
        // The memory of the old block, handed out in other pieces.
        void *const larger = testing_malloc(allocator, 3 * sizes[index], NULL);
        if ((char *)block > (char *)larger && (char *)block < (char *)larger + sizes[index])
            refused_everywhere(allocator, block, "points into a block");
        testing_free(allocator, larger);
    }
    allocator_destroy(allocator);
}

static void pending_blocks_are_refused_as_freed(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    const cudaStream_t user = testing_stream();
    char *const block = testing_malloc(allocator, 4096, NULL);
    sim_stream_hold(user, true);
    BASE_CHECK_EQ(allocator_record_stream(allocator, block, user), BASE_OK);
    testing_free(allocator, block);
    refused_everywhere(allocator, block, "freed already and waits for its streams");
    refused_everywhere(allocator, block + 100, "freed already and waits for its streams");
    sim_stream_hold(user, false);
    allocator_destroy(allocator);
}

static void interior_pointers_are_no_blocks(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    static const size_t sizes[] = {1, 512, 100000, 1 << 20, (1 << 20) + 1, 9 << 20, 300 << 20};
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; ++index) {
        const size_t size = (sizes[index] + 511) / 512 * 512;
        char *const block = testing_malloc(allocator, sizes[index], NULL);
        const size_t offsets[] = {1, size / 2 + 1, size - 1};
        for (size_t at = 0; at < sizeof offsets / sizeof offsets[0]; ++at) {
            char words[64];
            void *base;
            size_t length;
            snprintf(words, sizeof words, "%zu bytes behind its start; pass %p", offsets[at],
                     (void *)block);
            REFUSED(allocator, allocator_free(allocator, block + offsets[at]), BASE_INVALID_POINTER,
                    words);
            REFUSED(allocator,
                    allocator_base_allocation(allocator, block + offsets[at], &base, &length),
                    BASE_INVALID_POINTER, words);
        }
    }
    allocator_destroy(allocator);
}

// The fault: record_stream on base[5:] did nothing, and the memory was used
// again too early.
static void a_view_marks_the_block_that_it_is_part_of(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    const cudaStream_t own = testing_stream(), user = testing_stream();
    static const size_t sizes[] = {1024, 100000, 1 << 20, (1 << 20) + 1, 9 << 20, 300 << 20};
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; ++index) {
        char *const before = testing_malloc(allocator, sizes[index], own),
                    *const block = testing_malloc(allocator, sizes[index], own),
                    *const behind = testing_malloc(allocator, sizes[index], own);
        sim_stream_hold(user, true);
        BASE_CHECK_EQ(allocator_record_stream(allocator, block + sizes[index] - 1, user), BASE_OK);
        BASE_CHECK_EQ(allocator_record_stream(allocator, block + 5, user), BASE_OK);
        testing_free(allocator, block);
        BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 3);
        BASE_CHECK_EQ(testing_stats(allocator).allocation[ALLOCATOR_STAT_ALL].current, 2);
        void *const other = testing_malloc(allocator, sizes[index], own);
        BASE_CHECK(other != block);
        cca_check(allocator);
        testing_free(allocator, other);
        testing_free(allocator, before); // the neighbours were not marked
        testing_free(allocator, behind);
        BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 1);
        sim_stream_hold(user, false);
        BASE_CHECK_EQ(cudaStreamSynchronize(user), cudaSuccess);
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
        BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 0);
        BASE_CHECK_EQ(sim_used_bytes(0), 0);
    }
    // On its own stream an interior pointer changes nothing either.
    char *const block = testing_malloc(allocator, 4096, own);
    BASE_CHECK_EQ(allocator_record_stream(allocator, block + 5, own), BASE_OK);
    testing_free(allocator, block);
    BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(allocator);
}

static void a_view_is_refused_by_option(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.refuse_interior_pointers = true}, &allocator),
        BASE_OK);
    const cudaStream_t user = testing_stream();
    char *const block = testing_malloc(allocator, 4096, NULL);
    REFUSED(allocator, allocator_record_stream(allocator, block + 5, user), BASE_INVALID_POINTER,
            "5 bytes behind its start");
    BASE_CHECK_EQ(allocator_record_stream(allocator, block, user), BASE_OK);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Sizes.

static void check_size(struct allocator *allocator, size_t size) {
    void *a = NULL, *b = NULL;
    const size_t most = (size_t)8 << 30; // of the device
    if (size > most) {
        // A request that was asked of the device counts as one that failed.
        const int64_t failed = testing_stats(allocator).num_ooms;
        const uint64_t used = sim_used_bytes(0);
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, size, NULL, &a), BASE_OUT_OF_MEMORY);
        testing_message_is_a_sentence();
        BASE_CHECK(testing_message_has("CUDA out of memory. Tried to allocate "));
        BASE_CHECK(a == NULL);
        BASE_CHECK_LE(sim_used_bytes(0), used); // what was cached may have gone
        BASE_CHECK_LE(testing_stats(allocator).num_ooms, failed + 1);
        cca_check(allocator);
        return;
    }
    a = testing_malloc(allocator, size, NULL);
    b = testing_malloc(allocator, size, NULL);
    BASE_CHECK_EQ(a == NULL, size == 0);
    if (size == 0) return;
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    for (size_t index = 0; index < snapshot.block_count; ++index) {
        BASE_CHECK_GT(snapshot.blocks[index].size, 0);
        BASE_CHECK_EQ(snapshot.blocks[index].size % 512, 0);
    }
    allocator_snapshot_deinit(&snapshot);
    const uint64_t first = (uint64_t)(uintptr_t)a, second = (uint64_t)(uintptr_t)b;
    BASE_CHECK(first + size <= second || second + size <= first);
    testing_free(allocator, a);
    testing_free(allocator, b);
    cca_check(allocator);
}

// The fault: sizes near SIZE_MAX rounded to 0, and two blocks lived at one
// address.
static void no_size_wraps(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    static const size_t sizes[] = {0,
                                   1,
                                   511,
                                   512,
                                   513,
                                   (size_t)1 << 33,
                                   ((size_t)1 << 33) + 1,
                                   ((size_t)1 << 60) - 1,
                                   (size_t)1 << 60,
                                   ((size_t)1 << 60) + 1,
                                   (size_t)1 << 63,
                                   ((size_t)1 << 63) - 1,
                                   ((size_t)1 << 63) + 1,
                                   18446744073708433663u,
                                   4605674770382112385u};
    void *const kept = testing_malloc(allocator, 3 * mib, NULL);
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; ++index)
        if (sizes[index] != (size_t)1 << 33) check_size(allocator, sizes[index]);
    for (size_t size = SIZE_MAX - 512; size != 0; ++size)
        check_size(allocator, size);
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    size_t live = 0;
    for (size_t index = 0; index < snapshot.block_count; ++index)
        live += snapshot.blocks[index].state == ALLOCATOR_BLOCK_ALLOCATED;
    BASE_CHECK_EQ(live, 1);
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, kept);
    size_t rounded, segment;
    BASE_CHECK_EQ(cca_round_size(allocator, 0, &rounded, &segment), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_round_size(allocator, SIZE_MAX, &rounded, &segment), BASE_INVALID_VALUE);
    testing_message_is_a_sentence();
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Devices and numbers.

static void devices_that_are_none_are_refused(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    static const int ordinals[] = {1, -1, 63, 64, 1000000, INT_MAX, INT_MIN};
    void *pointer = NULL;
    size_t size;
    double fraction;
    struct allocator_stats stats;
    struct cca_expandable_segment *segments;
    testing_malloc(allocator, 1000, NULL);
    for (size_t index = 0; index < sizeof ordinals / sizeof ordinals[0]; ++index) {
        const int device = ordinals[index];
        char words[64];
        snprintf(words, sizeof words, "device %d: there are devices 0 to 0", device);
        const enum base_status status = BASE_INVALID_VALUE;
        REFUSED(allocator, allocator_malloc(allocator, device, 1, NULL, &pointer), status, words);
        REFUSED(allocator, allocator_largest_block(allocator, device, &size), status, words);
        REFUSED(allocator, allocator_stats(allocator, device, &stats), status, words);
        REFUSED(allocator, allocator_reset_peak_stats(allocator, device), status, words);
        REFUSED(allocator, allocator_reset_accumulated_stats(allocator, device), status, words);
        REFUSED(allocator, cca_set_memory_fraction(allocator, device, 0.5), status, words);
        REFUSED(allocator, cca_memory_fraction(allocator, device, &fraction), status, words);
        REFUSED(allocator, cca_set_stream_reserve_class(allocator, device, NULL, "a"), status,
                words);
        REFUSED(allocator, cca_enable_peer_access(allocator, device, 0), status, words);
        REFUSED(allocator, cca_enable_peer_access(allocator, 0, device), status, words);
        REFUSED(allocator, cca_expandable_segments(allocator, device, &segments, &size), status,
                words);
    }
    BASE_CHECK(pointer == NULL);
    allocator_destroy(allocator);
}

static void numbers_that_make_no_sense_are_refused(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    struct allocator *none = NULL;
    static const double fractions[] = {-0.01, 1.01, 1e300, -INFINITY, INFINITY, NAN};
    testing_malloc(allocator, 1000, NULL);
    for (size_t index = 0; index < sizeof fractions / sizeof fractions[0]; ++index) {
        double in_force;
        REFUSED(allocator, cca_set_memory_fraction(allocator, 0, fractions[index]),
                BASE_INVALID_VALUE, "within [0, 1]");
        BASE_CHECK_EQ(cca_memory_fraction(allocator, 0, &in_force), BASE_OK);
        BASE_CHECK(in_force == 1.0);
        const struct cca_options options = {.fraction = fractions[index], .fraction_set = true};
        REFUSED(allocator, cca_allocator_create(&options, &none), BASE_INVALID_VALUE,
                "within [0, 1]");
        BASE_CHECK(none == NULL);
    }
    static const double parts[] = {0.0, -0.01, 1.126, INFINITY, NAN};
    for (size_t index = 0; index < sizeof parts / sizeof parts[0]; ++index)
        REFUSED(allocator, cca_set_reserve_class_default(allocator, "a", parts[index]),
                BASE_INVALID_VALUE, "no part of a device");
    REFUSED(allocator, cca_set_reserve_class_default(allocator, NULL, 0.5), BASE_INVALID_VALUE,
            "without a name");
    REFUSED(allocator, cca_set_config(allocator, "no_such_key:1"), BASE_INVALID_CONFIG,
            "no_such_key");
    REFUSED(allocator, cca_set_config(allocator, "max_split_size_mb"), BASE_INVALID_CONFIG, "");
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = "max_split_size_mb:1"}, &none),
        BASE_INVALID_CONFIG);
    testing_message_is_a_sentence();
    BASE_CHECK(none == NULL);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Streams that go.

// A stream may go once the block was freed: its events are recorded.
static void streams_may_go_while_blocks_wait_for_them(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    const cudaStream_t own = testing_stream(), user = testing_stream();
    void *const block = testing_malloc(allocator, 300 * mib, own);
    sim_stream_hold(user, true);
    BASE_CHECK_EQ(allocator_record_stream(allocator, block, user), BASE_OK);
    testing_free(allocator, block);
    BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 1);
    BASE_CHECK_EQ(cudaStreamDestroy(user),
                  cudaSuccess); // its work still runs to its end
    BASE_CHECK_EQ(cudaStreamDestroy(own), cudaSuccess);
    cca_check(allocator);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    void *const other = testing_malloc(allocator, 900 * mib,
                                       NULL); // only when the first one went
    cca_check(allocator);
    BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 1);
    testing_free(allocator, other);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    allocator_destroy(allocator);
}

// One that goes before the free can no longer be asked: the free is refused,
// the block stays, and the allocator's end still gives it back.
static void a_stream_that_went_too_early_is_named(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    const cudaStream_t own = testing_stream(), user = testing_stream(), second = testing_stream();
    void *const block = testing_malloc(allocator, 3 * mib, own);
    BASE_CHECK_EQ(allocator_record_stream(allocator, block, second), BASE_OK);
    BASE_CHECK_EQ(allocator_record_stream(allocator, block, user), BASE_OK);
    BASE_CHECK_EQ(cudaStreamDestroy(user), cudaSuccess);
    REFUSED(allocator, allocator_free(allocator, block), BASE_CUDA, "cudaEventRecord on stream");
    REFUSED(allocator, allocator_free(allocator, block), BASE_CUDA, "cudaErrorContextIsDestroyed");
    void *const other = testing_malloc(allocator, 3 * mib, own);
    BASE_CHECK(other != block);
    testing_free(allocator, other);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

int main(void) {
    static const char *const configs[] = {
        "", "expandable_segments:True", "max_split_size_mb:64,roundup_power2_divisions:4",
        "expandable_segments:True,max_split_size_mb:64", "roundup_power2_divisions:[>:64]"};
    devices_that_are_none_are_refused();
    numbers_that_make_no_sense_are_refused();
    pending_blocks_are_refused_as_freed();
    a_view_is_refused_by_option();
    for (size_t index = 0; index < sizeof configs / sizeof configs[0]; ++index) {
        foreign_pointers_are_refused(configs[index]);
        freed_pointers_are_refused(configs[index]);
        interior_pointers_are_no_blocks(configs[index]);
        a_view_marks_the_block_that_it_is_part_of(configs[index]);
        no_size_wraps(configs[index]);
        streams_may_go_while_blocks_wait_for_them(configs[index]);
        a_stream_that_went_too_early_is_named(configs[index]);
    }
    return 0;
}
