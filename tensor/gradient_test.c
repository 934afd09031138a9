// Gradients of the operators of tensor.h and nn.h against differences, in float64: of every
// operand, of operands with gaps and turned round, on the CPU and the simulated device.
//
//     gradient_test [SEED]
#include "tensor/nn_testing.h"

#define OPERANDS_MAX 3
#define STEP 1e-6
#define TOLERANCE 1e-6

typedef struct tensor_place place;

// A function of operands of given shapes. Those without gradient (indices) are its own.
struct example {
    const char *name;
    int count;
    int ranks[OPERANDS_MAX];
    int64_t sizes[OPERANDS_MAX][4];
    void (*run)(const place *where, const struct tensor *in, struct tensor *out);
    bool is_positive;
};

// --- tensor.h ---

#define BINARY(name, call)                                                                         \
    static void name(const place *where, const struct tensor *in, struct tensor *out) {            \
        const struct tensor_operand_value other = tensor_operand_tensor(in[1]);                    \
        (void)where;                                                                               \
        CHECK_OK(call);                                                                            \
    }
BINARY(add, tensor_add(in[0], other, tensor_floating(-1.5), out))
BINARY(sub, tensor_sub(in[0], other, tensor_integer(2), out))
BINARY(mul, tensor_mul(in[0], other, out))
BINARY(divide, tensor_div(in[0], other, out))
BINARY(mm, tensor_mm(in[0], other.tensor, out))
BINARY(bmm, tensor_bmm(in[0], other.tensor, out))
BINARY(matmul, tensor_matmul(in[0], other.tensor, out))
BINARY(cat, tensor_cat((struct tensor[]){in[0], other.tensor, in[0]}, 3, 1, out))
BINARY(stack, tensor_stack((struct tensor[]){in[0], other.tensor}, 2, -1, out))

static void sum_dims(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_sum_dims(in[0], (int64_t[]){0, -1}, 2, true, out));
}
static void slice(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor part;
    (void)where;
    CHECK_OK(tensor_slice(in[0], 1, 1, INT64_MAX, 2, &part));
    CHECK_OK(tensor_mul(part, tensor_operand_tensor(part), out));
    tensor_release(&part);
}
static void expand(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor wide;
    (void)where;
    CHECK_OK(tensor_expand(in[0], SIZES(2, 3, 4), &wide));
    CHECK_OK(tensor_clone(wide, TENSOR_CONTIGUOUS, out));
    tensor_release(&wide);
}
static void permute(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor turned;
    (void)where;
    CHECK_OK(tensor_permute(in[0], (int64_t[]){2, 0, 1}, 3, &turned));
    CHECK_OK(tensor_reshape(turned, SIZES(4, 6), out));
    tensor_release(&turned);
}
static void windows(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor seen;
    (void)where;
    CHECK_OK(tensor_unfold(in[0], 1, 3, 1, &seen)); // which lie over each other
    CHECK_OK(tensor_mul(seen, tensor_operand_tensor(seen), out));
    tensor_release(&seen);
}

static struct tensor integers(const place *where, const int64_t *values, const int64_t *sizes,
                              int rank) {
    struct tensor result;
    CHECK_OK(tensor_from_bytes(where, TENSOR_INT64, sizes, rank, values, &result));
    return result;
}

static void chosen(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor indices = integers(where, (int64_t[]){3, 0, 3}, SIZES(3));
    CHECK_OK(tensor_index(in[0], indices, out));
    tensor_release(&indices);
}
// Into a tensor that is a result itself; and into a view of it.
static void written(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor row;
    (void)where;
    CHECK_OK(tensor_mul(in[0], tensor_operand_integer(2), out));
    CHECK_OK(tensor_mul_(*out, tensor_operand_tensor(in[0])));
    CHECK_OK(tensor_select(*out, 0, 1, &row));
    CHECK_OK(tensor_add_(row, tensor_operand_tensor(in[1]), tensor_integer(3)));
    tensor_release(&row);
}

// --- nn.h ---

static void linear(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_linear(in[0], in[1], in[2], out));
}
static void linear_plain(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_linear(in[0], in[1], (struct tensor){0}, out));
}
static void addmm(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_addmm(in[0], in[1], in[2], out));
}

#define UNARY(name, function)                                                                      \
    static void name(const place *where, const struct tensor *in, struct tensor *out) {            \
        (void)where;                                                                               \
        CHECK_OK(function(in[0], out));                                                            \
    }
UNARY(negative, tensor_neg)
UNARY(rectified, tensor_relu)
UNARY(root, tensor_sqrt)
UNARY(sum, tensor_sum)
UNARY(gelu, tensor_gelu)
UNARY(gelu_tanh, tensor_gelu_tanh)
UNARY(silu, tensor_silu)
UNARY(sigmoid, tensor_sigmoid)
UNARY(hyperbolic, tensor_tanh)
UNARY(exponential, tensor_exp)
UNARY(logarithm, tensor_log)
UNARY(mean, tensor_mean)

static void softmax(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_softmax(in[0], -1, out));
}
static void softmax_across(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_softmax(in[0], 1, out));
}
static void log_softmax(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_log_softmax(in[0], -1, out));
}
static void layer_norm(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_layer_norm(in[0], (int64_t[]){5}, 1, in[1], in[2], 0.1, out));
}
static void layer_norm_of_matrices(const place *where, const struct tensor *in,
                                   struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_layer_norm(in[0], (int64_t[]){3, 4}, 2, in[1], in[2], 0.1, out));
}
static void layer_norm_plain(const place *where, const struct tensor *in, struct tensor *out) {
    const struct tensor none = {0};
    (void)where;
    CHECK_OK(tensor_layer_norm(in[0], (int64_t[]){5}, 1, none, none, 0.1, out));
}
static void rms_norm(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_rms_norm(in[0], (int64_t[]){5}, 1, in[1], 0.1, out));
}
static void mean_of_rows(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    CHECK_OK(tensor_mean_dims(in[0], (int64_t[]){-1, 0}, 2, false, out));
}

static void embedding(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor indices = integers(where, (int64_t[]){3, 0, 3, 1, 3, 0}, SIZES(2, 3));
    CHECK_OK(tensor_embedding(in[0], indices, out));
    tensor_release(&indices);
}
static void cross_entropy_by(const place *where, const struct tensor *in, struct tensor *out,
                             enum tensor_reduction reduction) {
    struct tensor targets = integers(where, (int64_t[]){3, 1, 0, 3}, SIZES(4));
    CHECK_OK(tensor_cross_entropy(in[0], targets, 1, reduction, out)); // one row is ignored
    tensor_release(&targets);
}
static void cross_entropy(const place *where, const struct tensor *in, struct tensor *out) {
    cross_entropy_by(where, in, out, TENSOR_MEAN);
}
static void cross_entropy_sum(const place *where, const struct tensor *in, struct tensor *out) {
    cross_entropy_by(where, in, out, TENSOR_SUM);
}
static void cross_entropy_rows(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor targets = integers(where, (int64_t[]){3, 1, 0, 3}, SIZES(4));
    CHECK_OK(tensor_cross_entropy_rows(in[0], targets, 1, out));
    tensor_release(&targets);
}
static void cross_entropy_of_rows(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor losses;
    cross_entropy_rows(where, in, &losses);
    CHECK_OK(tensor_sum(losses, out)); // its gradient is one number for all rows
    tensor_release(&losses);
}
static void cross_entropy_of_one(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor target = integers(where, (int64_t[]){2}, NULL, 0);
    CHECK_OK(tensor_cross_entropy(in[0], target, TENSOR_IGNORED, TENSOR_MEAN, out));
    tensor_release(&target);
}

static void dropout(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor_generator generator = {7, 8};
    (void)where;
    CHECK_OK(tensor_dropout(in[0], 0.25, &generator, out));
}
static struct tensor mask_of(const place *where, const bool *values, const int64_t *sizes,
                             int rank) {
    struct tensor mask;
    CHECK_OK(tensor_from_bytes(where, TENSOR_BOOL, sizes, rank, values, &mask));
    return mask;
}
static void masked_fill(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor mask = mask_of(where, (bool[]){true, false, false, true}, SIZES(4));
    CHECK_OK(tensor_masked_fill(in[0], mask, tensor_floating(7), out));
    tensor_release(&mask);
}

static void attend(const struct tensor *in, struct tensor_attention options, struct tensor *out) {
    struct tensor_generator generator = {9, 12};
    options.generator = &generator;
    CHECK_OK(tensor_scaled_dot_product_attention(in[0], in[1], in[2], &options, out));
}
static void fused(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    attend(in, (struct tensor_attention){.form = TENSOR_ATTENTION_FUSED}, out);
}
static void fused_causal(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    attend(in,
           (struct tensor_attention){.form = TENSOR_ATTENTION_FUSED, .is_causal = true, .shift = 1},
           out);
}
static void fused_dropping(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    attend(in,
           (struct tensor_attention){
               .form = TENSOR_ATTENTION_FUSED, .is_causal = true, .scale = 0.7, .probability = 0.3},
           out);
}
static void math_causal(const place *where, const struct tensor *in, struct tensor *out) {
    (void)where;
    attend(in,
           (struct tensor_attention){
               .form = TENSOR_ATTENTION_MATH, .is_causal = true, .probability = 0.3},
           out);
}
static void math_masked(const place *where, const struct tensor *in, struct tensor *out) {
    struct tensor mask = mask_of(
        where, (bool[]){true, false, true, true, true, true, false, true, false, true, true, true},
        SIZES(3, 4));
    attend(in, (struct tensor_attention){.mask = mask}, out);
    tensor_release(&mask);
}

static const struct example examples[] = {
    {"add", 2, {3, 2}, {{2, 3, 4}, {3, 1}}, add, false},
    {"sub", 2, {2, 3}, {{3, 4}, {2, 1, 4}}, sub, false},
    {"mul", 2, {3, 1}, {{2, 3, 4}, {4}}, mul, false},
    {"div", 2, {3, 2}, {{2, 3, 4}, {3, 1}}, divide, true},
    {"neg", 1, {2}, {{3, 4}}, negative, false},
    {"relu", 1, {2}, {{3, 4}}, rectified, false},
    {"sqrt", 1, {2}, {{3, 4}}, root, true},
    {"sum", 1, {2}, {{3, 4}}, sum, false},
    {"sum over dimensions", 1, {3}, {{2, 3, 4}}, sum_dims, false},
    {"mm", 2, {2, 2}, {{3, 4}, {4, 2}}, mm, false},
    {"bmm", 2, {3, 3}, {{2, 3, 4}, {2, 4, 2}}, bmm, false},
    {"matmul of vectors", 2, {1, 1}, {{4}, {4}}, matmul, false},
    {"matmul of a vector", 2, {1, 3}, {{4}, {2, 4, 3}}, matmul, false},
    {"matmul of batches", 2, {4, 3}, {{2, 1, 3, 4}, {3, 4, 2}}, matmul, false},
    {"cat", 2, {2, 2}, {{3, 2}, {3, 4}}, cat, false},
    {"stack", 2, {2, 2}, {{3, 2}, {3, 2}}, stack, false},
    {"slice", 1, {2}, {{3, 5}}, slice, false},
    {"expand", 1, {2}, {{3, 1}}, expand, false},
    {"permute and reshape", 1, {3}, {{2, 3, 4}}, permute, false},
    {"unfold", 1, {2}, {{2, 5}}, windows, false},
    {"index", 1, {2}, {{4, 3}}, chosen, false},
    {"writes in place", 2, {2, 1}, {{3, 4}, {4}}, written, false},
    {"linear", 3, {3, 2, 1}, {{2, 3, 4}, {5, 4}, {5}}, linear, false},
    {"linear without bias", 2, {3, 2}, {{2, 3, 4}, {5, 4}}, linear_plain, false},
    {"linear of one row", 3, {1, 2, 1}, {{4}, {5, 4}, {5}}, linear, false},
    {"addmm", 3, {1, 2, 2}, {{4}, {2, 3}, {3, 4}}, addmm, false},
    {"addmm, one bias", 3, {1, 2, 2}, {{1}, {2, 3}, {3, 4}}, addmm, false},
    {"gelu", 1, {2}, {{3, 4}}, gelu, false},
    {"gelu by tanh", 1, {2}, {{3, 4}}, gelu_tanh, false},
    {"silu", 1, {2}, {{3, 4}}, silu, false},
    {"sigmoid", 1, {2}, {{3, 4}}, sigmoid, false},
    {"tanh", 1, {2}, {{3, 4}}, hyperbolic, false},
    {"exp", 1, {2}, {{3, 4}}, exponential, false},
    {"log", 1, {2}, {{3, 4}}, logarithm, true},
    {"mean", 1, {2}, {{3, 4}}, mean, false},
    {"mean over dimensions", 1, {3}, {{2, 3, 4}}, mean_of_rows, false},
    {"softmax", 1, {2}, {{3, 4}}, softmax, false},
    {"softmax of a vector", 1, {1}, {{4}}, softmax, false},
    {"softmax across", 1, {3}, {{2, 3, 4}}, softmax_across, false},
    {"log_softmax", 1, {2}, {{3, 4}}, log_softmax, false},
    {"layer_norm", 3, {3, 1, 1}, {{2, 3, 5}, {5}, {5}}, layer_norm, false},
    {"layer_norm of matrices",
     3,
     {3, 2, 2},
     {{2, 3, 4}, {3, 4}, {3, 4}},
     layer_norm_of_matrices,
     false},
    {"layer_norm without weight", 1, {2}, {{3, 5}}, layer_norm_plain, false},
    {"rms_norm", 2, {3, 1}, {{2, 3, 5}, {5}}, rms_norm, false},
    {"embedding", 1, {2}, {{4, 3}}, embedding, false},
    {"cross_entropy", 1, {2}, {{4, 5}}, cross_entropy, false},
    {"cross_entropy, sum", 1, {2}, {{4, 5}}, cross_entropy_sum, false},
    {"cross_entropy of one row", 1, {1}, {{5}}, cross_entropy_of_one, false},
    {"cross_entropy_rows", 1, {2}, {{4, 5}}, cross_entropy_rows, false},
    {"the sum of cross_entropy_rows", 1, {2}, {{4, 5}}, cross_entropy_of_rows, false},
    {"dropout", 1, {3}, {{2, 3, 4}}, dropout, false},
    {"masked_fill", 1, {3}, {{2, 3, 4}}, masked_fill, false},
    {"masked_fill of a column", 1, {2}, {{3, 1}}, masked_fill, false},
    {"fused attention", 3, {4, 4, 4}, {{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 2}}, fused, false},
    {"fused attention of rank 2", 3, {2, 2, 2}, {{3, 4}, {5, 4}, {5, 2}}, fused, false},
    {"fused causal attention",
     3,
     {3, 3, 3},
     {{2, 4, 3}, {2, 5, 3}, {2, 5, 2}},
     fused_causal,
     false},
    {"fused attention, dropout",
     3,
     {4, 4, 4},
     {{1, 2, 4, 2}, {1, 2, 4, 2}, {1, 2, 4, 2}},
     fused_dropping,
     false},
    {"attention by operators",
     3,
     {4, 4, 4},
     {{2, 2, 4, 3}, {2, 2, 4, 3}, {2, 2, 4, 2}},
     math_causal,
     false},
    {"masked attention", 3, {3, 3, 3}, {{2, 3, 2}, {2, 4, 2}, {2, 4, 3}}, math_masked, false},
};

// The operands of an example as numbers.
struct numbers {
    double *all[OPERANDS_MAX];
};

// The sum of weights times the result. GRADIENTS (may be NULL): of each operand.
static double evaluate(const struct example *example, const place *where,
                       const struct numbers *numbers, const double *weights, enum nn_layout layout,
                       double *gradients[OPERANDS_MAX]) {
    struct tensor in[OPERANDS_MAX] = {{0}}, out, weight, product, sum;
    for (int i = 0; i < example->count; i++) {
        in[i] = nn_tensor(where, TENSOR_FLOAT64, example->sizes[i], example->ranks[i],
                          numbers->all[i], layout);
        if (gradients != NULL) CHECK_OK(tensor_set_requires_grad(in[i], true));
    }
    example->run(where, in, &out);
    const struct tensor_geometry *shape = tensor_geometry(out);
    CHECK_OK(tensor_from_bytes(where, TENSOR_FLOAT64, shape->sizes, shape->rank, weights, &weight));
    CHECK_OK(tensor_mul(out, tensor_operand_tensor(weight), &product));
    CHECK_OK(tensor_sum(product, &sum));
    const double value = nn_item(sum);
    if (gradients != NULL) CHECK_OK(tensor_backward(sum, (struct tensor){0}, false));
    for (int i = 0; i < example->count; i++) {
        if (gradients != NULL) {
            BASE_CHECK(tensor_grad(in[i]).impl != NULL);
            gradients[i] = nn_read(tensor_grad(in[i]));
        }
        tensor_release(&in[i]);
    }
    tensor_release(&out);
    tensor_release(&weight);
    tensor_release(&product);
    tensor_release(&sum);
    return value;
}

static void gradients_are_those_of_differences(const struct example *example, const place *where,
                                               enum nn_layout layout, struct base_random *random) {
    struct numbers numbers;
    double *weights = nn_numbers(random, 256), *gradients[OPERANDS_MAX];
    for (int i = 0; i < example->count; i++) {
        const int64_t count = nn_count(example->sizes[i], example->ranks[i]);
        numbers.all[i] = nn_numbers(random, count);
        for (int64_t j = 0; j < count && example->is_positive; j++)
            numbers.all[i][j] = 1.5 + numbers.all[i][j];
    }
    (void)evaluate(example, where, &numbers, weights, layout, gradients);
    for (int i = 0; i < example->count; i++) {
        const int64_t count = nn_count(example->sizes[i], example->ranks[i]);
        for (int64_t j = 0; j < count; j++) {
            const double kept = numbers.all[i][j];
            numbers.all[i][j] = kept + STEP;
            const double above = evaluate(example, where, &numbers, weights, layout, NULL);
            numbers.all[i][j] = kept - STEP;
            const double below = evaluate(example, where, &numbers, weights, layout, NULL);
            numbers.all[i][j] = kept;
            const double slope = (above - below) / (2 * STEP);
            base_check_context("%s, operand %d, element %lld: %.9g, by differences %.9g",
                               example->name, i, (long long)j, gradients[i][j], slope);
            BASE_CHECK(fabs(gradients[i][j] - slope) <= TOLERANCE * (1 + fabs(slope)));
        }
    }
    for (int i = 0; i < example->count; i++) {
        free(numbers.all[i]);
        free(gradients[i]);
    }
    free(weights);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int which = 0; which < NN_PLACES; which++) {
        place where = nn_place(which);
        for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
            for (int layout = 0; layout < NN_LAYOUTS; layout++) {
                struct base_random random = base_random_init(seed + i, "gradients");
                base_check_context("%s on place %d, layout %d", examples[i].name, which, layout);
                gradients_are_those_of_differences(&examples[i], &where, layout, &random);
                BASE_CHECK_EQ(testing_live_blocks(&where), 0);
            }
        allocator_destroy(where.allocator);
    }
    return 0;
}
