// See transformer_train.h. What goes when is what a Python script's variables do: the last batch
// when the next one is there, gradients after that, the last loss when the next one is computed.
#include "workload/transformer_train.h"

#include "base/random.h"

#include <stdlib.h>

#define NORM_MAX 1.0
#define DECAY 0.1
#define NOISE 0.1 // of tokens that do not follow from the one before

static const struct tensor none;

//------------------------------------------------------------------------------------------------
// Text: a token mostly says which one comes next.

struct text {
    struct transformer_shape shape;
    bool is_varied;
    struct base_random random;
    int64_t *follows;          // of each token of the vocabulary
    int64_t *tokens, *targets; // of a batch: [batch, length + 1], [batch, length]
};

static void text_deinit(struct text *text) {
    free(text->follows);
    free(text->tokens);
    free(text->targets);
}

static enum base_status text_init(struct text *text, const struct transformer_training *training) {
    const struct transformer_shape *shape = &training->shape;
    const size_t vocabulary = (size_t)shape->vocabulary;
    const size_t count = (size_t)shape->batch * ((size_t)shape->context + 1);
    *text = (struct text){.shape = *shape,
                          .is_varied = training->is_varied,
                          .random = base_random_init(training->seed, "text"),
                          .follows = malloc(vocabulary * sizeof *text->follows),
                          .tokens = calloc(count, sizeof *text->tokens),
                          .targets = calloc(count, sizeof *text->targets)};
    if (text->follows == NULL || text->tokens == NULL || text->targets == NULL) {
        text_deinit(text);
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu tokens of text", count);
    }
    for (size_t i = 0; i < vocabulary; ++i)
        text->follows[i] = (int64_t)base_random_below(&text->random, vocabulary);
    return BASE_OK;
}

// Draws a batch; returns its length.
static int64_t text_draw(struct text *text) {
    const int64_t context = text->shape.context;
    int64_t length = context;
    if (text->is_varied)
        length = (int64_t)base_random_between(&text->random, (uint64_t)(context + 3) / 4,
                                              (uint64_t)context);
    for (int64_t row = 0; row < text->shape.batch; ++row) {
        int64_t *tokens = text->tokens + row * (length + 1);
        int64_t *targets = text->targets + row * length;
        int64_t own = length; // of this row
        if (text->is_varied) own = (int64_t)base_random_between(&text->random, 1, (uint64_t)length);
        for (int64_t i = 0; i <= length; ++i) {
            const uint64_t vocabulary = (uint64_t)text->shape.vocabulary;
            if (i == 0 || base_random_chance(&text->random, NOISE))
                tokens[i] = (int64_t)base_random_below(&text->random, vocabulary);
            else
                tokens[i] = text->follows[tokens[i - 1]];
            if (i > 0) targets[i - 1] = i <= own ? tokens[i] : TENSOR_IGNORED;
        }
    }
    return length;
}

//------------------------------------------------------------------------------------------------
// AdamW over two groups of parameters.

#define GROUPS 2

struct group {
    double decay;
    int count;
    struct tensor *parameters, *gradients, *means, *squares; // gradients are borrowed
};

struct optimizer {
    const struct transformer *model;
    double rate;
    bool is_fused;
    int64_t step;
    struct group groups[GROUPS];
};

static enum base_status group_init(struct group *group, size_t capacity) {
    group->parameters = calloc(capacity, sizeof *group->parameters);
    group->gradients = calloc(capacity, sizeof *group->gradients);
    group->means = calloc(capacity, sizeof *group->means);
    group->squares = calloc(capacity, sizeof *group->squares);
    if (group->parameters != NULL && group->gradients != NULL && group->means != NULL &&
        group->squares != NULL)
        return BASE_OK;
    return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu parameters", capacity);
}

static void optimizer_deinit(struct optimizer *optimizer) {
    for (int i = 0; i < GROUPS; ++i) {
        struct group *group = &optimizer->groups[i];
        for (int index = 0; index < group->count; ++index) {
            tensor_release(&group->means[index]);
            tensor_release(&group->squares[index]);
        }
        free(group->parameters);
        free(group->gradients);
        free(group->means);
        free(group->squares);
    }
}

static enum base_status optimizer_init(struct optimizer *optimizer, const struct transformer *model,
                                       const struct transformer_training *training) {
    enum base_status status = BASE_OK;
    *optimizer = (struct optimizer){.model = model,
                                    .rate = training->rate,
                                    .is_fused = training->is_fused,
                                    .groups = {{.decay = DECAY}}};
    for (int i = 0; i < GROUPS && status == BASE_OK; ++i)
        status = group_init(&optimizer->groups[i], (size_t)model->parameter_count);
    for (int i = 0; i < model->parameter_count && status == BASE_OK; ++i) {
        struct group *group = &optimizer->groups[tensor_rank(model->parameters[i]) < 2];
        group->parameters[group->count++] = model->parameters[i];
    }
    if (status != BASE_OK) optimizer_deinit(optimizer);
    return status;
}

static enum base_status group_step(struct optimizer *optimizer, struct group *group) {
    enum base_status status = BASE_OK;
    for (int i = 0; i < group->count && status == BASE_OK; ++i) {
        group->gradients[i] = tensor_grad(group->parameters[i]);
        if (group->means[i].impl != NULL) continue;
        status = tensor_zeros_like(group->parameters[i], TENSOR_PRESERVE, &group->means[i]);
        if (status == BASE_OK)
            status = tensor_zeros_like(group->parameters[i], TENSOR_PRESERVE, &group->squares[i]);
    }
    const struct tensor_adamw adamw = {.rate = optimizer->rate,
                                       .beta1 = 0.9,
                                       .beta2 = 0.999,
                                       .epsilon = 1e-8,
                                       .decay = group->decay,
                                       .is_single = !optimizer->is_fused};
    if (status != BASE_OK) return status;
    return tensor_adamw_step(&adamw, optimizer->step, group->count, group->parameters,
                             group->gradients, group->means, group->squares);
}

static enum base_status gradients_clip(const struct transformer *model, struct tensor *gradients) {
    for (int i = 0; i < model->parameter_count; ++i)
        gradients[i] = tensor_grad(model->parameters[i]);
    return tensor_clip_grad_norm_(model->parameter_count, gradients, NORM_MAX, NULL);
}

static enum base_status optimizer_step(struct optimizer *optimizer) {
    struct tensor *gradients = calloc((size_t)optimizer->model->parameter_count, sizeof *gradients);
    if (gradients == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for a list of gradients");
    optimizer->step++;
    const bool was_on = tensor_grad_mode();
    tensor_set_grad_mode(false);
    enum base_status status = gradients_clip(optimizer->model, gradients);
    for (int i = 0; i < GROUPS && status == BASE_OK; ++i)
        status = group_step(optimizer, &optimizer->groups[i]);
    tensor_set_grad_mode(was_on);
    free(gradients);
    return status;
}

static enum base_status gradients_clear(struct optimizer *optimizer) {
    enum base_status status = BASE_OK;
    for (int i = 0; i < GROUPS; ++i)
        for (int index = 0; index < optimizer->groups[i].count && status == BASE_OK; ++index)
            status = tensor_set_grad(optimizer->groups[i].parameters[index], none);
    return status;
}

//------------------------------------------------------------------------------------------------
// Steps

struct script {
    const struct transformer_training *training;
    struct transformer *model;
    struct text text;
    struct optimizer optimizer;
    struct tensor_generator generator;
    struct tensor batch, loss;
};

// *self becomes VALUE; what it was goes then.
static void assign(struct tensor *self, struct tensor value) {
    tensor_release(self);
    *self = value;
}

// Columns FIRST to END of the batch, a tensor of its own.
static enum base_status columns(struct tensor batch, int64_t first, int64_t end,
                                struct tensor *result) {
    struct tensor slice;
    enum base_status status = tensor_slice(batch, 1, first, end, 1, &slice);
    if (status != BASE_OK) return status;
    status = tensor_contiguous(slice, TENSOR_CONTIGUOUS, result);
    tensor_release(&slice);
    return status;
}

static enum base_status batch_load(struct script *script, int64_t *length) {
    struct tensor batch;
    *length = text_draw(&script->text);
    const enum base_status status = tensor_from_bytes(
        &script->training->place, TENSOR_INT64,
        (int64_t[]){script->training->shape.batch, *length + 1}, 2, script->text.tokens, &batch);
    if (status == BASE_OK) assign(&script->batch, batch);
    return status;
}

static enum base_status targets_load(struct script *script, int64_t length,
                                     struct tensor *targets) {
    if (!script->training->is_varied) return columns(script->batch, 1, length + 1, targets);
    return tensor_from_bytes(&script->training->place, TENSOR_INT64,
                             (int64_t[]){script->training->shape.batch, length}, 2,
                             script->text.targets, targets);
}

// The mean over the parts of a step.
static enum base_status loss_share(int parts, struct tensor *loss) {
    if (parts == 1) return BASE_OK;
    struct tensor share;
    const enum base_status status = tensor_div(*loss, tensor_operand_integer(parts), &share);
    if (status == BASE_OK) assign(loss, share);
    return status;
}

static enum base_status part_run(struct script *script, int64_t length) {
    const struct transformer_training *training = script->training;
    struct transformer_pass pass = {.model = script->model,
                                    .generator = script->generator,
                                    .dropout = training->dropout,
                                    .is_mixed = training->is_mixed,
                                    .is_checkpointed = training->is_checkpointed};
    struct tensor tokens, targets = none, loss = none;
    enum base_status status = columns(script->batch, 0, length, &tokens);
    if (status != BASE_OK) return status;
    status = targets_load(script, length, &targets);
    if (status == BASE_OK) status = transformer_loss(&pass, tokens, targets, &loss);
    tensor_release(&tokens);
    tensor_release(&targets);
    if (status == BASE_OK) status = loss_share(training->parts, &loss);
    if (status == BASE_OK)
        assign(&script->loss, loss);
    else
        tensor_release(&loss);
    if (status == BASE_OK) status = tensor_backward(script->loss, none, false);
    script->generator = pass.generator;
    transformer_pass_end(&pass);
    return status;
}

static enum base_status step_run(struct script *script, uint64_t step) {
    const struct transformer_training *training = script->training;
    enum base_status status = BASE_OK;
    for (int part = 0; part < training->parts && status == BASE_OK; ++part) {
        int64_t length;
        status = batch_load(script, &length);
        if (status == BASE_OK && part == 0) status = gradients_clear(&script->optimizer);
        if (status == BASE_OK) status = part_run(script, length);
    }
    if (status == BASE_OK) status = optimizer_step(&script->optimizer);
    if (status == BASE_OK && training->on_step != NULL)
        status = training->on_step(training->context, step, script->loss);
    return status;
}

static enum base_status script_run(struct script *script) {
    const struct transformer_training *training = script->training;
    enum base_status status = BASE_OK;
    for (uint64_t step = 0; step < training->steps && status == BASE_OK; ++step)
        status = step_run(script, step);
    if (status == BASE_OK && training->on_end != NULL)
        status = training->on_end(training->context, script->model);
    tensor_release(&script->batch);
    tensor_release(&script->loss);
    return status;
}

enum base_status transformer_train(const struct transformer_training *training) {
    struct script script = {.training = training, .generator = {training->seed, 0}};
    enum base_status status = text_init(&script.text, training);
    if (status != BASE_OK) return status;
    tensor_set_workspaces(training->product_workspace_bytes, training->biased_workspace_bytes);
    status = transformer_create(&training->place, &training->shape, training->seed,
                                training->is_empty, &script.model);
    if (status == BASE_OK) {
        status = optimizer_init(&script.optimizer, script.model, training);
        if (status == BASE_OK) {
            status = script_run(&script);
            optimizer_deinit(&script.optimizer);
        }
        transformer_destroy(script.model);
    }
    tensor_set_workspaces(0, 0);
    text_deinit(&script.text);
    return status;
}
