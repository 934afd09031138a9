// What a call does to the order that the generator knows (drawing.h).
#include "simulator/race_property/drawing.h"

#include "base/check.h"

#include <string.h>

// --- Calls ---

static void emit_captured(struct drawing *drawing, const struct operation *operation, int index) {
    const int stream = operation->stream, bit = 2 * index + 1;
    struct drawn_capture *capture = &drawing->captures[drawing->streams[stream].capture];
    struct seen *seen = &drawing->streams[stream].captured;
    if (operation->verb == RECORD) {
        drawing->events[operation->event].recorded = true;
        drawing->events[operation->event].capture = drawing->streams[stream].capture;
        drawing->events[operation->event].stream = stream;
        drawing->events[operation->event].seen = *seen;
        return;
    }
    if (operation->verb == WAIT) {
        seen_join(seen, &drawing->events[operation->event].seen);
        if (drawing->events[operation->event].stream != stream)
            capture->returned |= 1u << drawing->events[operation->event].stream;
        return;
    }
    if (operation->verb == END) {
        capture->active = false;
        for (int i = 0; i < drawing->program->stream_count; ++i)
            if (capture->members >> i & 1)
                drawing->streams[i].capture = NONE;
        return;
    }
    seen_add(seen, bit);
    capture->nodes[capture->count++] = index;
    drawing_note(drawing, operation, &capture->pasts, NONE, bit, HOME_STREAM, stream);
    BASE_CHECK(contents_apply(&capture->contents, operation));
}

static void emit_node(struct drawing *drawing, const struct operation *operation, int index) {
    struct drawn_capture *graph = &drawing->captures[operation->graph];
    drawing->nodes[index] = drawing_node_sees(drawing, operation);
    graph->nodes[graph->count++] = index;
    drawing_note(drawing, operation, &graph->pasts, NONE, 2 * index + 1, HOME_STREAM, NONE);
    BASE_CHECK(contents_apply(&graph->contents, operation));
}

static void emit_join(struct drawing *drawing, const struct operation *operation) {
    const int capture = drawing->events[operation->event].capture;
    drawing->streams[operation->stream].capture = capture;
    drawing->streams[operation->stream].captured = drawing->events[operation->event].seen;
    drawing->captures[capture].members |= 1u << operation->stream;
    drawing->captures[capture].returned |= 1u << drawing->events[operation->event].stream;
}

static void emit_launch(struct drawing *drawing, const struct operation *operation, int bit) {
    const struct drawn_capture *graph = &drawing->captures[drawing->execs[operation->exec].capture];
    for (int i = 0; i < graph->count; ++i) {
        const struct operation *node = &drawing->program->operations[graph->nodes[i]];
        drawing_note(drawing, node, &drawing->pasts, NONE, bit, HOME_STREAM, operation->stream);
        BASE_CHECK(contents_apply(&drawing->contents, node));
    }
    drawing->execs[operation->exec].last = drawing->streams[operation->stream].seen;
}

// Whether the host waits for the operation that it enqueues.
static bool is_complete_on_return(const struct drawing *drawing,
                                  const struct operation *operation) {
    if (operation->step_count == 0)
        return false;
    const struct buffer *buffers = drawing->program->buffers;
    const enum place to = buffers[operation->steps[0].to.buffer].place;
    const enum place from = buffers[operation->steps[0].from[0].buffer].place;
    switch (operation->verb) {
    case COPY:
        return !drawing_is_staged(drawing, operation) && (to != ON_DEVICE || from != ON_DEVICE);
    case COPY_ASYNC: return to != ON_DEVICE && from != ON_DEVICE;
    case FILL: return to == PINNED;
    default: return false;
    }
}

static void emit_stream(struct drawing *drawing, const struct operation *operation, int index) {
    const int stream = operation->stream, bit = 2 * index + 1;
    struct seen seen = drawing_sees(drawing, operation, false);
    if (operation->verb == WAIT) {
        if (drawing->events[operation->event].capture != NONE) {
            emit_join(drawing, operation);
            return;
        }
        if (!drawing->events[operation->event].recorded)
            return;
        seen_join(&seen, &drawing->events[operation->event].seen);
    }
    seen_add(&seen, bit);
    if (drawing_is_staged(drawing, operation)) { // the host is delayed, too
        const struct seen call = drawing_sees(drawing, operation, true);
        seen_join(drawing_host(drawing, operation->thread), &call);
        seen_join(&seen, &call);
    }
    // Whoever depends on a query may not happen: later work sees of it only that it is there.
    if (operation->guard != NONE)
        seen_add(&drawing->streams[stream].seen, bit);
    else
        drawing->streams[stream].seen = seen;
    if (is_complete_on_return(drawing, operation))
        seen_join(drawing_host(drawing, operation->thread), &seen);
    if (operation->verb == RECORD) {
        drawing->events[operation->event].recorded = true;
        drawing->events[operation->event].capture = NONE;
        drawing->events[operation->event].seen = seen;
    } else if (operation->verb == WRITE_VALUE) {
        drawing->streams[operation->token].value_seen = seen;
    } else if (operation->verb == LAUNCH) {
        emit_launch(drawing, operation, bit);
    } else {
        drawing_note(drawing, operation, &drawing->pasts, 2 * index, bit, HOME_STREAM, stream);
    }
}

static void emit_block_call(struct drawing *drawing, const struct operation *operation, int bit) {
    const int block = operation->block;
    if (operation->verb == TAKE) {
        drawing->held[block] = true;
        drawing->held_by[block] = drawing->streams[operation->stream].capture;
    } else if (operation->verb == GIVE) {
        drawing->held[block] = false;
        drawing->give_bit[block] = bit;
    }
}

static void emit_wait_of_host(struct drawing *drawing, const struct operation *operation) {
    struct seen *host = drawing_host(drawing, operation->thread);
    struct seen seen = {{0}};
    switch (operation->verb) {
    case EVENT_SYNC:
    case EVENT_POLL:
        if (drawing->events[operation->event].recorded)
            seen = drawing->events[operation->event].seen;
        break;
    case STREAM_SYNC:
    case STREAM_POLL: seen = drawing_covered(drawing, operation->stream); break;
    case DEVICE_SYNC: seen = drawing_device_sees(drawing, operation->device); break;
    case VALUE_POLL: seen = drawing->streams[operation->token].value_seen; break; // the latest
    default: break;
    }
    seen_join(host, &seen);
}

int drawing_emit(struct drawing *drawing, const struct operation *operation) {
    struct program *program = drawing->program;
    BASE_CHECK_LT(program->count, OPERATIONS_MAX);
    const int index = program->count++;
    program->operations[index] = *operation;
    const int host_bit = 2 * index;
    struct seen *host = drawing_host(drawing, operation->thread);
    seen_add(host, host_bit);
    for (int i = 0; i < operation->step_count; ++i) {
        struct access accesses[3];
        const int count = step_accesses(&operation->steps[i], accesses);
        for (int k = 0; k < count; ++k)
            if (accesses[k].span.block != NONE)
                seen_add(&drawing->used[accesses[k].span.block], host_bit);
    }
    const bool is_work = operation->verb <= HOST_READ || operation->verb == ALLOC_ASYNC ||
                         operation->verb == FREE_ASYNC || operation_is_hosts(operation);
    if (operation->stream != NONE && drawing->streams[operation->stream].capture != NONE &&
        operation->verb != TAKE && operation->verb != USE) {
        emit_captured(drawing, operation, index);
        return index;
    }
    switch (operation->verb) {
    case SIGNAL: break; // await looks at what the other thread has seen by then
    case EVENT_CREATE:
        drawing->events[operation->event].exists = true;
        drawing->events[operation->event].recorded = false;
        drawing->events[operation->event].capture = NONE;
        drawing->events[operation->event].device = operation->device;
        break;
    case EVENT_DESTROY: drawing->events[operation->event].exists = false; break;
    case STREAM_DESTROY: drawing->streams[operation->stream].destroyed = true; break;
    case TAKE:
    case USE:
    case GIVE: emit_block_call(drawing, operation, host_bit); break;
    case BEGIN: {
        struct drawn_capture *capture = &drawing->captures[drawing->capture_count];
        *capture = (struct drawn_capture){.active = true,
                                          .mode = (enum capture_mode)operation->value,
                                          .thread = operation->thread,
                                          .origin = operation->stream,
                                          .device = program->streams[operation->stream].device,
                                          .members = 1u << operation->stream,
                                          .contents = drawing->contents};
        drawing->streams[operation->stream].captured = (struct seen){{0}};
        drawing->streams[operation->stream].capture = drawing->capture_count++;
        break;
    }
    case GRAPH_CREATE: {
        struct drawn_capture *graph = &drawing->captures[drawing->capture_count++];
        *graph = (struct drawn_capture){
            .origin = NONE, .device = operation->device, .contents = drawing->contents};
        break;
    }
    case ADD_KERNEL: emit_node(drawing, operation, index); break;
    case INSTANTIATE:
        drawing->execs[operation->exec].capture = operation->graph;
        drawing->execs[operation->exec].last = (struct seen){{0}};
        break;
    case EXEC_DESTROY: drawing->execs[operation->exec].capture = NONE; break;
    case AWAIT:
        for (int i = index - 1; i >= 0; --i)
            if (program->operations[i].verb == SIGNAL &&
                program->operations[i].token == operation->token) {
                // All that the signalling thread had seen then it has seen now; nothing was
                // drawn in between.
                seen_join(host, drawing_host(drawing, program->operations[i].thread));
                break;
            }
        break;
    case KERNEL:
    case HOST_FUNCTION:
    case COPY:
    case COPY_ASYNC:
    case COPY_PEER_ASYNC:
    case FILL:
    case FILL_ASYNC:
    case RECORD:
    case WAIT:
    case ALLOC_ASYNC:
    case FREE_ASYNC:
    case WRITE_VALUE:
    case LAUNCH: emit_stream(drawing, operation, index); break;
    case COPY_PEER: {
        struct seen seen = drawing_sees(drawing, operation, false);
        seen_add(&seen, 2 * index + 1);
        const uint32_t devices = drawing_fence_devices(drawing, operation);
        for (int device = 0; device < program->device_count; ++device)
            if (devices >> device & 1)
                drawing->fences[device] = seen;
        drawing_note(drawing, operation, &drawing->pasts, host_bit, 2 * index + 1, HOME_FENCE,
                     (int)devices);
        break;
    }
    case HOST_WRITE:
    case HOST_READ:
    case ALLOC:
    case HOST_ALLOC:
    case FREE:
    case HOST_FREE: {
        const struct seen seen = drawing_sees(drawing, operation, false);
        seen_join(host, &seen);
        drawing_note(drawing, operation, &drawing->pasts, host_bit, host_bit, HOME_HOST,
                     operation->thread);
        break;
    }
    default: emit_wait_of_host(drawing, operation); break;
    }
    if (is_work && operation->guard == NONE)
        BASE_CHECK(contents_apply(&drawing->contents, operation));
    return index;
}

bool drawing_has_room(const struct drawing *drawing, int operations) {
    return drawing->program->count + operations <= OPERATIONS_MAX;
}

void drawing_start(struct drawing *drawing, struct base_random *random, struct program *program) {
    memset(drawing, 0, sizeof *drawing);
    drawing->random = random;
    drawing->program = program;
    for (int i = 0; i < STREAMS_MAX; ++i)
        drawing->streams[i].capture = NONE;
    for (int i = 0; i < EVENTS_MAX; ++i) {
        drawing->events[i].exists = i < program->event_count;
        drawing->events[i].device = program->event_devices[i];
        drawing->events[i].capture = NONE;
    }
    for (int i = 0; i < EXECS_MAX; ++i)
        drawing->execs[i].capture = NONE;
    for (int i = 0; i < BUFFERS_MAX; ++i)
        drawing->node_of[i] = NONE;
    for (int i = 0; i < program->buffer_count; ++i) {
        drawing->live[i] = true;
        drawing->contents.defined[i] = program->buffers[i].defined ? ~0u : 0;
    }
}
