// The allocations of race_life.h stand in an index by address, the dead among the living until
// others take their place; of the dead a few thousand are remembered.
//
// Addresses that only devices have are those of the device's windows; without numerics, those
// between the lowest and the highest that was allocated. A kernel that touches plain host memory is
// not called wrong, some systems allow it; where the process has no memory either, it is.
#include "simulator/race_life.h"

#include "simulator/memory.h"
#include "simulator/race_given.h"
#include "simulator/race_node.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEAD_MAX 4096

static struct sim__range_index lives;
static struct sim__life *recent; // that was looked for last
static struct sim__life *first_dead, *last_dead;
static uint32_t dead_count;
static uint64_t lowest = UINT64_MAX, highest; // of device memory

static uint64_t life_end(const struct sim__life *life) {
    return life->range.start + life->range.size;
}

struct sim__life *sim__life_at(uint64_t address) {
    if (recent != NULL && address - recent->range.start < recent->range.size)
        return recent;
    struct sim__life *life = (struct sim__life *)sim__range_at(&lives, address);
    if (life != NULL)
        recent = life;
    return life;
}

// --- The dead ---

static void dead_link(struct sim__life *life) {
    life->next = NULL;
    life->previous = last_dead;
    if (last_dead != NULL)
        last_dead->next = life;
    else
        first_dead = life;
    last_dead = life;
    ++dead_count;
}

static void dead_unlink(struct sim__life *life) {
    if (life->previous != NULL)
        life->previous->next = life->next;
    else
        first_dead = life->next;
    if (life->next != NULL)
        life->next->previous = life->previous;
    else
        last_dead = life->previous;
    --dead_count;
}

static void life_free(struct sim__life *life) {
    if (life->is_dead)
        dead_unlink(life);
    sim__range_remove(&lives, &life->range);
    if (recent == life)
        recent = NULL;
    sim__undefined_clear(&life->undefined);
    sim__race_node_release(life->born.node);
    sim__race_node_release(life->died.node);
    free(life);
}

static void life_die(struct sim__life *life, const struct sim__race_step *step) {
    life->is_dead = true;
    life->died = step->key;
    sim__race_node_retain(step->key.node);
    sim__undefined_clear(&life->undefined);
    sim__given_forget(life->range.start, life->range.size);
    dead_link(life);
    if (dead_count > DEAD_MAX) {
        sim__shadow_forget(first_dead->range.start, first_dead->range.size);
        life_free(first_dead);
    }
}

// --- Begin and end ---

static struct sim__life *life_make(uint64_t start, uint64_t size) {
    struct sim__life *life = calloc(1, sizeof *life);
    if (life == NULL)
        sim__host_limit("out of host memory for the race checker");
    life->range = (struct sim__range){start, size};
    sim__range_insert(&lives, &life->range);
    return life;
}

// What of LIFE lies in [start, end) is no part of it any more.
static void life_cut(struct sim__life *life, uint64_t start, uint64_t end) {
    const uint64_t from = life->range.start, to = life_end(life);
    if (life->is_dead && to > end) {
        struct sim__life *upper = life_make(end, to - end);
        const struct sim__range range = upper->range;
        *upper = *life;
        upper->range = range;
        upper->undefined = (struct sim__undefined){0}; // LIFE keeps what was carried here since
        sim__race_node_retain(upper->born.node);
        sim__race_node_retain(upper->died.node);
        dead_link(upper);
    }
    if (life->is_dead && from < start)
        life->range.size = start - from;
    else
        life_free(life);
}

void sim__life_forget(uint64_t start, uint64_t size) {
    struct sim__range *range;
    while ((range = sim__range_overlapping(&lives, start, size)) != NULL) {
        // The upper part that is left begins where the range ends, so that it is not met again.
        struct sim__life *life = (struct sim__life *)range;
        if (life->is_dead && life_end(life) > start + size)
            life_cut(life, start, start + size);
        else if (life->is_dead && life->range.start < start)
            life->range.size = start - life->range.start;
        else
            life_free(life);
    }
    sim__shadow_forget(start, size);
    sim__given_forget(start, size);
}

void sim__life_begin(const struct sim__race_step *step, uint64_t start, uint64_t size,
                     bool written) {
    sim__life_forget(start, size);
    const struct sim__segment *segment = sim__segment_at((const void *)(uintptr_t)start);
    struct sim__life *life = life_make(start, size);
    life->is_host = segment == NULL;
    life->is_mapping = segment != NULL && segment->kind == SIM__SEGMENT_MAPPING;
    if (step != NULL) {
        life->born = step->key;
        sim__race_node_retain(step->key.node);
    }
    if (!written)
        sim__undefined_add(&life->undefined, &(struct sim__rows){start, size, 1, 0}, NULL);
    if (life->is_host)
        return;
    lowest = start < lowest ? start : lowest;
    highest = start + size > highest ? start + size : highest;
}

// A graph's allocation ends, which the next launch makes again.
static void former_set(struct sim__race_node *node, const struct sim__life *life,
                       const struct sim__race_step *step) {
    sim__race_node_retain(step->key.node);
    sim__race_node_release(node->died.node);
    node->born = life->born;
    node->died = step->key;
}

// Host memory goes back to the program, which may use the addresses for other things untold.
void sim__life_end(const struct sim__race_step *step, uint64_t start, uint64_t size) {
    struct sim__life *life = sim__life_at(start);
    if (life == NULL || life->is_dead)
        return;
    sim__shadow_end(step, start, size);
    if (life->born.node != NULL)
        former_set(life->born.node, life, step);
    if (life->is_host)
        sim__life_forget(start, size);
    else
        life_die(life, step);
}

void sim__life_unmap(const struct sim__race_step *step, uint64_t start, uint64_t size) {
    struct sim__range *range;
    uint64_t end = start + size;
    while (end > start &&
           (range = sim__range_overlapping(&lives, start, end - start)) != NULL) {
        struct sim__life *life = (struct sim__life *)range;
        end = life->range.start;
        if (!life->is_dead) {
            life->is_unmapped = true;
            sim__shadow_end(step, life->range.start, life->range.size);
            life_die(life, step);
        }
    }
    sim__shadow_forget(start, size);
}

void sim__life_each_unmapped(uint64_t start, uint64_t size,
                             void (*visit)(const struct sim__life *life)) {
    struct sim__range *range;
    uint64_t end = start + size;
    while (end > start && (range = sim__range_overlapping(&lives, start, end - start)) != NULL) {
        const struct sim__life *life = (const struct sim__life *)range;
        if (life->is_unmapped)
            visit(life);
        end = range->start;
    }
}

void sim__life_clear(void) {
    struct sim__range *range;
    while ((range = sim__range_last(&lives)) != NULL)
        life_free((struct sim__life *)range);
    sim__range_index_deinit(&lives);
    lowest = UINT64_MAX;
    highest = 0;
}

// --- Accesses ---

// An address that only devices have.
static bool is_devices(uint64_t address) {
    return sim__state.options.numerics == SIM_NUMERICS_ON ? sim__physical_is_window(address)
                                                          : address >= lowest && address < highest;
}

// Whether the process has memory there: the kernel refuses the call where it has none, and with
// MS_ASYNC does nothing else.
static bool is_mapped(uint64_t address) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return msync((void *)(uintptr_t)(address / page * page), 1, MS_ASYNC) == 0;
}

// Memory that nobody was told of, but no graph's that it did not allocate.
static bool is_anything(uint64_t address) {
    const void *pointer = (const void *)(uintptr_t)address;
    const struct sim__segment *segment = sim__segment_at(pointer);
    return segment != NULL ? segment->kind != SIM__SEGMENT_GRAPH
                           : sim__host_range_at(pointer) != NULL;
}

// From AT to END there is nothing that is known; BEFORE is what ends there, or NULL.
static void unknown_access(const struct sim__race_step *step,
                           const struct sim__race_access *access, uint64_t at, uint64_t end,
                           const struct sim__life *before) {
    const struct sim__rows gap = {at, end - at, 1, 0};
    struct sim__range range;
    if (!step->on_device || !sim__rows_meet(&access->rows, &gap, &range))
        return;
    const bool is_beyond = before != NULL && !before->is_host;
    const struct sim__segment *segment = sim__segment_at((const void *)(uintptr_t)range.start);
    const bool is_graphs = segment != NULL && segment->kind == SIM__SEGMENT_GRAPH;
    if (is_beyond || (!is_anything(range.start) &&
                      (is_devices(range.start) || !is_mapped(range.start))))
        sim__race_alone(&step->key, SIM_RACE_UNMAPPED, is_graphs ? "use-before-alloc" : NULL,
                        access->mode, access->block,
                        &(struct sim__rows){range.start, range.size, 1, 0});
}

static void life_pair(const struct sim__race_step *step, const struct sim__race_access *access,
                      enum sim_race_rule rule, const struct sim__race_key *key,
                      const struct sim__life *life) {
    const struct sim__rows whole = {life->range.start, life->range.size, 1, 0};
    struct sim__race_pair pair = {
        .rule = rule,
        .other = *key,
        .other_mode = SIM_ACCESS_WRITE,
        .mode = access->mode,
        .block = access->block,
    };
    if (sim__rows_meet(&access->rows, &whole, &pair.range))
        sim__race_pair(step, &pair);
}

static void rights_check(const struct sim__race_step *step, const struct sim__race_access *access,
                         const struct sim__life *life) {
    const struct sim__segment *segment =
        sim__segment_at((const void *)(uintptr_t)life->range.start);
    const int device = sim__order_column_at(step->key.column).device;
    const uint32_t rights = segment == NULL                              ? 0
                            : access->mode == SIM_ACCESS_READ ||
                                      access->mode == SIM_ACCESS_CARRY ? segment->readers
                                                                         : segment->writers;
    if ((rights >> device & 1) == 0)
        sim__race_alone(&step->key, SIM_RACE_UNMAPPED, NULL, access->mode, access->block,
                        &access->rows);
}

static void life_access(const struct sim__race_step *step, const struct sim__race_access *access,
                        const struct sim__life *life) {
    if (life->is_dead)
        life_pair(step, access, life->is_unmapped ? SIM_RACE_UNMAPPED : SIM_RACE_USE_AFTER_FREE,
                  &life->died, life);
    else if (life->is_mapping && step->on_device && !step->has_rights)
        rights_check(step, access, life);
    if (life->born.sequence == 0 || sim__race_is_same(&step->key, &life->born) ||
        sim__race_is_before(step, &life->born))
        return;
    // What is behind an earlier launch's allocation means that one's memory.
    const struct sim__race_node *node = life->born.node;
    if (node != NULL && node->born.sequence != 0 && sim__race_is_before(step, &node->born))
        life_pair(step, access, SIM_RACE_USE_AFTER_FREE, &node->died, life);
    else
        life_pair(step, access, SIM_RACE_USE_BEFORE_ALLOC, &life->born, life);
}

struct sim__life *sim__life_access(const struct sim__race_step *step,
                                   const struct sim__race_access *access) {
    const uint64_t end = sim__rows_end(&access->rows);
    struct sim__life *first = sim__life_at(access->rows.start);
    if (first != NULL && life_end(first) >= end) {
        life_access(step, access, first);
        return first;
    }
    uint64_t at = access->rows.start;
    const struct sim__life *before = NULL;
    for (struct sim__life *life = first; at < end; life = sim__life_at(at)) {
        if (life == NULL) {
            unknown_access(step, access, at, end, before);
            break;
        }
        life_access(step, access, life);
        at = life_end(life);
        before = life;
    }
    return first;
}
