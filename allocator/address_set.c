// See address_set.h. A parent's priority is never below its children's; it is a hash of the block's
// number, so the shape depends on nothing but the members.
#include "allocator/address_set.h"

enum { LEFT = 0, RIGHT = 1, PARENT = 2 };

static uint32_t priority_of(uint32_t number) { return number * 0x9e3779b1u; }

// Puts CHILD (0: nothing) where OLD hung below PARENT (0: at the root).
static void replace_child(struct cca__address_set *set, struct cca__block *blocks, uint32_t parent,
                          uint32_t old, uint32_t child) {
    if (parent == 0)
        set->root = child;
    else
        blocks[parent].link[blocks[parent].link[LEFT] == old ? LEFT : RIGHT] = child;
    if (child != 0) blocks[child].link[PARENT] = parent;
}

// Exchanges NUMBER with its parent, keeping the order of addresses.
static void rotate_up(struct cca__address_set *set, struct cca__block *blocks, uint32_t number) {
    const uint32_t parent = blocks[number].link[PARENT];
    const int side = blocks[parent].link[LEFT] == number ? LEFT : RIGHT;
    const uint32_t inner = blocks[number].link[1 - side];
    replace_child(set, blocks, blocks[parent].link[PARENT], parent, number);
    blocks[parent].link[side] = inner;
    if (inner != 0) blocks[inner].link[PARENT] = parent;
    blocks[number].link[1 - side] = parent;
    blocks[parent].link[PARENT] = number;
}

void cca__address_set_insert(struct cca__address_set *set, struct cca__block *blocks,
                             uint32_t number) {
    struct cca__block *const block = &blocks[number];
    uint32_t parent = 0;
    int side = LEFT;
    for (uint32_t at = set->root; at != 0; at = blocks[at].link[side]) {
        parent = at;
        side = block->address < blocks[at].address ? LEFT : RIGHT;
    }
    block->link[LEFT] = block->link[RIGHT] = 0;
    block->link[PARENT] = parent;
    if (parent == 0)
        set->root = number;
    else
        blocks[parent].link[side] = number;
    while (block->link[PARENT] != 0 && priority_of(block->link[PARENT]) < priority_of(number))
        rotate_up(set, blocks, number);
    ++set->count;
}

void cca__address_set_remove(struct cca__address_set *set, struct cca__block *blocks,
                             uint32_t number) {
    struct cca__block *const block = &blocks[number];
    while (block->link[LEFT] != 0 && block->link[RIGHT] != 0) {
        const uint32_t left = block->link[LEFT], right = block->link[RIGHT];
        rotate_up(set, blocks, priority_of(left) > priority_of(right) ? left : right);
    }
    replace_child(set, blocks, block->link[PARENT], number, block->link[LEFT] | block->link[RIGHT]);
    --set->count;
}

static uint32_t leftmost(const struct cca__block *blocks, uint32_t number) {
    while (number != 0 && blocks[number].link[LEFT] != 0) number = blocks[number].link[LEFT];
    return number;
}

uint32_t cca__address_set_next(const struct cca__address_set *set, const struct cca__block *blocks,
                               uint32_t number) {
    if (number == 0) return leftmost(blocks, set->root);
    if (blocks[number].link[RIGHT] != 0) return leftmost(blocks, blocks[number].link[RIGHT]);
    uint32_t parent = blocks[number].link[PARENT];
    while (parent != 0 && blocks[parent].link[RIGHT] == number) {
        number = parent;
        parent = blocks[parent].link[PARENT];
    }
    return parent;
}
