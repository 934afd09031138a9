// The tables of handle.h.
#include "simulator/handle.h"

#include "base/check.h"

#include <stdlib.h>

void *sim__handle_slot_at(const struct sim__handle_table *table, uint32_t index) {
    if (index >= table->slot_count)
        return NULL;
    return table->chunks[index / SIM__HANDLE_CHUNK] + index % SIM__HANDLE_CHUNK * table->slot_size;
}

static struct sim__handle_slot *slot_add(struct sim__handle_table *table) {
    if (table->slot_count == SIM__HANDLE_CHUNKS_MAX * SIM__HANDLE_CHUNK)
        return NULL;
    unsigned char **chunk = &table->chunks[table->slot_count / SIM__HANDLE_CHUNK];
    if (*chunk == NULL) {
        *chunk = calloc(SIM__HANDLE_CHUNK, table->slot_size);
        if (*chunk == NULL)
            return NULL;
    }
    const uint32_t index = table->slot_count++;
    struct sim__handle_slot *slot = sim__handle_slot_at(table, index);
    slot->index = index;
    return slot;
}

void *sim__handle_take(struct sim__handle_table *table) {
    struct sim__handle_slot *slot = table->free;
    if (slot != NULL)
        table->free = slot->next_free;
    else
        slot = slot_add(table);
    if (slot == NULL)
        return NULL;
    ++table->serial;
    BASE_CHECK_LT(table->serial >> SIM__HANDLE_SERIAL_BITS, 1);
    slot->handle =
        (uint64_t)table->tag << 56 | table->serial << SIM__HANDLE_SLOT_BITS | slot->index;
    return slot;
}

void sim__handle_give(struct sim__handle_table *table, void *slot) {
    struct sim__handle_slot *given = slot;
    BASE_CHECK(given->handle != 0);
    given->handle = 0;
    given->next_free = table->free;
    table->free = given;
}

int sim__handle_was_taken(const struct sim__handle_table *table, uint64_t handle) {
    const uint64_t serial = handle << 8 >> 8 >> SIM__HANDLE_SLOT_BITS;
    return handle >> 56 == table->tag && serial >= 1 && serial <= table->serial;
}

void sim__handle_clear(struct sim__handle_table *table) {
    for (size_t i = 0; i < SIM__HANDLE_CHUNKS_MAX && table->chunks[i] != NULL; ++i) {
        free(table->chunks[i]);
        table->chunks[i] = NULL;
    }
    table->slot_count = 0;
    table->free = NULL;
}
