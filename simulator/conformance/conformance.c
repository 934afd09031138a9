// Answers, and what cases make and leave behind. Gates are gate.c.
#include "simulator/conformance/conformance.h"

#include "base/check.h"
#include "base/size.h"
#include "base/thread.h"
#include "simulator/conformance/cases.h"

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// How long the GPU gets to finish what nothing keeps pending.
#define EVENT_PATIENCE_NS 20000000
#define EVENT_STEP_NS     100000

// --- Answers ---

__attribute__((format(printf, 2, 3))) static void answer_add(struct conformance *c,
                                                             const char *format, ...) {
    va_list arguments;
    const size_t left = sizeof c->answer - c->length;
    const int separator = snprintf(c->answer + c->length, left, "%s", c->length > 0 ? " " : "");
    va_start(arguments, format);
    const int added = vsnprintf(c->answer + c->length + separator, left - (size_t)separator, format,
                                arguments);
    va_end(arguments);
    c->length += (size_t)separator + (size_t)added;
    BASE_CHECK(c->length < sizeof c->answer);
}

void answer_code(struct conformance *c, const char *label, cudaError_t error) {
    answer_add(c, "%s=%d", label, (int)error);
    (void)cudaGetLastError();
}

void answer_number(struct conformance *c, const char *label, int64_t number) {
    answer_add(c, "%s=%" PRId64, label, number);
}

void answer_yes(struct conformance *c, const char *label, bool yes) {
    answer_add(c, "%s=%s", label, yes ? "yes" : "no");
}

void answer_word(struct conformance *c, const char *label, const char *word) {
    answer_add(c, "%s=%s", label, word);
}

void answer_event(struct conformance *c, const char *label, cudaEvent_t event) {
    cudaError_t error = cudaEventQuery(event);
#ifndef TIDEMARK_SIMULATOR
    for (int64_t waited_ns = 0; error == cudaErrorNotReady && waited_ns < EVENT_PATIENCE_NS;
         waited_ns += EVENT_STEP_NS) {
        nanosleep(&(struct timespec){.tv_nsec = EVENT_STEP_NS}, NULL);
        error = cudaEventQuery(event);
    }
#endif
    (void)cudaGetLastError();
    if (error == cudaSuccess || error == cudaErrorNotReady)
        answer_word(c, label, error == cudaSuccess ? "done" : "pending");
    else
        answer_code(c, label, error);
}

// --- What cases make ---

static void *object_add(struct conformance *c, enum conformance_object_kind kind, const char *call,
                        cudaError_t error, void *handle) {
    if (error != cudaSuccess) {
        answer_code(c, call, error);
        return NULL;
    }
    BASE_CHECK(c->object_count < CONFORMANCE_OBJECT_COUNT_MAX);
    c->objects[c->object_count++] = (struct conformance_object){kind, handle};
    return handle;
}

cudaStream_t conformance_stream(struct conformance *c, unsigned int flags) {
    cudaStream_t stream = NULL;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, flags);
    return object_add(c, CONFORMANCE_STREAM, "cudaStreamCreateWithFlags", error, stream);
}

cudaEvent_t conformance_event(struct conformance *c) {
    cudaEvent_t event = NULL;
    const cudaError_t error = cudaEventCreate(&event);
    return object_add(c, CONFORMANCE_EVENT, "cudaEventCreate", error, event);
}

void *conformance_device_memory(struct conformance *c, size_t size) {
    void *pointer = NULL;
    const cudaError_t error = cudaMalloc(&pointer, size);
    return object_add(c, CONFORMANCE_DEVICE_MEMORY, "cudaMalloc", error, pointer);
}

void *conformance_pinned_memory(struct conformance *c, size_t size) {
    void *pointer = NULL;
    const cudaError_t error = cudaHostAlloc(&pointer, size, cudaHostAllocDefault);
    return object_add(c, CONFORMANCE_PINNED_MEMORY, "cudaHostAlloc", error, pointer);
}

cudaGraph_t conformance_graph(struct conformance *c) {
    cudaGraph_t graph = NULL;
    const cudaError_t error = cudaGraphCreate(&graph, 0);
    return object_add(c, CONFORMANCE_GRAPH, "cudaGraphCreate", error, graph);
}

cudaGraphExec_t conformance_graph_exec(struct conformance *c, cudaGraph_t graph) {
    cudaGraphExec_t exec = NULL;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    return object_add(c, CONFORMANCE_GRAPH_EXEC, "cudaGraphInstantiate", error, exec);
}

void conformance_keep_graph(struct conformance *c, cudaGraph_t graph) {
    if (graph != NULL)
        (void)object_add(c, CONFORMANCE_GRAPH, "", cudaSuccess, graph);
}

void conformance_keep_graph_exec(struct conformance *c, cudaGraphExec_t exec) {
    if (exec != NULL)
        (void)object_add(c, CONFORMANCE_GRAPH_EXEC, "", cudaSuccess, exec);
}

cudaEvent_t conformance_mark(struct conformance *c, cudaStream_t stream) {
    cudaEvent_t event = conformance_event(c);
    const cudaError_t error = cudaEventRecord(event, stream);
    if (error != cudaSuccess)
        answer_code(c, "cudaEventRecord", error);
    return event;
}

int conformance_byte(const void *device_memory) {
    static unsigned char byte; // outlives a copy that comes late
    if (cudaDeviceSynchronize() != cudaSuccess ||
        cudaMemcpy(&byte, device_memory, 1, cudaMemcpyDefault) != cudaSuccess)
        return -1;
    return byte;
}

// --- Threads ---

struct thread_work {
    struct conformance *c;
    void (*body)(struct conformance *c);
};

static void thread_run(void *argument) {
    const struct thread_work *work = argument;
    work->body(work->c);
}

void conformance_in_thread(struct conformance *c, void (*body)(struct conformance *c)) {
    struct thread_work work = {c, body};
    struct base_thread thread;
    base_thread_start(&thread, thread_run, &work);
    base_thread_join(&thread);
}

// --- Running ---

// A case starts as in a new process: the current device is 0, there is no last error.
static void machine_begin(void) {
#ifdef TIDEMARK_SIMULATOR
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = CONFORMANCE_DEVICE_COUNT,
                                                      .capacity_bytes = 2 * BASE_GIB}),
                  BASE_OK);
#endif
    (void)cudaSetDevice(0);
    (void)cudaGetLastError();
}

// A capture that the case left would make what follows fail.
static void captures_end(const struct conformance *c) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    for (int i = 0; i < c->object_count; ++i) {
        enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        cudaGraph_t graph = NULL;
        if (c->objects[i].kind == CONFORMANCE_STREAM &&
            cudaStreamIsCapturing(c->objects[i].handle, &status) == cudaSuccess &&
            status != cudaStreamCaptureStatusNone &&
            cudaStreamEndCapture(c->objects[i].handle, &graph) == cudaSuccess)
            (void)cudaGraphDestroy(graph);
    }
    mode = cudaStreamCaptureModeGlobal;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
}

static void object_end(const struct conformance_object *object) {
    switch (object->kind) {
    case CONFORMANCE_STREAM: (void)cudaStreamDestroy(object->handle); break;
    case CONFORMANCE_EVENT: (void)cudaEventDestroy(object->handle); break;
    case CONFORMANCE_DEVICE_MEMORY: (void)cudaFree(object->handle); break;
    case CONFORMANCE_PINNED_MEMORY: (void)cudaFreeHost(object->handle); break;
    case CONFORMANCE_GRAPH: (void)cudaGraphDestroy(object->handle); break;
    case CONFORMANCE_GRAPH_EXEC: (void)cudaGraphExecDestroy(object->handle); break;
    }
}

static void machine_end(struct conformance *c) {
    captures_end(c);
    conformance_open(c);
    int count = 0;
    (void)cudaGetDeviceCount(&count);
    for (int device = count - 1; device >= 0; --device)
        if (cudaSetDevice(device) == cudaSuccess)
            (void)cudaDeviceSynchronize();
    for (int i = c->object_count - 1; i >= 0; --i)
        object_end(&c->objects[i]);
    (void)cudaGetLastError();
}

void conformance_run(const struct conformance_case *one, struct conformance *c) {
    memset(c, 0, sizeof *c);
    machine_begin();
    one->run(c);
    machine_end(c);
}

bool conformance_answer_is_expected(const struct conformance_case *one,
                                    const struct conformance *c) {
    return strcmp(c->answer, one->expected) == 0 ||
           (one->also != NULL && strcmp(c->answer, one->also) == 0);
}

// --- The list ---

#define GROUP_ROW(name, title) {title, conformance__cases_##name},
const struct conformance_group conformance_groups[] = {
    CONFORMANCE_GROUP_LIST(GROUP_ROW){NULL, NULL},
};

size_t conformance_case_count(void) {
    size_t count = 0;
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            ++count;
    return count;
}

const struct conformance_case *conformance_case_find(const char *name) {
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            if (strcmp(one->name, name) == 0)
                return one;
    return NULL;
}
