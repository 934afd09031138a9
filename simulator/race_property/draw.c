// Random programs: what a program has, and what comes next.
#include "simulator/race_property/draw.h"

#include "simulator/race_property/drawing.h"

#include "base/check.h"

#include <string.h>

#define COUNT_WANTED_MAX 62 // operations, edges included

static struct drawing drawing;

static void stream_add(struct program *program, enum stream_kind kind, int device, int thread) {
    BASE_CHECK_LT(program->stream_count, STREAMS_MAX);
    program->streams[program->stream_count++] = (struct stream){kind, device, thread};
}

static void streams_draw(struct base_random *random, struct program *program, int threads) {
    bool own[DEVICES] = {false};
    for (int device = 0; device < program->device_count; ++device)
        stream_add(program, LEGACY, device, 0);
    for (int i = (int)base_random_between(random, 2, 6); i > 0; --i) {
        static const enum stream_kind kinds[] = {BLOCKING, BLOCKING, NON_BLOCKING, NON_BLOCKING,
                                                 PER_THREAD};
        enum stream_kind kind = kinds[base_random_below(random, 5)];
        const int device = (int)base_random_below(random, (uint64_t)program->device_count);
        if (kind == PER_THREAD && own[device])
            kind = NON_BLOCKING;
        if (kind != PER_THREAD) {
            stream_add(program, kind, device, 0);
            continue;
        }
        own[device] = true;
        for (int thread = 0; thread < threads; ++thread)
            stream_add(program, PER_THREAD, device, thread);
    }
}

static int buffer_add(struct base_random *random, struct program *program, enum place place,
                      int device, int size, double undefined) {
    program->buffers[program->buffer_count] = (struct buffer){
        .place = place,
        .device = device,
        .size = size,
        .defined = !base_random_chance(random, undefined),
    };
    return program->buffer_count++;
}

static void declare(struct base_random *random, struct program *program, int threads,
                    uint32_t *arenas) {
    program->device_count = base_random_chance(random, 0.3) ? 2 : 1;
    streams_draw(random, program, threads);
    program->event_count = (int)base_random_between(random, 2, 5);
    for (int i = 0; i < program->event_count; ++i)
        program->event_devices[i] = (int)base_random_below(random, (uint64_t)program->device_count);
    // Little memory: all of it is touched again and again.
    const bool crowded = base_random_chance(random, 0.25);
    const int size = crowded ? (int)base_random_between(random, 2, 6) : CELLS;
    for (int device = 0; device < program->device_count; ++device) {
        for (int i = crowded ? 1 : (int)base_random_between(random, 1, 3); i > 0; --i)
            (void)buffer_add(random, program, ON_DEVICE, device, size, 0.35);
        *arenas |= 1u << buffer_add(random, program, ON_DEVICE, device, CELLS, 1);
    }
    for (int i = crowded ? 1 : (int)base_random_between(random, 1, 2); i > 0; --i)
        (void)buffer_add(random, program, PINNED, 0, size, 0.2);
    (void)buffer_add(random, program, PAGEABLE, 0, size, 0);
}

// --- Calls that order, without need ---

static void draw_idle_order(void) {
    struct operation operation = operation_make(RECORD, drawing.thread);
    operation.event = draw_below(&drawing, drawing.program->event_count);
    operation.stream = stream_choose(&drawing, NONE);
    if (operation.stream == NONE)
        return;
    const int event = operation.event;
    const bool eager = drawing.events[event].exists && drawing.events[event].capture == NONE;
    switch (draw_below(&drawing, 6)) {
    case 0:
    case 1:
        if (drawing.events[event].exists &&
            drawing.events[event].device == drawing.program->streams[operation.stream].device)
            drawing_emit(&drawing, &operation);
        break;
    case 2:
    case 3:
        operation.verb = WAIT;
        if (eager)
            drawing_emit(&drawing, &operation);
        break;
    case 4:
        operation.verb = draw_chance(&drawing, 0.5) ? EVENT_SYNC : EVENT_POLL;
        operation.stream = NONE;
        if (eager)
            drawing_emit(&drawing, &operation);
        break;
    default:
        operation.verb = draw_chance(&drawing, 0.5) ? STREAM_SYNC : STREAM_POLL;
        operation.event = NONE;
        drawing_emit(&drawing, &operation);
    }
}

static void draw_stream_end(void) {
    struct operation operation = operation_make(STREAM_DESTROY, drawing.thread);
    operation.stream = stream_choose(&drawing, NONE);
    int plain = 0;
    for (int i = 0; i < drawing.program->stream_count; ++i)
        plain +=
            !drawing.streams[i].destroyed && (drawing.program->streams[i].kind == BLOCKING ||
                                              drawing.program->streams[i].kind == NON_BLOCKING);
    if (plain < 3 || operation.stream == NONE ||
        drawing.program->streams[operation.stream].kind == LEGACY ||
        drawing.program->streams[operation.stream].kind == PER_THREAD)
        return;
    drawing_emit(&drawing, &operation);
}

// --- A program ---

static void draw_next(bool graphs, bool queries) {
    const int stream = stream_choose(&drawing, NONE);
    if (stream == NONE)
        return;
    switch (draw_below(&drawing, 42)) {
    case 0:
    case 1: draw_idle_order(); break;
    case 2:
        if (draw_chance(&drawing, 0.3))
            draw_stream_end();
        break;
    case 3:
    case 4:
    case 5:
        if (queries && drawing.free_queries < 2)
            draw_query(&drawing);
        break;
    case 6:
    case 7: draw_side_by_side(&drawing); break;
    case 8:
    case 9:
    case 10:
        if (drawing.program->buffers[0].size < CELLS || draw_chance(&drawing, 0.1))
            draw_history(&drawing); // where memory is little
        break;
    case 11:
    case 12:
    case 13:
    case 14:
    case 15: draw_memory(&drawing, stream); break;
    case 16:
    case 17:
    case 18:
    case 19:
        if (!graphs)
            break;
        if (draw_chance(&drawing, 0.2))
            draw_graph(&drawing);
        else
            draw_capture(&drawing);
        for (int i = draw_below(&drawing, 5); i > 0; --i)
            draw_launch(&drawing);
        break;
    case 20:
    case 21:
    case 22:
    case 23:
    case 24: draw_launch(&drawing); break;
    default: (void)draw_work(&drawing, stream);
    }
}

void program_draw(struct base_random *random, struct program *program) {
    memset(program, 0, sizeof *program);
    const int threads = base_random_chance(random, 0.35) ? THREADS : 1;
    const bool graphs = base_random_chance(random, 0.6);
    const bool queries = base_random_chance(random, 0.2);
    uint32_t arenas = 0;
    program->threads_strict = threads > 1 && base_random_chance(random, 0.5);
    declare(random, program, threads, &arenas);
    drawing_start(&drawing, random, program);
    for (int i = 0; i < BUFFERS_MAX; ++i)
        drawing.is_arena[i] = arenas >> i & 1;
    if (!queries)
        drawing.free_queries = 2; // no more
    if (base_random_chance(random, 0.03))
        draw_crowd(&drawing);
    const int wanted = program->count + (int)base_random_between(random, 16, COUNT_WANTED_MAX);
    for (int i = 0; program->count < wanted && i < 2 * wanted; ++i) {
        if (threads > 1 && draw_chance(&drawing, 0.2))
            drawing.thread = 1 - drawing.thread;
        draw_next(graphs, queries);
    }
}

void program_draw_small(struct base_random *random, struct program *program) {
    memset(program, 0, sizeof *program);
    uint32_t arenas = 0;
    declare(random, program, 1, &arenas);
    drawing_start(&drawing, random, program);
    for (int i = 0; i < BUFFERS_MAX; ++i)
        drawing.is_arena[i] = arenas >> i & 1;
    drawing.free_queries = 2;
    for (int i = 0; program->count < 4 && i < 40; ++i) {
        const int stream = stream_choose(&drawing, NONE);
        if (draw_chance(&drawing, 0.3))
            draw_idle_order();
        else if (stream != NONE)
            (void)draw_work(&drawing, stream);
    }
}
