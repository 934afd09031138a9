// What the generator knows (drawing.h): order as sets of what was seen, accesses, contents.
#include "simulator/race_property/drawing.h"

#include "base/check.h"

#include <string.h>

// --- Sets ---

static void seen_add(struct seen *seen, int bit) {
    seen->words[bit / 64] |= (uint64_t)1 << (bit % 64);
}

bool seen_has(const struct seen *seen, int bit) { return seen->words[bit / 64] >> (bit % 64) & 1; }

static void seen_join(struct seen *into, const struct seen *other) {
    for (size_t i = 0; i < sizeof into->words / sizeof into->words[0]; ++i)
        into->words[i] |= other->words[i];
}

bool seen_within(const struct seen *part, const struct seen *whole) {
    for (size_t i = 0; i < sizeof part->words / sizeof part->words[0]; ++i)
        if (part->words[i] & ~whole->words[i])
            return false;
    return true;
}

// --- Streams and hosts ---

bool stream_is_barred(const struct program *program, int stream) {
    return program->streams[stream].kind == BLOCKING ||
           program->streams[stream].kind == PER_THREAD;
}

int stream_legacy(const struct program *program, int device) {
    for (int i = 0; i < program->stream_count; ++i)
        if (program->streams[i].kind == LEGACY && program->streams[i].device == device)
            return i;
    return NONE;
}

struct seen *drawing_host(struct drawing *drawing, int thread) {
    return &drawing->hosts[drawing->program->threads_strict ? thread : 0];
}

// What an operation of STREAM sees of the device's work.
static struct seen stream_sees(struct drawing *drawing, int stream) {
    const struct program *program = drawing->program;
    const int device = program->streams[stream].device;
    struct seen seen = drawing->streams[stream].seen;
    seen_join(&seen, &drawing->fences[device]);
    if (stream_is_barred(program, stream)) {
        seen_join(&seen, &drawing->streams[stream_legacy(program, device)].seen);
    } else if (program->streams[stream].kind == LEGACY) {
        for (int i = 0; i < program->stream_count; ++i)
            if (program->streams[i].device == device && stream_is_barred(program, i))
                seen_join(&seen, &drawing->streams[i].seen);
    }
    return seen;
}

struct seen drawing_covered(struct drawing *drawing, int stream) {
    return drawing->program->streams[stream].kind == LEGACY ? stream_sees(drawing, stream)
                                                            : drawing->streams[stream].seen;
}

static struct seen device_sees(struct drawing *drawing, int device) {
    struct seen seen = drawing->fences[device];
    for (int i = 0; i < drawing->program->stream_count; ++i)
        if (drawing->program->streams[i].device == device)
            seen_join(&seen, &drawing->streams[i].seen);
    return seen;
}

static uint32_t fence_devices(const struct drawing *drawing, const struct operation *operation) {
    const struct buffer *buffers = drawing->program->buffers;
    return 1u << operation->device | 1u << buffers[operation->steps[0].to.buffer].device |
           1u << buffers[operation->steps[0].from[0].buffer].device;
}

// --- What CUDA allows ---

bool drawing_stream_usable(const struct drawing *drawing, int stream) {
    const struct stream *one = &drawing->program->streams[stream];
    return !drawing->streams[stream].destroyed &&
           (one->kind != PER_THREAD || one->thread == drawing->thread) &&
           (one->kind != LEGACY || drawing_legacy_allowed(drawing, one->device));
}

bool drawing_host_call_allowed(const struct drawing *drawing) {
    for (int i = 0; i < drawing->capture_count; ++i)
        if (drawing->captures[i].active && drawing->captures[i].mode != MODE_RELAXED)
            return false; // captures have one thread, which is the one that draws
    return true;
}

bool drawing_legacy_allowed(const struct drawing *drawing, int device) {
    for (int i = 0; i < drawing->program->stream_count; ++i)
        if (stream_is_barred(drawing->program, i) && drawing->streams[i].capture != NONE &&
            drawing->program->streams[i].device == device)
            return false;
    return true;
}

bool drawing_device_captures(const struct drawing *drawing, int device) {
    for (int i = 0; i < drawing->program->stream_count; ++i)
        if (drawing->streams[i].capture != NONE && drawing->program->streams[i].device == device)
            return true;
    return false;
}

// --- Accesses ---

// What an operation touches: in its own time, and (a staged copy's source) at the call.
struct touched {
    struct access access;
    bool at_call;
};

// Not of nodes: they read when they run.
static bool is_staged(const struct drawing *drawing, const struct operation *operation) {
    const struct step *step = &operation->steps[0];
    return (operation->verb == COPY || operation->verb == COPY_ASYNC) &&
           drawing->program->buffers[step->from[0].buffer].place == PAGEABLE &&
           drawing->program->buffers[step->to.buffer].place == ON_DEVICE;
}

static int operation_touches(const struct drawing *drawing, const struct operation *operation,
                             bool is_node, struct touched touched[3 * STEPS_MAX]) {
    const bool staged = !is_node && is_staged(drawing, operation);
    int count = 0;
    for (int i = 0; i < operation->step_count; ++i) {
        struct access accesses[3];
        const int access_count = step_accesses(&operation->steps[i], accesses);
        for (int k = 0; k < access_count; ++k)
            touched[count++] =
                (struct touched){accesses[k], staged && accesses[k].mode == READS};
    }
    switch (operation->verb) { // the ends of a life are not to be crossed by any access
    case ALLOC:
    case HOST_ALLOC:
    case ALLOC_ASYNC:
    case FREE:
    case HOST_FREE:
    case FREE_ASYNC:
        touched[count++] = (struct touched){
            {WRITES, false, {operation->buffer, NONE, 0, CELLS, CELLS, 1}}, false};
        break;
    default: break;
    }
    return count;
}

static bool is_host_operation(const struct operation *operation) {
    switch (operation->verb) {
    case HOST_WRITE:
    case HOST_READ:
    case ALLOC:
    case HOST_ALLOC:
    case FREE:
    case HOST_FREE: return true;
    default: return false;
    }
}

// What it sees when it is done: at the call, or in its own time.
static struct seen operation_sees(struct drawing *drawing, const struct operation *operation,
                                  bool at_call) {
    struct seen seen = *drawing_host(drawing, operation->thread);
    struct seen more = {{0}};
    if (at_call) {
        if (operation->verb == COPY)
            more = drawing_covered(drawing, operation->stream);
    } else if (operation->verb == COPY_PEER) {
        for (int device = 0; device < drawing->program->device_count; ++device)
            if (fence_devices(drawing, operation) >> device & 1) {
                const struct seen one = device_sees(drawing, device);
                seen_join(&more, &one);
            }
    } else if (operation->verb == FREE || operation->verb == HOST_FREE) {
        for (int i = 0; i < drawing->program->stream_count; ++i)
            if (operation->verb == HOST_FREE ||
                drawing->program->streams[i].device ==
                    drawing->program->buffers[operation->buffer].device)
                seen_join(&more, &drawing->streams[i].seen);
    } else if (!is_host_operation(operation) && operation->stream != NONE) {
        more = stream_sees(drawing, operation->stream);
        if (operation->verb == LAUNCH)
            seen_join(&more, &drawing->execs[operation->exec].last);
    }
    seen_join(&seen, &more);
    return seen;
}

static const struct past *find_past(const struct pasts *pasts, const struct access *access,
                                    const struct seen *seen) {
    const uint32_t mask = span_mask(&access->span);
    for (int i = 0; i < pasts->count; ++i) {
        const struct past *past = &pasts->items[i];
        if (past->buffer == access->span.buffer && (past->mask & mask) &&
            modes_conflict(past->mode, access->mode) && !seen_has(seen, past->bit))
            return past;
    }
    return NULL;
}

static const struct past *find_conflict(const struct pasts *pasts, const struct touched *touched,
                                        int count, bool at_call, const struct seen *seen) {
    for (int i = 0; i < count; ++i) {
        if (touched[i].at_call != at_call)
            continue;
        const struct past *past = find_past(pasts, &touched[i].access, seen);
        if (past != NULL)
            return past;
    }
    return NULL;
}

static const struct past *launch_blocker(const struct drawing *drawing, int exec,
                                         const struct seen *seen) {
    const struct drawn_capture *graph = &drawing->captures[drawing->execs[exec].capture];
    const struct past *past = NULL;
    for (int i = 0; i < graph->count && past == NULL; ++i) {
        struct touched touched[3 * STEPS_MAX];
        const int count = operation_touches(
            drawing, &drawing->program->operations[graph->nodes[i]], true, touched);
        past = find_conflict(&drawing->pasts, touched, count, false, seen);
    }
    return past;
}

const struct past *drawing_blocker(struct drawing *drawing, const struct operation *operation,
                                   const struct seen *extra) {
    const int capture =
        operation->stream == NONE ? NONE : drawing->streams[operation->stream].capture;
    struct touched touched[3 * STEPS_MAX];
    const int count = operation_touches(drawing, operation, capture != NONE, touched);
    if (capture != NONE)
        return find_conflict(&drawing->captures[capture].pasts, touched, count, false,
                             &drawing->streams[operation->stream].captured);
    struct seen seen = operation_sees(drawing, operation, false);
    if (extra != NULL)
        seen_join(&seen, extra);
    if (operation->verb == LAUNCH)
        return launch_blocker(drawing, operation->exec, &seen);
    const struct seen call = operation_sees(drawing, operation, true);
    const struct past *past = find_conflict(&drawing->pasts, touched, count, true, &call);
    return past != NULL ? past : find_conflict(&drawing->pasts, touched, count, false, &seen);
}

struct seen drawing_node_sees(const struct drawing *drawing, const struct operation *operation) {
    struct seen seen = {{0}};
    for (int i = 0; i < operation->dependency_count; ++i) {
        seen_join(&seen, &drawing->nodes[operation->dependencies[i]]);
        seen_add(&seen, 2 * operation->dependencies[i] + 1);
    }
    return seen;
}

const struct past *drawing_node_blocker(const struct drawing *drawing,
                                        const struct operation *operation,
                                        const struct seen *seen) {
    struct touched touched[3 * STEPS_MAX];
    const int count = operation_touches(drawing, operation, true, touched);
    return find_conflict(&drawing->captures[operation->graph].pasts, touched, count, false, seen);
}

// HOST_BIT: NONE for a node.
static void note(struct drawing *drawing, const struct operation *operation, struct pasts *pasts,
                 int host_bit, int bit, enum home home, int index) {
    struct touched touched[3 * STEPS_MAX];
    const int count = operation_touches(drawing, operation, host_bit == NONE, touched);
    for (int i = 0; i < count; ++i) {
        BASE_CHECK_LT(pasts->count, PASTS_MAX);
        const bool at_call = touched[i].at_call;
        pasts->items[pasts->count++] = (struct past){
            .bit = at_call ? host_bit : bit,
            .home = at_call ? HOME_HOST : home,
            .index = at_call ? operation->thread : index,
            .mode = touched[i].access.mode,
            .buffer = touched[i].access.span.buffer,
            .mask = span_mask(&touched[i].access.span),
        };
    }
}

// --- Contents ---

uint32_t contents_readable(const struct contents *contents, const struct span *span) {
    uint32_t readable = contents->defined[span->buffer];
    if (span->block != NONE)
        readable &= contents->written[span->block];
    return readable;
}

static bool step_apply(struct contents *contents, const struct step *step) {
    struct access accesses[3];
    const int count = step_accesses(step, accesses);
    bool complete = true;
    uint32_t defined = 0;
    for (int i = 0; i < count; ++i) {
        const struct access *access = &accesses[i];
        if (access->mode == WRITES)
            continue;
        complete = complete && (access->quiet ||
                                (span_mask(&access->span) &
                                 ~contents_readable(contents, &access->span)) == 0);
    }
    if (step->verb == STEP_READ)
        return complete;
    for (int i = 0; i < span_size(&step->to); ++i) {
        const bool known = step->verb != STEP_CARRY ||
                           (contents_readable(contents, &step->from[0]) >>
                                span_cell(&step->from[0], i) &
                            1);
        defined |= (uint32_t)known << span_cell(&step->to, i);
    }
    const uint32_t mask = span_mask(&step->to);
    contents->defined[step->to.buffer] = (contents->defined[step->to.buffer] & ~mask) | defined;
    if (step->to.block != NONE)
        contents->written[step->to.block] |= mask;
    return complete;
}

bool contents_apply(struct contents *contents, const struct operation *operation) {
    bool complete = true;
    for (int i = 0; i < operation->step_count; ++i)
        complete = step_apply(contents, &operation->steps[i]) && complete;
    switch (operation->verb) {
    case ALLOC:
    case HOST_ALLOC:
    case ALLOC_ASYNC:
    case FREE:
    case HOST_FREE:
    case FREE_ASYNC: contents->defined[operation->buffer] = 0; break;
    default: break;
    }
    return complete;
}

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
    note(drawing, operation, &capture->pasts, NONE, bit, HOME_STREAM, stream);
    BASE_CHECK(contents_apply(&capture->contents, operation));
}

static void emit_node(struct drawing *drawing, const struct operation *operation, int index) {
    struct drawn_capture *graph = &drawing->captures[operation->graph];
    drawing->nodes[index] = drawing_node_sees(drawing, operation);
    graph->nodes[graph->count++] = index;
    note(drawing, operation, &graph->pasts, NONE, 2 * index + 1, HOME_STREAM, NONE);
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
    const struct drawn_capture *graph =
        &drawing->captures[drawing->execs[operation->exec].capture];
    for (int i = 0; i < graph->count; ++i) {
        const struct operation *node = &drawing->program->operations[graph->nodes[i]];
        note(drawing, node, &drawing->pasts, NONE, bit, HOME_STREAM, operation->stream);
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
        return !is_staged(drawing, operation) && (to != ON_DEVICE || from != ON_DEVICE);
    case COPY_ASYNC: return to != ON_DEVICE && from != ON_DEVICE;
    case FILL: return to == PINNED;
    default: return false;
    }
}

static void emit_stream(struct drawing *drawing, const struct operation *operation, int index) {
    const int stream = operation->stream, bit = 2 * index + 1;
    struct seen seen = operation_sees(drawing, operation, false);
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
    if (is_staged(drawing, operation)) { // the host is delayed, too
        const struct seen call = operation_sees(drawing, operation, true);
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
        note(drawing, operation, &drawing->pasts, 2 * index, bit, HOME_STREAM, stream);
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
    case DEVICE_SYNC: seen = device_sees(drawing, operation->device); break;
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
                         operation->verb == FREE_ASYNC || is_host_operation(operation);
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
        *graph = (struct drawn_capture){.origin = NONE,
                                        .device = operation->device,
                                        .contents = drawing->contents};
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
        struct seen seen = operation_sees(drawing, operation, false);
        seen_add(&seen, 2 * index + 1);
        const uint32_t devices = fence_devices(drawing, operation);
        for (int device = 0; device < program->device_count; ++device)
            if (devices >> device & 1)
                drawing->fences[device] = seen;
        note(drawing, operation, &drawing->pasts, host_bit, 2 * index + 1, HOME_FENCE,
             (int)devices);
        break;
    }
    case HOST_WRITE:
    case HOST_READ:
    case ALLOC:
    case HOST_ALLOC:
    case FREE:
    case HOST_FREE: {
        const struct seen seen = operation_sees(drawing, operation, false);
        seen_join(host, &seen);
        note(drawing, operation, &drawing->pasts, host_bit, host_bit, HOME_HOST,
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
