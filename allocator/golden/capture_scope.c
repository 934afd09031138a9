// Captures and pools: beginning and ending them, step by step or at once.
#include "allocator/golden/capture_internal.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct allocator_pool_id golden__capture_pool(const char *word) {
    struct allocator_pool_id id;
    BASE_CHECK_EQ(sscanf(word, "%" SCNu64 ",%" SCNu64, &id.capture, &id.user), 2);
    return id;
}

// A status, and what the allocator did.
static bool print_outcome(struct golden_capture_run *run, enum base_status status) {
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
    return status == BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// The steps of a capture. A false one is the last.

static struct golden_capture *capture_add(struct golden_capture_run *run, const char *name,
                                          cudaStream_t stream) {
    struct golden_capture *const capture = calloc(1, sizeof *capture);
    BASE_CHECK(capture != NULL);
    *capture = (struct golden_capture){.name = name, .stream = stream};
    run->captures = golden__capture_grow(run->captures, run->capture_count, &run->capture_capacity,
                                         sizeof *run->captures);
    run->captures[run->capture_count++] = capture;
    return capture;
}

static bool begin_pool(struct golden_capture_run *run, struct golden_capture *capture,
                       const char *pool) {
    const struct cca_pool_filter filter = cca_capture_filter(&capture->accepted);
    capture->pool = strcmp(pool, "new") == 0
                        ? (struct allocator_pool_id){.capture = ++run->pool_number}
                        : golden__capture_pool(pool);
    fprintf(run->output, "pool p%" PRIu64 ",%" PRIu64 " ", capture->pool.capture,
            capture->pool.user);
    return print_outcome(run,
                         cca_pool_begin(run->allocator, 0, capture->pool,
                                        run->plant == GOLDEN_CAPTURE_NO_FILTER ? NULL : &filter));
}

// The allocator is told of the driver's number; the scope takes the capture's streams from here on.
static bool began(struct golden_capture_run *run, struct golden_capture *capture,
                  cudaError_t error) {
    unsigned long long number = 0;
    enum cudaStreamCaptureStatus state;
    if (!golden__capture_print_cuda(run, error))
        return false;
    BASE_CHECK_EQ(
        cudaStreamGetCaptureInfo(capture->stream, &state, &number, NULL, NULL, NULL, NULL),
        cudaSuccess);
    capture->mark = number;
    fprintf(run->output, " capture %zu", ++run->capture_number);
    return true;
}

static bool begin_driver(struct golden_capture_run *run, struct golden_capture *capture,
                         const char *mode) {
    const bool well =
        began(run, capture, cudaStreamBeginCapture(capture->stream, golden__capture_mode(mode)));
    if (well)
        capture->accepted = capture->mark;
    return well;
}

// Without a capture of the driver the mark is of a number that no stream has.
static bool begin_mark(struct golden_capture_run *run, struct golden_capture *capture) {
    if (capture->mark == 0)
        capture->mark = --run->mark;
    if (run->plant == GOLDEN_CAPTURE_NO_MARK)
        return true;
    return print_outcome(run, cca_capture_begin(run->allocator, 0,
                                                &(struct cca_capture){.id = capture->mark,
                                                                      .stream = capture->stream}));
}

static bool end_driver(struct golden_capture_run *run, struct golden_capture *capture) {
    cudaGraph_t graph = NULL;
    const bool well =
        golden__capture_print_cuda(run, cudaStreamEndCapture(capture->stream, &graph));
    if (well)
        capture->graph = graph;
    return well;
}

static bool end_mark(struct golden_capture_run *run, const struct golden_capture *capture) {
    if (run->plant == GOLDEN_CAPTURE_NO_MARK)
        return true;
    return print_outcome(
        run, cca_capture_end(run->allocator, 0, capture == NULL ? --run->mark : capture->mark));
}

static bool end_pool(struct golden_capture_run *run, struct golden_capture *capture) {
    return print_outcome(run, cca_pool_end(run->allocator, 0, capture->pool));
}

//--------------------------------------------------------------------------------------------------
// All steps.

static void begin(struct golden_capture_run *run, const struct golden_capture_operation *operation,
                  const char *mode) {
    const cudaStream_t stream = golden__capture_stream(run, operation->words[1]);
    struct golden_capture *const capture = capture_add(run, operation->words[0], stream);
    fputs("\n  ", run->output);
    bool well = begin_pool(run, capture, operation->words[2]);
    if (well) {
        fputs("\n  driver ", run->output);
        well = begin_driver(run, capture, mode);
    }
    if (well) {
        fputs("\n  mark ", run->output);
        (void)begin_mark(run, capture);
    }
    golden__capture_self()->current = stream;
}

static void end(struct golden_capture_run *run, struct golden_capture *capture) {
    fputs("\n  driver ", run->output);
    bool well = end_driver(run, capture);
    if (well) {
        fputs("\n  mark ", run->output);
        well = end_mark(run, capture);
    }
    if (well) {
        fputs("\n  pool ", run->output);
        (void)end_pool(run, capture);
    }
    golden__capture_self()->current = NULL;
}

// Into the graph that another stream captures, or into one of its own.
static void begin_to(struct golden_capture_run *run,
                     const struct golden_capture_operation *operation, const char *mode) {
    const cudaStream_t stream = golden__capture_stream(run, operation->words[1]);
    struct golden_capture *const capture = capture_add(run, operation->words[0], stream);
    enum cudaStreamCaptureStatus state;
    cudaGraph_t graph = NULL;
    const cudaGraphNode_t *terminals = NULL;
    size_t count = 0;
    if (strcmp(operation->words[2], "body") == 0)
        BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    else
        BASE_CHECK_EQ(cudaStreamGetCaptureInfo(golden__capture_stream(run, operation->words[2]),
                                               &state, NULL, &graph, &terminals, NULL, &count),
                      cudaSuccess);
    (void)began(run, capture,
                cudaStreamBeginCaptureToGraph(stream, graph, terminals, NULL, count,
                                              golden__capture_mode(mode)));
}

//--------------------------------------------------------------------------------------------------
// User pools.

static bool accepts_thread(void *thread, cudaStream_t stream) {
    (void)stream;
    return thread == golden__capture_self();
}

static enum base_status pool_change(struct golden_capture_run *run, enum golden_capture_verb verb,
                                    struct allocator_pool_id id, int64_t *count) {
    const struct cca_pool_filter filter = {.accepts = accepts_thread,
                                           .context = golden__capture_self()};
    switch (verb) {
    case GOLDEN_CAPTURE_POOL_BEGIN:
        return cca_pool_begin(run->allocator, 0, id, &filter);
    case GOLDEN_CAPTURE_POOL_END:
        return cca_pool_end(run->allocator, 0, id);
    case GOLDEN_CAPTURE_POOL_CREATE:
        return cca_pool_create(run->allocator, 0, id, NULL);
    case GOLDEN_CAPTURE_POOL_RELEASE:
        return cca_pool_release(run->allocator, 0, id);
    default:
        return cca_pool_count(run->allocator, 0, id, count);
    }
}

static void pool(struct golden_capture_run *run, const struct golden_capture_operation *operation) {
    int64_t count = 0;
    const bool well = print_outcome(
        run, pool_change(run, operation->verb, golden__capture_pool(operation->words[0]), &count));
    if (well && operation->verb == GOLDEN_CAPTURE_POOL_COUNT)
        fprintf(run->output, " count %" PRId64, count);
}

static void reset(struct golden_capture_run *run, const struct golden_capture *capture) {
    if (run->plant == GOLDEN_CAPTURE_NO_RELEASE)
        return;
    (void)print_outcome(run, cca_pool_release(run->allocator, 0, capture->pool));
}

//--------------------------------------------------------------------------------------------------

void golden__capture_scope_perform(struct golden_capture_run *run,
                                   const struct golden_capture_operation *operation) {
    const char *const *const words = operation->words;
    const char *const mode = operation->word_count > 0 ? words[operation->word_count - 1] : "";
    struct golden_capture *const capture =
        operation->word_count > 0 ? golden__capture_find(run, words[0]) : NULL;
    switch (operation->verb) {
    case GOLDEN_CAPTURE_BEGIN:
        begin(run, operation, mode);
        return;
    case GOLDEN_CAPTURE_END:
        end(run, capture);
        return;
    case GOLDEN_CAPTURE_BEGIN_POOL:
        (void)begin_pool(run, capture_add(run, words[0], golden__capture_stream(run, words[1])),
                         words[2]);
        return;
    case GOLDEN_CAPTURE_BEGIN_DRIVER:
        (void)begin_driver(run, capture, mode);
        return;
    case GOLDEN_CAPTURE_BEGIN_MARK:
        (void)begin_mark(run, capture);
        return;
    case GOLDEN_CAPTURE_END_DRIVER:
        (void)end_driver(run, capture);
        return;
    case GOLDEN_CAPTURE_END_MARK:
        (void)end_mark(run, capture);
        return;
    case GOLDEN_CAPTURE_END_POOL:
        (void)end_pool(run, capture);
        return;
    case GOLDEN_CAPTURE_BEGIN_RAW:
        (void)began(run, capture_add(run, words[0], golden__capture_stream(run, words[1])),
                    cudaStreamBeginCapture(golden__capture_stream(run, words[1]),
                                           golden__capture_mode(mode)));
        return;
    case GOLDEN_CAPTURE_BEGIN_TO:
        begin_to(run, operation, mode);
        return;
    case GOLDEN_CAPTURE_RESET:
        reset(run, capture);
        return;
    case GOLDEN_CAPTURE_GRAPH:
        golden__capture_print_graph(run, capture->graph);
        return;
    default:
        pool(run, operation);
        return;
    }
}
