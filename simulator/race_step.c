// Steps of race_inside.h: their accesses one after the other, and the pairs that these made.
#include "simulator/race_block.h"
#include "simulator/race_life.h"
#include "simulator/race_node.h"
#include "simulator/race_unwritten.h"

#include <stdlib.h>

// A pair that was met before in the step is looked for among so many: more are told twice, and
// counted as one by the reports.
#define ALIKE_MAX 64

// Pageable memory that copies left undefined, in so many parts at most.
#define PAGEABLE_MAX 1024
static struct sim__undefined pageable;

struct found {
    struct sim__race_pair pair;
    uint64_t allocation; // its start, or 0
};

uint64_t sim__race_step_count;

static struct found *pairs;
static size_t pair_count, pair_size;

// --- Words of the order ---

bool sim__race_is_before_in_launch(const struct sim__race_step *step,
                                   const struct sim__race_key *other) {
    return step->plan != NULL && sim__race_plan_before(step->plan, other->place, step->key.place);
}

static void step_begin(struct sim__race_step *step, struct sim__order_view view, uint32_t origin) {
    *step = (struct sim__race_step){
        .key = {.column = view.column & 0xfffff,
                .sequence = view.sequence & (((uint64_t)1 << 44) - 1),
                .origin = origin},
        .view = view,
    };
}

void sim__race_step_stream(struct sim__race_step *step, const struct sim__stream *stream,
                           uint64_t sequence, uint32_t origin) {
    step_begin(step, sim__order_view_stream(stream, sequence), origin);
    step->on_device = true;
}

void sim__race_step_host(struct sim__race_step *step, uint32_t origin) {
    step_begin(step, sim__order_view_host(), origin);
    step->is_host = true;
    step->is_passing = sim__order_view_settled(&step->view, step->view.column, step->view.sequence);
}

// --- Pairs ---

static bool is_data(enum sim_race_rule rule) {
    return rule == SIM_RACE_WRITE_WRITE || rule == SIM_RACE_READ_WRITE ||
           rule == SIM_RACE_HOST_ACCESS || rule == SIM_RACE_REUSE;
}

// Of two accesses of a pair of steps the worse one counts.
static int badness(enum sim_race_rule rule) {
    return rule == SIM_RACE_REUSE ? 2 : rule == SIM_RACE_WRITE_WRITE ? 1 : 0;
}

static struct found *alike(const struct sim__race_pair *pair, uint64_t allocation) {
    for (size_t i = pair_count; i > 0 && pair_count - i < ALIKE_MAX; --i) {
        struct found *other = &pairs[i - 1];
        if (sim__race_is_same(&other->pair.other, &pair->other) &&
            other->pair.other.origin == pair->other.origin && other->allocation == allocation &&
            (other->pair.rule == pair->rule ||
             (is_data(other->pair.rule) && is_data(pair->rule))))
            return other;
    }
    return NULL;
}

void sim__race_pair(const struct sim__race_step *step, const struct sim__race_pair *pair) {
    const struct sim__life *life = sim__life_at(pair->range.start);
    const uint64_t allocation = life == NULL ? 0 : life->range.start;
    struct found *other = alike(pair, allocation);
    (void)step;
    if (other != NULL) {
        if (badness(pair->rule) > badness(other->pair.rule))
            other->pair = *pair; // of the same node
        return;
    }
    if (pair_count == pair_size) {
        pair_size = pair_size == 0 ? 16 : 2 * pair_size;
        pairs = realloc(pairs, pair_size * sizeof *pairs);
        if (pairs == NULL)
            sim__host_limit("out of host memory for %zu races", pair_size);
    }
    pairs[pair_count++] = (struct found){*pair, allocation};
    sim__race_node_retain(pair->other.node);
}

static struct sim__race_side side_of(const struct sim__race_key *key, enum sim_access_mode mode,
                                     uint64_t block) {
    const struct sim__order_column column = sim__order_column_at(key->column);
    struct sim__race_side side = {
        .origin = key->origin,
        .device = column.device,
        .stream = column.stream,
        .sequence = column.stream == 0 ? 0 : sim__order_sequence(key->column, key->sequence),
        .mode = mode,
        .block = block,
    };
    if (key->node != NULL) {
        side.node_origin = key->node->origin;
        side.graph = key->node->graph;
        side.node = key->node->number;
        side.node_stream = key->node->stream;
    }
    return side;
}

static void pair_tell(const struct sim__race_step *step, const struct found *found) {
    const struct sim__race_pair *pair = &found->pair;
    const bool in_launch = pair->other.column == step->key.column &&
                           pair->other.sequence == step->key.sequence && step->key.place != 0;
    const bool is_hosts =
        step->is_host || sim__order_column_at(pair->other.column).stream == 0;
    struct sim__race_found told = {
        .rule = is_data(pair->rule) && pair->rule != SIM_RACE_REUSE && is_hosts
                    ? SIM_RACE_HOST_ACCESS
                    : pair->rule,
        .first = side_of(&pair->other, pair->other_mode, pair->other_block),
        .second = side_of(&step->key, pair->mode, pair->block),
        .start = pair->range.start,
        .size = pair->range.size,
        .allocation_start = found->allocation,
        .block = pair->about_block,
        .inside = in_launch ? step->exec : NULL,
    };
    if (!in_launch && pair->other.column < step->view.count)
        told.known = sim__order_sequence(pair->other.column,
                                         step->view.known[pair->other.column]);
    sim__race_report(&told);
}

void sim__race_step_end(const struct sim__race_step *step) {
    for (size_t i = 0; i < pair_count; ++i) {
        sim__unwritten_raced(&pairs[i].pair.other);
        sim__unwritten_raced(&step->key);
    }
    for (size_t i = 0; i < pair_count; ++i) {
        pair_tell(step, &pairs[i]);
        sim__race_node_release(pairs[i].pair.other.node);
    }
    pair_count = 0;
    // What the host reads is settled at once.
    if (step->is_passing)
        sim__unwritten_settle(false);
}

void sim__race_alone(const struct sim__race_key *key, enum sim_race_rule rule, const char *kind,
                     enum sim_access_mode mode, uint64_t block, const struct sim__rows *rows) {
    const struct sim__life *life = sim__life_at(rows->start);
    const struct sim__race_found told = {
        .rule = rule,
        .kind = kind,
        .first = side_of(key, mode, block),
        .start = rows->start,
        .size = rows->size,
        .allocation_start = life == NULL ? 0 : life->range.start,
        .block = rule == SIM_RACE_UNINITIALISED ? block : 0,
    };
    if (rule != SIM_RACE_UNINITIALISED)
        sim__unwritten_raced(key);
    sim__race_report(&told);
}

// --- Accesses ---

static struct sim__undefined *memory_set(struct sim__life *life,
                                         const struct sim__race_access *access) {
    if (life != NULL)
        return life->is_dead ? NULL : &life->undefined;
    if (pageable.count > PAGEABLE_MAX)
        sim__undefined_clear(&pageable);
    const bool is_device = sim__segment_at((const void *)(uintptr_t)access->rows.start) != NULL;
    return is_device ? NULL : &pageable;
}

static struct sim__unwritten_sets sets_of(struct sim__life *life,
                                          const struct sim__race_access *access) {
    return (struct sim__unwritten_sets){
        .memory = memory_set(life, access),
        .block = access->record == NULL ? NULL : &access->record->undefined,
        .allocation = life == NULL ? 0 : life->range.start,
    };
}

// What the host writes to its own memory may go untold: then nobody knows what was written. Of
// pageable memory nobody tells when it becomes another variable's, so that it counts where the host
// reads it and nowhere else.
static bool counts_as_unwritten(const struct sim__race_step *step, const struct sim__life *life) {
    if (life == NULL)
        return step->is_host || !step->on_device;
    return !life->is_host || step->is_host || sim__race_host_tells;
}

void sim__race_steps_clear(void) {
    sim__undefined_clear(&pageable);
    sim__race_step_count = 0;
}

void sim__race_step_do(struct sim__race_step *step, const struct sim__race_access *accesses,
                       size_t count) {
    struct sim__unwritten_sets from = {0};
    ++sim__race_step_count;
    for (size_t i = 0; i < count; ++i) {
        const struct sim__race_access *access = &accesses[i];
        struct sim__life *life = sim__life_access(step, access);
        const struct sim__unwritten_sets sets = sets_of(life, access);
        const bool counts = counts_as_unwritten(step, life);
        sim__block_access(step, access);
        sim__shadow_access(step, access);
        // What is undefined stays so when it is updated.
        if (access->mode == SIM_ACCESS_WRITE || access->is_sign) {
            sim__unwritten_write(step, access, &sets);
            if (i > 0 && accesses[i - 1].mode == SIM_ACCESS_CARRY)
                sim__unwritten_carry(step, &accesses[i - 1], &from, access, &sets);
        } else if (counts && access->mode != SIM_ACCESS_CARRY) {
            sim__unwritten_read(step, access, &sets);
        }
        from = counts ? sets : (struct sim__unwritten_sets){0};
    }
    sim__race_step_end(step);
}
