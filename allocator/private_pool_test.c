// The registry of private pools: ids, counts, scopes. What it must say is
// PyTorch's, from the contract: a second scope of a pool raises its count and
// is refused, the newest filter that accepts wins, tables are walked by the
// hash of the id.
#include "allocator/private_pool.h"
#include "base/check.h"

#include <string.h>

static struct allocator_pool_id user(uint64_t number) {
    return (struct allocator_pool_id){.user = number};
}

static int64_t count_of(const struct cca__pool_registry *registry, struct allocator_pool_id id) {
    struct cca__private_pool *pool = NULL;
    BASE_CHECK_EQ(cca__pools_get(registry, id, &pool), BASE_OK);
    return pool->count;
}

static void creating_and_releasing_count_users(void) {
    struct cca__pool_registry registry = {0};
    struct cca__private_pool *pool = NULL, *again = NULL;
    BASE_CHECK_EQ(cca__pools_get(&registry, user(1), &pool), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca__pools_release(&registry, user(1)), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca__pools_create(&registry, user(1), NULL, &pool), BASE_OK);
    BASE_CHECK_EQ(cca__pools_create(&registry, user(1), NULL, &again), BASE_OK);
    BASE_CHECK(pool == again);
    BASE_CHECK_EQ(count_of(&registry, user(1)), 2);
    BASE_CHECK_EQ(cca__pools_release(&registry, user(1)), BASE_OK);
    BASE_CHECK(!cca__private_pool_is_freeable(pool));
    BASE_CHECK_EQ(cca__pools_release(&registry, user(1)), BASE_OK);
    BASE_CHECK(cca__private_pool_is_freeable(pool));
    BASE_CHECK_EQ(cca__pools_release(&registry, user(1)), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(count_of(&registry, user(1)), 0);
    BASE_CHECK_EQ(cca__pools_create(&registry, user(1), NULL, &again), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(count_of(&registry, user(1)), 0);
    // A capture's id is another one.
    const struct allocator_pool_id capture = {.capture = 1};
    BASE_CHECK_EQ(cca__pools_get(&registry, capture, &pool), BASE_INVALID_VALUE);
    cca__pools_deinit(&registry);
}

static void what_was_a_pool_is_remembered_and_may_be_one_again(void) {
    struct cca__pool_registry registry = {0};
    struct cca__private_pool *pool = NULL, *again = NULL;
    static const struct cca_raw_allocator raw;
    BASE_CHECK_EQ(cca__pools_remember(&registry, user(3), &pool), BASE_OK);
    pool->use_on_oom = true;
    BASE_CHECK_EQ(cca__pools_get(&registry, user(3), &again), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca__pools_create(&registry, user(3), &raw, &again), BASE_OK);
    BASE_CHECK(pool == again && pool->use_on_oom && pool->has_raw);
    BASE_CHECK_EQ(cca__pools_create(&registry, user(3), &raw, &again), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(count_of(&registry, user(3)), 1);
    pool->no_split = true;
    pool->exists = false; // its last segment went
    BASE_CHECK(cca__pools_find(&registry, user(3)) == pool);
    BASE_CHECK_EQ(cca__pools_get(&registry, user(3), &again), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca__pools_create(&registry, user(3), NULL, &again), BASE_OK);
    BASE_CHECK(pool == again && !pool->has_raw && !pool->no_split);
    cca__pools_deinit(&registry);
}

static enum base_status end(struct cca__pool_registry *registry, struct allocator_pool_id id) {
    struct cca__pool_scope *closed;
    const enum base_status status = cca__pools_end(registry, id, &closed);
    if (status == BASE_OK) cca__pool_scope_destroy(closed);
    return status;
}

static bool is_one(void *context, cudaStream_t stream) { return (void *)stream == context; }

static uint64_t route(struct cca__pool_registry *registry, uintptr_t stream) {
    struct cca__lock lock;
    cca__lock_init(&lock);
    cca__lock_take(&lock);
    const struct cca__private_pool *const pool =
        cca__pools_route(registry, (cudaStream_t)stream, (struct cca__known_capture){0}, &lock);
    cca__lock_release(&lock);
    cca__lock_deinit(&lock);
    return pool == NULL ? 0 : pool->id.user;
}

static void the_newest_filter_that_accepts_wins(void) {
    struct cca__pool_registry registry = {0};
    const struct cca_pool_filter of_stream_8 = {.accepts = is_one, .context = (void *)8};
    BASE_CHECK_EQ(route(&registry, 8), 0);
    BASE_CHECK_EQ(cca__pools_begin(&registry, user(1), NULL), BASE_OK);
    BASE_CHECK_EQ(cca__pools_begin(&registry, user(2), &of_stream_8), BASE_OK);
    BASE_CHECK_EQ(route(&registry, 8), 2);
    BASE_CHECK_EQ(route(&registry, 16), 1);
    BASE_CHECK_EQ(end(&registry, user(1)), BASE_OK);
    BASE_CHECK_EQ(route(&registry, 8), 2);
    BASE_CHECK_EQ(route(&registry, 16), 0);
    BASE_CHECK_EQ(cca__pools_begin(&registry, user(1), NULL), BASE_OK);
    BASE_CHECK_EQ(route(&registry, 8), 1);
    BASE_CHECK_EQ(end(&registry, user(1)), BASE_OK);
    BASE_CHECK_EQ(end(&registry, user(2)), BASE_OK);
    BASE_CHECK(registry.newest == NULL);
    BASE_CHECK_EQ(count_of(&registry, user(1)), 2); // ends leave it
    cca__pools_deinit(&registry);
}

static void a_second_scope_of_a_pool_is_refused_and_counts(void) {
    struct cca__pool_registry registry = {0};
    BASE_CHECK_EQ(end(&registry, user(1)), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "endAllocatePool: not currently recording") != NULL);
    BASE_CHECK_EQ(cca__pools_begin(&registry, user(1), NULL), BASE_OK);
    BASE_CHECK_EQ(cca__pools_begin(&registry, user(1), NULL), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "beginAllocateToPool: already recording") != NULL);
    BASE_CHECK_EQ(count_of(&registry, user(1)), 2);
    BASE_CHECK_EQ(end(&registry, user(1)), BASE_OK);
    BASE_CHECK_EQ(end(&registry, user(1)), BASE_INVALID_VALUE);
    cca__pools_deinit(&registry);
}

static void pools_are_walked_by_the_hash_of_their_ids(void) {
    static const uint64_t expected[] = {5, 2, 7, 4, 1, 6, 3, 8}; // recorded
    struct cca__pool_registry registry = {0};
    struct cca__private_pool *pool;
    for (uint64_t number = 1; number <= 8; ++number)
        BASE_CHECK_EQ(cca__pools_create(&registry, user(number), NULL, &pool), BASE_OK);
    pool = registry.first;
    for (int index = 0; index < 8; ++index, pool = pool->next)
        BASE_CHECK_EQ(pool->id.user, expected[index]);
    BASE_CHECK(pool == NULL);
    cca__pools_deinit(&registry);
}

int main(void) {
    creating_and_releasing_count_users();
    what_was_a_pool_is_remembered_and_may_be_one_again();
    the_newest_filter_that_accepts_wins();
    a_second_scope_of_a_pool_is_refused_and_counts();
    pools_are_walked_by_the_hash_of_their_ids();
    return 0;
}
