// Section 6: events.
#include "simulator/conformance/cases.h"

static void answer_refused(struct conformance *c, const char *label, cudaError_t error) {
    answer_yes(c, label,
               error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed);
    (void)cudaGetLastError();
}

static void event_create_bad(struct conformance *c) {
    cudaEvent_t event;
    answer_code(c, "null", cudaEventCreate(NULL));
    answer_code(c, "flags", cudaEventCreateWithFlags(&event, 0x80));
    answer_code(c, "interprocess", cudaEventCreateWithFlags(&event, cudaEventInterprocess));
}

static void event_create_flags(struct conformance *c) {
    cudaEvent_t event;
    answer_code(c, "blocking", cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
    MUST(c, cudaEventDestroy(event));
    answer_code(c, "no-timing", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    MUST(c, cudaEventDestroy(event));
}

static void event_never_recorded(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "query", cudaEventQuery(event));
    answer_code(c, "synchronize", cudaEventSynchronize(event));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, 0));
    answer_event(c, "later", conformance_mark(c, stream));
}

static void event_snapshot(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t early = conformance_mark(c, stream);
    conformance_gate(c, stream);
    cudaEvent_t late = conformance_mark(c, stream);
    answer_event(c, "early", early);
    answer_event(c, "late", late);
}

static void event_record_replaces(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    conformance_gate(c, stream);
    MUST(c, cudaEventRecord(event, stream));
    answer_event(c, "first", event);
    MUST(c, cudaEventRecord(event, other));
    answer_event(c, "second", event);
}

static void wait_keeps_its_record(struct conformance *c) {
    cudaStream_t gated = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t waiting = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    conformance_gate(c, gated);
    MUST(c, cudaEventRecord(event, gated));
    MUST(c, cudaStreamWaitEvent(waiting, event, 0));
    MUST(c, cudaEventRecord(event, idle));
    answer_event(c, "event", event);
    answer_event(c, "waiting", conformance_mark(c, waiting));
}

static void wait_sees_no_later_work(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t waiting = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, stream);
    conformance_gate(c, stream);
    cudaEvent_t later = conformance_mark(c, stream);
    MUST(c, cudaStreamWaitEvent(waiting, event, 0));
    answer_event(c, "waiting", conformance_mark(c, waiting));
    answer_event(c, "later", later);
}

static void wait_sees_no_later_record(struct conformance *c) {
    cudaStream_t gated = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t waiting = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    MUST(c, cudaStreamWaitEvent(waiting, event, 0));
    conformance_gate(c, gated);
    MUST(c, cudaEventRecord(event, gated));
    answer_event(c, "waiting", conformance_mark(c, waiting));
}

static void event_synchronize_waits(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "before", cudaEventQuery(event));
    answer_code(c, "synchronize", cudaEventSynchronize(event));
    answer_code(c, "after", cudaEventQuery(event));
}

static void event_record_bad(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "null", cudaEventRecord(NULL, stream));
    MUST(c, cudaSetDevice(1));
    cudaEvent_t event = conformance_event(c);
    MUST(c, cudaSetDevice(0));
    answer_code(c, "device", cudaEventRecord(event, stream));
}

static void event_null(struct conformance *c) {
    answer_code(c, "query", cudaEventQuery(NULL));
    answer_code(c, "synchronize", cudaEventSynchronize(NULL));
    answer_code(c, "destroy", cudaEventDestroy(NULL));
}

static void event_destroyed_is_refused(struct conformance *c) {
    cudaEvent_t event;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaEventCreate(&event));
    MUST(c, cudaEventDestroy(event));
    answer_refused(c, "query", cudaEventQuery(event));
    answer_refused(c, "record", cudaEventRecord(event, stream));
    answer_refused(c, "wait", cudaStreamWaitEvent(stream, event, 0));
    answer_refused(c, "destroy", cudaEventDestroy(event));
}

static void event_destroy_pending(struct conformance *c) {
    cudaEvent_t event;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t waiting = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaEventCreate(&event));
    conformance_gate(c, stream);
    MUST(c, cudaEventRecord(event, stream));
    MUST(c, cudaStreamWaitEvent(waiting, event, 0));
    cudaEvent_t own = conformance_mark(c, stream), behind = conformance_mark(c, waiting);
    answer_code(c, "destroy", cudaEventDestroy(event));
    answer_event(c, "work", own);
    answer_event(c, "waiting", behind);
    conformance_open(c);
    MUST(c, cudaDeviceSynchronize());
    answer_event(c, "after", behind);
}

static void elapsed_bad(struct conformance *c) {
    float milliseconds;
    cudaEvent_t untimed;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t never = conformance_event(c), event = conformance_mark(c, stream);
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "null", cudaEventElapsedTime(NULL, event, event));
    answer_code(c, "never", cudaEventElapsedTime(&milliseconds, never, event));
    MUST(c, cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    MUST(c, cudaEventRecord(untimed, stream));
    answer_code(c, "untimed", cudaEventElapsedTime(&milliseconds, event, untimed));
    MUST(c, cudaEventDestroy(untimed));
}

static void elapsed_pending(struct conformance *c) {
    float milliseconds;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t start = conformance_mark(c, stream);
    conformance_gate(c, stream);
    answer_code(c, "elapsed",
                cudaEventElapsedTime(&milliseconds, start, conformance_mark(c, stream)));
}

static void elapsed_time(struct conformance *c) {
    float milliseconds = -1, backwards = 1;
    void *memory = conformance_device_memory(c, (size_t)1 << 20);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t start = conformance_mark(c, stream);
    for (int i = 0; i < 10; ++i)
        MUST(c, cudaMemsetAsync(memory, i, (size_t)1 << 20, stream));
    cudaEvent_t end = conformance_mark(c, stream);
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaEventElapsedTime(&milliseconds, start, end));
    MUST(c, cudaEventElapsedTime(&backwards, end, start));
    answer_yes(c, "positive", milliseconds > 0);
    answer_yes(c, "backwards", backwards < 0);
}

const struct conformance_case conformance__cases_event[] = {
    CASE("event-create-bad", "6", VERIFIED, event_create_bad,
        "no result pointer, unknown flags, or interprocess with timing: 1",
        "null=1 flags=1 interprocess=1", NULL),
    CASE("event-create-flags", "6", VERIFIED, event_create_flags,
        "known flags are taken",
        "blocking=0 no-timing=0", NULL),
    CASE("event-never-recorded", "6", VERIFIED, event_never_recorded,
        "an event that was never recorded is complete and orders nothing",
        "query=0 synchronize=0 wait=0 later=done", NULL),
    CASE("event-snapshot", "6", VERIFIED, event_snapshot,
        "a record covers what the stream held at the call",
        "early=done late=pending", NULL),
    CASE("event-record-replaces", "6", VERIFIED, event_record_replaces,
        "a record takes the place of an older one",
        "first=pending second=done", NULL),
    CASE("wait-keeps-its-record", "6", VERIFIED, wait_keeps_its_record,
        "a wait keeps the record it was issued for",
        "event=done waiting=pending", NULL),
    CASE("wait-sees-no-later-work", "6", VERIFIED, wait_sees_no_later_work,
        "a wait does not cover work behind the record",
        "waiting=done later=pending", NULL),
    CASE("wait-sees-no-later-record", "6", VERIFIED, wait_sees_no_later_record,
        "a wait does not cover a record that comes after it",
        "waiting=done", NULL),
    CASE("event-synchronize-waits", "6", VERIFIED, event_synchronize_waits,
        "cudaEventSynchronize waits for what the event covers",
        "before=600 synchronize=0 after=0", NULL),
    CASE_2("event-record-bad", "6", VERIFIED, event_record_bad,
        "no event, or one of another device than the stream: 400",
        "null=400 device=400", NULL),
    CASE("event-null", "6", UNVERIFIED, event_null,
        "no event: 400",
        "query=400 synchronize=400 destroy=400", NULL),
    CASE("event-destroyed-is-refused", "1", UNVERIFIED, event_destroyed_is_refused,
        "a destroyed event is refused (709 was seen, or 400)",
        "query=yes record=yes wait=yes destroy=yes", NULL),
    CASE("event-destroy-pending", "6", VERIFIED, event_destroy_pending,
        "cudaEventDestroy returns at once; waits that were issued stay",
        "destroy=0 work=pending waiting=pending after=done", NULL),
    CASE("elapsed-bad", "6", VERIFIED, elapsed_bad,
        "no result pointer 1; never recorded or without timing 400",
        "null=1 never=400 untimed=400", NULL),
    CASE("elapsed-pending", "6", VERIFIED, elapsed_pending,
        "an event that is not complete: 600",
        "elapsed=600", NULL),
    CASE("elapsed-time", "6", VERIFIED, elapsed_time,
        "the time between two events has a sign",
        "positive=yes backwards=yes", NULL),
    {0},
};
