// See page_table.h. Directories and leaves live as long as their segment. A directory's entries
// only ever name leaves and a leaf's only blocks, in arenas of their own, so that a lookup with a
// stale pointer stays inside the arenas whatever it meets.
#include "allocator/page_table.h"

#include <stdlib.h>
#include <sys/mman.h>

// Reserved addresses, not memory: 2^20 small segments are 2 TiB of device memory.
#define DIRECTORIES_MAX ((uint32_t)1 << 20)
#define LEAVES_MAX      ((uint32_t)1 << 25)

// With so many segments the flat table comes in large pages from there on: they lie far apart.
#define SEGMENTS_MANY 1024

#define WINDOWS_BYTES (sizeof(uint32_t) << (CCA__ADDRESS_BITS - CCA__WINDOW_BITS))

enum base_status cca__page_table_init(struct cca__page_table *table) {
    void *const windows = mmap(NULL, WINDOWS_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (windows == MAP_FAILED)
        return base_status_set(BASE_HOST_MEMORY,
                               "cannot reserve %zu bytes of addresses for the page table",
                               WINDOWS_BYTES);
    table->windows = windows;
    const size_t item_bytes = CCA__SMALL_SLOTS * sizeof(uint32_t);
    enum base_status status =
        cca__arena_init(&table->directories, "small segments", item_bytes, DIRECTORIES_MAX);
    if (status == BASE_OK)
        status = cca__arena_init(&table->leaves, "page-table leaves", item_bytes, LEAVES_MAX);
    if (status != BASE_OK) {
        cca__arena_deinit(&table->directories);
        return status;
    }
    cca__lock_init(&table->lock);
    return BASE_OK;
}

void cca__page_table_deinit(struct cca__page_table *table) {
    if (table->windows == NULL) return;
    BASE_CHECK_EQ(munmap(table->windows, WINDOWS_BYTES), 0);
    cca__arena_deinit(&table->directories);
    cca__arena_deinit(&table->leaves);
    cca__lock_deinit(&table->lock);
    base_address_map_deinit(&table->strays);
}

void cca__page_table_trim(void *table) {
    // Advice only, as in cca__arena_trim; what stays is stale and does no harm.
    struct cca__page_table *const emptied = table;
    (void)madvise(emptied->windows, WINDOWS_BYTES, MADV_DONTNEED);
    atomic_store_explicit(&emptied->segment_count, 0, memory_order_relaxed);
}

// Both windows of a small segment.
static void store_windows(struct cca__page_table *table, uint64_t address, uint32_t entry) {
    const uint64_t window = address >> CCA__WINDOW_BITS;
    atomic_store_explicit(&table->windows[window], entry, memory_order_relaxed);
    atomic_store_explicit(&table->windows[window + 1], entry, memory_order_relaxed);
}

// Clears them where they still have that entry: the driver may have given the addresses to another
// device, whose segment has them by now.
static void clear_windows(struct cca__page_table *table, uint64_t address, uint32_t entry) {
    const uint64_t window = address >> CCA__WINDOW_BITS;
    for (int each = 0; each < 2; ++each) {
        uint32_t expected = entry;
        (void)atomic_compare_exchange_strong_explicit(&table->windows[window + (uint64_t)each],
                                                      &expected, 0, memory_order_relaxed,
                                                      memory_order_relaxed);
    }
}

static void clear_slots(_Atomic uint32_t *slots) {
    for (uint32_t place = 0; place < CCA__SMALL_SLOTS; ++place)
        atomic_store_explicit(&slots[place], 0, memory_order_relaxed);
}

enum base_status cca__page_table_add_segment(struct cca__page_table *table, uint64_t address,
                                             uint64_t size, bool is_small, uint32_t *directory) {
    *directory = 0;
    if (atomic_fetch_add_explicit(&table->segment_count, 1, memory_order_relaxed) == SEGMENTS_MANY)
        (void)madvise(table->windows, WINDOWS_BYTES, MADV_HUGEPAGE); // advice only
    if (!is_small || cca__page_table_is_stray(address, size, is_small)) return BASE_OK;
    uint32_t taken;
    const enum base_status status = cca__arena_take(&table->directories, &taken);
    if (status != BASE_OK) return status;
    clear_slots(cca__arena_slots(&table->directories, taken));
    store_windows(table, address, taken | CCA__DIRECTORY_FLAG);
    *directory = taken;
    return BASE_OK;
}

void cca__page_table_remove_segment(struct cca__page_table *table, uint64_t address,
                                    uint32_t directory) {
    if (directory == 0) return;
    clear_windows(table, address, directory | CCA__DIRECTORY_FLAG);
    _Atomic uint32_t *const leaves = cca__arena_slots(&table->directories, directory);
    for (uint32_t place = 0; place < CCA__SMALL_SLOTS; ++place) {
        const uint32_t leaf = atomic_load_explicit(&leaves[place], memory_order_relaxed);
        if (leaf != 0) cca__arena_give_back(&table->leaves, leaf);
        atomic_store_explicit(&leaves[place], 0, memory_order_relaxed);
    }
    cca__arena_give_back(&table->directories, directory);
}

enum base_status cca__page_table_add_leaf(struct cca__page_table *table, uint32_t directory,
                                          uint64_t address) {
    uint32_t leaf;
    const enum base_status status = cca__arena_take(&table->leaves, &leaf);
    if (status != BASE_OK) return status;
    clear_slots(cca__arena_slots(&table->leaves, leaf));
    atomic_store_explicit(
        &cca__arena_slots(&table->directories, directory)[cca__leaf_place(address)], leaf,
        memory_order_relaxed);
    return BASE_OK;
}

enum base_status cca__page_table_store_stray(struct cca__page_table *table, uint64_t address,
                                             uint32_t block) {
    cca__lock_take(&table->lock);
    const enum base_status status = base_address_map_set(&table->strays, address, block);
    atomic_store_explicit(&table->stray_count, table->strays.count, memory_order_relaxed);
    cca__lock_release(&table->lock);
    return status;
}

void cca__page_table_remove_stray(struct cca__page_table *table, uint64_t address) {
    uint64_t block;
    cca__lock_take(&table->lock);
    BASE_CHECK(base_address_map_remove(&table->strays, address, &block));
    atomic_store_explicit(&table->stray_count, table->strays.count, memory_order_relaxed);
    cca__lock_release(&table->lock);
}

uint32_t cca__page_table_find_stray(struct cca__page_table *table, uint64_t address) {
    uint64_t block = 0;
    cca__lock_take(&table->lock);
    const bool found = base_address_map_get(&table->strays, address, &block);
    cca__lock_release(&table->lock);
    return found ? (uint32_t)block : 0;
}

// The table never shrinks: what stood in it once has room again. No block has an odd address.
enum base_status cca__page_table_reserve_strays(struct cca__page_table *table, size_t count) {
    enum base_status status = BASE_OK;
    uint64_t taken = 0, block;
    cca__lock_take(&table->lock);
    for (; taken < count && status == BASE_OK; ++taken)
        status = base_address_map_set(&table->strays, 2 * taken + 1, 0);
    while (taken > 0)
        (void)base_address_map_remove(&table->strays, 2 * --taken + 1, &block);
    cca__lock_release(&table->lock);
    return status;
}
