// See address_set.h.
#include "allocator/address_set.h"

#include "allocator/treap.h"

void cca__address_set_insert(struct cca__address_set *set, struct cca__block *blocks,
                             uint32_t number) {
    uint32_t parent = 0;
    int side = CCA__LEFT;
    for (uint32_t at = set->root; at != 0; at = blocks[at].link[side]) {
        parent = at;
        side = blocks[number].address < blocks[at].address ? CCA__LEFT : CCA__RIGHT;
    }
    cca__treap_hang(&set->root, blocks, number, parent, side);
    ++set->count;
}

void cca__address_set_remove(struct cca__address_set *set, struct cca__block *blocks,
                             uint32_t number) {
    cca__treap_remove(&set->root, blocks, number);
    --set->count;
}

uint32_t cca__address_set_next(const struct cca__address_set *set, const struct cca__block *blocks,
                               uint32_t number) {
    if (number != 0) return cca__treap_step(blocks, number, CCA__RIGHT);
    return set->root == 0 ? 0 : cca__treap_end(blocks, set->root, CCA__LEFT);
}
