// The out-of-memory error: each number of the sentence, the advice, and that it surfaces whatever
// else fails. Public faults are named by their issue.
#include "allocator/out_of_memory.h"
#include "allocator/testing.h"
#include "base/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MIB BASE_MIB

static struct cca_out_of_memory last;
static int told;
static void on_out_of_memory(void *context, const struct cca_out_of_memory *numbers) {
    // No lock is held.
    if (context != NULL) BASE_CHECK_EQ(allocator_empty_cache(context), BASE_OK);
    last = *numbers;
    ++told;
}

static struct allocator *create(const char *config, uint64_t capacity) {
    struct allocator *const allocator = testing_create(config, capacity);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){.event = on_out_of_memory,
                                                                      .context = allocator}),
                  BASE_OK);
    told = 0;
    return allocator;
}

static void exhaust(struct allocator *allocator, size_t size) {
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, size, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK(pointer == NULL);
}

static void has(const char *text) {
    base_check_context("\"%s\" in \"%s\"", text, base_status_message());
    BASE_CHECK(testing_message_has(text));
    base_check_context(NULL);
}
static void has_not(const char *text) {
    base_check_context("no \"%s\" in \"%s\"", text, base_status_message());
    BASE_CHECK(!testing_message_has(text));
    base_check_context(NULL);
}

//------------------------------------------------------------------------------------------------
// Processes: this one, which holds what the simulator counts and a context, and another one.

#define CONTEXT (300 * MIB)
static uint64_t foreign;

static bool list(void *context, int device, struct cca_process *processes, size_t capacity,
                 size_t *count) {
    (void)context;
    BASE_CHECK_EQ(capacity, CCA_PROCESSES_MAX);
    processes[0] = (struct cca_process){.number = 4242, .used_bytes = foreign};
    processes[1] =
        (struct cca_process){.number = getpid(), .used_bytes = sim_used_bytes(device) + CONTEXT};
    *count = 2;
    return true;
}

// 4,000 MiB: a context of 300, another process's 500, 128 that the program took beside the
// allocator, 600 and 400 that the allocator took. 100 of these are free again, in use is what
// remains of a segment.
static void every_number_is_where_it_belongs(void) {
    struct allocator *const allocator = create("", 4000 * MIB);
    void *beside = NULL;
    foreign = 500 * MIB;
    sim_set_foreign_bytes(0, foreign + CONTEXT);
    BASE_CHECK_EQ(cca_set_process_source(allocator, &(struct cca_process_source){.list = list}),
                  BASE_OK);
    BASE_CHECK_EQ(cudaMalloc(&beside, 128 * MIB), cudaSuccess);
    (void)testing_malloc(allocator, 600 * MIB, NULL);
    void *const first = testing_malloc(allocator, 100 * MIB, NULL);
    testing_free(allocator, testing_malloc(allocator, 400 * MIB, NULL));
    (void)testing_malloc(allocator, 300 * MIB, NULL); // out of the 400, which stay
    (void)first;
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.5), BASE_OK);
    exhaust(allocator, 1000 * MIB + 1);
    // 4000 - 500 - 300 - 128 - (600 + 100 + 400)
    has("CUDA out of memory. Tried to allocate 1002.00 MiB. GPU 0 has a total capacity of 3.91 GiB "
        "of which 1.93 GiB is free. Process 4242 has 500.00 MiB memory in use. Including "
        "non-PyTorch memory, this process has 1.49 GiB memory in use. 1.95 GiB allowed; Of the "
        "allocated memory 1000.00 MiB is allocated by PyTorch, and 100.00 MiB is reserved by "
        "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    BASE_CHECK_EQ(told, 1);
    BASE_CHECK_EQ(last.tried, 1002 * MIB);
    BASE_CHECK_EQ(last.rounded, 1000 * MIB + 512);
    BASE_CHECK_EQ(last.total, 4000 * MIB);
    BASE_CHECK(last.free_known);
    BASE_CHECK_EQ(last.free, 1972 * MIB);
    BASE_CHECK_EQ(last.allowed, 2000 * MIB);
    BASE_CHECK_EQ(last.allocated, 1000 * MIB);
    BASE_CHECK_EQ(last.unallocated, 100 * MIB);
    // What adds up to what: docs/oom-message.md.
    const size_t reserved = last.allocated + last.unallocated;
    BASE_CHECK_EQ(reserved, 1100 * MIB);
    BASE_CHECK_EQ(last.processes[1].used_bytes - reserved - CONTEXT, 128 * MIB);
    BASE_CHECK_EQ(last.free + last.processes[0].used_bytes + last.processes[1].used_bytes,
                  last.total);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(cudaFree(beside), cudaSuccess);
}

static void it_tries_to_allocate_a_segment_not_the_request(void) {
    struct allocator *const allocator = create("", 300 * MIB);
    (void)testing_malloc(allocator, 300 * MIB, NULL);
    static const struct {
        size_t size;
        const char *tried;
    } rows[] = {{1, "Tried to allocate 2.00 MiB."},
                {MIB, "Tried to allocate 2.00 MiB."},
                {MIB + 1, "Tried to allocate 20.00 MiB."},
                {10 * MIB - 512, "Tried to allocate 20.00 MiB."},
                {10 * MIB, "Tried to allocate 10.00 MiB."},
                {10 * MIB + 1, "Tried to allocate 12.00 MiB."},
                {BASE_GIB, "Tried to allocate 1024.00 MiB."},
                {BASE_GIB + 1, "Tried to allocate 1.00 GiB."}};
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; ++row) {
        exhaust(allocator, rows[row].size);
        has(rows[row].tried);
    }
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Public faults.

// pt#173049: the text advised expandable_segments:True while it was on.
static void advice_is_only_what_is_off(void) {
    struct allocator *allocator = create("expandable_segments:True", 300 * MIB);
    exhaust(allocator, 400 * MIB);
    has("expandable_segments is enabled.");
    has_not("expandable_segments:True");
    BASE_CHECK_EQ(cca_set_config(allocator, "expandable_segments:False"), BASE_OK);
    exhaust(allocator, 400 * MIB);
    has("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    allocator_destroy(allocator);

    // A request that no segment can hold: what to raise, and by how much.
    allocator = create("expandable_segments:True,expandable_segments_reserve:1G", 4 * BASE_GIB);
    exhaust(allocator, 2 * BASE_GIB);
    has("exceeds the expandable-segment reserve of 1024.00 MiB for this stream");
    has("so that a segment is at least 2.00 GiB.");
    has_not("expandable_segments:True");
    allocator_destroy(allocator);
}

// pt#110194: without a limit the text gave one of 17179869184.00 GiB.
static void without_a_limit_none_is_named(void) {
    struct allocator *const allocator = create("", 300 * MIB);
    exhaust(allocator, 400 * MIB);
    has_not("allowed");
    has_not("17179869184");
    BASE_CHECK(!last.limited);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.5), BASE_OK);
    exhaust(allocator, 200 * MIB);
    has(" 150.00 MiB allowed; ");
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 1.0), BASE_OK);
    exhaust(allocator, 400 * MIB);
    has_not("allowed");
    allocator_destroy(allocator);
}

// pt#121932: memory of private pools was counted as "reserved but unallocated". The numbers are
// given here: how they get there is a matter of the pools.
static void memory_of_private_pools_is_allocated_and_has_a_clause_of_its_own(void) {
    struct allocator *const allocator = create("", BASE_GIB);
    struct cca_out_of_memory numbers = {.tried = 2 * MIB,
                                        .total = 1024 * MIB,
                                        .free_known = true,
                                        .allocated = 700 * MIB,
                                        .private_free = 200 * MIB,
                                        .unallocated = 24 * MIB};
    BASE_CHECK_EQ(cca__out_of_memory_tell((struct cca *)(void *)allocator, &numbers),
                  BASE_OUT_OF_MEMORY);
    has("Of the allocated memory 700.00 MiB is allocated by PyTorch, with 200.00 MiB allocated in "
        "private pools (e.g., CUDA Graphs), and 24.00 MiB is reserved by PyTorch but unallocated.");
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// What only reports may fail.

static bool list_too_many(void *context, int device, struct cca_process *processes, size_t capacity,
                          size_t *count) {
    (void)context;
    (void)device;
    (void)processes;
    *count = capacity + 1;
    return true;
}

static void the_error_surfaces_when_nobody_can_say_what_is_free(void) {
    struct allocator *const allocator = create("", 300 * MIB);
    (void)testing_malloc(allocator, 100 * MIB, NULL);
    BASE_CHECK_EQ(
        cca_set_process_source(allocator, &(struct cca_process_source){.list = list_too_many}),
        BASE_OK);
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (size_t index = 0; index < sizeof errors / sizeof errors[0]; ++index) {
        sim_fault_next(SIM_CALL_MEM_GET_INFO, 1, errors[index]);
        exhaust(allocator, 400 * MIB);
        has("total capacity of 300.00 MiB of which unknown is free. Of the allocated memory 100.00 "
            "MiB is allocated by PyTorch, and 0 bytes is reserved");
        BASE_CHECK(!last.free_known);
        BASE_CHECK_EQ(last.process_count, 0);
        BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
        cca_check(allocator);
    }
    exhaust(allocator, 400 * MIB);
    has("of which 200.00 MiB is free.");
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 3);
    BASE_CHECK_EQ(told, 3);
    (void)testing_malloc(allocator, 200 * MIB, NULL);
    allocator_destroy(allocator);
}

// Whichever question to the device fails, under each setting that asks some on the way.
static void the_error_surfaces_whichever_question_fails(void) {
    static const char *const configs[] = {"", "expandable_segments:True", "max_split_size_mb:64",
                                          "expandable_segments:True,max_split_size_mb:64"};
    for (size_t index = 0; index < sizeof configs / sizeof configs[0]; ++index)
        for (uint64_t n = 1; n <= 4; ++n) {
            struct allocator *const allocator = create(configs[index], 300 * MIB);
            cca_set_warning_observer(allocator, &(struct cca_warning_observer){.warning = NULL});
            void *const block = testing_malloc(allocator, 100 * MIB, NULL);
            sim_fault_next(SIM_CALL_MEM_GET_INFO, n, cudaErrorUnknown);
            base_check_context("%s, question %d", configs[index], (int)n);
            exhaust(allocator, 400 * MIB);
            BASE_CHECK(testing_message_has("Tried to allocate 400.00 MiB."));
            sim_fault_next(SIM_CALL_MEM_GET_INFO, 0, cudaSuccess);
            BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 1);
            testing_free(allocator, block);
            cca_check(allocator);
            base_check_context(NULL);
            allocator_destroy(allocator);
        }
}

// Threads that run out of memory while others take and give: each error's numbers are of one
// moment.
#define THREADS 4
static _Atomic int errors;

static void check_sum(void *context, const struct cca_out_of_memory *numbers) {
    (void)context;
    BASE_CHECK_EQ(numbers->allocated + numbers->unallocated + numbers->free, numbers->total);
    atomic_fetch_add(&errors, 1);
}

static void *take_and_give(void *context) {
    struct allocator *const allocator = context;
    cudaStream_t stream = testing_stream();
    struct base_random random = base_random_init((uint64_t)(uintptr_t)stream, "take and give");
    void *held[16] = {NULL};
    for (int step = 0; step < 600; ++step) {
        void **const place = &held[base_random_below(&random, 16)];
        if (*place != NULL) testing_free(allocator, *place);
        *place = NULL;
        const size_t size = base_random_below(&random, 24 * MIB) + 1;
        const enum base_status status = allocator_malloc(allocator, 0, size, stream, place);
        BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    }
    for (int index = 0; index < 16; ++index)
        if (held[index] != NULL) testing_free(allocator, held[index]);
    return NULL;
}

static void numbers_are_of_one_moment(const char *config) {
    struct allocator *const allocator = testing_create(config, 150 * MIB);
    cca_set_warning_observer(allocator, &(struct cca_warning_observer){.warning = NULL});
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){.event = check_sum}),
                  BASE_OK);
    pthread_t threads[THREADS];
    errors = 0;
    for (int index = 0; index < THREADS; ++index)
        BASE_CHECK_EQ(pthread_create(&threads[index], NULL, take_and_give, allocator), 0);
    for (int index = 0; index < THREADS; ++index)
        BASE_CHECK_EQ(pthread_join(threads[index], NULL), 0);
    BASE_CHECK(errors > 50);
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, errors);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Sixteen processes, the largest numbers: the sentence ends with its link.
static bool list_many(void *context, int device, struct cca_process *processes, size_t capacity,
                      size_t *count) {
    (void)context;
    (void)device;
    for (size_t index = 0; index < capacity; ++index)
        processes[index] = (struct cca_process){.number = 4194304 - (int64_t)index,
                                                .used_bytes = (uint64_t)1 << 50};
    *count = capacity;
    return true;
}

static void the_sentence_has_room_for_all_processes(void) {
    struct allocator *const allocator = create("", 300 * MIB);
    BASE_CHECK_EQ(
        cca_set_process_source(allocator, &(struct cca_process_source){.list = list_many}),
        BASE_OK);
    exhaust(allocator, 400 * MIB);
    has("Process 4194304 has 1048576.00 GiB memory in use. ");
    has("Process 4194289 has 1048576.00 GiB memory in use. Of the allocated");
    has("cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)");
    allocator_destroy(allocator);
}

int main(void) {
    every_number_is_where_it_belongs();
    it_tries_to_allocate_a_segment_not_the_request();
    advice_is_only_what_is_off();
    without_a_limit_none_is_named();
    memory_of_private_pools_is_allocated_and_has_a_clause_of_its_own();
    the_error_surfaces_when_nobody_can_say_what_is_free();
    the_error_surfaces_whichever_question_fails();
    numbers_are_of_one_moment("");
    numbers_are_of_one_moment("expandable_segments:True");
    the_sentence_has_room_for_all_processes();
    return 0;
}
