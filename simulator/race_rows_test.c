// Arithmetic of strided ranges against bytes in a small array.
#include "base/check.h"
#include "base/random.h"
#include "simulator/race_rows.h"

#include <string.h>

#define SPACE 160
#define PROGRAMS 150000

static struct sim__rows draw(struct base_random *random, uint64_t pitch) {
    struct sim__rows made;
    const uint64_t rows = base_random_between(random, 1, 7);
    if (base_random_below(random, 3) == 0)
        pitch = base_random_between(random, 1, 20);
    uint64_t size = base_random_between(random, 1, pitch + 1);
    uint64_t extent = (rows - 1) * pitch + size;
    BASE_CHECK(extent <= SPACE);
    BASE_CHECK(sim__rows_make(base_random_below(random, SPACE - extent + 1), size, rows, pitch,
                              &made));
    return made;
}

static void paint(const struct sim__rows *rows, unsigned char bytes[SPACE]) {
    for (uint64_t row = 0; row < rows->rows; ++row)
        for (uint64_t i = 0; i < rows->size; ++i)
            ++bytes[rows->start + row * rows->pitch + i];
}

static void paint_piece(const struct sim__rows *piece, void *bytes) { paint(piece, bytes); }

static void operations_agree_with_bytes(void) {
    struct base_random random = base_random_init(7, "race_rows_test");
    for (int program = 0; program < PROGRAMS; ++program) {
        base_check_context("program %d", program);
        const uint64_t pitch = base_random_between(&random, 2, 20);
        const struct sim__rows a = draw(&random, pitch), b = draw(&random, pitch);
        unsigned char in_a[SPACE] = {0}, in_b[SPACE] = {0}, common[SPACE] = {0}, rest[SPACE] = {0};
        paint(&a, in_a);
        paint(&b, in_b);
        int first = -1, last = -1;
        bool contained = true;
        for (int i = 0; i < SPACE; ++i) {
            BASE_CHECK_LE(in_a[i], 1);
            if (in_a[i] && in_b[i] && first < 0)
                first = i;
            if (in_a[i] && in_b[i] && first >= 0 && (last < 0 || last == i))
                last = i + 1;
            contained &= !in_b[i] || in_a[i];
        }
        struct sim__range found;
        BASE_CHECK_EQ(sim__rows_meet(&a, &b, &found), first >= 0);
        BASE_CHECK_EQ(sim__rows_meet(&b, &a, NULL), first >= 0);
        if (first >= 0) {
            BASE_CHECK(in_a[found.start] && in_b[found.start]);
            BASE_CHECK(in_a[found.start + found.size - 1] && in_b[found.start + found.size - 1]);
            if (a.pitch == b.pitch || a.rows == 1 || b.rows == 1)
                BASE_CHECK_EQ(found.start, first);
        }
        const bool says = sim__rows_contain(&a, &b);
        BASE_CHECK(!says || contained);
        if (a.rows == 1 || a.pitch == b.pitch || b.rows == 1)
            BASE_CHECK_EQ(says, contained);
        BASE_CHECK(sim__rows_common(&a, &b, paint_piece, common));
        BASE_CHECK(sim__rows_without(&a, &b, paint_piece, rest));
        for (int i = 0; i < SPACE; ++i) {
            BASE_CHECK_EQ(common[i], in_a[i] && in_b[i]);
            BASE_CHECK_EQ(rest[i], in_a[i] && !in_b[i]);
        }
    }
    base_check_context(NULL);
}

static void nothing_is_no_range(void) {
    struct sim__rows made;
    BASE_CHECK(!sim__rows_make(0, 0, 1, 0, &made));
    BASE_CHECK(!sim__rows_make(0, 0, 5, 7, &made));
    BASE_CHECK(sim__rows_make(100, 4, 3, 4, &made));
    BASE_CHECK_EQ(made.rows, 1);
    BASE_CHECK_EQ(made.size, 12);
    BASE_CHECK(sim__rows_make(100, 4, 0, 9, &made));
    BASE_CHECK_EQ(sim__rows_end(&made), 104);
}

// Whatever a program says: no sum wraps, and no range ends before it begins.
static void what_lies_behind_all_memory_is_left_out(void) {
    static const uint64_t words[] = {0, 1, 64, 4096, UINT64_C(1) << 46, SIM__ROWS_END - 64,
                                     SIM__ROWS_END, UINT64_MAX / 2, UINT64_MAX - 7, UINT64_MAX};
    enum { COUNT = sizeof words / sizeof words[0] };
    const struct sim__rows usual = {4096, 64, 1, 0};
    struct sim__rows made;
    struct sim__range found;
    for (int i = 0; i < COUNT * COUNT * COUNT * COUNT; ++i) {
        const uint64_t start = words[i % COUNT], size = words[i / COUNT % COUNT];
        const uint64_t rows = words[i / COUNT / COUNT % COUNT];
        const uint64_t pitch = words[i / COUNT / COUNT / COUNT];
        base_check_context("%#lx: %#lx bytes, %#lx rows, pitch %#lx", start, size, rows, pitch);
        const bool is_made = sim__rows_make(start, size, rows, pitch, &made);
        BASE_CHECK_EQ(is_made, size > 0 && start < SIM__ROWS_END);
        if (!is_made)
            continue;
        BASE_CHECK_EQ(made.start, start);
        BASE_CHECK(made.size >= 1 && made.size <= SIM__ROWS_END - start);
        BASE_CHECK(sim__rows_end(&made) > start && sim__rows_end(&made) <= SIM__ROWS_END);
        BASE_CHECK(made.rows <= (rows == 0 ? 1 : rows));
        BASE_CHECK(sim__rows_meet(&made, &made, &found));
        BASE_CHECK_EQ(found.start, start);
        if (sim__rows_meet(&made, &usual, &found))
            BASE_CHECK(found.start >= 4096 && found.start + found.size <= 4096 + 64);
    }
    base_check_context(NULL);
    BASE_CHECK(sim__rows_make(UINT64_C(1) << 46, 64, UINT64_MAX, UINT64_MAX, &made));
    BASE_CHECK_EQ(made.rows, 1);
    BASE_CHECK_EQ(made.size, 64);
}

// Columns of a matrix with a million rows.
static void many_rows_cost_what_one_does(void) {
    const uint64_t rows = 1000000, pitch = 4096;
    for (uint64_t i = 0; i < 1000; ++i) {
        const struct sim__rows a = {1 << 20, 16, rows, pitch};
        const struct sim__rows b = {(1 << 20) + 16 + i, 16, rows, pitch};
        BASE_CHECK(!sim__rows_meet(&a, &b, NULL));
        const struct sim__rows c = {(1 << 20) + 15 + pitch * 999999, 2, rows, pitch};
        struct sim__range found;
        BASE_CHECK(sim__rows_meet(&a, &c, &found));
        BASE_CHECK_EQ(found.start, (1 << 20) + 15 + pitch * 999999);
        BASE_CHECK_EQ(found.size, 1);
    }
}

int main(void) {
    operations_agree_with_bytes();
    nothing_is_no_range();
    what_lies_behind_all_memory_is_left_out();
    many_rows_cost_what_one_does();
    return 0;
}
