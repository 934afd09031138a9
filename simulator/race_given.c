// Memory of blocks that were given back, for programs that touch such memory by blocks only (struct
// sim_race_options, blocks_only): which block had it last, until another one takes it.
#include "simulator/race_given.h"

#include <stdlib.h>

// So many pieces of memory are remembered; those that were given back first are forgotten.
#define GIVEN_MAX 65536

struct given {
    struct sim__range range;
    uint64_t number;
    struct given *next, *previous; // the first was given back first
};

static bool blocks_only;
static struct sim__range_index givens;
static struct given *first_given, *last_given;
static uint32_t given_count;

static void given_add(uint64_t start, uint64_t end, uint64_t number) {
    if (start >= end)
        return;
    struct given *given = malloc(sizeof *given);
    if (given == NULL)
        sim__host_limit("out of host memory for the race checker");
    *given = (struct given){{start, end - start}, number, NULL, last_given};
    if (last_given != NULL)
        last_given->next = given;
    else
        first_given = given;
    last_given = given;
    ++given_count;
    sim__range_insert(&givens, &given->range);
}

static void given_remove(struct given *given) {
    sim__range_remove(&givens, &given->range);
    if (given->previous != NULL)
        given->previous->next = given->next;
    else
        first_given = given->next;
    if (given->next != NULL)
        given->next->previous = given->previous;
    else
        last_given = given->previous;
    --given_count;
    free(given);
}

void sim__given_forget(uint64_t start, uint64_t size) {
    struct sim__range *range;
    while (given_count > 0 && (range = sim__range_overlapping(&givens, start, size)) != NULL) {
        const struct given given = *(struct given *)range;
        given_remove((struct given *)range);
        given_add(given.range.start, start, given.number);
        given_add(start + size, given.range.start + given.range.size, given.number);
    }
}

void sim__given_set(const struct sim__range *range, uint64_t number) {
    if (!blocks_only)
        return;
    sim__given_forget(range->start, range->size);
    given_add(range->start, range->start + range->size, number);
    if (given_count > GIVEN_MAX)
        given_remove(first_given);
}

uint64_t sim__given_block(const struct sim__rows *rows) {
    const struct sim__range *range =
        given_count == 0
            ? NULL
            : sim__range_overlapping(&givens, rows->start, sim__rows_end(rows) - rows->start);
    const struct given *given = (const struct given *)range;
    if (given == NULL)
        return 0;
    const struct sim__rows whole = {range->start, range->size, 1, 0};
    return sim__rows_meet(rows, &whole, NULL) ? given->number : 0;
}

void sim__given_begin(bool only) { blocks_only = only; }

void sim__given_clear(void) {
    while (first_given != NULL)
        given_remove(first_given);
    sim__range_index_deinit(&givens);
}
