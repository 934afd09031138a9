// The shadow: what was done last to which bytes, exact to the byte.
//
// Ranges in one piece divide the addresses into *pieces*: all bytes of a piece were accessed alike.
// An access splits pieces where it begins and ends; neighbours that came to be alike join again, so
// that there are only as many as the accesses that still count have ends.
//
// Strided ranges are kept as they are, one *shape* for all accesses to the same rows, in a tree by
// their first byte that also knows the last bytes (a treap, so that it stays flat). Whether two
// ranges really have bytes in common is only asked when nothing orders them. A program that never
// accesses the same rows again would leave ever more shapes: when an access meets many, the one
// that was not accessed for longest is divided into pieces, row by row, which later accesses can
// cover.
#include "simulator/race_list.h"

#include <stdlib.h>
#include <string.h>

// An access to so many pieces gives up what only completes reports, so that more pieces join.
#define PIECES_MANY 4
// From so many entries on a strided access tidies the pieces that it covers.
#define LIST_LONG 8
// The same for shapes that an access covers.
#define SHAPES_MANY 64
#define SHAPES_MAX 512

struct piece {
    struct sim__range range; // in PIECES
    struct piece *next, *previous;
    struct sim__race_list list;
};

struct shape {
    struct sim__rows rows;
    uint64_t last_end; // of all in the subtree
    uint32_t priority;
    struct shape *left, *right;
    uint64_t used; // the step that accessed it last
    struct sim__race_list list;
};

static struct sim__range_index pieces;
// Those that were looked for last, by their start: most accesses are to what was accessed before. A
// piece that is gone has no size, and stays memory of ours.
#define RECENT_COUNT 1024
static struct piece *recent[RECENT_COUNT];
static struct piece *first_piece;
static uint64_t piece_count;
static struct piece *idle; // through next

static struct shape *shapes;
static uint64_t shape_count;
static uint32_t priority_state = 1;
// Those that an access meets.
static struct shape **met;
static size_t met_count, met_size;

// --- Pieces ---

static uint64_t piece_end(const struct piece *piece) {
    return piece->range.start + piece->range.size;
}

static struct piece *piece_take(void) {
    struct piece *piece = idle;
    if (piece != NULL)
        idle = piece->next;
    else if ((piece = malloc(sizeof *piece)) == NULL)
        sim__host_limit("out of host memory for the race checker");
    ++piece_count;
    return piece;
}

// BEFORE: the piece below, or NULL.
static struct piece *piece_insert(uint64_t start, uint64_t end, struct piece *before) {
    struct piece *piece = piece_take();
    *piece = (struct piece){.range = {start, end - start},
                            .next = before != NULL ? before->next : first_piece,
                            .previous = before};
    if (before != NULL)
        before->next = piece;
    else
        first_piece = piece;
    if (piece->next != NULL)
        piece->next->previous = piece;
    sim__range_insert(&pieces, &piece->range);
    return piece;
}

static void piece_remove(struct piece *piece) {
    sim__range_remove(&pieces, &piece->range);
    if (piece->previous != NULL)
        piece->previous->next = piece->next;
    else
        first_piece = piece->next;
    if (piece->next != NULL)
        piece->next->previous = piece->previous;
    sim__race_list_clear(&piece->list);
    piece->range.size = 0;
    piece->next = idle;
    idle = piece;
    --piece_count;
}

// Splits PIECE at AT, inside it; returns the upper part.
static struct piece *piece_split(struct piece *piece, uint64_t at) {
    const uint64_t end = piece_end(piece);
    piece->range.size = at - piece->range.start;
    struct piece *upper = piece_insert(at, end, piece);
    sim__race_list_copy(&upper->list, &piece->list);
    return upper;
}

static struct piece **recent_place(uint64_t start) {
    return &recent[(start * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

// The first piece that ends behind START, if it begins before END; else NULL. *before: the last one
// that ends at START or before.
static struct piece *pieces_from(uint64_t start, uint64_t end, struct piece **before) {
    struct piece **place = recent_place(start), *piece = *place;
    if (piece != NULL && piece->range.start == start && piece->range.size > 0) {
        *before = piece->previous;
        return piece;
    }
    piece = (struct piece *)sim__range_overlapping(&pieces, start, end - start);
    if (piece == NULL) {
        *before = start == 0 ? NULL
                             : (struct piece *)sim__range_overlapping(&pieces, 0, start);
        return NULL;
    }
    while (piece->previous != NULL && piece_end(piece->previous) > start)
        piece = piece->previous;
    *before = piece->previous;
    *place = piece;
    return piece;
}

static bool join_previous(struct piece *piece) {
    struct piece *before = piece->previous;
    if (before == NULL || piece_end(before) != piece->range.start ||
        !sim__race_list_equal(&before->list, &piece->list))
        return false;
    before->range.size += piece->range.size;
    piece_remove(piece);
    return true;
}

static struct sim__range overlap(const struct piece *piece, uint64_t start, uint64_t end) {
    const uint64_t from = piece->range.start > start ? piece->range.start : start;
    const uint64_t to = piece_end(piece) < end ? piece_end(piece) : end;
    return (struct sim__range){from, to - from};
}

// The pieces from START to END, whole: gaps filled, the ends split. Returns the first.
static struct piece *pieces_cut(uint64_t start, uint64_t end) {
    struct piece *before, *piece = pieces_from(start, end, &before);
    if (piece != NULL && piece->range.start < start) {
        before = piece;
        piece = piece_split(piece, start);
    }
    struct piece *first = NULL;
    for (uint64_t at = start; at < end; at = piece_end(before)) {
        struct piece *here;
        if (piece != NULL && piece->range.start == at) {
            here = piece;
            if (piece_end(here) > end)
                piece_split(here, end);
            piece = here->next;
        } else {
            const uint64_t to =
                piece != NULL && piece->range.start < end ? piece->range.start : end;
            here = piece_insert(at, to, before);
        }
        if (first == NULL)
            first = here;
        before = here;
    }
    return first;
}

static void pieces_access(const struct sim__race_step *step,
                          const struct sim__race_access *access) {
    const uint64_t start = access->rows.start, end = start + access->rows.size;
    struct piece *piece = pieces_cut(start, end), *next;
    const bool is_one = piece_end(piece) == end;
    uint32_t count = 0;
    for (; piece != NULL && piece->range.start < end; piece = next) {
        next = piece->next;
        sim__race_list_access(&piece->list, step, access, piece->range);
        if (is_one)
            return;
        if (++count >= PIECES_MANY && !sim__race_is_early())
            sim__race_list_trim(&piece->list);
        if (count > 1)
            join_previous(piece);
    }
}

// Looks at the pieces that have bytes of ACCESS; nothing is entered.
static void pieces_meet(const struct sim__race_step *step, const struct sim__race_access *access) {
    const uint64_t start = access->rows.start, end = sim__rows_end(&access->rows);
    struct piece *before, *piece = pieces_from(start, end, &before);
    for (; piece != NULL && piece->range.start < end; piece = piece->next) {
        const struct sim__range range = overlap(piece, start, end);
        const struct sim__rows rows = {range.start, range.size, 1, 0};
        const bool covers = !step->is_passing && range.size == piece->range.size &&
                            piece->list.count > LIST_LONG &&
                            sim__rows_contain(&access->rows, &rows);
        sim__race_list_meet(&piece->list, step, access, &rows, covers);
    }
}

// --- Shapes ---

static int shape_compare(const struct sim__rows *a, const struct sim__rows *b) {
    const uint64_t left[4] = {a->start, a->size, a->rows, a->pitch};
    const uint64_t right[4] = {b->start, b->size, b->rows, b->pitch};
    for (int i = 0; i < 4; ++i)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static void shape_update(struct shape *shape) {
    shape->last_end = sim__rows_end(&shape->rows);
    if (shape->left != NULL && shape->left->last_end > shape->last_end)
        shape->last_end = shape->left->last_end;
    if (shape->right != NULL && shape->right->last_end > shape->last_end)
        shape->last_end = shape->right->last_end;
}

static struct shape *shapes_merge(struct shape *left, struct shape *right) {
    if (left == NULL || right == NULL)
        return left != NULL ? left : right;
    if (left->priority > right->priority) {
        left->right = shapes_merge(left->right, right);
        shape_update(left);
        return left;
    }
    right->left = shapes_merge(left, right->left);
    shape_update(right);
    return right;
}

// Those below ROWS, and the others.
static void shapes_split(struct shape *tree, const struct sim__rows *rows, struct shape **below,
                         struct shape **others) {
    if (tree == NULL) {
        *below = *others = NULL;
    } else if (shape_compare(&tree->rows, rows) < 0) {
        shapes_split(tree->right, rows, &tree->right, others);
        *below = tree;
        shape_update(tree);
    } else {
        shapes_split(tree->left, rows, below, &tree->left);
        *others = tree;
        shape_update(tree);
    }
}

static struct shape *shape_find(const struct sim__rows *rows) {
    struct shape *shape = shapes;
    while (shape != NULL) {
        const int order = shape_compare(rows, &shape->rows);
        if (order == 0)
            return shape;
        shape = order < 0 ? shape->left : shape->right;
    }
    return NULL;
}

static struct shape *shape_make(const struct sim__rows *rows) {
    struct shape *shape = malloc(sizeof *shape), *below, *others;
    if (shape == NULL)
        sim__host_limit("out of host memory for the race checker");
    priority_state = priority_state * 1664525 + 1013904223;
    *shape = (struct shape){.rows = *rows, .priority = priority_state};
    shape_update(shape);
    shapes_split(shapes, rows, &below, &others);
    shapes = shapes_merge(shapes_merge(below, shape), others);
    ++shape_count;
    return shape;
}

static struct shape *shapes_without(struct shape *tree, const struct shape *gone) {
    if (tree == gone)
        return shapes_merge(gone->left, gone->right);
    if (shape_compare(&gone->rows, &tree->rows) < 0)
        tree->left = shapes_without(tree->left, gone);
    else
        tree->right = shapes_without(tree->right, gone);
    shape_update(tree);
    return tree;
}

static void shape_remove(struct shape *shape) {
    shapes = shapes_without(shapes, shape);
    sim__race_list_clear(&shape->list);
    free(shape);
    --shape_count;
}

static void met_add(struct shape *shape) {
    if (met_count == met_size) {
        met_size = met_size == 0 ? 64 : 2 * met_size;
        met = realloc(met, met_size * sizeof(struct shape *));
        if (met == NULL)
            sim__host_limit("out of host memory for the race checker");
    }
    met[met_count++] = shape;
}

// All whose extent has bytes of [start, end).
static void met_find(struct shape *tree, uint64_t start, uint64_t end) {
    for (; tree != NULL && tree->last_end > start; tree = tree->right) {
        met_find(tree->left, start, end);
        if (tree->rows.start >= end)
            return;
        if (sim__rows_end(&tree->rows) > start)
            met_add(tree);
    }
}

// Row by row what was done to SHAPE was done to pieces.
static void shape_divide(struct shape *shape) {
    const struct sim__rows *rows = &shape->rows;
    for (uint64_t row = 0; row < rows->rows; ++row) {
        const uint64_t start = rows->start + row * rows->pitch, end = start + rows->size;
        for (struct piece *piece = pieces_cut(start, end);
             piece != NULL && piece->range.start < end; piece = piece->next)
            sim__race_list_add(&piece->list, &shape->list);
    }
    shape_remove(shape);
}

static void shapes_meet(const struct sim__race_step *step, const struct sim__race_access *access) {
    met_count = 0;
    met_find(shapes, access->rows.start, sim__rows_end(&access->rows));
    const bool many = met_count > SHAPES_MANY && !sim__race_is_early();
    struct shape *oldest = NULL;
    for (size_t i = 0; i < met_count; ++i) {
        struct shape *shape = met[i];
        if (sim__rows_equal(&shape->rows, &access->rows))
            continue; // it is entered there
        const bool covers =
            !step->is_passing && sim__rows_contain(&access->rows, &shape->rows);
        sim__race_list_meet(&shape->list, step, access, &shape->rows, covers);
        sim__race_list_settle(&shape->list, step);
        if (covers && many)
            sim__race_list_trim(&shape->list);
        if (shape->list.count == 0)
            shape_remove(shape);
        else if (oldest == NULL || shape->used < oldest->used)
            oldest = shape;
    }
    if (met_count > SHAPES_MAX && oldest != NULL)
        shape_divide(oldest);
}

// --- Accesses ---

void sim__shadow_access(const struct sim__race_step *step, const struct sim__race_access *access) {
    if (shape_count > 0)
        shapes_meet(step, access);
    if (access->rows.rows == 1 && !step->is_passing) {
        pieces_access(step, access);
        return;
    }
    pieces_meet(step, access);
    if (access->rows.rows == 1)
        return;
    struct shape *shape = shape_find(&access->rows);
    if (shape == NULL && step->is_passing)
        return;
    if (shape == NULL)
        shape = shape_make(&access->rows);
    shape->used = sim__race_step_count;
    sim__race_list_access(&shape->list, step, access,
                          (struct sim__range){access->rows.start, access->rows.size});
}

void sim__shadow_end(const struct sim__race_step *step, uint64_t start, uint64_t size) {
    struct piece *before, *piece = pieces_from(start, start + size, &before);
    for (; piece != NULL && piece->range.start < start + size; piece = piece->next)
        sim__race_list_end(&piece->list, step, overlap(piece, start, start + size));
    met_count = 0;
    met_find(shapes, start, start + size);
    for (size_t i = 0; i < met_count; ++i)
        sim__race_list_end(&met[i]->list, step,
                           (struct sim__range){met[i]->rows.start, met[i]->rows.size});
}

void sim__shadow_forget(uint64_t start, uint64_t size) {
    const uint64_t end = start + size;
    struct piece *before, *piece = pieces_from(start, end, &before), *next;
    for (; piece != NULL && piece->range.start < end; piece = next) {
        if (piece->range.start < start)
            piece = piece_split(piece, start);
        if (piece_end(piece) > end)
            piece_split(piece, end);
        next = piece->next;
        piece_remove(piece);
    }
    met_count = 0;
    met_find(shapes, start, end);
    for (size_t i = 0; i < met_count; ++i)
        shape_remove(met[i]);
}

void sim__shadow_clear(void) {
    while (first_piece != NULL)
        piece_remove(first_piece);
    memset(recent, 0, sizeof recent);
    sim__range_index_deinit(&pieces);
    while (idle != NULL) {
        struct piece *next = idle->next;
        free(idle);
        idle = next;
    }
    while (shapes != NULL)
        shape_remove(shapes);
    free(met);
    met = NULL;
    met_size = 0;
}

uint64_t sim__shadow_piece_count(void) { return piece_count + shape_count; }
