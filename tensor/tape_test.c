// The tape: gradients against finite differences, versions, life of graphs.
#include "tensor/testing.h"

#include <math.h>
#include <stdlib.h>

static const struct tensor none;

static struct tensor_scalar unit(void) { return tensor_integer(1); }

static struct tensor doubles(const struct tensor_place *place, const double *values,
                             const int64_t *sizes, int rank) {
    struct tensor self;
    CHECK_OK(tensor_from_bytes(place, TENSOR_FLOAT64, sizes, rank, values, &self));
    return self;
}

//------------------------------------------------------------------------------------------------
// Finite differences

// From two matrices [3,2] to any tensor.
typedef enum base_status function(struct tensor a, struct tensor b, struct tensor *result);

#define FUNCTION(name)                                                                             \
    static enum base_status name(struct tensor a, struct tensor b, struct tensor *result)
#define STEP(call)                                                                                 \
    do {                                                                                           \
        const enum base_status step_status = (call);                                               \
        if (step_status != BASE_OK)                                                                \
            return step_status;                                                                    \
    } while (0)
#define OF(tensor) tensor_operand_tensor(tensor)

FUNCTION(f_add) { return tensor_add(a, OF(b), tensor_floating(0.75), result); }
FUNCTION(f_sub) { return tensor_sub(a, OF(b), tensor_floating(1.5), result); }
FUNCTION(f_mul) { return tensor_mul(a, OF(b), result); }
FUNCTION(f_square) {
    (void)b;
    return tensor_mul(a, OF(a), result);
}
FUNCTION(f_div) { return tensor_div(a, OF(b), result); }
FUNCTION(f_neg) {
    (void)b;
    return tensor_neg(a, result);
}
FUNCTION(f_sqrt) {
    (void)a;
    return tensor_sqrt(b, result);
}
FUNCTION(f_relu) {
    (void)b;
    return tensor_relu(a, result);
}
FUNCTION(f_sum_rows) {
    (void)b;
    return tensor_sum_dims(a, SIZES(0), false, result);
}
FUNCTION(f_sum_kept) {
    (void)b;
    return tensor_sum_dims(a, SIZES(-1), true, result);
}
FUNCTION(f_mm) {
    struct tensor turned;
    STEP(tensor_transpose_2d(b, &turned));
    const enum base_status status = tensor_mm(a, turned, result);
    tensor_release(&turned);
    return status;
}
// Batches whose leading dimensions broadcast: [3,2] by [2,2,3].
FUNCTION(f_matmul_batched) {
    struct tensor cube, turned;
    STEP(tensor_expand(b, SIZES(2, 3, 2), &cube));
    STEP(tensor_transpose(cube, 1, 2, &turned));
    const enum base_status status = tensor_matmul(a, turned, result);
    tensor_release(&cube);
    tensor_release(&turned);
    return status;
}
FUNCTION(f_matmul_folded) { // many rows, one matrix
    struct tensor cube, square;
    STEP(tensor_view(a, SIZES(3, 1, 2), &cube));
    STEP(tensor_slice(b, 0, 0, 2, 1, &square));
    const enum base_status status = tensor_matmul(cube, square, result);
    tensor_release(&cube);
    tensor_release(&square);
    return status;
}
FUNCTION(f_matmul_vectors) {
    struct tensor row, dot;
    STEP(tensor_select(b, 0, 1, &row));
    STEP(tensor_matmul(a, row, &dot));
    const enum base_status status = tensor_matmul(dot, a, result);
    tensor_release(&row);
    tensor_release(&dot);
    return status;
}
FUNCTION(f_broadcast) {
    struct tensor row;
    STEP(tensor_select(b, 0, 1, &row));
    const enum base_status status = tensor_mul(a, OF(row), result);
    tensor_release(&row);
    return status;
}
FUNCTION(f_cat) { return tensor_cat((struct tensor[]){a, b, a}, 3, 1, result); }
FUNCTION(f_stack) { return tensor_stack((struct tensor[]){a, b, a}, 3, 1, result); }
FUNCTION(f_unfold) {
    (void)b;
    return tensor_unfold(a, 0, 2, 1, result);
}
FUNCTION(f_diagonal) {
    (void)b;
    return tensor_diagonal(a, -1, 0, 1, result);
}
FUNCTION(f_as_strided) { // elements several times over
    (void)b;
    return tensor_as_strided(a, SIZES(3, 2), SIZES(1, 2), NULL, result);
}
FUNCTION(f_as_strided_of_expanded) { // the source has elements several times over, too
    struct tensor thin, wide;
    (void)b;
    STEP(tensor_slice(a, 1, 0, 1, 1, &thin));
    STEP(tensor_expand(thin, SIZES(3, 4), &wide));
    const enum base_status status = tensor_as_strided(wide, SIZES(2), SIZES(2), NULL, result);
    tensor_release(&thin);
    tensor_release(&wide);
    return status;
}
FUNCTION(f_expand) {
    struct tensor thin;
    (void)b;
    STEP(tensor_slice(a, 1, 0, 1, 1, &thin));
    const enum base_status status = tensor_expand(thin, SIZES(2, 3, 4), result);
    tensor_release(&thin);
    return status;
}
FUNCTION(f_permute_reshape) {
    struct tensor turned;
    (void)b;
    STEP(tensor_permute(a, SIZES(1, 0), &turned));
    const enum base_status status = tensor_reshape(turned, SIZES(6), result);
    tensor_release(&turned);
    return status;
}
FUNCTION(f_split) {
    struct tensor_list list;
    (void)b;
    STEP(tensor_split(a, 2, 0, &list));
    *result = tensor_retain(list.tensors[1]);
    tensor_list_free(&list);
    return BASE_OK;
}
FUNCTION(f_index) {
    struct tensor index;
    const int64_t rows[] = {2, 0, 2};
    const struct tensor_place place = tensor_place(a);
    (void)b;
    STEP(tensor_from_bytes(&place, TENSOR_INT64, SIZES(3), rows, &index));
    const enum base_status status = tensor_index(a, index, result);
    tensor_release(&index);
    return status;
}
// A write through a view of a view, then one to the base.
FUNCTION(f_write_view) {
    struct tensor copy, row, factor;
    STEP(tensor_mul(a, tensor_operand_integer(2), &copy));
    STEP(tensor_select(copy, 0, 1, &row));
    STEP(tensor_select(b, 0, 2, &factor));
    STEP(tensor_mul_(row, OF(factor)));
    STEP(tensor_mul_(copy, OF(b)));
    STEP(tensor_div_(row, OF(factor)));
    tensor_release(&factor);
    tensor_release(&row);
    *result = copy;
    return BASE_OK;
}
FUNCTION(f_copy_into_view) {
    struct tensor copy, column, from;
    STEP(tensor_mul(a, OF(b), &copy));
    STEP(tensor_select(copy, 1, 0, &column));
    STEP(tensor_select(b, 1, 1, &from));
    STEP(tensor_copy_(column, from));
    tensor_release(&column);
    tensor_release(&from);
    *result = copy;
    return BASE_OK;
}
FUNCTION(f_read_stale_view) { // the view is as_strided of what its base has become
    struct tensor copy, view;
    STEP(tensor_mul(a, tensor_operand_integer(3), &copy));
    STEP(tensor_view(copy, SIZES(2, 3), &view));
    STEP(tensor_mul_(copy, OF(b)));
    const enum base_status status = tensor_mul(view, OF(view), result);
    tensor_release(&copy);
    tensor_release(&view);
    return status;
}
FUNCTION(f_fill_part) {
    struct tensor copy, row;
    STEP(tensor_mul(a, OF(b), &copy));
    STEP(tensor_select(copy, 0, 2, &row));
    STEP(tensor_fill_(row, tensor_operand_integer(5)));
    tensor_release(&row);
    *result = copy;
    return BASE_OK;
}
FUNCTION(f_index_put) {
    struct tensor index, copy, row;
    const int64_t rows[] = {1, 2};
    const struct tensor_place place = tensor_place(a);
    STEP(tensor_from_bytes(&place, TENSOR_INT64, SIZES(2), rows, &index));
    STEP(tensor_mul(a, OF(b), &copy));
    STEP(tensor_select(b, 0, 0, &row));
    STEP(tensor_index_put_(copy, index, OF(row), false));
    STEP(tensor_index_put_(copy, index, OF(row), true));
    tensor_release(&index);
    tensor_release(&row);
    *result = copy;
    return BASE_OK;
}
FUNCTION(f_to_and_back) {
    struct tensor single;
    (void)b;
    STEP(tensor_to(a, TENSOR_FLOAT32, TENSOR_PRESERVE, &single));
    const enum base_status status = tensor_to(single, TENSOR_FLOAT64, TENSOR_PRESERVE, result);
    tensor_release(&single);
    return status;
}

// Weights, so that no gradient hides behind a sum of equals.
static double loss_of(function *f, struct tensor a, struct tensor b, struct tensor *loss) {
    struct tensor result, weights, weighted;
    const struct tensor_place place = tensor_place(a);
    CHECK_OK(f(a, b, &result));
    const int64_t numel = tensor_numel(result);
    struct tensor flat;
    CHECK_OK(tensor_arange(&place, TENSOR_FLOAT64, 1, (double)numel + 1, 1, &flat));
    CHECK_OK(tensor_reshape(flat, tensor_geometry(result)->sizes, tensor_rank(result), &weights));
    CHECK_OK(tensor_mul(result, OF(weights), &weighted));
    CHECK_OK(tensor_sum(weighted, loss));
    struct tensor_scalar value;
    CHECK_OK(tensor_item(*loss, &value));
    tensor_release(&flat);
    tensor_release(&weights);
    tensor_release(&weighted);
    tensor_release(&result);
    return value.floating;
}

static double value_at(function *f, const struct tensor_place *place, double values[2][6]) {
    struct tensor a = doubles(place, values[0], SIZES(3, 2)),
                  b = doubles(place, values[1], SIZES(3, 2)), loss;
    const double value = loss_of(f, a, b, &loss);
    tensor_release(&loss);
    tensor_release(&a);
    tensor_release(&b);
    return value;
}

static void gradient_check(const char *name, function *f, double tolerance) {
    struct tensor_place place = testing_place();
    double values[2][6] = {{0.5, -1.25, 2.0, 0.75, -0.5, 1.5}, {1.5, 2.5, 0.75, 1.25, 3.0, 0.5}};
    struct tensor inputs[2] = {doubles(&place, values[0], SIZES(3, 2)),
                               doubles(&place, values[1], SIZES(3, 2))},
                  loss;
    for (int index = 0; index < 2; index++)
        CHECK_OK(tensor_set_requires_grad(inputs[index], true));
    loss_of(f, inputs[0], inputs[1], &loss);
    CHECK_OK(tensor_backward(loss, none, false));
    for (int index = 0; index < 2; index++) {
        double gradient[6] = {0};
        if (tensor_grad(inputs[index]).impl != NULL)
            CHECK_OK(tensor_read(tensor_grad(inputs[index]), gradient));
        for (int element = 0; element < 6; element++) {
            const double step = tolerance < 1e-4 ? 1e-5 : 0.03125, at = values[index][element];
            values[index][element] = at + step;
            const double above = value_at(f, &place, values);
            values[index][element] = at - step;
            const double below = value_at(f, &place, values);
            values[index][element] = at;
            const double expected = (above - below) / (2 * step);
            if (fabs(gradient[element] - expected) > tolerance * (1 + fabs(expected)))
                fprintf(stderr, "%s, input %d, element %d: %.9g, differences give %.9g\n", name,
                        index, element, gradient[element], expected);
            BASE_CHECK(fabs(gradient[element] - expected) <= tolerance * (1 + fabs(expected)));
        }
    }
    tensor_release(&loss);
    tensor_release(&inputs[0]);
    tensor_release(&inputs[1]);
    testing_place_end(&place);
}

static void gradients_agree_with_finite_differences(void) {
#define CASE(f) gradient_check(#f, f, 1e-7)
    CASE(f_add);
    CASE(f_sub);
    CASE(f_mul);
    CASE(f_square);
    CASE(f_div);
    CASE(f_neg);
    CASE(f_sqrt);
    CASE(f_relu);
    CASE(f_sum_rows);
    CASE(f_sum_kept);
    CASE(f_mm);
    CASE(f_matmul_batched);
    CASE(f_matmul_folded);
    CASE(f_matmul_vectors);
    CASE(f_broadcast);
    CASE(f_cat);
    CASE(f_stack);
    CASE(f_unfold);
    CASE(f_diagonal);
    CASE(f_as_strided);
    CASE(f_as_strided_of_expanded);
    CASE(f_expand);
    CASE(f_permute_reshape);
    CASE(f_split);
    CASE(f_index);
    CASE(f_write_view);
    CASE(f_copy_into_view);
    CASE(f_read_stale_view);
    CASE(f_fill_part);
    CASE(f_index_put);
    gradient_check("f_to_and_back", f_to_and_back, 1e-3); // through float32
}

//------------------------------------------------------------------------------------------------
// Versions and life

static struct tensor leaf_of(const struct tensor_place *place) {
    struct tensor leaf;
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, SIZES(3), &leaf));
    CHECK_OK(tensor_set_requires_grad(leaf, true));
    return leaf;
}

static void changed_operand_is_refused_in_backward_with_both_versions(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = leaf_of(&place), factor, product, sum;
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(3), &factor));
    CHECK_OK(tensor_mul(leaf, OF(factor), &product));
    CHECK_OK(tensor_add_(factor, tensor_operand_integer(1), unit()));
    CHECK_OK(tensor_sum(product, &sum));
    CHECK_REFUSED(tensor_backward(sum, none, false), "is at version 1; expected version 0 instead");
    BASE_CHECK(tensor_grad(leaf).impl == NULL);
    tensor_release(&leaf);
    tensor_release(&factor);
    tensor_release(&product);
    tensor_release(&sum);
    testing_place_end(&place);
}

static void second_backward_needs_what_the_first_retained(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = leaf_of(&place), square, sum;
    CHECK_OK(tensor_mul(leaf, OF(leaf), &square));
    CHECK_OK(tensor_sum(square, &sum));
    CHECK_OK(tensor_backward(sum, none, true));
    CHECK_OK(tensor_backward(sum, none, false));
    float values[3];
    CHECK_OK(tensor_read(tensor_grad(leaf), values));
    BASE_CHECK_EQ(values[0], 4);
    CHECK_REFUSED(tensor_backward(sum, none, false), "backward through the graph a second time");
    tensor_release(&leaf);
    tensor_release(&square);
    tensor_release(&sum);
    testing_place_end(&place);
}

// x.add_(y) with y = x * t: the history of x leads to a node that needs x.
static void tensor_that_its_own_history_needs_is_freed(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = leaf_of(&place), factor = leaf_of(&place), x, y, row;
    CHECK_OK(tensor_mul(leaf, tensor_operand_integer(2), &x));
    CHECK_OK(tensor_mul(x, OF(factor), &y));
    CHECK_OK(tensor_add_(x, OF(y), unit()));
    CHECK_OK(tensor_mul_(x, OF(x)));
    CHECK_OK(tensor_select(x, 0, 1, &row));
    CHECK_OK(tensor_mul_(row, OF(row)));
    tensor_release(&row);
    tensor_release(&leaf);
    tensor_release(&factor);
    tensor_release(&x);
    tensor_release(&y);
    testing_place_end(&place);
}

static void long_chain_is_run_and_freed_without_deep_calls(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = leaf_of(&place), last = tensor_retain(leaf), sum;
    for (int step = 0; step < 100000; step++) {
        struct tensor next;
        CHECK_OK(tensor_alias(last, &next));
        tensor_release(&last);
        last = next;
    }
    CHECK_OK(tensor_sum(last, &sum));
    CHECK_OK(tensor_backward(sum, none, false));
    float values[3];
    CHECK_OK(tensor_read(tensor_grad(leaf), values));
    BASE_CHECK_EQ(values[1], 1);
    tensor_release(&last);
    tensor_release(&sum);
    tensor_release(&leaf);
    testing_place_end(&place);
}

// The sum hands one gradient on to both.
static void two_gradients_never_share_memory(void) {
    struct tensor_place place = testing_place();
    struct tensor a = leaf_of(&place), b = leaf_of(&place), factor, sum, product, whole;
    CHECK_OK(tensor_full(&place, TENSOR_FLOAT32, SIZES(3), tensor_integer(2), &factor));
    CHECK_OK(tensor_add(a, OF(b), unit(), &sum));
    CHECK_OK(tensor_mul(sum, OF(factor), &product));
    CHECK_OK(tensor_sum(product, &whole));
    CHECK_OK(tensor_backward(whole, none, false));
    struct tensor_storage *storage_a = tensor_storage(tensor_grad(a)),
                          *storage_b = tensor_storage(tensor_grad(b));
    BASE_CHECK(storage_a != storage_b);
    CHECK_OK(tensor_zero_(tensor_grad(a)));
    float values[3];
    CHECK_OK(tensor_read(tensor_grad(b), values));
    BASE_CHECK_EQ(values[0], 2);
    tensor_storage_release(&storage_a);
    tensor_storage_release(&storage_b);
    tensor_release(&a);
    tensor_release(&b);
    tensor_release(&factor);
    tensor_release(&sum);
    tensor_release(&product);
    tensor_release(&whole);
    testing_place_end(&place);
}

static void tensor_cannot_be_its_own_gradient(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = leaf_of(&place);
    CHECK_REFUSED(tensor_set_grad(leaf, leaf), "as its own grad");
    tensor_release(&leaf);
    testing_place_end(&place);
}

static void modes_leave_no_graph(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = leaf_of(&place), result, view;
    tensor_set_grad_mode(false);
    CHECK_OK(tensor_mul(leaf, OF(leaf), &result));
    tensor_set_grad_mode(true);
    BASE_CHECK(!tensor_requires_grad(result));
    tensor_release(&result);
    // The mode is what stands in the way of a view's writes, not that it is one of several outputs.
    struct tensor_list parts;
    tensor_set_grad_mode(false);
    CHECK_OK(tensor_split(leaf, 2, 0, &parts));
    tensor_set_grad_mode(true);
    BASE_CHECK_EQ(strcmp(tensor_creation(parts.tensors[0]), "no_grad_mode"), 0);
    tensor_list_free(&parts);
    CHECK_OK(tensor_split(leaf, 2, 0, &parts));
    BASE_CHECK_EQ(strcmp(tensor_creation(parts.tensors[0]), "multi_output_node"), 0);
    tensor_list_free(&parts);
    tensor_set_inference_mode(true);
    CHECK_OK(tensor_mul(leaf, OF(leaf), &result));
    tensor_set_inference_mode(false);
    BASE_CHECK(tensor_is_inference(result));
    float before[3], after[3];
    CHECK_OK(tensor_read(result, before));
    CHECK_REFUSED(tensor_add_(result, tensor_operand_integer(1), unit()),
                  "Inplace update to inference");
    CHECK_REFUSED(tensor_zero_(result), "Inplace update to inference");
    CHECK_REFUSED(tensor_unsqueeze_(result, 0), "Inplace update to inference");
    CHECK_REFUSED(tensor_set_empty_(result), "Inplace update to inference");
    CHECK_REFUSED(tensor_resize_(result, SIZES(2), NULL), "Inplace update to inference");
    BASE_CHECK_EQ(tensor_rank(result), 1);
    BASE_CHECK_EQ(tensor_numel(result), 3);
    CHECK_OK(tensor_data_of(result, &view));
    CHECK_REFUSED(tensor_zero_(view), "Inplace update to inference"); // no way around
    CHECK_OK(tensor_read(result, after));
    BASE_CHECK_EQ(memcmp(before, after, sizeof before), 0);
    tensor_release(&view);
    tensor_release(&result);
    tensor_release(&leaf);
    testing_place_end(&place);
}

// Every request of memory of a backward fails in turn: nothing is lost, and it can be run again.
static void backward_without_memory_loses_nothing(void) {
    bool is_done = false;
    int failures = 0;
    for (int fail_at = 1; !is_done; fail_at++) {
        struct tensor_place place = testing_place();
        struct tensor leaf = leaf_of(&place), copy, row, product, sum;
        CHECK_OK(tensor_mul(leaf, tensor_operand_integer(2), &copy));
        CHECK_OK(tensor_select(copy, 0, 1, &row));
        CHECK_OK(tensor_mul_(row, tensor_operand_integer(3)));
        CHECK_OK(tensor_mul(copy, OF(copy), &product));
        CHECK_OK(tensor_sum(product, &sum));
        const int64_t blocks = testing_live_blocks(&place);
        tensor_host_allocator_fail_at(place.allocator, (uint64_t)fail_at);
        const enum base_status status = tensor_backward(sum, none, true);
        tensor_host_allocator_fail_at(place.allocator, 0);
        is_done = status == BASE_OK;
        failures += !is_done;
        if (!is_done) {
            BASE_CHECK_EQ(status, BASE_OUT_OF_MEMORY);
            BASE_CHECK_EQ(testing_live_blocks(&place), blocks);
            CHECK_OK(tensor_backward(sum, none, true));
        }
        float values[3];
        CHECK_OK(tensor_read(tensor_grad(leaf), values));
        BASE_CHECK_EQ(values[0], 8);  // (2x)^2
        BASE_CHECK_EQ(values[1], 72); // (6x)^2
        tensor_release(&leaf);
        tensor_release(&copy);
        tensor_release(&row);
        tensor_release(&product);
        tensor_release(&sum);
        testing_place_end(&place);
    }
    BASE_CHECK_GE(failures, 5);
}

static int64_t requests_so_far(const struct tensor_place *place) {
    struct allocator_stats stats;
    CHECK_OK(allocator_stats(place->allocator, 0, &stats));
    return stats.allocation[ALLOCATOR_STAT_ALL].allocated;
}

// Its gradient is made in the weight's own layout: two requests, for it and for the 1 at the start.
static void weight_turned_for_a_product_takes_its_gradient_without_a_copy(void) {
    struct tensor_place place = testing_place();
    struct tensor input = testing_range(&place, TENSOR_FLOAT32, SIZES(3, 4)), turned, product, sum;
    struct tensor weight = testing_range(&place, TENSOR_FLOAT32, SIZES(5, 4));
    CHECK_OK(tensor_set_requires_grad(weight, true));
    CHECK_OK(tensor_transpose_2d(weight, &turned));
    CHECK_OK(tensor_mm(input, turned, &product));
    CHECK_OK(tensor_sum(product, &sum));
    const int64_t before = requests_so_far(&place);
    CHECK_OK(tensor_backward(sum, none, false));
    BASE_CHECK_EQ(requests_so_far(&place) - before, 2);
    float values[20];
    CHECK_OK(tensor_read(tensor_grad(weight), values));
    for (int i = 0; i < 20; i++) // of each column the sum over the rows of the input
        BASE_CHECK_EQ(values[i], (float)(12 + 3 * (i % 4)));
    tensor_release(&input);
    tensor_release(&weight);
    tensor_release(&turned);
    tensor_release(&product);
    tensor_release(&sum);
    testing_place_end(&place);
}

int main(void) {
    gradients_agree_with_finite_differences();
    changed_operand_is_refused_in_backward_with_both_versions();
    second_backward_needs_what_the_first_retained();
    tensor_that_its_own_history_needs_is_freed();
    long_chain_is_run_and_freed_without_deep_calls();
    two_gradients_never_share_memory();
    tensor_cannot_be_its_own_gradient();
    modes_leave_no_graph();
    backward_without_memory_loses_nothing();
    weight_turned_for_a_product_takes_its_gradient_without_a_copy();
}
