// Writes in place, versions, resizing; and that a refusal leaves everything as it was, whatever
// request of memory it was that failed.
#include "tensor/testing.h"

#include <stdlib.h>

static struct tensor_operand_value number(int64_t value) { return tensor_operand_integer(value); }

static void detached_writes_count_in_the_source_and_data_writes_do_not(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(4)), detached, data;
    CHECK_OK(tensor_detach(self, &detached));
    CHECK_OK(tensor_data_of(self, &data));
    CHECK_OK(tensor_add_(detached, number(1), tensor_integer(1)));
    BASE_CHECK_EQ(testing_version(self), 1);
    CHECK_OK(tensor_add_(data, number(1), tensor_integer(1)));
    BASE_CHECK_EQ(testing_version(self), 1);
    BASE_CHECK_EQ(testing_version(data), 1);
    float values[4];
    CHECK_OK(tensor_read(self, values));
    BASE_CHECK_EQ(values[0], 2); // both wrote
    tensor_release(&self);
    tensor_release(&detached);
    tensor_release(&data);
    testing_place_end(&place);
}

// As tensor_shares_version answers, so the writes count.
static void counters_are_shared_as_told(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(4)), others[5];
    CHECK_OK(tensor_slice(self, 0, 0, 2, 1, &others[0]));
    CHECK_OK(tensor_detach(others[0], &others[1]));
    CHECK_OK(tensor_view_type(self, TENSOR_INT32, &others[2]));
    CHECK_OK(tensor_data_of(self, &others[3]));
    CHECK_OK(tensor_clone(self, TENSOR_PRESERVE, &others[4]));
    for (int index = 0; index < 5; index++) {
        const bool is_shared = index < 3;
        const uint32_t before = testing_version(self);
        BASE_CHECK_EQ(tensor_shares_version(self, others[index]), is_shared);
        BASE_CHECK_EQ(tensor_shares_version(others[index], self), is_shared);
        CHECK_OK(tensor_zero_(others[index]));
        BASE_CHECK_EQ(testing_version(self), before + is_shared);
        tensor_release(&others[index]);
    }
    tensor_release(&self);
    tensor_set_inference_mode(true);
    self = testing_range(&place, TENSOR_FLOAT32, SIZES(4));
    BASE_CHECK(!tensor_shares_version(self, self));
    tensor_release(&self);
    tensor_set_inference_mode(false);
    testing_place_end(&place);
}

// Integers have no gradients, whatever they are copied from.
static void integers_stay_off_the_graph(void) {
    struct tensor_place place = testing_place();
    struct tensor leaf = testing_range(&place, TENSOR_FLOAT32, SIZES(4)), integers;
    CHECK_OK(tensor_set_requires_grad(leaf, true));
    CHECK_OK(tensor_zeros(&place, TENSOR_INT64, SIZES(4), &integers));
    CHECK_OK(tensor_copy_(integers, leaf));
    BASE_CHECK(!tensor_requires_grad(integers));
    int64_t values[4];
    CHECK_OK(tensor_read(integers, values));
    BASE_CHECK_EQ(values[3], 3);
    tensor_release(&leaf);
    tensor_release(&integers);
    testing_place_end(&place);
}

static void an_item_is_of_its_kind(void) {
    struct tensor_place place = testing_place();
    static const enum tensor_type types[] = {TENSOR_BOOL, TENSOR_INT32, TENSOR_FLOAT16};
    static const int kinds[] = {TENSOR_SCALAR_BOOL, TENSOR_SCALAR_INTEGER, TENSOR_SCALAR_FLOATING};
    for (int index = 0; index < 3; index++) {
        struct tensor self;
        struct tensor_scalar value;
        CHECK_OK(tensor_ones(&place, types[index], SIZES(1), &self));
        CHECK_OK(tensor_item(self, &value));
        BASE_CHECK_EQ(value.kind, kinds[index]);
        tensor_release(&self);
    }
    testing_place_end(&place);
}

// self[i] = value: sizes of 1 before those of self[i] do not count.
static void leading_ones_of_a_value_do_not_count(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(2, 3)), value;
    float values[6];
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(1, 1, 3), &value));
    CHECK_OK(tensor_assign_select(self, 0, 1, tensor_operand_tensor(value)));
    CHECK_OK(tensor_read(self, values));
    BASE_CHECK_EQ(values[2], 2);
    BASE_CHECK_EQ(values[3], 1);
    BASE_CHECK_EQ(testing_version(self), 1);
    tensor_release(&value);
    CHECK_OK(tensor_ones(&place, TENSOR_FLOAT32, SIZES(2, 3), &value));
    CHECK_REFUSED(tensor_assign_select(self, 0, 1, tensor_operand_tensor(value)), "");
    BASE_CHECK_EQ(testing_version(self), 1);
    tensor_release(&value);
    tensor_release(&self);
    testing_place_end(&place);
}

// With gaps and turned round: the order stays, the gaps go.
static void copies_of_what_has_gaps_have_none(void) {
    struct tensor_place place = testing_place();
    struct tensor whole = testing_range(&place, TENSOR_FLOAT32, SIZES(4, 6)), turned, self, made;
    CHECK_OK(tensor_transpose(whole, 0, 1, &turned));
    CHECK_OK(tensor_slice(turned, 0, 0, 6, 2, &self)); // [3, 4], strides [2, 6]
    for (int way = 0; way < 2; way++) {
        double values[12];
        CHECK_OK(way == 0 ? tensor_clone(self, TENSOR_PRESERVE, &made)
                          : tensor_to(self, TENSOR_FLOAT64, TENSOR_PRESERVE, &made));
        BASE_CHECK_EQ(tensor_stride(made, 0), 1);
        BASE_CHECK_EQ(tensor_stride(made, 1), 3);
        if (way == 1) {
            CHECK_OK(tensor_read(made, values));
            BASE_CHECK_EQ(values[5], 8); // row 1, column 1: whole[1][2]
        }
        tensor_release(&made);
    }
    tensor_release(&self);
    tensor_release(&turned);
    tensor_release(&whole);
    testing_place_end(&place);
}

static void resize_to_the_same_shape_changes_nothing(void) {
    struct tensor_place place = testing_place();
    struct tensor matrix = testing_range(&place, TENSOR_FLOAT32, SIZES(2, 3)), turned;
    CHECK_OK(tensor_transpose(matrix, 0, 1, &turned));
    CHECK_OK(tensor_resize_(turned, SIZES(3, 2), NULL));
    BASE_CHECK_EQ(tensor_stride(turned, 0), 1);
    BASE_CHECK_EQ(tensor_stride(turned, 1), 3);
    BASE_CHECK_EQ(testing_version(turned), 0);
    tensor_release(&matrix);
    tensor_release(&turned);
    testing_place_end(&place);
}

static void resize_within_the_storage_moves_nothing(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(6));
    const void *address = tensor_data(self);
    CHECK_OK(tensor_resize_(self, SIZES(2), NULL));
    CHECK_OK(tensor_resize_(self, SIZES(6), NULL));
    BASE_CHECK(tensor_data(self) == address);
    float values[6];
    CHECK_OK(tensor_read(self, values));
    BASE_CHECK_EQ(values[5], 5); // never shrunk
    BASE_CHECK_EQ(testing_version(self), 2);
    tensor_release(&self);
    testing_place_end(&place);
}

static void tensor_past_its_storage_is_refused_and_not_read(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(4)), result;
    struct tensor_storage *storage = tensor_storage(self);
    CHECK_OK(tensor_storage_resize(storage, 8));
    BASE_CHECK(!tensor_is_in_bounds(self));
    CHECK_REFUSED(tensor_add(self, number(1), tensor_integer(1), &result),
                  "reaches past its storage");
    CHECK_REFUSED(tensor_add_(self, number(1), tensor_integer(1)), "reaches past its storage");
    CHECK_REFUSED(tensor_sum(self, &result), "reaches past its storage");
    CHECK_REFUSED(tensor_fill_(self, number(1)), "reaches past its storage");
    CHECK_REFUSED(tensor_clone(self, TENSOR_PRESERVE, &result), "reaches past its storage");
    BASE_CHECK_EQ(testing_version(self), 0);
    tensor_storage_release(&storage);
    tensor_release(&self);
    testing_place_end(&place);
}

// index_put_ refuses values and indices that lie in what is written, all of it or a part.
static void a_tensor_is_not_indexed_into_itself(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_INT64, SIZES(4)), first, rest, index;
    CHECK_OK(tensor_slice(self, 0, 0, 3, 1, &first));
    CHECK_OK(tensor_slice(self, 0, 1, 4, 1, &rest));
    CHECK_OK(tensor_from_bytes(&place, TENSOR_INT64, SIZES(3), (int64_t[]){2, 1, 0}, &index));
    static const char *const part = "some elements of the input tensor and the written-to tensor";
    CHECK_REFUSED(tensor_index_put_(first, index, tensor_operand_tensor(rest), false), part);
    CHECK_REFUSED(tensor_index_put_(first, index, tensor_operand_tensor(first), false), part);
    CHECK_REFUSED(tensor_index_put_(first, first, number(7), true), part);
    BASE_CHECK_EQ(testing_version(self), 0);
    int64_t values[4];
    CHECK_OK(tensor_read(self, values));
    for (int i = 0; i < 4; i++)
        BASE_CHECK_EQ(values[i], i);
    // One of its numbers where a mask says: filled in.
    struct tensor last, mask;
    CHECK_OK(tensor_select(self, 0, 3, &last));
    CHECK_OK(tensor_from_bytes(&place, TENSOR_BOOL, SIZES(4), (bool[]){1, 0, 1, 0}, &mask));
    CHECK_OK(tensor_index_put_(self, mask, tensor_operand_tensor(last), false));
    CHECK_OK(tensor_read(self, values));
    BASE_CHECK_EQ(values[0], 3);
    BASE_CHECK_EQ(values[1], 1);
    tensor_release(&last);
    tensor_release(&mask);
    tensor_release(&self);
    tensor_release(&first);
    tensor_release(&rest);
    tensor_release(&index);
    testing_place_end(&place);
}

static void refused_writes_count_nothing(void) {
    struct tensor_place place = testing_place();
    struct tensor self = testing_range(&place, TENSOR_FLOAT32, SIZES(3)), other, expanded, head,
                  tail;
    other = testing_range(&place, TENSOR_FLOAT32, SIZES(2));
    CHECK_OK(tensor_expand(self, SIZES(2, 3), &expanded));
    CHECK_OK(tensor_slice(self, 0, 0, 2, 1, &head));
    CHECK_OK(tensor_slice(self, 0, 1, 3, 1, &tail));
    CHECK_REFUSED(tensor_add_(self, tensor_operand_tensor(other), tensor_integer(1)),
                  "must match the size");
    CHECK_REFUSED(tensor_add_(expanded, number(1), tensor_integer(1)), "single memory location");
    CHECK_REFUSED(tensor_copy_(head, tail), "single memory location");
    BASE_CHECK_EQ(testing_version(self), 0);
    tensor_release(&self);
    tensor_release(&other);
    tensor_release(&expanded);
    tensor_release(&head);
    tensor_release(&tail);
    testing_place_end(&place);
}

//------------------------------------------------------------------------------------------------
// No memory: every request of an operation fails in turn

struct subject {
    struct tensor_place place;
    struct tensor a, b, index, out;
};

typedef enum base_status operation(struct subject *subject, struct tensor *result);

#define OPERATION(name) static enum base_status name(struct subject *s, struct tensor *result)
OPERATION(run_add) {
    return tensor_add(s->a, tensor_operand_tensor(s->b), tensor_integer(1), result);
}
OPERATION(run_mm) { return tensor_mm(s->a, s->b, result); }
OPERATION(run_sum) { return tensor_sum_dims(s->a, SIZES(0), false, result); }
OPERATION(run_cat) { return tensor_cat((struct tensor[]){s->a, s->b}, 2, 1, result); }
OPERATION(run_stack) { return tensor_stack((struct tensor[]){s->a, s->b}, 2, 0, result); }
OPERATION(run_index) { return tensor_index(s->a, s->index, result); }
OPERATION(run_to) { return tensor_to(s->a, TENSOR_FLOAT64, TENSOR_PRESERVE, result); }
OPERATION(run_reshape) {
    struct tensor turned;
    const enum base_status status = tensor_transpose(s->a, 0, 1, &turned);
    if (status != BASE_OK) return status;
    const enum base_status reshaped = tensor_reshape(turned, SIZES(9), result);
    tensor_release(&turned);
    return reshaped;
}
OPERATION(run_resize) {
    (void)result;
    return tensor_resize_(s->out, SIZES(100), NULL);
}
OPERATION(run_add_out) {
    (void)result;
    return tensor_add_out(s->out, s->a, tensor_operand_tensor(s->b));
}
OPERATION(run_mm_out) {
    (void)result;
    return tensor_mm_out(s->out, s->a, s->b);
}
OPERATION(run_cat_out) {
    (void)result;
    return tensor_cat_out(s->out, (struct tensor[]){s->a, s->b}, 2, 0);
}
OPERATION(run_index_put) {
    (void)result;
    return tensor_index_put_(s->out, s->index, tensor_operand_integer(3), false);
}
OPERATION(run_mul_in_place) { // keeps a copy of the old value for the gradient
    (void)result;
    return tensor_mul_(s->out, tensor_operand_tensor(s->a));
}

static void subject_init(struct subject *subject) {
    *subject = (struct subject){.place = testing_place()};
    subject->a = testing_range(&subject->place, TENSOR_FLOAT32, SIZES(3, 3));
    subject->b = testing_range(&subject->place, TENSOR_FLOAT32, SIZES(3, 3));
    subject->out = testing_range(&subject->place, TENSOR_FLOAT32, SIZES(3, 3));
    const int64_t rows[] = {2, 0};
    CHECK_OK(tensor_from_bytes(&subject->place, TENSOR_INT64, SIZES(2), rows, &subject->index));
    CHECK_OK(tensor_set_requires_grad(subject->a, true));
}

static void subject_deinit(struct subject *subject) {
    tensor_release(&subject->a);
    tensor_release(&subject->b);
    tensor_release(&subject->index);
    tensor_release(&subject->out);
    testing_place_end(&subject->place);
}

static void check_unchanged(const struct subject *subject, int64_t blocks) {
    float values[9];
    BASE_CHECK_EQ(testing_live_blocks(&subject->place), blocks);
    const struct tensor tensors[] = {subject->a, subject->b, subject->out};
    for (int index = 0; index < 3; index++) {
        BASE_CHECK_EQ(tensor_rank(tensors[index]), 2);
        BASE_CHECK_EQ(testing_version(tensors[index]), 0);
        CHECK_OK(tensor_read(tensors[index], values));
        for (int element = 0; element < 9; element++)
            BASE_CHECK_EQ(values[element], element);
    }
}

// Requests of memory that the operation makes when all go well.
static int walk(operation *run, bool needs_graph) {
    for (int fail_at = 1;; fail_at++) {
        struct subject subject;
        struct tensor result = {0};
        subject_init(&subject);
        if (!needs_graph) CHECK_OK(tensor_set_requires_grad(subject.a, false));
        const int64_t blocks = testing_live_blocks(&subject.place);
        tensor_host_allocator_fail_at(subject.place.allocator, (uint64_t)fail_at);
        const enum base_status status = run(&subject, &result);
        tensor_host_allocator_fail_at(subject.place.allocator, 0);
        if (status != BASE_OK) {
            BASE_CHECK_EQ(status, BASE_OUT_OF_MEMORY);
            BASE_CHECK(result.impl == NULL);
            check_unchanged(&subject, blocks);
        }
        tensor_release(&result);
        subject_deinit(&subject);
        if (status == BASE_OK) return fail_at - 1;
    }
}

static void operations_without_memory_leave_everything_as_it_was(void) {
    static const struct {
        operation *run;
        bool needs_graph;
    } cases[] = {{run_add, true},        {run_mm, true},          {run_sum, true},
                 {run_cat, true},        {run_stack, true},       {run_index, true},
                 {run_to, true},         {run_reshape, true},     {run_resize, false},
                 {run_add_out, false},   {run_mm_out, false},     {run_cat_out, false},
                 {run_index_put, false}, {run_mul_in_place, true}};
    int failures = 0;
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        const int requests = walk(cases[index].run, cases[index].needs_graph);
        printf("case %zu: %d requests\n", index, requests);
        failures += requests;
    }
    BASE_CHECK_GE(failures, 12);
}

int main(void) {
    detached_writes_count_in_the_source_and_data_writes_do_not();
    counters_are_shared_as_told();
    integers_stay_off_the_graph();
    an_item_is_of_its_kind();
    leading_ones_of_a_value_do_not_count();
    copies_of_what_has_gaps_have_none();
    a_tensor_is_not_indexed_into_itself();
    resize_to_the_same_shape_changes_nothing();
    resize_within_the_storage_moves_nothing();
    tensor_past_its_storage_is_refused_and_not_read();
    refused_writes_count_nothing();
    operations_without_memory_leave_everything_as_it_was();
}
