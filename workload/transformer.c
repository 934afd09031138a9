// The program `transformer`: trains a model as GPT-2 is. Variants:
//
//     mixed        linear layers and attention in bfloat16, as PyTorch's autocast (the default)
//     full         everything in float32
//     checkpoint   mixed, with the layers' activations computed again in backward, and fused AdamW
//     accumulate   mixed, four parts a step whose gradients add up
//     varied       mixed, sequences of various lengths
//
// The true size is GPT-2's small model at a batch of 8: with `mixed` it asks for what a recording
// of PyTorch has (//workload:compare shows both).
#include "workload/programs.h"

#include "base/size.h"
#include "workload/transformer_train.h"

#include <string.h>

static const struct scale {
    struct transformer_shape shape;
    double rate;
    size_t product_workspace_bytes, biased_workspace_bytes;
} scales[] = {
    [WORKLOAD_SMALL] = {{2, 32, 2, 16, 2, 61}, 1e-2, 2 * BASE_MIB, 64 * BASE_KIB},
    [WORKLOAD_MEDIUM] = {{4, 128, 4, 64, 4, 1000}, 1e-3, 8 * BASE_MIB, BASE_MIB},
    [WORKLOAD_TRUE] = {{12, 768, 12, 1024, 8, 50304}, 6e-4, 32 * BASE_MIB, BASE_MIB},
};

static enum base_status on_step(void *context, uint64_t step, struct tensor loss) {
    struct workload_run *run = context;
    enum base_status status = BASE_OK;
    if (!run->options.without_values) status = workload_run_add(run, step, loss);
    return status == BASE_OK ? workload_run_step(run) : status;
}

static enum base_status on_end(void *context, const struct transformer *model) {
    struct workload_run *run = context;
    enum base_status status = BASE_OK;
    for (int i = 0; i < model->parameter_count && status == BASE_OK; ++i)
        if (!run->options.without_values)
            status = workload_run_add(run, run->options.steps + (uint64_t)i, model->parameters[i]);
    return status;
}

static enum base_status transformer_run(struct workload_run *run) {
    const struct scale *scale = &scales[run->options.size];
    const char *variant = run->options.variant;
    const struct transformer_training training = {
        .place = run->devices[0],
        .shape = scale->shape,
        .seed = run->options.seed,
        .steps = run->options.steps,
        .rate = scale->rate,
        .dropout = 0.1,
        .parts = strcmp(variant, "accumulate") == 0 ? 4 : 1,
        .is_mixed = strcmp(variant, "full") != 0,
        .is_checkpointed = strcmp(variant, "checkpoint") == 0,
        .is_fused = strcmp(variant, "checkpoint") == 0,
        .is_varied = strcmp(variant, "varied") == 0,
        .is_empty = run->options.without_values,
        .product_workspace_bytes = scale->product_workspace_bytes,
        .biased_workspace_bytes = scale->biased_workspace_bytes,
        .on_step = on_step,
        .on_end = on_end,
        .context = run,
    };
    return transformer_train(&training);
}

static const char *const variants[] = {"mixed", "full", "checkpoint", "accumulate", "varied", NULL};

const struct workload_program workload_transformer = {
    .name = "transformer",
    .summary = "training: AdamW, mixed precision, checkpointing, accumulation, various lengths",
    .variants = variants,
    .steps = {2, 4, 4},
    .device_count_min = 1,
    .device_count_max = 1,
    .run = transformer_run,
};
