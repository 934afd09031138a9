// What the generator draws: kernels, copies, fills, the host's accesses, and memory's beginnings and
// ends.
#include "simulator/race_property/drawing.h"

#include "base/check.h"

#define TARGETS_MAX (BUFFERS_MAX + BLOCKS_MAX)
#define ANY_PLACE   (1u << ON_DEVICE | 1u << PINNED | 1u << PAGEABLE)
#define HOST_PLACES (1u << PINNED | 1u << PAGEABLE)

static struct operation make(const struct drawing *drawing, enum verb verb) {
    return operation_make(verb, drawing->thread);
}

int stream_choose(struct drawing *drawing, int device) {
    int found = NONE;
    for (int i = 0, count = 0; i < drawing->program->stream_count; ++i)
        if ((device == NONE || drawing->program->streams[i].device == device) &&
            drawing->streams[i].capture == NONE && drawing_stream_usable(drawing, i) &&
            draw_below(drawing, ++count) == 0)
            found = i;
    return found;
}

static int capture_of(const struct drawing *drawing, int stream) {
    return stream == NONE ? NONE : drawing->streams[stream].capture;
}

// --- Where ---

struct place_wanted {
    uint32_t places;
    int device;  // of device memory; NONE: any
    bool shared; // between devices: what a pool gives belongs to one
    int capture; // that the operation is a node of, or NONE
};

// A graph outlives what the program frees: its nodes use what stays.
static bool buffer_fits(const struct drawing *drawing, int index,
                        const struct place_wanted *wanted) {
    const struct buffer *buffer = &drawing->program->buffers[index];
    if (!drawing->live[index] || !(wanted->places >> buffer->place & 1))
        return false;
    if (buffer->place == ON_DEVICE && wanted->device != NONE && buffer->device != wanted->device)
        return false;
    if (wanted->shared && (drawing->is_pool[index] || drawing->node_of[index] != NONE))
        return false;
    return buffer->allocated ? drawing->node_of[index] == wanted->capture : true;
}

static bool block_fits(const struct drawing *drawing, int block,
                       const struct place_wanted *wanted) {
    const int by = drawing->held_by[block];
    if (!drawing->held[block])
        return false;
    return wanted->capture != NONE ? by == wanted->capture
                                   : by == NONE || !drawing->captures[by].active;
}

static bool target_choose(struct drawing *drawing, const struct place_wanted *wanted,
                          struct target *target) {
    int count = 0;
    for (int i = 0; i < drawing->program->buffer_count; ++i) {
        if (!buffer_fits(drawing, i, wanted))
            continue;
        if (!drawing->is_arena[i]) {
            if (draw_below(drawing, ++count) == 0)
                *target = (struct target){i, NONE, 0, drawing->program->buffers[i].size};
            continue;
        }
        bool idle = wanted->capture == NONE; // the allocator itself uses what nobody holds
        for (int k = 0; k < drawing->program->block_count; ++k) {
            const struct block *block = &drawing->program->blocks[k];
            idle = idle && !(block->buffer == i && drawing->held[k]);
            if (block->buffer == i && block_fits(drawing, k, wanted) &&
                draw_below(drawing, ++count) == 0)
                *target = (struct target){i, k, block->start, block->size};
        }
        if (idle && draw_below(drawing, ++count) == 0)
            *target = (struct target){i, NONE, 0, drawing->program->buffers[i].size};
    }
    return count > 0;
}

static struct span span_draw(struct drawing *drawing, const struct target *target, bool rows) {
    struct span span = {.buffer = target->buffer, .block = target->block, .count = 1};
    span.length = draw_between(drawing, 1, target->size < 6 ? target->size : 6);
    span.stride = span.length;
    if (rows && draw_chance(drawing, 0.4)) {
        span.length = draw_between(drawing, 1, 3);
        span.stride = span.length + draw_between(drawing, 1, 3);
        span.count = draw_between(drawing, 2, 4);
        while (span.count > 1 && (span.count - 1) * span.stride + span.length > target->size)
            --span.count;
        if (span.length > target->size)
            span.length = target->size;
    }
    const int extent = (span.count - 1) * span.stride + span.length;
    span.start = target->start + draw_below(drawing, target->size - extent + 1);
    return span;
}

// As many cells as LIKE, elsewhere.
static bool span_draw_like(struct drawing *drawing, const struct target *target,
                           const struct span *like, struct span *span) {
    *span = *like;
    span->buffer = target->buffer;
    span->block = target->block;
    if (span->count > 1)
        span->stride = span->length + draw_below(drawing, 3);
    const int extent = (span->count - 1) * span->stride + span->length;
    if (extent > target->size)
        return false;
    span->start = target->start + draw_below(drawing, target->size - extent + 1);
    return true;
}

static bool spans_meet(const struct span *a, const struct span *b) {
    return a->buffer == b->buffer && (span_mask(a) & span_mask(b));
}

static const struct contents *contents_of(const struct drawing *drawing, int capture) {
    return capture != NONE ? &drawing->captures[capture].contents : &drawing->contents;
}

static bool is_readable(const struct drawing *drawing, int capture, const struct span *span) {
    return (span_mask(span) & ~contents_readable(contents_of(drawing, capture), span)) == 0;
}

// --- Work ---

// One step of a kernel or host function; what would read bytes that nobody wrote writes them.
static bool step_draw(struct drawing *drawing, const struct place_wanted *wanted,
                      struct step *step) {
    static const enum step_verb verbs[] = {STEP_SET,  STEP_SET,    STEP_MOVE,  STEP_MOVE,
                                           STEP_SUM,  STEP_ATOMIC, STEP_READ, STEP_READ};
    struct target target;
    if (!target_choose(drawing, wanted, &target))
        return false;
    step->verb = verbs[draw_below(drawing, (int)(sizeof verbs / sizeof verbs[0]))];
    step->to = span_draw(drawing, &target, true);
    step->from[0] = step->from[1] = step->to;
    const int from_count = step->verb == STEP_SUM ? 2 : step->verb == STEP_MOVE ? 1 : 0;
    bool complete = step->verb == STEP_SET || is_readable(drawing, wanted->capture, &step->to) ||
                    from_count > 0;
    for (int i = 0; i < from_count; ++i) {
        if (!target_choose(drawing, wanted, &target) ||
            !span_draw_like(drawing, &target, &step->to, &step->from[i]))
            return false;
        complete = complete && is_readable(drawing, wanted->capture, &step->from[i]);
    }
    if (!complete)
        step->verb = STEP_SET;
    return true;
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
                                        capture_of(drawing, stream)};
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
    const struct place_wanted wanted = {HOST_PLACES, NONE, false, capture_of(drawing, stream)};
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
    const bool plain = capture_of(drawing, stream) == NONE && draw_chance(drawing, 0.25);
    *operation = make(drawing, plain ? COPY : COPY_ASYNC);
    operation->stream = plain ? plain_stream(drawing) : stream;
    if (operation->stream == NONE || (plain && !drawing_host_call_allowed(drawing)))
        return false;
    const struct place_wanted wanted = {
        ANY_PLACE, drawing->program->streams[operation->stream].device, false,
        capture_of(drawing, stream)};
    operation->step_count = 1;
    return copy_draw(drawing, &wanted, true, &operation->steps[0]);
}

static bool filling_draw(struct drawing *drawing, int stream, struct operation *operation) {
    const bool plain = capture_of(drawing, stream) == NONE && draw_chance(drawing, 0.25);
    *operation = make(drawing, plain ? FILL : FILL_ASYNC);
    operation->stream = plain ? plain_stream(drawing) : stream;
    if (operation->stream == NONE)
        return false;
    const struct place_wanted wanted = {
        1u << ON_DEVICE | 1u << PINNED, drawing->program->streams[operation->stream].device, false,
        capture_of(drawing, stream)};
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
    if (capture_of(drawing, stream) != NONE || (plain && any_capture(drawing)))
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
    const bool reads = draw_chance(drawing, 0.5) && is_readable(drawing, NONE, &span);
    *operation = make(drawing, reads ? HOST_READ : HOST_WRITE);
    operation->step_count = 1;
    operation->steps[0] =
        (struct step){reads ? STEP_READ : STEP_SET, span, {span, span}};
    return true;
}

static bool operation_draw(struct drawing *drawing, int stream, struct operation *operation) {
    switch (draw_below(drawing, 16)) {
    case 0:
    case 1:
    case 2: return copying_draw(drawing, stream, operation);
    case 3: return filling_draw(drawing, stream, operation);
    case 4: return host_function_draw(drawing, stream, operation);
    case 5: return peer_copy_draw(drawing, stream, operation);
    case 6:
    case 7:
        return capture_of(drawing, stream) == NONE && host_access_draw(drawing, operation);
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
    return operation_draw(drawing, stream, &operation) &&
           edges_add_and_emit(drawing, &operation);
}

// --- What need not be ordered ---

static struct operation side_make(struct drawing *drawing, int stream, enum step_verb verb,
                                  const struct span *span) {
    const bool fill = verb == STEP_SET && draw_chance(drawing, 0.3);
    struct operation operation = make(drawing, fill ? FILL_ASYNC : KERNEL);
    operation.stream = stream;
    operation.step_count = 1;
    operation.steps[0] = (struct step){verb, *span, {*span, *span}};
    return operation;
}

void draw_side_by_side(struct drawing *drawing) {
    const int first = stream_choose(drawing, NONE);
    if (first == NONE)
        return;
    const int device = drawing->program->streams[first].device;
    const int second = stream_choose(drawing, device);
    const struct place_wanted wanted = {1u << ON_DEVICE | 1u << PINNED, device, false, NONE};
    struct target target;
    if (second == first || !target_choose(drawing, &wanted, &target) || target.size < 6)
        return;
    struct span span = {.buffer = target.buffer, .block = target.block, .start = target.start};
    span.length = draw_between(drawing, 1, 2);
    span.stride = 2 * span.length + draw_below(drawing, 2);
    span.count = (target.size - 2 * span.length) / span.stride + 1;
    if (span.count < 2)
        span.stride = span.length * 2, span.count = 2;
    struct span other = span;
    enum step_verb verb = STEP_SET;
    if (draw_chance(drawing, 0.4) && is_readable(drawing, NONE, &span))
        verb = STEP_ATOMIC;
    else
        other.start += span.length;
    const struct operation one = side_make(drawing, first, verb, &span);
    const struct operation two = side_make(drawing, second, verb, &other);
    if ((other.count - 1) * other.stride + other.length + other.start > target.start + target.size)
        return;
    if (edges_add_and_emit(drawing, &one))
        (void)edges_add_and_emit(drawing, &two);
}

// A write, much that is alike behind it, and one more elsewhere: it conflicts with the first, not
// with what came between.
void draw_history(struct drawing *drawing) {
    const int first = stream_choose(drawing, NONE);
    if (first == NONE || !drawing_has_room(drawing, 40))
        return;
    const int device = drawing->program->streams[first].device;
    const int second = stream_choose(drawing, device);
    const struct place_wanted wanted = {1u << ON_DEVICE | 1u << PINNED, device, false, NONE};
    struct target target;
    if (!target_choose(drawing, &wanted, &target))
        return;
    const struct span span = span_draw(drawing, &target, true);
    const enum step_verb verb = draw_chance(drawing, 0.6) ? STEP_ATOMIC : STEP_READ;
    struct operation operation = side_make(drawing, first, STEP_SET, &span);
    for (int i = draw_between(drawing, 5, 8); i >= 0; --i) {
        if (!edges_add_and_emit(drawing, &operation))
            return;
        operation = side_make(drawing, i > 1 ? first : second, verb, &span);
    }
}

// --- Queries ---

// Something that is in order only if all in EXTRA is complete.
static bool dependent_draw(struct drawing *drawing, const struct seen *extra,
                           struct operation *operation) {
    for (int tries = 0; tries < 40; ++tries) {
        const int stream = stream_choose(drawing, NONE);
        if (stream == NONE || !operation_draw(drawing, stream, operation))
            continue;
        bool carries = false;
        for (int i = 0; i < operation->step_count; ++i)
            carries |= operation->steps[i].verb == STEP_CARRY;
        if (carries || (operation->verb != KERNEL && operation->verb != HOST_READ &&
                        operation->verb != HOST_WRITE))
            continue;
        if (drawing_blocker(drawing, operation, NULL) != NULL &&
            drawing_blocker(drawing, operation, extra) == NULL)
            return true;
    }
    return false;
}

void draw_query(struct drawing *drawing) {
    struct operation query = make(drawing, draw_chance(drawing, 0.5) ? EVENT_QUERY : STREAM_QUERY);
    struct seen covered = {{0}};
    if (query.verb == EVENT_QUERY) {
        query.event = draw_below(drawing, drawing->program->event_count);
        if (!drawing->events[query.event].exists || drawing->events[query.event].capture != NONE)
            return;
        if (drawing->events[query.event].recorded)
            covered = drawing->events[query.event].seen;
    } else {
        query.stream = stream_choose(drawing, NONE);
        if (query.stream == NONE)
            return;
        covered = drawing_covered(drawing, query.stream);
    }
    if (!drawing_host_call_allowed(drawing))
        return;
    struct operation dependent;
    const bool found = dependent_draw(drawing, &covered, &dependent);
    if (!found && draw_chance(drawing, 0.7))
        return;
    ++drawing->free_queries;
    dependent.guard = drawing_emit(drawing, &query);
    dependent.guard_success = true;
    if (found)
        drawing_emit(drawing, &dependent);
}

// --- Memory ---

static void draw_alloc(struct drawing *drawing, int stream) {
    struct program *program = drawing->program;
    if (program->buffer_count == BUFFERS_MAX)
        return;
    const int capture = capture_of(drawing, stream);
    const bool pool = capture != NONE || draw_chance(drawing, 0.5);
    const bool pinned = !pool && draw_chance(drawing, 0.4);
    struct operation operation = make(drawing, pool     ? ALLOC_ASYNC
                                               : pinned ? HOST_ALLOC
                                                        : ALLOC);
    if (!pool && !drawing_host_call_allowed(drawing))
        return;
    const int buffer = program->buffer_count++;
    const int device = program->streams[stream].device;
    program->buffers[buffer] = (struct buffer){
        .place = pinned ? PINNED : ON_DEVICE,
        .device = pinned ? 0 : device,
        .size = draw_between(drawing, CELLS / 2, CELLS),
        .allocated = true,
    };
    operation.buffer = buffer;
    if (pool)
        operation.stream = stream;
    else if (!pinned)
        operation.device = device;
    drawing->live[buffer] = true;
    drawing->is_pool[buffer] = pool;
    drawing->node_of[buffer] = capture;
    if (capture != NONE)
        drawing->captures[capture].has_memory = true;
    drawing_emit(drawing, &operation); // nothing knows the buffer yet
}

bool draw_free(struct drawing *drawing, int stream, int buffer) {
    const bool pinned = drawing->program->buffers[buffer].place == PINNED;
    const bool pool = drawing->is_pool[buffer];
    if (!pool && !drawing_host_call_allowed(drawing))
        return false;
    struct operation operation = make(drawing, pool ? FREE_ASYNC : pinned ? HOST_FREE : FREE);
    operation.buffer = buffer;
    if (pool)
        operation.stream = stream;
    drawing->live[buffer] = false;
    if (edges_add_and_emit(drawing, &operation))
        return true;
    drawing->live[buffer] = true;
    return false;
}

static void draw_some_free(struct drawing *drawing, int stream) {
    for (int i = 0; i < drawing->program->buffer_count; ++i) {
        const struct buffer *buffer = &drawing->program->buffers[i];
        if (buffer->allocated && drawing->live[i] &&
            drawing->node_of[i] == capture_of(drawing, stream) &&
            buffer->device == drawing->program->streams[stream].device &&
            draw_chance(drawing, 0.6)) {
            (void)draw_free(drawing, stream, i);
            return;
        }
    }
}

// Bytes of the stream's device that no block holds; over those of NEAR, if that is a block.
static bool block_draw(struct drawing *drawing, int stream, int near, struct block *block) {
    const struct program *program = drawing->program;
    block->buffer = NONE;
    for (int i = 0; i < program->buffer_count; ++i)
        if (drawing->is_arena[i] &&
            program->buffers[i].device == program->streams[stream].device)
            block->buffer = i;
    block->size = draw_between(drawing, 3, 9);
    block->start = draw_below(drawing, CELLS - block->size + 1);
    if (near != NONE)
        *block = program->blocks[near];
    for (int i = 0; i < program->block_count; ++i)
        if (drawing->held[i] && program->blocks[i].buffer == block->buffer &&
            program->blocks[i].start < block->start + block->size &&
            block->start < program->blocks[i].start + program->blocks[i].size)
            return false;
    return block->buffer != NONE && program->block_count < BLOCKS_MAX;
}

static int draw_take(struct drawing *drawing, int stream, int near) {
    struct program *program = drawing->program;
    struct block block;
    if (!block_draw(drawing, stream, near, &block))
        return NONE;
    struct operation operation = make(drawing, TAKE);
    operation.stream = stream;
    operation.block = program->block_count++;
    program->blocks[operation.block] = block;
    drawing_emit(drawing, &operation);
    return operation.block;
}

// An earlier block of the device whose bytes are to be held again; or NONE.
static int block_again(struct drawing *drawing, int stream) {
    const struct program *program = drawing->program;
    if (program->block_count == 0 || draw_chance(drawing, 0.5))
        return NONE;
    const int block = draw_below(drawing, program->block_count);
    return program->buffers[program->blocks[block].buffer].device ==
                   program->streams[stream].device
               ? block
               : NONE;
}

// Work on nothing but a block.
static void draw_block_work(struct drawing *drawing, int stream, int block) {
    const struct block *bytes = &drawing->program->blocks[block];
    const struct target target = {bytes->buffer, block, bytes->start, bytes->size};
    const struct span span = span_draw(drawing, &target, true);
    enum step_verb verb = draw_chance(drawing, 0.4) ? STEP_SET : STEP_READ;
    if (!is_readable(drawing, capture_of(drawing, stream), &span))
        verb = STEP_SET;
    struct operation operation =
        make(drawing, verb == STEP_SET && draw_chance(drawing, 0.3) ? FILL_ASYNC : KERNEL);
    operation.stream = stream;
    operation.step_count = 1;
    operation.steps[0] = (struct step){verb, span, {span, span}};
    (void)edges_add_and_emit(drawing, &operation);
}

// A stream like STREAM: of its device, and a member of the same capture or of none.
static int stream_beside(struct drawing *drawing, int stream) {
    int found = stream;
    const struct program *program = drawing->program;
    for (int i = 0, count = 0; i < program->stream_count; ++i)
        if (program->streams[i].device == program->streams[stream].device &&
            drawing->streams[i].capture == drawing->streams[stream].capture &&
            drawing_stream_usable(drawing, i) && draw_below(drawing, ++count) == 0)
            found = i;
    return found;
}

// A block's life, and most times the next one of the same bytes.
static void draw_block_lives(struct drawing *drawing, int stream) {
    int block = block_again(drawing, stream);
    for (int life = 0; life < 2 && drawing_has_room(drawing, 40); ++life) {
        block = draw_take(drawing, stream, block);
        if (block == NONE)
            return;
        for (int i = draw_between(drawing, 1, 2); i > 0; --i)
            draw_block_work(drawing, draw_chance(drawing, 0.6) ? stream : stream_beside(drawing, stream),
                            block);
        if (draw_chance(drawing, 0.15) || !draw_give(drawing, block))
            return;
        stream = stream_beside(drawing, stream);
    }
}

bool draw_give(struct drawing *drawing, int block) {
    const struct seen *host = drawing_host(drawing, drawing->thread);
    if (!seen_within(&drawing->used[block], host) &&
        (!edge_behind_thread(drawing, 1 - drawing->thread) ||
         !seen_within(&drawing->used[block], host)))
        return false;
    struct operation operation = make(drawing, GIVE);
    operation.block = block;
    drawing_emit(drawing, &operation);
    return true;
}

static void draw_some_give(struct drawing *drawing, int stream) {
    const struct place_wanted wanted = {0, NONE, false, capture_of(drawing, stream)};
    for (int i = 0; i < drawing->program->block_count; ++i)
        if (block_fits(drawing, i, &wanted) && draw_chance(drawing, 0.7)) {
            (void)draw_give(drawing, i);
            return;
        }
}

void draw_memory(struct drawing *drawing, int stream) {
    struct operation operation = make(drawing, USE);
    switch (draw_below(drawing, 12)) {
    case 0:
    case 1: draw_alloc(drawing, stream); break;
    case 2: draw_some_free(drawing, stream); break;
    case 3: // a note that another stream uses it
        operation.stream = stream;
        operation.block = drawing->program->block_count - 1;
        if (operation.block >= 0 && drawing->held[operation.block])
            drawing_emit(drawing, &operation);
        break;
    case 4:
    case 5:
    case 6: draw_some_give(drawing, stream); break;
    case 7: (void)draw_take(drawing, stream, block_again(drawing, stream)); break;
    default: draw_block_lives(drawing, stream);
    }
}
