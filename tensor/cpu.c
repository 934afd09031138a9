// Element work on the CPU by plain loops. See backend.h.
//
// Numbers are widened to double or int64, computed, and rounded to the type that the operation
// computes in: for one operation that gives the same as computing in that type, since double has
// more than twice its bits.
#include "tensor/backend.h"

#include "base/check.h"
#include "base/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct number {
    double floating; // of floating types
    int64_t integer; // of the others
};

static struct number load(const void *data, enum tensor_type type) {
    struct number number = {0};
    switch (type) {
#define LOAD(name, native)                                                                         \
    case TENSOR_##name: {                                                                          \
        native value;                                                                              \
        memcpy(&value, data, sizeof value);                                                        \
        number.integer = (int64_t)value;                                                           \
        break;                                                                                     \
    }
        LOAD(UINT8, uint8_t)
        LOAD(INT8, int8_t)
        LOAD(INT16, int16_t)
        LOAD(INT32, int32_t)
        LOAD(INT64, int64_t)
#undef LOAD
    case TENSOR_BOOL:
        number.integer = *(const uint8_t *)data != 0;
        break;
    case TENSOR_FLOAT16:
    case TENSOR_BFLOAT16: {
        uint16_t bits;
        memcpy(&bits, data, sizeof bits);
        number.floating = (double)(type == TENSOR_FLOAT16 ? base_half_to_float(bits)
                                                          : base_bfloat16_to_float(bits));
        break;
    }
    case TENSOR_FLOAT32: {
        float value;
        memcpy(&value, data, sizeof value);
        number.floating = (double)value;
        break;
    }
    case TENSOR_FLOAT64:
        memcpy(&number.floating, data, sizeof number.floating);
        break;
    case TENSOR_TYPE_COUNT:
        break;
    }
    return number;
}

static void store(void *data, enum tensor_type type, struct number number) {
    switch (type) {
#define STORE(name, native)                                                                        \
    case TENSOR_##name: {                                                                          \
        const native value = (native)number.integer;                                               \
        memcpy(data, &value, sizeof value);                                                        \
        break;                                                                                     \
    }
        STORE(UINT8, uint8_t)
        STORE(INT8, int8_t)
        STORE(INT16, int16_t)
        STORE(INT32, int32_t)
        STORE(INT64, int64_t)
#undef STORE
    case TENSOR_BOOL:
        *(uint8_t *)data = number.integer != 0;
        break;
    case TENSOR_FLOAT16:
    case TENSOR_BFLOAT16: {
        const float value = (float)number.floating;
        const uint16_t bits =
            type == TENSOR_FLOAT16 ? base_half_from_float(value) : base_bfloat16_from_float(value);
        memcpy(data, &bits, sizeof bits);
        break;
    }
    case TENSOR_FLOAT32: {
        const float value = (float)number.floating;
        memcpy(data, &value, sizeof value);
        break;
    }
    case TENSOR_FLOAT64:
        memcpy(data, &number.floating, sizeof number.floating);
        break;
    case TENSOR_TYPE_COUNT:
        break;
    }
}

static double rounded(double value, enum tensor_type compute) {
    return compute == TENSOR_FLOAT64 ? value : (double)(float)value;
}

// A double outside int64 has no value there; PyTorch's conversion gives the smallest one on x86.
static int64_t to_integer(double value) {
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

static int64_t integer_in(int64_t value, enum tensor_type type) {
    switch (type) {
    case TENSOR_UINT8:
        return (uint8_t)value;
    case TENSOR_INT8:
        return (int8_t)value;
    case TENSOR_INT16:
        return (int16_t)value;
    case TENSOR_INT32:
        return (int32_t)value;
    case TENSOR_BOOL:
        return value != 0;
    default:
        return value;
    }
}

static struct number convert(struct number number, enum tensor_type from, enum tensor_type to) {
    const bool is_floating = tensor_type_is_floating(from);
    if (tensor_type_is_floating(to)) {
        // 16-bit types are computed in float and rounded when stored.
        if (is_floating)
            number.floating = rounded(number.floating, to);
        else if (to == TENSOR_FLOAT64)
            number.floating = (double)number.integer;
        else
            number.floating = (double)(float)number.integer;
    } else if (is_floating) {
        number.integer =
            to == TENSOR_BOOL ? number.floating != 0 : integer_in(to_integer(number.floating), to);
    } else {
        number.integer = integer_in(number.integer, to);
    }
    return number;
}

static struct number scalar_in(struct tensor_scalar scalar, enum tensor_type type) {
    const bool is_floating = scalar.kind == TENSOR_SCALAR_FLOATING;
    const struct number number = {.floating = scalar.floating, .integer = scalar.integer};
    return convert(number, is_floating ? TENSOR_FLOAT64 : TENSOR_INT64, type);
}

static double compute_floating(const struct tensor_loop *loop, double a, double b, double alpha,
                               double out) {
    switch (loop->operation) {
    case TENSOR_COPY:
        return a;
    case TENSOR_FILL:
        return b;
    case TENSOR_ADD:
        return a + rounded(alpha * b, loop->compute);
    case TENSOR_SUB:
        return a - rounded(alpha * b, loop->compute);
    case TENSOR_MUL:
        return a * b;
    case TENSOR_DIV:
        return a / b;
    case TENSOR_EQ:
        return a == b;
    case TENSOR_NEG:
        return -a;
    case TENSOR_RELU:
        return a < 0 ? 0 : a; // -0 and what is no number stay
    case TENSOR_SQRT:
        return sqrt(a);
    case TENSOR_RELU_GRADIENT:
        return b <= 0 ? 0 : a;
    case TENSOR_ACCUMULATE:
        return out + a;
    default: // tensor__cpu_pointwise
        break;
    }
    return 0;
}

// Wraps round as two's complement does.
static int64_t compute_integer(const struct tensor_loop *loop, int64_t a, int64_t b, int64_t alpha,
                               int64_t out) {
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b, scaled = (uint64_t)alpha * ub;
    switch (loop->operation) {
    case TENSOR_COPY:
        return a;
    case TENSOR_FILL:
        return b;
    case TENSOR_ADD:
        return (int64_t)(ua + scaled);
    case TENSOR_SUB:
        return (int64_t)(ua - scaled);
    case TENSOR_MUL:
        return (int64_t)(ua * ub);
    case TENSOR_EQ:
        return a == b;
    case TENSOR_NEG:
        return (int64_t)-ua;
    case TENSOR_RELU:
        return a > 0 ? a : 0;
    case TENSOR_RELU_GRADIENT:
        return b <= 0 ? 0 : a;
    case TENSOR_ACCUMULATE:
        return (int64_t)(ua + (uint64_t)out);
    default:
        break;
    }
    BASE_CHECK(false); // of floating results only
    return 0;
}

// Places of the loop's operands in one step; moves on in logical order. False at the end.
struct walk {
    int64_t index[TENSOR_RANK_MAX];
    char *out, *a, *b;
};

static bool walk_next(struct walk *walk, const struct tensor_loop *loop, const size_t *item_sizes) {
    for (int dim = loop->rank - 1; dim >= 0; dim--) {
        const bool is_last = ++walk->index[dim] == loop->sizes[dim];
        const int64_t steps = is_last ? 1 - loop->sizes[dim] : 1;
        walk->out += steps * loop->out.strides[dim] * (int64_t)item_sizes[0];
        if (walk->a != NULL)
            walk->a += steps * loop->a.strides[dim] * (int64_t)item_sizes[1];
        if (walk->b != NULL)
            walk->b += steps * loop->b.strides[dim] * (int64_t)item_sizes[2];
        if (!is_last)
            return true;
        walk->index[dim] = 0;
    }
    return false;
}

static bool is_empty(const struct tensor_loop *loop) {
    for (int dim = 0; dim < loop->rank; dim++)
        if (loop->sizes[dim] == 0)
            return true;
    return false;
}

static void item_sizes_of(const struct tensor_loop *loop, size_t item_sizes[3]) {
    item_sizes[0] = tensor_type_size(loop->out.type);
    item_sizes[1] = loop->a.data == NULL ? 0 : tensor_type_size(loop->a.type);
    item_sizes[2] = loop->b.data == NULL ? 0 : tensor_type_size(loop->b.type);
}

static enum base_status cpu_pointwise(const struct tensor_loop *loop, cudaStream_t stream) {
    (void)stream;
    if (loop->operation > TENSOR_ACCUMULATE)
        return tensor__cpu_pointwise(loop);
    if (is_empty(loop))
        return BASE_OK;
    size_t item_sizes[3];
    item_sizes_of(loop, item_sizes);
    const enum tensor_type compute = loop->compute;
    const bool is_floating = tensor_type_is_floating(compute);
    // Results are of the type computed in, but for comparisons.
    const enum tensor_type result = loop->operation == TENSOR_EQ ? TENSOR_BOOL : compute;
    const struct number scalar = scalar_in(loop->scalar, compute),
                        alpha = scalar_in(loop->alpha, compute);
    struct walk walk = {.out = loop->out.data, .a = loop->a.data, .b = loop->b.data};
    do {
        struct number a = scalar, b = scalar, out = {0}, value = {0};
        if (walk.a != NULL)
            a = convert(load(walk.a, loop->a.type), loop->a.type, compute);
        if (walk.b != NULL)
            b = convert(load(walk.b, loop->b.type), loop->b.type, compute);
        if (loop->operation == TENSOR_ACCUMULATE)
            out = convert(load(walk.out, loop->out.type), loop->out.type, compute);
        if (is_floating) {
            value.floating =
                compute_floating(loop, a.floating, b.floating, alpha.floating, out.floating);
            value.floating = rounded(value.floating, compute);
            value.integer = value.floating != 0;
        } else {
            value.integer = compute_integer(loop, a.integer, b.integer, alpha.integer, out.integer);
            value.integer = integer_in(value.integer, result);
        }
        store(walk.out, loop->out.type, convert(value, result, loop->out.type));
    } while (walk_next(&walk, loop, item_sizes));
    return BASE_OK;
}

// The dimensions that stay outside, the ones that go inside: one sum at a time.
static enum base_status cpu_sum(const struct tensor_loop *loop, const bool *is_reduced,
                                cudaStream_t stream) {
    (void)stream;
    struct tensor_loop outer = *loop, inner = *loop;
    outer.rank = inner.rank = 0;
    for (int dim = 0; dim < loop->rank; dim++) {
        struct tensor_loop *part = is_reduced[dim] ? &inner : &outer;
        part->sizes[part->rank] = loop->sizes[dim];
        part->out.strides[part->rank] = loop->out.strides[dim];
        part->a.strides[part->rank++] = loop->a.strides[dim];
    }
    if (is_empty(&outer))
        return BASE_OK;
    size_t item_sizes[3];
    item_sizes_of(loop, item_sizes);
    const bool is_floating = tensor_type_is_floating(loop->compute);
    const bool is_nothing = is_empty(&inner);
    struct walk place = {.out = loop->out.data, .a = loop->a.data};
    do {
        struct number sum = {0};
        struct walk walk = {.out = place.out, .a = place.a};
        while (!is_nothing) {
            const struct number value =
                convert(load(walk.a, loop->a.type), loop->a.type, loop->compute);
            sum.floating += value.floating;
            sum.integer = (int64_t)((uint64_t)sum.integer + (uint64_t)value.integer);
            if (!walk_next(&walk, &inner, item_sizes))
                break;
        }
        if (is_floating)
            sum.floating = rounded(sum.floating, loop->compute);
        store(place.out, loop->out.type, convert(sum, loop->compute, loop->out.type));
    } while (walk_next(&place, &outer, item_sizes));
    return BASE_OK;
}

static const char *at(const void *data, enum tensor_type type, const int64_t strides[3], int64_t i,
                      int64_t j, int64_t k) {
    return (const char *)data +
           (i * strides[0] + j * strides[1] + k * strides[2]) * (int64_t)tensor_type_size(type);
}

static enum base_status cpu_product(const struct tensor_product *product, cudaStream_t stream) {
    (void)stream;
    const enum tensor_type type = product->type;
    for (int64_t batch = 0; batch < product->batch; batch++)
        for (int64_t row = 0; row < product->m; row++)
            for (int64_t column = 0; column < product->n; column++) {
                struct number sum = {0};
                for (int64_t k = 0; k < product->k; k++) {
                    const struct number a =
                        load(at(product->a, type, product->a_strides, batch, row, k), type);
                    const struct number b =
                        load(at(product->b, type, product->b_strides, batch, k, column), type);
                    sum.floating += a.floating * b.floating;
                    sum.integer = (int64_t)((uint64_t)sum.integer +
                                            (uint64_t)a.integer * (uint64_t)b.integer);
                }
                store((char *)(uintptr_t)at(product->out, type, product->out_strides, batch, row,
                                            column),
                      type, sum);
            }
    return BASE_OK;
}

const struct tensor_backend tensor__cpu = {
    .pointwise = cpu_pointwise,
    .sum = cpu_sum,
    .product = cpu_product,
    .model = &tensor__cpu_model};
