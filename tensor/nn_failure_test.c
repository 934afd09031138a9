// The operators of nn.h, and some of tensor.h, with every block that they ask for refused once:
// nothing is left, nothing has changed, and the sentence names the operator and its operands.
#include "tensor/nn_testing.h"

#include <stdio.h>

#define OPERANDS_MAX 4
#define WORKSPACE 4096

//------------------------------------------------------------------------------------------------
// An allocator before another one, which refuses a request

struct refusing {
    struct allocator allocator;
    struct allocator *inner;
    uint64_t refuse_at; // counts down; 0: none is refused
};

static struct allocator *inner_of(struct allocator *allocator) {
    return ((struct refusing *)allocator)->inner;
}

static enum base_status refusing_malloc(struct allocator *allocator, int device, size_t size,
                                        cudaStream_t stream, void **pointer) {
    struct refusing *refusing = (struct refusing *)allocator;
    if (size > 0 && refusing->refuse_at > 0 && --refusing->refuse_at == 0)
        return base_status_set(BASE_OUT_OF_MEMORY, "no memory for %zu bytes", size);
    return allocator_malloc(refusing->inner, device, size, stream, pointer);
}
static enum base_status refusing_free(struct allocator *allocator, void *pointer) {
    return allocator_free(inner_of(allocator), pointer);
}
static enum base_status refusing_stats(struct allocator *allocator, int device,
                                       struct allocator_stats *stats) {
    return allocator_stats(inner_of(allocator), device, stats);
}

static const struct allocator_operations refusing_operations = {
    .name = "refusing",
    .malloc = refusing_malloc,
    .free = refusing_free,
    .stats = refusing_stats,
};

static struct tensor_place refusing_place(int which, struct refusing *refusing) {
    struct tensor_place place = nn_place(which);
    *refusing = (struct refusing){.allocator = {.operations = &refusing_operations},
                                  .inner = place.allocator};
    place.allocator = &refusing->allocator;
    return place;
}

static void refuse_at(const struct tensor_place *place, uint64_t at) {
    ((struct refusing *)place->allocator)->refuse_at = at;
}

//------------------------------------------------------------------------------------------------
// The walk

struct example {
    const char *name; // as the sentence has it
    int count;
    int ranks[OPERANDS_MAX];
    int64_t sizes[OPERANDS_MAX][4];
    enum base_status (*run)(struct tensor *in, struct tensor integers, struct tensor *out);
    const char *shapes; // as the sentence has them
};

static enum base_status linear(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_linear(in[0], in[1], in[2], out);
}
static enum base_status linear_plain(struct tensor *in, struct tensor integers,
                                     struct tensor *out) {
    (void)integers;
    return tensor_linear(in[0], in[1], (struct tensor){0}, out);
}
static enum base_status gelu(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_gelu(in[0], out);
}
static enum base_status sigmoid(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_sigmoid(in[0], out);
}
static enum base_status softmax(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_softmax(in[0], -1, out);
}
static enum base_status layer_norm(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_layer_norm(in[0], (int64_t[]){2, 4}, 2, in[1], in[2], 1e-5, out);
}
static enum base_status rms_norm(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_rms_norm(in[0], (int64_t[]){4}, 1, in[1], 1e-5, out);
}
static enum base_status mean(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_mean(in[0], out);
}
static enum base_status embedding(struct tensor *in, struct tensor integers, struct tensor *out) {
    return tensor_embedding(in[0], integers, out);
}
static enum base_status cross_entropy(struct tensor *in, struct tensor integers,
                                      struct tensor *out) {
    return tensor_cross_entropy(in[0], integers, TENSOR_IGNORED, TENSOR_MEAN, out);
}
static enum base_status cross_entropy_rows(struct tensor *in, struct tensor integers,
                                           struct tensor *out) {
    return tensor_cross_entropy_rows(in[0], integers, TENSOR_IGNORED, out);
}
static enum base_status dropout(struct tensor *in, struct tensor integers, struct tensor *out) {
    struct tensor_generator generator = {3, 0};
    (void)integers;
    const enum base_status status = tensor_dropout(in[0], 0.5, &generator, out);
    BASE_CHECK_EQ(generator.offset, status == BASE_OK ? 24u : 0u);
    return status;
}
static enum base_status attend(struct tensor *in, enum tensor_attention_form form,
                               struct tensor *out) {
    struct tensor_generator generator = {3, 0};
    const enum base_status status = tensor_scaled_dot_product_attention(
        in[0], in[1], in[2],
        &(struct tensor_attention){
            .form = form, .is_causal = true, .probability = 0.5, .generator = &generator},
        out);
    BASE_CHECK_EQ(generator.offset, status == BASE_OK ? 20u : 0u); // of 18, by fours
    return status;
}
static enum base_status fused(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return attend(in, TENSOR_ATTENTION_FUSED, out);
}
static enum base_status math(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return attend(in, TENSOR_ATTENTION_MATH, out);
}

static enum base_status add(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_add(in[0], tensor_operand_tensor(in[1]), tensor_integer(2), out);
}
static enum base_status mm(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_mm(in[0], in[1], out);
}
static enum base_status sum(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_sum(in[0], out);
}
static enum base_status cat(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_cat(in, 2, 0, out);
}
static enum base_status chosen(struct tensor *in, struct tensor integers, struct tensor *out) {
    return tensor_index(in[0], integers, out);
}
static enum base_status clone(struct tensor *in, struct tensor integers, struct tensor *out) {
    (void)integers;
    return tensor_clone(in[0], TENSOR_PRESERVE, out);
}

static const struct example examples[] = {
    {"add", 2, {2, 1}, {{3, 4}, {4}}, add, "float32 [3, 4], float32 [4]"},
    {"mm", 2, {2, 2}, {{3, 4}, {4, 2}}, mm, "float32 [3, 4], float32 [4, 2]"},
    {"sum", 1, {2}, {{3, 4}}, sum, "float32 [3, 4]"},
    {"cat", 2, {2, 2}, {{3, 4}, {1, 4}}, cat, "float32 [3, 4], float32 [1, 4]"},
    {"index", 1, {2}, {{3, 4}}, chosen, "float32 [3, 4], int64 [4]"},
    {"clone", 1, {2}, {{3, 4}}, clone, "float32 [3, 4]"},
    {"linear",
     3,
     {3, 2, 1},
     {{2, 3, 4}, {5, 4}, {5}},
     linear,
     "float32 [2, 3, 4], float32 [5, 4], float32 [5]"},
    {"linear", 2, {3, 2}, {{2, 3, 4}, {5, 4}}, linear_plain, "float32 [2, 3, 4], float32 [5, 4]"},
    {"gelu", 1, {2}, {{3, 4}}, gelu, "float32 [3, 4]"},
    {"sigmoid", 1, {2}, {{3, 4}}, sigmoid, "float32 [3, 4]"},
    {"softmax", 1, {2}, {{3, 4}}, softmax, "float32 [3, 4]"},
    {"layer_norm",
     3,
     {3, 2, 2},
     {{2, 2, 4}, {2, 4}, {2, 4}},
     layer_norm,
     "float32 [2, 2, 4], float32 [2, 4], float32 [2, 4]"},
    {"rms_norm", 2, {2, 1}, {{3, 4}, {4}}, rms_norm, "float32 [3, 4], float32 [4]"},
    {"mean", 1, {2}, {{3, 4}}, mean, "float32 [3, 4]"},
    {"embedding", 1, {2}, {{5, 3}}, embedding, "float32 [5, 3], int64 [4]"},
    {"cross_entropy", 1, {2}, {{4, 3}}, cross_entropy, "float32 [4, 3]"},
    {"cross_entropy_rows", 1, {2}, {{4, 3}}, cross_entropy_rows, "float32 [4, 3], int64 [4]"},
    {"dropout", 1, {3}, {{2, 3, 4}}, dropout, "float32 [2, 3, 4]"},
    {"scaled_dot_product_attention",
     3,
     {4, 4, 4},
     {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}},
     fused,
     "float32 [1, 2, 3, 4], float32 [1, 2, 3, 4], float32 [1, 2, 3, 4]"},
    {"scaled_dot_product_attention",
     3,
     {4, 4, 4},
     {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}},
     math,
     "float32 [1, 2, 3, 4], float32 [1, 2, 3, 4], float32 [1, 2, 3, 4]"},
};

struct operands {
    int count;
    struct tensor all[OPERANDS_MAX], integers;
    double *numbers[OPERANDS_MAX];
};

static struct operands operands_make(const struct tensor_place *place,
                                     const struct example *example, enum nn_layout layout) {
    struct operands made = {.count = example->count};
    struct base_random random = base_random_init(1, "memory");
    for (int i = 0; i < made.count; i++) {
        double *numbers = nn_numbers(&random, nn_count(example->sizes[i], example->ranks[i]));
        made.all[i] =
            nn_tensor(place, TENSOR_FLOAT32, example->sizes[i], example->ranks[i], numbers, layout);
        free(numbers);
        made.numbers[i] = nn_read(made.all[i]);
        CHECK_OK(tensor_set_requires_grad(made.all[i], true));
    }
    CHECK_OK(
        tensor_from_bytes(place, TENSOR_INT64, SIZES(4), (int64_t[]){2, 0, 1, 2}, &made.integers));
    return made;
}

static void operands_are_unchanged(const struct operands *operands, const uint32_t *versions) {
    for (int i = 0; i < operands->count; i++) {
        double *now = nn_read(operands->all[i]);
        BASE_CHECK_EQ(
            memcmp(now, operands->numbers[i], (size_t)tensor_numel(operands->all[i]) * sizeof *now),
            0);
        BASE_CHECK_EQ(testing_version(operands->all[i]), versions[i]);
        free(now);
    }
}

static void operands_end(struct operands *operands) {
    for (int i = 0; i < operands->count; i++) {
        tensor_release(&operands->all[i]);
        free(operands->numbers[i]);
    }
    tensor_release(&operands->integers);
}

static void sentence_names(const struct example *example) {
    const char *text = base_status_message();
    if (strstr(text, example->name) == NULL || strstr(text, example->shapes) == NULL)
        fprintf(stderr, "\"%s\", \"%s\" are not in: %s\n", example->name, example->shapes, text);
    BASE_CHECK(strstr(text, example->name) != NULL);
    BASE_CHECK(strstr(text, example->shapes) != NULL);
}

// Forward with block FAIL_AT refused; then, if that went well, backward with the next one refused.
// True: nothing was refused.
static bool walk_step(const struct tensor_place *place, const struct example *example,
                      enum nn_layout layout, uint64_t fail_at, bool in_backward) {
    struct operands operands = operands_make(place, example, layout);
    uint32_t versions[OPERANDS_MAX];
    struct tensor out = {0}, ones = {0};
    const int64_t blocks = testing_live_blocks(place);
    for (int i = 0; i < operands.count; i++)
        versions[i] = testing_version(operands.all[i]);
    refuse_at(place, in_backward ? 0 : fail_at);
    enum base_status status = example->run(operands.all, operands.integers, &out);
    refuse_at(place, 0);
    if (status != BASE_OK) {
        BASE_CHECK_EQ(status, BASE_OUT_OF_MEMORY);
        sentence_names(example);
        BASE_CHECK_EQ(testing_live_blocks(place), blocks);
    } else if (in_backward) {
        CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, tensor_geometry(out)->sizes, tensor_rank(out),
                             &ones));
        refuse_at(place, fail_at);
        status = tensor_backward(out, ones, false);
        refuse_at(place, 0);
        BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    }
    operands_are_unchanged(&operands, versions);
    tensor_release(&out);
    tensor_release(&ones);
    operands_end(&operands);
    BASE_CHECK_EQ(testing_live_blocks(place), 0);
    return status == BASE_OK;
}

static void nothing_is_left_when_a_block_is_refused(int which) {
    struct refusing refusing;
    const struct tensor_place place = refusing_place(which, &refusing);
    int refused = 0;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        for (int layout = 0; layout < NN_LAYOUTS; layout++)
            for (int in_backward = 0; in_backward < 2; in_backward++) {
                uint64_t at = 1;
                do
                    base_check_context("%s on place %d, layout %d, block %llu of %s",
                                       examples[i].name, which, layout, (unsigned long long)at,
                                       in_backward ? "its gradient" : "it");
                while (!walk_step(&place, &examples[i], layout, at++, in_backward));
                BASE_CHECK(at > 2); // each takes something
                refused += (int)at - 2;
            }
    printf("place %d: %d refusals\n", which, refused);
    allocator_destroy(refusing.inner);
}

static void clipping_and_steps_leave_nothing(int which) {
    struct refusing refusing;
    const struct tensor_place place = refusing_place(which, &refusing);
    const struct tensor_adamw adamw = {
        .rate = 0.1, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 1e-3, .is_single = true};
    struct tensor parameter, gradient, mean, square;
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(2, 3), &parameter));
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(2, 3), &gradient));
    CHECK_OK(tensor_zeros(&place, TENSOR_FLOAT32, SIZES(2, 3), &mean));
    CHECK_OK(tensor_zeros(&place, TENSOR_FLOAT32, SIZES(2, 3), &square));
    const int64_t blocks = testing_live_blocks(&place);
    enum base_status status = BASE_OUT_OF_MEMORY;
    for (uint64_t fail_at = 1; status != BASE_OK; fail_at++) {
        refuse_at(&place, fail_at);
        status = tensor_adamw_step(&adamw, 1, 1, &parameter, &gradient, &mean, &square);
        if (status == BASE_OK)
            status = tensor_clip_grad_norm_(1, &gradient, 0.5, NULL);
        refuse_at(&place, 0);
        BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
        BASE_CHECK_EQ(testing_live_blocks(&place), blocks);
        if (fail_at <= 2) { // the two temporaries of the step: nothing was written
            BASE_CHECK_EQ(testing_version(parameter) + testing_version(mean), 0);
            BASE_CHECK(strstr(base_status_message(), "adamw(float32 [2, 3])") != NULL);
        }
        if (status != BASE_OK)
            BASE_CHECK_EQ(testing_version(gradient), 0);
    }
    tensor_release(&parameter);
    tensor_release(&gradient);
    tensor_release(&mean);
    tensor_release(&square);
    BASE_CHECK_EQ(testing_live_blocks(&place), 0);
    allocator_destroy(refusing.inner);
}

// A workspace that no device has room for: the result goes again.
static void a_workspace_that_is_refused_leaves_nothing(void) {
    struct tensor_place place = nn_place(1);
    struct tensor in, out;
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(4, 4), &in));
    tensor_set_workspaces((size_t)1 << 50, (size_t)1 << 50);
    BASE_CHECK_EQ(tensor_linear(in, in, (struct tensor){0}, &out), BASE_OUT_OF_MEMORY);
    BASE_CHECK(strstr(base_status_message(), "linear(float32 [4, 4], float32 [4, 4])") != NULL);
    BASE_CHECK_EQ(testing_live_blocks(&place), 1);
    tensor_set_workspaces(0, 0);
    tensor_release(&in);
    BASE_CHECK_EQ(testing_live_blocks(&place), 0);
    allocator_destroy(place.allocator);
}

int main(void) {
    tensor_set_workspaces(WORKSPACE, WORKSPACE);
    for (int which = 0; which < NN_PLACES; which++) {
        nothing_is_left_when_a_block_is_refused(which);
        clipping_and_steps_leave_nothing(which);
    }
    a_workspace_that_is_refused_leaves_nothing();
    return 0;
}
