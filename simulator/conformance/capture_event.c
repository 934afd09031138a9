// Section 6 in a capture, and the refusals of section 7.2 that are about events.
#include "simulator/conformance/graph_cases.h"

// An event that was recorded in a capture, which has ended.
static cudaEvent_t captured_event(struct conformance *c, cudaStream_t stream) {
    cudaEvent_t event = conformance_event(c);
    cudaError_t error = capture_begin(stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(event, stream);
    if (error != cudaSuccess)
        answer_code(c, "cudaEventRecord", error);
    (void)capture_end(c, stream);
    return event;
}

// --- A record in a capture ---

static void record_is_no_node(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    (void)conformance_mark(c, stream);
    answer_node_count(c, "nodes", capture_end(c, stream));
}

static void captured_event_in_each_mode(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i]));
        MUST(c, cudaEventRecord(event, stream));
        (void)capture_end(c, stream);
        answer_code(c, "query", cudaEventQuery(event));
        answer_code(c, "synchronize", cudaEventSynchronize(event));
    }
}

static void captured_event_recorded_again(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = captured_event(c, stream);
    answer_code(c, "captured", cudaEventQuery(event));
    MUST(c, cudaEventRecord(event, stream));
    answer_code(c, "synchronize", cudaEventSynchronize(event));
    answer_code(c, "query", cudaEventQuery(event));
}

static void captured_event_is_not_replayed(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaEventRecord(event, stream));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "query", cudaEventQuery(event));
}

static void captured_event_elapsed(struct conformance *c) {
    float milliseconds;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t before = conformance_mark(c, stream);
    MUST(c, cudaStreamSynchronize(stream));
    cudaEvent_t event = captured_event(c, stream);
    answer_yes(c, "fails", cudaEventElapsedTime(&milliseconds, before, event) != cudaSuccess);
    (void)cudaGetLastError();
}

static void captured_event_queried(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, cudaEventRecord(event, stream));
    answer_code(c, "query", cudaEventQuery(event));
    answer_end(c, "end", stream);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, cudaEventRecord(event, stream));
    answer_code(c, "synchronize", cudaEventSynchronize(event));
    answer_end(c, "end", stream);
}

static void captured_event_queried_unsafely(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaEventRecord(event, stream));
    answer_code(c, "query", cudaEventQuery(event));
    answer_end(c, "end", stream);
}

static void captured_event_destroyed(struct conformance *c) {
    cudaEvent_t event = NULL;
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaEventCreate(&event));
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t top = stream_tip(stream);
    MUST(c, cudaEventRecord(event, stream));
    MUST(c, cudaStreamWaitEvent(joined, event, 0));
    answer_code(c, "destroy", cudaEventDestroy(event));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, joined));
    answer_yes(c, "edge", has_edge(top, stream_tip(joined)));
    MUST(c, stream_follow(c, stream, joined));
    answer_end(c, "end", stream);
}

static void record_in_capture_bad(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(1));
    cudaEvent_t other = conformance_event(c);
    MUST(c, cudaSetDevice(0));
    MUST(c, capture_begin(stream));
    answer_code(c, "null", cudaEventRecord(NULL, stream));
    answer_code(c, "device", cudaEventRecord(other, stream));
    answer_code(c, "flags", cudaEventRecordWithFlags(event, stream, 0x80));
    answer_code(c, "wait-null", cudaStreamWaitEvent(stream, NULL, 0));
    answer_code(c, "wait-flags", cudaStreamWaitEvent(stream, event, 0x80));
    answer_status(c, "capture", stream);
}

// --- What a record keeps and a wait adds ---

static void record_keeps_the_set(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t before = stream_tip(stream);
    cudaEvent_t event = conformance_mark(c, stream);
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    cudaGraphNode_t after = stream_tip(stream);
    MUST(c, cudaStreamWaitEvent(joined, event, 0));
    MUST(c, cudaMemsetAsync(memory, 3, BYTES, joined));
    cudaGraphNode_t waiting = stream_tip(joined);
    answer_yes(c, "before", has_edge(before, waiting));
    answer_yes(c, "after", has_edge(after, waiting));
}

static void record_of_many(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t one = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t two = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, one, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, one));
    MUST(c, stream_follow(c, stream, one));
    MUST(c, stream_follow(c, two, stream)); // covers both
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, two));
    answer_dependency_count(c, "dependencies", stream_tip(two));
}

static void record_replaced_in_capture(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    MUST(c, capture_begin(stream));
    MUST(c, cudaEventRecord(event, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaEventRecord(event, stream));
    MUST(c, cudaStreamWaitEvent(joined, event, 0));
    answer_yes(c, "newer", stream_tip(joined) == stream_tip(stream));
}

static void wait_unites(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t own = stream_tip(stream);
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, joined));
    cudaGraphNode_t other = stream_tip(joined);
    MUST(c, stream_follow(c, stream, joined));
    MUST(c, cudaMemsetAsync(memory, 3, BYTES, stream));
    cudaGraphNode_t next = stream_tip(stream);
    answer_dependency_count(c, "dependencies", next);
    answer_yes(c, "own", has_edge(own, next));
    answer_yes(c, "other", has_edge(other, next));
}

static void wait_for_the_same_twice(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, stream_follow(c, stream, stream));
    MUST(c, stream_follow(c, stream, stream));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    answer_dependency_count(c, "dependencies", stream_tip(stream));
    answer_end(c, "end", stream);
}

// --- Events of the wrong world ---

static void wait_for_uncaptured(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, idle);
    MUST(c, capture_begin(stream));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, 0));
    answer_status(c, "capture", stream);
    answer_end(c, "end", stream);
}

static void wait_for_own_past(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, stream);
    MUST(c, capture_begin(stream));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, 0));
    answer_end(c, "end", stream);
}

static void wait_for_event_that_left(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    MUST(c, capture_begin(stream));
    MUST(c, cudaEventRecord(event, stream));
    MUST(c, cudaEventRecord(event, idle)); // no longer captured
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, 0));
    answer_end(c, "end", stream);
}

static void wait_for_other_capture(struct conformance *c) {
    cudaStream_t one = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t two = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(one));
    MUST(c, capture_begin(two));
    answer_code(c, "wait", stream_follow(c, two, one));
    answer_status(c, "waited-for", one);
    answer_status(c, "waiting", two);
    answer_end(c, "end", one);
    answer_end(c, "end", two);
}

static void wait_for_lost_capture(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, cudaEventRecord(event, stream));
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    answer_code(c, "wait", cudaStreamWaitEvent(idle, event, 0));
    answer_status(c, "idle", idle);
    answer_end(c, "end", stream);
}

static void wait_for_ended_capture(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = captured_event(c, stream);
    answer_code(c, "wait", cudaStreamWaitEvent(idle, event, 0));
    answer_status(c, "idle", idle);
}

static void wait_for_never_recorded(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, 0));
    answer_code(c, "work", cudaMemsetAsync(memory, 1, BYTES, stream));
    answer_end(c, "end", stream);
}

// --- External: event nodes ---

static void external_record(struct conformance *c) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    cudaEvent_t event = conformance_event(c), node_event = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    cudaGraphNode_t node = stream_tip(stream);
    answer_node_count(c, "nodes", capture_end(c, stream));
    MUST(c, cudaGraphNodeGetType(node, &type));
    MUST(c, cudaGraphEventRecordNodeGetEvent(node, &node_event));
    answer_number(c, "type", type);
    answer_yes(c, "event", node_event == event);
    answer_code(c, "query", cudaEventQuery(event));
}

static void external_wait(struct conformance *c) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, idle), node_event = NULL;
    MUST(c, capture_begin(stream));
    MUST(c, cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
    cudaGraphNode_t node = stream_tip(stream);
    answer_node_count(c, "nodes", capture_end(c, stream));
    MUST(c, cudaGraphNodeGetType(node, &type));
    MUST(c, cudaGraphEventWaitNodeGetEvent(node, &node_event));
    answer_number(c, "type", type);
    answer_yes(c, "event", node_event == event);
}

static void external_record_at_each_replay(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_event(c, "first", event);
    conformance_gate(c, stream);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_event(c, "second", event);
    conformance_open(c);
    MUST(c, cudaEventSynchronize(event));
    answer_event(c, "synchronized", event);
}

static void external_record_elapsed(struct conformance *c) {
    float milliseconds = -1;
    void *memory = conformance_device_memory(c, (size_t)1 << 20);
    cudaEvent_t start = conformance_event(c), end = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal));
    for (int i = 0; i < 10; ++i)
        MUST(c, cudaMemsetAsync(memory, i, (size_t)1 << 20, stream));
    MUST(c, cudaEventRecordWithFlags(end, stream, cudaEventRecordExternal));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "elapsed", cudaEventElapsedTime(&milliseconds, start, end));
    answer_yes(c, "positive", milliseconds > 0);
}

// The wait is for the record that is there when the graph is launched.
static void external_wait_at_each_replay(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t gated = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaEventRecord(event, gated));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_event(c, "first", conformance_mark(c, stream));
    conformance_gate(c, gated);
    MUST(c, cudaEventRecord(event, gated));
    MUST(c, cudaGraphLaunch(exec, stream));
    cudaEvent_t second = conformance_mark(c, stream);
    answer_event(c, "second", second);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_event(c, "opened", second);
}

static void external_outside_capture(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "record", cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
}

static void record_with_flags(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    conformance_gate(c, stream);
    answer_code(c, "record", cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault));
    answer_event(c, "event", event);
    answer_code(c, "flags", cudaEventRecordWithFlags(event, stream, 0x80));
    answer_code(c, "null", cudaEventRecordWithFlags(NULL, stream, cudaEventRecordDefault));
}

const struct conformance_case conformance__cases_capture_event[] = {
    CASE("record-is-no-node", "6", VERIFIED, record_is_no_node,
        "a record in a capture makes no node",
        "nodes=0", NULL),
    CASE("captured-event-in-each-mode", "6", VERIFIED, captured_event_in_each_mode,
        "an event recorded in a capture is captured, also when that has ended: it cannot be asked "
        "about or waited for: 907, in every mode",
        "query=907 synchronize=907 query=907 synchronize=907 query=907 synchronize=907", NULL),
    CASE("captured-event-recorded-again", "6", VERIFIED, captured_event_recorded_again,
        "until it is recorded outside a capture",
        "captured=907 synchronize=0 query=0", NULL),
    CASE("captured-event-is-not-replayed", "6", VERIFIED, captured_event_is_not_replayed,
        "a replay does not complete it",
        "query=907", NULL),
    CASE("captured-event-elapsed", "6", VERIFIED, captured_event_elapsed,
        "cudaEventElapsedTime of a captured event fails",
        "fails=yes", NULL),
    CASE("captured-event-queried", "7.2", UNVERIFIED, captured_event_queried,
        "a captured event is asked about or waited for during the capture: 907, and that is "
        "invalidated",
        "query=907 end=901 synchronize=907 end=901", "query=907 end=0 synchronize=907 end=0"),
    CASE("captured-event-queried-unsafely", "7.2", UNVERIFIED, captured_event_queried_unsafely,
        "by a thread that may not ask about any: the same",
        "query=907 end=901", "query=900 end=901"),
    CASE("captured-event-destroyed", "7.1", VERIFIED, captured_event_destroyed,
        "a captured event may be destroyed; what waited for it stays in order",
        "destroy=0 edge=yes end=0", NULL),
    CASE_2("record-in-capture-bad", "6", UNVERIFIED, record_in_capture_bad,
        "no event, or one of another device: 400; unknown flags: 1; the capture goes on",
        "null=400 device=400 flags=1 wait-null=400 wait-flags=1 capture=active", NULL),
    CASE("record-keeps-the-set", "7.4", VERIFIED, record_keeps_the_set,
        "a record covers the nodes that the stream's next one would depend on",
        "before=yes after=no", NULL),
    CASE("record-of-many", "7.4", VERIFIED, record_of_many,
        "all of them",
        "dependencies=2", NULL),
    CASE("record-replaced-in-capture", "6", VERIFIED, record_replaced_in_capture,
        "a record in a capture takes the place of an older one",
        "newer=yes", NULL),
    CASE("wait-unites", "7.4", VERIFIED, wait_unites,
        "a wait adds the event's nodes to those of the stream",
        "dependencies=2 own=yes other=yes", NULL),
    CASE("wait-for-the-same-twice", "7.4", VERIFIED, wait_for_the_same_twice,
        "nodes that are in the set are not added again",
        "dependencies=1 end=0", NULL),
    CASE("wait-for-uncaptured", "7.2", VERIFIED, wait_for_uncaptured,
        "a capturing stream waits for an event that is not captured: 905, and the capture is "
        "invalidated",
        "wait=905 capture=invalidated end=901", NULL),
    CASE("wait-for-own-past", "7.2", VERIFIED, wait_for_own_past,
        "also for one of its own past",
        "wait=905 end=901", NULL),
    CASE("wait-for-event-that-left", "7.2", UNVERIFIED, wait_for_event_that_left,
        "also for one that was recorded outside meanwhile",
        "wait=905 end=901", NULL),
    CASE("wait-for-other-capture", "7.2", VERIFIED, wait_for_other_capture,
        "for an event of another capture: 902, and both are invalidated",
        "wait=902 waited-for=invalidated waiting=invalidated end=901 end=901", NULL),
    CASE("wait-for-lost-capture", "7.2", VERIFIED, wait_for_lost_capture,
        "an idle stream waits for an event of an invalidated capture: 1",
        "wait=1 idle=none end=901", NULL),
    CASE("wait-for-ended-capture", "7.3", UNVERIFIED, wait_for_ended_capture,
        "an idle stream waits for an event of a capture that has ended: nothing happens",
        "wait=0 idle=none", "wait=907 idle=none"),
    CASE("wait-for-never-recorded", "7.3", UNVERIFIED, wait_for_never_recorded,
        "a capturing stream waits for an event that was never recorded: nothing happens",
        "wait=0 work=0 end=0", "wait=905 work=901 end=901"),
    CASE("external-record", "6", VERIFIED, external_record,
        "an external record in a capture is a node; the event is not captured",
        "nodes=1 type=7 event=yes query=0", NULL),
    CASE("external-wait", "6", VERIFIED, external_wait,
        "an external wait is a node, for an event that is not captured",
        "nodes=1 type=6 event=yes", NULL),
    CASE("external-record-at-each-replay", "6", VERIFIED, external_record_at_each_replay,
        "each replay records the event anew",
        "first=done second=pending synchronized=done", NULL),
    CASE("external-record-elapsed", "6", VERIFIED, external_record_elapsed,
        "and the time between two such records is known",
        "elapsed=0 positive=yes", NULL),
    CASE("external-wait-at-each-replay", "6", VERIFIED, external_wait_at_each_replay,
        "each replay waits for the record that is there when it is launched",
        "first=done second=pending opened=done", NULL),
    CASE("external-outside-capture", "6", UNVERIFIED, external_outside_capture,
        "an external record or wait in a stream that does not capture: 1",
        "record=1 wait=1", "record=401 wait=401"),
    CASE("record-with-flags", "6", VERIFIED, record_with_flags,
        "without a flag it is a record; unknown flags: 1; no event: 400",
        "record=0 event=pending flags=1 null=400", NULL),
    {0},
};
