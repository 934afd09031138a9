// Who may free memory before more is taken.
#include "allocator/testing.h"

#include <pthread.h>
#include <stdio.h>

#define MIB BASE_MIB

// Gives back one block when it is asked; remembers how often and in what order.
struct giver {
    struct allocator *allocator;
    void *pointer; // to give; NULL: nothing
    bool claims;   // to have freed something, whatever it did
    int asked, place;
};
static int places; // given out in the order of the calls

static bool give(void *context, int device) {
    struct giver *const giver = context;
    BASE_CHECK_EQ(device, 0);
    ++giver->asked;
    giver->place = ++places;
    const bool gave = giver->pointer != NULL;
    if (gave) testing_free(giver->allocator, giver->pointer);
    giver->pointer = NULL;
    return gave || giver->claims;
}

static struct cca_free_memory_callback callback_of(struct giver *giver) {
    return (struct cca_free_memory_callback){.free_memory = give, .context = giver};
}

static void add(struct allocator *allocator, struct giver *giver) {
    const struct cca_free_memory_callback callback = callback_of(giver);
    giver->allocator = allocator;
    BASE_CHECK_EQ(cca_add_free_memory_callback(allocator, &callback), BASE_OK);
}

static void what_a_callback_frees_serves_the_request(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct giver giver = {.pointer = testing_malloc(allocator, 300 * MIB, NULL)};
    void *const given = giver.pointer;
    add(allocator, &giver);
    const uint64_t calls = sim_call_count(SIM_CALL_MALLOC);
    BASE_CHECK(testing_malloc(allocator, 280 * MIB, NULL) == given);
    BASE_CHECK_EQ(giver.asked, 1);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC), calls);
    // A hit asks nobody.
    testing_free(allocator, given);
    (void)testing_malloc(allocator, 280 * MIB, NULL);
    BASE_CHECK_EQ(giver.asked, 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void all_callbacks_run_in_order_whatever_each_returns(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct giver givers[3] = {{.claims = true}, {.claims = false}, {.claims = true}};
    for (int index = 0; index < 3; ++index)
        add(allocator, &givers[index]);
    places = 0;
    (void)testing_malloc(allocator, 1, NULL);
    for (int index = 0; index < 3; ++index) {
        BASE_CHECK_EQ(givers[index].asked, 1);
        BASE_CHECK_EQ(givers[index].place, index + 1);
    }
    const struct cca_free_memory_callback second = callback_of(&givers[1]);
    BASE_CHECK_EQ(cca_remove_free_memory_callback(allocator, &second), BASE_OK);
    BASE_CHECK_EQ(cca_remove_free_memory_callback(allocator, &second), BASE_INVALID_VALUE);
    (void)testing_malloc(allocator, 2 * MIB, NULL);
    BASE_CHECK_EQ(givers[0].asked, 2);
    BASE_CHECK_EQ(givers[1].asked, 1);
    BASE_CHECK_EQ(givers[2].asked, 2);
    allocator_destroy(allocator);
}

// The search after a callback that freed something is one of PyTorch's: cached blocks grow older by
// it. Garbage collection releases what is at least as old as the average. Three segments, freed at
// searches 4, 6 and 8, of which the second is just old enough; at 7 it would be too young.
static void the_search_after_callbacks_counts_for_the_age_of_blocks(bool frees) {
    struct allocator *const allocator =
        testing_create("garbage_collection_threshold:0.5", 1000 * MIB);
    const cudaStream_t other = testing_stream();
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.99), BASE_OK);
    void *segments[3];
    for (int index = 0; index < 3; ++index) // searches 1 to 3
        segments[index] = testing_malloc(allocator, 40 * MIB, NULL);
    void *hit = testing_malloc(allocator, 10 * MIB, other); // 4
    testing_free(allocator, segments[0]);
    for (int search = 5; search <= 6; ++search) {
        testing_free(allocator, hit);
        hit = testing_malloc(allocator, 10 * MIB, other);
    }
    testing_free(allocator, segments[1]);
    struct giver giver = {.claims = frees};
    add(allocator, &giver);
    (void)testing_malloc(allocator, 390 * MIB, NULL); // 7, and 8 if the callback says so
    testing_free(allocator, segments[2]);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, 0);
    // 520 of 990 MiB are reserved, 25 more than half.
    (void)testing_malloc(allocator, 100 * MIB, NULL);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, frees ? 2 : 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void there_is_room_for_sixteen_callbacks(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct giver givers[17] = {{.asked = 0}};
    for (int index = 0; index < 16; ++index)
        add(allocator, &givers[index]);
    const struct cca_free_memory_callback last = callback_of(&givers[16]);
    BASE_CHECK_EQ(cca_add_free_memory_callback(allocator, &last), BASE_LIMIT);
    // And as many go again, from either end.
    for (int index = 0; index < 16; ++index) {
        const struct cca_free_memory_callback one =
            callback_of(&givers[index % 2 == 0 ? index / 2 : 15 - index / 2]);
        BASE_CHECK_EQ(cca_remove_free_memory_callback(allocator, &one), BASE_OK);
    }
    (void)testing_malloc(allocator, 1, NULL);
    for (int index = 0; index < 16; ++index)
        BASE_CHECK_EQ(givers[index].asked, 0);
    allocator_destroy(allocator);
}

// Allocates from the allocator that asks it: a miss, too.
static bool take_some(void *context, int device) {
    struct giver *const giver = context;
    void *pointer = NULL;
    ++giver->asked;
    BASE_CHECK_EQ(allocator_malloc(giver->allocator, device, 40 * MIB, NULL, &pointer), BASE_OK);
    BASE_CHECK_EQ(allocator_empty_cache(giver->allocator), BASE_OK);
    testing_free(giver->allocator, pointer);
    return true;
}

static void a_callback_may_allocate_and_its_own_misses_ask_nobody(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct giver giver = {.allocator = allocator};
    BASE_CHECK_EQ(cca_add_free_memory_callback(
                      allocator, &(struct cca_free_memory_callback){.free_memory = take_some,
                                                                    .context = &giver}),
                  BASE_OK);
    (void)testing_malloc(allocator, 30 * MIB, NULL);
    BASE_CHECK_EQ(giver.asked, 1);
    // What it freed is what was handed out.
    BASE_CHECK_EQ(testing_stats(allocator).num_device_alloc, 1);
    (void)testing_malloc(allocator, 600 * MIB, NULL);
    BASE_CHECK_EQ(giver.asked, 2);
    allocator_destroy(allocator);
}

// The fault: callbacks that allocate from each other's allocators never came to an end.
static void callbacks_of_allocators_that_ask_each_other_run_once(void) {
    struct allocator *allocators[3] = {testing_create("", BASE_GIB)};
    struct giver givers[3];
    for (int index = 1; index < 3; ++index)
        BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){0}, &allocators[index]), BASE_OK);
    for (int index = 0; index < 3; ++index) { // a ring: each asks the next one
        givers[index] = (struct giver){.allocator = allocators[(index + 1) % 3]};
        const struct cca_free_memory_callback callback = {.free_memory = take_some,
                                                          .context = &givers[index]};
        BASE_CHECK_EQ(cca_add_free_memory_callback(allocators[index], &callback), BASE_OK);
    }
    for (int first = 0; first < 3; ++first) {
        (void)testing_malloc(allocators[first], 50 * MIB, NULL);
        for (int index = 0; index < 3; ++index) {
            BASE_CHECK_EQ(givers[index].asked, first + 1);
            BASE_CHECK_EQ(allocator_empty_cache(allocators[index]), BASE_OK); // misses next time
        }
    }
    for (int index = 0; index < 3; ++index)
        allocator_destroy(allocators[index]);
}

// Each search of the large pool is a tick of garbage collection's clock, the one after a callback
// too. Three blocks are freed with a miss between the first two and a hit between the last two. In
// the end all are 1 + T ticks old but for the first, 3 + T, and the last, T: only the first is of
// average age or more. Were the miss one tick long, the first would be 2 + T old and the second of
// average age, too.
static void the_search_after_a_callback_counts_for_garbage_collection(void) {
    struct allocator *const allocator =
        testing_create("garbage_collection_threshold:0.5", 10000 * MIB);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.1), BASE_OK);
    cudaStream_t hits = testing_stream(), misses = testing_stream();
    struct giver giver = {.claims = true};
    void *const a = testing_malloc(allocator, 100 * MIB, NULL);
    void *const b = testing_malloc(allocator, 110 * MIB, NULL);
    void *const c = testing_malloc(allocator, 120 * MIB, NULL);
    testing_free(allocator, testing_malloc(allocator, 50 * MIB, hits));
    add(allocator, &giver);
    testing_free(allocator, a);
    (void)testing_malloc(allocator, 200 * MIB, misses);
    testing_free(allocator, b);
    (void)testing_malloc(allocator, 50 * MIB, hits);
    testing_free(allocator, c);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, 0);
    (void)testing_malloc(allocator, 70 * MIB, misses); // 580 MiB are reserved, 500 are kept
    BASE_CHECK_EQ(giver.asked, 2);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, 1);
    allocator_destroy(allocator);
}

// Threads whose misses take turns at one stash of blocks.
#define THREADS 4
#define ROUNDS 200

struct stash {
    struct allocator *allocator;
    pthread_mutex_t mutex;
    void *blocks[64];
    int count;
};

static bool give_from_stash(void *context, int device) {
    struct stash *const stash = context;
    (void)device;
    pthread_mutex_lock(&stash->mutex);
    void *const block = stash->count > 0 ? stash->blocks[--stash->count] : NULL;
    pthread_mutex_unlock(&stash->mutex);
    if (block != NULL) testing_free(stash->allocator, block);
    return block != NULL;
}

static void *work(void *context) {
    struct stash *const stash = context;
    cudaStream_t stream = testing_stream();
    for (int round = 0; round < ROUNDS; ++round) {
        void *const block =
            testing_malloc(stash->allocator, (size_t)(2 + round % 30) * MIB, stream);
        pthread_mutex_lock(&stash->mutex);
        const bool kept = stash->count < 64;
        if (kept) stash->blocks[stash->count++] = block;
        pthread_mutex_unlock(&stash->mutex);
        if (!kept) testing_free(stash->allocator, block);
    }
    return NULL;
}

static void callbacks_of_several_threads_free_what_others_took(void) {
    struct stash stash = {.allocator = testing_create("", 16 * BASE_GIB)};
    pthread_t threads[THREADS];
    BASE_CHECK_EQ(pthread_mutex_init(&stash.mutex, NULL), 0);
    BASE_CHECK_EQ(
        cca_add_free_memory_callback(
            stash.allocator,
            &(struct cca_free_memory_callback){.free_memory = give_from_stash, .context = &stash}),
        BASE_OK);
    for (int index = 0; index < THREADS; ++index)
        BASE_CHECK_EQ(pthread_create(&threads[index], NULL, work, &stash), 0);
    for (int index = 0; index < THREADS; ++index)
        BASE_CHECK_EQ(pthread_join(threads[index], NULL), 0);
    while (stash.count > 0)
        testing_free(stash.allocator, stash.blocks[--stash.count]);
    cca_check(stash.allocator);
    BASE_CHECK_EQ(testing_stats(stash.allocator).allocation[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(stash.allocator);
    pthread_mutex_destroy(&stash.mutex);
}

int main(void) {
    what_a_callback_frees_serves_the_request();
    all_callbacks_run_in_order_whatever_each_returns();
    the_search_after_callbacks_counts_for_the_age_of_blocks(true);
    the_search_after_callbacks_counts_for_the_age_of_blocks(false);
    there_is_room_for_sixteen_callbacks();
    a_callback_may_allocate_and_its_own_misses_ask_nobody();
    callbacks_of_allocators_that_ask_each_other_run_once();
    the_search_after_a_callback_counts_for_garbage_collection();
    callbacks_of_several_threads_free_what_others_took();
    return 0;
}
