// The transcript: lines of text, the timeline, when files appear, and that writing one changes
// nothing about what is written down.
#include "base/check.h"
#include "base/child.h"
#include "base/file.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

static char paths[4][600];

// A path in the test's folder; INDEX is the buffer that keeps it.
static const char *path_of(int index, const char *name) {
    snprintf(paths[index], sizeof paths[index], "%s/%s", getenv("TEST_TMPDIR"), name);
    return paths[index];
}

static char *text_of(const char *path) {
    char *text;
    size_t size;
    BASE_CHECK_EQ(base_file_read(path, 1 << 24, &text, &size), BASE_OK);
    return text;
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

static void transcript_is(const char *path, const char *want) {
    char *text = text_of(path);
    base_check_context("got:\n%.150s", text);
    if (strcmp(text, want) != 0)
        fprintf(stderr, "got:\n%s\nwant:\n%s\n", text, want);
    BASE_CHECK(strcmp(text, want) == 0);
    base_check_context(NULL);
    free(text);
}

static void machine_start(const char *schedule) {
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    sim_reset();
}

static void body(const void *argument) { (void)argument; }

static void calls_and_operations_are_lines(void) {
    const char *path = path_of(0, "lines.txt");
    int *device_memory, *pinned;
    cudaStream_t a, b;
    cudaEvent_t event;
    machine_start("lazy");
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    CALL(cudaMalloc((void **)&device_memory, 4096));
    CALL(cudaMallocHost((void **)&pinned, 4096));
    CALL(cudaStreamCreate(&a));
    CALL(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CALL(cudaMemcpyAsync(device_memory + 2, pinned + 1, 40, cudaMemcpyHostToDevice, a));
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(b, event, 0));
    CALL(sim_launch(b, "square", body, NULL, 0));
    BASE_CHECK_EQ(cudaStreamQuery(a), cudaErrorNotReady);
    CALL(cudaStreamSynchronize(b));
    CALL(cudaFree(device_memory));
    BASE_CHECK_EQ(cudaFree(device_memory), cudaErrorInvalidValue);
    BASE_CHECK(!is_there(path)); // not yet complete
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    transcript_is(
        path,
        "# Tidemark simulator: Tidemark simulated device, schedule lazy\n"
        "# number, virtual time in us, thread, call\n"
        "       1        0.000   1  cudaMalloc(pointer, size=4096) = cudaSuccess, "
        "*pointer=d0+0x0\n"
        "       2        0.000   1  cudaMallocHost(pointer, size=4096) = cudaSuccess, "
        "*pointer=host1\n"
        "       3        0.000   1  cudaStreamCreate(stream) = cudaSuccess, *stream=2\n"
        "       4        0.000   1  cudaStreamCreateWithFlags(stream, flags=1) = cudaSuccess, "
        "*stream=3\n"
        "       5        0.000   1  cudaEventCreateWithFlags(event, flags=2) = cudaSuccess, "
        "*event=1\n"
        "       6        0.000   1  cudaMemcpyAsync(destination=d0+0x8, source=host1+0x4, "
        "size=40, kind=HostToDevice, stream=2) = cudaSuccess\n"
        "       7        0.000   1  cudaEventRecord(event=1, stream=2) = cudaSuccess\n"
        "       8        0.000   1  cudaStreamWaitEvent(stream=3, event=1, flags=0) = "
        "cudaSuccess\n"
        "       9        0.000   1  sim_launch(stream=3, name=\"square\", body, argument=NULL, "
        "argument_size=0) = cudaSuccess\n"
        "      10        0.000   1  cudaStreamQuery(stream=2) = cudaErrorNotReady\n"
        "      11            stream 2 #1: copy 40 bytes, pinned to device, 0.000 to 1.000\n"
        "      12        1.000   1  cudaStreamSynchronize(stream=3) = cudaSuccess\n"
        "      13            stream 2 #2: record event 1, 1.000 to 1.000\n"
        "      14            stream 3 #1: wait, 1.000 to 1.000, after stream 2 #2\n"
        "      15            stream 3 #2: kernel square, 1.000 to 2.000\n"
        "      16        2.000   1  cudaFree(pointer=d0+0x0) = cudaSuccess\n"
        "      17        2.000   1  cudaFree(pointer=d0+0x0) = cudaErrorInvalidValue\n");
}

static void calls_by_address_are_written_too(void) {
    const char *path = path_of(0, "address.txt");
    enum cudaDriverEntryPointQueryResult found;
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUdeviceptr address;
    machine_start("eager");
    CALL(cudaFree(NULL)); // the driver begins
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    CALL(cudaGetDriverEntryPointByVersion("cuMemAddressReserve", (void **)&reserve, 12000,
                                          cudaEnableDefault, &found));
    BASE_CHECK_EQ(reserve(&address, 4 << 20, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    char *text = text_of(path);
    BASE_CHECK(strstr(text, "  cuMemAddressReserve(") != NULL);
    BASE_CHECK(strstr(text, "size=4194304") != NULL);
    free(text);
}

static void call_from_inside(void *unused) {
    (void)unused;
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaErrorNotPermitted);
}

static void a_call_within_a_call_stands_behind_it(void) {
    const char *path = path_of(0, "nested.log");
    machine_start("eager");
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    CALL(cudaLaunchHostFunc(NULL, call_from_inside, NULL));
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    transcript_is(path,
                  "# Tidemark simulator: Tidemark simulated device, schedule eager\n"
                  "# number, virtual time in us, thread, call\n"
                  "       1        0.000   1  cudaLaunchHostFunc(stream=legacy, function, "
                  "user_data=NULL) = cudaSuccess\n"
                  "       2        1.000   1  cudaDeviceSynchronize() = cudaErrorNotPermitted\n"
                  "       3            legacy stream 1 #1: host function, 0.000 to 1.000\n");
}

static void each_life_of_the_machine_has_a_file(void) {
    machine_start("eager");
    BASE_CHECK_EQ(sim_transcript(path_of(0, "life.txt")), BASE_OK);
    CALL(cudaDeviceSynchronize());
    sim_reset();
    BASE_CHECK(is_there(path_of(0, "life.txt")));
    sim_reset(); // nothing was called
    CALL(cudaDeviceSynchronize());
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2}), BASE_OK);
    BASE_CHECK(is_there(path_of(0, "life.2.txt")));
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    BASE_CHECK(!is_there(path_of(0, "life.3.txt")));
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 1}), BASE_OK);
    CALL(cudaDeviceSynchronize()); // written nowhere
    BASE_CHECK(!is_there(path_of(0, "life.3.txt")));
}

static void a_path_that_cannot_be_written_is_told(void) {
    BASE_CHECK_EQ(sim_transcript("/nowhere/x.txt"), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "/nowhere/x.txt") != NULL);
    CALL(cudaDeviceSynchronize());
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
}

// --- The environment ---

static void one_call(void *path) {
    setenv("TIDEMARK_SIM_TRACE", path, 1);
    setenv("TIDEMARK_SIM_SCHEDULE", "random:9", 1);
    CALL(cudaDeviceSynchronize());
    BASE_CHECK(!is_there(path));
    exit(0); // the child of base/child.h would leave without handlers
}

static void no_call(void *path) {
    setenv("TIDEMARK_SIM_TRACE", path, 1);
    exit(0);
}

static int in_child(void (*body_of_child)(void *path), const char *path) {
    struct base_child child = base_child_run(body_of_child, (void *)(uintptr_t)path);
    const int exit_code = child.exit_code;
    if (exit_code != 0)
        BASE_CHECK(strstr(child.error_text, "TIDEMARK_SIM_TRACE: cannot write /nowhere/") ==
                   child.error_text);
    base_child_deinit(&child);
    return exit_code;
}

static void the_environment_asks_for_a_transcript(void) {
    BASE_CHECK_EQ(in_child(one_call, path_of(0, "environment.txt")), 0);
    transcript_is(path_of(0, "environment.txt"),
                  "# Tidemark simulator: Tidemark simulated device, schedule random:9\n"
                  "# number, virtual time in us, thread, call\n"
                  "       1        0.000   1  cudaDeviceSynchronize() = cudaSuccess\n");
    BASE_CHECK_EQ(in_child(one_call, "/nowhere/x.txt"), 2);
    BASE_CHECK_EQ(in_child(no_call, path_of(0, "none.txt")), 0);
    BASE_CHECK(!is_there(path_of(0, "none.txt")));
}

static void a_forked_child_leaves_the_file_alone(void) {
    const char *path = path_of(0, "fork.txt");
    machine_start("eager");
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    CALL(cudaDeviceSynchronize());
    const pid_t child = fork();
    BASE_CHECK_GE(child, 0);
    if (child == 0) {
        CALL(cudaDeviceSynchronize());
        exit(0);
    }
    int status;
    BASE_CHECK_EQ(waitpid(child, &status, 0), child);
    BASE_CHECK_EQ(status, 0);
    BASE_CHECK(!is_there(path));
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    transcript_is(path, "# Tidemark simulator: Tidemark simulated device, schedule eager\n"
                        "# number, virtual time in us, thread, call\n"
                        "       1        0.000   1  cudaDeviceSynchronize() = cudaSuccess\n");
}

// --- The same run with and without ---

static void streams_and_events(void) {
    cudaStream_t streams[3];
    cudaEvent_t events[3];
    char *memory;
    CALL(cudaMalloc((void **)&memory, 3000));
    for (int i = 0; i < 3; ++i) {
        CALL(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CALL(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    }
    for (int i = 0; i < 30; ++i) {
        CALL(cudaMemsetAsync(memory + 1000 * (i % 3), i, 1000, streams[i % 3]));
        CALL(cudaEventRecord(events[i % 3], streams[i % 3]));
        if (i % 4 == 0)
            CALL(cudaStreamWaitEvent(streams[(i + 1) % 3], events[i % 3], 0));
    }
    CALL(cudaDeviceSynchronize());
}

static void a_seed_gives_the_same_bytes(void) {
    for (int i = 0; i < 3; ++i) {
        machine_start(i < 2 ? "random:5" : "random:6");
        BASE_CHECK_EQ(sim_transcript(path_of(i, i == 0   ? "seed_a.txt"
                                                : i == 1 ? "seed_b.txt"
                                                         : "seed_c.txt")),
                      BASE_OK);
        streams_and_events();
        BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    }
    char *a = text_of(paths[0]), *b = text_of(paths[1]), *c = text_of(paths[2]);
    BASE_CHECK(strcmp(a, b) == 0);
    BASE_CHECK(strcmp(a, c) != 0);
    free(a);
    free(b);
    free(c);
}

#define STEPS 40
static int steps[2 * STEPS], step_count;
static struct base_mutex steps_lock = BASE_MUTEX_INITIALIZER;

static void steps_take(void *thread) {
    for (int i = 0; i < STEPS; ++i) {
        CALL(cudaMemsetAsync(NULL, 0, 0, cudaStreamPerThread));
        base_mutex_lock(&steps_lock);
        steps[step_count++] = *(int *)thread;
        base_mutex_unlock(&steps_lock);
    }
}

static void threads_take_turns(int order[2 * STEPS]) {
    struct base_thread threads[2];
    int numbers[2] = {1, 2};
    step_count = 0;
    sim_serialize(77);
    CALL(cudaDeviceSynchronize());
    for (int i = 0; i < 2; ++i)
        base_thread_start(&threads[i], steps_take, &numbers[i]);
    for (int i = 0; i < 2; ++i)
        base_thread_join(&threads[i]);
    sim_serialize_end();
    BASE_CHECK_EQ(step_count, 2 * STEPS);
    memcpy(order, steps, sizeof steps);
}

static void a_transcript_does_not_change_whose_turn_it_is(void) {
    int without[2 * STEPS], with[2 * STEPS];
    machine_start("eager");
    threads_take_turns(without);
    machine_start("eager");
    BASE_CHECK_EQ(sim_transcript(path_of(0, "turns.txt")), BASE_OK);
    threads_take_turns(with);
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    BASE_CHECK(memcmp(without, with, sizeof with) == 0);
}

static void calls_make(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; ++i) {
        CALL(sim_launch(cudaStreamPerThread, "kernel", body, NULL, 0));
        CALL(cudaStreamSynchronize(cudaStreamPerThread));
    }
}

// Three threads: 1,200 calls and 600 operations, and each line whole.
static void threads_write_whole_lines(void) {
    struct base_thread threads[3];
    const char *path = path_of(0, "threads.txt");
    machine_start("lazy");
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    for (int i = 0; i < 3; ++i)
        base_thread_start(&threads[i], calls_make, NULL);
    for (int i = 0; i < 3; ++i)
        base_thread_join(&threads[i]);
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    char *text = text_of(path), *rest = text, *line;
    int calls = 0, operations = 0;
    while ((line = strsep(&rest, "\n")) != NULL) {
        calls += strstr(line, "= cudaSuccess") != NULL;
        operations += strstr(line, ": kernel kernel, ") != NULL;
        BASE_CHECK(*line == '#' || *line == '\0' || strtoull(line, NULL, 10) > 0);
    }
    BASE_CHECK_EQ(calls, 1200);
    BASE_CHECK_EQ(operations, 600);
    free(text);
}

// --- The timeline ---

static json_t *event_find(json_t *events, const char *phase, const char *name) {
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) {
        const json_t *of_event = json_object_get(event, "name");
        if (strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0 &&
            of_event != NULL && strcmp(json_string_value(of_event), name) == 0)
            return event;
    }
    BASE_CHECK(!"there is such an event");
    return NULL;
}

static double number_of(const json_t *event, const char *key) {
    const json_t *number = json_object_get(event, key);
    BASE_CHECK(json_is_number(number));
    return json_number_value(number);
}

static double end_of(const json_t *event) {
    return number_of(event, "ts") + number_of(event, "dur");
}

static void timeline_write(const char *path) {
    char *memory;
    cudaStream_t a, b;
    cudaEvent_t event;
    machine_start("timed");
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    CALL(cudaMalloc((void **)&memory, 3 << 20));
    CALL(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CALL(cudaMemsetAsync(memory, 0, 3 << 20, a));
    CALL(sim_launch_kernel(a, &(struct sim_kernel){.name = "a \"long\" one",
                                                   .body = body,
                                                   .bytes = 1000000000}));
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(b, event, 0));
    CALL(sim_launch(b, "short", body, NULL, 0));
    CALL(cudaStreamSynchronize(b));
    CALL(cudaFree(memory));
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
}

static void the_timeline_has_rows_durations_arrows_and_memory(void) {
    const char *path = path_of(0, "timeline.json");
    timeline_write(path);
    json_error_t error;
    json_t *timeline = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (timeline == NULL)
        fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
    BASE_CHECK(timeline != NULL);
    json_t *events = json_object_get(timeline, "traceEvents");

    const json_t *fill = event_find(events, "X", "fill 3145728 bytes");
    const json_t *kernel = event_find(events, "X", "kernel a \"long\" one");
    const json_t *wait = event_find(events, "X", "wait");
    const json_t *record = event_find(events, "X", "record event 1");
    const json_t *second = event_find(events, "X", "kernel short");
    const json_t *synchronize = event_find(events, "X", "cudaStreamSynchronize");
    // One row a stream of device 0, which is process 2; stream 1 is the legacy one.
    BASE_CHECK_EQ(number_of(fill, "pid"), 2);
    BASE_CHECK_EQ(number_of(fill, "tid"), 2);
    BASE_CHECK_EQ(number_of(kernel, "tid"), 2);
    BASE_CHECK_EQ(number_of(second, "tid"), 3);
    BASE_CHECK_EQ(number_of(synchronize, "pid"), 1);
    // The order that the program asked for; 1 GB takes at least half a millisecond.
    BASE_CHECK(end_of(fill) <= number_of(kernel, "ts"));
    BASE_CHECK(number_of(kernel, "dur") > 500);
    BASE_CHECK(end_of(record) <= number_of(wait, "ts"));
    BASE_CHECK(end_of(wait) <= number_of(second, "ts"));
    BASE_CHECK(number_of(synchronize, "ts") < end_of(second));
    BASE_CHECK(end_of(synchronize) >= end_of(second) - 0.001);
    // The arrow leaves the record and arrives at the wait.
    const json_t *leaves = event_find(events, "s", "waits");
    const json_t *arrives = event_find(events, "f", "waits");
    BASE_CHECK_EQ(number_of(leaves, "id"), number_of(arrives, "id"));
    BASE_CHECK_EQ(number_of(leaves, "tid"), 2);
    BASE_CHECK_EQ(number_of(arrives, "tid"), 3);
    BASE_CHECK(number_of(leaves, "ts") >= number_of(record, "ts"));
    BASE_CHECK(number_of(leaves, "ts") <= end_of(record));
    BASE_CHECK(number_of(arrives, "ts") >= number_of(wait, "ts"));
    BASE_CHECK(number_of(arrives, "ts") <= end_of(wait));

    // Used memory: 0, two pages, 0.
    const int want[] = {0, 4 << 20, 0};
    size_t i, counters = 0;
    json_t *event;
    json_array_foreach(events, i, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "C") != 0)
            continue;
        BASE_CHECK_LT(counters, 3);
        BASE_CHECK_EQ(number_of(json_object_get(event, "args"), "bytes"), want[counters++]);
    }
    BASE_CHECK_EQ(counters, 3);
    json_decref(timeline);
}

int main(void) {
    unsetenv("TIDEMARK_SIM_TRACE");
    unsetenv("TIDEMARK_SIM_PROFILE");
    unsetenv("TIDEMARK_SIM_SCHEDULE");
    the_environment_asks_for_a_transcript();
    calls_and_operations_are_lines();
    a_call_within_a_call_stands_behind_it();
    calls_by_address_are_written_too();
    each_life_of_the_machine_has_a_file();
    a_path_that_cannot_be_written_is_told();
    a_forked_child_leaves_the_file_alone();
    a_seed_gives_the_same_bytes();
    a_transcript_does_not_change_whose_turn_it_is();
    threads_write_whole_lines();
    the_timeline_has_rows_durations_arrows_and_memory();
    return 0;
}
