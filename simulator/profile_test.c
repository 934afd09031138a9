// Device profiles: what a device is called and holds, what its calls and operations cost, and what
// a mistake in a profile gets. The expected times are added up by hand from figures written here.
#include "base/check.h"
#include "base/child.h"
#include "base/file.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

// A device with round figures: launches 1, 2 or 4 us, an empty kernel 10, 20 or 40 us, memory
// 2000, 1000 or 500 GB/s (the highest rate makes the lowest time), and so on.
static const char round_figures[] = //
    "# round figures\n"
    "name  Round  device | test\n"
    "capability 7.5 | test\n"
    "capacity 6GiB | test\n"
    "multiprocessors 10 | test\n"
    "memory_bus_bits 1024 | test\n"
    "l2_cache 4MiB | test\n"
    "shared_memory_multiprocessor 64KiB | test\n"
    "shared_memory_block 63KiB | test\n"
    "blocks_multiprocessor 16 | test\n"
    "concurrent_kernels 1 | test\n"
    "copy_engines 2 | test\n"
    "\n"
    "call.other 0 ns | test\n"
    "call.cudaLaunchKernel 1 2 4 us | test\n"
    "call.cudaMalloc 5 10 20 us | test\n"
    "page.cudaMalloc 1 2 3 us | test\n"
    "launch_latency 3 us | test\n"
    "operation_gap 0 ns | test\n"
    "kernel 10 20 40 us | test\n"
    "copy 0 ns | test\n"
    "fill 0 ns | test\n"
    "record 0 ns | test\n"
    "wait 0 ns | test\n"
    "host_function 0 ns | test\n"
    "value 0 ns | test\n"
    "device_bandwidth 500 1000 2000 GB/s | test\n"
    "fp32_rate 1 2 4 TFLOP/s | test\n"
    "tensor_rate 100 TFLOP/s | test\n"
    "host_to_device_bandwidth 10 20 40 GB/s | test\n"
    "device_to_host_bandwidth 10 20 40 GB/s | test\n"
    "pageable_bandwidth 5 GB/s | test\n"
    "peer_bandwidth 100 GB/s | test\n"
    "graph_node_gap 0 ns | test";

static char path[512];

static void profile_write(const char *text) {
    struct base_file file;
    snprintf(path, sizeof path, "%s/round.profile", getenv("TEST_TMPDIR"));
    BASE_CHECK_EQ(base_file_create(&file, path), BASE_OK);
    fputs(text, file.stream);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
}

// The round figures with OLD replaced by NEW.
static void profile_write_changed(const char *old, const char *new) {
    char text[sizeof round_figures + 256];
    const char *at = strstr(round_figures, old);
    BASE_CHECK(at != NULL);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - round_figures), round_figures, new,
             at + strlen(old));
    profile_write(text);
}

static void machine_start(void) {
    BASE_CHECK_EQ(sim_profile(path), BASE_OK);
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
}

static void interval_is(struct sim_interval interval, uint64_t low_us, uint64_t typical_us,
                        uint64_t high_us) {
    BASE_CHECK_EQ(interval.low_ns, low_us * 1000);
    BASE_CHECK_EQ(interval.typical_ns, typical_us * 1000);
    BASE_CHECK_EQ(interval.high_ns, high_us * 1000);
}

static void body(const void *argument) { (void)argument; }

static void launch(uint64_t bytes, uint64_t flops, uint64_t tensor_flops) {
    const struct sim_kernel kernel = {.name = "kernel",
                                      .body = body,
                                      .bytes = bytes,
                                      .flops = flops,
                                      .tensor_flops = tensor_flops};
    BASE_CHECK_EQ(sim_launch_kernel(cudaStreamPerThread, &kernel), cudaSuccess);
}

static void the_device_is_as_its_profile_says(void) {
    struct cudaDeviceProp properties;
    size_t free_bytes, total_bytes;
    profile_write(round_figures);
    machine_start();
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    BASE_CHECK(strcmp(properties.name, "Round device") == 0);
    BASE_CHECK_EQ(properties.major, 7);
    BASE_CHECK_EQ(properties.minor, 5);
    BASE_CHECK_EQ(properties.multiProcessorCount, 10);
    BASE_CHECK_EQ(properties.l2CacheSize, 4 << 20);
    BASE_CHECK_EQ(properties.asyncEngineCount, 2);
    BASE_CHECK_EQ(properties.sharedMemPerBlockOptin, (size_t)63 << 10);
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(total_bytes, 6 * BASE_GIB);
}

static void a_capacity_that_the_program_gives_wins(void) {
    profile_write(round_figures);
    BASE_CHECK_EQ(sim_profile(path), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 1 * BASE_GIB}), BASE_OK);
    size_t free_bytes, total_bytes;
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(total_bytes, 1 * BASE_GIB);
}

// Launch call, latency, kernel: 1 + 3 + 10, 2 + 3 + 20, 4 + 3 + 40.
static void a_kernel_takes_at_least_what_an_empty_one_does(void) {
    profile_write(round_figures);
    machine_start();
    launch(1000, 1000, 1000);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_is(sim_time_interval(), 14, 25, 47);
}

// 1 GB: 500, 1000, 2000 us. 4 GFLOP: 1000, 2000, 4000 us. 400 tensor GFLOP: 4000 us.
static void a_kernel_takes_the_longest_of_moving_and_computing(void) {
    profile_write(round_figures);
    machine_start();
    launch(1000000000, 1000, 1000);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_is(sim_time_interval(), 4 + 500, 5 + 1000, 7 + 2000);
    machine_start();
    launch(1000000000, 4000000000, 1000);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_is(sim_time_interval(), 4 + 1000, 5 + 2000, 7 + 4000);
    machine_start();
    launch(1000, 1000, 400000000000);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_is(sim_time_interval(), 4 + 4000, 5 + 4000, 7 + 4000);
}

// The second kernel runs behind the first: with low costs from 4 to 14 to 24, with typical ones
// from 5 to 25 to 45, with high ones from 7 to 47 to 87.
static void bounds_follow_the_stream(void) {
    profile_write(round_figures);
    machine_start();
    launch(0, 0, 0);
    launch(0, 0, 0);
    interval_is(sim_time_interval(), 2, 4, 8);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_is(sim_time_interval(), 24, 45, 87);
}

// A kernel of 100, 200, 400 us ends at 104, 205, 407. An allocation of 100 pages takes 105, 210,
// 320, so that the host comes back at 106, 212, 324: typically the kernel is over, with high costs
// it is not.
static void what_is_over_by_the_clock_can_be_waited_for_with_high_costs(void) {
    void *pointer;
    for (int queries = 0; queries < 2; ++queries) {
        profile_write(round_figures);
        machine_start();
        launch(200000000, 0, 0);
        CALL(cudaMalloc(&pointer, 200 << 20));
        interval_is(sim_time_interval(), 106, 212, 324);
        if (queries)
            CALL(cudaStreamQuery(cudaStreamPerThread));
        else
            CALL(cudaStreamSynchronize(cudaStreamPerThread));
        interval_is(sim_time_interval(), 106, 212, 407);
    }
}

static void step_randomly(struct base_random *random, cudaStream_t streams[3],
                          cudaEvent_t events[3], char *memory, char *pinned) {
    const int a = (int)base_random_below(random, 3), b = (int)base_random_below(random, 3);
    const size_t size = base_random_below(random, 1 << 20) + 1;
    void *pointer;
    switch (base_random_below(random, 8)) {
    case 0: CALL(cudaMemcpyAsync(memory, pinned, size, cudaMemcpyHostToDevice, streams[a])); break;
    case 1: CALL(cudaMemcpyAsync(pinned, memory, size, cudaMemcpyDeviceToHost, streams[a])); break;
    case 2:
        CALL(sim_launch_kernel(streams[a], &(struct sim_kernel){.name = "kernel",
                                                                .body = body,
                                                                .bytes = size * 1000,
                                                                .flops = size * 5000}));
        break;
    case 3: CALL(cudaEventRecord(events[b], streams[a])); break;
    case 4: CALL(cudaStreamWaitEvent(streams[a], events[b], 0)); break;
    case 5: (void)cudaEventQuery(events[b]); break;
    case 6:
        CALL(cudaMalloc(&pointer, size));
        CALL(cudaFree(pointer));
        break;
    case 7: CALL(cudaStreamSynchronize(streams[a])); break;
    }
}

static void low_is_never_above_typical_nor_typical_above_high(void) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        struct base_random random = base_random_init(seed, "profile_test");
        cudaStream_t streams[3];
        cudaEvent_t events[3];
        void *memory, *pinned;
        base_check_context("seed %llu", (unsigned long long)seed);
        BASE_CHECK_EQ(sim_profile(seed % 2 == 0 ? "h200" : "a100-80gb"), BASE_OK);
        BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
        BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
        CALL(cudaMalloc(&memory, 1 << 20));
        CALL(cudaMallocHost(&pinned, 1 << 20));
        for (int i = 0; i < 3; ++i) {
            CALL(cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking, -i));
            CALL(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
        }
        for (int step = 0; step < 500; ++step) {
            step_randomly(&random, streams, events, memory, pinned);
            const struct sim_interval now = sim_time_interval();
            BASE_CHECK_LE(now.low_ns, now.typical_ns);
            BASE_CHECK_LE(now.typical_ns, now.high_ns);
        }
        CALL(cudaFreeHost(pinned));
    }
    base_check_context(NULL);
}

// The time since BEFORE, which becomes now.
static void interval_since_is(struct sim_interval *before, uint64_t low_us, uint64_t typical_us,
                              uint64_t high_us) {
    const struct sim_interval now = sim_time_interval();
    interval_is((struct sim_interval){now.low_ns - before->low_ns,
                                      now.typical_ns - before->typical_ns,
                                      now.high_ns - before->high_ns},
                low_us, typical_us, high_us);
    *before = now;
}

// 20 MB within the device are moved twice; pinned 100, 50, 25 GB/s would be other figures.
static void copies_take_their_bytes_over_the_bandwidth(void) {
    void *device_memory, *pinned;
    static char pageable[1000000];
    profile_write(round_figures);
    machine_start();
    BASE_CHECK_EQ(cudaMalloc(&device_memory, 40000000), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocHost(&pinned, 1000000), cudaSuccess);
    struct sim_interval before = sim_time_interval();
    BASE_CHECK_EQ(cudaMemcpyAsync(device_memory, (char *)device_memory + 20000000, 20000000,
                                  cudaMemcpyDeviceToDevice, cudaStreamPerThread),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_since_is(&before, 3 + 20, 3 + 40, 3 + 80);
    BASE_CHECK_EQ(cudaMemcpyAsync(device_memory, pinned, 1000000, cudaMemcpyHostToDevice,
                                  cudaStreamPerThread),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_since_is(&before, 3 + 25, 3 + 50, 3 + 100);
    BASE_CHECK_EQ(cudaMemcpyAsync(pageable, device_memory, 1000000, cudaMemcpyDeviceToHost,
                                  cudaStreamPerThread),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    interval_since_is(&before, 3 + 200, 3 + 200, 3 + 200);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// 3 allocations of 1, 2 and 500 pages, of which the last fails for its size: 3 calls, 3 pages.
static void the_time_of_calls_is_known_under_any_schedule(void) {
    void *pointer;
    profile_write(round_figures);
    machine_start();
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    sim_reset();
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, (2 << 20) + 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 7 * BASE_GIB), cudaErrorMemoryAllocation);
    interval_is(sim_call_time(), 3 * 5 + 3 * 1, 3 * 10 + 3 * 2, 3 * 20 + 3 * 3);
    sim_reset();
    interval_is(sim_call_time(), 0, 0, 0);
}

static void built_in_profiles_have_their_makers_figures(void) {
    struct cudaDeviceProp properties;
    BASE_CHECK_EQ(sim_profile("h200"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    BASE_CHECK(strcmp(properties.name, "NVIDIA H200") == 0);
    BASE_CHECK_EQ(properties.major, 9);
    BASE_CHECK_EQ(properties.totalGlobalMem, (size_t)143771 << 20);
    BASE_CHECK_EQ(properties.multiProcessorCount, 132);
    BASE_CHECK_EQ(sim_profile("a100-80gb"), BASE_OK);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    BASE_CHECK_EQ(properties.major, 8);
    BASE_CHECK_EQ(properties.multiProcessorCount, 108);
    BASE_CHECK_EQ(sim_profile(NULL), BASE_OK);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    BASE_CHECK(strcmp(properties.name, "Tidemark simulated device") == 0);
}

// MESSAGE begins with file and line where one is to blame.
static void a_mistake_gets_a_sentence(const char *old, const char *new, const char *message) {
    char want[1024];
    profile_write_changed(old, new);
    snprintf(want, sizeof want, "%s%s", path, message);
    BASE_CHECK_EQ(sim_profile(path), BASE_FORMAT);
    base_check_context("got \"%s\", want \"%s\"", base_status_message(), want);
    BASE_CHECK(strcmp(base_status_message(), want) == 0);
    base_check_context(NULL);
}

static void mistakes_name_line_and_what_is_right(void) {
    a_mistake_gets_a_sentence("kernel 10 20 40 us", "kernel 10 40 us",
                              ":20: kernel: want one value, or low, typical and high, and then a "
                              "time in ns, us, ms or s");
    a_mistake_gets_a_sentence("kernel 10 20 40 us", "kernel 10 20 15 us",
                              ":20: kernel: want low, typical and high in ascending order");
    a_mistake_gets_a_sentence("kernel 10 20 40 us", "kernel 10 x 40 us",
                              ":20: kernel: \"x\" is no number");
    a_mistake_gets_a_sentence("kernel 10 20 40 us", "kernel -1 us",
                              ":20: kernel: \"-1\" is no number");
    a_mistake_gets_a_sentence("kernel 10 20 40 us", "kernel nan us",
                              ":20: kernel: \"nan\" is no number");
    a_mistake_gets_a_sentence("kernel 10 20 40 us", "kernel 10 GB/s",
                              ":20: kernel: want one value, or low, typical and high, and then a "
                              "time in ns, us, ms or s");
    a_mistake_gets_a_sentence("kernel 10 20 40 us |", "kernel 10 20 40 us",
                              ":20: want FIGURE VALUE [UNIT] | SOURCE");
    a_mistake_gets_a_sentence("kernel 10 20 40 us | test\n", "",
                              ": no line gives kernel");
    a_mistake_gets_a_sentence("kernel 10", "krenel 10",
                              ":20: there is no figure \"krenel\"; want one of those that "
                              "profiles/h200.profile has");
    a_mistake_gets_a_sentence("call.other", "call.cudaMaloc",
                              ":14: \"cudaMaloc\" is no kind of call; want one of sim_call_name, "
                              "or other");
    a_mistake_gets_a_sentence("call.other 0 ns | test\n", "", ": no line gives call.other");
    a_mistake_gets_a_sentence("copy 0 ns", "kernel 1 ns", ":21: kernel: line 20 gave it already");
    a_mistake_gets_a_sentence("copy_engines 2", "copy_engines 2.5",
                              ":12: copy_engines: want a whole number from 1 to 1000000");
    a_mistake_gets_a_sentence("capability 7.5", "capability seven",
                              ":3: capability: want two numbers, as 9.0");
    a_mistake_gets_a_sentence("peer_bandwidth 100", "peer_bandwidth 0",
                              ":33: peer_bandwidth: want a rate above 0");
    a_mistake_gets_a_sentence("l2_cache 4MiB", "l2_cache 4TiB",
                              ":7: l2_cache: want at most 1GiB");
}

static void a_bad_profile_leaves_the_former_one(void) {
    struct cudaDeviceProp properties;
    profile_write(round_figures);
    machine_start();
    BASE_CHECK_EQ(sim_profile("h300"), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "want a100-80gb, h200, or the path of a file") !=
               NULL);
    BASE_CHECK_EQ(sim_profile("/nowhere/x.profile"), BASE_IO);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    BASE_CHECK(strcmp(properties.name, "Round device") == 0);
}

static void first_call(void *variable) {
    setenv("TIDEMARK_SIM_PROFILE", variable, 1);
    struct cudaDeviceProp properties;
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    printf("%s %zu", properties.name, properties.totalGlobalMem >> 20);
    fflush(stdout);
}

static void the_environment_chooses_a_profile(void) {
    char good[] = "h200", bad[] = "h300";
    struct base_child child = base_child_run(first_call, good);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK(strcmp(child.output_text, "NVIDIA H200 143771") == 0);
    base_child_deinit(&child);
    child = base_child_run(first_call, bad);
    BASE_CHECK_EQ(child.exit_code, 2);
    BASE_CHECK(strcmp(child.error_text,
                      "TIDEMARK_SIM_PROFILE: there is no device profile \"h300\": want a100-80gb, "
                      "h200, or the path of a file\n") == 0);
    base_child_deinit(&child);
}

int main(void) {
    unsetenv("TIDEMARK_SIM_PROFILE");
    the_environment_chooses_a_profile();
    the_device_is_as_its_profile_says();
    a_capacity_that_the_program_gives_wins();
    a_kernel_takes_at_least_what_an_empty_one_does();
    a_kernel_takes_the_longest_of_moving_and_computing();
    bounds_follow_the_stream();
    what_is_over_by_the_clock_can_be_waited_for_with_high_costs();
    low_is_never_above_typical_nor_typical_above_high();
    copies_take_their_bytes_over_the_bandwidth();
    the_time_of_calls_is_known_under_any_schedule();
    built_in_profiles_have_their_makers_figures();
    mistakes_name_line_and_what_is_right();
    a_bad_profile_leaves_the_former_one();
    return 0;
}
