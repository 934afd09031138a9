// A net of two layers, and a small transformer, learn: their loss falls under SGD and AdamW, alike
// on the CPU and the simulated device, on any stream, and with a step captured into a graph.
#include "allocator/captures.h"
#include "allocator/pools.h"
#include "tensor/nn_testing.h"

#define CHECK_CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

#define ROWS 16
#define IN 6
#define HIDDEN 12
#define CLASSES 4

enum optimizer { SGD, ADAMW, ADAMW_SINGLE, OPTIMIZERS };

static struct tensor parameter(const struct tensor_place *place, struct base_random *random,
                               const int64_t *sizes, int rank, double scale) {
    const int64_t count = nn_count(sizes, rank);
    double *numbers = nn_numbers(random, count);
    for (int64_t i = 0; i < count; i++)
        numbers[i] *= scale;
    struct tensor self = nn_tensor(place, TENSOR_FLOAT32, sizes, rank, numbers, NN_ROWS);
    free(numbers);
    CHECK_OK(tensor_set_requires_grad(self, true));
    return self;
}

#define PARAMETERS_MAX 16
struct model {
    int count;
    struct tensor parameters[PARAMETERS_MAX], means[PARAMETERS_MAX], squares[PARAMETERS_MAX];
};

static void model_add(struct model *model, struct tensor self) {
    BASE_CHECK_LT(model->count, PARAMETERS_MAX);
    const int at = model->count++;
    model->parameters[at] = self;
    CHECK_OK(tensor_zeros_like(self, TENSOR_PRESERVE, &model->means[at]));
    CHECK_OK(tensor_zeros_like(self, TENSOR_PRESERVE, &model->squares[at]));
}

static void model_end(struct model *model) {
    for (int i = 0; i < model->count; i++) {
        tensor_release(&model->parameters[i]);
        tensor_release(&model->means[i]);
        tensor_release(&model->squares[i]);
    }
}

static void model_step(struct model *model, enum optimizer optimizer, int64_t step) {
    struct tensor gradients[PARAMETERS_MAX];
    for (int i = 0; i < model->count; i++)
        gradients[i] = tensor_grad(model->parameters[i]);
    if (optimizer == SGD)
        CHECK_OK(tensor_sgd_step(&(struct tensor_sgd){.rate = 0.2, .momentum = 0.5}, model->count,
                                 model->parameters, gradients, model->means));
    else
        CHECK_OK(tensor_adamw_step(&(struct tensor_adamw){.rate = 0.02,
                                                          .beta1 = 0.9,
                                                          .beta2 = 0.99,
                                                          .epsilon = 1e-8,
                                                          .decay = 0.01,
                                                          .is_single = optimizer == ADAMW_SINGLE},
                                   step, model->count, model->parameters, gradients, model->means,
                                   model->squares));
    for (int i = 0; i < model->count; i++)
        CHECK_OK(tensor_set_grad(model->parameters[i], (struct tensor){0}));
}

// Moves *self on to NEXT.
static void move(struct tensor *self, struct tensor next) {
    tensor_release(self);
    *self = next;
}

static struct tensor two_layers(const struct model *model, struct tensor in) {
    struct tensor x, next;
    CHECK_OK(tensor_linear(in, model->parameters[0], model->parameters[1], &x));
    CHECK_OK(tensor_gelu(x, &next));
    move(&x, next);
    CHECK_OK(tensor_linear(x, model->parameters[2], model->parameters[3], &next));
    move(&x, next);
    return x;
}

#define STEPS 60

struct net {
    struct model model;
    struct tensor in, targets;
};

static struct net net_make(const struct tensor_place *place) {
    struct base_random random = base_random_init(3, "net");
    struct net net = {.model = {.count = 0}};
    model_add(&net.model, parameter(place, &random, SIZES(HIDDEN, IN), 0.5));
    model_add(&net.model, parameter(place, &random, SIZES(HIDDEN), 0.1));
    model_add(&net.model, parameter(place, &random, SIZES(CLASSES, HIDDEN), 0.5));
    model_add(&net.model, parameter(place, &random, SIZES(CLASSES), 0.1));
    double *numbers = nn_numbers(&random, ROWS * IN);
    net.in = nn_tensor(place, TENSOR_FLOAT32, SIZES(ROWS, IN), numbers, NN_ROWS);
    int64_t classes[ROWS];
    for (int i = 0; i < ROWS; i++) // which of the first numbers is the greatest: to be learnt
        for (int64_t c = classes[i] = 0; c < CLASSES; c++)
            if (numbers[i * IN + c] > numbers[i * IN + classes[i]])
                classes[i] = c;
    CHECK_OK(tensor_from_bytes(place, TENSOR_INT64, SIZES(ROWS), classes, &net.targets));
    free(numbers);
    return net;
}

static void net_end(struct net *net) {
    tensor_release(&net->in);
    tensor_release(&net->targets);
    model_end(&net->model);
}

// The loss, and a step that makes it smaller.
static struct tensor net_step(struct net *net, enum optimizer optimizer, int64_t step) {
    struct tensor logits = two_layers(&net->model, net->in), loss;
    CHECK_OK(tensor_cross_entropy(logits, net->targets, TENSOR_IGNORED, TENSOR_MEAN, &loss));
    tensor_release(&logits);
    CHECK_OK(tensor_backward(loss, (struct tensor){0}, false));
    model_step(&net->model, optimizer, step);
    return loss;
}

static void a_net_learns(const struct tensor_place *place, enum optimizer optimizer,
                         double losses[STEPS]) {
    struct net net = net_make(place);
    for (int step = 0; step < STEPS; step++) {
        struct tensor loss = net_step(&net, optimizer, step + 1);
        losses[step] = nn_item(loss);
        tensor_release(&loss);
    }
    base_check_context("optimiser %d: loss from %g to %g", optimizer, losses[0], losses[STEPS - 1]);
    BASE_CHECK(losses[STEPS - 1] < losses[0] / 3);
    net_end(&net);
    BASE_CHECK_EQ(testing_live_blocks(place), 0);
}

// One step is captured, with its memory in a pool of the graph, and launched for all but the first.
static void a_captured_step_learns_alike(const double losses[STEPS]) {
    const struct allocator_pool_id pool = {.capture = 1};
    struct tensor_place place = nn_place(1);
    struct net net = net_make(&place);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    enum cudaStreamCaptureStatus status;
    unsigned long long number;
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    tensor_set_stream(0, stream);
    struct tensor loss = net_step(&net, SGD, 1);
    tensor_release(&loss);
    CHECK_OK(cca_pool_begin(place.allocator, 0, pool, NULL));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &number, NULL, NULL, NULL, NULL));
    CHECK_OK(cca_capture_begin(place.allocator, 0,
                               &(struct cca_capture){.id = number, .stream = stream}));
    loss = net_step(&net, SGD, 2);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_OK(cca_capture_end(place.allocator, 0, number));
    CHECK_OK(cca_pool_end(place.allocator, 0, pool));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int step = 1; step < STEPS; step++) {
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        base_check_context("step %d", step);
        BASE_CHECK(nn_item(loss) == losses[step]); // to the bit
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    tensor_release(&loss);
    net_end(&net);
    CHECK_OK(cca_pool_release(place.allocator, 0, pool));
    BASE_CHECK_EQ(testing_live_blocks(&place), 0);
    tensor_set_stream(0, NULL);
    allocator_destroy(place.allocator);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

// One block of a transformer over two sequences, which it learns by heart.
#define WIDTH 16
#define HEADS 2
#define LENGTH 8
#define BATCH 2
#define WORDS 11

static struct tensor heads_of(struct tensor qkv, int64_t which) {
    struct tensor part, shaped, turned;
    CHECK_OK(tensor_narrow(qkv, -1, which * WIDTH, WIDTH, &part));
    CHECK_OK(tensor_view(part, SIZES(BATCH, LENGTH, HEADS, WIDTH / HEADS), &shaped));
    CHECK_OK(tensor_transpose(shaped, 1, 2, &turned));
    tensor_release(&part);
    tensor_release(&shaped);
    return turned;
}

static struct tensor attend(struct tensor normed, const struct tensor *parameters,
                            struct tensor_generator *generator) {
    struct tensor qkv, out, turned, joined, result;
    CHECK_OK(tensor_linear(normed, parameters[0], parameters[1], &qkv));
    struct tensor query = heads_of(qkv, 0), key = heads_of(qkv, 1), value = heads_of(qkv, 2);
    CHECK_OK(tensor_scaled_dot_product_attention(
        query, key, value,
        &(struct tensor_attention){.is_causal = true, .probability = 0.1, .generator = generator},
        &out));
    CHECK_OK(tensor_transpose(out, 1, 2, &turned));
    CHECK_OK(tensor_view(turned, SIZES(BATCH, LENGTH, WIDTH), &joined)); // without a copy
    CHECK_OK(tensor_linear(joined, parameters[2], parameters[3], &result));
    struct tensor *const all[] = {&qkv, &query, &key, &value, &out, &turned, &joined};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tensor_release(all[i]);
    return result;
}

// Parameters: 0 words, 1 places, 2 and 3 norm, 4 to 7 attention, 8 and 9 norm, 10 to 13 layers.
static struct tensor transformer(const struct model *model, struct tensor words,
                                 struct tensor places, struct tensor_generator *generator) {
    const struct tensor *p = model->parameters;
    struct tensor x, y, next;
    CHECK_OK(tensor_embedding(p[0], words, &x));
    CHECK_OK(tensor_embedding(p[1], places, &y));
    CHECK_OK(tensor_add(x, tensor_operand_tensor(y), tensor_integer(1), &next));
    move(&x, next);
    CHECK_OK(tensor_layer_norm(x, (int64_t[]){WIDTH}, 1, p[2], p[3], 1e-5, &next));
    move(&y, next);
    move(&y, attend(y, p + 4, generator));
    CHECK_OK(tensor_dropout(y, 0.1, generator, &next));
    move(&y, next);
    CHECK_OK(tensor_add(x, tensor_operand_tensor(y), tensor_integer(1), &next));
    move(&x, next);
    CHECK_OK(tensor_layer_norm(x, (int64_t[]){WIDTH}, 1, p[8], p[9], 1e-5, &next));
    move(&y, next);
    CHECK_OK(tensor_linear(y, p[10], p[11], &next));
    move(&y, next);
    CHECK_OK(tensor_gelu_tanh(y, &next));
    move(&y, next);
    CHECK_OK(tensor_linear(y, p[12], p[13], &next));
    move(&y, next);
    CHECK_OK(tensor_add(x, tensor_operand_tensor(y), tensor_integer(1), &next));
    move(&x, next);
    CHECK_OK(tensor_linear(x, p[0], (struct tensor){0}, &next)); // the words' own rows
    move(&x, next);
    tensor_release(&y);
    return x;
}

static void transformer_make(const struct tensor_place *place, struct model *model) {
    struct base_random random = base_random_init(4, "transformer");
    const int64_t shapes[][2] = {
        {WORDS, WIDTH},     {LENGTH, WIDTH}, {0, WIDTH},         {0, WIDTH}, {3 * WIDTH, WIDTH},
        {0, 3 * WIDTH},     {WIDTH, WIDTH},  {0, WIDTH},         {0, WIDTH}, {0, WIDTH},
        {4 * WIDTH, WIDTH}, {0, 4 * WIDTH},  {WIDTH, 4 * WIDTH}, {0, WIDTH}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const bool is_vector = shapes[i][0] == 0;
        struct tensor self = parameter(place, &random, shapes[i] + is_vector, is_vector ? 1 : 2,
                                       is_vector ? 0 : 0.3);
        if (i == 2 || i == 8) { // weights of norms
            tensor_set_grad_mode(false);
            CHECK_OK(tensor_fill_(self, tensor_operand_integer(1)));
            tensor_set_grad_mode(true);
        }
        model_add(model, self);
    }
}

static void a_transformer_learns_by_heart(const struct tensor_place *place, double losses[STEPS]) {
    static const int64_t text[BATCH][LENGTH + 1] = {{1, 2, 3, 1, 4, 5, 1, 6, 7},
                                                    {8, 2, 9, 8, 4, 10, 8, 6, 0}};
    struct model model = {.count = 0};
    struct tensor_generator generator = {5, 0};
    struct tensor all, words, next, targets, flat, places;
    transformer_make(place, &model);
    CHECK_OK(tensor_from_bytes(place, TENSOR_INT64, SIZES(BATCH, LENGTH + 1), text, &all));
    CHECK_OK(tensor_narrow(all, 1, 0, LENGTH, &words)); // with gaps
    CHECK_OK(tensor_narrow(all, 1, 1, LENGTH, &next));
    CHECK_OK(tensor_reshape(next, SIZES(BATCH * LENGTH), &targets));
    CHECK_OK(tensor_from_bytes(place, TENSOR_INT64, SIZES(LENGTH),
                               (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7}, &places));
    for (int step = 0; step < STEPS; step++) {
        struct tensor logits = transformer(&model, words, places, &generator), loss;
        CHECK_OK(tensor_view(logits, SIZES(BATCH * LENGTH, WORDS), &flat));
        tensor_release(&logits);
        CHECK_OK(tensor_cross_entropy(flat, targets, TENSOR_IGNORED, TENSOR_MEAN, &loss));
        tensor_release(&flat);
        losses[step] = nn_item(loss);
        CHECK_OK(tensor_backward(loss, (struct tensor){0}, false));
        tensor_release(&loss);
        model_step(&model, ADAMW, step + 1);
    }
    base_check_context("loss from %g to %g", losses[0], losses[STEPS - 1]);
    BASE_CHECK(losses[STEPS - 1] < losses[0] / 5);
    BASE_CHECK(generator.offset > 0);
    struct tensor *const tensors[] = {&all, &words, &next, &targets, &places};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        tensor_release(tensors[i]);
    model_end(&model);
    BASE_CHECK_EQ(testing_live_blocks(place), 0);
}

// Chance, too, is the same on both.
static void losses_agree(const double a[STEPS], const double b[STEPS], double tolerance) {
    for (int step = 0; step < STEPS; step++) {
        base_check_context("step %d: %.9g and %.9g", step, a[step], b[step]);
        BASE_CHECK(fabs(a[step] - b[step]) <= tolerance * (1 + a[step]));
    }
}

// On a stream that nothing orders with the default one.
static void a_stream_of_its_own_does(const double losses[STEPS]) {
    struct tensor_place place = nn_place(1);
    double again[STEPS];
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    tensor_set_stream(0, stream);
    a_transformer_learns_by_heart(&place, again);
    tensor_set_stream(0, NULL);
    BASE_CHECK_EQ(memcmp(losses, again, sizeof again), 0); // to the bit
    allocator_destroy(place.allocator);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

int main(void) {
    static double losses[NN_PLACES][OPTIMIZERS][STEPS], of_transformer[NN_PLACES][STEPS];
    for (int which = 0; which < NN_PLACES; which++) {
        struct tensor_place place = nn_place(which);
        for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++)
            a_net_learns(&place, optimizer, losses[which][optimizer]);
        a_transformer_learns_by_heart(&place, of_transformer[which]);
        allocator_destroy(place.allocator);
    }
    for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++)
        losses_agree(losses[0][optimizer], losses[1][optimizer], 1e-4);
    losses_agree(losses[0][ADAMW], losses[0][ADAMW_SINGLE], 1e-4);
    losses_agree(of_transformer[0], of_transformer[1], 1e-3);
    a_stream_of_its_own_does(of_transformer[1]);
    a_captured_step_learns_alike(losses[1][SGD]);
    return 0;
}
