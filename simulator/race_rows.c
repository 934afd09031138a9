// The arithmetic of race_rows.h. Two strided ranges of one pitch p meet where row i of A meets row
// i + k of B, for at most two numbers k; of different pitches the one with fewer rows is looked at
// row by row.
#include "simulator/race_rows.h"

#include "base/check.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool sim__rows_make(uint64_t start, uint64_t size, uint64_t rows, uint64_t pitch,
                    struct sim__rows *made) {
    if (size == 0 || start >= SIM__ROWS_END)
        return false;
    size = least(size, SIM__ROWS_END - start);
    if (rows > 1 && pitch > 0) // whole rows
        rows = least(rows, (SIM__ROWS_END - start - size) / pitch + 1);
    if (rows <= 1)
        *made = (struct sim__rows){start, size, 1, 0};
    else if (pitch <= size)
        *made = (struct sim__rows){start, (rows - 1) * pitch + size, 1, 0};
    else
        *made = (struct sim__rows){start, size, rows, pitch};
    return true;
}

static uint64_t row_start(const struct sim__rows *rows, uint64_t row) {
    return rows->start + row * rows->pitch;
}

// --- One piece and rows ---

// The rows of ROWS that meet [start, end): from *first to before *last; false if there are none.
static bool rows_in(const struct sim__rows *rows, uint64_t start, uint64_t end, uint64_t *first,
                    uint64_t *last) {
    if (end <= rows->start || start >= sim__rows_end(rows))
        return false;
    if (rows->rows == 1) {
        *first = 0;
        *last = 1;
        return true;
    }
    *first = start <= rows->start ? 0 : (start - rows->start) / rows->pitch;
    if (start >= row_start(rows, *first) + rows->size)
        ++*first;
    *last = least(rows->rows, (end - 1 - rows->start) / rows->pitch + 1);
    return *first < *last;
}

static bool meet_piece(const struct sim__rows *rows, uint64_t start, uint64_t end,
                       struct sim__range *found) {
    uint64_t first, last;
    if (!rows_in(rows, start, end, &first, &last))
        return false;
    if (found != NULL) {
        found->start = most(start, row_start(rows, first));
        found->size = least(end, row_start(rows, first) + rows->size) - found->start;
    }
    return true;
}

// --- Rows of one pitch ---

// Row i of A meets row i + k of B for i from FIRST to before LAST, in the columns from LEFT to
// before RIGHT of A.
struct alignment {
    uint64_t first, last, left, right;
};

// Fills in up to two; returns how many.
static int alignments(const struct sim__rows *a, const struct sim__rows *b,
                      struct alignment found[2]) {
    const int64_t pitch = (int64_t)a->pitch;
    const int64_t shift = (int64_t)(b->start - a->start); // of B's first row to A's
    // B's row i + k begins at column shift + k * pitch of A's row i: more than -size of B, less
    // than size of A.
    int64_t low = -(int64_t)b->size - shift;
    low = low >= 0 ? low / pitch + 1 : -(-low / pitch) + (-low % pitch == 0);
    int count = 0;
    for (int64_t k = low; shift + k * pitch < (int64_t)a->size; ++k) {
        const int64_t column = shift + k * pitch;
        const int64_t first = k < 0 ? -k : 0;
        const int64_t last = (int64_t)a->rows < (int64_t)b->rows - k ? (int64_t)a->rows
                                                                   : (int64_t)b->rows - k;
        if (first >= last)
            continue;
        BASE_CHECK_LT(count, 2);
        found[count].first = (uint64_t)first;
        found[count].last = (uint64_t)last;
        found[count].left = column < 0 ? 0 : (uint64_t)column;
        found[count].right = least(a->size, (uint64_t)(column + (int64_t)b->size));
        ++count;
    }
    return count;
}

static bool meet_aligned(const struct sim__rows *a, const struct sim__rows *b,
                         struct sim__range *found) {
    struct alignment all[2];
    const int count = alignments(a, b, all);
    for (int i = 0; i < count && found != NULL; ++i) {
        const uint64_t start = row_start(a, all[i].first) + all[i].left;
        if (i == 0 || start < found->start)
            *found = (struct sim__range){start, all[i].right - all[i].left};
    }
    return count > 0;
}

// --- Any two ---

bool sim__rows_meet(const struct sim__rows *a, const struct sim__rows *b,
                    struct sim__range *first) {
    if (sim__rows_end(a) <= b->start || sim__rows_end(b) <= a->start)
        return false;
    if (a->rows == 1)
        return meet_piece(b, a->start, sim__rows_end(a), first);
    if (b->rows == 1)
        return meet_piece(a, b->start, sim__rows_end(b), first);
    if (a->pitch == b->pitch)
        return meet_aligned(a, b, first);
    const struct sim__rows *few = a->rows < b->rows ? a : b, *many = few == a ? b : a;
    uint64_t row, end;
    if (!rows_in(few, many->start, sim__rows_end(many), &row, &end))
        return false;
    for (; row < end; ++row)
        if (meet_piece(many, row_start(few, row), row_start(few, row) + few->size, first))
            return true;
    return false;
}

bool sim__rows_contain(const struct sim__rows *a, const struct sim__rows *b) {
    if (b->start < a->start || sim__rows_end(b) > sim__rows_end(a))
        return false;
    if (a->rows == 1)
        return true;
    if (b->rows > 1 && b->pitch % a->pitch != 0)
        return false; // or row by row
    // Each row of B lies in A's as its first one does.
    const uint64_t column = (b->start - a->start) % a->pitch;
    return column + b->size <= a->size;
}

// --- Parts ---

static void piece_call(uint64_t start, uint64_t size, uint64_t rows, uint64_t pitch,
                       sim__rows_piece *piece, void *argument) {
    struct sim__rows made;
    if (rows > 0 && sim__rows_make(start, size, rows, pitch, &made))
        piece(&made, argument);
}

static bool common_piece(const struct sim__rows *rows, uint64_t start, uint64_t end,
                         sim__rows_piece *piece, void *argument) {
    uint64_t first, last;
    if (!rows_in(rows, start, end, &first, &last))
        return true;
    const uint64_t first_start = row_start(rows, first);
    const bool cut_first = first_start < start || first_start + rows->size > end;
    if (cut_first) {
        const uint64_t from = most(start, first_start);
        piece_call(from, least(end, first_start + rows->size) - from, 1, 0, piece, argument);
        if (++first == last)
            return true;
    }
    const uint64_t last_start = row_start(rows, last - 1);
    if (last_start + rows->size > end)
        piece_call(last_start, end - last_start, 1, 0, piece, argument), --last;
    piece_call(row_start(rows, first), rows->size, last - first, rows->pitch, piece, argument);
    return true;
}

bool sim__rows_common(const struct sim__rows *a, const struct sim__rows *b,
                      sim__rows_piece *piece, void *argument) {
    if (sim__rows_end(a) <= b->start || sim__rows_end(b) <= a->start)
        return true;
    if (a->rows == 1)
        return common_piece(b, a->start, sim__rows_end(a), piece, argument);
    if (b->rows == 1)
        return common_piece(a, b->start, sim__rows_end(b), piece, argument);
    if (a->pitch == b->pitch) {
        struct alignment all[2];
        const int count = alignments(a, b, all);
        for (int i = 0; i < count; ++i)
            piece_call(row_start(a, all[i].first) + all[i].left, all[i].right - all[i].left,
                       all[i].last - all[i].first, a->pitch, piece, argument);
        return true;
    }
    const struct sim__rows *few = a->rows < b->rows ? a : b, *many = few == a ? b : a;
    uint64_t row, end;
    if (!rows_in(few, many->start, sim__rows_end(many), &row, &end))
        return true;
    if (end - row > SIM__ROWS_PIECES_MAX)
        return false;
    for (; row < end; ++row)
        common_piece(many, row_start(few, row), row_start(few, row) + few->size, piece, argument);
    return true;
}

// A in one piece, without rows.
static void without_rows(const struct sim__rows *a, const struct sim__rows *b,
                         sim__rows_piece *piece, void *argument) {
    uint64_t first, last;
    const uint64_t end = sim__rows_end(a);
    if (!rows_in(b, a->start, end, &first, &last)) {
        piece(a, argument);
        return;
    }
    const uint64_t from = row_start(b, first), to = row_start(b, last - 1) + b->size;
    if (from > a->start)
        piece_call(a->start, from - a->start, 1, 0, piece, argument);
    piece_call(from + b->size, b->pitch - b->size, last - 1 - first, b->pitch, piece, argument);
    if (to < end)
        piece_call(to, end - to, 1, 0, piece, argument);
}

// Rows without one piece.
static void rows_without(const struct sim__rows *a, uint64_t start, uint64_t end,
                         sim__rows_piece *piece, void *argument) {
    uint64_t first, last;
    if (!rows_in(a, start, end, &first, &last)) {
        piece(a, argument);
        return;
    }
    piece_call(a->start, a->size, first, a->pitch, piece, argument);
    const uint64_t first_start = row_start(a, first);
    if (first_start < start)
        piece_call(first_start, start - first_start, 1, 0, piece, argument);
    const uint64_t last_end = row_start(a, last - 1) + a->size;
    if (last_end > end)
        piece_call(end, last_end - end, 1, 0, piece, argument);
    piece_call(row_start(a, last), a->size, a->rows - last, a->pitch, piece, argument);
}

struct second {
    const struct alignment *alignment;
    const struct sim__rows *whole;
    sim__rows_piece *piece;
    void *argument;
};

// Cuts out of A what an alignment of WHOLE says; A is rows FIRST to before LAST of WHOLE, columns
// LEFT to before RIGHT.
static void cut(const struct sim__rows *whole, struct alignment a, const struct alignment *out,
                sim__rows_piece *piece, void *argument) {
    const uint64_t first = most(a.first, out->first), last = least(a.last, out->last);
    const uint64_t left = most(a.left, out->left), right = least(a.right, out->right);
    const uint64_t pitch = whole->pitch, width = a.right - a.left;
    if (first >= last || left >= right) {
        piece_call(row_start(whole, a.first) + a.left, width, a.last - a.first, pitch, piece,
                   argument);
        return;
    }
    piece_call(row_start(whole, a.first) + a.left, width, first - a.first, pitch, piece, argument);
    piece_call(row_start(whole, first) + a.left, left - a.left, last - first, pitch, piece,
               argument);
    piece_call(row_start(whole, first) + right, a.right - right, last - first, pitch, piece,
               argument);
    piece_call(row_start(whole, last) + a.left, width, a.last - last, pitch, piece, argument);
}

static void cut_second(const struct sim__rows *rows, void *argument) {
    const struct second *second = argument;
    const struct sim__rows *whole = second->whole;
    const uint64_t row = (rows->start - whole->start) / whole->pitch;
    const uint64_t column = (rows->start - whole->start) % whole->pitch;
    cut(whole, (struct alignment){row, row + rows->rows, column, column + rows->size},
        second->alignment, second->piece, second->argument);
}

static void without_aligned(const struct sim__rows *a, const struct sim__rows *b,
                            sim__rows_piece *piece, void *argument) {
    struct alignment all[2];
    const int count = alignments(a, b, all);
    const struct alignment whole = {0, a->rows, 0, a->size};
    struct second second = {&all[1], a, piece, argument};
    if (count == 0)
        piece(a, argument);
    else if (count == 1)
        cut(a, whole, &all[0], piece, argument);
    else
        cut(a, whole, &all[0], cut_second, &second);
}

bool sim__rows_without(const struct sim__rows *a, const struct sim__rows *b,
                       sim__rows_piece *piece, void *argument) {
    if (sim__rows_end(a) <= b->start || sim__rows_end(b) <= a->start)
        piece(a, argument);
    else if (a->rows == 1)
        without_rows(a, b, piece, argument);
    else if (b->rows == 1)
        rows_without(a, b->start, sim__rows_end(b), piece, argument);
    else if (a->pitch == b->pitch)
        without_aligned(a, b, piece, argument);
    else if (a->rows > SIM__ROWS_PIECES_MAX)
        return false;
    else
        for (uint64_t row = 0; row < a->rows; ++row)
            without_rows(&(struct sim__rows){row_start(a, row), a->size, 1, 0}, b, piece,
                         argument);
    return true;
}
