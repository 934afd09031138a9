// What the tests of checkpoints share: an allocator with one private pool.
#ifndef TIDEMARK_ALLOCATOR_TESTING_CHECKPOINT_H
#define TIDEMARK_ALLOCATOR_TESTING_CHECKPOINT_H

#include "allocator/checkpoint.h"
#include "allocator/testing.h"

#define MIB BASE_MIB

static const struct allocator_pool_id pool_id = {.user = 1};

static inline void ok(enum base_status status) {
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static inline struct allocator *create(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    ok(cca_pool_create(allocator, 0, pool_id, NULL));
    return allocator;
}

// One request inside a scope of the pool.
static inline enum base_status try_take(struct allocator *allocator, size_t size,
                                        cudaStream_t stream, void **pointer) {
    ok(cca_pool_begin(allocator, 0, pool_id, NULL));
    const enum base_status status = allocator_malloc(allocator, 0, size, stream, pointer);
    ok(cca_pool_end(allocator, 0, pool_id));
    ok(cca_pool_release(allocator, 0, pool_id));
    return status;
}
static inline void *take(struct allocator *allocator, size_t size, cudaStream_t stream) {
    void *pointer = NULL;
    ok(try_take(allocator, size, stream, &pointer));
    return pointer;
}

static inline struct cca_checkpoint *get(struct allocator *allocator) {
    struct cca_checkpoint *checkpoint = NULL;
    ok(cca_checkpoint_get(allocator, 0, pool_id, &checkpoint));
    return checkpoint;
}

static inline struct cca_restored set(struct allocator *allocator,
                                      const struct cca_checkpoint *checkpoint) {
    struct cca_restored restored;
    ok(cca_checkpoint_set(allocator, checkpoint, &restored));
    cca_check(allocator);
    return restored;
}

static inline void set_and_forget(struct allocator *allocator,
                                  const struct cca_checkpoint *checkpoint) {
    struct cca_restored restored = set(allocator, checkpoint);
    cca_restored_deinit(&restored);
}

static inline bool is_live(struct allocator *allocator, void *const *addresses, size_t count) {
    bool equal;
    ok(cca_checkpoint_compare_live(allocator, 0, pool_id, addresses, count, &equal));
    return equal;
}

static inline void finish(struct allocator *allocator, struct cca_checkpoint *checkpoint) {
    cca_check(allocator);
    cca_checkpoint_destroy(checkpoint);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

#endif
