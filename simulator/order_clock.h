// Clocks of order.h: for each column a sequence number, 0 where nothing is known. A clock is shared
// by all that know the same, counted, and copied when one of them learns more. NULL knows nothing.
#ifndef TIDEMARK_SIMULATOR_ORDER_CLOCK_H
#define TIDEMARK_SIMULATOR_ORDER_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim__order_clock {
    uint32_t references;
    uint32_t size; // columns from SIZE on: 0
    uint64_t known[];
};

// How many columns there are: clocks that are made or copied from now on have room for them.
void sim__clock_columns(uint32_t count);

static inline uint64_t sim__clock_at(const struct sim__order_clock *clock, uint32_t column) {
    return clock != NULL && column < clock->size ? clock->known[column] : 0;
}

static inline struct sim__order_clock *sim__clock_retain(struct sim__order_clock *clock) {
    if (clock != NULL)
        ++clock->references;
    return clock;
}
void sim__clock__free(struct sim__order_clock *clock);
static inline void sim__clock_release(struct sim__order_clock **clock) {
    if (*clock != NULL && --(*clock)->references == 0)
        sim__clock__free(*clock);
    *clock = NULL;
}

// Operation SEQUENCE of COLUMN is known as well; true if it was not.
bool sim__clock__raise(struct sim__order_clock **clock, uint32_t column, uint64_t sequence);
static inline bool sim__clock_raise(struct sim__order_clock **clock, uint32_t column,
                                    uint64_t sequence) {
    return sim__clock_at(*clock, column) < sequence && sim__clock__raise(clock, column, sequence);
}
// All that OTHER knows is known as well; true if something was not.
bool sim__clock_unite(struct sim__order_clock **clock, struct sim__order_clock *other);

// Frees memory that is kept for the next clocks.
void sim__clocks_clear(void);

#endif
