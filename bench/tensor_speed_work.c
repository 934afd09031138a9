// Products beside OpenBLAS and element work beside plain loops, on the simulated device and on the
// CPU. Each result is compared with that of the loop before it is timed. See tensor_speed.c.
#include "bench/tensor_speed.h"

#include "base/check.h"
#include "base/half.h"
#include "bench/plain_loop.h"
#include "tensor/nn.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Small integers: every sum is exact in every type.
static int value_at(int64_t i) { return (int)(i % 13) - 6; }

static void *values_make(enum tensor_type type, int64_t count) {
    char *const values = malloc((size_t)count * tensor_type_size(type));
    BASE_CHECK(values != NULL);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)value_at(i);
        if (type == TENSOR_FLOAT32)
            ((float *)(void *)values)[i] = value;
        else if (type == TENSOR_FLOAT64)
            ((double *)(void *)values)[i] = (double)value;
        else
            ((uint16_t *)(void *)values)[i] = base_bfloat16_from_float(value);
    }
    return values;
}

static void compare(struct bench_state *state, struct tensor result, const void *expected) {
    const size_t bytes = (size_t)tensor_numel(result) * tensor_type_size(tensor_type(result));
    void *const read = malloc(bytes);
    BASE_CHECK(read != NULL);
    SPEED_OK(tensor_read(result, read));
    if (memcmp(read, expected, bytes) != 0)
        bench_fail(state, "the tensor's result is not the loop's");
    free(read);
}

//--------------------------------------------------------------------------------------------------
// Products

static void blas_product(int n, const float *a, const float *b, float *out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, out, n);
}

static void measure_blas(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    const int64_t n = measured->size;
    float *const a = values_make(TENSOR_FLOAT32, n * n), *const out = malloc((size_t)(n * n) * 4);
    BASE_CHECK(out != NULL);
    openblas_set_num_threads(1);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++)
            blas_product((int)n, a, a, out);
    free(a);
    free(out);
}

static void measure_product(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    const int64_t n = measured->size;
    struct tensor_place place = speed_place_begin(measured->kind, SIM_NUMERICS_ON);
    float *const values = values_make(TENSOR_FLOAT32, n * n), *const expected =
                                                                  malloc((size_t)(n * n) * 4);
    BASE_CHECK(expected != NULL);
    struct tensor a, product;
    SPEED_OK(tensor_from_bytes(&place, TENSOR_FLOAT32, (const int64_t[]){n, n}, 2, values, &a));
    SPEED_OK(tensor_mm(a, a, &product));
    openblas_set_num_threads(1);
    blas_product((int)n, values, values, expected);
    compare(state, product, expected);
    tensor_release(&product);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            SPEED_OK(tensor_mm(a, a, &product));
            tensor_release(&product);
        }
    tensor_release(&a);
    free(values);
    free(expected);
    speed_place_end(state, &place);
}

//--------------------------------------------------------------------------------------------------
// Element work: 256 KiB of floats, which lie in a cache

#define ROWS 256
#define COLS 256
#define COUNT ((int64_t)ROWS * COLS)

enum element {
    ADD_FLOAT,
    ADD_DOUBLE,
    ADD_BFLOAT16,
    SCALE_FLOAT,
    RELU_FLOAT,
    RELU_BFLOAT16,
    TO_BFLOAT16,
    ADD_PITCHED,
    ADD_TRANSPOSED,
    ADD_ROW,
    SUM_FLOAT,
    ELEMENT_COUNT,
};

static const char *const element_names[ELEMENT_COUNT] = {
    "add_float32",    "add_float64",   "add_bfloat16", "scale_float32",
    "relu_float32",   "relu_bfloat16", "to_bfloat16",  "add_slice",
    "add_transposed", "add_row",       "sum_float32"};

static enum tensor_type type_of(enum element element) {
    if (element == ADD_DOUBLE) return TENSOR_FLOAT64;
    return element == ADD_BFLOAT16 || element == RELU_BFLOAT16 ? TENSOR_BFLOAT16 : TENSOR_FLOAT32;
}

static void run_plain(enum element element, void *out, const void *a, const void *b) {
    switch (element) {
    case ADD_FLOAT:
        bench_loop_add_float(out, a, b, COUNT);
        break;
    case ADD_DOUBLE:
        bench_loop_add_double(out, a, b, COUNT);
        break;
    case ADD_BFLOAT16:
        bench_loop_add_bfloat16(out, a, b, COUNT);
        break;
    case SCALE_FLOAT:
        bench_loop_scale_float(out, a, 3, COUNT);
        break;
    case RELU_FLOAT:
        bench_loop_relu_float(out, a, COUNT);
        break;
    case RELU_BFLOAT16:
        bench_loop_relu_bfloat16(out, a, COUNT);
        break;
    case TO_BFLOAT16:
        bench_loop_to_bfloat16(out, a, COUNT);
        break;
    case ADD_PITCHED:
        bench_loop_add_pitched(out, a, 2 * COLS, b, ROWS, COLS);
        break;
    case ADD_TRANSPOSED:
        bench_loop_add_transposed(out, a, b, ROWS, COLS);
        break;
    case ADD_ROW:
        bench_loop_add_row(out, a, b, ROWS, COLS);
        break;
    case SUM_FLOAT:
        *(float *)out = (float)bench_loop_sum_float(a, COUNT);
        break;
    case ELEMENT_COUNT:
        break;
    }
}

static enum base_status run_tensor(enum element element, struct tensor a, struct tensor b,
                                   struct tensor *out) {
    switch (element) {
    case SCALE_FLOAT:
        return tensor_mul(a, tensor_operand_floating(3), out);
    case RELU_FLOAT:
    case RELU_BFLOAT16:
        return tensor_relu(a, out);
    case TO_BFLOAT16:
        return tensor_to(a, TENSOR_BFLOAT16, TENSOR_PRESERVE, out);
    case SUM_FLOAT:
        return tensor_sum(a, out);
    default:
        return tensor_add(a, tensor_operand_tensor(b), tensor_integer(1), out);
    }
}

// Twice the elements: a slice has a pitch.
struct arrays {
    void *a, *b, *out;
};

static struct arrays arrays_make(enum element element) {
    const struct arrays arrays = {values_make(type_of(element), 2 * COUNT),
                                  values_make(type_of(element), COUNT),
                                  values_make(TENSOR_FLOAT64, COUNT)};
    return arrays;
}

static void arrays_free(struct arrays *arrays) {
    free(arrays->a);
    free(arrays->b);
    free(arrays->out);
}

static void measure_plain(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct arrays arrays = arrays_make((enum element)measured->what);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            run_plain((enum element)measured->what, arrays.out, arrays.a, arrays.b);
            __asm__ volatile("" ::: "memory");
        }
    arrays_free(&arrays);
}

static void tensors_make(enum element element, const struct tensor_place *place,
                         const struct arrays *arrays, struct tensor *a, struct tensor *b) {
    const enum tensor_type type = type_of(element);
    const int64_t columns = element == ADD_PITCHED ? 2 * COLS : COLS;
    const int rank = element == ADD_ROW ? 1 : 2;
    const int64_t *b_sizes = rank == 1 ? (const int64_t[]){COLS} : (const int64_t[]){ROWS, COLS};
    struct tensor whole;
    SPEED_OK(
        tensor_from_bytes(place, type, (const int64_t[]){ROWS, columns}, 2, arrays->a, &whole));
    if (element == ADD_PITCHED)
        SPEED_OK(tensor_slice(whole, 1, 0, COLS, 1, a));
    else if (element == ADD_TRANSPOSED)
        SPEED_OK(tensor_transpose(whole, 0, 1, a));
    else
        *a = tensor_retain(whole);
    tensor_release(&whole);
    SPEED_OK(tensor_from_bytes(place, type, b_sizes, rank, arrays->b, b));
}

static void measure_element(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    const enum element element = (enum element)measured->what;
    struct tensor_place place = speed_place_begin(measured->kind, SIM_NUMERICS_ON);
    struct arrays arrays = arrays_make(element);
    struct tensor a, b, out;
    tensors_make(element, &place, &arrays, &a, &b);
    run_plain(element, arrays.out, arrays.a, arrays.b);
    SPEED_OK(run_tensor(element, a, b, &out));
    compare(state, out, arrays.out);
    tensor_release(&out);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            SPEED_OK(run_tensor(element, a, b, &out));
            tensor_release(&out);
        }
    tensor_release(&a);
    tensor_release(&b);
    arrays_free(&arrays);
    speed_place_end(state, &place);
}

//--------------------------------------------------------------------------------------------------
// A step of AdamW on as many floats

#define STATE_COUNT 4 // parameter, gradient, mean, square

static void measure_adamw_plain(struct bench_state *state, void *argument) {
    (void)argument;
    float *arrays[STATE_COUNT];
    for (int i = 0; i < STATE_COUNT; i++)
        arrays[i] = values_make(TENSOR_FLOAT32, COUNT);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++)
            bench_loop_adamw_float(arrays[0], arrays[1], arrays[2], arrays[3], COUNT);
    for (int i = 0; i < STATE_COUNT; i++)
        free(arrays[i]);
}

// The first step against the plain loop's, within the last place: the formulas are not the same to
// the bit.
static void measure_adamw(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct tensor_place place = speed_place_begin(measured->kind, SIM_NUMERICS_ON);
    const struct tensor_adamw adamw = {1e-3, 0.9, 0.999, 1e-8, 0.01, false, false};
    const int64_t size = COUNT;
    float *arrays[STATE_COUNT];
    struct tensor tensors[STATE_COUNT];
    for (int i = 0; i < STATE_COUNT; i++) {
        arrays[i] = values_make(TENSOR_FLOAT32, COUNT);
        for (int64_t at = 0; i == 3 && at < COUNT; at++)
            arrays[i][at] = fabsf(arrays[i][at]);
        SPEED_OK(tensor_from_bytes(&place, TENSOR_FLOAT32, &size, 1, arrays[i], &tensors[i]));
    }
    SPEED_OK(tensor_adamw_step(&adamw, 1, 1, &tensors[0], &tensors[1], &tensors[2], &tensors[3]));
    bench_loop_adamw_float(arrays[0], arrays[1], arrays[2], arrays[3], COUNT);
    SPEED_OK(tensor_read(tensors[0], arrays[1]));
    for (int64_t at = 0; at < COUNT; at++)
        if (!(fabsf(arrays[0][at] - arrays[1][at]) <= 1e-6F * fabsf(arrays[0][at])))
            bench_fail(state, "the step of element %d is not the loop's", (int)at);
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++)
            SPEED_OK(tensor_adamw_step(&adamw, 1, 1, &tensors[0], &tensors[1], &tensors[2],
                                       &tensors[3]));
    for (int i = 0; i < STATE_COUNT; i++) {
        tensor_release(&tensors[i]);
        free(arrays[i]);
    }
    speed_place_end(state, &place);
}

//--------------------------------------------------------------------------------------------------
// The cases

static void products_add(int64_t n) {
    char name[48];
    snprintf(name, sizeof name, "openblas/%d", (int)n);
    struct speed_case *blas = speed_case_add(name, measure_blas);
    snprintf(name, sizeof name, "mm/%d", (int)n);
    struct speed_case *product = speed_case_add(name, measure_product);
    blas->size = product->size = n;
    speed_case_limit(product, n >= 64 ? 1.3 : 0, blas);
}

static void elements_add(enum element element) {
    char name[48];
    snprintf(name, sizeof name, "loop/%s", element_names[element]);
    struct speed_case *plain = speed_case_add(name, measure_plain);
    plain->what = (int)element;
    for (int kind = TENSOR_CPU; kind <= TENSOR_CUDA; kind++) {
        snprintf(name, sizeof name, "%s/%s", kind == TENSOR_CPU ? "cpu" : "device",
                 element_names[element]);
        struct speed_case *added = speed_case_add(name, measure_element);
        added->what = (int)element;
        added->kind = (enum tensor_device_kind)kind;
        speed_case_limit(added, 1.5, plain);
    }
}

static void adamw_add(void) {
    const struct speed_case *plain = speed_case_add("loop/adamw_float32", measure_adamw_plain);
    struct speed_case *cpu = speed_case_add("cpu/adamw_float32", measure_adamw);
    cpu->kind = TENSOR_CPU;
    speed_case_limit(cpu, 1.5, plain);
    speed_case_limit(speed_case_add("device/adamw_float32", measure_adamw), 1.5, plain);
}

void speed_cases_work(void) {
    for (int64_t n = 8; n <= 512; n *= 2)
        products_add(n);
    for (int element = 0; element < ELEMENT_COUNT; element++)
        elements_add((enum element)element);
    adamw_add();
}
