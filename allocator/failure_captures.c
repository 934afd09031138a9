// The failure walk through a graph capture.
#include "allocator/failure_walk.h"
#include "allocator/testing_capture.h"

static const size_t mib = 1 << 20;

// A block of the first stream that the second uses.
static void take_used(struct failure_walk *walk, int slot, size_t size) {
    failure_take(walk, slot, size, 1);
    if (walk->blocks[slot] != NULL) failure_mark(walk, slot, 2);
}

// A capture with a pool of its own: streams fork and join, blocks are freed in it, are used again
// or wait for its end; a request is made beside it. The capture itself does not fail.
void failure_capture(struct failure_walk *walk) {
    static const struct allocator_pool_id id = {.capture = 1};
    struct allocator *const allocator = walk->allocator;
    struct cca_capture told = {.stream = walk->streams[1]};
    _Atomic(unsigned long long) number = 0;
    const struct cca_pool_filter filter = cca_capture_filter(&number);
    cudaGraph_t graph;
    failure_take(walk, 0, 20 * mib, 1);
    if (FAILURE_STEP(walk, cca_pool_begin(allocator, 0, id, &filter)) != BASE_OK) return;
    BASE_CHECK_EQ(cudaStreamBeginCapture(walk->streams[1], cudaStreamCaptureModeRelaxed),
                  cudaSuccess);
    told.id = testing_capture_id(walk->streams[1]);
    atomic_store(&number, told.id);
    const bool is_marked = FAILURE_STEP(walk, cca_capture_begin(allocator, 0, &told)) == BASE_OK;
    testing_launch(walk->streams[1]);
    testing_order(walk->streams[1], walk->streams[2]);
    testing_launch(walk->streams[2]);
    take_used(walk, 1, 20 * mib);
    take_used(walk, 2, 1000);
    failure_mark(walk, 0, 2); // from before
    for (int slot = 0; slot < 3; ++slot)
        failure_give(walk, slot);
    failure_take(walk, 3, 20 * mib, 1); // too early
    failure_take(walk, 4, 4096, 0);     // beside the capture
    testing_order(walk->streams[2], walk->streams[1]);
    testing_launch(walk->streams[1]);
    failure_take(walk, 5, 20 * mib, 1);
    take_used(walk, 6, 30 * mib);
    failure_empty_cache(walk); // in the capture
    for (int slot = 3; slot < 7; ++slot)
        failure_give(walk, slot);
    testing_order(walk->streams[2], walk->streams[1]); // markers are work, too
    failure_take(walk, 7, 200 * mib, 1); // out of memory
    BASE_CHECK_EQ(cudaStreamEndCapture(walk->streams[1], &graph), cudaSuccess);
    if (is_marked) BASE_CHECK_EQ(cca_capture_end(allocator, 0, told.id), BASE_OK);
    (void)FAILURE_STEP(walk, cca_pool_end(allocator, 0, id));
    BASE_CHECK_EQ(cca_pool_release(allocator, 0, id), BASE_OK);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
}
