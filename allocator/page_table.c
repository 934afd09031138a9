// See page_table.h. Arrays of windows are made once and stay; directories and leaves live as
// long as their segment. A directory's entries only ever name leaves and a leaf's only blocks, in
// arenas of their own, so that a lookup with a stale pointer stays inside the arenas whatever it
// meets.
#include "allocator/page_table.h"

#include <stdlib.h>
#include <sys/mman.h>

// Reserved addresses, not memory: 2^20 small segments are 2 TiB of device memory.
#define DIRECTORIES_MAX ((uint32_t)1 << 20)
#define LEAVES_MAX      ((uint32_t)1 << 25)

#define ROOT_COUNT ((size_t)1 << CCA__ROOT_BITS)

enum base_status cca__page_table_init(struct cca__page_table *table) {
    void *const root = mmap(NULL, ROOT_COUNT * sizeof *table->root, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (root == MAP_FAILED)
        return base_status_set(BASE_HOST_MEMORY, "cannot reserve addresses for the page table");
    table->root = root;
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
    for (uint32_t index = 0; index < table->made_count; ++index)
        free(atomic_load(&table->root[table->made[index]]));
    free(table->made);
    if (table->root != NULL)
        BASE_CHECK_EQ(munmap(table->root, ROOT_COUNT * sizeof *table->root), 0);
    cca__arena_deinit(&table->directories);
    cca__arena_deinit(&table->leaves);
    cca__lock_deinit(&table->lock);
    base_address_map_deinit(&table->strays);
}

static enum base_status out_of_host_memory(void) {
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for the page table");
}

// Makes the array that has the entry of ADDRESS.
static enum base_status add_windows(struct cca__page_table *table, uint64_t address) {
    if (address >> CCA__ADDRESS_BITS != 0)
        return base_status_set(BASE_LIMIT, "device address %#llx has more than %d bits",
                               (unsigned long long)address, CCA__ADDRESS_BITS);
    const uint32_t place = (uint32_t)(address >> (CCA__WINDOW_BITS + CCA__WINDOWS_BITS));
    if (atomic_load_explicit(&table->root[place], memory_order_relaxed) != NULL) return BASE_OK;
    uint32_t *const made = realloc(table->made, (table->made_count + 1) * sizeof *made);
    if (made == NULL) return out_of_host_memory();
    table->made = made;
    struct cca__page_windows *const windows = calloc(1, sizeof *windows);
    if (windows == NULL) return out_of_host_memory();
    table->made[table->made_count++] = place;
    // Pairs with cca__page_entry.
    atomic_store_explicit(&table->root[place], windows, memory_order_release);
    return BASE_OK;
}

static enum base_status add_range(struct cca__page_table *table, uint64_t address, uint64_t size) {
    const uint64_t step = (uint64_t)1 << (CCA__WINDOW_BITS + CCA__WINDOWS_BITS);
    const uint64_t end = address + size;
    enum base_status status = BASE_OK;
    cca__lock_take(&table->lock);
    for (uint64_t at = address; status == BASE_OK && at < end; at = (at & ~(step - 1)) + step)
        status = add_windows(table, at);
    cca__lock_release(&table->lock);
    return status;
}

// A small segment has windows of its own if it begins at a whole MiB.
static bool begins_a_window(uint64_t address) {
    return (address & (((uint64_t)1 << CCA__WINDOW_BITS) - 1)) == 0;
}

static void store_windows(struct cca__page_table *table, uint64_t address, uint32_t entry) {
    const uint64_t window_bytes = (uint64_t)1 << CCA__WINDOW_BITS;
    atomic_store_explicit(cca__page_entry(table, address), entry, memory_order_relaxed);
    atomic_store_explicit(cca__page_entry(table, address + window_bytes), entry,
                          memory_order_relaxed);
}

static void clear_slots(_Atomic uint32_t *slots) {
    for (uint32_t place = 0; place < CCA__SMALL_SLOTS; ++place)
        atomic_store_explicit(&slots[place], 0, memory_order_relaxed);
}

enum base_status cca__page_table_add_segment(struct cca__page_table *table, uint64_t address,
                                             uint64_t size, bool is_small, uint32_t *directory) {
    enum base_status status = add_range(table, address, size);
    if (status != BASE_OK) return status;
    uint32_t taken = 0;
    if (is_small && begins_a_window(address)) {
        status = cca__arena_take(&table->directories, &taken);
        if (status != BASE_OK) return status;
        clear_slots(cca__arena_slots(&table->directories, taken));
        store_windows(table, address, taken | CCA__DIRECTORY_FLAG);
    }
    *directory = taken;
    return BASE_OK;
}

void cca__page_table_remove_segment(struct cca__page_table *table, uint64_t address,
                                    uint32_t directory) {
    if (directory == 0) return;
    store_windows(table, address, 0);
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
