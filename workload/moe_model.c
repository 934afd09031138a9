// See moe_model.h.
#include "workload/moe_model.h"

#include <math.h>
#include <stdlib.h>

#define NORM_EPSILON 1e-5
#define SKEW 0.8      // an expert of rank r starts out r^-0.8 times as likely as the first
#define WHOLE_COUNT 2 // parameters that are no layer's
#define LAYER_COUNT 2 // of a layer that are no expert's
#define EXPERT_COUNT 2

static const struct tensor none;

static void assign(struct tensor *self, struct tensor value) {
    tensor_release(self);
    *self = value;
}

//------------------------------------------------------------------------------------------------
// Parameters

static int64_t parameters_of_layer(const struct moe_shape *shape) {
    return LAYER_COUNT + shape->experts * EXPERT_COUNT;
}

static struct tensor parameter_of(const struct moe_model *model, int layer, int64_t which) {
    return model->parameters[WHOLE_COUNT + layer * parameters_of_layer(&model->shape) + which];
}

static struct tensor expert_parameter(const struct moe_model *model, int layer, int64_t expert,
                                      int which) {
    return parameter_of(model, layer, LAYER_COUNT + expert * EXPERT_COUNT + which);
}

static int sizes_of(const struct moe_shape *shape, int64_t index, int64_t sizes[2]) {
    const int64_t which = (index - WHOLE_COUNT) % parameters_of_layer(shape);
    const bool is_whole = index < WHOLE_COUNT, is_down = which % EXPERT_COUNT == 1;
    if (is_whole ? index == 1 : which == 0) { // a norm
        sizes[0] = shape->width;
        sizes[1] = 1;
        return 1;
    }
    sizes[0] = is_whole              ? shape->vocabulary
               : which < LAYER_COUNT ? shape->experts
               : is_down             ? shape->width
                                     : shape->inner;
    sizes[1] = !is_whole && which >= LAYER_COUNT && is_down ? shape->inner : shape->width;
    return 2;
}

// Norms 1; matrices uniform, so that rows keep their size.
static enum base_status parameter_create(const struct moe_model *model, int64_t index,
                                         struct base_random *random, bool is_empty,
                                         struct tensor *parameter) {
    int64_t sizes[2];
    const int rank = sizes_of(&model->shape, index, sizes);
    const size_t count = (size_t)(sizes[0] * sizes[1]);
    const double reach = sqrt(3.0 / (double)sizes[1]);
    if (is_empty)
        return tensor_empty(&model->place, TENSOR_FLOAT32, sizes, rank, TENSOR_CONTIGUOUS,
                            parameter);
    float *values = malloc(count * sizeof *values);
    if (values == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu weights", count);
    for (size_t i = 0; i < count; ++i)
        values[i] = rank == 1 ? 1 : (float)(reach * (2 * base_random_unit(random) - 1));
    const enum base_status status =
        tensor_from_bytes(&model->place, TENSOR_FLOAT32, sizes, rank, values, parameter);
    free(values);
    return status;
}

static enum base_status places_create(struct moe_model *model) {
    struct tensor places;
    enum base_status status =
        tensor_arange(&model->host, TENSOR_INT64, 0, (double)model->shape.experts, 1, &places);
    if (status != BASE_OK) return status;
    status = tensor_to_place(places, &model->place, false, &model->places);
    tensor_release(&places);
    return status;
}

// Ranks are dealt out by the seed.
static enum base_status skew_create(struct moe_model *model, uint64_t seed) {
    const int64_t experts = model->shape.experts;
    struct base_random random = base_random_init(seed, "skew");
    float *skew = malloc((size_t)experts * sizeof *skew);
    model->weights = malloc((size_t)experts * sizeof *model->weights);
    if (skew == NULL || model->weights == NULL) {
        free(skew);
        return base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    }
    for (int64_t expert = 0; expert < experts; ++expert) {
        const int64_t other = (int64_t)base_random_below(&random, (uint64_t)expert + 1);
        model->weights[expert] = model->weights[other];
        model->weights[other] = pow((double)expert + 1, -SKEW);
    }
    for (int64_t expert = 0; expert < experts; ++expert)
        skew[expert] = (float)log(model->weights[expert]);
    enum base_status status =
        tensor_from_bytes(&model->place, TENSOR_FLOAT32, &experts, 1, skew, &model->skew);
    free(skew);
    if (status != BASE_OK) return status;
    return places_create(model);
}

enum base_status moe_model_create(const struct tensor_place *place, const struct tensor_place *host,
                                  const struct moe_shape *shape, uint64_t seed, bool is_empty,
                                  struct moe_model **result) {
    struct moe_model *model = calloc(1, sizeof *model);
    struct base_random random = base_random_init(seed, "weights");
    if (model == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    *model = (struct moe_model){.shape = *shape, .place = *place, .host = *host};
    model->parameter_count = WHOLE_COUNT + shape->layers * (int)parameters_of_layer(shape);
    model->parameters = calloc((size_t)model->parameter_count, sizeof *model->parameters);
    enum base_status status = BASE_OK;
    if (model->parameters == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    for (int i = 0; i < model->parameter_count && status == BASE_OK; ++i) {
        status = parameter_create(model, i, &random, is_empty, &model->parameters[i]);
        if (status == BASE_OK) status = tensor_set_requires_grad(model->parameters[i], true);
    }
    if (status == BASE_OK) status = skew_create(model, seed);
    if (status == BASE_OK)
        *result = model;
    else
        moe_model_destroy(model);
    return status;
}

void moe_model_destroy(struct moe_model *model) {
    if (model == NULL) return;
    for (int i = 0; model->parameters != NULL && i < model->parameter_count; ++i)
        tensor_release(&model->parameters[i]);
    tensor_release(&model->skew);
    tensor_release(&model->places);
    free(model->parameters);
    free(model->weights);
    free(model);
}

//------------------------------------------------------------------------------------------------
// The router

// What a router says: the weight of each expert for each row, 0 where it is not chosen, and which
// are.
struct routing {
    struct tensor gates; // [rows, experts]
    struct tensor choices[MOE_CHOICES_MAX];
};

static void routing_release(struct routing *routing) {
    tensor_release(&routing->gates);
    for (int i = 0; i < MOE_CHOICES_MAX; ++i)
        tensor_release(&routing->choices[i]);
}

// The likeliest of each row of *left: which, where (one bool set in a row of *mask); it counts no
// more in *left then.
static enum base_status choose(const struct moe_model *model, struct tensor *left,
                               struct tensor *choice, struct tensor *mask) {
    struct tensor column = none, next = none;
    enum base_status status = tensor_argmax(*left, 1, false, choice);
    if (status == BASE_OK) status = tensor_unsqueeze(*choice, 1, &column);
    if (status == BASE_OK) status = tensor_eq(column, tensor_operand_tensor(model->places), mask);
    tensor_release(&column);
    if (status == BASE_OK) status = tensor_masked_fill(*left, *mask, tensor_integer(-1), &next);
    if (status == BASE_OK) assign(left, next);
    return status;
}

// 1 where an expert is chosen, else 0.
static enum base_status choices_make(const struct moe_model *model, struct tensor probabilities,
                                     struct routing *routing, struct tensor *chosen) {
    struct tensor left, whole = none;
    enum base_status status = tensor_detach(probabilities, &left);
    for (int i = 0; i < model->shape.choices && status == BASE_OK; ++i) {
        struct tensor mask = none, ones = none;
        status = choose(model, &left, &routing->choices[i], &mask);
        if (status == BASE_OK) status = tensor_to(mask, TENSOR_FLOAT32, TENSOR_CONTIGUOUS, &ones);
        tensor_release(&mask);
        if (status == BASE_OK && whole.impl != NULL)
            status = tensor_add_(whole, tensor_operand_tensor(ones), tensor_integer(1));
        else if (status == BASE_OK)
            whole = tensor_retain(ones);
        tensor_release(&ones);
    }
    tensor_release(&left);
    if (status == BASE_OK)
        *chosen = whole;
    else
        tensor_release(&whole);
    return status;
}

// *gates become shares of their row.
static enum base_status gates_share(struct tensor *gates) {
    struct tensor total, shares = none;
    enum base_status status = tensor_sum_dims(*gates, (int64_t[]){1}, 1, true, &total);
    if (status != BASE_OK) return status;
    status = tensor_div(*gates, tensor_operand_tensor(total), &shares);
    tensor_release(&total);
    if (status == BASE_OK) assign(gates, shares);
    return status;
}

// Empty if it fails.
static enum base_status route(const struct moe_model *model, int layer, struct tensor normed,
                              struct routing *routing) {
    struct tensor logits, probabilities = none, chosen = none;
    *routing = (struct routing){.gates = none};
    enum base_status status =
        tensor_linear(normed, parameter_of(model, layer, 1), model->skew, &logits);
    if (status != BASE_OK) return status;
    status = tensor_softmax(logits, 1, &probabilities);
    tensor_release(&logits);
    if (status == BASE_OK) status = choices_make(model, probabilities, routing, &chosen);
    if (status == BASE_OK)
        status = tensor_mul(probabilities, tensor_operand_tensor(chosen), &routing->gates);
    tensor_release(&probabilities);
    tensor_release(&chosen);
    if (status == BASE_OK && model->shape.choices > 1) status = gates_share(&routing->gates);
    if (status != BASE_OK) routing_release(routing);
    return status;
}

static enum base_status choices_read(const struct moe_routes_form *form,
                                     const struct routing *routing, struct moe_routes *routes) {
    int64_t *choices = malloc((size_t)form->choices * (size_t)form->rows * sizeof *choices);
    enum base_status status = BASE_OK;
    if (choices == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory to route %lld rows",
                               (long long)form->rows);
    for (int i = 0; i < form->choices && status == BASE_OK; ++i)
        status = tensor_read(routing->choices[i], choices + i * form->rows);
    if (status == BASE_OK) status = moe_routes_make(form, choices, routes);
    free(choices);
    return status;
}

static enum base_status routes_of(const struct moe_pass *pass, const struct routing *routing,
                                  struct moe_routes *routes) {
    const struct moe_model *model = pass->model;
    const int64_t rows = tensor_size(routing->gates, 0);
    struct moe_routes_form form = {
        .rows = rows, .experts = model->shape.experts, .choices = model->shape.choices};
    if (model->shape.capacity > 0)
        form.capacity = (int64_t)ceil(model->shape.capacity * (double)(form.choices * rows) /
                                      (double)form.experts);
    if (pass->draws != NULL) return moe_routes_draw(&form, model->weights, pass->draws, routes);
    return choices_read(&form, routing, routes);
}

//------------------------------------------------------------------------------------------------
// Experts

// ROWS, the expert's alone, through its matrices.
static enum base_status expert_run(const struct moe_model *model, int layer, int64_t expert,
                                   struct tensor rows, struct tensor *result) {
    struct tensor up, bent = none;
    enum base_status status =
        tensor_linear(rows, expert_parameter(model, layer, expert, 0), none, &up);
    if (status != BASE_OK) return status;
    status = tensor_silu(up, &bent);
    tensor_release(&up);
    if (status == BASE_OK)
        status = tensor_linear(bent, expert_parameter(model, layer, expert, 1), none, result);
    tensor_release(&bent);
    return status;
}

// Its column of GATES for its rows: [rows of the expert, 1].
static enum base_status gates_of(struct tensor gates, int64_t expert, struct tensor index,
                                 struct tensor *result) {
    struct tensor column;
    enum base_status status = tensor_narrow(gates, 1, expert, 1, &column);
    if (status != BASE_OK) return status;
    status = tensor_index(column, index, result);
    tensor_release(&column);
    return status;
}

// Adds to SUM, at the rows that INDEX names, what the expert makes of NORMED there.
static enum base_status expert_add(const struct moe_model *model, int layer, int64_t expert,
                                   struct tensor index, struct tensor normed, struct tensor gates,
                                   struct tensor sum) {
    struct tensor rows, made = none, gate = none, weighed = none;
    enum base_status status = tensor_index(normed, index, &rows);
    if (status != BASE_OK) return status;
    status = expert_run(model, layer, expert, rows, &made);
    tensor_release(&rows);
    if (status == BASE_OK) status = gates_of(gates, expert, index, &gate);
    if (status == BASE_OK) status = tensor_mul(made, tensor_operand_tensor(gate), &weighed);
    tensor_release(&made);
    tensor_release(&gate);
    if (status == BASE_OK)
        status = tensor_index_put_(sum, index, tensor_operand_tensor(weighed), true);
    tensor_release(&weighed);
    return status;
}

static enum base_status experts_run(const struct moe_model *model, int layer,
                                    const struct moe_routes *routes, struct tensor normed,
                                    struct tensor gates, struct tensor *result) {
    struct tensor sum;
    enum base_status status = tensor_zeros_like(normed, TENSOR_CONTIGUOUS, &sum);
    if (status != BASE_OK) return status;
    for (int64_t expert = 0; expert < routes->experts && status == BASE_OK; ++expert) {
        const int64_t count = moe_routes_count(routes, expert);
        struct tensor index;
        if (count == 0) continue;
        status = tensor_from_bytes(&model->host, TENSOR_INT64, &count, 1,
                                   routes->rows + routes->starts[expert], &index);
        if (status != BASE_OK) break;
        status = expert_add(model, layer, expert, index, normed, gates, sum);
        tensor_release(&index);
    }
    if (status == BASE_OK)
        *result = sum;
    else
        tensor_release(&sum);
    return status;
}

static enum base_status norm(const struct moe_model *model, struct tensor self,
                             struct tensor weight, struct tensor *result) {
    return tensor_rms_norm(self, &model->shape.width, 1, weight, NORM_EPSILON, result);
}

enum base_status moe_layer_run(const struct moe_pass *pass, int layer, struct tensor self,
                               struct tensor *result) {
    const struct moe_model *model = pass->model;
    struct routing routing = {.gates = none};
    struct moe_routes routes = {0};
    struct tensor normed, change = none;
    enum base_status status = norm(model, self, parameter_of(model, layer, 0), &normed);
    if (status != BASE_OK) return status;
    status = route(model, layer, normed, &routing);
    if (status == BASE_OK) status = routes_of(pass, &routing, &routes);
    if (status == BASE_OK && pass->on_routes != NULL)
        pass->on_routes(pass->context, layer, &routes);
    if (status == BASE_OK)
        status = experts_run(model, layer, &routes, normed, routing.gates, &change);
    moe_routes_deinit(&routes);
    routing_release(&routing);
    tensor_release(&normed);
    if (status == BASE_OK)
        status = tensor_add(self, tensor_operand_tensor(change), tensor_integer(1), result);
    tensor_release(&change);
    return status;
}

//------------------------------------------------------------------------------------------------
// The whole

enum base_status moe_loss(const struct moe_pass *pass, struct tensor tokens, struct tensor targets,
                          struct tensor *loss) {
    const struct moe_model *model = pass->model;
    struct tensor self, normed = none, logits = none;
    enum base_status status = tensor_embedding(model->parameters[0], tokens, &self);
    if (status != BASE_OK) return status;
    for (int layer = 0; layer < model->shape.layers && status == BASE_OK; ++layer) {
        struct tensor result;
        status = moe_layer_run(pass, layer, self, &result);
        if (status == BASE_OK) assign(&self, result);
    }
    if (status == BASE_OK) status = norm(model, self, model->parameters[1], &normed);
    tensor_release(&self);
    if (status == BASE_OK) status = tensor_linear(normed, model->parameters[0], none, &logits);
    tensor_release(&normed);
    if (status == BASE_OK)
        status = tensor_cross_entropy(logits, targets, TENSOR_IGNORED, TENSOR_MEAN, loss);
    tensor_release(&logits);
    return status;
}

static enum base_status gradients_clear(const struct moe_model *model) {
    enum base_status status = BASE_OK;
    for (int i = 0; i < model->parameter_count && status == BASE_OK; ++i)
        status = tensor_set_grad(model->parameters[i], none);
    return status;
}

static enum base_status sgd(const struct moe_model *model, double rate) {
    struct tensor *gradients = calloc((size_t)model->parameter_count, sizeof *gradients);
    if (gradients == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for a list of gradients");
    for (int i = 0; i < model->parameter_count; ++i)
        gradients[i] = tensor_grad(model->parameters[i]);
    const enum base_status status =
        tensor_sgd_step(&(struct tensor_sgd){.rate = rate}, model->parameter_count,
                        model->parameters, gradients, NULL);
    free(gradients);
    return status;
}

enum base_status moe_step(const struct moe_pass *pass, struct tensor tokens, struct tensor targets,
                          double rate, struct tensor *loss) {
    struct tensor made;
    enum base_status status = gradients_clear(pass->model);
    if (status == BASE_OK) status = moe_loss(pass, tokens, targets, &made);
    if (status != BASE_OK) return status;
    status = tensor_backward(made, none, false);
    if (status == BASE_OK) status = sgd(pass->model, rate);
    if (status == BASE_OK)
        *loss = made;
    else
        tensor_release(&made);
    return status;
}
