// Checkpoints in random programs: several streams, both kinds of pools, blocks used elsewhere,
// settings that change, checkpoints restored in any order, beside lists that the test keeps itself.
//
//     checkpoint_random_test [PROGRAMS]
#include "allocator/testing_checkpoint.h"
#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS       64
#define STREAMS     3
#define CHECKPOINTS 3

static const char *const settings[] = {"expandable_segments:False", "expandable_segments:True",
                                       "expandable_segments:False,max_split_size_mb:20",
                                       "roundup_power2_divisions:4"};

struct place {
    uintptr_t address;
    size_t size; // of the block
};

struct state {
    struct cca_checkpoint *checkpoint;
    struct place live[SLOTS];
    size_t count;
};

struct program {
    struct allocator *allocator;
    struct base_random random;
    cudaStream_t streams[STREAMS];
    struct place live[SLOTS];    // in the pool
    struct place outside[SLOTS]; // in none
    size_t count, outside_count;
    struct state states[CHECKPOINTS];
};

static int restored_count, refused_count, checkpoints_with_holes;

static int compare_places(const void *a, const void *b) {
    const struct place *const x = a, *const y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static void *pointer_of(struct place place) { return (void *)place.address; }

// Blocks of the pool, or of none, in STATE. Sorted, as snapshots are.
static size_t list_blocks(struct allocator *allocator, bool of_pool,
                          enum allocator_block_state state, struct place *places) {
    struct allocator_snapshot snapshot;
    size_t count = 0;
    ok(allocator_snapshot(allocator, &snapshot));
    for (size_t index = 0; index < snapshot.segment_count; ++index) {
        const struct allocator_snapshot_segment *const segment = &snapshot.segments[index];
        if ((segment->pool.user == pool_id.user) != of_pool) continue;
        for (size_t at = 0; at < segment->block_count; ++at) {
            const struct allocator_snapshot_block *const block =
                &snapshot.blocks[segment->block_first + at];
            if (block->state != state) continue;
            if (places != NULL)
                places[count] = (struct place){(uintptr_t)block->address, block->size};
            ++count;
        }
    }
    allocator_snapshot_deinit(&snapshot);
    return count;
}

static size_t allocated(struct program *program, bool of_pool, struct place *places) {
    return list_blocks(program->allocator, of_pool, ALLOCATOR_BLOCK_ALLOCATED, places);
}

static void check_lists(struct program *program) {
    struct place seen[2 * SLOTS];
    qsort(program->live, program->count, sizeof *program->live, compare_places);
    qsort(program->outside, program->outside_count, sizeof *program->outside, compare_places);
    BASE_CHECK_EQ(allocated(program, true, seen), program->count);
    BASE_CHECK_EQ(memcmp(seen, program->live, program->count * sizeof *seen), 0);
    BASE_CHECK_EQ(allocated(program, false, seen), program->outside_count);
    BASE_CHECK_EQ(memcmp(seen, program->outside, program->outside_count * sizeof *seen), 0);
}

static size_t block_size(struct program *program, bool of_pool, void *pointer) {
    struct place seen[2 * SLOTS];
    const size_t count = allocated(program, of_pool, seen);
    for (size_t index = 0; index < count; ++index)
        if (pointer_of(seen[index]) == pointer) return seen[index].size;
    BASE_CHECK(false);
    return 0;
}

static void allocate(struct program *program) {
    struct base_random *const random = &program->random;
    const bool of_pool = base_random_chance(random, 0.8);
    struct place *const list = of_pool ? program->live : program->outside;
    size_t *const count = of_pool ? &program->count : &program->outside_count;
    const cudaStream_t stream = program->streams[base_random_below(random, STREAMS)];
    const size_t size = base_random_log_between(random, 1, 40 * MIB);
    void *pointer = NULL;
    if (*count == SLOTS) return;
    const enum base_status status =
        of_pool ? try_take(program->allocator, size, stream, &pointer)
                : allocator_malloc(program->allocator, 0, size, stream, &pointer);
    BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    if (status != BASE_OK) return;
    list[(*count)++] = (struct place){(uintptr_t)pointer, block_size(program, of_pool, pointer)};
}

static void give_back(struct program *program) {
    const bool of_pool = base_random_chance(&program->random, 0.8);
    struct place *const list = of_pool ? program->live : program->outside;
    size_t *const count = of_pool ? &program->count : &program->outside_count;
    if (*count == 0) return;
    const size_t index = base_random_below(&program->random, *count);
    testing_free(program->allocator, pointer_of(list[index]));
    list[index] = list[--*count];
}

static void use_elsewhere(struct program *program) {
    if (program->count == 0) return;
    ok(allocator_record_stream(
        program->allocator,
        pointer_of(program->live[base_random_below(&program->random, program->count)]),
        program->streams[base_random_below(&program->random, STREAMS)]));
}

static void save(struct program *program, struct state *state) {
    struct cca_checkpoint *checkpoint = NULL;
    const bool waits =
        list_blocks(program->allocator, true, ALLOCATOR_BLOCK_PENDING_FREE, NULL) > 0;
    const enum base_status status = cca_checkpoint_get(program->allocator, 0, pool_id, &checkpoint);
    BASE_CHECK_EQ(status, waits ? BASE_INVALID_VALUE : BASE_OK);
    refused_count += waits;
    if (status != BASE_OK) return;
    cca_checkpoint_destroy(state->checkpoint);
    state->checkpoint = checkpoint;
    qsort(program->live, program->count, sizeof *program->live, compare_places);
    memcpy(state->live, program->live, sizeof state->live);
    state->count = program->count;
    checkpoints_with_holes +=
        list_blocks(program->allocator, true, ALLOCATOR_BLOCK_INACTIVE, NULL) > 3;
}

static void check_addresses(void *const *addresses, size_t address_count,
                            const struct place *places, size_t count) {
    BASE_CHECK_EQ(address_count, count);
    for (size_t index = 0; index < count; ++index)
        BASE_CHECK(addresses[index] == pointer_of(places[index]));
}

static void put_back(struct program *program, const struct state *state) {
    struct cca_restored restored;
    if (state->checkpoint == NULL) return;
    qsort(program->live, program->count, sizeof *program->live, compare_places);
    const struct allocator_stats before = testing_stats(program->allocator);
    const size_t waiting =
        list_blocks(program->allocator, false, ALLOCATOR_BLOCK_PENDING_FREE, NULL);
    ok(cca_checkpoint_set(program->allocator, state->checkpoint, &restored));
    check_addresses(restored.freed, restored.freed_count, program->live, program->count);
    check_addresses(restored.allocated, restored.allocated_count, state->live, state->count);
    BASE_CHECK(is_live(program->allocator, restored.allocated, restored.allocated_count));
    cca_restored_deinit(&restored);
    memcpy(program->live, state->live, sizeof state->live);
    program->count = state->count;
    BASE_CHECK_EQ(list_blocks(program->allocator, true, ALLOCATOR_BLOCK_PENDING_FREE, NULL), 0);
    BASE_CHECK_EQ(list_blocks(program->allocator, false, ALLOCATOR_BLOCK_PENDING_FREE, NULL),
                  waiting);
    const struct allocator_stats after = testing_stats(program->allocator);
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
        BASE_CHECK_EQ(after.reserved_bytes[kind].current, before.reserved_bytes[kind].current);
    ++restored_count;
}

static void ignore_warning(void *context, const char *text) {
    (void)context;
    (void)text;
}

static void step(struct program *program) {
    struct base_random *const random = &program->random;
    const double chance = base_random_unit(random);
    struct state *const state = &program->states[base_random_below(random, CHECKPOINTS)];
    if (chance < 0.45)
        allocate(program);
    else if (chance < 0.78)
        give_back(program);
    else if (chance < 0.84)
        use_elsewhere(program);
    else if (chance < 0.90)
        save(program, state);
    else if (chance < 0.97)
        put_back(program, state);
    else if (chance < 0.99)
        ok(cca_set_config(program->allocator, settings[base_random_below(random, 4)]));
    else
        ok(allocator_empty_cache(program->allocator));
}

static void checkpoints_of_a_random_program(uint64_t seed) {
    char schedule[40];
    const char *const config = settings[seed % 4];
    base_check_context("config \"%s\", seed %" PRIu64, config, seed);
    (void)snprintf(schedule, sizeof schedule, "random:%" PRIu64, seed);
    ok(sim_schedule(schedule));
    struct program program = {.allocator = create(config),
                              .random = base_random_init(seed, "checkpoints")};
    cca_set_warning_observer(program.allocator,
                             &(struct cca_warning_observer){.warning = ignore_warning});
    for (int stream = 1; stream < STREAMS; ++stream)
        program.streams[stream] = testing_stream();
    for (int each = 0; each < 400; ++each) {
        step(&program);
        cca_check(program.allocator);
        check_lists(&program);
    }
    for (size_t index = 0; index < program.count; ++index)
        testing_free(program.allocator, pointer_of(program.live[index]));
    for (size_t index = 0; index < program.outside_count; ++index)
        testing_free(program.allocator, pointer_of(program.outside[index]));
    ok(cca_pool_destroy(program.allocator, 0, pool_id));
    ok(allocator_empty_cache(program.allocator));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    for (int index = 0; index < CHECKPOINTS; ++index)
        cca_checkpoint_destroy(program.states[index].checkpoint);
    finish(program.allocator, NULL);
    ok(sim_schedule("eager"));
}

int main(int argument_count, char **arguments) {
    const uint64_t programs = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 24;
    for (uint64_t seed = 1; seed <= programs; ++seed)
        checkpoints_of_a_random_program(seed);
    printf("%d restored, %d refused, %d checkpoints with more than three holes\n", restored_count,
           refused_count, checkpoints_with_holes);
    BASE_CHECK_GT(restored_count, 20 * programs);
    BASE_CHECK_GT(refused_count, 0);
    BASE_CHECK_GT(checkpoints_with_holes, 0);
    return 0;
}
