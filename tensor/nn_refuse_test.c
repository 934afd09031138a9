// What the operators of nn.h refuse, in PyTorch's sentences; nothing is left and nothing has
// changed.
#include "tensor/nn_testing.h"

#define IGNORED TENSOR_IGNORED

struct operands {
    struct tensor matrix, other, vector, whole, integers, targets, mask; // [2, 3], [4, 5], ...
};

static struct operands operands_make(const struct tensor_place *place) {
    struct operands made;
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, SIZES(2, 3), &made.matrix));
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, SIZES(4, 5), &made.other));
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT32, SIZES(4), &made.vector));
    CHECK_OK(tensor_ones(place, TENSOR_FLOAT64, SIZES(3, 3), &made.whole));
    CHECK_OK(tensor_zeros(place, TENSOR_INT64, SIZES(2, 3), &made.integers));
    CHECK_OK(tensor_zeros(place, TENSOR_INT64, SIZES(3), &made.targets));
    CHECK_OK(tensor_zeros(place, TENSOR_BOOL, SIZES(3), &made.mask));
    return made;
}

static void operands_end(struct operands *made) {
    tensor_release(&made->matrix);
    tensor_release(&made->other);
    tensor_release(&made->vector);
    tensor_release(&made->whole);
    tensor_release(&made->integers);
    tensor_release(&made->targets);
    tensor_release(&made->mask);
}

static void layers_refuse_what_does_not_fit(const struct operands *in) {
    struct tensor out;
    const struct tensor none = {0};
    CHECK_REFUSED(tensor_linear(in->matrix, in->other, in->vector, &out),
                  "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)");
    CHECK_REFUSED(tensor_linear(in->matrix, in->other, none, &out),
                  "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)");
    CHECK_REFUSED(tensor_addmm(in->vector, in->matrix, in->whole, &out),
                  "The expanded size of the tensor (3) must match the existing size (4) at "
                  "non-singleton dimension 1.  Target sizes: [2, 3].  Tensor sizes: [4]");
    CHECK_REFUSED(tensor_addmm(in->matrix, in->matrix, in->whole, &out),
                  "The expanded size of the tensor (3)");
    CHECK_REFUSED(tensor_linear(in->matrix, in->whole, none, &out), "to have the same dtype");
    CHECK_REFUSED(tensor_gelu(in->integers, &out),
                  "\"GeluCUDAKernelImpl\" not implemented for 'Long'");
    CHECK_REFUSED(tensor_softmax(in->integers, -1, &out),
                  "\"host_softmax\" not implemented for 'Long'");
    CHECK_REFUSED(tensor_softmax(in->matrix, 2, &out), "Dimension out of range");
    CHECK_REFUSED(tensor_layer_norm(in->matrix, (int64_t[]){4}, 1, none, none, 1e-5, &out),
                  "Given normalized_shape=[4], expected input with shape [*, 4], but got input of "
                  "size[2, 3]");
    CHECK_REFUSED(tensor_layer_norm(in->matrix, (int64_t[]){3}, 1, in->vector, none, 1e-5, &out),
                  "Expected weight to be of same shape as normalized_shape, but got weight of "
                  "shape [4] and normalized_shape = [3]");
    CHECK_REFUSED(tensor_embedding(in->vector, in->integers, &out), "'weight' must be 2-D");
    CHECK_REFUSED(tensor_embedding(in->matrix, in->vector, &out),
                  "Expected tensor for argument #1 'indices' to have one of the following scalar "
                  "types: Long, Int; but got torch.");
    CHECK_REFUSED(tensor_masked_fill(in->matrix, in->matrix, tensor_integer(0), &out),
                  "masked_fill_ only supports boolean masks, but got mask with dtype float");
    CHECK_REFUSED(tensor_masked_fill(in->integers, in->mask, tensor_floating(0.5), &out),
                  "value cannot be converted to type long int without overflow");
    CHECK_REFUSED(tensor_dropout(in->matrix, 1.5, NULL, &out),
                  "dropout probability has to be between 0 and 1, but got 1.5");
    CHECK_REFUSED(tensor_mean(in->integers, &out), "mean(): could not infer output dtype");
}

static struct tensor ones_on(struct tensor_place place, enum tensor_type type, const int64_t *sizes,
                             int rank) {
    struct tensor made;
    CHECK_OK(tensor_ones(&place, type, sizes, rank, &made));
    return made;
}

static void a_bias_of_another_type_is_refused(const struct operands *in) {
    const struct tensor_place place = tensor_place(in->matrix);
    struct tensor weight = ones_on(place, TENSOR_FLOAT32, SIZES(4, 3)), out;
    struct tensor bias = ones_on(place, TENSOR_FLOAT64, SIZES(4));
    CHECK_REFUSED(tensor_linear(in->matrix, weight, bias, &out),
                  "self and mat2 must have the same dtype, but got Double and Float");
    tensor_release(&weight);
    tensor_release(&bias);
}

// Keys and values that are not as many; and dropout without numbers to draw from.
static void attention_reads_nothing_that_is_not_there(const struct operands *in) {
    const struct tensor_place place = tensor_place(in->matrix);
    struct tensor keys = ones_on(place, TENSOR_FLOAT32, SIZES(4, 3)), out;
    struct tensor values = ones_on(place, TENSOR_FLOAT32, SIZES(5, 3));
    CHECK_REFUSED(tensor_scaled_dot_product_attention(in->matrix, keys, values, NULL, &out),
                  "mat1 and mat2 shapes cannot be multiplied (2x4 and 5x3)");
    CHECK_REFUSED(tensor_scaled_dot_product_attention(
                      in->matrix, keys, keys, &(struct tensor_attention){.probability = 0.5}, &out),
                  "dropout needs a generator");
    tensor_release(&keys);
    tensor_release(&values);
}

static void losses_and_attention_refuse_what_does_not_fit(const struct operands *in) {
    struct tensor out;
    CHECK_REFUSED(tensor_cross_entropy(in->matrix, in->targets, IGNORED, TENSOR_MEAN, &out),
                  "Expected input batch_size (2) to match target batch_size (3).");
    CHECK_REFUSED(tensor_cross_entropy(in->matrix, in->integers, IGNORED, TENSOR_MEAN, &out),
                  "0D or 1D target tensor expected, multi-target not supported");
    CHECK_REFUSED(tensor_cross_entropy(in->other, in->vector, IGNORED, TENSOR_MEAN, &out),
                  "expected scalar type Long but found Float");
    CHECK_REFUSED(
        tensor_scaled_dot_product_attention(in->vector, in->matrix, in->matrix, NULL, &out),
        "to all be  at least 2 dimensional, but got Query dim: 1, Key dim: 2, Value dim: 2");
    CHECK_REFUSED(tensor_scaled_dot_product_attention(in->matrix, in->whole, in->whole, NULL, &out),
                  "got query.dtype: float key.dtype: double and value.dtype: double instead.");
    CHECK_REFUSED(tensor_scaled_dot_product_attention(in->matrix, in->other, in->other, NULL, &out),
                  "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)");
    CHECK_REFUSED(tensor_scaled_dot_product_attention(
                      in->matrix, in->other, in->other,
                      &(struct tensor_attention){.form = TENSOR_ATTENTION_FUSED}, &out),
                  "No available kernel. Aborting execution.");
    CHECK_REFUSED(tensor_scaled_dot_product_attention(
                      in->matrix, in->matrix, in->matrix,
                      &(struct tensor_attention){.is_causal = true, .mask = in->mask}, &out),
                  "Explicit attn_mask should not be set when is_causal=True");
}

static void optimizers_refuse_what_does_not_fit(const struct operands *in) {
    const struct tensor_adamw adamw = {.rate = 1};
    const struct tensor_sgd sgd = {.rate = 1, .momentum = 0.5};
    struct tensor turned;
    struct tensor both[] = {in->matrix, in->matrix}, wrong[] = {in->matrix, in->other};
    const uint32_t version = testing_version(in->matrix);
    CHECK_REFUSED(tensor_adamw_step(&adamw, 1, 2, both, wrong, both, both),
                  "adamw: parameter 1 has shape [2, 3], its gradient [4, 5]");
    CHECK_REFUSED(tensor_adamw_step(&adamw, 0, 2, both, both, both, both), "steps count from 1");
    CHECK_REFUSED(tensor_adamw_step(&adamw, 1, 1, &in->integers, both, both, both),
                  "\"adamw\" not implemented for 'Long'");
    CHECK_REFUSED(tensor_sgd_step(&sgd, 2, both, both, NULL), "parameter 0 has no momentum_buffer");
    CHECK_OK(tensor_transpose(in->whole, 0, 1, &turned));
    CHECK_REFUSED(tensor_sgd_step(&sgd, 1, &in->whole, &turned, &in->whole),
                  "sgd: parameter 0 has strides [3, 1], its gradient [1, 3]");
    CHECK_REFUSED(tensor_addcmul_(in->matrix, in->matrix, in->other, 1),
                  "addcmul_: shapes [2, 3] and [4, 5] differ");
    BASE_CHECK_EQ(testing_version(in->matrix), version); // nothing was written
    tensor_release(&turned);
}

// What is written must be writable, and all of it is looked at before the first write.
static void what_cannot_be_written_is_refused_before_all(const struct operands *in) {
    const struct tensor_place place = tensor_place(in->matrix);
    const struct tensor_adamw adamw = {.rate = 1};
    const uint32_t version = testing_version(in->matrix);
    struct tensor row = ones_on(place, TENSOR_FLOAT32, SIZES(1, 3)), wide, expanded, gaps, gone;
    wide = ones_on(place, TENSOR_FLOAT32, SIZES(2, 6));
    CHECK_OK(tensor_expand(row, SIZES(2, 3), &expanded));
    CHECK_OK(tensor_slice(wide, 1, 0, 6, 2, &gaps));
    tensor_set_inference_mode(true);
    gone = ones_on(place, TENSOR_FLOAT32, SIZES(2, 3));
    tensor_set_inference_mode(false);
    const struct tensor good[] = {in->matrix, in->matrix}, overlapping[] = {in->matrix, expanded},
                        inference[] = {in->matrix, gone}, spread[] = {in->matrix, gaps};
    CHECK_REFUSED(tensor_clip_grad_norm_(2, overlapping, 1, NULL), "single memory location");
    CHECK_REFUSED(tensor_addcmul_(expanded, in->matrix, in->matrix, 1), "single memory location");
    CHECK_REFUSED(tensor_clip_grad_norm_(2, inference, 1, NULL), "Inplace update to inference");
    CHECK_REFUSED(tensor_adamw_step(&adamw, 1, 2, spread, good, good, good),
                  "adamw: the elements of parameter 1 have gaps or share memory");
    CHECK_REFUSED(tensor_adamw_step(&adamw, 1, 2, inference, good, good, good),
                  "Inplace update to inference");
    CHECK_REFUSED(tensor_adamw_step(&adamw, 1, 2, good, good, inference, good),
                  "Inplace update to inference");
    CHECK_REFUSED(tensor_adamw_step(&adamw, 1, 2, good, good, good, inference),
                  "Inplace update to inference");
    BASE_CHECK_EQ(testing_version(in->matrix), version);
    double *numbers = nn_read(in->matrix);
    for (int i = 0; i < 6; i++)
        BASE_CHECK(numbers[i] == 1);
    free(numbers);
    tensor_release(&row);
    tensor_release(&wide);
    tensor_release(&expanded);
    tensor_release(&gaps);
    tensor_release(&gone);
}

static void places_do_not_mix(const struct operands *a, const struct operands *b) {
    struct tensor out;
    const struct tensor none = {0};
    static const char *const part = "Expected all tensors to be on the same device";
    CHECK_REFUSED(tensor_linear(a->matrix, b->matrix, none, &out), part);
    CHECK_REFUSED(tensor_embedding(a->matrix, b->integers, &out), part);
    CHECK_REFUSED(tensor_masked_fill(a->matrix, b->mask, tensor_integer(0), &out), part);
    CHECK_REFUSED(tensor_layer_norm(a->other, (int64_t[]){4, 5}, 2, b->other, none, 1, &out), part);
    CHECK_REFUSED(tensor_scaled_dot_product_attention(a->matrix, b->matrix, b->matrix, NULL, &out),
                  part);
    CHECK_REFUSED(tensor_scaled_dot_product_attention(a->matrix, a->matrix, b->matrix, NULL, &out),
                  part);
    CHECK_REFUSED(tensor_cross_entropy(a->whole, b->targets, IGNORED, TENSOR_MEAN, &out), part);
    CHECK_REFUSED(tensor_sgd_step(&(struct tensor_sgd){.rate = 1}, 1, &a->matrix, &b->matrix, NULL),
                  part);
    CHECK_REFUSED(tensor_addcdiv_(a->matrix, a->matrix, b->matrix, 1), part);
    const struct tensor both[] = {a->matrix, b->matrix};
    CHECK_REFUSED(tensor_clip_grad_norm_(2, both, 1, NULL), part);
    struct tensor weight = ones_on(tensor_place(a->matrix), TENSOR_FLOAT32, SIZES(4, 3));
    CHECK_REFUSED(tensor_linear(a->matrix, weight, b->vector, &out), part);
    tensor_release(&weight);
}

// A device would fault; the CPU refuses.
static void an_index_that_is_none_is_refused(const struct operands *in) {
    struct tensor out;
    CHECK_OK(tensor_fill_(in->integers, tensor_operand_integer(2)));
    CHECK_REFUSED(tensor_embedding(in->matrix, in->integers, &out), "index out of range in self");
    BASE_CHECK_EQ(strcmp(tensor_error_class(), "IndexError"), 0);
    CHECK_OK(tensor_fill_(in->targets, tensor_operand_integer(-1)));
    CHECK_REFUSED(tensor_cross_entropy(in->whole, in->targets, IGNORED, TENSOR_MEAN, &out),
                  "index out of range");
}

int main(void) {
    struct tensor_place places[NN_PLACES];
    struct operands in[NN_PLACES];
    for (int which = 0; which < NN_PLACES; which++) {
        places[which] = nn_place(which);
        in[which] = operands_make(&places[which]);
        const int64_t blocks = testing_live_blocks(&places[which]);
        layers_refuse_what_does_not_fit(&in[which]);
        losses_and_attention_refuse_what_does_not_fit(&in[which]);
        optimizers_refuse_what_does_not_fit(&in[which]);
        a_bias_of_another_type_is_refused(&in[which]);
        attention_reads_nothing_that_is_not_there(&in[which]);
        what_cannot_be_written_is_refused_before_all(&in[which]);
        BASE_CHECK_EQ(testing_live_blocks(&places[which]), blocks);
    }
    places_do_not_mix(&in[0], &in[1]);
    an_index_that_is_none_is_refused(&in[0]);
    for (int which = 0; which < NN_PLACES; which++)
        operands_end(&in[which]);
    for (int which = 0; which < NN_PLACES; which++)
        allocator_destroy(places[which].allocator);
    return 0;
}
