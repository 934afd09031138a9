// The clocks of order_clock.h. Those that are given back wait in a list for the next one, as long
// as the number of columns stays what it is.
#include "simulator/order_clock.h"

#include "simulator/state.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_STEP 16

static uint32_t size = COLUMNS_STEP; // of new clocks
static struct sim__order_clock *idle; // of that size, through known[0]

static struct sim__order_clock *idle_next(const struct sim__order_clock *clock) {
    struct sim__order_clock *next;
    memcpy(&next, &clock->known[0], sizeof(void *));
    return next;
}

void sim__clocks_clear(void) {
    while (idle != NULL) {
        struct sim__order_clock *next = idle_next(idle);
        free(idle);
        idle = next;
    }
}

void sim__clock_columns(uint32_t count) {
    const uint32_t needed = (count + COLUMNS_STEP - 1) / COLUMNS_STEP * COLUMNS_STEP;
    if (needed == size)
        return;
    sim__clocks_clear();
    size = needed;
}

void sim__clock__free(struct sim__order_clock *clock) {
    if (clock->size != size) {
        free(clock);
        return;
    }
    memcpy(&clock->known[0], &idle, sizeof(void *));
    idle = clock;
}

// Its contents are not set.
static struct sim__order_clock *clock_make(void) {
    struct sim__order_clock *clock = idle;
    if (clock != NULL) {
        idle = idle_next(clock);
    } else {
        clock = malloc(sizeof *clock + size * sizeof clock->known[0]);
        if (clock == NULL)
            sim__host_limit("out of host memory for the order of %u streams", size);
        clock->size = size;
    }
    clock->references = 1;
    return clock;
}

// Makes it nobody else's, with room for all columns.
static void clock_own(struct sim__order_clock **clock) {
    struct sim__order_clock *const former = *clock;
    if (former != NULL && former->references == 1 && former->size >= size)
        return;
    struct sim__order_clock *const own = clock_make();
    const uint32_t count = former == NULL ? 0 : former->size < size ? former->size : size;
    if (count > 0)
        memcpy(own->known, former->known, count * sizeof own->known[0]);
    memset(own->known + count, 0, (size - count) * sizeof own->known[0]);
    sim__clock_release(clock);
    *clock = own;
}

bool sim__clock__raise(struct sim__order_clock **clock, uint32_t column, uint64_t sequence) {
    clock_own(clock);
    (*clock)->known[column] = sequence;
    return true;
}

bool sim__clock_unite(struct sim__order_clock **clock, struct sim__order_clock *other) {
    if (other == NULL || other == *clock)
        return false;
    if (*clock == NULL) {
        *clock = sim__clock_retain(other);
        return true;
    }
    uint32_t i = 0;
    while (i < other->size && other->known[i] <= sim__clock_at(*clock, i))
        ++i;
    if (i == other->size)
        return false;
    clock_own(clock);
    uint64_t *const known = (*clock)->known;
    const uint32_t count = other->size < (*clock)->size ? other->size : (*clock)->size;
    for (; i < count; ++i)
        known[i] = known[i] > other->known[i] ? known[i] : other->known[i];
    return true;
}
