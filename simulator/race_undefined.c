// The sets of race_undefined.h. What would need too many parts counts as written: a read of it is
// not reported then.
#include "simulator/race_undefined.h"

#include "simulator/state.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 65536
#define STRIDED_MAX 1024

void sim__undefined_clear(struct sim__undefined *set) {
    for (uint32_t i = 0; i < set->count; ++i)
        sim__carrier_release(set->parts[i].carrier);
    free(set->parts);
    *set = (struct sim__undefined){0};
}

// The first part in one piece that ends behind START.
static uint32_t plain_from(const struct sim__undefined *set, uint64_t start) {
    uint32_t low = 0, high = set->plain_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (sim__rows_end(&set->parts[middle].rows) <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Takes over the caller's reference on CARRIER.
static void insert(struct sim__undefined *set, const struct sim__rows *rows,
                   struct sim__carrier *carrier) {
    const uint32_t strided_count = set->count - set->plain_count;
    if (rows->rows == 1 ? set->plain_count >= PARTS_MAX : strided_count >= STRIDED_MAX) {
        sim__carrier_release(carrier);
        return;
    }
    if (set->count == set->size) {
        set->size = set->size == 0 ? 2 : 2 * set->size;
        set->parts = realloc(set->parts, set->size * sizeof *set->parts);
        if (set->parts == NULL)
            sim__host_limit("out of host memory for the race checker");
    }
    const uint32_t at = rows->rows == 1 ? plain_from(set, rows->start) : set->count;
    memmove(&set->parts[at + 1], &set->parts[at], (set->count - at) * sizeof *set->parts);
    set->parts[at] = (struct sim__undefined_part){*rows, carrier};
    set->plain_count += rows->rows == 1;
    ++set->count;
}

static struct sim__undefined_part take_out(struct sim__undefined *set, uint32_t at) {
    const struct sim__undefined_part part = set->parts[at];
    set->plain_count -= at < set->plain_count;
    --set->count;
    memmove(&set->parts[at], &set->parts[at + 1], (set->count - at) * sizeof *set->parts);
    return part;
}

struct rest {
    struct sim__undefined *set;
    struct sim__carrier *carrier;
};

static void rest_add(const struct sim__rows *rows, void *argument) {
    const struct rest *rest = argument;
    insert(rest->set, rows, sim__carrier_retain(rest->carrier));
}

// Cuts ROWS out of the part at AT, which has some of them.
static void cut_part(struct sim__undefined *set, uint32_t at, const struct sim__rows *rows) {
    const struct sim__undefined_part part = take_out(set, at);
    struct rest rest = {set, part.carrier};
    if (!sim__rows_without(&part.rows, rows, rest_add, &rest)) {
        // Some of it may be there already; all of it counts as written.
        for (uint32_t i = 0; i < set->count;)
            if (sim__rows_meet(&set->parts[i].rows, &part.rows, NULL))
                sim__carrier_release(take_out(set, i).carrier);
            else
                ++i;
    }
    sim__carrier_release(part.carrier);
}

void sim__undefined_cut(struct sim__undefined *set, const struct sim__rows *rows) {
    const uint64_t end = sim__rows_end(rows);
    // Parts that are left over lie where their whole did, so each place is looked at again until
    // nothing there meets ROWS.
    for (uint32_t i = plain_from(set, rows->start);
         i < set->plain_count && set->parts[i].rows.start < end;)
        if (sim__rows_meet(&set->parts[i].rows, rows, NULL))
            cut_part(set, i, rows);
        else
            ++i;
    for (uint32_t i = set->plain_count; i < set->count;)
        if (sim__rows_meet(&set->parts[i].rows, rows, NULL)) {
            const uint32_t plain_before = set->plain_count;
            cut_part(set, i, rows);
            i += set->plain_count - plain_before; // they moved the strided ones
        } else {
            ++i;
        }
}

void sim__undefined_add(struct sim__undefined *set, const struct sim__rows *rows,
                        struct sim__carrier *carrier) {
    sim__undefined_cut(set, rows);
    insert(set, rows, sim__carrier_retain(carrier));
}

const struct sim__undefined_part *sim__undefined_next(const struct sim__undefined *set,
                                                      const struct sim__rows *rows,
                                                      uint32_t *index) {
    uint32_t i = *index;
    if (i == 0 && set->plain_count > 8)
        i = plain_from(set, rows->start);
    for (; i < set->count; ++i) {
        if (i < set->plain_count && set->parts[i].rows.start >= sim__rows_end(rows))
            i = set->plain_count;
        if (i < set->count && sim__rows_meet(&set->parts[i].rows, rows, NULL)) {
            *index = i + 1;
            return &set->parts[i];
        }
    }
    *index = i;
    return NULL;
}
