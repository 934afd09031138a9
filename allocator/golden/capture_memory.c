// Requests to the allocator, and what a client does with streams, events and the device besides.
#include "allocator/golden/capture_internal.h"

#include "allocator/golden/log.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY (80 * BASE_GIB)

static uint64_t word_number(const char *word) {
    uint64_t number = 0;
    BASE_CHECK(golden_parse_number(word, &number));
    return number;
}

//--------------------------------------------------------------------------------------------------
// Tensors.

static size_t block_size_of_last(const struct golden_capture_run *run) {
    for (size_t index = run->trace_count; index > 0; index--)
        if (run->trace[index - 1].action == ALLOCATOR_ALLOC)
            return run->trace[index - 1].block_size;
    return 0;
}

static void perform_malloc(struct golden_capture_run *run,
                           const struct golden_capture_operation *operation) {
    struct golden_capture_thread *const self = golden__capture_self();
    const cudaStream_t stream = golden__capture_stream(run, operation->words[1]);
    const cudaStream_t before = self->current;
    self->current =
        operation->word_count > 3 ? golden__capture_stream(run, operation->words[3]) : stream;
    void *pointer = NULL;
    const enum base_status status =
        allocator_malloc(run->allocator, 0, word_number(operation->words[2]), stream, &pointer);
    self->current = before;
    if (status == BASE_OK) {
        const size_t tensor = golden__capture_tensor(run, operation->words[0]);
        const size_t size = block_size_of_last(run);
        run->tensors[tensor].pointer = run->tensors[tensor].last = pointer;
        golden__capture_print_address(run, pointer);
        fprintf(run->output, " size %zu", size);
        golden__capture_own(run, (uintptr_t)pointer, (uintptr_t)pointer + size, tensor);
    }
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
}

static void perform_free(struct golden_capture_run *run, const char *name) {
    const size_t index = golden__capture_tensor(run, name);
    struct golden_capture_tensor *const tensor = &run->tensors[index];
    if (tensor->pointer == NULL) {
        fputs("no such tensor", run->output);
        return;
    }
    void *const pointer = tensor->pointer;
    tensor->pointer = NULL;
    const enum base_status status = allocator_free(run->allocator, pointer);
    if (status == BASE_OK)
        fputs("ok", run->output);
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
}

static void perform_record(struct golden_capture_run *run, const char *name, cudaStream_t stream) {
    const size_t tensor = golden__capture_tensor(run, name);
    void *const pointer = run->tensors[tensor].pointer;
    if (pointer == NULL) {
        fputs("no such tensor", run->output);
        return;
    }
    const enum base_status status = run->plant == GOLDEN_CAPTURE_NO_RECORD
                                        ? BASE_OK
                                        : allocator_record_stream(run->allocator, pointer, stream);
    if (status == BASE_OK)
        fputs("ok", run->output);
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
}

static void perform_empty(struct golden_capture_run *run,
                          const struct golden_capture_operation *operation) {
    const enum base_status status =
        operation->word_count == 0
            ? allocator_empty_cache(run->allocator)
            : cca_pool_empty_cache(run->allocator, 0, golden__capture_pool(operation->words[0]));
    golden__capture_print_error(run, status);
    golden__capture_print_events(run);
}

//--------------------------------------------------------------------------------------------------
// Work.

static void do_nothing(const void *argument) { (void)argument; }

static void perform_launch(struct golden_capture_run *run,
                           const struct golden_capture_operation *operation) {
    char label[1024];
    int length = 0;
    for (size_t word = 0; word < operation->word_count; word++) {
        length += snprintf(label + length, sizeof label - (size_t)length, "%s%s",
                           word == 0 ? "" : ",", operation->words[word]);
        BASE_CHECK_LT((size_t)length, sizeof label);
    }
    const cudaStream_t stream = golden__capture_stream(run, operation->words[0]);
    if (golden__capture_print_cuda(run, sim_launch(stream, "kernel", do_nothing, NULL, 0)))
        golden__capture_note_node(run, stream, label);
}

static void add_named(struct golden_capture_named **items, size_t *count, size_t *capacity,
                      const char *name, void *handle) {
    *items = golden__capture_grow(*items, *count, capacity, sizeof **items);
    (*items)[(*count)++] = (struct golden_capture_named){name, handle};
}

static cudaError_t make(struct golden_capture_run *run, enum golden_capture_verb verb,
                        const char *name) {
    cudaStream_t stream;
    cudaEvent_t event;
    cudaError_t error;
    if (verb == GOLDEN_CAPTURE_EVENT) {
        error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (error == cudaSuccess)
            add_named(&run->events, &run->event_count, &run->event_capacity, name, event);
        return error;
    }
    error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return error;
    add_named(&run->streams, &run->stream_count, &run->stream_capacity, name, stream);
    sim_stream_hold(stream, run->holds);
    return cudaSuccess;
}

// Held streams do not run: an event that is recorded then stays pending.
static void set_held(struct golden_capture_run *run, bool held) {
    run->holds = held;
    sim_stream_hold(NULL, held);
    for (size_t index = 0; index < run->stream_count; index++)
        sim_stream_hold(run->streams[index].handle, held);
}

static void perform_setdeps(struct golden_capture_run *run,
                            const struct golden_capture_operation *operation) {
    cudaStream_t others[GOLDEN_CAPTURE_WORD_COUNT_MAX];
    for (size_t word = 1; word < operation->word_count; word++)
        others[word - 1] = golden__capture_stream(run, operation->words[word]);
    golden__capture_set_deps(run, golden__capture_stream(run, operation->words[0]), others,
                             operation->word_count - 1);
}

// A call of the runtime that says only whether it went well.
static cudaError_t runtime_call(struct golden_capture_run *run,
                                const struct golden_capture_operation *operation) {
    const char *const *const words = operation->words;
    void *memory;
    switch (operation->verb) {
    case GOLDEN_CAPTURE_STREAM:
    case GOLDEN_CAPTURE_EVENT:
        return make(run, operation->verb, words[0]);
    case GOLDEN_CAPTURE_EVREC:
        return cudaEventRecord(golden__capture_event(run, words[0]),
                               golden__capture_stream(run, words[1]));
    case GOLDEN_CAPTURE_EVWAIT:
        return cudaStreamWaitEvent(golden__capture_stream(run, words[0]),
                                   golden__capture_event(run, words[1]), 0);
    case GOLDEN_CAPTURE_SYNC:
        return cudaStreamSynchronize(golden__capture_stream(run, words[0]));
    case GOLDEN_CAPTURE_DEVSYNC:
        return cudaDeviceSynchronize();
    case GOLDEN_CAPTURE_EVQUERY:
        return cudaEventQuery(golden__capture_event(run, words[0]));
    case GOLDEN_CAPTURE_EVSYNC:
        return cudaEventSynchronize(golden__capture_event(run, words[0]));
    case GOLDEN_CAPTURE_RAWMALLOC:
        return cudaMalloc(&memory, word_number(words[0]));
    default: {
        enum cudaStreamCaptureMode mode = golden__capture_mode(words[0]);
        return cudaThreadExchangeStreamCaptureMode(&mode);
    }
    }
}

//--------------------------------------------------------------------------------------------------

void golden__capture_memory_perform(struct golden_capture_run *run,
                                    const struct golden_capture_operation *operation) {
    const char *const *const words = operation->words;
    switch (operation->verb) {
    case GOLDEN_CAPTURE_MALLOC:
        perform_malloc(run, operation);
        return;
    case GOLDEN_CAPTURE_FREE:
        perform_free(run, words[0]);
        return;
    case GOLDEN_CAPTURE_RECORD:
        perform_record(run, words[0], golden__capture_stream(run, words[1]));
        return;
    case GOLDEN_CAPTURE_EMPTY:
        perform_empty(run, operation);
        return;
    case GOLDEN_CAPTURE_LAUNCH:
        perform_launch(run, operation);
        return;
    case GOLDEN_CAPTURE_LAYOUT:
        golden__capture_print_layout(run);
        return;
    case GOLDEN_CAPTURE_STAT:
        golden__capture_print_stat(run);
        return;
    case GOLDEN_CAPTURE_DEPS:
        golden__capture_print_deps(run, golden__capture_stream(run, words[0]));
        return;
    case GOLDEN_CAPTURE_SETDEPS:
        perform_setdeps(run, operation);
        return;
    case GOLDEN_CAPTURE_EMPTYNODE:
        golden__capture_empty_node(run, golden__capture_stream(run, words[0]));
        return;
    case GOLDEN_CAPTURE_CUR:
        golden__capture_self()->current = golden__capture_stream(run, words[0]);
        fputs("ok", run->output);
        return;
    case GOLDEN_CAPTURE_COMPLETE:
        set_held(run, words[0][0] == '0');
        fputs("ok", run->output);
        return;
    case GOLDEN_CAPTURE_CAPACITY:
        sim_set_foreign_bytes(0, CAPACITY - word_number(words[0]));
        fputs("ok", run->output);
        return;
    case GOLDEN_CAPTURE_CKPT_GET:
    case GOLDEN_CAPTURE_CKPT_SET:
    case GOLDEN_CAPTURE_LIVE:
        golden__capture_checkpoint_perform(run, operation);
        return;
    default:
        (void)golden__capture_print_cuda(run, runtime_call(run, operation));
        return;
    }
}
