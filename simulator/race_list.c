// The lists of race_list.h. An access stands for an earlier one if it comes after it and conflicts
// with whatever that one conflicts with: whoever races with the earlier one races with it too.
// Those that are stood for are kept at first, so that the reports of a small program name all
// pairs; later on all but a few go. So does what everything still to come comes after. What is left
// is at most a few entries for each stream.
#include "simulator/race_list.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 4
// Kept of those that others stand for: so many writes, so many reads; in the first steps more.
#define OVER_MAX 2
#define OVER_MAX_FIRST 64
// From so many reads on a read is only entered, and the list tidied when it is full.
#define READS_MANY 48

static bool conflicts(unsigned a, unsigned b) {
    return a != b || a == SIM_ACCESS_WRITE;
}

// Whether a later LATER stands for EARLIER.
static bool stands_for(unsigned later, unsigned earlier) {
    return later == SIM_ACCESS_WRITE || later == earlier;
}

static enum sim_access_mode shadow_mode(const struct sim__race_access *access) {
    return access->mode == SIM_ACCESS_CARRY ? SIM_ACCESS_READ : access->mode;
}

// --- Places in the list ---

static void list_grow(struct sim__race_list *list) {
    list->size = list->size == 0 ? SIZE_FIRST : 2 * list->size;
    list->entries = realloc(list->entries, list->size * sizeof *list->entries);
    if (list->entries == NULL)
        sim__host_limit("out of host memory for the race checker");
}

// The entry does not count any more; its place is taken by others.
static void entry_drop(struct sim__race_list *list, const struct sim__race_touch *entry) {
    list->over -= entry->over;
    if (entry->key.node != NULL)
        sim__race_node_release(entry->key.node);
}

static void list_shrink_to(struct sim__race_list *list, uint32_t count, uint32_t writes) {
    list->count = count;
    list->writes = writes;
}

static bool is_settled(const struct sim__race_step *step, const struct sim__race_touch *entry) {
    return sim__order_view_settled(&step->view, entry->key.column, entry->key.sequence);
}

void sim__race_list_trim(struct sim__race_list *list) {
    uint32_t kept = 0, writes = 0;
    if (list->over == 0)
        return;
    for (uint32_t i = 0; i < list->count; ++i) {
        const struct sim__race_touch *entry = &list->entries[i];
        if (entry->over) {
            entry_drop(list, entry);
            continue;
        }
        writes += i < list->writes;
        list->entries[kept++] = *entry;
    }
    list_shrink_to(list, kept, writes);
}

void sim__race_list_settle(struct sim__race_list *list, const struct sim__race_step *step) {
    uint32_t kept = 0, writes = 0;
    for (uint32_t i = 0; i < list->count; ++i) {
        const struct sim__race_touch *entry = &list->entries[i];
        if (is_settled(step, entry)) {
            entry_drop(list, entry);
            continue;
        }
        writes += i < list->writes;
        list->entries[kept++] = *entry;
    }
    list_shrink_to(list, kept, writes);
}

// Drops the first of those that others stand for until MOST writes and reads are left.
static void forget_over(struct sim__race_list *list, uint32_t most) {
    uint32_t kept = 0, writes = 0, over[2] = {0};
    for (uint32_t i = 0; i < list->count; ++i)
        over[i >= list->writes] += list->entries[i].over;
    for (uint32_t i = 0; i < list->count; ++i) {
        const struct sim__race_touch *entry = &list->entries[i];
        const bool is_read = i >= list->writes;
        if (entry->over && over[is_read] > most) {
            --over[is_read];
            entry_drop(list, entry);
            continue;
        }
        writes += !is_read;
        if (kept != i)
            list->entries[kept] = *entry;
        ++kept;
    }
    list_shrink_to(list, kept, writes);
}

static void over_check(struct sim__race_list *list) {
    const uint32_t most = sim__race_is_early() ? OVER_MAX_FIRST : OVER_MAX;
    if (list->over > 2 * most)
        forget_over(list, most);
}

static void list_add(struct sim__race_list *list, const struct sim__race_step *step,
                     enum sim_access_mode mode, uint64_t block) {
    if (list->count == list->size)
        list_grow(list);
    struct sim__race_touch *place = &list->entries[list->count];
    if (mode != SIM_ACCESS_READ) {
        place = &list->entries[list->writes];
        const uint32_t reads = list->count - list->writes;
        if (reads > READS_MANY)
            list->entries[list->count] = *place;
        else
            memmove(place + 1, place, reads * sizeof *place);
        ++list->writes;
    }
    ++list->count;
    *place = (struct sim__race_touch){
        .key = step->key, .mode = mode, .block = block & SIM__RACE_BLOCK_MAX};
    sim__race_node_retain(step->key.node);
}

// --- Accesses ---

static void pair_tell(const struct sim__race_step *step, const struct sim__race_touch *entry,
                      enum sim_access_mode mode, uint64_t block, struct sim__range range) {
    const bool is_reuse = block != 0 && entry->block != 0 && block != entry->block;
    const bool is_read = mode == SIM_ACCESS_READ || entry->mode == SIM_ACCESS_READ;
    const struct sim__race_pair pair = {
        .rule = is_reuse  ? SIM_RACE_REUSE
                : is_read ? SIM_RACE_READ_WRITE
                          : SIM_RACE_WRITE_WRITE,
        .other = entry->key,
        .other_mode = (enum sim_access_mode)entry->mode,
        .mode = mode,
        .other_block = entry->block,
        .block = block,
        .about_block = is_reuse ? entry->block : 0,
        .range = range,
    };
    sim__race_pair(step, &pair);
}

// Many nodes of a launch read the same: what is before by its lane alone is the last in that.
static bool is_over_cheaply(const struct sim__race_step *step,
                            const struct sim__race_key *key) {
    if (key->column != step->key.column || key->sequence != step->key.sequence)
        return sim__order_is_before(&step->view, key->column, key->sequence);
    return sim__race_plan_same_lane(step->plan, key->place, step->key.place);
}

// Tells the pairs; leaves out the entries that are settled, and marks those that the access stands
// for. *present: the step has done that already.
static void list_look(struct sim__race_list *list, const struct sim__race_step *step,
                      enum sim_access_mode mode, uint64_t block, struct sim__range range,
                      bool *present) {
    uint32_t kept = 0, writes = 0;
    for (uint32_t i = 0; i < list->count; ++i) {
        struct sim__race_touch *entry = &list->entries[i];
        if (is_settled(step, entry)) {
            entry_drop(list, entry);
            continue;
        }
        if (sim__race_is_same(&entry->key, &step->key)) {
            *present |= entry->block == block && stands_for(entry->mode, mode);
        } else {
            const bool conflict = conflicts(entry->mode, mode);
            const bool before = conflict ? sim__race_is_before(step, &entry->key)
                                         : is_over_cheaply(step, &entry->key);
            if (conflict && !before)
                pair_tell(step, entry, mode, block, range);
            if (before && !entry->over && stands_for(mode, entry->mode)) {
                entry->over = 1;
                ++list->over;
            }
        }
        writes += i < list->writes;
        if (kept != i)
            list->entries[kept] = *entry;
        ++kept;
    }
    list_shrink_to(list, kept, writes);
}

static bool is_of_launch(const struct sim__race_step *step, const struct sim__race_touch *entry) {
    return entry->key.column == step->key.column && entry->key.sequence == step->key.sequence;
}

// Of the step's stream only the reads of its last operation count, and of a launch the last of each
// lane.
static void reads_tidy(struct sim__race_list *list, const struct sim__race_step *step) {
    sim__race_list_trim(list);
    if (step->plan != NULL)
        sim__race_plan_note_begin(step->plan);
    for (uint32_t i = list->writes; i < list->count && step->plan != NULL; ++i)
        if (is_of_launch(step, &list->entries[i]))
            sim__race_plan_note(step->plan, list->entries[i].key.place);
    uint32_t kept = list->writes;
    for (uint32_t i = list->writes; i < list->count; ++i) {
        const struct sim__race_touch *entry = &list->entries[i];
        const bool counts = is_of_launch(step, entry)
                                ? step->plan == NULL ||
                                      sim__race_plan_is_noted(step->plan, entry->key.place)
                                : entry->key.column != step->key.column &&
                                      !is_settled(step, entry);
        if (counts)
            list->entries[kept++] = *entry;
        else
            entry_drop(list, entry);
    }
    list->count = kept;
}

// A read among many others: only what writes can conflict.
static void read_enter(struct sim__race_list *list, const struct sim__race_step *step,
                       uint64_t block, struct sim__range range) {
    for (uint32_t i = 0; i < list->writes; ++i) {
        const struct sim__race_touch *entry = &list->entries[i];
        if (!sim__race_is_same(&entry->key, &step->key) && !is_settled(step, entry) &&
            !sim__race_is_before(step, &entry->key))
            pair_tell(step, entry, SIM_ACCESS_READ, block, range);
    }
    if (list->count == list->size) {
        reads_tidy(list, step);
        if (list->count > list->size / 2)
            list_grow(list);
    }
    if (!step->is_passing)
        list_add(list, step, SIM_ACCESS_READ, block);
}

void sim__race_list_access(struct sim__race_list *list, const struct sim__race_step *step,
                           const struct sim__race_access *access, struct sim__range range) {
    const enum sim_access_mode mode = shadow_mode(access);
    bool present = false;
    if (mode == SIM_ACCESS_READ && list->count - list->writes > READS_MANY) {
        read_enter(list, step, access->block, range);
        return;
    }
    list_look(list, step, mode, access->block, range, &present);
    if (!present && !step->is_passing)
        list_add(list, step, mode, access->block);
    over_check(list);
}

void sim__race_list_meet(struct sim__race_list *list, const struct sim__race_step *step,
                         const struct sim__race_access *access, const struct sim__rows *rows,
                         bool covers) {
    const enum sim_access_mode mode = shadow_mode(access);
    for (uint32_t i = 0; i < list->count; ++i) {
        struct sim__race_touch *entry = &list->entries[i];
        if (sim__race_is_same(&entry->key, &step->key) || is_settled(step, entry))
            continue;
        struct sim__range range;
        const bool conflict = conflicts(entry->mode, mode);
        if (!conflict && !covers)
            continue;
        const bool before = sim__race_is_before(step, &entry->key);
        if (conflict && !before && sim__rows_meet(rows, &access->rows, &range))
            pair_tell(step, entry, mode, access->block, range);
        if (covers && before && !entry->over && stands_for(mode, entry->mode)) {
            entry->over = 1;
            ++list->over;
        }
    }
    if (covers)
        over_check(list);
}

void sim__race_list_end(const struct sim__race_list *list, const struct sim__race_step *step,
                        struct sim__range range) {
    for (uint32_t i = 0; i < list->count; ++i) {
        const struct sim__race_touch *entry = &list->entries[i];
        if (is_settled(step, entry) || sim__race_is_same(&entry->key, &step->key) ||
            sim__race_is_before(step, &entry->key))
            continue;
        const struct sim__race_pair pair = {
            .rule = SIM_RACE_USE_AFTER_FREE,
            .other = entry->key,
            .other_mode = (enum sim_access_mode)entry->mode,
            .mode = SIM_ACCESS_WRITE,
            .other_block = entry->block,
            .range = range,
        };
        sim__race_pair(step, &pair);
    }
}

// --- Whole lists ---

void sim__race_list_copy(struct sim__race_list *copy, const struct sim__race_list *list) {
    *copy = *list;
    copy->size = SIZE_FIRST;
    while (copy->size < list->count)
        copy->size *= 2;
    copy->entries = malloc(copy->size * sizeof *copy->entries);
    if (copy->entries == NULL)
        sim__host_limit("out of host memory for the race checker");
    memcpy(copy->entries, list->entries, list->count * sizeof *list->entries);
    for (uint32_t i = 0; i < copy->count; ++i)
        sim__race_node_retain(copy->entries[i].key.node);
}

void sim__race_list_add(struct sim__race_list *list, const struct sim__race_list *from) {
    while (list->size < list->count + from->count)
        list_grow(list);
    memmove(&list->entries[list->writes + from->writes], &list->entries[list->writes],
            (list->count - list->writes) * sizeof *list->entries);
    memcpy(&list->entries[list->writes], from->entries, from->writes * sizeof *list->entries);
    list->writes += from->writes;
    list->count += from->writes;
    const uint32_t reads = from->count - from->writes;
    memcpy(&list->entries[list->count], &from->entries[from->writes],
           reads * sizeof *list->entries);
    list->count += reads;
    list->over += from->over;
    for (uint32_t i = 0; i < from->count; ++i)
        sim__race_node_retain(from->entries[i].key.node);
}

bool sim__race_list_equal(const struct sim__race_list *a, const struct sim__race_list *b) {
    return a->count == b->count && a->writes == b->writes &&
           memcmp(a->entries, b->entries, a->count * sizeof *a->entries) == 0;
}

void sim__race_list_clear(struct sim__race_list *list) {
    for (uint32_t i = 0; i < list->count; ++i)
        if (list->entries[i].key.node != NULL)
            sim__race_node_release(list->entries[i].key.node);
    free(list->entries);
    *list = (struct sim__race_list){0};
}
