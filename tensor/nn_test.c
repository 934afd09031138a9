// The operators of nn.h against plain loops: types, layouts, the CPU and the simulated device.
//
//     nn_test [SEED [COUNT]]
#include "tensor/nn_testing.h"

#define COUNT_DEFAULT 400
#define IGNORED TENSOR_IGNORED

static const enum tensor_type types[] = {TENSOR_FLOAT32, TENSOR_FLOAT64, TENSOR_FLOAT16,
                                         TENSOR_BFLOAT16};

// Where, and of what, a test is; drawn anew for each.
struct drawn {
    const struct tensor_place *place;
    struct base_random *random;
    enum tensor_type type;
};

static int64_t draw(const struct drawn *drawn, int below) {
    return (int64_t)base_random_below(drawn->random, (uint64_t)below);
}

// An operand of any layout; *numbers: as the type holds them.
static struct tensor operand(const struct drawn *drawn, const int64_t *sizes, int rank,
                             double **numbers) {
    double *given = nn_numbers(drawn->random, nn_count(sizes, rank));
    const struct tensor self = nn_tensor(drawn->place, drawn->type, sizes, rank, given,
                                         (enum nn_layout)draw(drawn, NN_LAYOUTS));
    free(given);
    *numbers = nn_read(self);
    return self;
}

static double step_of(enum tensor_type type) {
    return type == TENSOR_FLOAT64   ? 0x1p-44 // what is kept beside is float64, too
           : type == TENSOR_FLOAT32 ? 0x1p-20
           : type == TENSOR_FLOAT16 ? 0x1p-9
                                    : 0x1p-6;
}

// Releases SELF and frees WANTED.
static void check(const struct drawn *drawn, struct tensor self, double *wanted) {
    double *got = nn_read(self);
    BASE_CHECK_EQ(tensor_type(self), drawn->type);
    for (int64_t i = 0; i < tensor_numel(self); i++)
        if (!(fabs(got[i] - wanted[i]) <= step_of(drawn->type) * (1 + fabs(wanted[i])))) {
            fprintf(stderr, "%s, element %lld: %.9g, want %.9g\n", tensor_type_name(drawn->type),
                    (long long)i, got[i], wanted[i]);
            BASE_CHECK(got[i] == wanted[i]);
        }
    free(got);
    free(wanted);
    tensor_release(&self);
}

static double *room(int64_t count) {
    double *numbers = calloc((size_t)count + 1, sizeof *numbers);
    BASE_CHECK(numbers != NULL);
    return numbers;
}

static void linear_is_a_product_and_a_bias(const struct drawn *drawn) {
    const int64_t a = 1 + draw(drawn, 3), b = draw(drawn, 4), k = draw(drawn, 6),
                  n = 1 + draw(drawn, 6);
    const bool has_bias = draw(drawn, 3) > 0;
    double *x, *w, *v, *wanted = room(a * b * n);
    struct tensor in = operand(drawn, SIZES(a, b, k), &x), weight = operand(drawn, SIZES(n, k), &w);
    struct tensor bias = operand(drawn, SIZES(n), &v), out;
    CHECK_OK(tensor_linear(in, weight, has_bias ? bias : (struct tensor){0}, &out));
    BASE_CHECK(tensor_rank(out) == 3 && tensor_size(out, 0) == a && tensor_size(out, 1) == b &&
               tensor_size(out, 2) == n);
    for (int64_t i = 0; i < a * b; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = has_bias ? v[j] : 0;
            for (int64_t c = 0; c < k; c++)
                sum += x[i * k + c] * w[j * k + c];
            wanted[i * n + j] = sum;
        }
    check(drawn, out, wanted);
    tensor_release(&in);
    tensor_release(&weight);
    tensor_release(&bias);
    free(x);
    free(w);
    free(v);
}

static double gelu(double x) { return x / 2 * (1 + erf(x / sqrt(2))); }
static double gelu_tanh(double x) {
    return x / 2 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}
static double silu(double x) { return x / (1 + exp(-x)); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void functions_are_those_of_the_library(const struct drawn *drawn) {
    static const struct {
        enum base_status (*function)(struct tensor self, struct tensor *result);
        double (*wanted)(double x);
    } functions[] = {{tensor_gelu, gelu},       {tensor_gelu_tanh, gelu_tanh}, {tensor_silu, silu},
                     {tensor_sigmoid, sigmoid}, {tensor_tanh, tanh},           {tensor_exp, exp}};
    const int64_t rows = draw(drawn, 5), columns = 1 + draw(drawn, 20);
    double *x, *wanted = room(rows * columns);
    struct tensor in = operand(drawn, SIZES(rows, columns), &x), out;
    const size_t which = (size_t)draw(drawn, 6);
    CHECK_OK(functions[which].function(in, &out));
    for (int64_t i = 0; i < rows * columns; i++)
        wanted[i] = functions[which].wanted(x[i]);
    check(drawn, out, wanted);
    tensor_release(&in);
    free(x);
}

static void softmax_is_that_of_a_loop(const struct drawn *drawn) {
    const int64_t sizes[] = {1 + draw(drawn, 3), 1 + draw(drawn, 4), 1 + draw(drawn, 5)};
    const int dim = (int)draw(drawn, 3);
    const bool is_log = draw(drawn, 2);
    double *x, *wanted = room(nn_count(sizes, 3));
    struct tensor in = operand(drawn, sizes, 3, &x), out;
    CHECK_OK((is_log ? tensor_log_softmax : tensor_softmax)(in, dim - 3, &out));
    const int64_t inner = dim == 2 ? 1 : dim == 1 ? sizes[2] : sizes[1] * sizes[2];
    for (int64_t i = 0; i < nn_count(sizes, 3); i++) {
        const int64_t first = i - i / inner % sizes[dim] * inner;
        double sum = 0;
        for (int64_t j = 0; j < sizes[dim]; j++)
            sum += exp(x[first + j * inner]);
        wanted[i] = is_log ? x[i] - log(sum) : exp(x[i]) / sum;
    }
    check(drawn, out, wanted);
    tensor_release(&in);
    free(x);
}

static void norms_are_those_of_a_loop(const struct drawn *drawn) {
    const int64_t rows = draw(drawn, 5), sizes[] = {rows, 1 + draw(drawn, 3), 2 + draw(drawn, 5)};
    const int dims = 1 + (int)draw(drawn, 2);
    const bool is_rms = draw(drawn, 2), has_weight = draw(drawn, 2);
    const int64_t columns = nn_count(sizes + 3 - dims, dims), count = nn_count(sizes, 3);
    double *x, *w, *b, *wanted = room(count);
    const struct tensor none = {0};
    struct tensor in = operand(drawn, sizes, 3, &x), out;
    struct tensor weight = operand(drawn, sizes + 3 - dims, dims, &w);
    struct tensor bias = operand(drawn, sizes + 3 - dims, dims, &b);
    if (is_rms)
        CHECK_OK(
            tensor_rms_norm(in, sizes + 3 - dims, dims, has_weight ? weight : none, 0.1, &out));
    else
        CHECK_OK(tensor_layer_norm(in, sizes + 3 - dims, dims, has_weight ? weight : none,
                                   has_weight ? bias : none, 0.1, &out));
    for (int64_t i = 0; i < count; i++) {
        const double *row = x + i / columns * columns;
        double mean = 0, squares = 0;
        for (int64_t j = 0; j < columns; j++)
            mean += is_rms ? 0 : row[j] / (double)columns;
        for (int64_t j = 0; j < columns; j++)
            squares += (row[j] - mean) * (row[j] - mean) / (double)columns;
        wanted[i] = (x[i] - mean) / sqrt(squares + 0.1);
        if (has_weight) wanted[i] = wanted[i] * w[i % columns] + (is_rms ? 0 : b[i % columns]);
    }
    check(drawn, out, wanted);
    tensor_release(&in);
    tensor_release(&weight);
    tensor_release(&bias);
    free(x);
    free(w);
    free(b);
}

// Weight and bias of float32 beside 16 bits; the gradients have their type.
static void norms_take_wide_weights(const struct drawn *drawn) {
    double *x, *w;
    struct drawn wide = *drawn;
    wide.type = TENSOR_FLOAT32;
    struct tensor in = operand(drawn, SIZES(3, 4), &x), weight = operand(&wide, SIZES(4), &w), out;
    if (drawn->type != TENSOR_FLOAT64) {
        CHECK_OK(tensor_set_requires_grad(weight, true));
        CHECK_OK(tensor_layer_norm(in, (int64_t[]){4}, 1, weight, weight, 1e-5, &out));
        BASE_CHECK_EQ(tensor_type(out), drawn->type);
        CHECK_OK(tensor_backward(out, in, false));
        BASE_CHECK_EQ(tensor_type(tensor_grad(weight)), TENSOR_FLOAT32);
        tensor_release(&out);
    } else {
        CHECK_REFUSED(tensor_layer_norm(in, (int64_t[]){4}, 1, weight, weight, 1e-5, &out),
                      "expected scalar type Double but found Float");
    }
    tensor_release(&in);
    tensor_release(&weight);
    free(x);
    free(w);
}

static void embedding_takes_rows(const struct drawn *drawn) {
    const int64_t rows = 1 + draw(drawn, 5), columns = 1 + draw(drawn, 4), count = draw(drawn, 6);
    int64_t chosen[16];
    double *w, *wanted = room(2 * count * columns);
    for (int64_t i = 0; i < 2 * count; i++)
        chosen[i] = draw(drawn, (int)rows);
    struct tensor weight = operand(drawn, SIZES(rows, columns), &w), given, indices, out;
    CHECK_OK(tensor_from_bytes(drawn->place, TENSOR_INT64, SIZES(count, 2), chosen, &given));
    CHECK_OK(tensor_transpose(given, 0, 1, &indices));
    CHECK_OK(tensor_embedding(weight, indices, &out));
    BASE_CHECK(tensor_rank(out) == 3 && tensor_size(out, 0) == 2 && tensor_size(out, 1) == count);
    for (int64_t i = 0; i < 2 * count; i++)
        memcpy(wanted + i * columns, w + chosen[i % count * 2 + i / count] * columns,
               (size_t)columns * sizeof *w);
    check(drawn, out, wanted);
    tensor_release(&weight);
    tensor_release(&given);
    tensor_release(&indices);
    free(w);
}

static void means_and_the_greatest_are_those_of_a_loop(const struct drawn *drawn) {
    const int64_t rows = 1 + draw(drawn, 4), columns = 1 + draw(drawn, 6);
    double *x, *wanted = room(columns);
    struct tensor in = operand(drawn, SIZES(rows, columns), &x), out, best;
    CHECK_OK(tensor_mean_dims(in, (int64_t[]){0}, 1, true, &out));
    BASE_CHECK(tensor_rank(out) == 2 && tensor_size(out, 0) == 1);
    for (int64_t i = 0; i < rows * columns; i++)
        wanted[i % columns] += x[i] / (double)rows;
    check(drawn, out, wanted);
    CHECK_OK(tensor_argmax(in, 1, false, &best));
    double *got = nn_read(best);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double most = x[i * columns + (int64_t)got[i]], other = x[i * columns + j];
            BASE_CHECK(other < most || (other == most && j >= (int64_t)got[i]));
        }
    free(got);
    tensor_release(&best);
    tensor_release(&in);
    free(x);
}

// To 16 bits and back: gradients go the same way, in the type of each.
static void conversions_pass_gradients(const struct drawn *drawn) {
    double *x;
    struct drawn wide = *drawn;
    wide.type = TENSOR_FLOAT32;
    struct tensor in = operand(&wide, SIZES(2, 3), &x), other, twice, back;
    CHECK_OK(tensor_set_requires_grad(in, true));
    CHECK_OK(tensor_to(in, drawn->type, TENSOR_PRESERVE, &other));
    CHECK_OK(tensor_mul(other, tensor_operand_integer(2), &twice));
    CHECK_OK(tensor_to(twice, TENSOR_FLOAT32, TENSOR_PRESERVE, &back));
    BASE_CHECK_EQ(tensor_type(twice), drawn->type);
    CHECK_OK(tensor_backward(back, back, false));
    BASE_CHECK_EQ(tensor_type(tensor_grad(in)), TENSOR_FLOAT32);
    double *got = nn_read(tensor_grad(in)), *rounded = nn_read(back);
    for (int i = 0; i < 6; i++) { // what comes back is exact in either type
        BASE_CHECK(got[i] == 2 * rounded[i]);
        BASE_CHECK(fabs(rounded[i] - 2 * x[i]) <= step_of(drawn->type));
    }
    free(got);
    free(rounded);
    free(x);
    tensor_release(&in);
    tensor_release(&other);
    tensor_release(&twice);
    tensor_release(&back);
}

static void masks_choose(const struct drawn *drawn) {
    const int64_t rows = 1 + draw(drawn, 4), columns = 1 + draw(drawn, 6);
    bool values[8];
    double *x, *wanted = room(rows * columns);
    for (int64_t i = 0; i < columns; i++)
        values[i] = draw(drawn, 2);
    struct tensor in = operand(drawn, SIZES(rows, columns), &x), mask, out;
    CHECK_OK(tensor_from_bytes(drawn->place, TENSOR_BOOL, SIZES(columns), values, &mask));
    CHECK_OK(tensor_masked_fill(in, mask, tensor_floating(-INFINITY), &out));
    double *got = nn_read(out);
    for (int64_t i = 0; i < rows * columns; i++)
        BASE_CHECK(got[i] == (values[i % columns] ? (double)-INFINITY : x[i]));
    free(got);
    free(wanted);
    tensor_release(&in);
    tensor_release(&mask);
    tensor_release(&out);
    free(x);
}

// Which elements stay depends on seed and offset alone; the generator moves on by fours.
static void dropout_goes_by_seed_and_place(const struct drawn *drawn) {
    const int64_t rows = 1 + draw(drawn, 4), columns = 1 + draw(drawn, 30);
    const double probability = draw(drawn, 2) ? 0.5 : 0.25;
    struct tensor_generator generator = {.seed = base_random_next(drawn->random), .offset = 8};
    struct tensor_generator again = generator;
    double *x, *wanted = room(rows * columns);
    struct tensor in = operand(drawn, SIZES(rows, columns), &x), out, same, rows_only;
    CHECK_OK(tensor_dropout(in, probability, &generator, &out));
    BASE_CHECK_EQ(generator.offset, 8 + (uint64_t)(rows * columns + 3) / 4 * 4);
    CHECK_OK(tensor_contiguous(in, TENSOR_CONTIGUOUS, &rows_only));
    CHECK_OK(tensor_dropout(rows_only, probability, &again, &same));
    double *got = nn_read(out);
    for (int64_t i = 0; i < rows * columns; i++)
        wanted[i] = got[i] == 0 ? 0 : x[i] / (1 - probability);
    memcpy(x, got, (size_t)(rows * columns) * sizeof *x);
    check(drawn, out, wanted);
    free(got);
    got = nn_read(same);
    BASE_CHECK_EQ(memcmp(got, x, (size_t)(rows * columns) * sizeof *x), 0);
    free(got);
    tensor_release(&same);
    tensor_release(&rows_only);
    tensor_release(&in);
    free(x);
}

static void cross_entropy_is_that_of_a_loop(const struct drawn *drawn) {
    const int64_t rows = 1 + draw(drawn, 5), classes = 1 + draw(drawn, 5);
    const bool is_mean = draw(drawn, 2);
    const int64_t ignored = classes > 1 && draw(drawn, 2) ? classes - 1 : IGNORED;
    int64_t chosen[8], spread[16];
    double *x, *wanted = room(1), counted = 0;
    struct tensor in = operand(drawn, SIZES(rows, classes), &x), all, targets, out;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        chosen[i] = i > 0 && draw(drawn, 3) == 0 ? ignored : draw(drawn, (int)classes);
        if (i == 0 && chosen[i] == ignored) chosen[i] = 0;
        for (int64_t j = 0; j < classes; j++)
            sum += exp(x[i * classes + j]);
        if (chosen[i] == ignored) continue;
        wanted[0] += log(sum) - x[i * classes + chosen[i]];
        counted += 1;
    }
    if (is_mean) wanted[0] /= counted;
    const int64_t step = 1 + draw(drawn, 2); // targets with gaps, too
    for (int64_t i = 0; i < rows * step; i++)
        spread[i] = i % step == 0 ? chosen[i / step] : -1;
    CHECK_OK(tensor_from_bytes(drawn->place, TENSOR_INT64, SIZES(rows * step), spread, &all));
    CHECK_OK(tensor_slice(all, 0, 0, INT64_MAX, step, &targets));
    tensor_release(&all);
    CHECK_OK(tensor_cross_entropy(in, targets, ignored, is_mean ? TENSOR_MEAN : TENSOR_SUM, &out));
    check(drawn, out, wanted);
    struct tensor losses;
    CHECK_OK(tensor_cross_entropy_rows(in, targets, ignored, &losses));
    wanted = room(rows);
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < classes; j++)
            sum += exp(x[i * classes + j]);
        wanted[i] = chosen[i] == ignored ? 0 : log(sum) - x[i * classes + chosen[i]];
    }
    check(drawn, losses, wanted);
    tensor_release(&in);
    tensor_release(&targets);
    free(x);
}

// Softmax(scale * Q K' + mask) V, of [batch, heads].
struct attention {
    int64_t matrices, l, s, e, ev;
    bool is_causal;
    int64_t shift;
    const double *mask; // [l, s], or NULL
    double scale;       // 0: 1 / sqrt(e)
};

static void attention_fill(const struct attention *shape, const double *q, const double *k,
                           const double *v, double *out) {
    const double scale = shape->scale != 0 ? shape->scale : 1 / sqrt((double)shape->e);
    for (int64_t i = 0; i < shape->matrices * shape->l; i++) {
        const int64_t matrix = i / shape->l, row = i % shape->l;
        double sum = 0;
        for (int64_t j = 0; j < shape->s; j++) {
            const int64_t at = matrix * shape->s + j;
            double score = 0;
            if (shape->is_causal && j > row + shape->shift) continue;
            for (int64_t c = 0; c < shape->e; c++)
                score += q[i * shape->e + c] * k[at * shape->e + c] * scale;
            const double p =
                exp(score + (shape->mask != NULL ? shape->mask[row * shape->s + j] : 0));
            sum += p;
            for (int64_t c = 0; c < shape->ev; c++)
                out[i * shape->ev + c] += p * v[at * shape->ev + c];
        }
        for (int64_t c = 0; c < shape->ev; c++)
            out[i * shape->ev + c] /= sum;
    }
}

static void attention_is_that_of_a_loop(const struct drawn *drawn) {
    const int64_t b = 1 + draw(drawn, 2), h = 1 + draw(drawn, 3), l = 1 + draw(drawn, 5);
    struct attention shape = {.matrices = b * h,
                              .l = l,
                              .s = l + draw(drawn, 4),
                              .e = 1 + draw(drawn, 6),
                              .ev = 1 + draw(drawn, 4)};
    double *q, *k, *v, *masked = NULL, *wanted = room(b * h * l * shape.ev);
    struct tensor query = operand(drawn, SIZES(b, h, l, shape.e), &q), out;
    struct tensor key = operand(drawn, SIZES(b, h, shape.s, shape.e), &k);
    struct tensor value = operand(drawn, SIZES(b, h, shape.s, shape.ev), &v);
    struct tensor_attention options = {.is_causal = draw(drawn, 2)};
    options.scale = shape.scale = draw(drawn, 2) ? 0 : 0.75;
    if (options.is_causal)
        options.shift = shape.shift = draw(drawn, 2) ? 0 : shape.s - l;
    else if (draw(drawn, 2))
        options.mask = operand(drawn, SIZES(l, shape.s), &masked);
    if (options.mask.impl == NULL)
        options.form = draw(drawn, 2) ? TENSOR_ATTENTION_FUSED : TENSOR_ATTENTION_MATH;
    shape.is_causal = options.is_causal;
    shape.mask = masked;
    CHECK_OK(tensor_scaled_dot_product_attention(query, key, value, &options, &out));
    if (options.form == TENSOR_ATTENTION_FUSED) { // heads inside of the sequence
        BASE_CHECK_EQ(tensor_stride(out, 2), h * shape.ev);
        BASE_CHECK_EQ(tensor_stride(out, 1), shape.ev);
    }
    attention_fill(&shape, q, k, v, wanted);
    check(drawn, out, wanted);
    tensor_release(&query);
    tensor_release(&key);
    tensor_release(&value);
    tensor_release(&options.mask);
    free(q);
    free(k);
    free(v);
    free(masked);
}

// A bool mask is one of minus infinity.
static void attention_sees_what_the_mask_shows(const struct drawn *drawn) {
    const struct attention shape = {
        .matrices = 1,
        .l = 2,
        .s = 3,
        .e = 2,
        .ev = 2,
        .mask = (double[]){0, -INFINITY, 0, -INFINITY, 0, 0},
    };
    const bool seen[] = {true, false, true, false, true, true};
    double *q, *k, *v, *wanted = room(4);
    struct tensor query = operand(drawn, SIZES(2, 2), &q), key = operand(drawn, SIZES(3, 2), &k);
    struct tensor value = operand(drawn, SIZES(3, 2), &v), mask, out;
    CHECK_OK(tensor_from_bytes(drawn->place, TENSOR_BOOL, SIZES(2, 3), seen, &mask));
    CHECK_OK(tensor_scaled_dot_product_attention(query, key, value,
                                                 &(struct tensor_attention){.mask = mask}, &out));
    attention_fill(&shape, q, k, v, wanted);
    check(drawn, out, wanted);
    tensor_release(&query);
    tensor_release(&key);
    tensor_release(&value);
    tensor_release(&mask);
    free(q);
    free(k);
    free(v);
}

// One key for two heads: it broadcasts, in a chain of operators.
static void attention_broadcasts_keys(const struct drawn *drawn) {
    const struct attention shape = {.matrices = 2, .l = 2, .s = 3, .e = 2, .ev = 2};
    double *q, *k, *v, keys[12], values[12], *wanted = room(8);
    struct tensor query = operand(drawn, SIZES(1, 2, 2, 2), &q), out;
    struct tensor key = operand(drawn, SIZES(1, 1, 3, 2), &k);
    struct tensor value = operand(drawn, SIZES(1, 1, 3, 2), &v);
    for (int i = 0; i < 12; i++) {
        keys[i] = k[i % 6];
        values[i] = v[i % 6];
    }
    CHECK_OK(tensor_scaled_dot_product_attention(query, key, value, NULL, &out));
    attention_fill(&shape, q, keys, values, wanted);
    check(drawn, out, wanted);
    tensor_release(&query);
    tensor_release(&key);
    tensor_release(&value);
    free(q);
    free(k);
    free(v);
}

static void adamw_steps_by_its_formula(const struct drawn *drawn) {
    const bool is_coupled = draw(drawn, 2), is_single = draw(drawn, 2);
    const struct tensor_adamw adamw = {.rate = 0.1,
                                       .beta1 = 0.8,
                                       .beta2 = 0.9,
                                       .epsilon = 1e-3,
                                       .decay = 0.2,
                                       .is_coupled = is_coupled,
                                       .is_single = is_single};
    double *p = nn_numbers(drawn->random, 6), *g, *wanted, m[6] = {0}, v[6] = {0};
    struct drawn wide = *drawn; // of 16 bits the state would be rounded
    wide.type = tensor_type_size(drawn->type) == 2 ? TENSOR_FLOAT32 : drawn->type;
    struct tensor self =
        nn_tensor(drawn->place, wide.type, SIZES(2, 3), p, draw(drawn, 2) ? NN_ROWS : NN_TURNED);
    struct tensor gradient, mean, square;
    CHECK_OK(tensor_empty_like(self, TENSOR_PRESERVE, &gradient));
    CHECK_OK(tensor_zeros_like(self, TENSOR_PRESERVE, &mean));
    CHECK_OK(tensor_zeros_like(self, TENSOR_PRESERVE, &square));
    wanted = nn_read(self);
    for (int step = 1; step <= 3; step++) {
        const uint32_t before = testing_version(self);
        double *numbers = nn_numbers(drawn->random, 6);
        struct tensor next = nn_tensor(drawn->place, wide.type, SIZES(2, 3), numbers, NN_ROWS);
        CHECK_OK(tensor_copy_(gradient, next));
        tensor_release(&next);
        free(numbers);
        g = nn_read(gradient);
        CHECK_OK(tensor_adamw_step(&adamw, step, 1, &self, &gradient, &mean, &square));
        for (int i = 0; i < 6; i++) {
            if (is_coupled)
                g[i] += 0.2 * wanted[i];
            else
                wanted[i] *= 1 - 0.1 * 0.2;
            m[i] = 0.8 * m[i] + 0.2 * g[i];
            v[i] = 0.9 * v[i] + 0.1 * g[i] * g[i];
            wanted[i] -=
                0.1 * (m[i] / (1 - pow(0.8, step))) / (sqrt(v[i] / (1 - pow(0.9, step))) + 1e-3);
        }
        free(g);
        BASE_CHECK_LT(before, testing_version(self));
        BASE_CHECK(testing_version(square) > 0);
    }
    check(&wide, self, wanted);
    tensor_release(&gradient);
    tensor_release(&mean);
    tensor_release(&square);
    free(p);
}

static void sgd_steps_by_its_formula(const struct drawn *drawn) {
    const struct tensor_sgd sgd = {
        .rate = 0.1, .momentum = draw(drawn, 2) ? 0.5 : 0, .decay = draw(drawn, 2) ? 0.2 : 0};
    struct drawn wide = *drawn;
    wide.type = tensor_type_size(drawn->type) == 2 ? TENSOR_FLOAT32 : drawn->type;
    double *p = nn_numbers(drawn->random, 6), v[6] = {0};
    struct tensor self = nn_tensor(drawn->place, wide.type, SIZES(2, 3), p, NN_ROWS), velocity;
    CHECK_OK(tensor_zeros_like(self, TENSOR_PRESERVE, &velocity));
    double *wanted = nn_read(self);
    for (int step = 1; step <= 3; step++) {
        double *numbers = nn_numbers(drawn->random, 6);
        struct tensor gradient = nn_tensor(drawn->place, wide.type, SIZES(2, 3), numbers, NN_ROWS);
        double *g = nn_read(gradient);
        const uint32_t before = testing_version(velocity);
        CHECK_OK(tensor_sgd_step(&sgd, 1, &self, &gradient, sgd.momentum != 0 ? &velocity : NULL));
        BASE_CHECK_EQ(testing_version(self), (uint32_t)step);
        BASE_CHECK_EQ(testing_version(velocity), before + (sgd.momentum != 0));
        for (int i = 0; i < 6; i++) {
            v[i] = sgd.momentum * v[i] + g[i] + sgd.decay * wanted[i];
            wanted[i] -= 0.1 * v[i];
        }
        tensor_release(&gradient);
        free(numbers);
        free(g);
    }
    check(&wide, self, wanted);
    tensor_release(&velocity);
    free(p);
}

static void clipping_scales_all_to_the_norm(const struct drawn *drawn) {
    double *x, *y, total = 0, *wanted = room(6), *other = room(5);
    struct tensor gradients[] = {operand(drawn, SIZES(2, 3), &x), operand(drawn, SIZES(5), &y)};
    struct tensor norm;
    for (int i = 0; i < 6; i++)
        total += x[i] * x[i];
    for (int i = 0; i < 5; i++)
        total += y[i] * y[i];
    total = sqrt(total);
    const double limit = draw(drawn, 2) ? total / 2 : total * 2;
    CHECK_OK(tensor_clip_grad_norm_(2, gradients, limit, &norm));
    BASE_CHECK(fabs(nn_item(norm) - total) <= 1e-5 * total);
    for (int i = 0; i < 6; i++)
        wanted[i] = x[i] * fmin(1, limit / (total + 1e-6));
    for (int i = 0; i < 5; i++)
        other[i] = y[i] * fmin(1, limit / (total + 1e-6));
    check(drawn, gradients[0], wanted);
    check(drawn, gradients[1], other);
    tensor_release(&norm);
    free(x);
    free(y);
}

int main(int argc, char **argv) {
    static void (*const tests[])(const struct drawn *) = {
        linear_is_a_product_and_a_bias,
        functions_are_those_of_the_library,
        softmax_is_that_of_a_loop,
        norms_are_those_of_a_loop,
        norms_take_wide_weights,
        embedding_takes_rows,
        means_and_the_greatest_are_those_of_a_loop,
        conversions_pass_gradients,
        masks_choose,
        dropout_goes_by_seed_and_place,
        cross_entropy_is_that_of_a_loop,
        attention_is_that_of_a_loop,
        attention_sees_what_the_mask_shows,
        attention_broadcasts_keys,
        sgd_steps_by_its_formula,
        adamw_steps_by_its_formula,
        clipping_scales_all_to_the_norm,
    };
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    struct tensor_place places[NN_PLACES];
    printf("seed %llu, %d of each test\n", (unsigned long long)seed, count);
    for (int which = 0; which < NN_PLACES; which++)
        places[which] = nn_place(which);
    for (int i = 0; i < count; i++)
        for (size_t test = 0; test < sizeof tests / sizeof tests[0]; test++) {
            struct base_random random = base_random_init(seed + (uint64_t)i, "nn");
            const struct drawn drawn = {&places[i % NN_PLACES], &random, types[i / NN_PLACES % 4]};
            base_check_context("seed %llu, test %zu, place %d",
                               (unsigned long long)(seed + (uint64_t)i), test, i % NN_PLACES);
            tests[test](&drawn);
            BASE_CHECK_EQ(testing_live_blocks(drawn.place), 0);
        }
    for (int which = 0; which < NN_PLACES; which++)
        allocator_destroy(places[which].allocator);
    return 0;
}
