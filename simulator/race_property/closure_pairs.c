// Pairs of points: in conflict and unordered, or outside of the life of their memory.
#include "simulator/race_property/closure_world.h"

#include "base/check.h"

const char *pair_kind_name(enum pair_kind kind) {
    static const char *const names[PAIR_KIND_COUNT] = {
        "write-write",      "read-write",   "reuse",         "use-after-free",
        "use-before-alloc", "graph-memory", "uninitialised",
    };
    return names[kind];
}

bool closure__same_place(struct place_in_program a, struct place_in_program b) {
    return a.operation == b.operation && a.node == b.node;
}

bool pair_equal(const struct pair *a, const struct pair *b) {
    return a->kind == b->kind &&
           ((closure__same_place(a->first, b->first) &&
             closure__same_place(a->second, b->second)) ||
            (closure__same_place(a->first, b->second) && closure__same_place(a->second, b->first)));
}

// --- Pairs ---

static bool ordered(int first, int second) {
    return point_set_has(&world->judgement->points[second].before, first);
}

bool closure_unordered(const struct judgement *judgement, int first, int second) {
    return first != second && !point_set_has(&judgement->points[second].before, first) &&
           !point_set_has(&judgement->points[first].before, second);
}

static void pair_add_kind(enum pair_kind kind, struct place_in_program first,
                          struct place_in_program second, bool is_minor) {
    struct judgement *judgement = world->judgement;
    const struct pair pair = {kind, first, second, is_minor};
    for (int i = 0; i < judgement->pair_count; ++i)
        if (pair_equal(&judgement->pairs[i], &pair)) {
            judgement->pairs[i].is_minor = judgement->pairs[i].is_minor && is_minor;
            return;
        }
    BASE_CHECK_LT(judgement->pair_count, PAIRS_MAX);
    judgement->pairs[judgement->pair_count++] = pair;
}

void closure__pair_add(enum pair_kind kind, struct place_in_program first,
                       struct place_in_program second) {
    pair_add_kind(kind, first, second, false);
}

// How two points conflict in BUFFER: a bit for each kind.
static uint32_t conflicts_in(const struct point *a, const struct point *b, int buffer) {
    uint32_t found = 0;
    for (int i = 0; i < a->access_count; ++i)
        for (int k = 0; k < b->access_count; ++k) {
            const struct access *one = &a->accesses[i], *other = &b->accesses[k];
            if (one->span.buffer != buffer || other->span.buffer != buffer ||
                !(a->masks[i] & b->masks[k]) || !modes_conflict(one->mode, other->mode))
                continue;
            const bool reused = one->span.block != NONE && other->span.block != NONE &&
                                one->span.block != other->span.block;
            found |= 1u << (reused                                       ? PAIR_REUSE
                            : one->mode == READS || other->mode == READS ? PAIR_READ_WRITE
                                                                         : PAIR_WRITE_WRITE);
        }
    return found;
}

// Reuse tells most, two writes more than a read and a write.
static void add_conflicts(const struct point *first, const struct point *second, uint32_t kinds) {
    static const enum pair_kind ranked[] = {PAIR_REUSE, PAIR_WRITE_WRITE, PAIR_READ_WRITE};
    bool is_minor = false;
    for (int i = 0; i < 3; ++i)
        if (kinds >> ranked[i] & 1) {
            pair_add_kind(ranked[i], first->at, second->at, is_minor);
            is_minor = true;
        }
}

void closure__find_conflicts(void) {
    const struct judgement *judgement = world->judgement;
    for (int i = 0; i < judgement->point_count; ++i)
        for (int k = i + 1; k < judgement->point_count; ++k) {
            const struct point *first = &judgement->points[i], *second = &judgement->points[k];
            if (first->access_count == 0 || second->access_count == 0 || ordered(i, k))
                continue;
            for (int buffer = 0; buffer < world->program->buffer_count; ++buffer)
                add_conflicts(first, second, conflicts_in(first, second, buffer));
        }
}

// Whether a life of BUFFER that began before POINT began after END did.
static bool born_again(int buffer, int end, int point) {
    for (int i = 0; i < world->judgement->point_count; ++i)
        if (world->judgement->points[i].alloc == buffer && ordered(i, point) && ordered(end, i))
            return true;
    return false;
}

// Accesses outside of the life of memory that operations allocate.
static void find_outside_life(int index, int buffer) {
    const struct judgement *judgement = world->judgement;
    const struct point *point = &judgement->points[index];
    int first = NONE;
    bool born = false;
    for (int i = 0; i < judgement->point_count; ++i)
        if (judgement->points[i].alloc == buffer) {
            first = first == NONE ? i : first;
            born = born || ordered(i, index);
        }
    if (!born && first != NONE)
        closure__pair_add(PAIR_USE_BEFORE_ALLOC, judgement->points[first].at, point->at);
    for (int i = 0; i < judgement->point_count; ++i)
        if (judgement->points[i].free == buffer && !ordered(index, i) &&
            !born_again(buffer, i, index))
            closure__pair_add(PAIR_USE_AFTER_FREE, point->at, judgement->points[i].at);
}

static void find_outside_block(const struct point *point, const struct span *span) {
    const int block = span->block;
    const struct judgement *judgement = world->judgement;
    if (point->capture == NONE) {
        if (world->given[block] && !ordered(point->enqueue, world->give_points[block]))
            closure__pair_add(PAIR_USE_AFTER_FREE, point->at,
                              judgement->points[world->give_points[block]].at);
        return;
    }
    for (int i = 0; i < world->program->block_count; ++i) {
        const struct block *other = &world->program->blocks[i];
        const uint32_t cells = ((1u << other->size) - 1) << other->start;
        if (i != block && world->taken[i] && world->take_captures[i] != point->capture &&
            other->buffer == span->buffer && (cells & span_mask(span)) &&
            ordered(world->take_points[i], point->enqueue) &&
            !(world->given[i] && ordered(world->give_points[i], point->enqueue)))
            closure__pair_add(PAIR_GRAPH_MEMORY, point->at,
                              judgement->points[world->take_points[i]].at);
    }
}

void closure__find_outside(void) {
    const struct judgement *judgement = world->judgement;
    for (int i = 0; i < judgement->point_count; ++i) {
        const struct point *point = &judgement->points[i];
        for (int k = 0; k < point->access_count; ++k) {
            const struct span *span = &point->accesses[k].span;
            if (world->program->buffers[span->buffer].allocated)
                find_outside_life(i, span->buffer);
            if (span->block != NONE)
                find_outside_block(point, span);
        }
    }
}
