// Tables of handles: what the program holds as a cudaStream_t or cudaEvent_t is a number that names
// a slot and the occasion on which it was taken. So a handle that was destroyed, or never was one,
// is told apart without touching what it points to.
//
// A handle is TAG (8 bits), serial (34 bits), slot (22 bits). The tag makes it an address that no
// pointer can have; serials only grow, so later handles are greater numbers. Slots never move. Not
// thread-safe.
#ifndef TIDEMARK_SIMULATOR_HANDLE_H
#define TIDEMARK_SIMULATOR_HANDLE_H

#include <stddef.h>
#include <stdint.h>

#define SIM__HANDLE_SLOT_BITS 22
#define SIM__HANDLE_SERIAL_BITS 34
#define SIM__HANDLE_CHUNK 1024 // slots are allocated in chunks of this many
#define SIM__HANDLE_CHUNKS_MAX ((1u << SIM__HANDLE_SLOT_BITS) / SIM__HANDLE_CHUNK)

// The first member of whatever lives in a table.
struct sim__handle_slot {
    uint64_t handle; // 0 while the slot is free
    struct sim__handle_slot *next_free;
    uint32_t index;
};

struct sim__handle_table {
    uint8_t tag;      // 0x40 to 0x7e: bits 62 and 63 differ, as in no valid address
    size_t slot_size; // sizeof the type that embeds sim__handle_slot
    uint64_t serial;
    uint32_t slot_count;
    struct sim__handle_slot *free;
    unsigned char *chunks[SIM__HANDLE_CHUNKS_MAX];
};

// A slot, new (zeroed) or as it was given back; its handle is set. NULL if 4,194,304 are taken or
// the host's memory is used up.
void *sim__handle_take(struct sim__handle_table *table);
void sim__handle_give(struct sim__handle_table *table, void *slot);
// The slot that HANDLE names; NULL if it is none.
static inline void *sim__handle_find(const struct sim__handle_table *table, uint64_t handle) {
    const uint32_t index = handle & ((1u << SIM__HANDLE_SLOT_BITS) - 1);
    if (index >= table->slot_count)
        return NULL;
    unsigned char *const chunk = table->chunks[index / SIM__HANDLE_CHUNK];
    struct sim__handle_slot *const slot =
        (struct sim__handle_slot *)(void *)(chunk + index % SIM__HANDLE_CHUNK * table->slot_size);
    return slot->handle == handle && handle != 0 ? slot : NULL;
}
// Whether HANDLE was taken from this table at some time.
int sim__handle_was_taken(const struct sim__handle_table *table, uint64_t handle);
// The slot of that index, taken or not; NULL from slot_count on.
void *sim__handle_slot_at(const struct sim__handle_table *table, uint32_t index);
// Frees all slots. Serials go on, so that no handle of before ever names a slot again.
void sim__handle_clear(struct sim__handle_table *table);

#endif
