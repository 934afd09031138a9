// What a watched allocator is said to take. Expected times are added up by hand from the figures
// below, in microseconds.
#include "bench/workload_watch.h"

#include "allocator/create.h"
#include "base/check.h"
#include "base/file.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A kernel takes 100 us and starts 5 us behind its call, which takes 1 us; cudaMalloc takes 10 us.
// All else takes no time.
static const char *const figures[] = {
    "name Test",
    "capability 9.0",
    "capacity 1GiB",
    "multiprocessors 10",
    "memory_bus_bits 1024",
    "l2_cache 4MiB",
    "shared_memory_multiprocessor 64KiB",
    "shared_memory_block 63KiB",
    "blocks_multiprocessor 16",
    "concurrent_kernels 2",
    "copy_engines 2",
    "call.other 0 ns",
    "call.cudaLaunchKernel 1 us",
    "call.cudaMalloc 10 us",
    "launch_latency 5 us",
    "operation_gap 0 ns",
    "graph_node_gap 0 ns",
    "kernel 100 us",
    "copy 0 ns",
    "fill 0 ns",
    "record 0 ns",
    "wait 0 ns",
    "host_function 0 ns",
    "value 0 ns",
    "device_bandwidth 1000 GB/s",
    "fp32_rate 1 TFLOP/s",
    "tensor_rate 100 TFLOP/s",
    "host_to_device_bandwidth 1 GB/s",
    "device_to_host_bandwidth 1 GB/s",
    "pageable_bandwidth 1 GB/s",
    "peer_bandwidth 1 GB/s",
};

static void profile_load(void) {
    char path[512];
    struct base_file file;
    const char *const folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/watch-%d.profile", folder != NULL ? folder : ".",
             (int)getpid());
    BASE_CHECK_EQ(base_file_create(&file, path), BASE_OK);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; ++i)
        fprintf(file.stream, "%s | test\n", figures[i]);
    BASE_CHECK_EQ(base_file_commit(&file), BASE_OK);
    if (sim_profile(path) != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(sim_profile(path), BASE_OK);
    unlink(path);
}

static void device_begin(void) {
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
}

static void body(const void *argument) { (void)argument; }

static void launch(void) { BASE_CHECK_EQ(sim_launch(NULL, "kernel", body, NULL, 0), cudaSuccess); }

static void stalls_are_device_calls_and_waits_and_where_the_device_runs_dry(void) {
    struct allocator *direct;
    struct workload_watch *watch;
    void *block;
    device_begin();
    BASE_CHECK_EQ(allocator_create("x_allocator:direct", -1, &direct), BASE_OK);
    BASE_CHECK_EQ(workload_watch_create(direct, WORKLOAD_WATCH_STALLS, &watch), BASE_OK);
    struct allocator *const watched = workload_watch_allocator(watch);
    launch(); // the call ends at 1, the kernel runs from 6 to 106
    BASE_CHECK_EQ(allocator_malloc(watched, 0, 512, NULL, &block), BASE_OK); // from 1 to 11
    struct workload_watch_totals totals = workload_watch_totals(watch);
    BASE_CHECK_EQ(totals.calls, 1);
    BASE_CHECK_EQ(totals.stall_ns, 10000);
    BASE_CHECK_EQ(totals.longest_ns, 10000);
    BASE_CHECK_EQ(totals.wait_ns, 0);
    BASE_CHECK_EQ(totals.dry_ns, 5000); // from 1 to 6
    BASE_CHECK_EQ(totals.waits, 0);
    BASE_CHECK_EQ(allocator_free(watched, block), BASE_OK); // waits from 11 to 106
    totals = workload_watch_totals(watch);
    BASE_CHECK_EQ(totals.calls, 2);
    BASE_CHECK_EQ(totals.stall_ns, 105000);
    BASE_CHECK_EQ(totals.longest_ns, 95000);
    BASE_CHECK_EQ(totals.wait_ns, 95000);
    BASE_CHECK_EQ(totals.dry_ns, 5000);
    BASE_CHECK_EQ(totals.waits, 1);
    workload_watch_destroy(watch);
    allocator_destroy(direct);
}

static void a_cache_stalls_nobody_once_it_has_what_is_asked_for(void) {
    struct allocator *caching;
    struct workload_watch *watch;
    void *block;
    device_begin();
    BASE_CHECK_EQ(allocator_create("", -1, &caching), BASE_OK);
    BASE_CHECK_EQ(workload_watch_create(caching, WORKLOAD_WATCH_STALLS, &watch), BASE_OK);
    struct allocator *const watched = workload_watch_allocator(watch);
    for (int i = 0; i < 3; ++i) {
        launch();
        BASE_CHECK_EQ(allocator_malloc(watched, 0, 512, NULL, &block), BASE_OK);
        BASE_CHECK_EQ(allocator_free(watched, block), BASE_OK);
    }
    const struct workload_watch_totals totals = workload_watch_totals(watch);
    BASE_CHECK_EQ(totals.calls, 6);
    BASE_CHECK_EQ(totals.stall_ns, 10000); // the one cudaMalloc
    BASE_CHECK_EQ(totals.wait_ns, 0);
    workload_watch_destroy(watch);
    allocator_destroy(caching);
}

//--------------------------------------------------------------------------------------------------
// CPU time, of an allocator that burns it.

#define BURNT_NS 3000000

static enum base_status burn(struct allocator *allocator, void *pointer) {
    (void)allocator;
    (void)pointer;
    const uint64_t start = workload_watch_thread_ns();
    while (workload_watch_thread_ns() - start < BURNT_NS) {
    }
    return BASE_OK;
}

static void burn_watched(void *watched) { BASE_CHECK_EQ(allocator_free(watched, NULL), BASE_OK); }

static void cpu_time_is_that_of_all_threads_inside_the_calls(void) {
    const struct allocator_operations operations = {.name = "burner", .free = burn};
    struct allocator burner = {&operations};
    struct workload_watch *watch;
    struct base_thread threads[2];
    BASE_CHECK_EQ(workload_watch_create(&burner, WORKLOAD_WATCH_CPU, &watch), BASE_OK);
    for (int i = 0; i < 2; ++i)
        base_thread_start(&threads[i], burn_watched, workload_watch_allocator(watch));
    for (int i = 0; i < 2; ++i)
        base_thread_join(&threads[i]);
    (void)burn(NULL, NULL); // outside
    const struct workload_watch_totals totals = workload_watch_totals(watch);
    BASE_CHECK_EQ(totals.calls, 2);
    BASE_CHECK_GE(totals.cpu_ns, 2 * BURNT_NS);
    BASE_CHECK_LT(totals.cpu_ns, 3 * BURNT_NS);
    BASE_CHECK_GE(workload_watch_process_ns(), 3 * BURNT_NS);
    workload_watch_destroy(watch);
}

static void the_clock_costs_less_than_it_is_read_for(void) {
    const uint64_t ns = workload_watch_clock_ns();
    BASE_CHECK_GT(ns, 0);
    BASE_CHECK_LT(ns, BURNT_NS);
}

int main(void) {
    profile_load();
    stalls_are_device_calls_and_waits_and_where_the_device_runs_dry();
    a_cache_stalls_nobody_once_it_has_what_is_asked_for();
    cpu_time_is_that_of_all_threads_inside_the_calls();
    the_clock_costs_less_than_it_is_read_for();
    return 0;
}
