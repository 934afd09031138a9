// Where the generator's operations touch memory: streams, buffers, blocks, ranges of these.
#include "simulator/race_property/drawing.h"

int stream_choose(struct drawing *drawing, int device) {
    int found = NONE;
    for (int i = 0, count = 0; i < drawing->program->stream_count; ++i)
        if ((device == NONE || drawing->program->streams[i].device == device) &&
            drawing->streams[i].capture == NONE && drawing_stream_usable(drawing, i) &&
            draw_below(drawing, ++count) == 0)
            found = i;
    return found;
}

int drawing_capture_of(const struct drawing *drawing, int stream) {
    return stream == NONE ? NONE : drawing->streams[stream].capture;
}

// --- Where ---

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

bool block_fits(const struct drawing *drawing, int block, const struct place_wanted *wanted) {
    const int by = drawing->held_by[block];
    if (!drawing->held[block])
        return false;
    return wanted->capture != NONE ? by == wanted->capture
                                   : by == NONE || !drawing->captures[by].active;
}

bool target_choose(struct drawing *drawing, const struct place_wanted *wanted,
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

struct span span_draw(struct drawing *drawing, const struct target *target, bool rows) {
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
bool span_draw_like(struct drawing *drawing, const struct target *target, const struct span *like,
                    struct span *span) {
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

static const struct contents *contents_of(const struct drawing *drawing, int capture) {
    return capture != NONE ? &drawing->captures[capture].contents : &drawing->contents;
}

bool drawing_is_readable(const struct drawing *drawing, int capture, const struct span *span) {
    return (span_mask(span) & ~contents_readable(contents_of(drawing, capture), span)) == 0;
}
