// Page-locked memory: what is reused when, what is counted, what is refused.
#include "simulator/sim.h"
#include "tensor/pinned_allocator.h"
#include "tensor/testing.h"

#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

static struct allocator *pinned;

static void begin(int device_count) {
    CHECK_OK(sim_schedule("eager"));
    CHECK_OK(sim_configure(&(struct sim_options){.device_count = device_count}));
    CHECK_OK(tensor_pinned_allocator_create(&pinned));
}

static void *take(size_t size) {
    void *pointer = NULL;
    CHECK_OK(allocator_malloc(pinned, 0, size, NULL, &pointer));
    return pointer;
}

static struct allocator_stats stats(void) {
    struct allocator_stats now;
    CHECK_OK(allocator_stats(pinned, 0, &now));
    return now;
}

static int64_t current(const struct allocator_stat *family) {
    return family[ALLOCATOR_STAT_ALL].current;
}

static void blocks_are_powers_of_two_and_the_last_freed_comes_first(void) {
    begin(1);
    void *const first = take(700), *const second = take(1000);
    struct cudaPointerAttributes attributes;
    CUDA(cudaPointerGetAttributes(&attributes, first));
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeHost);
    BASE_CHECK_EQ(current(stats().allocated_bytes), 2048);
    BASE_CHECK_EQ(current(stats().requested_bytes), 1700);
    CHECK_OK(allocator_free(pinned, second));
    CHECK_OK(allocator_free(pinned, first));
    BASE_CHECK(take(513) == first);
    BASE_CHECK(take(1024) == second);
    BASE_CHECK_EQ(stats().num_device_alloc, 2);
    void *const other = take(512);
    BASE_CHECK(other != first && other != second);
    BASE_CHECK_EQ(stats().num_device_alloc, 3);
    BASE_CHECK(take(0) == NULL);
    allocator_destroy(pinned);
}

static void a_block_waits_for_each_stream_that_used_it(void) {
    begin(2);
    cudaStream_t streams[2];
    for (int device = 0; device < 2; ++device) {
        CUDA(cudaSetDevice(device));
        CUDA(cudaStreamCreate(&streams[device]));
        sim_stream_hold(streams[device], true);
    }
    char *const block = take(64), *device_memory;
    CUDA(cudaSetDevice(0));
    CUDA(cudaMalloc((void **)&device_memory, 64));
    for (int device = 0; device < 2; ++device) {
        CUDA(cudaSetDevice(device));
        CUDA(cudaMemcpyAsync(block, device_memory, 32, cudaMemcpyDefault, streams[device]));
        CHECK_OK(allocator_record_stream(pinned, block, streams[device]));
        CHECK_OK(allocator_record_stream(pinned, block, streams[device])); // once is enough
    }
    CUDA(cudaSetDevice(0));
    CHECK_OK(allocator_free(pinned, block));
    BASE_CHECK_EQ(current(stats().allocation), 0);
    BASE_CHECK_EQ(current(stats().active), 1);
    void *const other = take(64);
    BASE_CHECK(other != block);
    (void)sim_stream_run(streams[0], UINT64_MAX);
    void *const another = take(64);
    BASE_CHECK(another != block); // the other device is not done
    CHECK_OK(allocator_empty_cache(pinned));
    BASE_CHECK_EQ(current(stats().segment), 3);
    (void)sim_stream_run(streams[1], UINT64_MAX);
    BASE_CHECK(take(64) == block);
    BASE_CHECK_EQ(current(stats().active), 3);
    int device;
    CUDA(cudaGetDevice(&device));
    BASE_CHECK_EQ(device, 0);
    CHECK_OK(allocator_free(pinned, block)); // used on no stream since: free at once
    BASE_CHECK_EQ(current(stats().active), 2);
    CHECK_OK(allocator_empty_cache(pinned));
    BASE_CHECK_EQ(current(stats().segment), 2);
    BASE_CHECK_EQ(stats().num_device_free, 1);
    CUDA(cudaFree(device_memory));
    allocator_destroy(pinned);
}

static void a_free_without_an_event_is_none(void) {
    begin(1);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    void *const block = take(64);
    CHECK_OK(allocator_record_stream(pinned, block, stream));
    sim_fault_next(SIM_CALL_EVENT_RECORD, 1, cudaErrorLaunchFailure);
    CHECK_REFUSED(allocator_free(pinned, block), "cudaEventRecord: cudaErrorLaunchFailure");
    BASE_CHECK_EQ(current(stats().allocation), 1);
    CHECK_OK(allocator_free(pinned, block));
    BASE_CHECK(take(64) == block); // eager: the event is complete
    allocator_destroy(pinned);
}

static void requests_in_a_capture_are_served(void) {
    begin(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    CUDA(cudaStreamCreate(&stream));
    void *const old = take(64);
    CHECK_OK(allocator_record_stream(pinned, old, stream));
    CHECK_OK(allocator_free(pinned, old));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    BASE_CHECK(take(64) == old);
    BASE_CHECK(take(128) != NULL);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphDestroy(graph));
    allocator_destroy(pinned);
}

// A graph copies from the block at each launch; a later request must not write there. And its event
// must not be asked, which is none.
static void a_block_that_a_capture_used_is_not_reused(void) {
    begin(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    unsigned char *device, read[64] = {0};
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&device, 64));
    unsigned char *const used = take(64);
    memset(used, 7, 64);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemcpyAsync(device, used, 64, cudaMemcpyHostToDevice, stream));
    CHECK_OK(allocator_record_stream(pinned, used, stream));
    CHECK_OK(allocator_free(pinned, used));
    BASE_CHECK_EQ(allocator_free(pinned, used), BASE_INVALID_POINTER);
    unsigned char *const other = take(64);
    BASE_CHECK(other != used);
    memset(other, 1, 64);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_OK(allocator_free(pinned, other));
    BASE_CHECK(take(64) == other);
    BASE_CHECK(take(64) != used);
    CHECK_OK(allocator_empty_cache(pinned));
    BASE_CHECK_EQ(current(stats().allocation), 2);
    BASE_CHECK_EQ(current(stats().active), 3);
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaMemcpyAsync(read, device, 64, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    BASE_CHECK_EQ(read[63], 7);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
    allocator_destroy(pinned);
}

static void wrong_requests_are_refused(void) {
    begin(1);
    void *pointer = &pinned;
    sim_fault_next(SIM_CALL_HOST_ALLOC, 1, cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(allocator_malloc(pinned, 0, 64, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK(pointer == &pinned);
    BASE_CHECK_EQ(stats().num_ooms, 1);
    BASE_CHECK_EQ(allocator_malloc(pinned, 0, SIZE_MAX, NULL, &pointer), BASE_OUT_OF_MEMORY);
    void *const block = take(64);
    BASE_CHECK_EQ(allocator_free(pinned, (char *)block + 1), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(pinned, &pinned), BASE_INVALID_POINTER);
    CHECK_OK(allocator_free(pinned, block));
    BASE_CHECK_EQ(allocator_free(pinned, block), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_record_stream(pinned, block, NULL), BASE_INVALID_POINTER);
    CHECK_OK(allocator_free(pinned, NULL));
    CHECK_OK(allocator_record_stream(pinned, NULL, NULL));
    allocator_destroy(pinned);
}

int main(void) {
    blocks_are_powers_of_two_and_the_last_freed_comes_first();
    a_block_waits_for_each_stream_that_used_it();
    a_free_without_an_event_is_none();
    requests_in_a_capture_are_served();
    a_block_that_a_capture_used_is_not_reused();
    wrong_requests_are_refused();
    return 0;
}
