// The reads of race_unwritten.h, which wait in a list; the copies that brought undefined bytes
// somewhere, each with where it took them from; and who raced, as far as copies may matter.
#include "simulator/race_unwritten.h"

#include <stdlib.h>
#include <string.h>

// A longer chain of copies is not followed, and what it brings counts as written.
#define DEPTH_MAX 64
// Reads of one origin that wait at a time: they are told once anyway.
#define WAITING_ALIKE_MAX 4
#define WAITING_MAX 4096
// Rows of a copy that are looked at one by one, if it reshapes what it takes.
#define ROWS_MAX 4096
#define RACED_SIZE 8192 // a power of two

struct sim__carrier {
    uint32_t references, depth;
    struct sim__race_key key;
    struct sim__rows rows; // what it read
    struct sim__carrier *from;
};

struct waiting {
    struct sim__race_key key;
    struct sim__rows rows;
    enum sim_access_mode mode;
    uint64_t block, allocation;
    struct sim__carrier *carrier;
    bool is_void; // it raced, or may be defined
};

uint32_t sim__unwritten_count;

static struct waiting waiting[WAITING_MAX];

// Keys of those that raced, in a hash table; once it is crowded, everybody counts as one.
static uint64_t raced[RACED_SIZE];
static uint32_t raced_count;

// --- Who raced ---

static uint64_t raced_hash(const struct sim__race_key *key) {
    const uint64_t mixed = (((uint64_t)key->column << 44 | key->sequence) ^
                            (uint64_t)key->place << 23) *
                           UINT64_C(0x9e3779b97f4a7c15);
    return mixed | 1;
}

static uint64_t *raced_place(uint64_t hash) {
    uint64_t at = hash >> 51;
    while (raced[at & (RACED_SIZE - 1)] != 0 && raced[at & (RACED_SIZE - 1)] != hash)
        ++at;
    return &raced[at & (RACED_SIZE - 1)];
}

static bool has_raced(const struct sim__race_key *key) {
    return raced_count > 0 &&
           (raced_count >= RACED_SIZE / 2 || *raced_place(raced_hash(key)) != 0);
}

static void raced_add(const struct sim__race_key *key) {
    if (raced_count >= RACED_SIZE / 2)
        return;
    const uint64_t hash = raced_hash(key);
    uint64_t *place = raced_place(hash);
    raced_count += *place == 0;
    *place = hash;
}

void sim__unwritten_raced(const struct sim__race_key *key) {
    raced_add(key);
    for (uint32_t i = 0; i < sim__unwritten_count; ++i) {
        waiting[i].is_void |= sim__race_is_same(&waiting[i].key, key);
        for (const struct sim__carrier *carrier = waiting[i].carrier;
             carrier != NULL && !waiting[i].is_void; carrier = carrier->from)
            waiting[i].is_void = sim__race_is_same(&carrier->key, key);
    }
}

// --- Carriers ---

struct sim__carrier *sim__carrier_retain(struct sim__carrier *carrier) {
    if (carrier != NULL)
        ++carrier->references;
    return carrier;
}

void sim__carrier_release(struct sim__carrier *carrier) {
    while (carrier != NULL && --carrier->references == 0) {
        struct sim__carrier *from = carrier->from;
        sim__race_node_release(carrier->key.node);
        free(carrier);
        carrier = from;
    }
}

static struct sim__carrier *carrier_make(const struct sim__race_step *step,
                                         const struct sim__rows *rows, struct sim__carrier *from) {
    struct sim__carrier *carrier = malloc(sizeof *carrier);
    if (carrier == NULL)
        sim__host_limit("out of host memory for the race checker");
    *carrier = (struct sim__carrier){
        .references = 1,
        .depth = from == NULL ? 1 : from->depth + 1,
        .key = step->key,
        .rows = *rows,
        .from = sim__carrier_retain(from),
    };
    sim__race_node_retain(step->key.node);
    return carrier;
}

static bool chain_raced(const struct sim__carrier *carrier) {
    for (; carrier != NULL; carrier = carrier->from)
        if (has_raced(&carrier->key))
            return true;
    return false;
}

// --- Reads ---

static void waiting_drop(uint32_t at) {
    sim__carrier_release(waiting[at].carrier);
    sim__race_node_release(waiting[at].key.node);
    waiting[at] = waiting[--sim__unwritten_count];
}

void sim__unwritten__settle(bool all) {
    for (uint32_t i = sim__unwritten_count; i-- > 0;) {
        const struct waiting *read = &waiting[i];
        if (!all && !read->is_void && !sim__order_is_settled(read->key.column, read->key.sequence))
            continue;
        if (!read->is_void)
            sim__race_alone(&read->key, SIM_RACE_UNINITIALISED, NULL, read->mode, read->block,
                            &read->rows);
        waiting_drop(i);
    }
}

static bool waits_enough(const struct sim__race_step *step, uint64_t block, uint64_t allocation) {
    uint32_t alike = 0;
    for (uint32_t i = 0; i < sim__unwritten_count; ++i) {
        const struct waiting *read = &waiting[i];
        if (read->block != block || read->allocation != allocation)
            continue;
        if (sim__race_is_same(&read->key, &step->key))
            return true;
        alike += read->key.origin == step->key.origin && read->key.node == step->key.node;
    }
    return alike >= WAITING_ALIKE_MAX || sim__unwritten_count == WAITING_MAX;
}

static struct sim__undefined *set_read(const struct sim__race_access *access,
                                       const struct sim__unwritten_sets *sets) {
    return access->record != NULL ? sets->block : sets->memory;
}

void sim__unwritten_read(const struct sim__race_step *step, const struct sim__race_access *access,
                         const struct sim__unwritten_sets *sets) {
    const struct sim__undefined *set = set_read(access, sets);
    uint32_t index = 0;
    if (set == NULL || sim__undefined_is_empty(set) || has_raced(&step->key))
        return;
    const struct sim__undefined_part *part;
    while ((part = sim__undefined_next(set, &access->rows, &index)) != NULL)
        if (part->carrier == NULL ||
            (part->carrier->depth < DEPTH_MAX && !chain_raced(part->carrier)))
            break;
    if (part == NULL || waits_enough(step, access->block, sets->allocation))
        return;
    struct sim__range first;
    if (!sim__rows_meet(&access->rows, &part->rows, &first))
        return;
    waiting[sim__unwritten_count++] = (struct waiting){
        .key = step->key,
        .rows = {first.start, first.size, 1, 0},
        .mode = access->mode,
        .block = access->block,
        .allocation = sets->allocation,
        .carrier = sim__carrier_retain(part->carrier),
    };
    sim__race_node_retain(step->key.node);
}

// --- Writes ---

// What a write that is not ordered behind a read, or behind a copy that it depends on, may define.
static bool may_define(const struct sim__race_step *step, const struct sim__rows *rows,
                       const struct waiting *read) {
    if (!sim__race_is_same(&step->key, &read->key) && !sim__race_is_before(step, &read->key) &&
        sim__rows_meet(&read->rows, rows, NULL))
        return true;
    for (const struct sim__carrier *carrier = read->carrier; carrier != NULL;
         carrier = carrier->from)
        if (!sim__race_is_same(&step->key, &carrier->key) &&
            !sim__race_is_before(step, &carrier->key) &&
            sim__rows_meet(&carrier->rows, rows, NULL))
            return true;
    return false;
}

void sim__unwritten_write(const struct sim__race_step *step, const struct sim__race_access *access,
                          const struct sim__unwritten_sets *sets) {
    for (uint32_t i = 0; i < sim__unwritten_count; ++i)
        waiting[i].is_void |= may_define(step, &access->rows, &waiting[i]);
    if (sets->memory != NULL && !sim__undefined_is_empty(sets->memory))
        sim__undefined_cut(sets->memory, &access->rows);
    if (sets->block != NULL && !sim__undefined_is_empty(sets->block))
        sim__undefined_cut(sets->block, &access->rows);
}

// --- Copies ---

struct carry {
    const struct sim__rows *from, *to;
    const struct sim__unwritten_sets *sets;
    struct sim__carrier *carrier;
};

static void carried(const struct carry *carry, uint64_t start, uint64_t size, uint64_t rows,
                    uint64_t pitch) {
    struct sim__rows made;
    if (!sim__rows_make(start, size, rows, pitch, &made))
        return;
    if (carry->sets->memory != NULL)
        sim__undefined_add(carry->sets->memory, &made, carry->carrier);
    if (carry->sets->block != NULL)
        sim__undefined_add(carry->sets->block, &made, carry->carrier);
}

// SIZE bytes at OFFSET of those that are copied go to where they belong.
static void carry_run(const struct carry *carry, uint64_t offset, uint64_t size) {
    const struct sim__rows *to = carry->to;
    uint64_t row = offset / to->size;
    const uint64_t column = offset % to->size;
    if (to->rows == 1 || column + size <= to->size) {
        carried(carry, to->start + row * to->pitch + column, size, 1, 0);
        return;
    }
    if (column > 0) {
        carried(carry, to->start + row * to->pitch + column, to->size - column, 1, 0);
        size -= to->size - column;
        ++row;
    }
    const uint64_t whole = size / to->size;
    if (whole > 0)
        carried(carry, to->start + row * to->pitch, to->size, whole, to->pitch);
    if (size % to->size > 0)
        carried(carry, to->start + (row + whole) * to->pitch, size % to->size, 1, 0);
}

// A part of what is read, which is undefined.
static void carry_part(const struct sim__rows *part, void *argument) {
    const struct carry *carry = argument;
    const struct sim__rows *from = carry->from, *to = carry->to;
    const uint64_t place = part->start - from->start;
    uint64_t offset = place, pitch = part->pitch;
    if (from->rows > 1) {
        offset = place / from->pitch * from->size + place % from->pitch;
        pitch = part->pitch / from->pitch * from->size;
    }
    const uint64_t column = offset % to->size;
    if (part->rows == 1)
        carry_run(carry, offset, part->size);
    else if (to->rows == 1)
        carried(carry, to->start + offset, part->size, part->rows, pitch);
    else if (pitch % to->size == 0 && column + part->size <= to->size)
        carried(carry, to->start + offset / to->size * to->pitch + column, part->size, part->rows,
                pitch / to->size * to->pitch);
    else
        for (uint64_t row = 0; row < part->rows && row < ROWS_MAX; ++row)
            carry_run(carry, offset + row * pitch, part->size);
}

void sim__unwritten_carry(const struct sim__race_step *step, const struct sim__race_access *access,
                          const struct sim__unwritten_sets *sets,
                          const struct sim__race_access *to,
                          const struct sim__unwritten_sets *to_sets) {
    const struct sim__undefined *set = set_read(access, sets);
    const struct sim__undefined_part *part;
    uint32_t index = 0;
    if (set == NULL || sim__undefined_is_empty(set) ||
        sim__rows_bytes(&access->rows) != sim__rows_bytes(&to->rows))
        return;
    // Adding to the set that is read would change it: source and destination do not overlap, but
    // can be of one allocation.
    struct sim__undefined copy = {0};
    while ((part = sim__undefined_next(set, &access->rows, &index)) != NULL)
        sim__undefined_add(&copy, &part->rows, part->carrier);
    for (uint32_t i = 0; i < copy.count; ++i) {
        struct carry carry = {&access->rows, &to->rows, to_sets,
                              carrier_make(step, &access->rows, copy.parts[i].carrier)};
        if (carry.carrier->depth < DEPTH_MAX)
            sim__rows_common(&access->rows, &copy.parts[i].rows, carry_part, &carry);
        sim__carrier_release(carry.carrier);
    }
    sim__undefined_clear(&copy);
}

void sim__unwritten_clear(void) {
    while (sim__unwritten_count > 0)
        waiting_drop(0);
    if (raced_count > 0)
        memset(raced, 0, sizeof raced);
    raced_count = 0;
}
