// History while several threads decide, and while memory for it runs out: the order of the entries
// is one in which the decisions can have been made, and what is shown has no holes.
//
// The linker sends the allocator's own calls of calloc and realloc here (--wrap).
#include "allocator/testing.h"

#include "base/random.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 3
#define LIVE    32
#define STEPS   12000
#define HANDS   1500 // from thread to thread

//------------------------------------------------------------------------------------------------
// Memory that runs out.

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
static atomic_int refused; // calls to come that fail; negative: none

static bool is_refused(void) {
    int left = atomic_load(&refused);
    while (left > 0 && !atomic_compare_exchange_weak(&refused, &left, left - 1)) {
    }
    return left > 0;
}

void *__wrap_calloc(size_t count, size_t size) {
    return is_refused() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *memory, size_t size) {
    return is_refused() ? NULL : __real_realloc(memory, size);
}

static void record_history(struct allocator *allocator, size_t max_entries) {
    BASE_CHECK_EQ(
        cca_record_history(allocator, &(struct cca_history_options){CCA_HISTORY_ALL,
                                                                    CCA_CONTEXT_ALL, max_entries}),
        BASE_OK);
}

static struct allocator_snapshot snapshot_of(struct allocator *allocator) {
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    return snapshot;
}

// Without memory nothing is recorded, no request fails, and what is shown afterwards is what came
// after the last entry that was lost.
static void what_finds_no_memory_is_left_out_with_all_before(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    const cudaStream_t other = testing_stream();
    void *const early = testing_malloc(allocator, 1000, other);
    testing_free(allocator, testing_malloc(allocator, 3000, NULL));
    record_history(allocator, 100000);
    testing_free(allocator, early);
    // Of the default stream: no recorder, then no ring, then no room in the ring.
    atomic_store(&refused, 1000);
    testing_free(allocator, testing_malloc(allocator, 2000, NULL));
    atomic_store(&refused, 0);
    cca_check(allocator);
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, 0);
    allocator_snapshot_deinit(&snapshot);

    // The snapshot's own entry, and 300 x 3, a free being two in one: two growths of the ring, of
    // which the second fails. So 256 are left, half of them frees.
    for (int round = 0; round < 300; ++round) {
        if (round == 100) atomic_store(&refused, 1000);
        testing_free(allocator, testing_malloc(allocator, 2000, NULL));
    }
    atomic_store(&refused, 0);
    cca_check(allocator);
    snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, 128 * 3);
    BASE_CHECK_EQ(snapshot.entries[128 * 3 - 1].action, ALLOCATOR_FREE_COMPLETED);
    for (size_t index = 1; index < 128 * 3; ++index)
        BASE_CHECK_EQ(snapshot.entries[index].action,
                      (enum allocator_action)((snapshot.entries[index - 1].action + 1) % 3));
    allocator_snapshot_deinit(&snapshot);
    allocator_destroy(allocator);
}

static void history_that_finds_no_memory_stays_off(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    void *const pointer = testing_malloc(allocator, 1000, NULL);
    atomic_store(&refused, 1);
    BASE_CHECK_EQ(cca_record_history(allocator, &(struct cca_history_options){CCA_HISTORY_ALL,
                                                                              CCA_CONTEXT_ALL, 10}),
                  BASE_HOST_MEMORY);
    BASE_CHECK_EQ(atomic_load(&refused), 0);
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.trace_count, 0);
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, pointer);
    cca_check(allocator);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Threads.

struct worker {
    struct allocator *allocator;
    cudaStream_t stream;
    uint64_t seed;
    _Atomic(void *) *parcel; // a block for whoever takes it
    atomic_int *missing;     // workers that have not begun; NULL: not waited for
};

static void work(void *argument) {
    struct worker *const worker = argument;
    struct base_random random = base_random_init(worker->seed, "worker");
    void *live[LIVE] = {NULL};
    if (worker->missing != NULL) {
        atomic_fetch_sub(worker->missing, 1);
        while (atomic_load(worker->missing) > 0)
            base_thread_yield();
    }
    for (int step = 0; step < STEPS; ++step) {
        const size_t slot = base_random_below(&random, LIVE);
        if (live[slot] == NULL) {
            live[slot] = testing_malloc(
                worker->allocator, base_random_log_between(&random, 1, 4 << 20), worker->stream);
            continue;
        }
        void *given = live[slot];
        live[slot] = NULL;
        if (base_random_chance(&random, 0.5)) given = atomic_exchange(worker->parcel, given);
        testing_free(worker->allocator, given);
    }
    for (size_t slot = 0; slot < LIVE; ++slot)
        testing_free(worker->allocator, live[slot]);
}

// Each block is allocated, requested and completed in turns, inside a segment that is there: so the
// order over all streams is one of the decisions.
struct checker {
    struct checked {
        uintptr_t address;
        size_t size;
        enum allocator_action last;
    } blocks[WORKERS * LIVE + 8];
    size_t count;
};

static struct checked *find(struct checker *checker, uintptr_t address) {
    for (size_t index = 0; index < checker->count; ++index)
        if (checker->blocks[index].address == address) return &checker->blocks[index];
    return NULL;
}

static void check_entry(struct checker *checker, const struct allocator_snapshot_entry *entry) {
    const uintptr_t address = (uintptr_t)entry->address;
    struct checked *const block = find(checker, address);
    switch (entry->action) {
    case ALLOCATOR_ALLOC:
        BASE_CHECK(block == NULL);
        BASE_CHECK_LT(checker->count, sizeof checker->blocks / sizeof checker->blocks[0]);
        checker->blocks[checker->count++] = (struct checked){address, entry->size, ALLOCATOR_ALLOC};
        return;
    case ALLOCATOR_FREE_REQUESTED:
        BASE_CHECK(block != NULL && block->last == ALLOCATOR_ALLOC);
        BASE_CHECK_EQ(block->size, entry->size);
        block->last = entry->action;
        return;
    case ALLOCATOR_FREE_COMPLETED:
        BASE_CHECK(block != NULL && block->last == ALLOCATOR_FREE_REQUESTED);
        *block = checker->blocks[--checker->count];
        return;
    default: return;
    }
}

static void the_order_of_threads_is_that_of_the_decisions(void) {
    struct allocator *const allocator = testing_create("", 4 * BASE_GIB);
    _Atomic(void *) parcel = NULL;
    record_history(allocator, 1000000);
    atomic_int missing = WORKERS;
    struct worker workers[WORKERS];
    struct base_thread threads[WORKERS];
    for (int index = 0; index < WORKERS; ++index) {
        // Two of them share a stream.
        workers[index] = (struct worker){allocator, index == 0 ? NULL : workers[0].stream,
                                         (uint64_t)index + 1, &parcel, &missing};
        if (index == 1) workers[index].stream = testing_stream();
        base_thread_start(&threads[index], work, &workers[index]);
    }
    for (int index = 0; index < WORKERS; ++index)
        base_thread_join(&threads[index]);
    testing_free(allocator, atomic_load(&parcel));
    cca_check(allocator);
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    struct checker checker = {.count = 0};
    size_t allocations = 0;
    for (size_t index = 0; index < snapshot.entry_count; ++index) {
        check_entry(&checker, &snapshot.entries[index]);
        allocations += snapshot.entries[index].action == ALLOCATOR_ALLOC;
        if (index > 0)
            BASE_CHECK_GE(snapshot.entries[index].time_us, snapshot.entries[index - 1].time_us);
    }
    BASE_CHECK_EQ(checker.count, 0);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ((int64_t)allocations, stats.allocation[ALLOCATOR_STAT_ALL].allocated);
    allocator_snapshot_deinit(&snapshot);
    allocator_destroy(allocator);
}

// Blocks go through one thread after the other: what happens first is entered first.
static void hand(void *argument) {
    struct worker *const worker = argument;
    for (int step = 0; step < HANDS; ++step) {
        void *given = NULL;
        while ((given = atomic_exchange(worker->parcel, NULL)) == NULL)
            base_thread_yield();
        void *const next = testing_malloc(worker->allocator, (size_t)step + 1, worker->stream);
        testing_free(worker->allocator, given);
        // The other one's parcel lies behind this one's.
        atomic_store(worker->parcel + (worker->seed == 0 ? 1 : -1), next);
    }
}

static void what_is_handed_on_is_in_order(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    _Atomic(void *) parcels[2] = {NULL, NULL};
    record_history(allocator, 1000000);
    atomic_store(&parcels[0], testing_malloc(allocator, 512, NULL));
    struct worker workers[2] = {{allocator, NULL, 0, &parcels[0], NULL},
                                {allocator, testing_stream(), 1, &parcels[1], NULL}};
    struct base_thread threads[2];
    for (int index = 0; index < 2; ++index)
        base_thread_start(&threads[index], hand, &workers[index]);
    for (int index = 0; index < 2; ++index)
        base_thread_join(&threads[index]);
    testing_free(allocator, atomic_load(&parcels[0]));
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    // Allocations of both streams in turns, each followed by the free of the one before.
    const cudaStream_t streams[2] = {NULL, workers[1].stream};
    size_t allocations = 0;
    const void *before = NULL, *last = NULL;
    for (size_t index = 0; index < snapshot.entry_count; ++index) {
        const struct allocator_snapshot_entry *const entry = &snapshot.entries[index];
        if (entry->action == ALLOCATOR_ALLOC) {
            if (allocations > 0) BASE_CHECK(entry->stream == streams[(allocations + 1) % 2]);
            ++allocations;
            before = last;
            last = entry->address;
        } else if (entry->action == ALLOCATOR_FREE_REQUESTED && allocations <= 2 * HANDS &&
                   index + 3 < snapshot.entry_count) {
            BASE_CHECK(entry->address == before);
        }
    }
    BASE_CHECK_EQ(allocations, 2 * HANDS + 1);
    allocator_snapshot_deinit(&snapshot);
    allocator_destroy(allocator);
}

struct switching {
    struct allocator *allocator;
    atomic_bool done;
};

static void switch_about(void *argument) {
    struct switching *const switching = argument;
    struct base_random random = base_random_init(9, "switching");
    while (!atomic_load(&switching->done)) {
        const struct cca_history_options options = {
            (enum cca_history)base_random_below(&random, 3),
            (enum cca_history_context)base_random_below(&random, 4),
            base_random_log_between(&random, 1, 3000)};
        BASE_CHECK_EQ(cca_record_history(switching->allocator, &options), BASE_OK);
        struct allocator_snapshot snapshot = snapshot_of(switching->allocator);
        for (size_t index = 0; index < snapshot.entry_count; ++index)
            BASE_CHECK_LT(snapshot.entries[index].stack, snapshot.stack_count);
        for (size_t index = 0; index < snapshot.block_count; ++index)
            BASE_CHECK_LT(snapshot.blocks[index].stack, snapshot.stack_count);
        allocator_snapshot_deinit(&snapshot);
        cca_check(switching->allocator);
    }
}

static void options_change_while_threads_work(void) {
    struct switching switching = {.allocator = testing_create("", 4 * BASE_GIB)};
    _Atomic(void *) parcel = NULL;
    struct worker workers[2] = {{switching.allocator, NULL, 21, &parcel, NULL},
                                {switching.allocator, testing_stream(), 22, &parcel, NULL}};
    struct base_thread threads[2], switcher;
    base_thread_start(&switcher, switch_about, &switching);
    for (int index = 0; index < 2; ++index)
        base_thread_start(&threads[index], work, &workers[index]);
    for (int index = 0; index < 2; ++index)
        base_thread_join(&threads[index]);
    atomic_store(&switching.done, true);
    base_thread_join(&switcher);
    testing_free(switching.allocator, atomic_load(&parcel));
    cca_check(switching.allocator);
    allocator_destroy(switching.allocator);
}

int main(void) {
    what_finds_no_memory_is_left_out_with_all_before();
    history_that_finds_no_memory_stays_off();
    the_order_of_threads_is_that_of_the_decisions();
    what_is_handed_on_is_in_order();
    options_change_while_threads_work();
    return 0;
}
