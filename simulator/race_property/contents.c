// Which bytes hold what somebody wrote, by cells (drawing.h).
#include "simulator/race_property/drawing.h"

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
        complete = complete &&
                   (access->quiet ||
                    (span_mask(&access->span) & ~contents_readable(contents, &access->span)) == 0);
    }
    if (step->verb == STEP_READ)
        return complete;
    for (int i = 0; i < span_size(&step->to); ++i) {
        const bool known =
            step->verb != STEP_CARRY ||
            (contents_readable(contents, &step->from[0]) >> span_cell(&step->from[0], i) & 1);
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
