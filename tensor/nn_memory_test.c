// The memory of the operators of nn.h: which blocks each takes, in their order, as PyTorch does.
#include "tensor/nn_testing.h"

#define TAKEN_MAX 32

struct taken {
    int count;
    size_t sizes[TAKEN_MAX];
};

static void on_event(void *context, const struct allocator_event *event) {
    struct taken *taken = context;
    if (event->action != ALLOCATOR_ALLOC)
        return;
    BASE_CHECK_LT(taken->count, TAKEN_MAX);
    taken->sizes[taken->count++] = event->size;
}

// Since the last look, exactly these many bytes, one block each.
static void taken_check(struct taken *taken, const char *what, const size_t *sizes, int count) {
    base_check_context("%s: %d blocks of %zu, %zu, %zu, %zu ... bytes", what, taken->count,
                       taken->sizes[0], taken->sizes[1], taken->sizes[2], taken->sizes[3]);
    BASE_CHECK_EQ(taken->count, count);
    for (int i = 0; i < count; i++)
        BASE_CHECK_EQ(taken->sizes[i], sizes[i]);
    memset(taken, 0, sizeof *taken);
}
#define TAKEN(what, ...)                                                                           \
    taken_check(taken, what, (const size_t[]){__VA_ARGS__},                                        \
                (int)(sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)))

static struct tensor leaf(const struct tensor_place *place, struct taken *taken,
                          const int64_t *sizes, int rank) {
    struct tensor self;
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, sizes, rank, &self));
    CHECK_OK(tensor_set_requires_grad(self, true));
    memset(taken, 0, sizeof *taken);
    return self;
}

// Gradients of ones, which are expanded and take one number.
static void backward(struct tensor out, struct taken *taken) {
    struct tensor one, ones;
    struct tensor_place place = tensor_place(out);
    const struct tensor_geometry *shape = tensor_geometry(out);
    CHECK_OK(tensor_ones(&place, tensor_type(out), NULL, 0, &one));
    CHECK_OK(tensor_expand(one, shape->sizes, shape->rank, &ones));
    memset(taken, 0, sizeof *taken);
    CHECK_OK(tensor_backward(out, ones, false));
    tensor_release(&one);
    tensor_release(&ones);
}

#define WORKSPACE 4096
#define BIASED_WORKSPACE 1024

static void linear_takes(const struct tensor_place *place, struct taken *taken) {
    struct tensor in = leaf(place, taken, SIZES(2, 3, 8)), out;
    struct tensor weight = leaf(place, taken, SIZES(5, 8)), bias = leaf(place, taken, SIZES(5));
    tensor_set_workspaces(WORKSPACE, BIASED_WORKSPACE);
    CHECK_OK(tensor_linear(in, weight, bias, &out));
    TAKEN("linear", 6 * 5 * 4, BIASED_WORKSPACE);
    backward(out, taken); // of input, weight, bias; none is copied
    tensor_set_workspaces(0, 0);
    BASE_CHECK_EQ(taken->count, 5);
    const size_t of_input[] = {6 * 8 * 4, WORKSPACE, 5 * 8 * 4, WORKSPACE, 5 * 4};
    BASE_CHECK_EQ(memcmp(taken->sizes, of_input, sizeof of_input), 0);
    tensor_release(&out);
    tensor_release(&in);
    tensor_release(&weight);
    tensor_release(&bias);
}

static void norm_takes(const struct tensor_place *place, struct taken *taken) {
    struct tensor in = leaf(place, taken, SIZES(6, 16)), out;
    struct tensor weight = leaf(place, taken, SIZES(16)), bias = leaf(place, taken, SIZES(16));
    CHECK_OK(tensor_layer_norm(in, (int64_t[]){16}, 1, weight, bias, 1e-5, &out));
    TAKEN("layer_norm", 6 * 16 * 4, 6 * 4, 6 * 4);
    backward(out, taken);
    TAKEN("layer_norm's gradient", 6 * 16 * 4, 16 * 4, 16 * 4);
    tensor_release(&out);
    tensor_release(&in);
    tensor_release(&weight);
    tensor_release(&bias);
}

static void functions_take(const struct tensor_place *place, struct taken *taken) {
    struct tensor_generator generator = {1, 0};
    struct tensor in = leaf(place, taken, SIZES(6, 16)), out;
    CHECK_OK(tensor_gelu(in, &out));
    TAKEN("gelu", 6 * 16 * 4);
    backward(out, taken);
    TAKEN("gelu's gradient", 6 * 16 * 4);
    tensor_release(&out);
    CHECK_OK(tensor_set_grad(in, (struct tensor){0}));
    CHECK_OK(tensor_softmax(in, -1, &out));
    backward(out, taken);
    TAKEN("softmax's gradient", 6 * 16 * 4);
    tensor_release(&out);
    CHECK_OK(tensor_set_grad(in, (struct tensor){0}));
    memset(taken, 0, sizeof *taken);
    CHECK_OK(tensor_dropout(in, 0.5, &generator, &out));
    TAKEN("dropout", 6 * 16, 6 * 16 * 4); // the mask, of bools, first
    backward(out, taken);
    TAKEN("dropout's gradient", 6 * 16 * 4);
    tensor_release(&out);
    CHECK_OK(tensor_dropout(in, 0, &generator, &out));
    BASE_CHECK(tensor_is_same(in, out) && taken->count == 0);
    tensor_release(&out);
    tensor_release(&in);
}

static void losses_take(const struct tensor_place *place, struct taken *taken) {
    struct tensor in = leaf(place, taken, SIZES(6, 16)), targets, out;
    CHECK_OK(tensor_zeros(place, TENSOR_INT64, SIZES(6), &targets));
    memset(taken, 0, sizeof *taken);
    CHECK_OK(tensor_cross_entropy(in, targets, TENSOR_IGNORED, TENSOR_MEAN, &out));
    TAKEN("cross_entropy", 6 * 16 * 4, 4, 4); // logarithms, loss, number of rows
    CHECK_OK(tensor_backward(out, (struct tensor){0}, false));
    TAKEN("cross_entropy's gradient", 4, 6 * 16 * 4, 6 * 16 * 4);
    tensor_release(&out);
    tensor_release(&targets);
    tensor_release(&in);
}

static void attention_takes(const struct tensor_place *place, struct taken *taken) {
    struct tensor in[3], out;
    for (int i = 0; i < 3; i++)
        in[i] = leaf(place, taken, SIZES(2, 3, 5, 4));
    CHECK_OK(tensor_scaled_dot_product_attention(in[0], in[1], in[2], NULL, &out));
    TAKEN("attention", 2 * 3 * 5 * 4 * 4, 2 * 3 * 5 * 4);
    backward(out, taken);
    // Gradients, and a number a query; then leaves in rows take theirs in rows, too.
    BASE_CHECK(taken->count >= 4);
    for (int i = 0; i < 3; i++)
        BASE_CHECK_EQ(taken->sizes[i], 2 * 3 * 5 * 4 * 4);
    BASE_CHECK_EQ(taken->sizes[3], 2 * 3 * 5 * 4);
    tensor_release(&out);
    for (int i = 0; i < 3; i++)
        tensor_release(&in[i]);
}

static void embedding_takes(const struct tensor_place *place, struct taken *taken) {
    struct tensor weight = leaf(place, taken, SIZES(7, 4)), indices, out;
    CHECK_OK(tensor_zeros(place, TENSOR_INT64, SIZES(2, 3), &indices));
    memset(taken, 0, sizeof *taken);
    CHECK_OK(tensor_embedding(weight, indices, &out));
    TAKEN("embedding", 6 * 4 * 4);
    backward(out, taken);
    TAKEN("embedding's gradient", 7 * 4 * 4);
    tensor_release(&out);
    tensor_release(&indices);
    tensor_release(&weight);
}

static void steps_take(const struct tensor_place *place, struct taken *taken) {
    struct tensor_adamw adamw = {.rate = 0.1, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 1e-3};
    struct tensor parameters[2], gradients[2], means[2], squares[2], norm;
    for (int i = 0; i < 2; i++) {
        parameters[i] = leaf(place, taken, SIZES(4, i + 2));
        CHECK_OK(tensor_zeros_like(parameters[i], TENSOR_PRESERVE, &gradients[i]));
        CHECK_OK(tensor_zeros_like(parameters[i], TENSOR_PRESERVE, &means[i]));
        CHECK_OK(tensor_zeros_like(parameters[i], TENSOR_PRESERVE, &squares[i]));
    }
    memset(taken, 0, sizeof *taken);
    CHECK_OK(tensor_adamw_step(&adamw, 1, 2, parameters, gradients, means, squares));
    BASE_CHECK_EQ(taken->count, 0);
    adamw.is_single = true;
    CHECK_OK(tensor_adamw_step(&adamw, 2, 2, parameters, gradients, means, squares));
    TAKEN("a step by operators", 32, 32, 48, 48);
    CHECK_OK(tensor_clip_grad_norm_(2, gradients, 1, &norm));
    BASE_CHECK_EQ(taken->sizes[1], 4); // a number for each, behind the partial sums
    BASE_CHECK_EQ(taken->sizes[2], 4);
    BASE_CHECK_EQ(taken->sizes[3], 8);
    tensor_release(&norm);
    for (int i = 0; i < 2; i++) {
        tensor_release(&parameters[i]);
        tensor_release(&gradients[i]);
        tensor_release(&means[i]);
        tensor_release(&squares[i]);
    }
}

static void operators_take_what_pytorch_takes(void) {
    static void (*const tests[])(const struct tensor_place *, struct taken *) = {
        linear_takes,    norm_takes,      functions_take, losses_take,
        attention_takes, embedding_takes, steps_take};
    struct tensor_place place = nn_place(1);
    struct taken taken = {0};
    CHECK_OK(allocator_set_observer(
        place.allocator, &(struct allocator_observer){.event = on_event, .context = &taken}));
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tests[i](&place, &taken);
        BASE_CHECK_EQ(testing_live_blocks(&place), 0);
    }
    allocator_destroy(place.allocator);
}

int main(void) {
    operators_take_what_pytorch_takes();
    return 0;
}
