// The classic mistakes with streams, as programs make them: each is reported with words that say
// what to do, under every schedule, and nothing is said when it is mended.
//
// Memory comes from a small caching allocator as CUDA programs have one: a block goes back to the
// stream that it was taken for, and is handed out again at once, unless another stream was recorded
// for it; then when that one's work is done.
#define SIM_CALL_SITES
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include "base/check.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096 // of a block
#define BLOCKS_MAX 8
#define WORDS_MAX 4

static cudaStream_t stream, side, other; // NonBlocking
static cudaEvent_t ready, done;
static unsigned char *result;      // of the readers, a piece each
static unsigned char *host_buffer; // page-locked

// --- The allocator ---

struct cached {
    unsigned char *pointer;
    cudaStream_t owner;
    uint64_t block;       // 0: free
    cudaStream_t used_by; // recorded, or NULL
    cudaEvent_t last_use; // in that stream, when it was given back
    bool pending;
};
static struct {
    unsigned char *arena;
    int count;
    struct cached blocks[BLOCKS_MAX];
} cache;

static struct cached *cached_at(const void *pointer) {
    for (int i = 0; i < cache.count; ++i)
        if (cache.blocks[i].pointer == pointer)
            return &cache.blocks[i];
    base_check_failed(__FILE__, __LINE__, "the pointer is a block's");
}

static bool is_reusable(struct cached *cached, cudaStream_t wanted) {
    if (cached->block != 0 || cached->owner != wanted)
        return false;
    if (cached->pending && cudaEventQuery(cached->last_use) == cudaSuccess)
        cached->pending = false;
    return !cached->pending;
}

static void *cache_alloc(cudaStream_t wanted, const char *name, int line) {
    struct cached *cached = NULL;
    for (int i = 0; i < cache.count && cached == NULL; ++i)
        if (is_reusable(&cache.blocks[i], wanted))
            cached = &cache.blocks[i];
    if (cached == NULL) {
        BASE_CHECK_LT(cache.count, BLOCKS_MAX);
        cached = &cache.blocks[cache.count];
        *cached = (struct cached){.pointer = cache.arena + (ptrdiff_t)BYTES * cache.count++,
                                  .owner = wanted};
        BASE_CHECK_EQ(cudaEventCreate(&cached->last_use), cudaSuccess);
    }
    cached->used_by = NULL;
    sim_call_site(__FILE__, line);
    cached->block = (sim_block_take)(cached->pointer, BYTES, wanted, name);
    return cached->pointer;
}

static void cache_record_stream(const void *pointer, cudaStream_t user, int line) {
    cached_at(pointer)->used_by = user;
    sim_call_site(__FILE__, line);
    (sim_block_use)(cached_at(pointer)->block, user);
}

static void cache_free(void *pointer, int line) {
    struct cached *cached = cached_at(pointer);
    sim_call_site(__FILE__, line);
    (sim_block_give)(cached->block);
    cached->block = 0;
    cached->pending = cached->used_by != NULL;
    if (cached->pending)
        BASE_CHECK_EQ(cudaEventRecord(cached->last_use, cached->used_by), cudaSuccess);
}

// --- What programs do ---

static void body(const void *argument) { (void)argument; }

static void launch(cudaStream_t in, const char *name, const struct sim_access *access, int line) {
    sim_race_label(name);
    sim_call_site(__FILE__, line);
    BASE_CHECK_EQ((sim_launch_kernel)(in, &(struct sim_kernel){.name = name,
                                                               .body = body,
                                                               .accesses = access,
                                                               .access_count = 1}),
                  cudaSuccess);
    sim_race_label(NULL);
}

static void write_in(cudaStream_t in, const char *name, void *pointer, int line) {
    const struct sim_access access = {.mode = SIM_ACCESS_WRITE, .pointer = pointer, .size = BYTES};
    launch(in, name, &access, line);
}

static void read_in(cudaStream_t in, const char *name, const void *pointer, int line) {
    const struct sim_access access = {.mode = SIM_ACCESS_READ, .pointer = pointer, .size = BYTES};
    launch(in, name, &access, line);
}

static void record(cudaEvent_t event, cudaStream_t in, int line) {
    sim_call_site(__FILE__, line);
    BASE_CHECK_EQ((cudaEventRecord)(event, in), cudaSuccess);
}

static void wait(cudaStream_t in, cudaEvent_t event, int line) {
    sim_call_site(__FILE__, line);
    BASE_CHECK_EQ((cudaStreamWaitEvent)(in, event, 0), cudaSuccess);
}

static void order(cudaStream_t first, cudaEvent_t event, cudaStream_t second, int line) {
    record(event, first, line);
    wait(second, event, line);
}

// Each says where it was called from.
#define cache_alloc(...)         cache_alloc(__VA_ARGS__, __LINE__)
#define cache_record_stream(...) cache_record_stream(__VA_ARGS__, __LINE__)
#define cache_free(...)          cache_free(__VA_ARGS__, __LINE__)
#define launch(...)              launch(__VA_ARGS__, __LINE__)
#define write_in(...)            write_in(__VA_ARGS__, __LINE__)
#define read_in(...)             read_in(__VA_ARGS__, __LINE__)
#define record(...)              record(__VA_ARGS__, __LINE__)
#define wait(...)                wait(__VA_ARGS__, __LINE__)
#define order(...)               order(__VA_ARGS__, __LINE__)

// --- The mistakes ---

static void block_freed_while_a_side_stream_reads_it(bool mended) {
    void *x = cache_alloc(stream, "x");
    write_in(stream, "write x", x);
    order(stream, ready, side);
    read_in(side, "read x", x);
    if (mended)
        cache_record_stream(x, side);
    cache_free(x);
    write_in(stream, "write y", cache_alloc(stream, "y"));
}

static void record_stream_on_the_wrong_stream(bool mended) {
    void *x = cache_alloc(stream, "x");
    write_in(stream, "write x", x);
    order(stream, ready, side);
    read_in(side, "read x", x);
    cache_record_stream(x, mended ? side : other);
    cache_free(x);
    BASE_CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
    write_in(stream, "write y", cache_alloc(stream, "y"));
}

static void event_recorded_before_the_work(bool mended) {
    void *x = cache_alloc(stream, "x");
    if (!mended)
        record(ready, stream);
    write_in(stream, "write x", x);
    if (mended)
        record(ready, stream);
    wait(side, ready);
    read_in(side, "read x", x);
}

static void wait_in_the_wrong_direction(bool mended) {
    void *x = cache_alloc(stream, "x");
    write_in(stream, "write x", x);
    if (mended)
        order(stream, ready, side);
    else
        order(side, ready, stream);
    read_in(side, "read x", x);
}

// A view shares its storage's block; its own header lies in another one.
static void a_views_storage_is_recorded_under_another_block(bool mended) {
    unsigned char *storage = cache_alloc(stream, "storage"), *view = storage + BYTES / 4;
    void *header = cache_alloc(stream, "header of the view");
    const struct sim_access access = {SIM_ACCESS_READ, view, BYTES / 4, 0, 0, 0};
    write_in(stream, "write storage", storage);
    order(stream, ready, side);
    launch(side, "read view", &access);
    cache_record_stream(mended ? (void *)storage : header, side);
    cache_free(storage);
    write_in(stream, "write y", cache_alloc(stream, "y"));
}

static void reuse_across_a_forgotten_join_inside_a_capture(bool mended) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    void *x = cache_alloc(stream, "x");
    write_in(stream, "write x", x);
    order(stream, ready, side);
    read_in(side, "read x", x);
    if (mended)
        order(side, done, stream);
    cache_free(x);
    write_in(stream, "write y", cache_alloc(stream, "y"));
    order(side, done, stream); // too late, or once more
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
}

static void host_buffer_reused_during_an_async_copy(bool mended) {
    void *x = cache_alloc(stream, "x");
    (void)sim_host_access(host_buffer, BYTES, true);
    sim_race_label("copy");
    BASE_CHECK_EQ(cudaMemcpyAsync(x, host_buffer, BYTES, cudaMemcpyHostToDevice, stream),
                  cudaSuccess);
    sim_race_label(NULL);
    if (mended)
        BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    sim_race_label("next batch");
    (void)sim_host_access(host_buffer, BYTES, true);
    sim_race_label(NULL);
}

static void graph_replayed_twice_in_parallel(bool mended) {
    cudaGraph_t graph;
    cudaGraphExec_t execs[2];
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    write_in(stream, "step", result);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    for (int i = 0; i < 2; ++i)
        BASE_CHECK_EQ(cudaGraphInstantiate(&execs[i], graph, 0), cudaSuccess);
    sim_race_label("first launch");
    BASE_CHECK_EQ(cudaGraphLaunch(execs[0], stream), cudaSuccess);
    if (mended)
        order(stream, ready, side);
    sim_race_label("second launch");
    BASE_CHECK_EQ(cudaGraphLaunch(execs[1], side), cudaSuccess);
    sim_race_label(NULL);
}

// record_stream orders the reuse behind the reader. It does not order the reader behind the writer.
static void record_stream_is_right_but_the_reader_starts_before_the_writer_ended(bool mended) {
    void *x = cache_alloc(stream, "x");
    write_in(stream, "write x", x);
    if (mended)
        order(stream, ready, side);
    cache_record_stream(x, side);
    read_in(side, "read x", x);
    cache_free(x);
    write_in(stream, "write y", cache_alloc(stream, "y"));
}

// The same without an allocator of one's own: what one tells of a block counts, not where from.
static void a_block_is_taken_again_before_its_side_stream_is_done(bool mended) {
    const uint64_t first = sim_block_take(result, BYTES, stream, "batch 1");
    write_in(side, "write x", result);
    sim_block_use(first, side);
    sim_block_give(first);
    if (mended)
        order(side, ready, stream);
    (void)sim_block_take(result, BYTES, stream, "batch 2");
    write_in(stream, "write y", result);
}

static void a_block_is_used_after_it_was_given_back(bool mended) {
    const uint64_t block = sim_block_take(result, BYTES, stream, "batch");
    write_in(stream, "write x", result);
    if (!mended)
        sim_block_give(block);
    const struct sim_access access = {SIM_ACCESS_READ, result, BYTES, 0, 0, block};
    launch(stream, "read x", &access);
    if (mended)
        sim_block_give(block);
}

static void a_graph_is_launched_over_memory_that_others_hold_now(bool mended) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    const uint64_t own = sim_block_take(result, BYTES, stream, "of the graph");
    write_in(stream, "step", result);
    sim_block_give(own);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    sim_race_label("take");
    (void)sim_block_take(result + (mended ? BYTES : 0), BYTES, stream, "eager");
    sim_race_label("launch");
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    sim_race_label(NULL);
}

static const struct mistake {
    const char *name;
    void (*body)(bool mended);
    enum sim_race_rule rule;
    const char *first, *second;   // labels; of nodes, their own
    const char *words[WORDS_MAX]; // of the text; %s: a stream
    cudaStream_t *streams[WORDS_MAX];
    bool is_one_call; // the two are one call of the program
} mistakes[] = {
#define MISTAKE(name) #name, name
    {MISTAKE(block_freed_while_a_side_stream_reads_it),
     SIM_RACE_REUSE,
     "read x",
     "write y",
     {"the allocator was not told", "call record_stream(%s) before the block is given back",
      "x, 4096 bytes"},
     {NULL, &side},
     false},
    {MISTAKE(record_stream_on_the_wrong_stream),
     SIM_RACE_REUSE,
     "read x",
     "write y",
     {"record_stream(%s)", "does not name that one",
      "call record_stream(%s) before the block is given back"},
     {&other, NULL, &side},
     false},
    {MISTAKE(event_recorded_before_the_work),
     SIM_RACE_READ_WRITE,
     "write x",
     "read x",
     {"for an event that was recorded in %s", "before kernel write x, which it does not cover",
      "mend     record the event after kernel write x"},
     {&stream},
     false},
    {MISTAKE(wait_in_the_wrong_direction),
     SIM_RACE_READ_WRITE,
     "write x",
     "read x",
     {"%s waits for", "not the other way round", "record an event in %s after kernel write x"},
     {&stream, NULL, &stream},
     false},
    {MISTAKE(a_views_storage_is_recorded_under_another_block),
     SIM_RACE_REUSE,
     "read view",
     "write y",
     {"was called for another one, block header of the view",
      "call record_stream(%s) for the block that holds the bytes",
      "a view's memory is its storage's"},
     {NULL, &side},
     false},
    {MISTAKE(reuse_across_a_forgotten_join_inside_a_capture),
     SIM_RACE_REUSE,
     "read x",
     "write y",
     {"captured in %s", "not joined again before kernel write y"},
     {&side},
     false},
    {MISTAKE(host_buffer_reused_during_an_async_copy),
     SIM_RACE_HOST_ACCESS,
     "copy",
     "next batch",
     {"the host did not wait for", "in %s", "before the host writes", "cudaStreamSynchronize"},
     {NULL, &stream},
     false},
    {MISTAKE(graph_replayed_twice_in_parallel),
     SIM_RACE_WRITE_WRITE,
     "step",
     "step",
     {"launches in different streams run in parallel, unless they are of one executable",
      "launch both in one stream", "make %s wait for it before the second"},
     {NULL, NULL, &side},
     true},
    {MISTAKE(record_stream_is_right_but_the_reader_starts_before_the_writer_ended),
     SIM_RACE_READ_WRITE,
     "write x",
     "read x",
     {"keeps the block from being reused too early, it does not order %s behind kernel write x",
      "make %s wait for it before kernel read x"},
     {&side, &side},
     false},
    {MISTAKE(a_block_is_taken_again_before_its_side_stream_is_done),
     SIM_RACE_REUSE,
     "write x",
     "write y",
     {"was called in time", "wait for an event recorded in %s when the block is given back"},
     {NULL, &side},
     false},
    {MISTAKE(a_block_is_used_after_it_was_given_back),
     SIM_RACE_USE_AFTER_FREE,
     "",
     "read x",
     {"kernel read x was enqueued after the block was given back", "give the block back after"},
     {NULL},
     false},
    {MISTAKE(a_graph_is_launched_over_memory_that_others_hold_now),
     SIM_RACE_GRAPH_MEMORY,
     "take",
     "step",
     {"uses memory that block eager, taken outside its capture", "private pool"},
     {NULL},
     false},
};
#define MISTAKE_COUNT (sizeof mistakes / sizeof mistakes[0])

// --- Running them ---

static cudaStream_t stream_create(void) {
    cudaStream_t created;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking), cudaSuccess);
    return created;
}

static void run(const struct mistake *mistake, const char *schedule, bool mended) {
    void *pointer;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 * BASE_MIB}), BASE_OK);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    stream = stream_create();
    side = stream_create();
    other = stream_create();
    BASE_CHECK_EQ(cudaEventCreate(&ready), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&done), cudaSuccess);
    memset(&cache, 0, sizeof cache);
    BASE_CHECK_EQ(cudaMalloc(&pointer, (size_t)BLOCKS_MAX * BYTES), cudaSuccess);
    cache.arena = pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, (size_t)2 * BYTES), cudaSuccess);
    result = pointer;
    BASE_CHECK_EQ(cudaHostAlloc(&pointer, BYTES, cudaHostAllocDefault), cudaSuccess);
    host_buffer = pointer;
    mistake->body(mended);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    sim_race_stop();
}

static const char *label_of(const struct sim_race_operation *operation) {
    return operation->node[0] != '\0' ? operation->node : operation->label;
}

// "stream 5", as reports name it.
static void words_fill(char *text, size_t size, const char *words, const char *stream_name) {
    const char *hole = strstr(words, "%s");
    if (hole == NULL)
        snprintf(text, size, "%s", words);
    else
        snprintf(text, size, "%.*s%s%s", (int)(hole - words), words, stream_name, hole + 2);
}

// Streams have numbers in the order in which they were made, the legacy one before them.
static int stream_number(cudaStream_t *which) {
    return which == &stream ? 2 : which == &side ? 3 : 4;
}

static bool has_words(const struct sim_race_report *report, const struct mistake *mistake) {
    bool all = true;
    for (int i = 0; i < WORDS_MAX && mistake->words[i] != NULL; ++i) {
        char name[32] = "", text[256];
        if (mistake->streams[i] != NULL)
            snprintf(name, sizeof name, "stream %d", stream_number(mistake->streams[i]));
        words_fill(text, sizeof text, mistake->words[i], name);
        if (strstr(report->text, text) != NULL)
            continue;
        printf("%s: no \"%s\" in\n%s", mistake->name, text, report->text);
        all = false;
    }
    return all;
}

// Of the call in this file; 0: it is not there.
static int site_line(const struct sim_race_operation *operation) {
    const char *site = operation->node_site[0] != '\0' ? operation->node_site : operation->site;
    const char *number = strstr(site, "race_mistakes_test.c:");
    return number == NULL ? 0 : (int)strtol(strchr(number, ':') + 1, NULL, 10);
}

static bool is_reported(const struct mistake *mistake) {
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    BASE_CHECK_EQ(sim_race_count(mistake->rule), 1);
    const struct sim_race_report *report = sim_race_report_at(0);
    const char *first = label_of(&report->first), *second = label_of(&report->second);
    if (strcmp(first, mistake->first) != 0 || strcmp(second, mistake->second) != 0) {
        printf("%s: names \"%s\" and \"%s\"\n", mistake->name, first, second);
        return false;
    }
    const int line = site_line(&report->first), other_line = site_line(&report->second);
    if (line == 0 || other_line == 0 || (line == other_line) != mistake->is_one_call) {
        printf("%s: at lines %d and %d\n", mistake->name, line, other_line);
        return false;
    }
    return has_words(report, mistake);
}

int main(int argc, char **argv) {
    static const char *const schedules[] = {"eager", "lazy", "random:1", "random:2", "timed"};
    const bool show = argc > 1 && strcmp(argv[1], "--show") == 0;
    int wrong = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < MISTAKE_COUNT; ++i)
        for (size_t k = 0; k < sizeof schedules / sizeof schedules[0]; ++k) {
            base_check_context("%s, schedule %s", mistakes[i].name, schedules[k]);
            run(&mistakes[i], schedules[k], false);
            if (show && k == 0 && sim_race_report_at(0) != NULL)
                printf("--- %s\n%s\n", mistakes[i].name, sim_race_report_at(0)->text);
            wrong += !is_reported(&mistakes[i]);
            run(&mistakes[i], schedules[k], true);
            if (sim_race_report_at(0) != NULL)
                printf("%s, mended: %s", mistakes[i].name, sim_race_report_at(0)->text);
            BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
        }
    BASE_CHECK_EQ(wrong, 0);
    return 0;
}
