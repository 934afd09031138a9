// Operations that nothing need order, long histories, and what depends on queries.
#include "simulator/race_property/drawing.h"

static struct operation make(const struct drawing *drawing, enum verb verb) {
    return operation_make(verb, drawing->thread);
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
    if (draw_chance(drawing, 0.4) && drawing_is_readable(drawing, NONE, &span))
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
