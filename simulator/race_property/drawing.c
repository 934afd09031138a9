// What the generator knows (drawing.h): order as sets of what was seen, accesses, contents.
#include "simulator/race_property/drawing.h"

#include "base/check.h"

#include <string.h>

// --- Sets ---

void seen_add(struct seen *seen, int bit) { seen->words[bit / 64] |= (uint64_t)1 << (bit % 64); }

bool seen_has(const struct seen *seen, int bit) { return seen->words[bit / 64] >> (bit % 64) & 1; }

void seen_join(struct seen *into, const struct seen *other) {
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
    return program->streams[stream].kind == BLOCKING || program->streams[stream].kind == PER_THREAD;
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

struct seen drawing_device_sees(struct drawing *drawing, int device) {
    struct seen seen = drawing->fences[device];
    for (int i = 0; i < drawing->program->stream_count; ++i)
        if (drawing->program->streams[i].device == device)
            seen_join(&seen, &drawing->streams[i].seen);
    return seen;
}

uint32_t drawing_fence_devices(const struct drawing *drawing, const struct operation *operation) {
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
bool drawing_is_staged(const struct drawing *drawing, const struct operation *operation) {
    const struct step *step = &operation->steps[0];
    return (operation->verb == COPY || operation->verb == COPY_ASYNC) &&
           drawing->program->buffers[step->from[0].buffer].place == PAGEABLE &&
           drawing->program->buffers[step->to.buffer].place == ON_DEVICE;
}

static int operation_touches(const struct drawing *drawing, const struct operation *operation,
                             bool is_node, struct touched touched[3 * STEPS_MAX]) {
    const bool staged = !is_node && drawing_is_staged(drawing, operation);
    int count = 0;
    for (int i = 0; i < operation->step_count; ++i) {
        struct access accesses[3];
        const int access_count = step_accesses(&operation->steps[i], accesses);
        for (int k = 0; k < access_count; ++k)
            touched[count++] = (struct touched){accesses[k], staged && accesses[k].mode == READS};
    }
    switch (operation->verb) { // the ends of a life are not to be crossed by any access
    case ALLOC:
    case HOST_ALLOC:
    case ALLOC_ASYNC:
    case FREE:
    case HOST_FREE:
    case FREE_ASYNC:
        touched[count++] =
            (struct touched){{WRITES, false, {operation->buffer, NONE, 0, CELLS, CELLS, 1}}, false};
        break;
    default: break;
    }
    return count;
}

bool operation_is_hosts(const struct operation *operation) {
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
struct seen drawing_sees(struct drawing *drawing, const struct operation *operation, bool at_call) {
    struct seen seen = *drawing_host(drawing, operation->thread);
    struct seen more = {{0}};
    if (at_call) {
        if (operation->verb == COPY)
            more = drawing_covered(drawing, operation->stream);
    } else if (operation->verb == COPY_PEER) {
        for (int device = 0; device < drawing->program->device_count; ++device)
            if (drawing_fence_devices(drawing, operation) >> device & 1) {
                const struct seen one = drawing_device_sees(drawing, device);
                seen_join(&more, &one);
            }
    } else if (operation->verb == FREE || operation->verb == HOST_FREE) {
        for (int i = 0; i < drawing->program->stream_count; ++i)
            if (operation->verb == HOST_FREE ||
                drawing->program->streams[i].device ==
                    drawing->program->buffers[operation->buffer].device)
                seen_join(&more, &drawing->streams[i].seen);
    } else if (!operation_is_hosts(operation) && operation->stream != NONE) {
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
        const int count = operation_touches(drawing, &drawing->program->operations[graph->nodes[i]],
                                            true, touched);
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
    struct seen seen = drawing_sees(drawing, operation, false);
    if (extra != NULL)
        seen_join(&seen, extra);
    if (operation->verb == LAUNCH)
        return launch_blocker(drawing, operation->exec, &seen);
    const struct seen call = drawing_sees(drawing, operation, true);
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
void drawing_note(struct drawing *drawing, const struct operation *operation, struct pasts *pasts,
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
