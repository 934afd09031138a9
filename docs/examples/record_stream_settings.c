// Settings of our own about blocks that wait for other streams, without and with each: the second
// program of docs/record-stream.md.
#include "docs/examples/drawing.h"

#include "base/options.h"
#include "base/thread.h"

#include <stdio.h>

#define BLOCK (16 * BASE_MIB)

static void work(const void *argument) { (void)argument; }

// Takes a block, lets a stream work on it, and gives it back.
static void use_and_give(struct drawing *drawing, char letter, size_t bytes, cudaStream_t user) {
    BASE_CHECK(drawing_take(drawing, letter, bytes, NULL));
    DRAWING_CALL(sim_launch(user, "use", work, NULL, 0));
    DRAWING_OK(allocator_record_stream(drawing->allocator, drawing_block(drawing, letter), user));
    drawing_give(drawing, letter);
}

static struct cca_pending_frees pending_of(const struct drawing *drawing) {
    struct cca_pending_frees numbers;
    DRAWING_OK(cca_pending_frees(drawing->allocator, 0, &numbers));
    return numbers;
}

static int device_calls(void) {
    return (int)(sim_call_count(SIM_CALL_MALLOC) + sim_call_count(SIM_CALL_FREE));
}

// A block that is part of a segment waits, and a request needs just that memory.
static void part_of_a_segment(struct drawing *drawing) {
    cudaStream_t const side = drawing_stream(drawing);
    BASE_CHECK(drawing_take(drawing, 'A', 56 * BASE_MIB, NULL));
    drawing_give(drawing, 'A');
    BASE_CHECK(drawing_take(drawing, 'B', 4 * BASE_MIB, NULL));
    sim_stream_hold(side, true);
    use_and_give(drawing, 'A', 48 * BASE_MIB, side);
    const bool fits = drawing_take(drawing, 'C', 48 * BASE_MIB, NULL);
    printf("%s\n", fits ? "ok" : "out of memory");
}

// Each of four streams keeps a block, and a request needs one.
static void one_of_four(struct drawing *drawing) {
    for (int index = 0; index < 4; ++index) {
        cudaStream_t const stream = drawing_stream(drawing);
        sim_stream_hold(stream, true);
        use_and_give(drawing, (char)('A' + index), BLOCK, stream);
    }
    const int calls = device_calls();
    BASE_CHECK(drawing_take(drawing, 'E', BLOCK, NULL));
    printf("events waited for %d, device calls %d, reserved %d MiB\n",
           (int)sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE), device_calls() - calls,
           (int)(drawing_reserved(drawing) / (int64_t)BASE_MIB));
}

// What stream 1 left in its cache, and a request of the default stream.
static void cache_of_another(struct drawing *drawing) {
    BASE_CHECK(drawing_take(drawing, 'A', 40 * BASE_MIB, drawing_stream(drawing)));
    drawing_give(drawing, 'A');
    const int calls = device_calls();
    BASE_CHECK(drawing_take(drawing, 'B', 40 * BASE_MIB, NULL));
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(drawing->allocator, 0, &stats));
    printf("device calls %d, retries %d, waits on the device %d\n", device_calls() - calls,
           (int)stats.num_alloc_retries, (int)sim_call_count(SIM_CALL_STREAM_WAIT_EVENT));
}

// Blocks of the default stream wait for three others; a fourth one asks for memory.
static void request_of_a_bystander(struct drawing *drawing) {
    for (int index = 0; index < 3; ++index) {
        cudaStream_t const stream = drawing_stream(drawing);
        sim_stream_hold(stream, true);
        use_and_give(drawing, (char)('A' + index), BASE_MIB, stream);
    }
    cudaStream_t const bystander = drawing_stream(drawing);
    const uint64_t before = sim_call_count(SIM_CALL_EVENT_QUERY);
    BASE_CHECK(drawing_take(drawing, 'D', BASE_MIB, bystander));
    printf("queries %d\n", (int)(sim_call_count(SIM_CALL_EVENT_QUERY) - before));
}

static void use_on_own_stream(void *drawing) {
    use_and_give(drawing, 'B', BASE_MIB, cudaStreamPerThread);
}

// One handle, a stream in each thread: this one's is stuck, the other one's is done.
static void stream_of_each_thread(struct drawing *drawing) {
    struct base_thread thread;
    sim_stream_hold(cudaStreamPerThread, true);
    use_and_give(drawing, 'A', BASE_MIB, cudaStreamPerThread);
    base_thread_start(&thread, use_on_own_stream, drawing);
    base_thread_join(&thread);
    const struct cca_pending_frees before = pending_of(drawing);
    BASE_CHECK(drawing_take(drawing, 'C', 512, NULL));
    printf("blocks that wait %d, done but behind %d; after a request %d\n", (int)before.blocks,
           (int)before.stuck_blocks, (int)pending_of(drawing).blocks);
    sim_stream_hold(cudaStreamPerThread, false);
}

static const struct {
    const char *config, *what;
    void (*run)(struct drawing *drawing);
    uint64_t capacity;
} cases[] = {
    {"x_retry_search:True", "48 MiB, which wait, of a segment of 56; the device is full",
     part_of_a_segment, 64 * BASE_MIB},
    {"x_wait:enough", "16 MiB; 4 blocks of 16 MiB wait for 4 streams; the device is full",
     one_of_four, 64 * BASE_MIB},
    {"x_reclaim_idle:True", "40 MiB, as stream 1 has in its cache; the device is full",
     cache_of_another, 64 * BASE_MIB},
    {"x_poll:own", "a stream for which nothing waits; blocks of another one wait for 3",
     request_of_a_bystander, BASE_GIB},
    {"x_skip_stuck:True", "one handle for the streams of two threads; the first one is busy",
     stream_of_each_thread, BASE_GIB},
};

static void run(size_t index, bool with) {
    struct drawing drawing;
    drawing_start(&drawing, with ? cases[index].config : "", cases[index].capacity);
    printf("  %-8s ", with ? "with it" : "default");
    cases[index].run(&drawing);
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "record_stream_settings",
        .summary = "Settings of our own about blocks that wait for other streams.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    for (size_t index = 0; index < sizeof cases / sizeof *cases; ++index) {
        printf("%s: %s\n", cases[index].config, cases[index].what);
        run(index, false);
        run(index, true);
    }
}
