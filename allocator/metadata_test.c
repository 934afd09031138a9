// Host memory: what the allocator keeps of blocks goes back with the cache, and everything at its
// end. Measured as memory of the process, in steps far above what else moves it.
#include "allocator/testing.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#define MIB BASE_MIB

#define BLOCK_COUNT 400000
static void *blocks[BLOCK_COUNT];

// Above what moves resident memory besides, and far below what is measured.
#define LITTLE ((int64_t)MIB)
#define MUCH ((int64_t)(20 * MIB))

struct memory {
    int64_t addresses, resident; // bytes of the process
};

// What the C library only keeps is given back first.
static struct memory memory_now(void) {
    malloc_trim(0);
    long addresses, resident;
    FILE *const file = fopen("/proc/self/statm", "r");
    BASE_CHECK(file != NULL);
    BASE_CHECK_EQ(fscanf(file, "%ld %ld", &addresses, &resident), 2);
    BASE_CHECK_EQ(fclose(file), 0);
    const int64_t page = sysconf(_SC_PAGESIZE);
    return (struct memory){addresses * page, resident * page};
}

static int64_t resident_bytes(void) { return memory_now().resident; }

static void take_all(struct allocator *allocator, size_t size) {
    for (int index = 0; index < BLOCK_COUNT; ++index)
        blocks[index] = testing_malloc(allocator, size, NULL);
}

// Every second one first: as many free blocks as blocks in use, all of one size.
static void give_all(struct allocator *allocator) {
    for (int first = 0; first < 2; ++first)
        for (int index = first; index < BLOCK_COUNT; index += 2)
            testing_free(allocator, blocks[index]);
}

// 64 bytes a block, and for half of them a place among the free ones.
static void what_blocks_need_goes_back(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    testing_free(allocator, testing_malloc(allocator, 512, NULL));
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    const int64_t start = resident_bytes();
    take_all(allocator, 512);
    BASE_CHECK_GT(resident_bytes() - start, MUCH);
    give_all(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_LT(resident_bytes() - start, LITTLE);
    allocator_destroy(allocator);
}

// And 64 more for each that other streams use. Few wait at a time: events stay for the next ones.
static void what_uses_need_goes_back(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    const cudaStream_t users[2] = {testing_stream(), testing_stream()};
    testing_free(allocator, testing_malloc(allocator, 512, NULL));
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    const int64_t start = resident_bytes();
    take_all(allocator, 512);
    const int64_t unused = resident_bytes();
    for (int index = 0; index < BLOCK_COUNT; ++index)
        for (int user = 0; user < 2; ++user)
            BASE_CHECK_EQ(allocator_record_stream(allocator, blocks[index], users[user]), BASE_OK);
    BASE_CHECK_GT(resident_bytes() - unused, MUCH);
    for (int index = 0; index < BLOCK_COUNT; ++index) {
        testing_free(allocator, blocks[index]);
        if (index % 64 == 0) testing_free(allocator, testing_malloc(allocator, 1, NULL));
    }
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_LT(resident_bytes() - start, LITTLE);
    allocator_destroy(allocator);
}

// What an allocator reserves for its tables is address space, far more than it touches.
static void the_end_gives_all_addresses_back(void) {
    static const char *const configs[] = {"", "expandable_segments:True",
                                          "max_split_size_mb:64,roundup_power2_divisions:4"};
    struct memory before = {0};
    for (int round = 0; round < 30; ++round) {
        if (round == 3) before = memory_now(); // each of them was there once
        struct allocator *const allocator = testing_create(configs[round % 3], 8 * BASE_GIB);
        const cudaStream_t user = testing_stream();
        for (int index = 0; index < 100; ++index)
            blocks[index] = testing_malloc(allocator, (size_t)(index + 1) * 100000, NULL);
        for (int index = 0; index < 100; ++index)
            testing_free_after_use(allocator, blocks[index], user);
        allocator_destroy(allocator);
    }
    BASE_CHECK_LT(memory_now().addresses - before.addresses, (int64_t)(64 * MIB));
    BASE_CHECK_LT(memory_now().resident - before.resident, LITTLE);
}

int main(void) {
// Their own memory grows with what is touched, and stays.
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return 0;
#endif
    for (int index = 0; index < BLOCK_COUNT; ++index)
        blocks[index] = &blocks[index]; // resident before anything is measured
    what_blocks_need_goes_back("");
    what_blocks_need_goes_back("expandable_segments:True");
    what_uses_need_goes_back();
    the_end_gives_all_addresses_back();
}
