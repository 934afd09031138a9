// Reports of small wrong programs: the words of each cause and of what mends it (the classic
// mistakes are race_mistakes_test's); rules, counts, the file, the ways in which a program ends;
// the environment's text.
#define SIM_CALL_SITES
#include "simulator/sim.h"

#include "base/check.h"
#include "base/child.h"
#include "base/file.h"
#include "base/size.h"
#include "simulator/sim_race.h"

#include <cuda.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 4096

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

static cudaStream_t a, b, c; // non-blocking: streams 2, 3, 4
static cudaEvent_t event;
static char *x, *y;  // device memory, written
static char *pinned; // page-locked, written

static void body(const void *argument) { (void)argument; }

static void kernel(cudaStream_t stream, const char *name, const void *pointer,
                   enum sim_access_mode mode) {
    const struct sim_access access = {.mode = mode, .pointer = pointer, .size = SIZE};
    CALL(sim_launch_kernel(
        stream,
        &(struct sim_kernel){.name = name, .body = body, .accesses = &access, .access_count = 1}));
}

static void writes(cudaStream_t stream, const void *pointer) {
    kernel(stream, "writer", pointer, SIM_ACCESS_WRITE);
}
static void reads(cudaStream_t stream, const void *pointer) {
    kernel(stream, "reader", pointer, SIM_ACCESS_READ);
}

static void machine_start(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 * BASE_MIB}), BASE_OK);
    CALL(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CALL(cudaMalloc((void **)&x, SIZE));
    CALL(cudaMalloc((void **)&y, SIZE));
    CALL(cudaMallocHost((void **)&pinned, SIZE));
    BASE_CHECK(sim_host_access(pinned, SIZE, true));
    CALL(cudaMemset(x, 0, SIZE));
    CALL(cudaMemset(y, 0, SIZE));
    CALL(cudaDeviceSynchronize());
}

static void begin_with(const struct sim_race_options *options) {
    BASE_CHECK_EQ(sim_race_start(options), BASE_OK);
    machine_start();
}

static void begin(void) { begin_with(&(struct sim_race_options){.quiet = true}); }

// The only report, of RULE; its text has WORDS.
static void says(enum sim_race_rule rule, const char *words) {
    sim_race_stop();
    for (uint64_t i = 0; sim_race_count(SIM_RACE_RULE_COUNT) != 1 && i < 3; ++i)
        if (sim_race_report_at(i) != NULL)
            fprintf(stderr, "%s", sim_race_report_at(i)->text);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    const struct sim_race_report *report = sim_race_report_at(0);
    base_check_context("no \"%.90s\" in \"%.150s\"", words, report->text);
    if (strstr(report->text, words) == NULL)
        fprintf(stderr, "%s", report->text);
    BASE_CHECK_EQ(report->rule, rule);
    BASE_CHECK(strstr(report->text, words) != NULL);
    base_check_context(NULL);
}

// The same of a program that was begun.
static void also_says(const char *words) { says(sim_race_report_at(0)->rule, words); }

// --- Between streams ---

static void a_stream_that_never_waited(void) {
    begin();
    writes(a, x);
    reads(b, x);
    says(SIM_RACE_READ_WRITE,
         "  missing  stream 3 never waited for stream 2 behind kernel writer\n");
    also_says(
        "  mend     record an event in stream 2 after kernel writer and make stream 3 wait for "
        "it before kernel reader\n");
    also_says("; the first writes, the second reads\n");
}

static void two_of_the_same_name_are_told_apart(void) {
    begin();
    writes(a, x);
    writes(b, x);
    says(SIM_RACE_WRITE_WRITE, "behind the first kernel writer\n");
    also_says("before the second kernel writer\n");
    also_says("; both write\n");
}

static void a_wait_before_the_record(void) {
    begin();
    CALL(cudaStreamWaitEvent(b, event, 0));
    writes(a, x);
    CALL(cudaEventRecord(event, a));
    reads(b, x);
    says(SIM_RACE_READ_WRITE, "for an event that was recorded only later at ");
    also_says(": a wait sees the records before it\n");
    also_says(
        "  mend     record the event after kernel writer, and only then make stream 3 wait for "
        "it\n");
}

static void an_event_for_which_another_stream_waits(void) {
    begin();
    writes(a, x);
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(c, event, 0));
    reads(c, x);
    writes(c, y);
    reads(b, x);
    says(SIM_RACE_READ_WRITE, "an event was recorded in stream 2 behind kernel writer at ");
    also_says(", but stream 3 never waited for it; stream 4 did at ");
    also_says("  mend     make stream 3 wait for that event before kernel reader\n");
}

static void an_older_wait_reaches_only_so_far(void) {
    begin();
    writes(a, y); // operation 1
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(b, event, 0));
    reads(b, y);
    reads(a, y);
    writes(a, x); // operation 4
    reads(b, x);
    says(SIM_RACE_READ_WRITE, "stream 3 comes behind stream 2 only up to that one's operation 2; "
                              "kernel writer is its operation 4\n");
}

static void the_legacy_stream_does_not_order_non_blocking_ones(void) {
    begin();
    writes(0, x);
    reads(b, x);
    says(SIM_RACE_READ_WRITE,
         "stream 3 is non-blocking: the legacy stream orders only blocking streams\n");
    also_says("record an event in the legacy stream after kernel writer");
}

// What happened long before, with other work behind it, is no cause.
static void an_event_of_long_ago_is_not_blamed(void) {
    begin();
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(b, event, 0));
    reads(a, y);
    reads(b, y);
    writes(b, x);
    writes(a, x);
    says(SIM_RACE_WRITE_WRITE, "stream 2 never waited for stream 3 behind the first kernel writer");
}

static void devices_are_named_where_there_are_several(void) {
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.device_count = 2, .capacity_bytes = 64 * BASE_MIB}),
        BASE_OK);
    CALL(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CALL(cudaSetDevice(1));
    CALL(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CALL(cudaMalloc((void **)&x, SIZE));
    CALL(cudaMemsetAsync(x, 1, SIZE, b));
    CALL(cudaMemcpyPeerAsync(x, 1, x, 1, 0, a));
    CALL(cudaMemsetAsync(x, 1, SIZE, 0));
    says(SIM_RACE_WRITE_WRITE, "(device 1)");
    also_says("the legacy stream of device 1");
    CALL(cudaSetDevice(0));
}

// --- The host ---

static void the_host_waits_for_nothing(void) {
    begin();
    CALL(cudaMemcpyAsync(pinned, x, SIZE, cudaMemcpyDeviceToHost, a));
    (void)sim_host_access(pinned, SIZE, false);
    says(SIM_RACE_HOST_ACCESS, "the host did not wait for the copy in stream 2\n");
    also_says("wait for the copy before the host reads (cudaEventSynchronize of an event recorded");
    also_says("host read of 4096 bytes");
}

static void the_host_waits_for_another_stream(void) {
    begin();
    CALL(cudaMemcpyAsync(pinned, x, SIZE, cudaMemcpyDeviceToHost, a));
    writes(b, y);
    CALL(cudaStreamSynchronize(b));
    (void)sim_host_access(pinned, SIZE, false);
    says(SIM_RACE_HOST_ACCESS, " for stream 3, which does not come behind the copy in stream 2\n");
}

static void the_host_waits_for_an_event_before_the_work(void) {
    begin();
    writes(a, y);
    CALL(cudaEventRecord(event, a));
    CALL(cudaMemcpyAsync(pinned, x, SIZE, cudaMemcpyDeviceToHost, a));
    CALL(cudaEventSynchronize(event));
    (void)sim_host_access(pinned, SIZE, false);
    says(SIM_RACE_HOST_ACCESS, " for what was enqueued in stream 2 before the copy\n");
}

// --- Host threads that nothing orders ---

static void *copy_in_thread(void *unused) {
    CALL(cudaMemcpyAsync(x, pinned, SIZE, cudaMemcpyHostToDevice, a));
    return unused;
}

// Not by base/thread.h, whose starts and joins hand over.
static void run_in_thread(void *(*body_of_thread)(void *)) {
    pthread_t thread;
    BASE_CHECK_EQ(pthread_create(&thread, NULL, body_of_thread, NULL), 0);
    BASE_CHECK_EQ(pthread_join(thread, NULL), 0);
}

// One of the reports has WORDS: the other thread does not know of the memory either.
static void one_says(const char *words) {
    uint64_t i = 0;
    sim_race_stop();
    while (sim_race_report_at(i) != NULL && strstr(sim_race_report_at(i)->text, words) == NULL)
        ++i;
    base_check_context("no \"%.200s\"", words);
    BASE_CHECK(sim_race_report_at(i) != NULL);
    base_check_context(NULL);
}

static void a_buffer_that_another_thread_wrote(void) {
    BASE_CHECK_EQ(sim_reading("threads", "strict"), BASE_OK);
    begin();
    (void)sim_host_access(pinned, SIZE, true);
    run_in_thread(copy_in_thread);
    one_says(
        "thread 2 enqueued or did the copy without a hand-off from thread 1, which did the host "
        "write at ");
    one_says("thread 2 enqueued or did the copy without a hand-off from thread 1, which did "
             "cudaHostAlloc at ");
    one_says("  mend     hand over by a lock, a condition or a join of base/thread.h");
    BASE_CHECK_EQ(sim_reading("threads", "shared"), BASE_OK);
}

static uint64_t given_block;

static void *give_in_thread(void *unused) {
    sim_block_give(given_block);
    return unused;
}

static void a_block_that_another_thread_gives_back(void) {
    BASE_CHECK_EQ(sim_reading("threads", "strict"), BASE_OK);
    begin();
    given_block = sim_block_take(x, SIZE, a, "shared");
    writes(a, x);
    run_in_thread(give_in_thread);
    one_says("thread 2 enqueued or did the giving back of the block without a hand-off from thread "
             "1, which did kernel writer at ");
    BASE_CHECK_EQ(sim_reading("threads", "shared"), BASE_OK);
}

// --- Life of memory ---

static void freed_in_a_stream_that_does_not_wait(void) {
    void *p;
    begin();
    CALL(cudaMallocAsync(&p, SIZE, a));
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(b, event, 0));
    writes(b, p);
    CALL(cudaFreeAsync(p, a));
    says(SIM_RACE_USE_AFTER_FREE, "cudaFreeAsync in stream 2 at ");
    also_says(" does not come behind kernel writer in stream 3\n");
    also_says("make stream 2 wait for it before cudaFreeAsync; or free the memory in stream 3\n");
}

static void used_behind_the_free(void) {
    void *p;
    begin();
    CALL(cudaMallocAsync(&p, SIZE, a));
    CALL(cudaFreeAsync(p, a));
    writes(a, p);
    says(SIM_RACE_USE_AFTER_FREE, "kernel writer comes after cudaFreeAsync at ");
    also_says("  mend     free the memory behind its last use\n");
}

static void freed_at_once(void) {
    void *p;
    begin();
    BASE_CHECK_EQ(sim_reading("free", "strict"), BASE_OK);
    CALL(cudaMalloc(&p, SIZE));
    writes(a, p);
    CALL(cudaFree(p));
    BASE_CHECK_EQ(sim_reading("free", "wait"), BASE_OK);
    says(SIM_RACE_USE_AFTER_FREE, "cudaFree at ");
    also_says(
        " is not ordered behind kernel writer in stream 2: it promises to wait for nothing\n");
    also_says("wait for stream 2 (cudaStreamSynchronize, or an event) before cudaFree\n");
}

static void used_before_it_is_there(void) {
    void *p;
    begin();
    CALL(cudaMallocAsync(&p, SIZE, a));
    writes(b, p);
    says(SIM_RACE_USE_BEFORE_ALLOC,
         "stream 3 never waited for stream 2, where cudaMallocAsync at ");
    also_says("; or use the memory in stream 2\n");
}

static void beyond_the_end(void) {
    begin();
    writes(a, x + SIZE / 2);
    says(SIM_RACE_UNMAPPED, "the memory of cudaMalloc at ");
    also_says(" ends before these bytes\n");
    also_says("  bytes    2048 at 0x");
}

static void without_the_right_to_access(void) {
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    begin();
    BASE_CHECK_EQ(cuMemAddressReserve(&address, SIM_PAGE_BYTES, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemCreate(&handle, SIM_PAGE_BYTES, &properties, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemMap(address, SIM_PAGE_BYTES, 0, handle, 0), CUDA_SUCCESS);
    writes(a, (const void *)(uintptr_t)address); // without cuMemSetAccess
    says(SIM_RACE_UNMAPPED, "the device has no right to access this memory\n");
    also_says("grant it (cudaDeviceEnablePeerAccess, cudaMemPoolSetAccess, cuMemSetAccess)\n");
}

static void freed_by_a_graph(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *p;
    begin();
    CALL(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    CALL(cudaMallocAsync(&p, SIZE, a));
    CALL(cudaFreeAsync(p, a));
    writes(a, p);
    CALL(cudaStreamEndCapture(a, &graph));
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, b));
    says(SIM_RACE_USE_AFTER_FREE, "  missing  kernel writer comes after the free at ");
    also_says("captured in stream 2\n           launched at ");
}

static void never_written(void) {
    void *p;
    begin();
    CALL(cudaMalloc(&p, SIZE));
    reads(a, p);
    says(SIM_RACE_UNINITIALISED, "  missing  nobody wrote these bytes since cudaMalloc at ");
    also_says("write them before kernel reader");
    also_says("bytes    0 to 4095 of the 4 KiB at 0x");
    also_says(", allocated by cudaMalloc at ");
}

static void recorded_too_late(void) {
    begin();
    const uint64_t first = sim_block_take(x, SIZE, a, "activations");
    writes(a, x);
    CALL(cudaEventRecord(event, a));
    CALL(cudaStreamWaitEvent(b, event, 0));
    reads(b, x);
    sim_block_give(first);
    sim_block_use(first, b);
    (void)sim_block_take(x, SIZE, a, NULL);
    writes(a, x);
    says(SIM_RACE_REUSE, "  missing  record_stream(stream 3) at ");
    also_says(" comes after the block was given back at ");
    also_says("  mend     call it before the block is given back\n");
    also_says(", too late record_stream(stream 3) at ");
    also_says("  block    activations, 4096 bytes at 0x");
}

// When it was given back is not known, so that no call and no edge can be named.
static void a_block_that_nobody_holds(void) {
    begin();
    const struct sim_access access = {
        .mode = SIM_ACCESS_WRITE, .pointer = x, .size = 16, .block = 4242};
    const struct sim_kernel kernel = {
        .name = "writer", .body = body, .accesses = &access, .access_count = 1};
    CALL(sim_launch_kernel(a, &kernel));
    says(SIM_RACE_USE_AFTER_FREE,
         "  missing  kernel writer names block 4242, which nobody holds: it was given back long "
         "before, or never taken\n");
    also_says("  mend     name the block that holds the bytes; give it back after kernel writer is "
              "enqueued\n");
    BASE_CHECK(strstr(sim_race_report_at(0)->text, "CUDA call") == NULL);
}

static void handed_to_another_stream(void) {
    begin();
    const uint64_t first = sim_block_take(x, SIZE, a, NULL);
    writes(a, x);
    sim_block_give(first);
    (void)sim_block_take(x, SIZE, b, NULL);
    writes(b, x);
    says(SIM_RACE_REUSE,
         "the memory is handed from stream 2 to stream 3, which does not come behind "
         "the first kernel writer\n");
    also_says("in the allocator: make stream 3 wait for stream 2 first");
}

static void of_several_pieces_the_first_is_named(void) {
    begin();
    CALL(cudaMemset2DAsync(x, 128, 0, 16, 8, a));
    CALL(cudaMemset2DAsync(x, 128, 1, 16, 8, b));
    says(SIM_RACE_WRITE_WRITE, "  bytes    0 to 15 of the 4 KiB at 0x");
}

// --- Graphs ---

static void add_kernel(cudaGraph_t graph, cudaGraphNode_t *node, const char *name) {
    const struct sim_access access = {.mode = SIM_ACCESS_WRITE, .pointer = x, .size = SIZE};
    CALL(sim_graph_add_kernel(
        node, graph, NULL, 0,
        &(struct sim_kernel){.name = name, .body = body, .accesses = &access, .access_count = 1}));
}

static void an_edge_that_a_graph_has_not(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t first, second;
    begin();
    CALL(cudaGraphCreate(&graph, 0));
    add_kernel(graph, &first, "one");
    add_kernel(graph, &second, "two");
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, a));
    says(SIM_RACE_WRITE_WRITE, "no path of edges leads from kernel one to kernel two in graph ");
    also_says("  mend     add an edge from kernel one to kernel two (cudaGraphAddDependencies)\n");
    also_says("           launched at ");
}

// --- Rules, counts, what is kept ---

static void break_two_rules(void) {
    writes(a, x);
    writes(b, x);
    (void)sim_block_take(y, SIZE, a, NULL);
    reads(a, y);
}

static void rules_are_counted_and_chosen(void) {
    begin();
    break_two_rules();
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 2);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_WRITE_WRITE), 1);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), 1);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_REUSE), 0);
    BASE_CHECK(sim_race_report_at(1) != NULL && sim_race_report_at(2) == NULL);
    begin_with(&(struct sim_race_options){.quiet = true, .rules = 1u << SIM_RACE_UNINITIALISED});
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0); // anew
    break_two_rules();
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), 1);
    sim_race_clear();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    BASE_CHECK(sim_race_report_at(0) == NULL);
}

static void more_than_are_kept_are_counted(void) {
    begin_with(&(struct sim_race_options){.quiet = true, .report_count_max = 1});
    break_two_rules();
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 2);
    BASE_CHECK(sim_race_report_at(0) != NULL && sim_race_report_at(1) == NULL);
}

static void bad_options_are_refused(void) {
    sim_race_clear();
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.rules = 1u << 31}),
                  BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_race_start(NULL), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.report_path = ""}),
                  BASE_INVALID_VALUE);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.report_path = "/nowhere/at/all"}),
                  BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "/nowhere/at/all") != NULL);
    machine_start();
    writes(a, x);
    writes(b, x);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0); // nothing was started
}

// --- Standard error and the file ---

static char path[600];

static const char *path_of(const char *name) {
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_TMPDIR"), name);
    return path;
}

// Its lines as JSON; the last one is NULL.
static void file_read(const char *name, json_t *lines[8]) {
    char *text;
    size_t size;
    int count = 0;
    BASE_CHECK_EQ(base_file_read(name, 1 << 24, &text, &size), BASE_OK);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_error_t error;
        BASE_CHECK_LT(count, 7);
        lines[count] = json_loads(line, 0, &error);
        base_check_context("%.200s", error.text);
        BASE_CHECK(lines[count] != NULL);
        base_check_context(NULL);
        ++count;
    }
    lines[count] = NULL;
    free(text);
}

static void lines_free(json_t *lines[8]) {
    for (int i = 0; lines[i] != NULL; ++i)
        json_decref(lines[i]);
}

static const char *word(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

// The INDEX-th entry of that kind, NULL if there is none.
static const json_t *entry_of(const json_t *log, const char *kind, int index) {
    for (size_t i = 0; i < json_array_size(log); ++i)
        if (strcmp(word(json_array_get(log, i), "kind"), kind) == 0 && index-- == 0)
            return json_array_get(log, i);
    return NULL;
}

static void the_file_is_complete_when_it_appears(void) {
    const char *name = path_of("races.jsonl");
    json_t *lines[8];
    begin_with(&(struct sim_race_options){.quiet = true, .report_path = name});
    sim_race_label("line\n\"two\" \\ \xff");
    break_two_rules();
    sim_race_label(NULL);
    BASE_CHECK(access(name, F_OK) != 0);
    sim_race_stop();
    file_read(name, lines);
    BASE_CHECK(lines[2] != NULL && lines[3] == NULL);
    BASE_CHECK(strcmp(word(lines[0], "schema"), "tidemark-races-1") == 0);
    const struct sim_race_report *report = sim_race_report_at(0);
    BASE_CHECK(strcmp(word(lines[1], "rule"), "write-write") == 0);
    BASE_CHECK(strcmp(word(lines[1], "missing"),
                      "stream 3 never waited for stream 2 behind the first kernel writer") == 0);
    const json_t *first = json_object_get(lines[1], "first");
    BASE_CHECK(strcmp(word(first, "what"), "kernel writer") == 0);
    BASE_CHECK(strcmp(word(first, "site"), report->first.site) == 0);
    BASE_CHECK(strcmp(word(first, "label"), "line\n\"two\" \\ ?") == 0);
    BASE_CHECK_EQ(json_integer_value(json_object_get(first, "stream")), 2);
    BASE_CHECK_EQ(json_integer_value(json_object_get(lines[1], "start")), (int64_t)(uintptr_t)x);
    const json_t *log = json_object_get(lines[1], "log");
    BASE_CHECK_EQ(json_integer_value(json_object_get(entry_of(log, "operation", 0), "entry")),
                  json_integer_value(json_object_get(first, "entry")));
    BASE_CHECK(entry_of(log, "operation", 1) != NULL && entry_of(log, "operation", 2) == NULL);
    BASE_CHECK(json_is_null(json_object_get(lines[2], "first")) ||
               json_is_null(json_object_get(lines[2], "second")));
    lines_free(lines);
    unlink(name);
}

static void a_full_file_has_no_more_lines(void) {
    const char *name = path_of("full.jsonl");
    json_t *lines[8];
    begin_with(&(struct sim_race_options){
        .quiet = true, .report_count_max = 1, .report_path = name});
    break_two_rules();
    sim_race_stop();
    file_read(name, lines);
    BASE_CHECK(lines[1] != NULL && lines[2] == NULL); // the head, and one
    lines_free(lines);
}

static void the_log_has_the_edges(void) {
    const char *name = path_of("edges.jsonl");
    json_t *lines[8];
    begin_with(&(struct sim_race_options){.quiet = true, .report_path = name});
    CALL(cudaEventRecord(event, a));
    writes(a, x);
    CALL(cudaStreamWaitEvent(b, event, 0));
    reads(b, x);
    sim_race_stop();
    file_read(name, lines);
    const json_t *log = json_object_get(lines[1], "log");
    const json_t *record = entry_of(log, "record", 0), *wait = entry_of(log, "wait", 0);
    BASE_CHECK(record != NULL && entry_of(log, "record", 1) == NULL);
    BASE_CHECK(wait != NULL && entry_of(log, "wait", 1) == NULL);
    int64_t last = 0;
    for (size_t i = 0; i < json_array_size(log); ++i) {
        const int64_t entry = json_integer_value(json_object_get(json_array_get(log, i), "entry"));
        BASE_CHECK_GT(entry, last);
        last = entry;
    }
    BASE_CHECK_EQ(json_integer_value(json_object_get(wait, "object")),
                  json_integer_value(json_object_get(record, "object")));
    BASE_CHECK_EQ(json_integer_value(json_object_get(wait, "stream")), 3);
    BASE_CHECK_EQ(json_integer_value(json_object_get(wait, "other")), 2);
    lines_free(lines);
    unlink(name);
}

static void a_launch_has_the_nodes_next_to_the_pair(void) {
    const char *name = path_of("nodes.jsonl");
    json_t *lines[8];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t start, nodes[2];
    begin_with(&(struct sim_race_options){.quiet = true, .report_path = name});
    CALL(cudaGraphCreate(&graph, 0));
    CALL(cudaGraphAddEmptyNode(&start, graph, NULL, 0));
    add_kernel(graph, &nodes[0], "one");
    add_kernel(graph, &nodes[1], "two");
    CALL(cudaGraphAddDependencies(graph, &start, &nodes[0], NULL, 1));
    CALL(cudaGraphAddDependencies(graph, &start, &nodes[1], NULL, 1));
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, a));
    sim_race_stop();
    file_read(name, lines);
    const json_t *told = json_object_get(lines[1], "nodes");
    static const char *const whats[] = {"empty node", "kernel one", "kernel two"};
    static const char *const sides[] = {"", "first", "second"};
    BASE_CHECK_EQ(json_array_size(told), 3);
    for (size_t i = 0; i < 3; ++i) {
        const json_t *node = json_array_get(told, i);
        BASE_CHECK(strcmp(word(node, "what"), whats[i]) == 0);
        BASE_CHECK(strcmp(word(node, "side"), sides[i]) == 0);
        const json_t *dependencies = json_object_get(node, "dependencies");
        BASE_CHECK_EQ(json_array_size(dependencies), i > 0);
        if (i > 0)
            BASE_CHECK_EQ(json_integer_value(json_array_get(dependencies, 0)), 0);
    }
    lines_free(lines);
    unlink(name);
}

static void race_and_exit(void *options) {
    begin_with(options);
    break_two_rules();
    exit(0); // the checker is on
}

static void the_file_is_complete_when_the_program_exits(void) {
    struct sim_race_options options = {.report_path = path_of("exit.jsonl")};
    json_t *lines[8];
    struct base_child child = base_child_run(race_and_exit, &options);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK(strstr(child.error_text, "tidemark race 1: write-write: kernel writer at ") ==
               child.error_text);
    BASE_CHECK(strstr(child.error_text, "\ntidemark race 2: uninitialised: kernel reader at ") !=
               NULL);
    BASE_CHECK(strstr(child.error_text, "\ntidemark races: 2 reported, met 2 times\n") != NULL);
    base_child_deinit(&child);
    file_read(path, lines);
    BASE_CHECK(lines[2] != NULL && lines[3] == NULL);
    lines_free(lines);
    unlink(path);
}

static void race_twice(void *options) {
    begin_with(options);
    printf("before");
    writes(a, x);
    writes(b, x);
    printf("behind");
    _exit(0);
}

static void the_first_report_can_end_the_program(void) {
    struct sim_race_options options = {.fail = true, .report_path = path_of("fail.jsonl")};
    json_t *lines[8];
    struct base_child child = base_child_run(race_twice, &options);
    BASE_CHECK_EQ(child.exit_code, 1);
    BASE_CHECK(strcmp(child.output_text, "before") == 0);
    BASE_CHECK(strstr(child.error_text, "  mend     ") != NULL);
    base_child_deinit(&child);
    file_read(path, lines);
    BASE_CHECK(lines[1] != NULL && lines[2] == NULL);
    lines_free(lines);
    unlink(path);
}

static void race_quietly(void *unused) {
    (void)unused;
    begin();
    break_two_rules();
    sim_race_stop();
}

static void quiet_is_quiet(void) {
    struct base_child child = base_child_run(race_quietly, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(child.error_text[0], 0);
    base_child_deinit(&child);
}

// A child has the parent's file open, and its own reports.
static void a_forked_child_leaves_the_file_alone(void) {
    const char *name = path_of("fork.jsonl");
    json_t *lines[8];
    int status;
    begin_with(&(struct sim_race_options){.quiet = true, .report_path = name});
    writes(a, x);
    const pid_t child = fork();
    if (child == 0) {
        writes(b, x);
        exit(0);
    }
    BASE_CHECK_EQ(waitpid(child, &status, 0), child);
    BASE_CHECK_EQ(status, 0);
    BASE_CHECK(access(name, F_OK) != 0);
    writes(c, x);
    sim_race_stop();
    file_read(name, lines);
    BASE_CHECK(lines[1] != NULL && lines[2] == NULL);
    const json_t *second = json_object_get(lines[1], "second");
    BASE_CHECK_EQ(json_integer_value(json_object_get(second, "stream")), 4);
    lines_free(lines);
    unlink(name);
}

// --- The environment ---

struct environment {
    const char *races;
    void (*program)(void);
};

static void with_environment(void *argument) {
    const struct environment *environment = argument;
    BASE_CHECK_EQ(setenv("TIDEMARK_SIM_RACES", environment->races, 1), 0);
    machine_start();
    environment->program();
}

static struct base_child run_with(const char *races, void (*program)(void)) {
    struct environment environment = {races, program};
    return base_child_run(with_environment, &environment);
}

// The settings are read once in the life of a process, so nothing may have read them before.
static void the_environment_starts_the_checker(void) {
    static char text[700];
    json_t *lines[8];
    struct base_child child = run_with("on", break_two_rules);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK(strstr(child.error_text, "tidemark races: 2 reported") != NULL);
    base_child_deinit(&child);

    child = run_with("fail,blocks-only,rules=reuse+uninitialised", break_two_rules);
    BASE_CHECK_EQ(child.exit_code, 1);
    BASE_CHECK(strstr(child.error_text, "tidemark race 1: uninitialised") == child.error_text);
    base_child_deinit(&child);

    snprintf(text, sizeof text, "on,quiet,report=%s", path_of("with,comma.jsonl"));
    child = run_with(text, break_two_rules);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(child.error_text[0], 0);
    base_child_deinit(&child);
    file_read(path, lines);
    BASE_CHECK(lines[2] != NULL && lines[3] == NULL);
    lines_free(lines);
    unlink(path);

    child = run_with("off", break_two_rules);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(child.error_text[0], 0);
    base_child_deinit(&child);
}

static void start_quietly(void) {
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    break_two_rules();
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 2);
}

static void a_program_has_the_last_word(void) {
    struct base_child child = run_with("fail", start_quietly);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(child.error_text[0], 0);
    base_child_deinit(&child);
}

static void first_call(void *argument) {
    BASE_CHECK_EQ(setenv("TIDEMARK_SIM_RACES", argument, 1), 0);
    (void)cudaFree(NULL);
    _exit(0);
}

static void bad_text_is_one_line_and_exit_2(void) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "want off, or on or fail"},
        {"yes", "\"yes\""},
        {"on,loud", "\"loud\""},
        {"on,", "\"\""},
        {"off,quiet", "\"off\""},
        {"on,rules=reuse+none", "there is no rule \"none\": want write-write read-write"},
        {"on,rules=", "there is no rule \"\""},
        {"on,report=", "\"report=\""},
        {"on,report=/nowhere/at/all", "/nowhere/at/all"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct base_child child = base_child_run(first_call, (void *)cases[i].text);
        base_check_context("%s: %s", cases[i].text, child.error_text);
        BASE_CHECK_EQ(child.exit_code, 2);
        BASE_CHECK(strncmp(child.error_text, "TIDEMARK_SIM_RACES", 18) == 0);
        BASE_CHECK(strstr(child.error_text, cases[i].words) != NULL);
        BASE_CHECK(strchr(child.error_text, '\n') ==
                   child.error_text + strlen(child.error_text) - 1);
        base_check_context(NULL);
        base_child_deinit(&child);
    }
}

int main(void) {
    // First: these children must find the environment unread.
    the_environment_starts_the_checker();
    a_program_has_the_last_word();
    bad_text_is_one_line_and_exit_2();

    a_stream_that_never_waited();
    two_of_the_same_name_are_told_apart();
    a_wait_before_the_record();
    an_event_for_which_another_stream_waits();
    an_older_wait_reaches_only_so_far();
    the_legacy_stream_does_not_order_non_blocking_ones();
    an_event_of_long_ago_is_not_blamed();
    devices_are_named_where_there_are_several();
    the_host_waits_for_nothing();
    the_host_waits_for_another_stream();
    the_host_waits_for_an_event_before_the_work();
    a_buffer_that_another_thread_wrote();
    a_block_that_another_thread_gives_back();
    freed_in_a_stream_that_does_not_wait();
    used_behind_the_free();
    freed_at_once();
    used_before_it_is_there();
    beyond_the_end();
    without_the_right_to_access();
    freed_by_a_graph();
    never_written();
    recorded_too_late();
    a_block_that_nobody_holds();
    handed_to_another_stream();
    of_several_pieces_the_first_is_named();
    an_edge_that_a_graph_has_not();

    rules_are_counted_and_chosen();
    more_than_are_kept_are_counted();
    bad_options_are_refused();
    the_file_is_complete_when_it_appears();
    a_full_file_has_no_more_lines();
    the_log_has_the_edges();
    a_launch_has_the_nodes_next_to_the_pair();
    the_file_is_complete_when_the_program_exits();
    the_first_report_can_end_the_program();
    quiet_is_quiet();
    a_forked_child_leaves_the_file_alone();
    return 0;
}
