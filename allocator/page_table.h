// From a pointer to its block, without a hash and without a lock.
//
// The table has one 4-byte entry a MiB of address space, for all 56 bits of it. A block that was
// handed out from the large pool exceeds 1 MiB, so at most one starts in each window and the
// entry is its number. A small segment lies in windows of its own: their entry names a
// *directory*, which has a *leaf* of 64 entries for each 32 KiB in which a block was handed out.
// A small segment that does not begin at a whole MiB (only an exact replay makes one) shares
// windows; its blocks are kept in a hash table instead.
//
// Entries are written when a block is handed out and not cleared when it is freed: what a lookup
// finds is a hint, and the caller compares the block's address and state under the lock of its
// stream.
#ifndef TIDEMARK_ALLOCATOR_PAGE_TABLE_H
#define TIDEMARK_ALLOCATOR_PAGE_TABLE_H

#include "allocator/arena.h"
#include "base/address_map.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CCA__ADDRESS_BITS 56
#define CCA__WINDOW_BITS  20 // 1 MiB
#define CCA__WINDOWS_BITS 14 // an array of windows covers 16 GiB
#define CCA__ROOT_BITS    (CCA__ADDRESS_BITS - CCA__WINDOW_BITS - CCA__WINDOWS_BITS)

#define CCA__DIRECTORY_FLAG 0x80000000u // of a window's entry: it names a directory, not a block
#define CCA__SMALL_SLOTS    64          // entries of a directory, and of a leaf
#define CCA__LEAF_SHIFT     15          // a leaf covers 32 KiB,
#define CCA__SLOT_SHIFT     9           // an entry of it 512 B

struct cca__page_table {
    // 2^CCA__ROOT_BITS of them: reserved addresses that become memory where they are written.
    _Atomic(struct cca__page_windows *) *root;
    struct cca__arena directories, leaves;
    struct cca__lock lock; // a leaf: guards the making of windows, and strays
    uint32_t *made;        // indices of root that are in use
    uint32_t made_count;
    struct base_address_map strays; // blocks of small segments that begin within a MiB
    _Atomic size_t stray_count;     // of them; may be read without the lock to skip an empty map
};

struct cca__page_windows {
    _Atomic uint32_t entry[1 << CCA__WINDOWS_BITS];
};

enum base_status cca__page_table_init(struct cca__page_table *table);
void cca__page_table_deinit(struct cca__page_table *table);

// Before blocks of a segment are handed out: makes what a store may need, so that a store at
// hand-out cannot fail. For a small segment *directory becomes its directory, 0 if its blocks go
// among the strays; for a large one 0.
enum base_status cca__page_table_add_segment(struct cca__page_table *table, uint64_t address,
                                             uint64_t size, bool is_small,
                                             uint32_t *directory) BASE_MUST_USE;
// Gives the directory and its leaves back. No block of the segment may be in use.
void cca__page_table_remove_segment(struct cca__page_table *table, uint64_t address,
                                    uint32_t directory);

static inline _Atomic uint32_t *cca__page_entry(const struct cca__page_table *table,
                                                uint64_t address) {
    if (address >> CCA__ADDRESS_BITS != 0) return NULL;
    // Acquire pairs with the release of whoever made the array.
    struct cca__page_windows *const windows = atomic_load_explicit(
        &table->root[address >> (CCA__WINDOW_BITS + CCA__WINDOWS_BITS)], memory_order_acquire);
    if (windows == NULL) return NULL;
    return &windows->entry[address >> CCA__WINDOW_BITS & ((1u << CCA__WINDOWS_BITS) - 1)];
}

static inline _Atomic uint32_t *cca__arena_slots(const struct cca__arena *arena, uint32_t item) {
    return (_Atomic uint32_t *)(void *)(arena->base +
                                        (size_t)item * (CCA__SMALL_SLOTS * sizeof(uint32_t)));
}

static inline uint32_t cca__leaf_place(uint64_t address) {
    return (uint32_t)(address >> CCA__LEAF_SHIFT) & (CCA__SMALL_SLOTS - 1);
}
static inline uint32_t cca__slot_place(uint64_t address) {
    return (uint32_t)(address >> CCA__SLOT_SHIFT) & (CCA__SMALL_SLOTS - 1);
}

// The number of the block that may have been handed out at ADDRESS, 0 if none was. Strays not
// included.
static inline uint32_t cca__page_table_find(const struct cca__page_table *table, uint64_t address) {
    _Atomic uint32_t *const window = cca__page_entry(table, address);
    if (window == NULL) return 0;
    const uint32_t entry = atomic_load_explicit(window, memory_order_relaxed);
    if ((entry & CCA__DIRECTORY_FLAG) == 0) return entry;
    const uint32_t leaf = atomic_load_explicit(
        &cca__arena_slots(&table->directories,
                          entry & ~CCA__DIRECTORY_FLAG)[cca__leaf_place(address)],
        memory_order_relaxed);
    if (leaf == 0) return 0;
    return atomic_load_explicit(&cca__arena_slots(&table->leaves, leaf)[cca__slot_place(address)],
                                memory_order_relaxed);
}

// For a block of the large pool.
static inline void cca__page_table_store_large(struct cca__page_table *table, uint64_t address,
                                               uint32_t block) {
    atomic_store_explicit(cca__page_entry(table, address), block, memory_order_relaxed);
}

// For a block of a small segment with a directory. Makes the leaf where there is none.
enum base_status cca__page_table_add_leaf(struct cca__page_table *table, uint32_t directory,
                                          uint64_t address) BASE_MUST_USE;
static inline enum base_status cca__page_table_store_small(struct cca__page_table *table,
                                                           uint32_t directory, uint64_t address,
                                                           uint32_t block) {
    _Atomic uint32_t *const leaves = cca__arena_slots(&table->directories, directory);
    const uint32_t place = cca__leaf_place(address);
    uint32_t leaf = atomic_load_explicit(&leaves[place], memory_order_relaxed);
    if (__builtin_expect(leaf == 0, 0)) {
        const enum base_status status = cca__page_table_add_leaf(table, directory, address);
        if (status != BASE_OK) return status;
        leaf = atomic_load_explicit(&leaves[place], memory_order_relaxed);
    }
    atomic_store_explicit(&cca__arena_slots(&table->leaves, leaf)[cca__slot_place(address)], block,
                          memory_order_relaxed);
    return BASE_OK;
}

// Blocks in the hash table: from their hand-out to their free.
enum base_status cca__page_table_store_stray(struct cca__page_table *table, uint64_t address,
                                             uint32_t block) BASE_MUST_USE;
void cca__page_table_remove_stray(struct cca__page_table *table, uint64_t address);
uint32_t cca__page_table_find_stray(struct cca__page_table *table,
                                    uint64_t address); // 0 if it is not there

static inline bool cca__page_table_has_strays(const struct cca__page_table *table) {
    return atomic_load_explicit(&table->stray_count, memory_order_relaxed) != 0;
}

#endif
