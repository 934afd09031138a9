// Memory's beginnings and ends: allocations, an allocator's blocks.
#include "simulator/race_property/drawing.h"

static struct operation make(const struct drawing *drawing, enum verb verb) {
    return operation_make(verb, drawing->thread);
}

// --- Memory ---

static void draw_alloc(struct drawing *drawing, int stream) {
    struct program *program = drawing->program;
    if (program->buffer_count == BUFFERS_MAX)
        return;
    const int capture = drawing_capture_of(drawing, stream);
    const bool pool = capture != NONE || draw_chance(drawing, 0.5);
    const bool pinned = !pool && draw_chance(drawing, 0.4);
    struct operation operation = make(drawing, pool ? ALLOC_ASYNC : pinned ? HOST_ALLOC : ALLOC);
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
            drawing->node_of[i] == drawing_capture_of(drawing, stream) &&
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
        if (drawing->is_arena[i] && program->buffers[i].device == program->streams[stream].device)
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
    return program->buffers[program->blocks[block].buffer].device == program->streams[stream].device
               ? block
               : NONE;
}

// Work on nothing but a block.
static void draw_block_work(struct drawing *drawing, int stream, int block) {
    const struct block *bytes = &drawing->program->blocks[block];
    const struct target target = {bytes->buffer, block, bytes->start, bytes->size};
    const struct span span = span_draw(drawing, &target, true);
    enum step_verb verb = draw_chance(drawing, 0.4) ? STEP_SET : STEP_READ;
    if (!drawing_is_readable(drawing, drawing_capture_of(drawing, stream), &span))
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
            draw_block_work(drawing,
                            draw_chance(drawing, 0.6) ? stream : stream_beside(drawing, stream),
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
    const struct place_wanted wanted = {0, NONE, false, drawing_capture_of(drawing, stream)};
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
