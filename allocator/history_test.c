// The history against what the observer was told, against a ring kept here, and against the lines
// of this file.
#include "allocator/testing.h"

#include "base/random.h"
#include "base/symbol.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EVENTS_MAX 20000
#define STREAMS    4
#define LIVE       48

//------------------------------------------------------------------------------------------------
// A random program, and what it did by the observer.

struct told {
    struct allocator_event *events;
    size_t count;
};

// Entries are PyTorch's: what only our observer is told of is none.
static void tell(void *context, const struct allocator_event *event) {
    struct told *const told = context;
    if (event->action > ALLOCATOR_OOM) return;
    BASE_CHECK_LT(told->count, EVENTS_MAX);
    told->events[told->count++] = *event;
}

struct program {
    struct allocator *allocator;
    struct told told;
    cudaStream_t streams[STREAMS];
    void *live[LIVE];
    struct base_random random;
};

static void start(struct program *program, const char *config, uint64_t capacity, uint64_t seed) {
    *program = (struct program){.random = base_random_init(seed, "program")};
    base_check_context("seed %llu, %s", (unsigned long long)seed, config);
    program->allocator = testing_create(config, capacity);
    program->told.events = malloc(EVENTS_MAX * sizeof *program->told.events);
    BASE_CHECK(program->told.events != NULL);
    for (int index = 1; index < STREAMS; ++index) {
        program->streams[index] = testing_stream();
        sim_stream_hold(program->streams[index], true);
    }
    BASE_CHECK_EQ(allocator_set_observer(program->allocator,
                                         &(struct allocator_observer){tell, &program->told}),
                  BASE_OK);
}

static void finish(struct program *program) {
    cca_check(program->allocator);
    allocator_destroy(program->allocator);
    free(program->told.events);
    base_check_context(NULL);
}

static void step(struct program *program) {
    struct base_random *const random = &program->random;
    const size_t slot = base_random_below(random, LIVE);
    if (base_random_chance(random, 0.02))
        BASE_CHECK_EQ(allocator_empty_cache(program->allocator), BASE_OK);
    if (base_random_chance(random, 0.2))
        (void)sim_stream_run(program->streams[base_random_between(random, 1, STREAMS - 1)], 3);
    if (program->live[slot] != NULL) {
        testing_free(program->allocator, program->live[slot]);
        program->live[slot] = NULL;
        return;
    }
    const size_t size = base_random_log_between(random, 1, 32 << 20);
    const enum base_status status = allocator_malloc(
        program->allocator, 0, size, program->streams[base_random_below(random, STREAMS)],
        &program->live[slot]);
    BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    if (status == BASE_OK && base_random_chance(random, 0.3))
        BASE_CHECK_EQ(
            allocator_record_stream(program->allocator, program->live[slot],
                                    program->streams[base_random_between(random, 1, STREAMS - 1)]),
            BASE_OK);
}

static void run(struct program *program, int steps) {
    while (steps-- > 0)
        step(program);
}

static void record_history(struct allocator *allocator, enum cca_history enabled,
                           enum cca_history_context context, size_t max_entries) {
    BASE_CHECK_EQ(
        cca_record_history(allocator, &(struct cca_history_options){enabled, context, max_entries}),
        BASE_OK);
}

static struct allocator_snapshot snapshot_of(struct allocator *allocator) {
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    return snapshot;
}

static void expect_entry(const struct allocator_snapshot_entry *entry,
                         const struct allocator_event *event) {
    BASE_CHECK_EQ(entry->action, event->action);
    BASE_CHECK_EQ((uintptr_t)entry->address, (uintptr_t)event->address);
    BASE_CHECK_EQ(entry->size, event->size);
    BASE_CHECK_EQ(entry->device_free, event->device_free);
    BASE_CHECK_EQ((uintptr_t)entry->stream, (uintptr_t)event->stream);
}

// The snapshot's only trace is the last COUNT of what the observer was told before its own entry.
static void expect_last(struct program *program, size_t count) {
    const size_t told = program->told.count;
    struct allocator_snapshot snapshot = snapshot_of(program->allocator);
    BASE_CHECK_EQ(program->told.count, told + 1);
    BASE_CHECK_EQ(snapshot.trace_count, 1);
    BASE_CHECK_EQ(snapshot.traces[0].device, 0);
    BASE_CHECK_EQ(snapshot.traces[0].entry_first, 0);
    BASE_CHECK_EQ(snapshot.traces[0].entry_count, count);
    BASE_CHECK_EQ(snapshot.entry_count, count);
    for (size_t index = 0; index < count; ++index)
        expect_entry(&snapshot.entries[index], &program->told.events[told - count + index]);
    allocator_snapshot_deinit(&snapshot);
}

static void the_history_is_what_was_decided(void) {
    static const struct {
        const char *config;
        uint64_t capacity;
    } kinds[] = {{"", BASE_GIB},
                 {"", 160 * BASE_MIB},
                 {"max_split_size_mb:24,roundup_power2_divisions:4", 256 * BASE_MIB},
                 {"expandable_segments:True", 256 * BASE_MIB}};
    bool seen[ALLOCATOR_ACTION_COUNT] = {false};
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; ++kind)
        for (uint64_t seed = 1; seed <= 3; ++seed) {
            struct program program;
            start(&program, kinds[kind].config, kinds[kind].capacity, seed);
            record_history(program.allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, EVENTS_MAX);
            for (int part = 0; part < 4; ++part) {
                run(&program, 400);
                expect_last(&program, program.told.count);
            }
            for (size_t index = 0; index < program.told.count; ++index)
                seen[program.told.events[index].action] = true;
            finish(&program);
        }
    for (int action = 0; action <= ALLOCATOR_OOM; ++action)
        BASE_CHECK(seen[action]);
}

static void a_ring_keeps_the_newest_entries(void) {
    static const size_t sizes[] = {0, 1, 2, 7, 255, 256, 257, 600};
    for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; ++index) {
        struct program program;
        start(&program, "", 300 * BASE_MIB, index);
        record_history(program.allocator, CCA_HISTORY_ALL, CCA_CONTEXT_NEVER, sizes[index]);
        const size_t size = sizes[index] > 1 ? sizes[index] : 1;
        for (int part = 0; part < 40; ++part) {
            run(&program, 17);
            cca_check(program.allocator);
            expect_last(&program, program.told.count < size ? program.told.count : size);
        }
        finish(&program);
    }
}

static void a_change_of_size_keeps_what_still_fits(void) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        struct program program;
        start(&program, "", 300 * BASE_MIB, seed);
        size_t size = 100, kept = 0;
        record_history(program.allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, size);
        for (int part = 0; part < 30; ++part) {
            const size_t before = program.told.count;
            run(&program, (int)base_random_between(&program.random, 1, 120));
            kept += program.told.count - before;
            if (kept > size) kept = size;
            expect_last(&program, kept);
            if (++kept > size) kept = size; // the snapshot's own
            size = base_random_log_between(&program.random, 1, 2000);
            record_history(program.allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, size);
            if (kept > size) kept = size;
            expect_last(&program, kept);
            if (++kept > size) kept = size;
        }
        finish(&program);
    }
}

static void what_is_off_records_nothing_and_has_forgotten(void) {
    struct program program;
    start(&program, "", BASE_GIB, 5);
    run(&program, 200);
    struct allocator_snapshot snapshot = snapshot_of(program.allocator);
    BASE_CHECK_EQ(snapshot.trace_count, 0);
    allocator_snapshot_deinit(&snapshot);
    record_history(program.allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 1000);
    run(&program, 200);
    record_history(program.allocator, CCA_HISTORY_OFF, CCA_CONTEXT_NEVER, 0);
    run(&program, 200);
    snapshot = snapshot_of(program.allocator);
    BASE_CHECK_EQ(snapshot.trace_count, 0);
    for (size_t index = 0; index < snapshot.segment_count; ++index)
        BASE_CHECK_EQ(snapshot.segments[index].stack, 0);
    for (size_t index = 0; index < snapshot.block_count; ++index)
        BASE_CHECK_EQ(snapshot.blocks[index].stack, 0);
    allocator_snapshot_deinit(&snapshot);
    const size_t told = program.told.count;
    record_history(program.allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 1000);
    expect_last(&program, 0);
    run(&program, 50);
    expect_last(&program, program.told.count - told); // the first snapshot's entry is among them
    finish(&program);
}

static void a_snapshot_is_in_the_next_one(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 100);
    void *const block = testing_malloc(allocator, 1000, NULL);
    void *const other = testing_malloc(allocator, 3 << 20, NULL);
    testing_free(allocator, other);
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, 6); // a segment, an allocation; twice; a free
    allocator_snapshot_deinit(&snapshot);
    snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, 7);
    const struct allocator_snapshot_entry *const entry = &snapshot.entries[6];
    BASE_CHECK_EQ(entry->action, ALLOCATOR_SNAPSHOT);
    BASE_CHECK(entry->address == NULL);
    BASE_CHECK_EQ(entry->size, 1024); // active: the one block, rounded
    BASE_CHECK_EQ(entry->stack, 0);
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, block);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Stacks.

static __attribute__((noinline)) void *take_weights(struct allocator *allocator) {
    void *const pointer = testing_malloc(allocator, 5 << 20, NULL);
    __asm__ volatile("" ::: "memory"); // no tail call
    return pointer;
}
static __attribute__((noinline)) void *load_model(struct allocator *allocator) {
    void *const pointer = take_weights(allocator);
    __asm__ volatile("" ::: "memory");
    return pointer;
}
static __attribute__((noinline)) void drop_model(struct allocator *allocator, void *pointer) {
    testing_free(allocator, pointer);
    __asm__ volatile("" ::: "memory");
}

// Whether the stack has FUNCTION, and after it, where CALLER is not NULL, that one.
static bool stack_has(const struct allocator_snapshot *snapshot, uint32_t stack,
                      const char *function, const char *caller) {
    const struct allocator_snapshot_stack *const frames = &snapshot->stacks[stack];
    bool has_function = false;
    for (size_t index = 0; index < frames->frame_count; ++index) {
        struct base_symbol symbols[8];
        const size_t count =
            base_symbol_frames(snapshot->frames[frames->frame_first + index], symbols, 8);
        for (size_t inlined = 0; inlined < count; ++inlined) {
            if (caller != NULL && has_function && strcmp(symbols[inlined].function, caller) == 0)
                return true;
            if (strcmp(symbols[inlined].function, function) == 0) has_function = true;
        }
    }
    return has_function && caller == NULL;
}

// What the levels keep: stacks of allocations and of frees in the entries, and of blocks.
static void expect_stacks(enum cca_history_context context, const char *of_allocation,
                          const char *of_free, const char *of_block) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_ALL, context, 100);
    for (int round = 0; round < 3; ++round) { // the second time the walk is known
        void *const pointer = load_model(allocator);
        struct allocator_snapshot snapshot = snapshot_of(allocator);
        const struct allocator_snapshot_entry *entry = &snapshot.entries[snapshot.entry_count - 1];
        BASE_CHECK_EQ(entry->action, ALLOCATOR_ALLOC);
        BASE_CHECK_EQ(entry->stack != 0, of_allocation != NULL);
        if (of_allocation != NULL)
            BASE_CHECK(stack_has(&snapshot, entry->stack, of_allocation, "load_model"));
        BASE_CHECK_EQ(snapshot.blocks[0].state, ALLOCATOR_BLOCK_ALLOCATED);
        BASE_CHECK_EQ(snapshot.blocks[0].stack != 0, of_block != NULL);
        BASE_CHECK_EQ(snapshot.segments[0].stack != 0, of_block != NULL);
        BASE_CHECK_EQ(snapshot.blocks[1].stack, 0); // what is left of the segment
        if (of_block != NULL) {
            BASE_CHECK(stack_has(&snapshot, snapshot.blocks[0].stack, of_block, "load_model"));
            BASE_CHECK(stack_has(&snapshot, snapshot.segments[0].stack, of_block, "load_model"));
        }
        allocator_snapshot_deinit(&snapshot);
        drop_model(allocator, pointer);
        snapshot = snapshot_of(allocator);
        for (size_t back = 1; back <= 2; ++back) {
            entry = &snapshot.entries[snapshot.entry_count - back];
            BASE_CHECK_EQ(entry->action,
                          back == 1 ? ALLOCATOR_FREE_COMPLETED : ALLOCATOR_FREE_REQUESTED);
            BASE_CHECK_EQ(entry->stack != 0, of_free != NULL);
            if (of_free != NULL) BASE_CHECK(stack_has(&snapshot, entry->stack, of_free, NULL));
        }
        BASE_CHECK_EQ(snapshot.blocks[0].stack, 0); // inactive
        allocator_snapshot_deinit(&snapshot);
    }
    allocator_destroy(allocator);
}

static void levels_keep_the_stacks_they_name(void) {
    expect_stacks(CCA_CONTEXT_NEVER, NULL, NULL, NULL);
    expect_stacks(CCA_CONTEXT_STATE, NULL, NULL, "take_weights");
    expect_stacks(CCA_CONTEXT_ALLOC, "take_weights", "take_weights", "take_weights");
    expect_stacks(CCA_CONTEXT_ALL, "take_weights", "drop_model", "take_weights");
}

static void the_state_alone_keeps_blocks_and_one_entry(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_STATE, CCA_CONTEXT_ALL, 1000);
    void *const pointer = load_model(allocator);
    drop_model(allocator, load_model(allocator));
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, 1);
    BASE_CHECK_EQ(snapshot.entries[0].action, ALLOCATOR_FREE_COMPLETED);
    BASE_CHECK(stack_has(&snapshot, snapshot.blocks[0].stack, "take_weights", "load_model"));
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, pointer);
    allocator_destroy(allocator);
}

// The block's stack is where it was allocated last, not what an earlier block of its object had.
static void blocks_know_their_own_allocation(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 100);
    drop_model(allocator, load_model(allocator));
    void *const pointer = testing_malloc(allocator, 5 << 20, NULL);
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK(!stack_has(&snapshot, snapshot.blocks[0].stack, "take_weights", NULL));
    BASE_CHECK(
        stack_has(&snapshot, snapshot.blocks[0].stack, "blocks_know_their_own_allocation", NULL));
    allocator_snapshot_deinit(&snapshot);
    // Beside one another in memory, from different callers.
    void *const other = load_model(allocator);
    snapshot = snapshot_of(allocator);
    BASE_CHECK(!stack_has(&snapshot, snapshot.blocks[0].stack, "take_weights", NULL));
    BASE_CHECK(stack_has(&snapshot, snapshot.blocks[1].stack, "take_weights", "load_model"));
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, other);
    testing_free(allocator, pointer);
    allocator_destroy(allocator);
}

// A frame pointer that is none: the walk ends there.
static __attribute__((noinline)) void *with_wild_frame(struct allocator *allocator,
                                                       uintptr_t wild) {
    volatile uintptr_t *const frame = __builtin_frame_address(0);
    const uintptr_t saved = *frame;
    *frame = wild;
    void *const pointer = testing_malloc(allocator, 1000, NULL);
    *frame = saved;
    return pointer;
}

static void frames_that_are_none_end_the_stack(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 100);
    uintptr_t here;
    const uintptr_t wild[] = {0,
                              1,
                              8,
                              (uintptr_t)&here + 3,
                              (uintptr_t)&here - 4096, // below: no caller's
                              UINTPTR_MAX,
                              UINTPTR_MAX - 15,
                              (uintptr_t)1 << 40,
                              (uintptr_t)-4096};
    for (size_t index = 0; index < sizeof wild / sizeof wild[0]; ++index)
        for (int round = 0; round < 2; ++round) {
            void *const pointer = with_wild_frame(allocator, wild[index]);
            struct allocator_snapshot snapshot = snapshot_of(allocator);
            const uint32_t stack = snapshot.entries[snapshot.entry_count - 1].stack;
            BASE_CHECK_NE(stack, 0);
            BASE_CHECK(stack_has(&snapshot, stack, "with_wild_frame", NULL));
            // Its own return address is right, and the last.
            const struct allocator_snapshot_stack *const frames = &snapshot.stacks[stack];
            struct base_symbol symbol;
            BASE_CHECK(base_symbol_find(
                snapshot.frames[frames->frame_first + frames->frame_count - 1], &symbol));
            BASE_CHECK(strcmp(symbol.function, __func__) == 0);
            allocator_snapshot_deinit(&snapshot);
            testing_free(allocator, pointer);
        }
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Times, devices, options.

static uint64_t now_us(void) {
    struct timespec now;
    BASE_CHECK_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void times_are_those_of_the_calls(void) {
    enum { ROUNDS = 20, SLACK_US = 1000 };
    uint64_t before[ROUNDS], after[ROUNDS];
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_ALL, CCA_CONTEXT_NEVER, 100);
    void *pointers[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
        before[round] = now_us();
        pointers[round] = testing_malloc(allocator, 512, NULL);
        after[round] = now_us();
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, ROUNDS + 1); // one segment
    for (size_t index = 0; index < snapshot.entry_count; ++index) {
        const size_t round = index == 0 ? 0 : index - 1;
        const uint64_t time_us = snapshot.entries[index].time_us;
        BASE_CHECK_GE(time_us + SLACK_US, before[round]);
        BASE_CHECK_LE(time_us, after[round] + SLACK_US);
        if (index > 0) BASE_CHECK_GE(time_us, snapshot.entries[index - 1].time_us);
    }
    allocator_snapshot_deinit(&snapshot);
    for (int round = 0; round < ROUNDS; ++round)
        testing_free(allocator, pointers[round]);
    allocator_destroy(allocator);
}

static void each_device_has_a_history(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .device_count = 3, .capacity_bytes = BASE_GIB, .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = ""}, &allocator), BASE_OK);
    // Device 0 is there before, device 2 comes after; there is nothing to tell of device 1.
    void *early, *pointers[3][4];
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 512, NULL, &early), BASE_OK);
    record_history(allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 3);
    for (int round = 0; round < 4; ++round)
        for (int device = 0; device < 3; device += 2)
            BASE_CHECK_EQ(allocator_malloc(allocator, device, (size_t)(1000 * (device + 1) + round),
                                           NULL, &pointers[device][round]),
                          BASE_OK);
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.trace_count, 2);
    for (size_t index = 0; index < 2; ++index) {
        const struct allocator_snapshot_trace *const trace = &snapshot.traces[index];
        BASE_CHECK_EQ(trace->device, 2 * (int)index);
        BASE_CHECK_EQ(trace->entry_count, 3);
        for (size_t entry = 0; entry < 3; ++entry)
            BASE_CHECK_EQ(snapshot.entries[trace->entry_first + entry].size,
                          1000 * (2 * index + 1) + entry + 1);
    }
    allocator_snapshot_deinit(&snapshot);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void wrong_options_are_refused_and_change_nothing(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    record_history(allocator, CCA_HISTORY_ALL, CCA_CONTEXT_ALL, 10);
    const struct cca_history_options wrong[] = {
        {(enum cca_history)3, CCA_CONTEXT_ALL, 10},
        {CCA_HISTORY_ALL, (enum cca_history_context)4, 10},
        {CCA_HISTORY_ALL, CCA_CONTEXT_ALL, ((size_t)1 << 32) + 1},
    };
    void *const pointer = testing_malloc(allocator, 1000, NULL);
    for (size_t index = 0; index < sizeof wrong / sizeof wrong[0]; ++index) {
        BASE_CHECK_EQ(cca_record_history(allocator, &wrong[index]), BASE_INVALID_VALUE);
        BASE_CHECK(testing_message_has("history: "));
    }
    struct allocator_snapshot snapshot = snapshot_of(allocator);
    BASE_CHECK_EQ(snapshot.entry_count, 2);
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, pointer);
    allocator_destroy(allocator);
}

int main(void) {
    the_history_is_what_was_decided();
    a_ring_keeps_the_newest_entries();
    a_change_of_size_keeps_what_still_fits();
    what_is_off_records_nothing_and_has_forgotten();
    a_snapshot_is_in_the_next_one();
    levels_keep_the_stacks_they_name();
    the_state_alone_keeps_blocks_and_one_entry();
    blocks_know_their_own_allocation();
    frames_that_are_none_end_the_stack();
    times_are_those_of_the_calls();
    each_device_has_a_history();
    wrong_options_are_refused_and_change_nothing();
    return 0;
}
