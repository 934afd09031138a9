// The program `moe`: trains a mixture of experts by SGD. Some experts get most rows and others few
// or none, and how many changes from step to step: so do the sizes of all that an expert takes.
// Variants:
//
//     top2       two experts a row, weighed by their shares (the default)
//     top1       one expert a row
//     capacity   two, but an expert takes no more than 1.25 even shares; the rest of its rows go
//                without it
//
// Where no values are computed, routes are drawn from the seed, as uneven as the routers' are.
#include "workload/programs.h"

#include "base/random.h"
#include "base/size.h"
#include "workload/moe_model.h"

#include <stdlib.h>
#include <string.h>

static const struct scale {
    struct moe_shape shape;
    int64_t rows; // of a batch
    double rate;
    size_t product_workspace_bytes, biased_workspace_bytes;
} scales[] = {
    [WORKLOAD_SMALL] = {{2, 64, 256, 8, 61, 2, 0}, 48, 0.1, 2 * BASE_MIB, 64 * BASE_KIB},
    [WORKLOAD_MEDIUM] = {{4, 256, 1024, 16, 1000, 2, 0}, 512, 0.1, 8 * BASE_MIB, BASE_MIB},
    [WORKLOAD_TRUE] = {{12, 1024, 3584, 16, 32000, 2, 0}, 8192, 0.1, 32 * BASE_MIB, BASE_MIB},
};

struct trainer {
    struct workload_run *run;
    int64_t rows;
    double rate;
    struct moe_model *model;
    struct base_random text, draws;
    int64_t *follows;          // of each token of the vocabulary
    int64_t *tokens, *targets; // of a batch
    uint64_t step;
};

//------------------------------------------------------------------------------------------------
// A step

// Common tokens are likelier than rare ones; each has one that follows it.
static void text_draw(struct trainer *trainer) {
    const uint64_t vocabulary = (uint64_t)trainer->model->shape.vocabulary;
    for (int64_t row = 0; row < trainer->rows; ++row) {
        const uint64_t token = base_random_log_between(&trainer->text, 1, vocabulary) - 1;
        trainer->tokens[row] = (int64_t)token;
        trainer->targets[row] = trainer->follows[token];
    }
}

// What became of the rows is part of what was computed.
static void on_routes(void *context, int layer, const struct moe_routes *routes) {
    struct trainer *trainer = context;
    const uint64_t layers = (uint64_t)trainer->model->shape.layers;
    const uint64_t key = trainer->step * (layers + 1) + 1 + (uint64_t)layer;
    workload_run_add_bytes(trainer->run, key, routes->starts,
                           ((size_t)routes->experts + 1) * sizeof *routes->starts);
}

static enum base_status step_run(struct trainer *trainer) {
    struct workload_run *run = trainer->run;
    const uint64_t layers = (uint64_t)trainer->model->shape.layers;
    const struct moe_pass pass = {.model = trainer->model,
                                  .draws = run->options.without_values ? &trainer->draws : NULL,
                                  .on_routes = on_routes,
                                  .context = trainer};
    struct tensor tokens, targets = {NULL}, loss = {NULL};
    text_draw(trainer);
    enum base_status status = tensor_from_bytes(&run->devices[0], TENSOR_INT64, &trainer->rows, 1,
                                                trainer->tokens, &tokens);
    if (status != BASE_OK) return status;
    status = tensor_from_bytes(&run->devices[0], TENSOR_INT64, &trainer->rows, 1, trainer->targets,
                               &targets);
    if (status == BASE_OK) status = moe_step(&pass, tokens, targets, trainer->rate, &loss);
    tensor_release(&tokens);
    tensor_release(&targets);
    if (status == BASE_OK && !run->options.without_values)
        status = workload_run_add(run, trainer->step * (layers + 1), loss);
    tensor_release(&loss);
    return status;
}

//------------------------------------------------------------------------------------------------
// The program

static enum base_status trainer_init(struct trainer *trainer, const struct moe_shape *shape) {
    const struct workload_run *run = trainer->run;
    const size_t vocabulary = (size_t)shape->vocabulary, rows = (size_t)trainer->rows;
    trainer->text = base_random_init(run->options.seed, "text");
    trainer->draws = base_random_init(run->options.seed, "routes");
    trainer->follows = malloc(vocabulary * sizeof *trainer->follows);
    trainer->tokens = malloc(rows * sizeof *trainer->tokens);
    trainer->targets = malloc(rows * sizeof *trainer->targets);
    if (trainer->follows == NULL || trainer->tokens == NULL || trainer->targets == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu tokens", vocabulary);
    for (size_t token = 0; token < vocabulary; ++token)
        trainer->follows[token] = (int64_t)base_random_below(&trainer->text, vocabulary);
    return moe_model_create(&run->devices[0], &run->host, shape, run->options.seed,
                            run->options.without_values, &trainer->model);
}

static enum base_status parameters_add(const struct trainer *trainer) {
    const uint64_t steps = trainer->run->options.steps;
    const uint64_t first_key = steps * ((uint64_t)trainer->model->shape.layers + 1);
    enum base_status status = BASE_OK;
    if (trainer->run->options.without_values) return BASE_OK;
    for (int i = 0; i < trainer->model->parameter_count && status == BASE_OK; ++i)
        status =
            workload_run_add(trainer->run, first_key + (uint64_t)i, trainer->model->parameters[i]);
    return status;
}

static enum base_status moe_run(struct workload_run *run) {
    const struct scale *scale = &scales[run->options.size];
    struct trainer trainer = {.run = run, .rows = scale->rows, .rate = scale->rate};
    struct moe_shape shape = scale->shape;
    if (strcmp(run->options.variant, "top1") == 0) shape.choices = 1;
    if (strcmp(run->options.variant, "capacity") == 0) shape.capacity = 1.25;
    tensor_set_workspaces(scale->product_workspace_bytes, scale->biased_workspace_bytes);
    enum base_status status = trainer_init(&trainer, &shape);
    for (; trainer.step < run->options.steps && status == BASE_OK; ++trainer.step) {
        status = step_run(&trainer);
        if (status == BASE_OK) status = workload_run_step(run);
    }
    if (status == BASE_OK) status = parameters_add(&trainer);
    tensor_set_workspaces(0, 0);
    moe_model_destroy(trainer.model);
    free(trainer.follows);
    free(trainer.tokens);
    free(trainer.targets);
    return status;
}

static const char *const variants[] = {"top2", "top1", "capacity", NULL};

const struct workload_program workload_moe = {
    .name = "moe",
    .summary = "training a mixture of experts: uneven loads, rows gathered and added back",
    .variants = variants,
    .steps = {2, 8, 4},
    .device_count_min = 1,
    .device_count_max = 1,
    .run = moe_run,
};
