// See transformer_model.h. The order in which temporaries go is that of PyTorch's reference counts:
// what an operator made for itself at its end, what a line of the module made when the line is
// done.
#include "workload/transformer_model.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NORM_EPSILON 1e-5
#define WEIGHT_DEVIATION 0.02
#define EMBEDDING_COUNT 2
#define LAST_NORM_COUNT 2

static const struct tensor none;

//------------------------------------------------------------------------------------------------
// Parameters

static int sizes_of(const struct transformer_shape *shape, int index, int64_t sizes[2]) {
    const int64_t width = shape->width;
    int rank = 2;
    sizes[1] = width;
    if (index == 0) {
        sizes[0] = shape->vocabulary;
    } else if (index == 1) {
        sizes[0] = shape->context;
    } else if (index >= EMBEDDING_COUNT + shape->layers * TRANSFORMER_LAYER_PARAMETER_COUNT) {
        sizes[0] = width;
        rank = 1;
    } else {
        const int which = (index - EMBEDDING_COUNT) % TRANSFORMER_LAYER_PARAMETER_COUNT;
        static const struct {
            int rank, rows, columns; // times the width
        } parts[] = {
            [TRANSFORMER_NORM1_WEIGHT] = {1, 1, 0}, [TRANSFORMER_NORM1_BIAS] = {1, 1, 0},
            [TRANSFORMER_NORM2_WEIGHT] = {1, 1, 0}, [TRANSFORMER_NORM2_BIAS] = {1, 1, 0},
            [TRANSFORMER_QKV_WEIGHT] = {2, 3, 1},   [TRANSFORMER_QKV_BIAS] = {1, 3, 0},
            [TRANSFORMER_JOIN_WEIGHT] = {2, 1, 1},  [TRANSFORMER_JOIN_BIAS] = {1, 1, 0},
            [TRANSFORMER_UP_WEIGHT] = {2, 4, 1},    [TRANSFORMER_UP_BIAS] = {1, 4, 0},
            [TRANSFORMER_DOWN_WEIGHT] = {2, 1, 4},  [TRANSFORMER_DOWN_BIAS] = {1, 1, 0},
        };
        rank = parts[which].rank;
        sizes[0] = parts[which].rows * width;
        sizes[1] = parts[which].columns * width;
    }
    return rank;
}

static bool is_norm_weight(const struct transformer *model, int index) {
    const int which = (index - EMBEDDING_COUNT) % TRANSFORMER_LAYER_PARAMETER_COUNT;
    return index >= EMBEDDING_COUNT &&
           (index == model->parameter_count - LAST_NORM_COUNT ||
            (index < model->parameter_count - LAST_NORM_COUNT &&
             (which == TRANSFORMER_NORM1_WEIGHT || which == TRANSFORMER_NORM2_WEIGHT)));
}

// Marsaglia's polar method; one of each pair is left out.
static float draw_normal(struct base_random *random) {
    double x, square;
    do {
        x = 2 * base_random_unit(random) - 1;
        const double y = 2 * base_random_unit(random) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    return (float)(x * sqrt(-2 * log(square) / square));
}

static enum base_status parameter_create(const struct transformer *model, int index,
                                         struct base_random *random, bool is_empty,
                                         struct tensor *parameter) {
    int64_t sizes[2];
    const int rank = sizes_of(&model->shape, index, sizes);
    const size_t count = (size_t)(sizes[0] * (rank == 2 ? sizes[1] : 1));
    if (is_empty)
        return tensor_empty(&model->place, TENSOR_FLOAT32, sizes, rank, TENSOR_CONTIGUOUS,
                            parameter);
    float *values = malloc(count * sizeof *values);
    if (values == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu weights", count);
    for (size_t i = 0; i < count; ++i)
        values[i] = rank == 2                      ? (float)WEIGHT_DEVIATION * draw_normal(random)
                    : is_norm_weight(model, index) ? 1
                                                   : 0;
    const enum base_status status =
        tensor_from_bytes(&model->place, TENSOR_FLOAT32, sizes, rank, values, parameter);
    free(values);
    return status;
}

enum base_status transformer_create(const struct tensor_place *place,
                                    const struct transformer_shape *shape, uint64_t seed,
                                    bool is_empty, struct transformer **result) {
    struct transformer *model = calloc(1, sizeof *model);
    if (model == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    model->shape = *shape;
    model->place = *place;
    model->parameter_count =
        EMBEDDING_COUNT + shape->layers * TRANSFORMER_LAYER_PARAMETER_COUNT + LAST_NORM_COUNT;
    model->parameters = calloc((size_t)model->parameter_count, sizeof *model->parameters);
    enum base_status status = BASE_OK;
    if (model->parameters == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    struct base_random random = base_random_init(seed, "weights");
    for (int i = 0; i < model->parameter_count && status == BASE_OK; ++i) {
        status = parameter_create(model, i, &random, is_empty, &model->parameters[i]);
        if (status == BASE_OK) status = tensor_set_requires_grad(model->parameters[i], true);
    }
    if (status == BASE_OK)
        *result = model;
    else
        transformer_destroy(model);
    return status;
}

void transformer_destroy(struct transformer *model) {
    if (model == NULL) return;
    for (int i = 0; model->parameters != NULL && i < model->parameter_count; ++i)
        tensor_release(&model->parameters[i]);
    free(model->parameters);
    free(model);
}

static struct tensor parameter_of(const struct transformer *model, int layer, int which) {
    return model->parameters[EMBEDDING_COUNT + layer * TRANSFORMER_LAYER_PARAMETER_COUNT + which];
}

//------------------------------------------------------------------------------------------------
// Parts of a layer. Each releases what it made.

// SELF in bfloat16 if the pass is mixed.
static enum base_status lowered(const struct transformer_pass *pass, struct tensor self,
                                struct tensor *result) {
    if (self.impl != NULL && pass->is_mixed)
        return tensor_to(self, TENSOR_BFLOAT16, TENSOR_PRESERVE, result);
    *result = self.impl != NULL ? tensor_retain(self) : none;
    return BASE_OK;
}

// Autocast casts the arguments from the last to the first, in the order of C++ calls.
static enum base_status linear(const struct transformer_pass *pass, struct tensor input,
                               struct tensor weight, struct tensor bias, struct tensor *result) {
    struct tensor low_bias, low_weight = none, low_input = none;
    enum base_status status = lowered(pass, bias, &low_bias);
    if (status != BASE_OK) return status;
    status = lowered(pass, weight, &low_weight);
    if (status == BASE_OK) status = lowered(pass, input, &low_input);
    if (status == BASE_OK) status = tensor_linear(low_input, low_weight, low_bias, result);
    tensor_release(&low_bias);
    tensor_release(&low_weight);
    tensor_release(&low_input);
    return status;
}

static enum base_status norm(const struct transformer *model, struct tensor input,
                             struct tensor weight, struct tensor bias, struct tensor *result) {
    const int64_t width = model->shape.width;
    return tensor_layer_norm(input, &width, 1, weight, bias, NORM_EPSILON, result);
}

// The linear layer at WEIGHT of the norm at NORM_WEIGHT, each with its bias behind it.
static enum base_status linear_of_norm(const struct transformer_pass *pass, int layer,
                                       int norm_weight, int weight, struct tensor input,
                                       struct tensor *result) {
    const struct transformer *model = pass->model;
    struct tensor normed;
    enum base_status status = norm(model, input, parameter_of(model, layer, norm_weight),
                                   parameter_of(model, layer, norm_weight + 1), &normed);
    if (status != BASE_OK) return status;
    status = linear(pass, normed, parameter_of(model, layer, weight),
                    parameter_of(model, layer, weight + 1), result);
    tensor_release(&normed);
    return status;
}

// *self becomes what dropout leaves of it; what it was goes.
static enum base_status drop(const struct transformer_pass *pass,
                             struct tensor_generator *generator, struct tensor *self) {
    struct tensor dropped;
    const enum base_status status = tensor_dropout(*self, pass->dropout, generator, &dropped);
    if (status != BASE_OK) return status;
    tensor_release(self);
    *self = dropped;
    return BASE_OK;
}

// Queries, keys and values, [batch, heads, length, columns] each: views of QKV.
static enum base_status heads_split(const struct transformer *model, struct tensor qkv,
                                    struct tensor_list *parts) {
    const struct transformer_shape *shape = &model->shape;
    const int64_t sizes[] = {tensor_size(qkv, 0), tensor_size(qkv, 1), 3, shape->heads,
                             shape->width / shape->heads};
    struct tensor apart, first = none;
    enum base_status status = tensor_view(qkv, sizes, 5, &apart);
    if (status != BASE_OK) return status;
    status = tensor_permute(apart, (int64_t[]){2, 0, 3, 1, 4}, 5, &first);
    tensor_release(&apart);
    if (status == BASE_OK) status = tensor_unbind(first, 0, parts);
    tensor_release(&first);
    return status;
}

static enum base_status heads_join(struct tensor heads, struct tensor *result) {
    struct tensor rows;
    enum base_status status = tensor_transpose(heads, 1, 2, &rows);
    if (status != BASE_OK) return status;
    const int64_t sizes[] = {tensor_size(rows, 0), tensor_size(rows, 1),
                             tensor_size(rows, 2) * tensor_size(rows, 3)};
    status = tensor_reshape(rows, sizes, 3, result);
    tensor_release(&rows);
    return status;
}

static enum base_status attention(const struct transformer_pass *pass,
                                  struct tensor_generator *generator, int layer,
                                  struct tensor input, struct tensor *result) {
    const struct transformer *model = pass->model;
    const struct tensor_attention form = {
        .is_causal = true, .probability = pass->dropout, .generator = generator};
    struct tensor qkv, heads = none, joined = none;
    struct tensor_list parts = {0};
    enum base_status status =
        linear_of_norm(pass, layer, TRANSFORMER_NORM1_WEIGHT, TRANSFORMER_QKV_WEIGHT, input, &qkv);
    if (status != BASE_OK) return status;
    status = heads_split(model, qkv, &parts);
    tensor_release(&qkv);
    if (status == BASE_OK)
        status = tensor_scaled_dot_product_attention(parts.tensors[0], parts.tensors[1],
                                                     parts.tensors[2], &form, &heads);
    tensor_list_free(&parts);
    if (status == BASE_OK) status = heads_join(heads, &joined);
    tensor_release(&heads);
    if (status == BASE_OK)
        status = linear(pass, joined, parameter_of(model, layer, TRANSFORMER_JOIN_WEIGHT),
                        parameter_of(model, layer, TRANSFORMER_JOIN_BIAS), result);
    tensor_release(&joined);
    return status;
}

static enum base_status feed_forward(const struct transformer_pass *pass, int layer,
                                     struct tensor input, struct tensor *result) {
    const struct transformer *model = pass->model;
    struct tensor up, bent = none;
    enum base_status status =
        linear_of_norm(pass, layer, TRANSFORMER_NORM2_WEIGHT, TRANSFORMER_UP_WEIGHT, input, &up);
    if (status != BASE_OK) return status;
    status = tensor_gelu(up, &bent);
    tensor_release(&up);
    if (status == BASE_OK)
        status = linear(pass, bent, parameter_of(model, layer, TRANSFORMER_DOWN_WEIGHT),
                        parameter_of(model, layer, TRANSFORMER_DOWN_BIAS), result);
    tensor_release(&bent);
    return status;
}

//------------------------------------------------------------------------------------------------
// Layers

// IS_ATTENTION: the first half of a layer, else the second: input + part(norm(input)).
static enum base_status half_layer(const struct transformer_pass *pass,
                                   struct tensor_generator *generator, int layer, bool is_attention,
                                   struct tensor input, struct tensor *result) {
    struct tensor part;
    enum base_status status = is_attention ? attention(pass, generator, layer, input, &part)
                                           : feed_forward(pass, layer, input, &part);
    if (status != BASE_OK) return status;
    status = drop(pass, generator, &part);
    if (status == BASE_OK)
        status = tensor_add(input, tensor_operand_tensor(part), tensor_integer(1), result);
    tensor_release(&part);
    return status;
}

static enum base_status layer_run(const struct transformer_pass *pass,
                                  struct tensor_generator *generator, int layer,
                                  struct tensor input, struct tensor *result) {
    struct tensor middle;
    enum base_status status = half_layer(pass, generator, layer, true, input, &middle);
    if (status != BASE_OK) return status;
    status = half_layer(pass, generator, layer, false, middle, result);
    tensor_release(&middle);
    return status;
}

// A layer that runs twice draws the same numbers both times.
struct transformer_stretch {
    struct transformer_pass *pass;
    int layer;
    struct tensor_generator generator; // as it is before the layer
};

static enum base_status stretch_run(void *context, struct tensor input, struct tensor *result) {
    const struct transformer_stretch *stretch = context;
    struct tensor_generator generator = stretch->generator;
    const enum base_status status =
        layer_run(stretch->pass, &generator, stretch->layer, input, result);
    if (generator.offset > stretch->pass->generator.offset)
        stretch->pass->generator.offset = generator.offset;
    return status;
}

static enum base_status layers_run(struct transformer_pass *pass, struct tensor *self) {
    enum base_status status = BASE_OK;
    for (int layer = 0; layer < pass->model->shape.layers && status == BASE_OK; ++layer) {
        struct tensor result;
        if (pass->is_checkpointed) {
            struct transformer_stretch *stretch = &pass->stretches[layer];
            *stretch = (struct transformer_stretch){pass, layer, pass->generator};
            status = tensor_checkpoint(stretch_run, stretch, *self, &result);
        } else {
            status = layer_run(pass, &pass->generator, layer, *self, &result);
        }
        if (status != BASE_OK) return status;
        tensor_release(self);
        *self = result;
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// The whole

// 0 to LENGTH - 1.
static enum base_status positions_make(const struct transformer *model, int64_t length,
                                       struct tensor *result) {
    int64_t *numbers = malloc((size_t)length * sizeof *numbers);
    if (numbers == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld positions",
                               (long long)length);
    for (int64_t i = 0; i < length; ++i)
        numbers[i] = i;
    const enum base_status status =
        tensor_from_bytes(&model->place, TENSOR_INT64, &length, 1, numbers, result);
    free(numbers);
    return status;
}

static enum base_status embed(struct transformer_pass *pass, struct tensor tokens,
                              struct tensor *result) {
    const struct transformer *model = pass->model;
    struct tensor of_tokens, positions = none, of_positions = none, sum = none;
    enum base_status status = tensor_embedding(model->parameters[0], tokens, &of_tokens);
    if (status != BASE_OK) return status;
    status = positions_make(model, tensor_size(tokens, 1), &positions);
    if (status == BASE_OK)
        status = tensor_embedding(model->parameters[1], positions, &of_positions);
    tensor_release(&positions);
    if (status == BASE_OK)
        status =
            tensor_add(of_tokens, tensor_operand_tensor(of_positions), tensor_integer(1), &sum);
    tensor_release(&of_tokens);
    tensor_release(&of_positions);
    if (status == BASE_OK) status = drop(pass, &pass->generator, &sum);
    if (status == BASE_OK)
        *result = sum;
    else
        tensor_release(&sum);
    return status;
}

// [batch, length, vocabulary]; *self goes on the way.
static enum base_status logits_of(const struct transformer_pass *pass, struct tensor *self,
                                  struct tensor *result) {
    const struct transformer *model = pass->model;
    const int last = model->parameter_count - LAST_NORM_COUNT;
    struct tensor normed;
    enum base_status status =
        norm(model, *self, model->parameters[last], model->parameters[last + 1], &normed);
    tensor_release(self);
    if (status != BASE_OK) return status;
    status = linear(pass, normed, model->parameters[0], none, result);
    tensor_release(&normed);
    return status;
}

static enum base_status loss_of(struct tensor logits, struct tensor targets, struct tensor *loss) {
    const int64_t classes = tensor_size(logits, 2), rows = tensor_numel(targets);
    struct tensor row_logits, row_targets = none, wide = none;
    enum base_status status = tensor_view(logits, (int64_t[]){rows, classes}, 2, &row_logits);
    if (status != BASE_OK) return status;
    status = tensor_view(targets, &rows, 1, &row_targets);
    if (status == BASE_OK) status = tensor_to(row_logits, TENSOR_FLOAT32, TENSOR_PRESERVE, &wide);
    if (status == BASE_OK)
        status = tensor_cross_entropy(wide, row_targets, TENSOR_IGNORED, TENSOR_MEAN, loss);
    tensor_release(&wide);
    tensor_release(&row_targets);
    tensor_release(&row_logits);
    return status;
}

enum base_status transformer_loss(struct transformer_pass *pass, struct tensor tokens,
                                  struct tensor targets, struct tensor *loss) {
    struct tensor self, logits = none;
    if (pass->is_checkpointed && pass->stretches == NULL)
        pass->stretches = calloc((size_t)pass->model->shape.layers, sizeof *pass->stretches);
    if (pass->is_checkpointed && pass->stretches == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %d layers",
                               pass->model->shape.layers);
    enum base_status status = embed(pass, tokens, &self);
    if (status != BASE_OK) return status;
    status = layers_run(pass, &self);
    if (status == BASE_OK) status = logits_of(pass, &self, &logits);
    tensor_release(&self);
    if (status == BASE_OK) status = loss_of(logits, targets, loss);
    tensor_release(&logits);
    return status;
}

void transformer_pass_end(struct transformer_pass *pass) {
    free(pass->stretches);
    pass->stretches = NULL;
}
