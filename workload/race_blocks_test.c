// Programs on the allocators, with and without the mistake: the checker knows the blocks, names the
// right ones, and where the program called from.
#include "workload/race_blocks.h"

#include "allocator/cca.h"
#include "allocator/direct.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <string.h>

#define SIZE 4096

static struct allocator *inner, *allocator;
static cudaStream_t stream, side;
static cudaEvent_t event;

static void nothing(const void *argument) { (void)argument; }

static void kernel_on_block(cudaStream_t in, const char *name, const void *pointer,
                            enum sim_access_mode mode, uint64_t block) {
    const struct sim_access access = {
        .mode = mode, .pointer = pointer, .size = SIZE, .block = block};
    const struct sim_kernel launch = {
        .name = name, .body = nothing, .accesses = &access, .access_count = 1};
    BASE_CHECK_EQ(sim_launch_kernel(in, &launch), cudaSuccess);
}

static void kernel(cudaStream_t in, const char *name, const void *pointer,
                   enum sim_access_mode mode) {
    kernel_on_block(in, name, pointer, mode, 0);
}

static void *take(cudaStream_t for_stream) {
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, SIZE, for_stream, &pointer), BASE_OK);
    return pointer;
}

static void give(void *pointer) { BASE_CHECK_EQ(allocator_free(allocator, pointer), BASE_OK); }

static void wait_for(cudaStream_t waiter, cudaStream_t other) {
    BASE_CHECK_EQ(cudaEventRecord(event, other), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(waiter, event, 0), cudaSuccess);
}

static void begin_with(const struct sim_race_options *options, const char *schedule, bool caching) {
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 * BASE_MIB}), BASE_OK);
    BASE_CHECK_EQ(sim_race_start(options), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    BASE_CHECK_EQ(caching ? cca_allocator_create(&(struct cca_options){.config = ""}, &inner)
                          : direct_allocator_create(&inner),
                  BASE_OK);
    BASE_CHECK_EQ(workload_race_blocks_create(inner, &allocator), BASE_OK);
}

static void begin(const char *schedule, bool caching) {
    begin_with(&(struct sim_race_options){.quiet = true}, schedule, caching);
}

static void end(void) {
    sim_race_stop();
    allocator_destroy(allocator);
    allocator_destroy(inner);
}

static void contains(const char *text, const char *words) {
    base_check_context("\"%s\" in \"%s\"", words, text);
    BASE_CHECK(strstr(text, words) != NULL);
    base_check_context(NULL);
}

// A side stream reads a block that goes back to its own stream's cache meanwhile.
static void side_reader(bool mended) {
    void *x = take(stream);
    kernel(stream, "write x", x, SIM_ACCESS_WRITE);
    wait_for(side, stream);
    kernel(side, "read x", x, SIM_ACCESS_READ);
    if (mended)
        BASE_CHECK_EQ(allocator_record_stream(allocator, x, side), BASE_OK);
    give(x);
    // At the request, be it that the allocator has to wait for the side stream.
    BASE_CHECK_EQ(workload_race_blocks_number(allocator, x), 0);
    void *y = take(stream);
    if (!mended)
        BASE_CHECK(y == x);
    kernel(stream, "write y", y, SIM_ACCESS_WRITE);
    give(y);
}

static const char *const schedules[] = {"eager", "lazy", "random:1", "random:2", "timed"};

static void a_missing_record_stream_is_a_reuse(void) {
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; ++i) {
        begin(schedules[i], true);
        side_reader(false);
        end();
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_REUSE), 1);
        const struct sim_race_report *report = sim_race_report_at(0);
        BASE_CHECK(strcmp(report->first.what, "kernel read x") == 0);
        BASE_CHECK(strcmp(report->second.what, "kernel write y") == 0);
        contains(report->text, "the allocator was not told");
        contains(report->text, "call record_stream(stream 3)");
        contains(report->text, "taken for stream 2 at take (workload/race_blocks_test.c:");
        contains(report->text, "given back at give (workload/race_blocks_test.c:");
    }
}

static void with_record_stream_it_is_silent(void) {
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; ++i) {
        begin(schedules[i], true);
        side_reader(true);
        end();
        if (sim_race_count(SIM_RACE_RULE_COUNT) > 0)
            printf("%s", sim_race_report_at(0)->text);
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    }
}

static void record_stream_is_seen(void) {
    begin("eager", true);
    void *x = take(stream);
    kernel(stream, "write x", x, SIM_ACCESS_WRITE);
    BASE_CHECK_EQ(allocator_record_stream(allocator, x, side), BASE_OK);
    kernel(side, "read x", x, SIM_ACCESS_READ); // too early: nobody waited
    end();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    const struct sim_race_report *report = sim_race_report_at(0);
    BASE_CHECK_EQ(report->rule, SIM_RACE_READ_WRITE);
    contains(report->text, "record_stream(stream 3) at record_stream_is_seen (");
    contains(report->text, "does not order stream 3 behind kernel write x");
}

// With an allocator that has no cache as well.
static void use_behind_the_free(bool caching) {
    begin("lazy", caching);
    void *x = take(stream);
    const uint64_t block = workload_race_blocks_number(allocator, x);
    BASE_CHECK_GT(block, 0);
    kernel_on_block(stream, "write x", x, SIM_ACCESS_WRITE, block);
    give(x);
    BASE_CHECK_EQ(workload_race_blocks_number(allocator, x), 0);
    if (caching)
        kernel_on_block(stream, "late", x, SIM_ACCESS_READ, block);
    else
        kernel(stream, "late", x, SIM_ACCESS_READ); // the memory is gone as well
    end();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_USE_AFTER_FREE), 1);
    contains(sim_race_report_at(0)->text, "kernel late");
    contains(sim_race_report_at(0)->text, "at give (workload/race_blocks_test.c:");
}

static void use_behind_the_free_is_found(void) {
    use_behind_the_free(true);
    use_behind_the_free(false);
}

// By the address alone, if the program has its memory from the allocator only.
static void use_behind_the_free_needs_no_number(void) {
    begin_with(&(struct sim_race_options){.quiet = true, .blocks_only = true}, "lazy", true);
    void *x = take(stream);
    kernel(stream, "write x", x, SIM_ACCESS_WRITE);
    give(x);
    kernel(stream, "late", x, SIM_ACCESS_READ);
    end();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_USE_AFTER_FREE), 1);
    contains(sim_race_report_at(0)->text,
             "kernel late was enqueued after the block was given back");
}

// A new owner's block begins without contents, whatever the last one left there.
static void a_new_block_is_unwritten(void) {
    begin("eager", true);
    void *x = take(stream);
    kernel(stream, "write x", x, SIM_ACCESS_WRITE);
    give(x);
    void *y = take(stream);
    BASE_CHECK(y == x);
    kernel(stream, "read y", y, SIM_ACCESS_READ);
    end();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), 1);
    contains(sim_race_report_at(0)->text, "since the block was taken at take (");
}

static int event_count;
static void count_event(void *context, const struct allocator_event *happened) {
    (void)happened;
    ++*(int *)context;
}

static void everything_else_is_passed_on(void) {
    void *base;
    size_t size;
    struct allocator_stats stats, inner_stats;
    begin("eager", true);
    const struct allocator_observer observer = {count_event, &event_count};
    BASE_CHECK_EQ(allocator_set_observer(allocator, &observer), BASE_OK);
    void *x = take(stream);
    BASE_CHECK_EQ(event_count, 2); // the segment and the block
    BASE_CHECK_EQ(allocator_base_allocation(allocator, x, &base, &size), BASE_OK);
    BASE_CHECK(base == x);
    BASE_CHECK_EQ(size, 2 * BASE_MIB);
    BASE_CHECK_EQ(allocator_stats(allocator, 0, &stats), BASE_OK);
    BASE_CHECK_EQ(allocator_stats(inner, 0, &inner_stats), BASE_OK);
    BASE_CHECK_EQ(memcmp(&stats, &inner_stats, sizeof stats), 0);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 1);
    BASE_CHECK_EQ(allocator_free(allocator, &size), BASE_INVALID_POINTER);
    give(x);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    end();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
}

int main(void) {
    a_missing_record_stream_is_a_reuse();
    with_record_stream_it_is_silent();
    record_stream_is_seen();
    use_behind_the_free_is_found();
    use_behind_the_free_needs_no_number();
    a_new_block_is_unwritten();
    everything_else_is_passed_on();
    return 0;
}
