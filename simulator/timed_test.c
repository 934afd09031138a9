// The timed schedule: what overlaps, what queues, who is first, and what the host's clock shows.
// The expected times are added up by hand from the figures below, in microseconds.
#include "base/check.h"
#include "base/file.h"
#include "simulator/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A kernel takes 100 us, two run at a time; a copy 10 us a KB; a launch reaches the device 5 us
// after the call, which takes 1 us. All else takes no time.
// A launch of a graph costs the host 2 us and 0.25 us a node; a node starts 3 us behind what it
// depends on.
static const char figures[] = "name Test | test\n"
                              "capability 9.0 | test\n"
                              "capacity 1GiB | test\n"
                              "multiprocessors 10 | test\n"
                              "memory_bus_bits 1024 | test\n"
                              "l2_cache 4MiB | test\n"
                              "shared_memory_multiprocessor 64KiB | test\n"
                              "shared_memory_block 63KiB | test\n"
                              "blocks_multiprocessor 16 | test\n"
                              "concurrent_kernels 2 | test\n"
                              "copy_engines 2 | test\n"
                              "call.other 0 ns | test\n"
                              "call.cudaLaunchKernel 1 us | test\n"
                              "launch_latency 5 us | test\n"
                              "operation_gap 0 ns | test\n"
                              "graph_node_gap 3 us | test\n"
                              "call.cudaGraphLaunch 2 us | test\n"
                              "node.cudaGraphLaunch 250 ns | test\n"
                              "kernel 100 us | test\n"
                              "copy 0 ns | test\n"
                              "fill 0 ns | test\n"
                              "record 0 ns | test\n"
                              "wait 0 ns | test\n"
                              "host_function 0 ns | test\n"
                              "value 0 ns | test\n"
                              "device_bandwidth 1000 GB/s | test\n"
                              "fp32_rate 1 TFLOP/s | test\n"
                              "tensor_rate 100 TFLOP/s | test\n"
                              "host_to_device_bandwidth 0.1 GB/s | test\n"
                              "device_to_host_bandwidth 0.1 GB/s | test\n"
                              "pageable_bandwidth 0.1 GB/s | test\n"
                              "peer_bandwidth 0.1 GB/s | test\n";

static char trail[64];

static void note(void *letter) { strncat(trail, letter, sizeof trail - strlen(trail) - 1); }

static void body(const void *argument) { (void)argument; }

static void launch(cudaStream_t stream) {
    BASE_CHECK_EQ(sim_launch(stream, "kernel", body, NULL, 0), cudaSuccess);
}

static void note_in(cudaStream_t stream, const char *letter) {
    BASE_CHECK_EQ(cudaLaunchHostFunc(stream, note, (void *)(uintptr_t)letter), cudaSuccess);
}

static uint64_t now_us(void) {
    BASE_CHECK_EQ(sim_time_ns() % 1000, 0);
    return sim_time_ns() / 1000;
}

static cudaStream_t stream_new(int priority) {
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
                  cudaSuccess);
    return stream;
}

static cudaEvent_t event_new(void) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    return event;
}

static void start(void) {
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    trail[0] = '\0';
}

static void kernels_overlap_as_far_as_there_is_room(void) {
    start();
    cudaStream_t streams[3] = {stream_new(0), stream_new(0), stream_new(0)};
    for (int i = 0; i < 3; ++i)
        launch(streams[i]); // calls end at 1, 2, 3; kernels could start at 6, 7, 8
    BASE_CHECK_EQ(now_us(), 3);
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 106);
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 107);
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[2]), cudaSuccess); // started at 106
    BASE_CHECK_EQ(now_us(), 206);
}

static void kernels_of_one_stream_follow_each_other(void) {
    start();
    cudaStream_t stream = stream_new(0);
    launch(stream);
    launch(stream);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 206);
}

static void who_queues_is_served_by_priority_and_then_by_age(void) {
    start();
    cudaStream_t low[4], high = stream_new(-5);
    for (int i = 0; i < 4; ++i)
        low[i] = stream_new(0);
    for (int i = 0; i < 4; ++i) {
        launch(low[i]);
        note_in(low[i], &"0\0001\0002\0003"[2 * i]);
    }
    launch(high); // two run, two queue; this one goes first
    note_in(high, "h");
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK(strcmp(trail, "01h23") == 0);
    BASE_CHECK_EQ(now_us(), 306); // 6 to 106, 106 to 206, 206 to 306
}

static void copies_overlap_by_direction(void) {
    start();
    cudaStream_t one = stream_new(0), two = stream_new(0), three = stream_new(0);
    char *device, *host;
    BASE_CHECK_EQ(cudaMalloc((void **)&device, 8192), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocHost((void **)&host, 8192), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(device, host, 1000, cudaMemcpyHostToDevice, one), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(device + 2000, host, 1000, cudaMemcpyHostToDevice, two),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(host + 4000, device + 4000, 1000, cudaMemcpyDeviceToHost, three),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(three), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 15); // beside the first: 5 to 15
    BASE_CHECK_EQ(cudaStreamSynchronize(two), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 25); // behind the first
    launch(one);                 // a kernel beside a copy
    BASE_CHECK_EQ(cudaMemcpyAsync(device, host, 9000 - 1000, cudaMemcpyHostToDevice, two),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 131);
}

static void waits_for_events_hold_later_work_up(void) {
    start();
    cudaStream_t one = stream_new(0), two = stream_new(0);
    cudaEvent_t begin = event_new(), middle = event_new(), end = event_new();
    BASE_CHECK_EQ(cudaEventRecord(begin, one), cudaSuccess);
    launch(one);
    BASE_CHECK_EQ(cudaEventRecord(middle, one), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(two, middle, 0), cudaSuccess);
    launch(two);
    BASE_CHECK_EQ(cudaEventRecord(end, two), cudaSuccess);
    float ms;
    BASE_CHECK_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaEventSynchronize(middle), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 106);
    BASE_CHECK_EQ(cudaEventSynchronize(end), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 206);
    BASE_CHECK_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
    BASE_CHECK(fabsf(ms - 0.201f) < 1e-6f); // the first record was reached at 5
    BASE_CHECK_EQ(cudaEventElapsedTime(&ms, end, middle), cudaSuccess);
    BASE_CHECK(fabsf(ms + 0.1f) < 1e-6f);
}

static void polling_ends_though_queries_take_no_time(void) {
    start();
    cudaStream_t stream = stream_new(0);
    for (int i = 0; i < 5; ++i)
        launch(stream);
    int polls = 0;
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        BASE_CHECK_LT(++polls, 100);
    BASE_CHECK_EQ(now_us(), 506);
    launch(stream);
    note_in(stream, "x");
    for (; trail[0] == '\0'; sim_progress())
        BASE_CHECK_LT(++polls, 100);
    BASE_CHECK_EQ(now_us(), 612);
}

static void what_runs_did_so_in_the_past_only(void) {
    start();
    cudaStream_t stream = stream_new(0), other = stream_new(0);
    launch(stream); // ends at 106
    note_in(stream, "a");
    for (int i = 0; i < 104; ++i)
        launch(other); // calls of 1 us each
    BASE_CHECK_EQ(now_us(), 105);
    BASE_CHECK_EQ(trail[0], '\0');
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    launch(other);
    launch(other);
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaSuccess);
    BASE_CHECK_EQ(trail[0], 'a');
}

static void the_hosts_own_time_does_not_count(void) {
    start();
    cudaStream_t stream = stream_new(0);
    launch(stream);
    usleep(2000);
    BASE_CHECK_EQ(now_us(), 1);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    usleep(2000);
    BASE_CHECK_EQ(now_us(), 106);
}

static void held_work_takes_its_time_when_it_is_released(void) {
    start();
    cudaStream_t stream = stream_new(0), other = stream_new(0);
    sim_stream_hold(stream, true);
    launch(stream);
    launch(other);
    BASE_CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 107);
    BASE_CHECK_EQ(sim_stream_pending(stream), 1);
    sim_stream_hold(stream, false);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 207);
}

static cudaGraphExec_t exec_captured(cudaStream_t stream, void (*submit)(cudaStream_t stream)) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    submit(stream);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    return exec;
}

static void chain_submit(cudaStream_t stream) {
    for (int i = 0; i < 4; ++i)
        launch(stream);
}

// The captured launches took a microsecond each.
static void nodes_of_a_chain_follow_each_other_with_gaps(void) {
    start();
    cudaStream_t stream = stream_new(0);
    cudaGraphExec_t exec = exec_captured(stream, chain_submit);
    BASE_CHECK_EQ(now_us(), 4);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 7); // 2 and 4 times 0.25
    launch(stream);
    BASE_CHECK_EQ(now_us(), 8);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    // Begins at 12, runs from 15 to 115, 118 to 218, 221 to 321, 324 to 424; then the launch.
    BASE_CHECK_EQ(now_us(), 524);
}

static void wide_submit(cudaStream_t stream) {
    cudaGraphNode_t nodes[4];
    const cudaGraphNode_t *last;
    enum cudaStreamCaptureStatus status;
    size_t count;
    for (int i = 0; i < 4; ++i) { // side by side
        BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0,
                                                          cudaStreamSetCaptureDependencies),
                      cudaSuccess);
        launch(stream);
        BASE_CHECK_EQ(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, NULL, &count),
                      cudaSuccess);
        nodes[i] = last[0];
    }
    BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, 4,
                                                      cudaStreamSetCaptureDependencies),
                  cudaSuccess);
}

static void nodes_side_by_side_overlap_as_far_as_there_is_room(void) {
    start();
    cudaStream_t stream = stream_new(0);
    cudaGraphExec_t exec = exec_captured(stream, wide_submit);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 7);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 215); // two from 15 to 115, two behind them
}

static void time_counts_as_busy_once_and_from_the_beginning_on(void) {
    start();
    cudaStream_t streams[3] = {stream_new(0), stream_new(0), stream_new(0)};
    sim_busy_begin();
    for (int i = 0; i < 3; ++i)
        launch(streams[i]); // from 6 to 106, 7 to 107, 106 to 206
    BASE_CHECK_EQ(sim_busy_ns(), 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
    BASE_CHECK_EQ(sim_busy_ns(), 100000);
    sim_busy_begin();
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess); // at 107
    BASE_CHECK_EQ(sim_busy_ns(), 1000);
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[2]), cudaSuccess);
    BASE_CHECK_EQ(sim_busy_ns(), 100000);
    launch(streams[0]); // the call ends at 207, the kernel runs from 212 to 312
    BASE_CHECK_EQ(cudaLaunchHostFunc(streams[1], note, (void *)(uintptr_t) "x"), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(now_us(), 312);
    BASE_CHECK_EQ(sim_busy_ns(), 200000);
    sim_reset();
    launch(NULL);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(sim_busy_ns(), 0);
}

int main(void) {
    char path[512];
    struct base_file file;
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/timed-%d.profile", folder != NULL ? folder : ".",
             (int)getpid());
    BASE_CHECK_EQ(base_file_create(&file, path), BASE_OK);
    fputs(figures, file.stream);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
    if (sim_profile(path) != BASE_OK)
        base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(sim_profile(path), BASE_OK);
    unlink(path);
    kernels_overlap_as_far_as_there_is_room();
    kernels_of_one_stream_follow_each_other();
    who_queues_is_served_by_priority_and_then_by_age();
    copies_overlap_by_direction();
    waits_for_events_hold_later_work_up();
    polling_ends_though_queries_take_no_time();
    what_runs_did_so_in_the_past_only();
    the_hosts_own_time_does_not_count();
    held_work_takes_its_time_when_it_is_released();
    nodes_of_a_chain_follow_each_other_with_gaps();
    nodes_side_by_side_overlap_as_far_as_there_is_room();
    time_counts_as_busy_once_and_from_the_beginning_on();
    return 0;
}
