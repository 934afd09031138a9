// How the generator orders one operation behind another: every way that CUDA has, at random.
#include "simulator/race_property/drawing.h"

#include "base/check.h"

#define EDGES_MAX       10 // for one operation; more conflicts, and it is not drawn
#define EDGE_OPERATIONS 6

static struct operation make(const struct drawing *drawing, enum verb verb) {
    return operation_make(verb, drawing->thread);
}

// --- Calls ---

int event_for(struct drawing *drawing, int device) {
    const int event = draw_below(drawing, drawing->program->event_count);
    const bool fits = drawing->events[event].exists && drawing->events[event].device == device;
    if (fits && !draw_chance(drawing, 0.06))
        return event;
    struct operation operation = make(drawing, EVENT_DESTROY);
    operation.event = event;
    if (drawing->events[event].exists)
        drawing_emit(drawing, &operation);
    operation.verb = EVENT_CREATE;
    operation.device = device;
    drawing_emit(drawing, &operation);
    return event;
}

// Which thread can name the stream.
static int thread_for(const struct drawing *drawing, int stream) {
    const struct stream *one = &drawing->program->streams[stream];
    return one->kind == PER_THREAD ? one->thread : drawing->thread;
}

void emit_record(struct drawing *drawing, int event, int stream) {
    struct operation operation = operation_make(RECORD, thread_for(drawing, stream));
    operation.stream = stream;
    operation.event = event;
    drawing_emit(drawing, &operation);
}

void emit_wait(struct drawing *drawing, int stream, int event) {
    struct operation operation = operation_make(WAIT, thread_for(drawing, stream));
    operation.stream = stream;
    operation.event = event;
    drawing_emit(drawing, &operation);
}

static int record_new(struct drawing *drawing, int stream) {
    const int event = event_for(drawing, drawing->program->streams[stream].device);
    emit_record(drawing, event, stream);
    return event;
}

static void emit_event_wait_of_host(struct drawing *drawing, enum verb verb, int event) {
    struct operation operation = make(drawing, verb);
    operation.event = event;
    drawing_emit(drawing, &operation);
}

static void emit_stream_wait_of_host(struct drawing *drawing, enum verb verb, int stream) {
    struct operation operation = make(drawing, verb);
    operation.stream = stream;
    drawing_emit(drawing, &operation);
}

static void emit_device_sync(struct drawing *drawing, int device) {
    struct operation operation = make(drawing, DEVICE_SYNC);
    operation.device = device;
    drawing_emit(drawing, &operation);
}

// A counter that the stream writes and the host watches.
static void emit_value(struct drawing *drawing, int stream) {
    struct operation operation = make(drawing, WRITE_VALUE);
    operation.stream = operation.token = stream;
    operation.value = ++drawing->streams[stream].value;
    drawing_emit(drawing, &operation);
    operation.verb = VALUE_POLL;
    operation.stream = NONE;
    drawing_emit(drawing, &operation);
}

// --- Which ways there are ---

static bool is_recordable(const struct drawing *drawing, int stream) {
    const struct stream *one = &drawing->program->streams[stream];
    return !drawing->streams[stream].destroyed && drawing->streams[stream].capture == NONE &&
           (one->kind != LEGACY || drawing_legacy_allowed(drawing, one->device)) &&
           // During a capture only one thread makes calls.
           (drawing_host_call_allowed(drawing) || thread_for(drawing, stream) == drawing->thread);
}

static bool is_syncable(const struct drawing *drawing, int device) {
    return drawing_host_call_allowed(drawing) && !drawing_device_captures(drawing, device);
}

// The host of the drawing thread comes behind STREAM's work.
static bool host_behind_stream(struct drawing *drawing, int stream) {
    const int device = drawing->program->streams[stream].device;
    const bool plain = drawing->program->streams[stream].kind == BLOCKING ||
                       drawing->program->streams[stream].kind == NON_BLOCKING;
    for (int tries = 0; tries < 12; ++tries)
        switch (draw_below(drawing, 7)) {
        case 0:
        case 1:
            if (!is_recordable(drawing, stream) || !drawing_host_call_allowed(drawing))
                break;
            emit_event_wait_of_host(drawing, draw_chance(drawing, 0.5) ? EVENT_SYNC : EVENT_POLL,
                                    record_new(drawing, stream));
            return true;
        case 2:
        case 3:
            if (!is_recordable(drawing, stream) || !drawing_host_call_allowed(drawing) ||
                thread_for(drawing, stream) != drawing->thread)
                break;
            emit_stream_wait_of_host(drawing, draw_chance(drawing, 0.5) ? STREAM_SYNC : STREAM_POLL,
                                     stream);
            return true;
        case 4:
            if (!is_syncable(drawing, device))
                break;
            emit_device_sync(drawing, device);
            return true;
        case 5:
            if (!plain || !is_recordable(drawing, stream))
                break;
            emit_value(drawing, stream);
            return true;
        default: // asked once, waited for where the answer was no
            if (!is_recordable(drawing, stream) || !drawing_host_call_allowed(drawing) ||
                drawing->free_queries >= 2)
                break;
            const int event = record_new(drawing, stream);
            emit_event_wait_of_host(drawing, EVENT_QUERY, event);
            ++drawing->free_queries;
            struct operation sync = make(drawing, EVENT_SYNC);
            sync.event = event;
            sync.guard = drawing->program->count - 1;
            drawing_emit(drawing, &sync);
            return true;
        }
    return false;
}

// An empty kernel in the legacy stream stands between two streams that it bars.
static bool barrier_between(struct drawing *drawing, int stream, int other) {
    const struct program *program = drawing->program;
    const int device = program->streams[stream].device;
    if (!stream_is_barred(program, stream) || !stream_is_barred(program, other) ||
        program->streams[other].device != device || !drawing_legacy_allowed(drawing, device))
        return false;
    struct operation kernel = make(drawing, KERNEL);
    kernel.stream = stream_legacy(program, device);
    drawing_emit(drawing, &kernel);
    return true;
}

static bool stream_behind_stream(struct drawing *drawing, int stream, int other) {
    for (int tries = 0; tries < 12; ++tries)
        switch (draw_below(drawing, 10)) {
        case 0:
        case 1:
        case 2:
        case 3:
            if (!is_recordable(drawing, other))
                break;
            emit_wait(drawing, stream, record_new(drawing, other));
            return true;
        case 4:
        case 5: { // through a third one
            const int third = draw_below(drawing, drawing->program->stream_count);
            if (!is_recordable(drawing, other) || !is_recordable(drawing, third) ||
                third == stream || third == other)
                break;
            emit_wait(drawing, third, record_new(drawing, other));
            emit_wait(drawing, stream, record_new(drawing, third));
            return true;
        }
        case 6:
        case 7:
            if (barrier_between(drawing, stream, other))
                return true;
            break;
        default:
            if (host_behind_stream(drawing, other))
                return true;
        }
    return false;
}

bool edge_behind_thread(struct drawing *drawing, int thread) {
    if (!drawing->program->threads_strict || thread == drawing->thread ||
        drawing->token_count == TOKENS_MAX)
        return false;
    struct operation signal = operation_make(SIGNAL, thread);
    signal.token = drawing->token_count++;
    drawing_emit(drawing, &signal);
    struct operation await = make(drawing, AWAIT);
    await.token = signal.token;
    drawing_emit(drawing, &await);
    return true;
}

// A copy that the host stages is the host's, too.
static bool is_of_host(const struct drawing *drawing, const struct operation *operation) {
    return operation->stream == NONE ||
           ((operation->verb == COPY || operation->verb == COPY_ASYNC) &&
            drawing->program->buffers[operation->steps[0].from[0].buffer].place == PAGEABLE);
}

static bool order_behind(struct drawing *drawing, const struct operation *operation,
                         const struct past *past) {
    const struct program *program = drawing->program;
    if (past->home == HOME_HOST)
        return edge_behind_thread(drawing, past->index);
    int other = past->index;
    if (past->home == HOME_FENCE) { // later work of its devices comes after it anyhow
        const int device = past->index & 1 ? 0 : 1;
        other = stream_choose(drawing, device);
        if (other == NONE)
            return false;
    }
    const int capture =
        operation->stream == NONE ? NONE : drawing->streams[operation->stream].capture;
    if (capture != NONE) {
        const int event = event_for(drawing, program->streams[other].device);
        emit_record(drawing, event, other);
        emit_wait(drawing, operation->stream, event);
        return true;
    }
    if (is_of_host(drawing, operation) || past->home == HOME_FENCE)
        return host_behind_stream(drawing, other);
    return other != operation->stream ? stream_behind_stream(drawing, operation->stream, other)
                                      : host_behind_stream(drawing, other);
}

bool edges_add_and_emit(struct drawing *drawing, const struct operation *operation) {
    for (int i = 0; i < EDGES_MAX; ++i) {
        if (!drawing_has_room(drawing, EDGE_OPERATIONS))
            return false;
        const struct past *past = drawing_blocker(drawing, operation, NULL);
        if (past == NULL) {
            drawing_emit(drawing, operation);
            return true;
        }
        const struct past copy = *past;
        if (!order_behind(drawing, operation, &copy))
            return false;
    }
    return false;
}
