// See serving_model.h.
#include "workload/serving_model.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

#define NORM_EPSILON 1e-5
#define TURN_BASE 10000.0 // of the slowest position
#define WHOLE_COUNT 2     // parameters that are no layer's

static const struct tensor none;

static void assign(struct tensor *self, struct tensor value) {
    tensor_release(self);
    *self = value;
}

//------------------------------------------------------------------------------------------------
// Parameters

static int sizes_of(const struct serving_shape *shape, int index, int64_t sizes[2]) {
    const int64_t width = shape->width, rows = shape->groups * serving_head_size(shape);
    const struct {
        int rank;
        int64_t sizes[2];
    } parts[] = {
        [SERVING_NORM1] = {1, {width, 1}},           [SERVING_QUERY] = {2, {width, width}},
        [SERVING_KEY] = {2, {rows, width}},          [SERVING_VALUE] = {2, {rows, width}},
        [SERVING_JOIN] = {2, {width, width}},        [SERVING_NORM2] = {1, {width, 1}},
        [SERVING_GATE] = {2, {shape->inner, width}}, [SERVING_UP] = {2, {shape->inner, width}},
        [SERVING_DOWN] = {2, {width, shape->inner}},
    };
    if (index < WHOLE_COUNT) {
        sizes[0] = index == 0 ? shape->vocabulary : width;
        sizes[1] = index == 0 ? width : 1;
        return index == 0 ? 2 : 1;
    }
    const int which = (index - WHOLE_COUNT) % SERVING_LAYER_PARAMETER_COUNT;
    sizes[0] = parts[which].sizes[0];
    sizes[1] = parts[which].sizes[1];
    return parts[which].rank;
}

// VALUES, which go, as TYPE in PLACE.
static enum base_status values_place(const struct tensor_place *place,
                                     const struct tensor_place *host, enum tensor_type type,
                                     const int64_t *sizes, int rank, float *values,
                                     struct tensor *result) {
    struct tensor wide, low = none;
    enum base_status status = tensor_from_bytes(host, TENSOR_FLOAT32, sizes, rank, values, &wide);
    free(values);
    if (status != BASE_OK) return status;
    status = tensor_to(wide, type, TENSOR_PRESERVE, &low);
    tensor_release(&wide);
    if (status == BASE_OK) status = tensor_to_place(low, place, false, result);
    tensor_release(&low);
    return status;
}

// Norms 1; matrices uniform, so that rows keep their size.
static enum base_status parameter_create(const struct tensor_place *place,
                                         const struct tensor_place *host,
                                         const struct serving_shape *shape, int index,
                                         struct base_random *random, bool is_empty,
                                         struct tensor *parameter) {
    int64_t sizes[2];
    const int rank = sizes_of(shape, index, sizes);
    const size_t count = (size_t)(sizes[0] * sizes[1]);
    const double reach = sqrt(3.0 / (double)sizes[1]);
    if (is_empty)
        return tensor_empty(place, shape->type, sizes, rank, TENSOR_CONTIGUOUS, parameter);
    float *values = malloc(count * sizeof *values);
    if (values == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu weights", count);
    for (size_t i = 0; i < count; ++i)
        values[i] = rank == 1 ? 1 : (float)(reach * (2 * base_random_unit(random) - 1));
    return values_place(place, host, shape->type, sizes, rank, values, parameter);
}

// FUNCTION of the angle by which each pair of columns is turned at each position.
static enum base_status turns_create(const struct tensor_place *place,
                                     const struct tensor_place *host,
                                     const struct serving_shape *shape, double (*function)(double),
                                     struct tensor *result) {
    const int64_t pairs = serving_head_size(shape) / 2, sizes[] = {shape->context, pairs};
    float *values = malloc((size_t)(sizes[0] * sizes[1]) * sizeof *values);
    if (values == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld positions",
                               (long long)shape->context);
    for (int64_t position = 0; position < shape->context; ++position)
        for (int64_t pair = 0; pair < pairs; ++pair) {
            const double speed = pow(TURN_BASE, -(double)pair / (double)pairs);
            values[position * pairs + pair] = (float)function((double)position * speed);
        }
    return values_place(place, host, shape->type, sizes, 2, values, result);
}

enum base_status serving_model_create(const struct tensor_place *place,
                                      const struct tensor_place *host,
                                      const struct serving_shape *shape, uint64_t seed,
                                      bool is_empty, struct serving_model **result) {
    struct serving_model *model = calloc(1, sizeof *model);
    struct base_random random = base_random_init(seed, "weights");
    enum base_status status = BASE_OK;
    if (model == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    model->shape = *shape;
    model->parameter_count = WHOLE_COUNT + shape->layers * SERVING_LAYER_PARAMETER_COUNT;
    model->parameters = calloc((size_t)model->parameter_count, sizeof *model->parameters);
    if (model->parameters == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no host memory for a model");
    for (int i = 0; i < model->parameter_count && status == BASE_OK; ++i)
        status = parameter_create(place, host, shape, i, &random, is_empty, &model->parameters[i]);
    if (status == BASE_OK) status = turns_create(place, host, shape, cos, &model->cosines);
    if (status == BASE_OK) status = turns_create(place, host, shape, sin, &model->sines);
    if (status == BASE_OK)
        *result = model;
    else
        serving_model_destroy(model);
    return status;
}

void serving_model_destroy(struct serving_model *model) {
    if (model == NULL) return;
    for (int i = 0; model->parameters != NULL && i < model->parameter_count; ++i)
        tensor_release(&model->parameters[i]);
    tensor_release(&model->cosines);
    tensor_release(&model->sines);
    free(model->parameters);
    free(model);
}

static struct tensor parameter_of(const struct serving_model *model, int layer,
                                  enum serving_parameter which) {
    return model->parameters[WHOLE_COUNT + layer * SERVING_LAYER_PARAMETER_COUNT + (int)which];
}

//------------------------------------------------------------------------------------------------
// Positions

// What a run knows of its rows.
struct pass {
    const struct serving_model *model;
    struct serving_cache *cache;
    const struct serving_batch *batch;
    struct tensor cosines, sines; // of each row: [rows, 1, half a head size]
};

static enum base_status turns_of_rows(struct tensor turns, struct tensor positions,
                                      struct tensor *result) {
    struct tensor rows;
    enum base_status status = tensor_embedding(turns, positions, &rows);
    if (status != BASE_OK) return status;
    status = tensor_unsqueeze(rows, 1, result);
    tensor_release(&rows);
    return status;
}

// A FACTOR_A + SIGN * B FACTOR_B.
static enum base_status sum_of_products(struct tensor a, struct tensor factor_a, struct tensor b,
                                        struct tensor factor_b, int sign, struct tensor *result) {
    struct tensor first, second = none;
    enum base_status status = tensor_mul(a, tensor_operand_tensor(factor_a), &first);
    if (status != BASE_OK) return status;
    status = tensor_mul(b, tensor_operand_tensor(factor_b), &second);
    if (status == BASE_OK)
        status = tensor_add(first, tensor_operand_tensor(second), tensor_integer(sign), result);
    tensor_release(&first);
    tensor_release(&second);
    return status;
}

// *self, [rows, heads, head size], becomes what it is at its position: each column of the first
// half and its like of the second turn about their angle.
static enum base_status turn(const struct pass *pass, struct tensor *self) {
    const struct tensor cosines = pass->cosines, sines = pass->sines;
    struct tensor_list halves;
    struct tensor turned[2] = {none, none}, whole = none;
    enum base_status status = tensor_chunk(*self, 2, -1, &halves);
    if (status != BASE_OK) return status;
    const struct tensor x = halves.tensors[0], y = halves.tensors[1];
    status = sum_of_products(x, cosines, y, sines, -1, &turned[0]);
    if (status == BASE_OK) status = sum_of_products(y, cosines, x, sines, 1, &turned[1]);
    if (status == BASE_OK) status = tensor_cat(turned, 2, -1, &whole);
    tensor_release(&turned[0]);
    tensor_release(&turned[1]);
    tensor_list_free(&halves);
    if (status == BASE_OK) assign(self, whole);
    return status;
}

//------------------------------------------------------------------------------------------------
// Attention

// Rows of HEADS heads, by WEIGHT.
static enum base_status heads_of(const struct pass *pass, struct tensor input, struct tensor weight,
                                 int64_t heads, struct tensor *result) {
    struct tensor rows;
    enum base_status status = tensor_linear(input, weight, none, &rows);
    if (status != BASE_OK) return status;
    const int64_t sizes[] = {tensor_size(rows, 0), heads, serving_head_size(&pass->model->shape)};
    status = tensor_view(rows, sizes, 3, result);
    tensor_release(&rows);
    return status;
}

// [rows, heads * head size] as [groups, PER_GROUP, rows, head size], a view.
static enum base_status by_group(const struct serving_shape *shape, struct tensor self,
                                 int64_t per_group, struct tensor *result) {
    const int64_t sizes[] = {tensor_size(self, 0), shape->groups, per_group,
                             serving_head_size(shape)};
    struct tensor apart;
    enum base_status status = tensor_view(self, sizes, 4, &apart);
    if (status != BASE_OK) return status;
    status = tensor_permute(apart, (int64_t[]){1, 2, 0, 3}, 4, result);
    tensor_release(&apart);
    return status;
}

// Keys or values, which each query of a group sees.
static enum base_status for_each_query(const struct serving_shape *shape, struct tensor self,
                                       struct tensor *result) {
    const int64_t sizes[] = {shape->groups, shape->heads / shape->groups, tensor_size(self, 0),
                             serving_head_size(shape)};
    struct tensor grouped;
    enum base_status status = by_group(shape, self, 1, &grouped);
    if (status != BASE_OK) return status;
    status = tensor_expand(grouped, sizes, 4, result);
    tensor_release(&grouped);
    return status;
}

// QUERIES of one sequence, [rows, width], over all KEYS and VALUES that it has.
static enum base_status attend(const struct serving_shape *shape, struct tensor queries,
                               struct tensor keys, struct tensor values, struct tensor *result) {
    const int64_t rows = tensor_size(queries, 0);
    const struct tensor_attention form = {.is_causal = true, .shift = tensor_size(keys, 0) - rows};
    struct tensor query, key = none, value = none, heads = none, by_row = none;
    enum base_status status = by_group(shape, queries, shape->heads / shape->groups, &query);
    if (status != BASE_OK) return status;
    status = for_each_query(shape, keys, &key);
    if (status == BASE_OK) status = for_each_query(shape, values, &value);
    if (status == BASE_OK)
        status = tensor_scaled_dot_product_attention(query, key, value, &form, &heads);
    tensor_release(&query);
    tensor_release(&key);
    tensor_release(&value);
    if (status == BASE_OK) status = tensor_permute(heads, (int64_t[]){2, 0, 1, 3}, 4, &by_row);
    tensor_release(&heads);
    if (status == BASE_OK)
        status = tensor_reshape(by_row, (int64_t[]){rows, shape->width}, 2, result);
    tensor_release(&by_row);
    return status;
}

// Rows FIRST to FIRST + count of SELF, [rows, heads, head size], as [count, heads * head size].
static enum base_status rows_of(struct tensor self, int64_t first, int64_t count,
                                struct tensor *result) {
    struct tensor rows;
    enum base_status status = tensor_narrow(self, 0, first, count, &rows);
    if (status != BASE_OK) return status;
    status = tensor_flatten(rows, 1, 2, result);
    tensor_release(&rows);
    return status;
}

// The sequence whose rows begin at FIRST: its keys and values go to the cache.
static enum base_status sequence_attend(const struct pass *pass, int layer,
                                        struct serving_sequence *sequence, int64_t first,
                                        const struct tensor *qkv, struct tensor *result) {
    struct tensor rows[3] = {none, none, none}, all[2] = {none, none};
    enum base_status status = BASE_OK;
    for (int i = 0; i < 3 && status == BASE_OK; ++i)
        status = rows_of(qkv[i], first, sequence->rows, &rows[i]);
    for (int i = 0; i < 2 && status == BASE_OK; ++i)
        status = serving_cache_append(pass->cache, sequence, layer, i == 1, rows[1 + i], &all[i]);
    if (status == BASE_OK) status = attend(&pass->model->shape, rows[0], all[0], all[1], result);
    for (int i = 0; i < 3; ++i)
        tensor_release(&rows[i]);
    for (int i = 0; i < 2; ++i)
        tensor_release(&all[i]);
    return status;
}

static enum base_status sequences_attend(const struct pass *pass, int layer,
                                         const struct tensor *qkv, struct tensor *result) {
    const int count = pass->batch->count;
    struct tensor *parts = calloc((size_t)count, sizeof *parts);
    enum base_status status = BASE_OK;
    int64_t first = 0;
    if (parts == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %d sequences", count);
    for (int i = 0; i < count && status == BASE_OK; ++i) {
        struct serving_sequence *sequence = pass->batch->sequences[i];
        status = sequence_attend(pass, layer, sequence, first, qkv, &parts[i]);
        first += sequence->rows;
    }
    if (status == BASE_OK) status = tensor_cat(parts, count, 0, result);
    for (int i = 0; i < count; ++i)
        tensor_release(&parts[i]);
    free(parts);
    return status;
}

static enum base_status attention(const struct pass *pass, int layer, struct tensor normed,
                                  struct tensor *result) {
    const struct serving_model *model = pass->model;
    struct tensor qkv[3] = {none, none, none}, joined = none;
    enum base_status status = BASE_OK;
    for (int i = 0; i < 3 && status == BASE_OK; ++i)
        status = heads_of(pass, normed,
                          parameter_of(model, layer, (enum serving_parameter)(SERVING_QUERY + i)),
                          i == 0 ? model->shape.heads : model->shape.groups, &qkv[i]);
    for (int i = 0; i < 2 && status == BASE_OK; ++i)
        status = turn(pass, &qkv[i]);
    if (status == BASE_OK) status = sequences_attend(pass, layer, qkv, &joined);
    for (int i = 0; i < 3; ++i)
        tensor_release(&qkv[i]);
    if (status == BASE_OK)
        status = tensor_linear(joined, parameter_of(model, layer, SERVING_JOIN), none, result);
    tensor_release(&joined);
    return status;
}

//------------------------------------------------------------------------------------------------
// The rest

static enum base_status feed_forward(const struct pass *pass, int layer, struct tensor normed,
                                     struct tensor *result) {
    const struct serving_model *model = pass->model;
    struct tensor gate, open = none, up = none, product = none;
    enum base_status status =
        tensor_linear(normed, parameter_of(model, layer, SERVING_GATE), none, &gate);
    if (status != BASE_OK) return status;
    status = tensor_silu(gate, &open);
    tensor_release(&gate);
    if (status == BASE_OK)
        status = tensor_linear(normed, parameter_of(model, layer, SERVING_UP), none, &up);
    if (status == BASE_OK) status = tensor_mul(open, tensor_operand_tensor(up), &product);
    tensor_release(&open);
    tensor_release(&up);
    if (status == BASE_OK)
        status = tensor_linear(product, parameter_of(model, layer, SERVING_DOWN), none, result);
    tensor_release(&product);
    return status;
}

typedef enum base_status part_function(const struct pass *pass, int layer, struct tensor normed,
                                       struct tensor *result);

// *self becomes itself + PART(norm(itself)).
static enum base_status half_layer(const struct pass *pass, int layer,
                                   enum serving_parameter norm_weight, part_function *part,
                                   struct tensor *self) {
    const int64_t width = pass->model->shape.width;
    struct tensor normed, change = none, sum = none;
    enum base_status status = tensor_rms_norm(
        *self, &width, 1, parameter_of(pass->model, layer, norm_weight), NORM_EPSILON, &normed);
    if (status != BASE_OK) return status;
    status = part(pass, layer, normed, &change);
    tensor_release(&normed);
    if (status == BASE_OK)
        status = tensor_add(*self, tensor_operand_tensor(change), tensor_integer(1), &sum);
    tensor_release(&change);
    if (status == BASE_OK) assign(self, sum);
    return status;
}

static enum base_status logits_of(const struct pass *pass, struct tensor self,
                                  struct tensor *logits) {
    const struct serving_model *model = pass->model;
    struct tensor last, normed = none;
    enum base_status status = tensor_embedding(self, pass->batch->ends, &last);
    if (status != BASE_OK) return status;
    status =
        tensor_rms_norm(last, &model->shape.width, 1, model->parameters[1], NORM_EPSILON, &normed);
    tensor_release(&last);
    if (status == BASE_OK) status = tensor_linear(normed, model->parameters[0], none, logits);
    tensor_release(&normed);
    return status;
}

enum base_status serving_model_run(const struct serving_model *model, struct serving_cache *cache,
                                   const struct serving_batch *batch, struct tensor *logits) {
    struct pass pass = {.model = model, .cache = cache, .batch = batch};
    struct tensor self = none;
    enum base_status status = turns_of_rows(model->cosines, batch->positions, &pass.cosines);
    if (status == BASE_OK) status = turns_of_rows(model->sines, batch->positions, &pass.sines);
    if (status == BASE_OK) status = tensor_embedding(model->parameters[0], batch->tokens, &self);
    for (int layer = 0; layer < model->shape.layers && status == BASE_OK; ++layer) {
        status = half_layer(&pass, layer, SERVING_NORM1, attention, &self);
        if (status == BASE_OK)
            status = half_layer(&pass, layer, SERVING_NORM2, feed_forward, &self);
    }
    tensor_release(&pass.cosines);
    tensor_release(&pass.sines);
    if (status == BASE_OK) status = logits_of(&pass, self, logits);
    tensor_release(&self);
    return status;
}
