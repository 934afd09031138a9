// Checkpoints when calls fail: each call in turn that saving, restoring and comparing make. The
// status says so and the pool is as it was; the same call works afterwards.
#include "allocator/testing_calls.h"
#include "allocator/testing_checkpoint.h"
#include "allocator/testing_state.h"

#define BLOCKS 300 // more than a chunk of block objects

struct scene {
    struct allocator *allocator;
    struct cca_checkpoint *checkpoint;
    size_t live_count; // in it
};

static void save(struct scene *scene, size_t live_count) {
    ok(cca_checkpoint_get(scene->allocator, 0, pool_id, &scene->checkpoint));
    scene->live_count = live_count;
}

// What the pool has when it is to be restored. Each asks for host memory that nothing had before.
typedef void pool_maker(struct scene *scene);

// The free block behind the others was never handed out: nothing leads to its address.
static void with_a_tail(struct scene *scene) {
    testing_free(scene->allocator, take(scene->allocator, 2 * MIB, NULL));
    (void)take(scene->allocator, 32 << 10, NULL);
    save(scene, 1);
}

// Blocks that are found by a table of their own, since no multiple of 1 MiB begins their segment;
// as many holes, none of which was in use at the same time as another.
static void with_strays(struct scene *scene) {
    ok(sim_next_address(0, UINT64_C(0x700000080000)));
    for (size_t index = 1; index <= 30; ++index) {
        void *const hole = take(scene->allocator, 512 * index, NULL);
        (void)take(scene->allocator, 16 << 10, NULL);
        testing_free(scene->allocator, hole);
    }
    save(scene, 30);
}

// The pool is another one of the same name, which got the same segments.
static void anew(struct scene *scene) {
    static void *blocks[BLOCKS];
    for (int index = 0; index < BLOCKS; ++index)
        blocks[index] = take(scene->allocator, 2 * MIB, NULL);
    save(scene, BLOCKS);
    for (int index = 0; index < BLOCKS; ++index)
        testing_free(scene->allocator, blocks[index]);
    ok(cca_pool_destroy(scene->allocator, 0, pool_id));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    ok(cca_pool_create(scene->allocator, 0, pool_id, NULL));
    for (int index = 0; index < BLOCKS / 10; ++index) {
        ok(sim_next_address(0, (uintptr_t)blocks[10 * index]));
        (void)take(scene->allocator, 20 * MIB, NULL);
    }
}

// The allocator's tables grow now and then: by how much is in use when the pool is restored, that
// moment is met or not.
static int other_streams;

// Live blocks are used by another stream, which has work to do; WAITS: so is one that was freed.
static struct scene make(const char *config, pool_maker *maker, bool waits) {
    struct scene scene = {.allocator = testing_create(config, 8 * BASE_GIB)};
    ok(cca_pool_create(scene.allocator, 0, pool_id, NULL));
    maker(&scene);
    for (int index = 0; index < other_streams; ++index)
        (void)testing_malloc(scene.allocator, 32 << 10, testing_stream());
    const cudaStream_t user = testing_stream();
    sim_stream_hold(user, true);
    void *const used[2] = {take(scene.allocator, 5 * MIB, NULL),
                           take(scene.allocator, 5 * MIB, NULL)};
    for (int index = 0; index < 2; ++index)
        ok(allocator_record_stream(scene.allocator, used[index], user));
    if (waits) testing_free(scene.allocator, used[0]);
    return scene;
}

static enum base_status try_get(const struct scene *scene) {
    struct cca_checkpoint *checkpoint = NULL;
    const enum base_status status = cca_checkpoint_get(scene->allocator, 0, pool_id, &checkpoint);
    cca_checkpoint_destroy(checkpoint);
    return status;
}
static enum base_status try_set(const struct scene *scene) {
    struct cca_restored restored = {0};
    const enum base_status status =
        cca_checkpoint_set(scene->allocator, scene->checkpoint, &restored);
    if (status == BASE_OK) BASE_CHECK_EQ(restored.allocated_count, scene->live_count);
    cca_restored_deinit(&restored);
    return status;
}
static enum base_status compare(const struct scene *scene) {
    bool equal;
    return cca_checkpoint_compare_live(scene->allocator, 0, pool_id, NULL, 0, &equal);
}

static int walk(enum base_status (*call)(const struct scene *), const char *config,
                pool_maker *maker, bool waits, enum testing_call failing, enum base_status expected,
                int error) {
    for (uint64_t n = 1;; ++n) {
        struct scene scene = make(config, maker, waits);
        struct testing_state before;
        base_check_context("\"%s\": call %d of %s", config, (int)n, testing_call_name(failing));
        testing_state_init(&before, scene.allocator, 1);
        testing_calls_fail(failing, n, false, error);
        testing_calls_watch(true);
        const enum base_status status = call(&scene);
        testing_calls_watch(false);
        const bool failed = testing_calls_failed() > 0;
        testing_calls_fail(failing, 0, false, 0);
        cca_check(scene.allocator);
        // An event that is done with is kept for the next free, if there is memory to keep it in.
        const bool is_harmless = waits && failing == TESTING_HOST_MEMORY && status == BASE_OK;
        if (!is_harmless) BASE_CHECK_EQ(status, failed ? expected : BASE_OK);
        if (failed && !is_harmless) {
            testing_message_is_a_sentence();
            if (!waits) testing_state_is(&before, scene.allocator);
            ok(call(&scene));
            cca_check(scene.allocator);
        }
        testing_state_deinit(&before);
        cca_checkpoint_destroy(scene.checkpoint);
        allocator_destroy(scene.allocator);
        if (!failed) return (int)n - 1;
    }
}

static void walk_device_calls(const char *config) {
    static const enum testing_call calls[] = {
        TESTING_cudaStreamIsCapturing, TESTING_cudaStreamSynchronize, TESTING_cudaEventSynchronize};
    for (int index = 0; index < 3; ++index)
        BASE_CHECK_GE(walk(try_set, config, with_a_tail, true, calls[index], BASE_CUDA,
                           cudaErrorInvalidResourceHandle),
                      1);
}

// How many allocations are met at least.
static void walk_host_memory(enum base_status (*call)(const struct scene *), const char *config,
                             pool_maker *maker, bool waits, int least) {
    BASE_CHECK_GE(walk(call, config, maker, waits, TESTING_HOST_MEMORY, BASE_HOST_MEMORY, 0),
                  least);
}

int main(void) {
    static const char *const configs[] = {"", "expandable_segments:True"};
    for (int index = 0; index < 2; ++index) {
        const char *const config = configs[index];
        walk_host_memory(try_get, config, with_a_tail, false, 4);
        walk_host_memory(compare, config, with_a_tail, false, 2);
        walk_host_memory(try_set, config, with_a_tail, false, 7);
        walk_host_memory(try_set, config, with_a_tail, true, 7);
        walk_device_calls(config);
    }
    walk_host_memory(try_set, "", with_strays, false, 8);
    int most[2] = {0};
    for (other_streams = 52; other_streams < 66; ++other_streams)
        for (int each = 0; each < 2; ++each) {
            const int met = walk(try_set, "", each == 0 ? anew : with_a_tail, false,
                                 TESTING_HOST_MEMORY, BASE_HOST_MEMORY, 0);
            if (met > most[each]) most[each] = met;
        }
    BASE_CHECK_GE(most[0], 8); // for blocks
    BASE_CHECK_GE(most[1], 8); // for what leads from an address to a block
    return 0;
}
