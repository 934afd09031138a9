// What the generator draws: kernels, copies, fills and the host's accesses.
#include "simulator/race_property/drawing.h"

#define ANY_PLACE   (1u << ON_DEVICE | 1u << PINNED | 1u << PAGEABLE)
#define HOST_PLACES (1u << PINNED | 1u << PAGEABLE)

static struct operation make(const struct drawing *drawing, enum verb verb) {
    return operation_make(verb, drawing->thread);
}

// --- Work ---

// One step of a kernel or host function; what would read bytes that nobody wrote writes them.
static bool step_draw(struct drawing *drawing, const struct place_wanted *wanted,
                      struct step *step) {
    static const enum step_verb verbs[] = {STEP_SET, STEP_SET,    STEP_MOVE, STEP_MOVE,
                                           STEP_SUM, STEP_ATOMIC, STEP_READ, STEP_READ};
    struct target target;
    if (!target_choose(drawing, wanted, &target))
        return false;
    step->verb = verbs[draw_below(drawing, (int)(sizeof verbs / sizeof verbs[0]))];
    step->to = span_draw(drawing, &target, true);
    step->from[0] = step->from[1] = step->to;
    const int from_count = step->verb == STEP_SUM ? 2 : step->verb == STEP_MOVE ? 1 : 0;
    bool complete = step->verb == STEP_SET ||
                    drawing_is_readable(drawing, wanted->capture, &step->to) || from_count > 0;
    for (int i = 0; i < from_count; ++i) {
        if (!target_choose(drawing, wanted, &target) ||
            !span_draw_like(drawing, &target, &step->to, &step->from[i]))
            return false;
        complete = complete && drawing_is_readable(drawing, wanted->capture, &step->from[i]);
    }
    if (!complete)
        step->verb = STEP_SET;
    return true;
}

static bool spans_meet(const struct span *a, const struct span *b) {
    return a->buffer == b->buffer && (span_mask(a) & span_mask(b));
}

// Copies: source and destination may not meet.
static bool copy_draw(struct drawing *drawing, const struct place_wanted *wanted, bool rows,
                      struct step *step) {
    struct target to, from;
    step->verb = STEP_CARRY;
    if (!target_choose(drawing, wanted, &to) || !target_choose(drawing, wanted, &from))
        return false;
    step->to = span_draw(drawing, &to, rows);
    return span_draw_like(drawing, &from, &step->to, &step->from[0]) &&
           !spans_meet(&step->to, &step->from[0]);
}

static bool kernel_draw(struct drawing *drawing, int stream, struct operation *operation) {
    const struct place_wanted wanted = {1u << ON_DEVICE | 1u << PINNED,
                                        drawing->program->streams[stream].device, false,
                                        drawing_capture_of(drawing, stream)};
    *operation = make(drawing, KERNEL);
    operation->stream = stream;
    if (draw_chance(drawing, 0.1)) {
        operation->step_count = 1;
        return copy_draw(drawing, &wanted, true, &operation->steps[0]) &&
               (drawing->program->buffers[operation->steps[0].to.buffer].place == ON_DEVICE ||
                drawing->program->buffers[operation->steps[0].from[0].buffer].place == ON_DEVICE);
    }
    operation->step_count = draw_between(drawing, 1, STEPS_MAX);
    for (int i = 0; i < operation->step_count; ++i)
        if (!step_draw(drawing, &wanted, &operation->steps[i]))
            return false;
    return true;
}

static bool host_function_draw(struct drawing *drawing, int stream, struct operation *operation) {
    const struct place_wanted wanted = {HOST_PLACES, NONE, false,
                                        drawing_capture_of(drawing, stream)};
    *operation = make(drawing, HOST_FUNCTION);
    operation->stream = stream;
    operation->step_count = draw_between(drawing, 1, 2);
    for (int i = 0; i < operation->step_count; ++i)
        if (!step_draw(drawing, &wanted, &operation->steps[i]))
            return false;
    return true;
}

// A default stream, which plain calls use; the thread's own for a program that is built so.
static int plain_stream(struct drawing *drawing) {
    for (int tries = 0; tries < 8; ++tries) {
        const int stream = stream_choose(drawing, NONE);
        if (stream != NONE && (drawing->program->streams[stream].kind == LEGACY ||
                               drawing->program->streams[stream].kind == PER_THREAD))
            return stream;
    }
    return NONE;
}

static bool copying_draw(struct drawing *drawing, int stream, struct operation *operation) {
    const bool plain = drawing_capture_of(drawing, stream) == NONE && draw_chance(drawing, 0.25);
    *operation = make(drawing, plain ? COPY : COPY_ASYNC);
    operation->stream = plain ? plain_stream(drawing) : stream;
    if (operation->stream == NONE || (plain && !drawing_host_call_allowed(drawing)))
        return false;
    const struct place_wanted wanted = {ANY_PLACE,
                                        drawing->program->streams[operation->stream].device, false,
                                        drawing_capture_of(drawing, stream)};
    operation->step_count = 1;
    return copy_draw(drawing, &wanted, true, &operation->steps[0]);
}

static bool filling_draw(struct drawing *drawing, int stream, struct operation *operation) {
    const bool plain = drawing_capture_of(drawing, stream) == NONE && draw_chance(drawing, 0.25);
    *operation = make(drawing, plain ? FILL : FILL_ASYNC);
    operation->stream = plain ? plain_stream(drawing) : stream;
    if (operation->stream == NONE)
        return false;
    const struct place_wanted wanted = {1u << ON_DEVICE | 1u << PINNED,
                                        drawing->program->streams[operation->stream].device, false,
                                        drawing_capture_of(drawing, stream)};
    struct target target;
    operation->step_count = 1;
    operation->steps[0].verb = STEP_SET;
    if (!target_choose(drawing, &wanted, &target))
        return false;
    operation->steps[0].to = operation->steps[0].from[0] = span_draw(drawing, &target, true);
    return true;
}

static bool any_capture(const struct drawing *drawing) {
    for (int i = 0; i < drawing->capture_count; ++i)
        if (drawing->captures[i].active)
            return true;
    return false;
}

static bool peer_copy_draw(struct drawing *drawing, int stream, struct operation *operation) {
    const bool plain = draw_chance(drawing, 0.4);
    if (drawing_capture_of(drawing, stream) != NONE || (plain && any_capture(drawing)))
        return false;
    *operation = make(drawing, plain ? COPY_PEER : COPY_PEER_ASYNC);
    if (plain)
        operation->device = draw_below(drawing, drawing->program->device_count);
    else
        operation->stream = stream;
    const struct place_wanted wanted = {1u << ON_DEVICE, NONE, true, NONE};
    operation->step_count = 1;
    return copy_draw(drawing, &wanted, false, &operation->steps[0]);
}

static bool host_access_draw(struct drawing *drawing, struct operation *operation) {
    const struct place_wanted wanted = {HOST_PLACES, NONE, false, NONE};
    struct target target;
    if (!target_choose(drawing, &wanted, &target))
        return false;
    const struct span span = span_draw(drawing, &target, false);
    const bool reads = draw_chance(drawing, 0.5) && drawing_is_readable(drawing, NONE, &span);
    *operation = make(drawing, reads ? HOST_READ : HOST_WRITE);
    operation->step_count = 1;
    operation->steps[0] = (struct step){reads ? STEP_READ : STEP_SET, span, {span, span}};
    return true;
}

bool operation_draw(struct drawing *drawing, int stream, struct operation *operation) {
    switch (draw_below(drawing, 16)) {
    case 0:
    case 1:
    case 2: return copying_draw(drawing, stream, operation);
    case 3: return filling_draw(drawing, stream, operation);
    case 4: return host_function_draw(drawing, stream, operation);
    case 5: return peer_copy_draw(drawing, stream, operation);
    case 6:
    case 7:
        return drawing_capture_of(drawing, stream) == NONE && host_access_draw(drawing, operation);
    default: return kernel_draw(drawing, stream, operation);
    }
}

void draw_node(struct drawing *drawing, int graph) {
    const struct drawn_capture *drawn = &drawing->captures[graph];
    const struct place_wanted wanted = {1u << ON_DEVICE | 1u << PINNED, drawn->device, false,
                                        graph};
    struct operation operation = make(drawing, ADD_KERNEL);
    operation.graph = graph;
    operation.device = drawn->device;
    operation.step_count = draw_between(drawing, 1, 2);
    for (int i = 0; i < operation.step_count; ++i)
        if (!step_draw(drawing, &wanted, &operation.steps[i]))
            return;
    if (drawn->count > 0 && draw_chance(drawing, 0.5)) {
        operation.dependencies[0] = drawn->nodes[draw_below(drawing, drawn->count)];
        operation.dependency_count = 1;
    }
    for (;;) {
        const struct seen seen = drawing_node_sees(drawing, &operation);
        const struct past *past = drawing_node_blocker(drawing, &operation, &seen);
        if (past == NULL)
            break;
        if (operation.dependency_count == DEPENDENCIES_MAX)
            return;
        operation.dependencies[operation.dependency_count++] = past->bit / 2;
    }
    drawing_emit(drawing, &operation);
}

void draw_reader(struct drawing *drawing, int graph, int buffer, int first) {
    const struct target target = {buffer, NONE, 0, drawing->program->buffers[buffer].size};
    const struct span span = span_draw(drawing, &target, true);
    struct operation operation = make(drawing, ADD_KERNEL);
    operation.graph = graph;
    operation.device = drawing->captures[graph].device;
    operation.step_count = operation.dependency_count = 1;
    operation.steps[0] = (struct step){STEP_READ, span, {span, span}};
    operation.dependencies[0] = first;
    drawing_emit(drawing, &operation);
}

bool draw_work(struct drawing *drawing, int stream) {
    struct operation operation;
    return operation_draw(drawing, stream, &operation) && edges_add_and_emit(drawing, &operation);
}
