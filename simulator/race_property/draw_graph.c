// Captures with forks and joins, and launches of what they made.
#include "simulator/race_property/drawing.h"

#include "base/check.h"

static struct operation make(const struct drawing *drawing, enum verb verb) {
    return operation_make(verb, drawing->thread);
}

// --- Captures ---

static int member_choose(struct drawing *drawing, int capture) {
    int found = NONE;
    for (int i = 0, count = 0; i < drawing->program->stream_count; ++i)
        if (drawing->streams[i].capture == capture && draw_below(drawing, ++count) == 0)
            found = i;
    return found;
}

static void order_captured(struct drawing *drawing, int from, int to) {
    const int event = event_for(drawing, drawing->program->streams[from].device);
    emit_record(drawing, event, from);
    emit_wait(drawing, to, event);
}

static void fork(struct drawing *drawing, int capture) {
    const int member = member_choose(drawing, capture);
    const int device = drawing->program->streams[member].device;
    const int other = stream_choose(drawing, draw_chance(drawing, 0.1) ? NONE : device);
    if (other != NONE && drawing->program->streams[other].kind != LEGACY)
        order_captured(drawing, member, other);
}

static void draw_captured(struct drawing *drawing, int capture) {
    const int member = member_choose(drawing, capture);
    switch (draw_below(drawing, 12)) {
    case 0:
    case 1:
    case 2: fork(drawing, capture); break;
    case 3: {
        const int other = member_choose(drawing, capture);
        if (other != member)
            order_captured(drawing, other, member);
        break;
    }
    case 4:
    case 5: draw_memory(drawing, member); break;
    case 6: { // others go on meanwhile
        const int other = stream_choose(drawing, NONE);
        if (other != NONE)
            (void)draw_work(drawing, other);
        break;
    }
    default: (void)draw_work(drawing, member);
    }
}

static void draw_joins(struct drawing *drawing, int capture, int origin) {
    // A buffer of the graph's own ends in it: a launch finds it as the first one did.
    for (int i = 0; i < drawing->program->buffer_count; ++i)
        if (drawing->live[i] && drawing->node_of[i] == capture)
            BASE_CHECK(draw_free(drawing, member_choose(drawing, capture), i));
    for (int i = 0; i < drawing->program->block_count; ++i)
        if (drawing->held[i] && drawing->held_by[i] == capture && draw_chance(drawing, 0.6))
            (void)draw_give(drawing, i);
    for (int i = 0; i < drawing->program->stream_count; ++i)
        if (i != origin && drawing->streams[i].capture == capture)
            order_captured(drawing, i, origin);
}

static void draw_instances(struct drawing *drawing, int capture) {
    const int count = drawing->captures[capture].has_memory ? 1 : draw_between(drawing, 1, 2);
    for (int i = 0; i < count && drawing->exec_count < EXECS_MAX; ++i) {
        struct operation operation = make(drawing, INSTANTIATE);
        operation.graph = capture;
        operation.exec = drawing->exec_count++;
        drawing_emit(drawing, &operation);
    }
    if (draw_chance(drawing, 0.3)) {
        struct operation operation = make(drawing, GRAPH_DESTROY);
        operation.graph = capture;
        drawing_emit(drawing, &operation);
    }
}

void draw_capture(struct drawing *drawing) {
    const int origin = stream_choose(drawing, NONE);
    if (drawing->capture_count == GRAPHS_MAX || origin == NONE ||
        drawing->program->streams[origin].kind == LEGACY || !drawing_has_room(drawing, 64))
        return;
    const int capture = drawing->capture_count;
    struct operation operation = make(drawing, BEGIN);
    operation.stream = origin;
    operation.value = draw_below(drawing, 3);
    drawing_emit(drawing, &operation);
    for (int i = draw_between(drawing, 2, 9); i > 0 && drawing_has_room(drawing, 48); --i)
        draw_captured(drawing, capture);
    draw_joins(drawing, capture, origin);
    operation.verb = END;
    operation.graph = capture;
    operation.value = 0;
    drawing_emit(drawing, &operation);
    draw_instances(drawing, capture);
}

void draw_graph(struct drawing *drawing) {
    if (drawing->capture_count == GRAPHS_MAX || !drawing_has_room(drawing, 24))
        return;
    struct operation operation = make(drawing, GRAPH_CREATE);
    operation.graph = drawing->capture_count;
    operation.device = draw_below(drawing, drawing->program->device_count);
    drawing_emit(drawing, &operation);
    for (int i = draw_between(drawing, 2, 6); i > 0; --i)
        draw_node(drawing, operation.graph);
    draw_instances(drawing, operation.graph);
}

void draw_crowd(struct drawing *drawing) {
    struct operation operation = make(drawing, GRAPH_CREATE);
    operation.graph = drawing->capture_count;
    operation.device = 0;
    drawing_emit(drawing, &operation);
    const int buffer = 0; // of device 0, and no arena
    const int size = drawing->program->buffers[buffer].size;
    const struct span whole = {buffer, NONE, 0, size, size, 1};
    operation.verb = ADD_KERNEL;
    operation.step_count = 1;
    operation.steps[0] = (struct step){STEP_SET, whole, {whole, whole}};
    const int first = drawing_emit(drawing, &operation);
    for (int i = draw_between(drawing, 40, 60); i > 0; --i)
        draw_reader(drawing, operation.graph, buffer, first);
    draw_instances(drawing, operation.graph);
    for (int i = draw_below(drawing, 4); i > 0; --i)
        draw_launch(drawing);
}

// --- Launches ---

// Whether a block that the graph knows nothing of holds bytes that its blocks held.
static bool is_held_by_others(const struct drawing *drawing, int capture) {
    const struct drawn_capture *graph = &drawing->captures[capture];
    const struct program *program = drawing->program;
    const struct seen *host = &drawing->hosts[program->threads_strict ? drawing->thread : 0];
    for (int i = 0; i < graph->count; ++i) {
        const struct operation *node = &program->operations[graph->nodes[i]];
        for (int k = 0; k < node->step_count; ++k) {
            struct access accesses[3];
            const int count = step_accesses(&node->steps[k], accesses);
            for (int a = 0; a < count; ++a)
                for (int b = 0; b < program->block_count; ++b) {
                    const struct span *span = &accesses[a].span;
                    const struct block *block = &program->blocks[b];
                    const uint32_t cells = ((1u << block->size) - 1) << block->start;
                    if (span->block != NONE && b != span->block && block->buffer == span->buffer &&
                        drawing->held_by[b] != capture && (cells & span_mask(span)) &&
                        (drawing->held[b] || !seen_has(host, drawing->give_bit[b])))
                        return true;
                }
        }
    }
    return false;
}

// A replay may not read what nobody wrote by then.
static bool is_complete(const struct drawing *drawing, int capture) {
    const struct drawn_capture *graph = &drawing->captures[capture];
    struct contents contents = drawing->contents;
    for (int i = 0; i < graph->count; ++i)
        if (!contents_apply(&contents, &drawing->program->operations[graph->nodes[i]]))
            return false;
    return true;
}

void draw_launch(struct drawing *drawing) {
    if (drawing->exec_count == 0 || !drawing_has_room(drawing, 24))
        return;
    struct operation operation = make(drawing, LAUNCH);
    operation.exec = draw_below(drawing, drawing->exec_count);
    const int capture = drawing->execs[operation.exec].capture;
    if (capture == NONE || is_held_by_others(drawing, capture) || !is_complete(drawing, capture))
        return;
    operation.stream = stream_choose(drawing, drawing->captures[capture].device);
    if (operation.stream == NONE || !edges_add_and_emit(drawing, &operation) ||
        !draw_chance(drawing, 0.05))
        return;
    struct operation destroy = make(drawing, EXEC_DESTROY);
    destroy.exec = operation.exec;
    drawing_emit(drawing, &destroy);
}
