// Training a small transformer on the simulated device: it learns, and what must not matter does
// not.
#include "workload/transformer_train.h"

#include "allocator/cca.h"
#include "base/check.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS_MAX 40

struct outcome {
    float losses[STEPS_MAX];
    int64_t peak_bytes;
};

static enum base_status loss_keep(void *context, uint64_t step, struct tensor loss) {
    struct outcome *outcome = context;
    return tensor_read(loss, &outcome->losses[step]);
}

static struct transformer_training training_of(uint64_t steps) {
    return (struct transformer_training){.shape = {2, 32, 2, 16, 4, 61},
                                         .seed = 11,
                                         .steps = steps,
                                         .rate = 1e-2,
                                         .parts = 1,
                                         .is_mixed = true,
                                         .on_step = loss_keep};
}

static struct outcome train(struct transformer_training training) {
    struct outcome outcome = {.peak_bytes = 0};
    struct allocator_stats stats;
    training.place = (struct tensor_place){.kind = TENSOR_CUDA, .device = 0};
    training.context = &outcome;
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = ""}, &training.place.allocator),
        BASE_OK);
    const enum base_status status = transformer_train(&training);
    if (status != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    BASE_CHECK_EQ(allocator_stats(training.place.allocator, 0, &stats), BASE_OK);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    outcome.peak_bytes = stats.requested_bytes[ALLOCATOR_STAT_ALL].peak;
    allocator_destroy(training.place.allocator);
    return outcome;
}

// The text has a rule for nine tokens of ten. From knowing nothing, ln 61, to less than SHARE of
// it.
static void it_learns(const char *what, float share, struct transformer_training training) {
    base_check_context("%s", what);
    const struct outcome outcome = train(training);
    const float parts = (float)training.parts; // a part's loss is its share of the batch's
    BASE_CHECK(fabsf(parts * outcome.losses[0] - logf(61)) < 0.1F);
    float end = 0;
    for (uint64_t i = training.steps - 4; i < training.steps; ++i)
        end += outcome.losses[i] / 4;
    BASE_CHECK(end < share * outcome.losses[0]);
    base_check_context(NULL);
}

static void every_way_of_training_lowers_the_loss(void) {
    struct transformer_training training = training_of(STEPS_MAX);
    it_learns("mixed", 0.5F, training);
    training.is_mixed = false;
    it_learns("full", 0.5F, training);
    training.parts = 4;
    it_learns("full, accumulated", 0.5F, training);
    training.parts = 1;
    training.dropout = 0.1;
    it_learns("full, dropout", 0.5F, training);
    training.is_mixed = true;
    training.is_checkpointed = training.is_fused = true;
    it_learns("checkpointed, fused steps", 0.5F, training);
    training.is_checkpointed = training.is_fused = false;
    training.is_varied = true;
    it_learns("varied, fewer tokens", 0.75F, training);
}

// A layer that backward runs again drops the same elements and gives the same gradients; what it
// computed the first time is not kept.
static void checkpointing_changes_memory_and_no_number(void) {
    struct transformer_training training = training_of(4);
    training.dropout = 0.2;
    const struct outcome plain = train(training);
    training.is_checkpointed = true;
    const struct outcome checkpointed = train(training);
    BASE_CHECK_EQ(memcmp(plain.losses, checkpointed.losses, 4 * sizeof plain.losses[0]), 0);
    BASE_CHECK_LT(checkpointed.peak_bytes, plain.peak_bytes);
}

static void mixed_precision_is_near_full_precision(void) {
    struct transformer_training training = training_of(3);
    const struct outcome mixed = train(training);
    training.is_mixed = false;
    const struct outcome full = train(training);
    for (int i = 0; i < 3; ++i) {
        BASE_CHECK(fabsf(mixed.losses[i] - full.losses[i]) < 0.02F * full.losses[i]);
        BASE_CHECK(mixed.losses[i] != full.losses[i]);
    }
}

// Four parts of a batch of 4 are one batch of 16, of the same text: the same gradient, but for
// rounding.
static void parts_of_a_batch_add_up_to_it(void) {
    struct transformer_training training = training_of(3);
    training.is_mixed = false;
    training.parts = 4;
    struct outcome parts = train(training);
    training.parts = 1;
    training.shape.batch = 16;
    const struct outcome whole = train(training);
    // The loss of a step's last part is not the whole's, but what was learnt shows in the next.
    for (int i = 0; i < 3; ++i)
        BASE_CHECK(fabsf(4 * parts.losses[i] - whole.losses[i]) < 0.05F * whole.losses[i]);
}

int main(void) {
    every_way_of_training_lowers_the_loss();
    checkpointing_changes_memory_and_no_number();
    mixed_precision_is_near_full_precision();
    parts_of_a_batch_add_up_to_it();
    return 0;
}
