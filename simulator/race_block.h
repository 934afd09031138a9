// Blocks of the program's allocators: who has which bytes, as sim_block_take and its kin say.
#ifndef TIDEMARK_SIMULATOR_RACE_BLOCK_H
#define TIDEMARK_SIMULATOR_RACE_BLOCK_H

#include "simulator/race_inside.h"
#include "simulator/race_undefined.h"

// While the block is held, or nodes of graphs name it.
struct sim__block_record {
    struct sim__range range; // in the index of those that are held
    uint64_t number;
    uint64_t graph; // number of the graph in whose capture it was taken, or 0
    uint32_t nodes; // that name it
    uint32_t take_origin;
    bool is_held, is_indexed; // not where a later block took its bytes while it was held
    struct sim__undefined undefined; // bytes that were not written through it
    // Where threads have an order of their own: the last accesses, and where their threads were.
    struct sim__block_use *uses;
    uint32_t use_count;
};

// The block that holds all of ROWS; NULL: none. By its number; NULL: it is held no more, and no
// node names it.
struct sim__block_record *sim__block_record_of(const struct sim__rows *rows);
struct sim__block_record *sim__block_record_find(uint64_t number);
// A node names the block, and does no more.
void sim__block_retain(uint64_t number);
void sim__block_release(uint64_t number);

// Sets the block of an access that the program gave as BLOCK, 0: whichever holds the bytes.
void sim__block_resolve(struct sim__race_access *access, uint64_t block);
// STEP accesses memory through a block: which must not have been given back; and in a replay no
// other block that is not of the same capture may hold the bytes.
void sim__block_access(const struct sim__race_step *step, const struct sim__race_access *access);

void sim__blocks_clear(void);

#endif
