// What a tensor is: a handle on an impl on a storage; views of it, and who counts writes:
// docs/tensor.md tells the story. What becomes of the memory is in tensor_memory.c.
//
// Lines are labelled with the Python that does the same.
#include "docs/examples/tensor_text.h"

#include "base/options.h"

static enum base_status add_one(struct tensor self) {
    return tensor_add_(self, tensor_operand_integer(1), tensor_integer(1));
}

static struct tensor zeros(const struct tensor_place *place, const int64_t *sizes, int rank) {
    struct tensor self;
    CHECK_OK(tensor_zeros(place, TENSOR_FLOAT32, sizes, rank, &self));
    return self;
}

static const char *yes(bool value) { return value ? "yes" : "no"; }

//------------------------------------------------------------------------------------------------
// Who holds what

// SELF is any handle on the impl that is watched.
static void print_counts(const char *line, struct tensor self, const struct drawing *drawing) {
    struct tensor_storage *storage = tensor_storage(self); // counts, too, as long as it is held
    printf("%-24s %10d %6d %15d %10d\n", line, (int)tensor_count_strong_handles(self),
           (int)tensor_count_weak_handles(self), (int)tensor_storage_count(storage) - 1,
           (int)drawing_allocated(drawing));
    tensor_storage_release(&storage);
}

static void show_handles(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    printf("a handle has %d bytes\n", (int)sizeof(struct tensor));
    puts("                           the impl of a     its storage  allocated\n"
         "                            strong   weak         strong      bytes");
    struct tensor a = zeros(&place, SIZES(2, 3)), row;
    print_counts("a = zeros(2, 3)", a, &drawing);
    struct tensor b = tensor_retain(a);
    print_counts("b = a", a, &drawing);
    struct tensor_weak weak = tensor_weak(a);
    print_counts("w = weak(a)", a, &drawing);
    CHECK_OK(tensor_select(a, 0, 1, &row));
    print_counts("row = a[1]", a, &drawing);
    struct tensor_storage *storage = tensor_storage(a);
    print_counts("s = a.untyped_storage()", a, &drawing);
    tensor_release(&b);
    print_counts("del b", a, &drawing);
    tensor_release(&a);
    print_counts("del a", tensor_base(row), &drawing);
    tensor_release(&row);
    BASE_CHECK(tensor_weak_expired(weak) && !tensor_weak_lock(weak, &a));
    printf("%-24s %17s %15d %10d\n", "del row", "w has expired", (int)tensor_storage_count(storage),
           (int)drawing_allocated(&drawing));
    tensor_storage_release(&storage);
    printf("%-24s %44d\n", "del s", (int)drawing_allocated(&drawing));
    tensor_weak_release(&weak);
    printf("%-24s %44d\n", "del w", (int)drawing_allocated(&drawing));
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// What an impl holds

static void print_impl(const char *line, struct tensor self) {
    char sizes[TENSOR_TEXT_SIZE], strides[TENSOR_TEXT_SIZE];
    struct tensor_storage *storage = tensor_storage(self);
    printf("%-20s %4d  %-10s %-11s %6d %8d %6s of %d B %7d  %s\n", line, tensor_rank(self),
           tensor_text_sizes(self, sizes), tensor_text_strides(self, strides),
           (int)tensor_offset(self), (int)tensor_numel(self), tensor_type_name(tensor_type(self)),
           (int)tensor_type_size(tensor_type(self)), (int)tensor_storage_bytes(storage),
           tensor_data(self) == NULL                           ? "none"
           : tensor_data(self) == tensor_storage_data(storage) ? "the storage's"
                                                               : "inside");
    tensor_storage_release(&storage);
}

static void show_impls(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor a = zeros(&place, SIZES(2, 3, 4)), scalar = zeros(&place, NULL, 0),
                  empty = zeros(&place, SIZES(2, 0, 3)), half, row;
    CHECK_OK(tensor_zeros(&place, TENSOR_FLOAT16, SIZES(8), &half));
    CHECK_OK(tensor_select(a, 0, 1, &row));
    puts("                     rank  sizes      strides     offset elements  type         storage  "
         "address");
    print_impl("zeros(2, 3, 4)", a);
    print_impl("a[1] of it", row);
    print_impl("zeros(())", scalar);
    print_impl("zeros(2, 0, 3)", empty);
    print_impl("zeros(8), float16", half);
    struct tensor *const all[] = {&a, &scalar, &empty, &half, &row};
    for (int index = 0; index < 5; ++index)
        tensor_release(all[index]);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// Views

static void print_view(const char *line, struct tensor self, struct tensor root) {
    char sizes[TENSOR_TEXT_SIZE], strides[TENSOR_TEXT_SIZE], elements[TENSOR_TEXT_SIZE];
    printf("%-30s %-10s %-10s %6d  %s\n", line, tensor_text_sizes(self, sizes),
           tensor_text_strides(self, strides), (int)tensor_offset(self),
           tensor_text_elements(self, 10, elements));
    if (tensor_is_same(self, root)) return;
    // What the page says of all of them.
    BASE_CHECK(tensor_text_is_same_storage(self, root) && tensor_shares_version(self, root));
    BASE_CHECK(tensor_is_same(tensor_base(self), root));
}

static void show_views(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor m = tensor_text_range(&place, SIZES(4, 6)), row, rows, view;
    const int64_t blocks_before = drawing_allocated(&drawing);
    puts("                               sizes      strides    offset  elements");
    print_view("m = arange(24), (4, 6)", m, m);
#define VIEW(line, call, ...)                                                                      \
    do {                                                                                           \
        CHECK_OK(call(__VA_ARGS__, &view));                                                        \
        print_view(line, view, m);                                                                 \
        tensor_release(&view);                                                                     \
    } while (0)
    CHECK_OK(tensor_select(m, 0, 1, &row));
    CHECK_OK(tensor_slice(m, 0, 0, INT64_MAX, 2, &rows));
    print_view("m[1]", row, m);
    VIEW("m[:, 1]", tensor_select, m, 1, 1);
    VIEW("m[::2][:, 1:4]", tensor_slice, rows, 1, 1, 4, 1);
    VIEW("m.t()", tensor_transpose_2d, m);
    VIEW("m.view(2, 12)", tensor_view, m, SIZES(2, 12));
    VIEW("m[1].expand(2, 6)", tensor_expand, row, SIZES(2, 6));
    VIEW("m[1].unfold(0, 3, 1)", tensor_unfold, row, 0, 3, 1);
    VIEW("m.diagonal()", tensor_diagonal, m, 0, 0, 1);
    VIEW("m[4:]", tensor_slice, m, 0, 4, INT64_MAX, 1);
    VIEW("m.as_strided((2,), (9,))", tensor_as_strided, m, SIZES(2), SIZES(9), NULL);
    VIEW("m.as_strided((0,), (1,), 1000)", tensor_as_strided, m, SIZES(0), SIZES(1),
         &(int64_t){1000});
    tensor_text_refusal("m.as_strided((25,), (1,))",
                        tensor_as_strided(m, SIZES(25), SIZES(1), NULL, &view));
    BASE_CHECK_EQ(drawing_allocated(&drawing), blocks_before);
    tensor_release(&rows);

    struct tensor part;
    struct tensor_weak between = tensor_weak(row), root = tensor_weak(m);
    CHECK_OK(tensor_slice(row, 0, 2, 4, 1, &part));
    printf("part = row[2:4]: its base is m: %s, row: %s\n",
           yes(tensor_is_same(tensor_base(part), m)), yes(tensor_is_same(tensor_base(part), row)));
    tensor_release(&row);
    tensor_release(&m);
    printf("del row, m:      m is alive: %s, row: %s\n", yes(!tensor_weak_expired(root)),
           yes(!tensor_weak_expired(between)));
    tensor_weak_release(&between);
    tensor_weak_release(&root);
    tensor_release(&part);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// View or copy

// What RESULT is of SOURCE, and what the line took of the allocator.
static void print_result(const char *line, struct tensor result, struct tensor source, int bytes) {
    char sizes[TENSOR_TEXT_SIZE], strides[TENSOR_TEXT_SIZE];
    printf("%-28s %-7s %-14s %-14s %5d\n", line,
           tensor_is_same(result, source)                ? "itself"
           : tensor_text_is_same_storage(result, source) ? "view"
                                                         : "copy",
           tensor_text_sizes(result, sizes), tensor_text_strides(result, strides), bytes);
}

static void show_view_or_copy(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor a = zeros(&place, SIZES(2, 3, 4)), p, column, result;
    int64_t before;
    CHECK_OK(tensor_permute(a, SIZES(0, 2, 1), &p));
    CHECK_OK(tensor_select(a, 2, 0, &column));
#define RESULT(line, source, call, ...)                                                            \
    do {                                                                                           \
        before = drawing_allocated(&drawing);                                                      \
        CHECK_OK(call(__VA_ARGS__, &result));                                                      \
        print_result(line, result, source, (int)(drawing_allocated(&drawing) - before));           \
        tensor_release(&result);                                                                   \
    } while (0)
    puts("                             is a    sizes          strides        bytes");
    RESULT("a.view(2, 12)", a, tensor_view, a, SIZES(2, 12));
    RESULT("p = a.permute(0, 2, 1)", a, tensor_permute, a, SIZES(0, 2, 1));
    RESULT("p.view(2, 4, 3)", p, tensor_view, p, SIZES(2, 4, 3));
    RESULT("p.view(2, 2, 2, 3)", p, tensor_view, p, SIZES(2, 2, 2, 3));
    RESULT("p.reshape(2, 12)", p, tensor_reshape, p, SIZES(2, 12));
    RESULT("p.contiguous()", p, tensor_contiguous, p, TENSOR_CONTIGUOUS);
    RESULT("a.contiguous()", a, tensor_contiguous, a, TENSOR_CONTIGUOUS);
    RESULT("a.reshape(2, 3, 4)", a, tensor_reshape, a, SIZES(2, 3, 4));
    RESULT("c = a[:, :, 0]", a, tensor_select, a, 2, 0);
    RESULT("c.view(6)", column, tensor_view, column, SIZES(6));
#undef RESULT
    tensor_text_refusal("p.view(2, 12)", tensor_view(p, SIZES(2, 12), &result));
    tensor_release(&a);
    tensor_release(&p);
    tensor_release(&column);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// Contiguity and memory formats

// Releases SELF.
static void print_format(const char *line, struct tensor *self) {
    char sizes[TENSOR_TEXT_SIZE], strides[TENSOR_TEXT_SIZE];
    printf("%-32s %-13s %-15s %-10s %-13s %s\n", line, tensor_text_sizes(*self, sizes),
           tensor_text_strides(*self, strides), yes(tensor_is_contiguous(*self, TENSOR_CONTIGUOUS)),
           yes(tensor_is_contiguous(*self, TENSOR_CHANNELS_LAST)),
           yes((tensor_flags(*self) & TENSOR_IS_DENSE) != 0));
    tensor_release(self);
}

static void show_formats(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor x = zeros(&place, SIZES(2, 3, 4, 5)), last, m = zeros(&place, SIZES(5, 7)), view;
    struct tensor thin = zeros(&place, SIZES(2, 1, 4, 5));
    CHECK_OK(tensor_contiguous(x, TENSOR_CHANNELS_LAST, &last));
    puts("                                 sizes         strides         contiguous channels_last "
         "dense");
    view = tensor_retain(x);
    print_format("x = zeros(2, 3, 4, 5)", &view);
    view = tensor_retain(last);
    print_format("y = x.contiguous(channels_last)", &view);
    CHECK_OK(tensor_clone(last, TENSOR_PRESERVE, &view));
    print_format("y.clone()", &view);
    CHECK_OK(tensor_add(last, tensor_operand_integer(1), tensor_integer(1), &view));
    print_format("y + 1", &view);
    CHECK_OK(tensor_contiguous(last, TENSOR_CONTIGUOUS, &view));
    print_format("y.contiguous()", &view);
    CHECK_OK(tensor_slice(last, 2, 0, INT64_MAX, 2, &view));
    print_format("y[:, :, ::2]", &view);
    print_format("zeros(2, 1, 4, 5)", &thin);
    CHECK_OK(tensor_slice(m, 0, 1, 2, 1, &view));
    print_format("m[1:2], m = zeros(5, 7)", &view);
    CHECK_OK(tensor_slice(m, 1, 1, 2, 1, &view));
    print_format("m[:, 1:2]", &view);
    CHECK_OK(tensor_as_strided(m, SIZES(5, 1, 7), SIZES(7, 99, 1), NULL, &view));
    print_format("m.as_strided(.., (7, 99, 1))", &view);
    tensor_release(&x);
    tensor_release(&last);
    tensor_release(&m);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// Versions

static void print_versions(const char *line, struct tensor a, struct tensor other) {
    char elements[TENSOR_TEXT_SIZE], version[16] = "";
    if (other.impl != NULL) snprintf(version, sizeof version, "%u", testing_version(other));
    printf("%-38s %9u %8s  %s\n", line, testing_version(a), version,
           tensor_text_elements(a, 4, elements));
}

static void show_versions(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    const struct tensor none = {0};
    struct tensor a = zeros(&place, SIZES(4)), other = zeros(&place, SIZES(4)), v, d, e, sum;
    puts("                                       a counts  other's  elements of a");
    print_versions("a = zeros(4)", a, none);
    CHECK_OK(add_one(a));
    print_versions("a += 1", a, none);
    CHECK_OK(tensor_slice(a, 0, 0, 2, 1, &v));
    CHECK_OK(add_one(v));
    print_versions("v = a[:2]; v += 1", a, v);
    CHECK_OK(tensor_detach(a, &d));
    CHECK_OK(add_one(d));
    print_versions("d = a.detach(); d += 1", a, d);
    CHECK_OK(tensor_data_of(a, &e));
    CHECK_OK(add_one(e));
    print_versions("e = a.data; e += 1", a, e);
    CHECK_OK(tensor_add(a, tensor_operand_integer(1), tensor_integer(1), &sum));
    print_versions("a + 1", a, sum);
    tensor_release(&v);
    CHECK_OK(tensor_slice(a, 0, 0, 0, 1, &v));
    CHECK_OK(tensor_zero_(v));
    print_versions("n = a[:0]; n.zero_()", a, v);
    tensor_set_grad_mode(false);
    CHECK_OK(add_one(a));
    tensor_set_grad_mode(true);
    print_versions("with no_grad(): a += 1", a, none);
    CHECK_OK(tensor_unsqueeze_(a, 0));
    print_versions("a.unsqueeze_(0)", a, none);
    CHECK_OK(tensor_resize_(a, SIZES(1, 4), NULL));
    print_versions("a.resize_(1, 4), as it is", a, none);
    CHECK_OK(tensor_set_data(a, other));
    print_versions("a.data = zeros(4), another storage", a, d);
    CHECK_OK(add_one(d));
    print_versions("d += 1", a, d);
    struct tensor *const all[] = {&a, &other, &v, &d, &e, &sum};
    for (int index = 0; index < 6; ++index)
        tensor_release(all[index]);
    drawing_stop(&drawing);
}

static void show_refused_writes(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    struct tensor a = tensor_text_range(&place, SIZES(3)), wide, head, tail, leaf, pair;
    struct tensor whole;
    CHECK_OK(tensor_zeros(&place, TENSOR_INT64, SIZES(3), &whole));
    CHECK_OK(tensor_expand(a, SIZES(2, 3), &wide));
    CHECK_OK(tensor_slice(a, 0, 0, 2, 1, &head));
    CHECK_OK(tensor_slice(a, 0, 1, 3, 1, &tail));
    tensor_text_refusal("a.expand(2, 3).add_(1)", add_one(wide));
    tensor_text_refusal("a[:2].copy_(a[1:])", tensor_copy_(head, tail));
    pair = zeros(&place, SIZES(2));
    tensor_text_refusal("a.copy_(zeros(2))", tensor_copy_(a, pair));
    tensor_text_refusal("zeros(3, dtype=int64).add_(1.5)",
                        tensor_add_(whole, tensor_operand_floating(1.5), tensor_integer(1)));
    leaf = zeros(&place, SIZES(3));
    CHECK_OK(tensor_set_requires_grad(leaf, true));
    tensor_text_refusal("zeros(3, requires_grad=True).add_(1)", add_one(leaf));
    print_versions("a, after all", a, whole);
    BASE_CHECK_EQ(testing_version(leaf), 0);
    struct tensor *const all[] = {&a, &wide, &head, &tail, &leaf, &pair, &whole};
    for (int index = 0; index < 7; ++index)
        tensor_release(all[index]);
    drawing_stop(&drawing);
}

//------------------------------------------------------------------------------------------------
// What was saved for a gradient and changed since

enum change { NOTHING, WRITE, WRITE_DETACHED, WRITE_DATA, WRITE_AFTER, CHANGE_COUNT };

// The gradient of (2 w)^2 at w = 3: 8 w = 24, if all goes well.
static void square(const struct tensor_place *place, const char *line, enum change change) {
    struct tensor w, a, b, other = {0};
    struct tensor_scalar gradient;
    CHECK_OK(tensor_full(place, TENSOR_FLOAT32, NULL, 0, tensor_integer(3), &w));
    CHECK_OK(tensor_set_requires_grad(w, true));
    CHECK_OK(tensor_mul(w, tensor_operand_integer(2), &a));
    CHECK_OK(tensor_mul(a, tensor_operand_tensor(a), &b));
    if (change == WRITE) CHECK_OK(add_one(a));
    if (change == WRITE_DETACHED) CHECK_OK(tensor_detach(a, &other));
    if (change == WRITE_DATA) CHECK_OK(tensor_data_of(a, &other));
    if (other.impl != NULL) CHECK_OK(add_one(other));
    const enum base_status status = tensor_backward(b, (struct tensor){0}, false);
    if (status == BASE_OK) {
        if (change == WRITE_AFTER) CHECK_OK(add_one(a));
        CHECK_OK(tensor_item(tensor_grad(w), &gradient));
        printf("%-40s the gradient is %g\n", line, gradient.floating);
    } else {
        tensor_text_refusal(line, status);
    }
    struct tensor *const all[] = {&w, &a, &b, &other};
    for (int index = 0; index < 4; ++index)
        tensor_release(all[index]);
}

static void show_saved(void) {
    struct drawing drawing;
    drawing_start_with_bytes(&drawing, "", BASE_GIB);
    const struct tensor_place place = tensor_text_place(&drawing);
    puts("w = 3, requires grad; a = w * 2; b = a * a");
    square(&place, "b.backward()", NOTHING);
    square(&place, "b.backward(); a += 1", WRITE_AFTER);
    square(&place, "a += 1; b.backward()", WRITE);
    square(&place, "a.detach().add_(1); b.backward()", WRITE_DETACHED);
    square(&place, "a.data.add_(1); b.backward()", WRITE_DATA);
    drawing_stop(&drawing);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "tensor",
        .summary = "What a tensor is: handle, impl, storage; views, versions.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    show_handles();
    show_impls();
    show_views();
    show_view_or_copy();
    show_formats();
    show_versions();
    show_refused_writes();
    show_saved();
    return 0;
}
