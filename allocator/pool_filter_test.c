// Filters of scopes are the program's code: no lock of the allocator is held while one is asked,
// and none is asked when its scope has been closed.
#include "allocator/captures.h"
#include "allocator/testing.h"
#include "base/thread.h"

#include <stdlib.h>

#define CAPACITY (256 * BASE_MIB)

static const struct allocator_pool_id pool_id = {.user = 1}, older_id = {.user = 2};

static void ok(enum base_status status) {
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static int64_t reserved_of(struct allocator *allocator, struct allocator_pool_id id) {
    struct cca_pool_stats *pools;
    size_t count;
    ok(cca_pool_stats(allocator, 0, &pools, &count));
    int64_t bytes = 0;
    for (size_t index = 0; index < count; ++index)
        if (pools[index].id.user == id.user)
            bytes = pools[index].reserved_bytes[ALLOCATOR_STAT_ALL].current;
    free(pools);
    return bytes;
}

static int64_t reserved_of_pool(struct allocator *allocator) {
    return reserved_of(allocator, pool_id);
}

static void end(struct allocator *allocator) {
    ok(cca_pool_release(allocator, 0, pool_id));
    ok(allocator_empty_cache(allocator));
    cca_check(allocator);
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// A filter that calls the allocator.

struct calling {
    struct allocator *allocator;
    cudaStream_t own, other; // requests of OWN are accepted
    int depth, asked;
};

// Statistics take the locks of all streams; a request is routed in turn, so it asks again.
static bool accepts_and_calls(void *context, cudaStream_t stream) {
    struct calling *const calling = context;
    ++calling->asked;
    if (calling->depth > 0) return stream == calling->own;
    ++calling->depth;
    (void)testing_stats(calling->allocator);
    void *const others = testing_malloc(calling->allocator, 1 * BASE_MIB, calling->other);
    void *const own = testing_malloc(calling->allocator, 1 * BASE_MIB, calling->own);
    testing_free(calling->allocator, others);
    testing_free(calling->allocator, own);
    ok(cca_pool_set_use_on_oom(calling->allocator, 0, pool_id, false)); // takes them, too
    --calling->depth;
    return stream == calling->own;
}

static void a_filter_may_call_the_allocator(void) {
    struct calling calling = {.allocator = testing_create("", CAPACITY),
                              .own = testing_stream(),
                              .other = testing_stream()};
    const struct cca_pool_filter filter = {.accepts = accepts_and_calls, .context = &calling};
    ok(cca_pool_begin(calling.allocator, 0, pool_id, &filter));
    void *const block = testing_malloc(calling.allocator, 30 * BASE_MIB, calling.own);
    BASE_CHECK_EQ(calling.asked, 3);
    BASE_CHECK_LE(30 * BASE_MIB, reserved_of_pool(calling.allocator));
    const int64_t before = reserved_of_pool(calling.allocator);
    void *const others = testing_malloc(calling.allocator, 40 * BASE_MIB, calling.other);
    BASE_CHECK_EQ(reserved_of_pool(calling.allocator), before); // it was not accepted
    // At an address: the same way there.
    testing_free(calling.allocator, block);
    void *again;
    ok(cca_malloc_at(calling.allocator, 0, 30 * BASE_MIB, calling.own, block, &again));
    BASE_CHECK(again == block);
    testing_free(calling.allocator, again);
    testing_free(calling.allocator, others);
    ok(cca_pool_end(calling.allocator, 0, pool_id));
    end(calling.allocator);
}

//------------------------------------------------------------------------------------------------
// A filter that takes long.

struct slow {
    struct allocator *allocator;
    cudaStream_t stream, probing; // requests of PROBING are answered at once
    void *block;                  // of STREAM
    _Atomic bool is_asked, may_answer, is_closed, was_probed;
};

static void await(_Atomic bool *flag) {
    while (!atomic_load(flag))
        base_thread_yield();
}

static bool accepts_late(void *context, cudaStream_t stream) {
    struct slow *const slow = context;
    if (stream == slow->probing) {
        atomic_store(&slow->was_probed, true);
        return false;
    }
    // It asks the driver, as filters of captures do.
    enum cudaStreamCaptureStatus status;
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL),
                  cudaSuccess);
    atomic_store(&slow->is_asked, true);
    await(&slow->may_answer);
    BASE_CHECK(!atomic_load(&slow->is_closed)); // else its context could be gone
    return true;
}

static void request(void *argument) {
    struct slow *const slow = argument;
    testing_free(slow->allocator, testing_malloc(slow->allocator, 30 * BASE_MIB, slow->stream));
}

static void close_scope(void *argument) {
    struct slow *const slow = argument;
    ok(cca_pool_end(slow->allocator, 0, pool_id));
    atomic_store(&slow->is_closed, true);
}

// Of the same stream, the stream that a cache hit would lock, too.
static void calls_go_on_while_a_filter_is_asked(struct slow *slow) {
    testing_free(slow->allocator, slow->block);
    (void)testing_stats(slow->allocator);
    cca_check(slow->allocator);
}

// The end of a scope waits for filters, but closes it before.
static void await_closed(struct slow *slow) {
    do {
        atomic_store(&slow->was_probed, false);
        testing_free(slow->allocator, testing_malloc(slow->allocator, 1000, slow->probing));
    } while (atomic_load(&slow->was_probed));
}

// The request whose filter is asked meanwhile goes to the scope that is left.
static void a_slow_filter_keeps_nobody_waiting_but_the_end_of_its_scope(void) {
    struct slow slow = {.allocator = testing_create("", CAPACITY),
                        .stream = testing_stream(),
                        .probing = testing_stream()};
    const struct cca_pool_filter filter = {.accepts = accepts_late, .context = &slow};
    slow.block = testing_malloc(slow.allocator, 1 * BASE_MIB, slow.stream);
    ok(cca_pool_begin(slow.allocator, 0, older_id, NULL));
    ok(cca_pool_begin(slow.allocator, 0, pool_id, &filter));
    struct base_thread asking, closing;
    base_thread_start(&asking, request, &slow);
    await(&slow.is_asked);
    calls_go_on_while_a_filter_is_asked(&slow);
    base_thread_start(&closing, close_scope, &slow);
    await_closed(&slow);
    BASE_CHECK(!atomic_load(&slow.is_closed));
    atomic_store(&slow.may_answer, true);
    base_thread_join(&closing);
    base_thread_join(&asking);
    BASE_CHECK_EQ(reserved_of(slow.allocator, pool_id), 0);
    BASE_CHECK_LE(30 * BASE_MIB, reserved_of(slow.allocator, older_id));
    ok(cca_pool_end(slow.allocator, 0, older_id));
    ok(cca_pool_release(slow.allocator, 0, older_id));
    end(slow.allocator);
}

int main(void) {
    a_filter_may_call_the_allocator();
    a_slow_filter_keeps_nobody_waiting_but_the_end_of_its_scope();
    return 0;
}
