// From a pointer to its block, without a hash and without a lock.
//
// One flat table has a 4-byte entry a MiB of address space; it lies in 1 GiB of reserved
// addresses, of which a page becomes memory for each GiB that segments are in. A block that was
// handed out from the large pool exceeds 1 MiB, so at most one starts in each window and the
// entry is its number. A small segment (and each page of an expandable one) lies in windows of its
// own: their entry names a
// *directory*, which has a *leaf* of 64 entries for each 32 KiB in which a block was handed out.
// Small segments that do not begin at a whole MiB (only an exact replay makes one) share windows,
// and addresses may have more than 48 bits: such blocks are *strays*, kept in a hash table
// instead.
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

#define CCA__ADDRESS_BITS 48 // of the flat table
#define CCA__WINDOW_BITS  20 // 1 MiB

#define CCA__DIRECTORY_FLAG 0x80000000u // of a window's entry: it names a directory, not a block
#define CCA__SMALL_SLOTS    64          // entries of a directory, and of a leaf
#define CCA__LEAF_SHIFT     15          // a leaf covers 32 KiB,
#define CCA__SLOT_SHIFT     9           // an entry of it 512 B

struct cca__page_table {
    _Atomic uint32_t *windows; // 2^(CCA__ADDRESS_BITS - CCA__WINDOW_BITS) entries
    struct cca__arena directories, leaves;
    _Atomic uint32_t segment_count; // added since there was none
    struct cca__lock lock;          // a leaf: guards strays
    struct base_address_map strays; // blocks that are handed out and not in the table
    _Atomic size_t stray_count;     // of them; may be read without the lock to skip an empty map
};

enum base_status cca__page_table_init(struct cca__page_table *table);
void cca__page_table_deinit(struct cca__page_table *table);
// Gives the memory of the flat table back. There is no segment, and none comes meanwhile.
void cca__page_table_trim(void *table);

// Whether the blocks of a segment are strays.
static inline bool cca__page_table_is_stray(uint64_t address, uint64_t size, bool is_small) {
    const uint64_t in_window = address & (((uint64_t)1 << CCA__WINDOW_BITS) - 1);
    return (address + size - 1) >> CCA__ADDRESS_BITS != 0 || (is_small && in_window != 0);
}

// Takes the directory of a small segment before its blocks are handed out. It has none, and
// *directory becomes 0, if its blocks are strays.
enum base_status cca__page_table_add_segment(struct cca__page_table *table, uint64_t address,
                                             uint64_t size, bool is_small,
                                             uint32_t *directory) BASE_MUST_USE;
// Gives the directory and its leaves back. No block of the segment may be in use.
void cca__page_table_remove_segment(struct cca__page_table *table, uint64_t address,
                                    uint32_t directory);

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
// included. Of an address beyond the table the lower bits are looked up, and no leaf is leaf 0,
// which holds zeros: the caller compares the block's address anyway.
static inline uint32_t cca__page_table_find(const struct cca__page_table *table, uint64_t address) {
    const uint64_t window =
        address << (64 - CCA__ADDRESS_BITS) >> (64 - CCA__ADDRESS_BITS + CCA__WINDOW_BITS);
    const uint32_t entry = atomic_load_explicit(&table->windows[window], memory_order_relaxed);
    if ((entry & CCA__DIRECTORY_FLAG) == 0) return entry;
    const uint32_t leaf = atomic_load_explicit(
        &cca__arena_slots(&table->directories,
                          entry & ~CCA__DIRECTORY_FLAG)[cca__leaf_place(address)],
        memory_order_relaxed);
    return atomic_load_explicit(&cca__arena_slots(&table->leaves, leaf)[cca__slot_place(address)],
                                memory_order_relaxed);
}

// The directory of the small segment, or page of an expandable one, at ADDRESS; 0 if it has none.
static inline uint32_t cca__page_table_directory(const struct cca__page_table *table,
                                                 uint64_t address) {
    if (address >> CCA__ADDRESS_BITS != 0) return 0;
    const uint32_t entry =
        atomic_load_explicit(&table->windows[address >> CCA__WINDOW_BITS], memory_order_relaxed);
    return (entry & CCA__DIRECTORY_FLAG) != 0 ? entry & ~CCA__DIRECTORY_FLAG : 0;
}

// For a block of the large pool that is no stray.
static inline void cca__page_table_store_large(struct cca__page_table *table, uint64_t address,
                                               uint32_t block) {
    atomic_store_explicit(&table->windows[address >> CCA__WINDOW_BITS], block,
                          memory_order_relaxed);
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

// Makes the leaf that a later store needs.
BASE_MUST_USE static inline enum base_status
cca__page_table_reserve_small(struct cca__page_table *table, uint32_t directory, uint64_t address) {
    _Atomic uint32_t *const leaves = cca__arena_slots(&table->directories, directory);
    return atomic_load_explicit(&leaves[cca__leaf_place(address)], memory_order_relaxed) != 0
               ? BASE_OK
               : cca__page_table_add_leaf(table, directory, address);
}

// The same if the leaf is there, with the segment's directory; false: it takes more.
static inline bool cca__page_table_store_small_at_once(struct cca__page_table *table,
                                                       uint64_t address, uint32_t block) {
    const uint32_t directory = cca__page_table_directory(table, address);
    const uint32_t leaf = atomic_load_explicit(
        &cca__arena_slots(&table->directories, directory)[cca__leaf_place(address)],
        memory_order_relaxed);
    if (__builtin_expect(leaf == 0, 0)) return false; // that of directory 0, too
    atomic_store_explicit(&cca__arena_slots(&table->leaves, leaf)[cca__slot_place(address)], block,
                          memory_order_relaxed);
    return true;
}

// Strays are in the hash table from their hand-out to their free.
enum base_status cca__page_table_store_stray(struct cca__page_table *table, uint64_t address,
                                             uint32_t block) BASE_MUST_USE;
void cca__page_table_remove_stray(struct cca__page_table *table, uint64_t address);
// Room for COUNT strays more than there are now.
enum base_status cca__page_table_reserve_strays(struct cca__page_table *table,
                                                size_t count) BASE_MUST_USE;
uint32_t cca__page_table_find_stray(struct cca__page_table *table,
                                    uint64_t address); // 0 if it is not there

static inline bool cca__page_table_has_strays(const struct cca__page_table *table) {
    return atomic_load_explicit(&table->stray_count, memory_order_relaxed) != 0;
}

#endif
