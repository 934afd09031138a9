#include "simulator/race_property/features.h"

const char *feature_text(enum feature feature) {
    static const char *const texts[] = {
#define FEATURE_TEXT(name, text) text,
        FEATURE_LIST(FEATURE_TEXT)
#undef FEATURE_TEXT
    };
    return texts[feature];
}

// From the first cell to the last, what lies between included.
static uint32_t hull(const struct span *span) {
    const int last = span_cell(span, span_size(span) - 1);
    return ((2u << last) - 1) & ~((1u << span->start) - 1);
}

static uint32_t features_of_accesses(const struct access *a, const struct access *b) {
    const uint32_t first = span_mask(&a->span), second = span_mask(&b->span);
    uint32_t found = 0;
    if (a->span.buffer != b->span.buffer)
        return 0;
    if (modes_conflict(a->mode, b->mode) && !(first & second) && (hull(&a->span) & second) &&
        (first & hull(&b->span)))
        found |= 1u << FEATURE_STRIDED_DISJOINT;
    if (a->mode == UPDATES && b->mode == UPDATES && (first & second))
        found |= 1u << FEATURE_ATOMICS;
    return found;
}

static uint32_t features_of_pairs(const struct judgement *judgement) {
    uint32_t found = 0;
    for (int i = 0; i < judgement->point_count; ++i)
        for (int k = i + 1; k < judgement->point_count; ++k) {
            const struct point *a = &judgement->points[i], *b = &judgement->points[k];
            if (a->access_count == 0 || b->access_count == 0 || !closure_unordered(judgement, i, k))
                continue;
            for (int n = 0; n < a->access_count; ++n)
                for (int m = 0; m < b->access_count; ++m)
                    found |= features_of_accesses(&a->accesses[n], &b->accesses[m]);
        }
    return found;
}

static bool blocks_meet(const struct block *a, const struct block *b) {
    return a->buffer == b->buffer && a->start < b->start + b->size && b->start < a->start + a->size;
}

uint32_t features_of(const struct program *program, const struct judgement *judgement) {
    uint32_t found = features_of_pairs(judgement), threads = 0, devices = 0;
    int launches[EXECS_MAX] = {0}, graphs[EXECS_MAX] = {0};
    if (judgement->carries_undefined)
        found |= 1u << FEATURE_UNDEFINED_COPIES;
    for (int i = 0; i < program->count; ++i) {
        const struct operation *operation = &program->operations[i];
        threads |= 1u << operation->thread;
        if (operation->stream != NONE && operation->step_count > 0)
            devices |= 1u << program->streams[operation->stream].device;
        switch (operation->verb) {
        case EVENT_POLL:
        case STREAM_POLL:
        case VALUE_POLL: found |= 1u << FEATURE_POLLING; break;
        case EVENT_QUERY:
        case STREAM_QUERY: found |= 1u << FEATURE_QUERIES; break;
        case AWAIT: found |= 1u << FEATURE_HAND_OFFS; break;
        case ALLOC_ASYNC: found |= 1u << FEATURE_POOL_MEMORY; break;
        case ADD_KERNEL: found |= 1u << FEATURE_BUILT_GRAPHS; break;
        case INSTANTIATE: graphs[operation->exec] = operation->graph; break;
        case LAUNCH: ++launches[operation->exec]; break;
        default: break;
        }
    }
    // On one clock, whoever makes the next call was handed all that the other one did.
    if (!program->threads_strict && threads == 3)
        found |= 1u << FEATURE_HAND_OFFS;
    if (devices == 3)
        found |= 1u << FEATURE_TWO_DEVICES;
    for (int i = 0; i < EXECS_MAX; ++i) {
        found |= (uint32_t)(launches[i] > 0) << FEATURE_REPLAYS;
        found |= (uint32_t)(launches[i] > 1) << FEATURE_TWO_REPLAYS;
        for (int k = 0; k < i; ++k)
            found |= (uint32_t)(launches[i] > 0 && launches[k] > 0 && graphs[i] == graphs[k])
                     << FEATURE_TWO_EXECUTABLES;
    }
    for (int i = 0; i < program->block_count; ++i)
        for (int k = 0; k < i; ++k)
            found |= (uint32_t)blocks_meet(&program->blocks[i], &program->blocks[k])
                     << FEATURE_BLOCKS_REUSED;
    return found;
}
