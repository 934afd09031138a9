// Bytes that nobody wrote, in the order of submission: it is one of the orders that CUDA allows,
// and the only one where nothing is unordered.
#include "simulator/race_property/closure_world.h"

#include <string.h>

static struct {
    bool defined[BUFFERS_MAX][CELLS];
    uint32_t writers[BUFFERS_MAX][CELLS]; // blocks through which a cell was written
} contents;

static bool cell_defined(const struct span *span, int index) {
    const int cell = span_cell(span, index);
    return contents.defined[span->buffer][cell] &&
           (span->block == NONE || (contents.writers[span->buffer][cell] >> span->block & 1));
}

static void cell_write(const struct span *span, int index, bool defined) {
    const int cell = span_cell(span, index);
    contents.defined[span->buffer][cell] = defined;
    if (span->block != NONE)
        contents.writers[span->buffer][cell] |= 1u << span->block;
}

static void step_define(const struct step *step, struct place_in_program at) {
    struct access accesses[3];
    const int count = step_accesses(step, accesses);
    bool complete = true;
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < span_size(&accesses[i].span); ++k) {
            if (accesses[i].mode == WRITES || cell_defined(&accesses[i].span, k))
                continue;
            complete = complete && accesses[i].quiet;
            world->judgement->carries_undefined |= accesses[i].quiet;
        }
    if (!complete)
        closure__pair_add(PAIR_UNINITIALISED, at, (struct place_in_program){NONE, NONE});
    if (step->verb == STEP_READ)
        return;
    bool defined[CELLS];
    for (int i = 0; i < span_size(&step->to); ++i)
        defined[i] = step->verb == STEP_SET ||
                     (step->verb == STEP_ATOMIC
                          ? cell_defined(&step->to, i)
                          : cell_defined(&step->from[0], i) &&
                                (step->verb != STEP_SUM || cell_defined(&step->from[1], i)));
    for (int i = 0; i < span_size(&step->to); ++i) {
        cell_write(&step->to, i, defined[i]);
        world->judgement->spoils_pageable |=
            !defined[i] && world->program->buffers[step->to.buffer].place == PAGEABLE;
    }
}

static void operation_define(const struct operation *operation, struct place_in_program at) {
    for (int i = 0; i < operation->step_count; ++i)
        step_define(&operation->steps[i], at);
    if (operation->verb == ALLOC || operation->verb == HOST_ALLOC ||
        operation->verb == ALLOC_ASYNC || operation->verb == FREE || operation->verb == HOST_FREE ||
        operation->verb == FREE_ASYNC)
        for (int i = 0; i < CELLS; ++i)
            contents.defined[operation->buffer][i] = false;
}

// Points stand in the order of submission; those of one operation that touch nothing do no harm.
void closure__find_uninitialised(void) {
    memset(&contents, 0, sizeof contents);
    for (int i = 0; i < world->program->buffer_count; ++i)
        for (int k = 0; k < CELLS; ++k)
            contents.defined[i][k] = world->program->buffers[i].defined;
    struct place_in_program last = {NONE, NONE};
    for (int i = 0; i < world->judgement->point_count; ++i) {
        const struct point *point = &world->judgement->points[i];
        const bool is_life = point->alloc != NONE || point->free != NONE;
        if ((point->access_count == 0 && !is_life) || closure__same_place(point->at, last))
            continue; // a staged copy has two points, and is one
        last = point->at;
        const int index = point->at.node != NONE ? point->at.node : point->at.operation;
        operation_define(&world->program->operations[index], point->at);
    }
}
