// What backward does in which order, and what it leaves: the newest node first, leaves at once,
// gradients of a tensor's own type and memory, what retain_grad keeps, what is let go.
#include "tensor/nn_testing.h"

static const struct tensor none;

static struct tensor leaf_of(const struct tensor_place *place, int64_t size) {
    struct tensor leaf;
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, SIZES(size), &leaf));
    CHECK_OK(tensor_set_requires_grad(leaf, true));
    return leaf;
}

static struct tensor sum_of(struct tensor self) {
    struct tensor sum;
    CHECK_OK(tensor_sum(self, &sum));
    return sum;
}

static void values_are(struct tensor self, double wanted) {
    double *numbers = nn_read(self);
    for (int64_t i = 0; i < tensor_numel(self); i++)
        BASE_CHECK(numbers[i] == wanted);
    free(numbers);
}

// exp(leaf), changed since: its node will refuse.
static struct tensor spoilt_of(struct tensor leaf) {
    struct tensor made, kept;
    CHECK_OK(tensor_exp(leaf, &made));
    CHECK_OK(tensor_mul(made, tensor_operand_integer(1), &kept));
    CHECK_OK(tensor_add_(made, tensor_operand_integer(1), tensor_integer(1)));
    tensor_release(&made);
    return kept;
}

// Of two that refuse, the one made last is named, on whichever side of the sum it stands.
static void the_newest_node_runs_first(void) {
    struct tensor_place place = testing_place();
    for (int side = 0; side < 2; side++) {
        struct tensor a = leaf_of(&place, 1), b = leaf_of(&place, 3), sum;
        struct tensor old = spoilt_of(a), new = spoilt_of(b);
        CHECK_OK(tensor_add(side ? old : new, tensor_operand_tensor(side ? new : old),
                            tensor_integer(1), &sum));
        struct tensor total = sum_of(sum);
        CHECK_REFUSED(tensor_backward(total, none, false), "[torch.FloatTensor [3]]");
        BASE_CHECK(tensor_grad(a).impl == NULL && tensor_grad(b).impl == NULL);
        tensor_release(&a);
        tensor_release(&b);
        tensor_release(&old);
        tensor_release(&new);
        tensor_release(&sum);
        tensor_release(&total);
    }
    testing_place_end(&place);
}

// A gradient that has come to a leaf is there, though a node that waited longer refuses.
static void leaves_take_their_gradients_at_once(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place, 3), b = leaf_of(&place, 3), sum;
    struct tensor spoilt = spoilt_of(b);
    CHECK_OK(tensor_add(a, tensor_operand_tensor(spoilt), tensor_integer(1), &sum));
    struct tensor total = sum_of(sum);
    CHECK_REFUSED(tensor_backward(total, none, false), "modified by an inplace operation");
    values_are(tensor_grad(a), 1);
    BASE_CHECK(tensor_grad(b).impl == NULL);
    tensor_release(&a);
    tensor_release(&b);
    tensor_release(&spoilt);
    tensor_release(&sum);
    tensor_release(&total);
    testing_place_end(&place);
}

// x [float32] * y [float64] is float64; the gradient of x is float32 again.
static void a_gradient_has_the_type_of_its_tensor(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place, 3), factor, product;
    CHECK_OK(tensor_full(&place, TENSOR_FLOAT64, SIZES(3), tensor_floating(0.5), &factor));
    CHECK_OK(tensor_mul(a, tensor_operand_tensor(factor), &product));
    BASE_CHECK_EQ(tensor_type(product), TENSOR_FLOAT64);
    struct tensor total = sum_of(product);
    CHECK_OK(tensor_backward(total, none, false));
    BASE_CHECK_EQ(tensor_type(tensor_grad(a)), TENSOR_FLOAT32);
    values_are(tensor_grad(a), 0.5);
    tensor_release(&a);
    tensor_release(&factor);
    tensor_release(&product);
    tensor_release(&total);
    testing_place_end(&place);
}

// Of cat's gradient a leaf gets a part: as memory of its own, not as a piece that keeps the whole.
static void a_gradient_keeps_no_larger_memory(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place, 3), other, joined;
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(1000), &other));
    CHECK_OK(tensor_cat((struct tensor[]){other, a}, 2, 0, &joined));
    struct tensor squares, total;
    CHECK_OK(tensor_mul(joined, tensor_operand_tensor(joined), &squares));
    total = sum_of(squares);
    CHECK_OK(tensor_backward(total, none, false));
    values_are(tensor_grad(a), 2);
    struct tensor_storage *storage = tensor_storage(tensor_grad(a));
    BASE_CHECK_EQ(tensor_storage_bytes(storage), 3 * sizeof(float));
    tensor_storage_release(&storage);
    tensor_release(&a);
    tensor_release(&other);
    tensor_release(&joined);
    tensor_release(&squares);
    tensor_release(&total);
    testing_place_end(&place);
}

// Twice the same gradient: it adds up, as a leaf's does. And a write makes a new function, under
// which the tensor goes on keeping.
static void what_keeps_its_gradient_adds_it_up(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place, 3), twice;
    CHECK_OK(tensor_mul(a, tensor_operand_integer(2), &twice));
    CHECK_OK(tensor_retain_grad(twice));
    struct tensor total = sum_of(twice);
    CHECK_OK(tensor_backward(total, none, true));
    values_are(tensor_grad(twice), 1);
    CHECK_OK(tensor_backward(total, none, true));
    values_are(tensor_grad(twice), 2);
    values_are(tensor_grad(a), 4);
    tensor_release(&total);
    CHECK_OK(tensor_mul_(twice, tensor_operand_integer(3)));
    total = sum_of(twice);
    CHECK_OK(tensor_backward(total, none, false));
    values_are(tensor_grad(twice), 3); // of what it is now: 1 more
    values_are(tensor_grad(a), 10);
    tensor_release(&total);
    tensor_release(&twice);
    tensor_release(&a);
    testing_place_end(&place);
}

// One of two outputs is kept, then written: the kept gradient is that of the first output of the
// write's function.
static void an_output_is_kept_under_its_new_number(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place, 4), twice;
    struct tensor_list parts;
    CHECK_OK(tensor_mul(a, tensor_operand_integer(2), &twice));
    CHECK_OK(tensor_unsafe_split(twice, 2, 0, &parts));
    const struct tensor second = parts.tensors[1];
    CHECK_OK(tensor_retain_grad(second));
    CHECK_OK(tensor_mul_(second, tensor_operand_integer(3)));
    struct tensor total = sum_of(second);
    CHECK_OK(tensor_backward(total, none, false));
    values_are(tensor_grad(second), 1);
    tensor_release(&a);
    tensor_release(&twice);
    tensor_release(&total);
    tensor_list_free(&parts);
    testing_place_end(&place);
}

// What the function of a write to a view has saved goes with the first backward, too.
static void a_write_to_a_view_lets_go_of_what_it_saved(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place, 3), factor = leaf_of(&place, 2), copy, part;
    CHECK_OK(tensor_mul(a, tensor_operand_integer(2), &copy));
    CHECK_OK(tensor_slice(copy, 0, 0, 2, 1, &part));
    CHECK_OK(tensor_mul_(part, tensor_operand_tensor(factor)));
    struct tensor total = sum_of(copy);
    CHECK_OK(tensor_backward(total, none, false));
    values_are(tensor_grad(factor), 2);
    CHECK_REFUSED(tensor_backward(total, none, false), "backward through the graph a second time");
    tensor_release(&a);
    tensor_release(&factor);
    tensor_release(&copy);
    tensor_release(&part);
    tensor_release(&total);
    testing_place_end(&place);
}

// The weight is saved for the input's gradient alone: where nobody wants that it may change.
static void a_layer_saves_only_what_is_wanted(void) {
    struct tensor_place place = testing_place();
    for (int wants_input = 0; wants_input < 2; wants_input++) {
        struct tensor input, weight, bias = leaf_of(&place, 2), out;
        CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(4, 3), &input));
        CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(3, 2), &weight));
        CHECK_OK(tensor_set_requires_grad(weight, true));
        CHECK_OK(tensor_set_requires_grad(input, wants_input));
        CHECK_OK(tensor_addmm(bias, input, weight, &out));
        tensor_set_grad_mode(false);
        CHECK_OK(tensor_zero_(weight));
        tensor_set_grad_mode(true);
        struct tensor total = sum_of(out);
        if (wants_input)
            CHECK_REFUSED(tensor_backward(total, none, false), "modified by an inplace operation");
        else
            CHECK_OK(tensor_backward(total, none, false));
        if (!wants_input) values_are(tensor_grad(weight), 4);
        tensor_release(&input);
        tensor_release(&weight);
        tensor_release(&bias);
        tensor_release(&out);
        tensor_release(&total);
    }
    testing_place_end(&place);
}

int main(void) {
    the_newest_node_runs_first();
    leaves_take_their_gradients_at_once();
    a_gradient_has_the_type_of_its_tensor();
    a_gradient_keeps_no_larger_memory();
    what_keeps_its_gradient_adds_it_up();
    an_output_is_kept_under_its_new_number();
    a_write_to_a_view_lets_go_of_what_it_saved();
    a_layer_saves_only_what_is_wanted();
}
