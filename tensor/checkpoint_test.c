// Checkpointing: the same gradients, less memory between forward and backward, nothing lost.
#include "tensor/testing.h"

static const struct tensor none;

// x -> relu(x w) w, and how often it ran.
struct stretch {
    struct tensor weight;
    int runs;
};

static enum base_status stretch_run(void *context, struct tensor input, struct tensor *result) {
    struct stretch *stretch = context;
    struct tensor product, positive = {0};
    stretch->runs++;
    enum base_status status = tensor_mm(input, stretch->weight, &product);
    if (status != BASE_OK)
        return status;
    status = tensor_relu(product, &positive);
    tensor_release(&product);
    if (status == BASE_OK)
        status = tensor_mm(positive, stretch->weight, result);
    tensor_release(&positive);
    return status;
}

static enum base_status same(void *context, struct tensor input, struct tensor *result) {
    (void)context;
    *result = tensor_retain(input);
    return BASE_OK;
}

#define ROWS 4
#define WIDTH 3

struct outcome {
    float input[ROWS * WIDTH], weight[WIDTH * WIDTH];
    int64_t blocks_between;
    int runs;
};

// Two stretches one after the other, and the gradients of their sum.
static enum base_status train(const struct tensor_place *place, bool checkpointed, uint64_t fail_at,
                              struct outcome *outcome) {
    struct tensor input = testing_range(place, TENSOR_FLOAT32, SIZES(ROWS, WIDTH));
    struct tensor weight = testing_range(place, TENSOR_FLOAT32, SIZES(WIDTH, WIDTH));
    CHECK_OK(tensor_sub_(weight, tensor_operand_integer(4), tensor_integer(1)));
    CHECK_OK(tensor_set_requires_grad(input, true));
    CHECK_OK(tensor_set_requires_grad(weight, true));
    struct stretch stretch = {.weight = weight};
    struct tensor first = {0}, second = {0}, sum = {0};
    tensor_host_allocator_fail_at(place->allocator, fail_at);
    enum base_status status = checkpointed ? tensor_checkpoint(stretch_run, &stretch, input, &first)
                                           : stretch_run(&stretch, input, &first);
    if (status == BASE_OK)
        status = checkpointed ? tensor_checkpoint(stretch_run, &stretch, first, &second)
                              : stretch_run(&stretch, first, &second);
    if (status == BASE_OK)
        status = tensor_sum(second, &sum);
    outcome->blocks_between = testing_live_blocks(place);
    if (status == BASE_OK)
        status = tensor_backward(sum, none, false);
    tensor_host_allocator_fail_at(place->allocator, 0);
    BASE_CHECK(tensor_grad_mode());
    if (status == BASE_OK) {
        CHECK_OK(tensor_read(tensor_grad(input), outcome->input));
        CHECK_OK(tensor_read(tensor_grad(weight), outcome->weight));
    }
    outcome->runs = stretch.runs;
    tensor_release(&input);
    tensor_release(&weight);
    tensor_release(&first);
    tensor_release(&second);
    tensor_release(&sum);
    return status;
}

static void gradients_are_the_same_and_less_is_kept(void) {
    struct tensor_place place = testing_place();
    struct outcome plain, checkpointed;
    CHECK_OK(train(&place, false, 0, &plain));
    CHECK_OK(train(&place, true, 0, &checkpointed));
    BASE_CHECK_EQ(memcmp(plain.input, checkpointed.input, sizeof plain.input), 0);
    BASE_CHECK_EQ(memcmp(plain.weight, checkpointed.weight, sizeof plain.weight), 0);
    BASE_CHECK_EQ(plain.runs, 2);
    BASE_CHECK_EQ(checkpointed.runs, 4);
    // Input, weight, both results and the sum; without: the relu of both stretches, too.
    BASE_CHECK_EQ(checkpointed.blocks_between, 5);
    BASE_CHECK_EQ(plain.blocks_between, 7);
    testing_place_end(&place);
}

static void failed_requests_lose_nothing(void) {
    struct tensor_place place = testing_place();
    struct outcome outcome;
    int failures = 0;
    for (uint64_t fail_at = 1; train(&place, true, fail_at, &outcome) != BASE_OK; fail_at++) {
        BASE_CHECK_EQ(testing_live_blocks(&place), 0);
        failures++;
    }
    BASE_CHECK_GE(failures, 12);
    testing_place_end(&place);
}

static void result_is_a_tensor_of_its_own(void) {
    struct tensor_place place = testing_place();
    struct tensor input = testing_range(&place, TENSOR_FLOAT32, SIZES(2)), result, sum;
    CHECK_OK(tensor_checkpoint(same, NULL, input, &result)); // no gradient wanted: as it is
    BASE_CHECK(tensor_is_same(input, result));
    tensor_release(&result);
    CHECK_OK(tensor_set_requires_grad(input, true));
    CHECK_OK(tensor_checkpoint(same, NULL, input, &result));
    BASE_CHECK(!tensor_is_same(input, result));
    CHECK_OK(tensor_sum(result, &sum));
    CHECK_OK(tensor_backward(sum, none, false));
    float values[2];
    CHECK_OK(tensor_read(tensor_grad(input), values));
    BASE_CHECK(values[0] == 1 && values[1] == 1);
    tensor_release(&input);
    tensor_release(&result);
    tensor_release(&sum);
    testing_place_end(&place);
}

static void input_that_changed_is_refused(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = testing_range(&place, TENSOR_FLOAT32, SIZES(2)), input, result, sum;
    CHECK_OK(tensor_set_requires_grad(leaf, true));
    CHECK_OK(tensor_neg(leaf, &input));
    CHECK_OK(tensor_checkpoint(same, NULL, input, &result));
    CHECK_OK(tensor_sum(result, &sum));
    CHECK_OK(tensor_zero_(input));
    CHECK_REFUSED(tensor_backward(sum, none, false), "modified by an inplace operation");
    tensor_release(&leaf);
    tensor_release(&input);
    tensor_release(&result);
    tensor_release(&sum);
    testing_place_end(&place);
}

int main(void) {
    gradients_are_the_same_and_less_is_kept();
    failed_requests_lose_nothing();
    result_is_a_tensor_of_its_own();
    input_that_changed_is_refused();
}
