// The CUDA table against the CPU's: the same loops, sums and products, of any types and strides,
// give the same bytes. And what only devices have: captures, streams, errors.
//
//     launch_test [SEED [COUNT]]
#include "tensor/launch.h"

#include "base/check.h"
#include "base/half.h"
#include "base/random.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 3000
#define RANK 4
#define SIZE_MAX_DRAWN 6

#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)
#define OK(call) BASE_CHECK_EQ((call), BASE_OK)

static const enum tensor_type types[] = {
    TENSOR_UINT8, TENSOR_INT8,    TENSOR_INT16,   TENSOR_INT32,   TENSOR_INT64,
    TENSOR_BOOL,  TENSOR_FLOAT16, TENSOR_FLOAT32, TENSOR_FLOAT64, TENSOR_BFLOAT16};
#define TYPE_COUNT 10
#define FLOATING_FIRST 6

static int draw(struct base_random *random, int below) {
    return (int)base_random_below(random, (uint64_t)below);
}

// An array on both sides.
struct both {
    enum tensor_type type;
    size_t bytes;
    void *host, *device;
};

// Bytes that make small numbers of TYPE, not all of them whole.
static void fill(struct base_random *random, enum tensor_type type, char *bytes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const double value = (double)draw(random, 129) / 8 - 8;
        const float single = (float)value;
        char *at = bytes + i * (int64_t)tensor_type_size(type);
        uint16_t half = 0;
        switch (type) {
        case TENSOR_FLOAT64:
            memcpy(at, &value, sizeof value);
            break;
        case TENSOR_FLOAT32:
            memcpy(at, &single, sizeof single);
            break;
        case TENSOR_FLOAT16:
            half = base_half_from_float(single);
            memcpy(at, &half, sizeof half);
            break;
        case TENSOR_BFLOAT16:
            half = base_bfloat16_from_float(single);
            memcpy(at, &half, sizeof half);
            break;
        case TENSOR_BOOL:
            *at = (char)draw(random, 2);
            break;
        default:
            memset(at, 0, tensor_type_size(type));
            *at = (char)draw(random, 100);
            break;
        }
    }
}

static struct both both_make(struct base_random *random, enum tensor_type type, int64_t count) {
    struct both both = {.type = type, .bytes = (size_t)(count + 1) * tensor_type_size(type)};
    both.host = malloc(both.bytes);
    BASE_CHECK(both.host != NULL);
    fill(random, type, both.host, count + 1);
    CUDA(cudaMalloc(&both.device, both.bytes));
    CUDA(cudaMemcpy(both.device, both.host, both.bytes, cudaMemcpyHostToDevice));
    return both;
}

static bool is_nan(enum tensor_type type, const char *at) {
    double full;
    float single;
    uint16_t half;
    memcpy(&half, at, sizeof half);
    if (type == TENSOR_FLOAT16)
        return (half & 0x7fff) > 0x7c00;
    if (type == TENSOR_BFLOAT16)
        return (half & 0x7fff) > 0x7f80;
    if (type == TENSOR_FLOAT32) {
        memcpy(&single, at, sizeof single);
        return single != single;
    }
    if (type != TENSOR_FLOAT64)
        return false;
    memcpy(&full, at, sizeof full);
    return full != full;
}

// To the bit; but one NaN is as good as another.
static void both_agree(const struct both *both) {
    const size_t size = tensor_type_size(both->type);
    const char *host = both->host;
    char *got = malloc(both->bytes);
    BASE_CHECK(got != NULL);
    CUDA(cudaMemcpy(got, both->device, both->bytes, cudaMemcpyDeviceToHost));
    for (size_t at = 0; at < both->bytes; at += size)
        if (memcmp(got + at, host + at, size) != 0)
            BASE_CHECK(is_nan(both->type, got + at) && is_nan(both->type, host + at));
    free(got);
}

static void both_end(struct both *both) {
    free(both->host);
    CUDA(cudaFree(both->device));
}

// Strides of any order, with holes; of an input some are 0. Returns how many elements that spans.
static int64_t strides_draw(struct base_random *random, const int64_t *sizes, int rank,
                            bool broadcasts, int64_t *strides) {
    int order[RANK];
    int64_t count = 1;
    for (int i = 0; i < rank; ++i)
        order[i] = i;
    for (int i = rank - 1; i > 0 && draw(random, 2); --i) {
        const int other = draw(random, i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = rank - 1; i >= 0; --i) {
        strides[order[i]] = count;
        if (broadcasts && draw(random, 4) == 0)
            strides[order[i]] = 0;
        else
            count *= (sizes[order[i]] > 0 ? sizes[order[i]] : 1) + (draw(random, 3) == 0);
    }
    return count;
}

static void shape_draw(struct base_random *random, struct tensor_loop *loop) {
    loop->rank = draw(random, RANK + 1);
    for (int i = 0; i < loop->rank; ++i)
        loop->sizes[i] = draw(random, 20) == 0 ? 0 : 1 + draw(random, SIZE_MAX_DRAWN);
}

static enum tensor_type type_draw(struct base_random *random, bool is_floating) {
    return is_floating ? types[FLOATING_FIRST + draw(random, TYPE_COUNT - FLOATING_FIRST)]
                       : types[draw(random, FLOATING_FIRST)];
}

static struct tensor_scalar scalar_draw(struct base_random *random) {
    return draw(random, 2) ? tensor_integer(draw(random, 7) - 3)
                           : tensor_floating((double)draw(random, 40) / 8 - 2);
}

static void loops_agree(struct base_random *random) {
    struct tensor_loop loop = {.operation = (enum tensor_pointwise)draw(random, 12)};
    const bool is_floating =
        loop.operation == TENSOR_DIV || loop.operation == TENSOR_SQRT || draw(random, 2);
    shape_draw(random, &loop);
    loop.compute = type_draw(random, is_floating);
    loop.scalar = scalar_draw(random);
    loop.alpha = scalar_draw(random);
    // A copy converts anything; others stay within their kind.
    loop.a.type = type_draw(random, loop.operation == TENSOR_COPY ? draw(random, 2) : is_floating);
    loop.b.type = type_draw(random, is_floating);
    loop.out.type =
        type_draw(random, loop.operation == TENSOR_COPY ? draw(random, 2) : is_floating);
    const bool overlaps = loop.operation == TENSOR_ACCUMULATE;
    const bool has_a = draw(random, 6) > 0 || overlaps, has_b = draw(random, 3) > 0;
    struct both out =
        both_make(random, loop.out.type,
                  strides_draw(random, loop.sizes, loop.rank, overlaps, loop.out.strides));
    struct both a = both_make(random, loop.a.type,
                              strides_draw(random, loop.sizes, loop.rank, true, loop.a.strides));
    struct both b = both_make(random, loop.b.type,
                              strides_draw(random, loop.sizes, loop.rank, true, loop.b.strides));
    base_check_context("operation %d, compute %s, out %s, a %s, b %s", (int)loop.operation,
                       tensor_type_name(loop.compute), tensor_type_name(loop.out.type),
                       tensor_type_name(loop.a.type), tensor_type_name(loop.b.type));
    loop.out.data = out.host;
    loop.a.data = has_a ? a.host : NULL;
    loop.b.data = has_b ? b.host : NULL;
    OK(tensor__cpu.pointwise(&loop, tensor__no_stream));
    loop.out.data = out.device;
    loop.a.data = has_a ? a.device : NULL;
    loop.b.data = has_b ? b.device : NULL;
    OK(tensor__cuda.pointwise(&loop, tensor__no_stream));
    both_agree(&out);
    both_end(&out);
    both_end(&a);
    both_end(&b);
}

// As if the numbers of each of RESULTS were many: divided among parts, in groups of any length.
static struct tensor_sum_memory sum_memory_draw(struct base_random *random, int64_t results) {
    struct tensor_sum_memory memory = {.plan = {.parts = 1 + draw(random, 4)}};
    if (memory.plan.parts == 1 || results == 0)
        return (struct tensor_sum_memory){.plan = {.parts = 1}};
    memory.plan.group_results = 1 + draw(random, 9);
    memory.plan.staging_bytes = 8 * (size_t)(results * memory.plan.parts);
    memory.plan.counter_bytes =
        4 * (size_t)((results + memory.plan.group_results - 1) / memory.plan.group_results);
    CUDA(cudaMalloc(&memory.staging, memory.plan.staging_bytes));
    CUDA(cudaMalloc(&memory.counters, memory.plan.counter_bytes));
    return memory;
}

static void sums_agree(struct base_random *random) {
    struct tensor_loop loop = {0};
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    const bool is_floating = draw(random, 2);
    shape_draw(random, &loop);
    loop.a.type = type_draw(random, is_floating);
    loop.compute = loop.out.type = is_floating ? loop.a.type : TENSOR_INT64;
    int64_t kept_sizes[RANK], kept_strides[RANK];
    int kept = 0;
    for (int i = 0; i < loop.rank; ++i) {
        is_reduced[i] = draw(random, 2);
        if (!is_reduced[i])
            kept_sizes[kept++] = loop.sizes[i];
    }
    struct both out = both_make(random, loop.out.type,
                                strides_draw(random, kept_sizes, kept, false, kept_strides));
    struct both a = both_make(random, loop.a.type,
                              strides_draw(random, loop.sizes, loop.rank, true, loop.a.strides));
    for (int i = 0, at = 0; i < loop.rank; ++i)
        loop.out.strides[i] = is_reduced[i] ? 0 : kept_strides[at++];
    loop.out.data = out.host;
    loop.a.data = a.host;
    OK(tensor__cpu.sum(&loop, is_reduced, NULL, tensor__no_stream));
    loop.out.data = out.device;
    loop.a.data = a.device;
    int64_t results = 1;
    for (int i = 0; i < kept; ++i)
        results *= kept_sizes[i];
    const struct tensor_sum_memory memory = sum_memory_draw(random, results);
    OK(tensor__cuda.sum(&loop, is_reduced, &memory, tensor__no_stream));
    both_agree(&out);
    CUDA(cudaFree(memory.staging));
    CUDA(cudaFree(memory.counters));
    both_end(&out);
    both_end(&a);
}

// Numbers in eighths: their products' sums are exact in double and float.
static void products_agree(struct base_random *random) {
    struct tensor_product product = {
        .batch = draw(random, 4), .m = draw(random, 9), .n = draw(random, 9), .k = draw(random, 9)};
    const int64_t of_a[] = {product.batch, product.m, product.k};
    const int64_t of_b[] = {product.batch, product.k, product.n};
    const int64_t of_out[] = {product.batch, product.m, product.n};
    do
        product.type = types[draw(random, TYPE_COUNT)];
    while (product.type == TENSOR_BOOL);
    struct both out = both_make(random, product.type,
                                strides_draw(random, of_out, 3, false, product.out_strides));
    struct both a =
        both_make(random, product.type, strides_draw(random, of_a, 3, true, product.a_strides));
    struct both b =
        both_make(random, product.type, strides_draw(random, of_b, 3, true, product.b_strides));
    base_check_context("%s: %d times %d x %d x %d", tensor_type_name(product.type),
                       (int)product.batch, (int)product.m, (int)product.k, (int)product.n);
    product.out = out.host;
    product.a = a.host;
    product.b = b.host;
    OK(tensor__cpu.product(&product, tensor__no_stream));
    product.out = out.device;
    product.a = a.device;
    product.b = b.device;
    OK(tensor__cuda.product(&product, tensor__no_stream));
    both_agree(&out);
    both_end(&out);
    both_end(&a);
    both_end(&b);
}

static struct tensor_product square(float *data, int64_t n) {
    return (struct tensor_product){.type = TENSOR_FLOAT32,
                                   .batch = 1,
                                   .m = n,
                                   .n = n,
                                   .k = n,
                                   .out = data + 2 * n * n,
                                   .a = data,
                                   .b = data + n * n,
                                   .out_strides = {0, n, 1},
                                   .a_strides = {0, n, 1},
                                   .b_strides = {0, 1, n}};
}

static void most_products_are_those_of_cublas(void) {
    float *data;
    CUDA(cudaMalloc((void **)&data, 3 * 64 * sizeof *data));
    CUDA(cudaMemset(data, 0, 3 * 64 * sizeof *data));
    const uint64_t before = sim_call_count(SIM_CALL_BLAS_GEMM);
    struct tensor_product product = square(data, 8);
    OK(tensor__cuda.product(&product, tensor__no_stream));
    product.out_strides[1] = 1;
    product.out_strides[2] = 8; // by columns
    OK(tensor__cuda.product(&product, tensor__no_stream));
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_BLAS_GEMM) - before, 2);
    product.a_strides[2] = 2;
    product.a_strides[1] = 4;
    product.m = product.k = 2; // no leading dimension says that
    OK(tensor__cuda.product(&product, tensor__no_stream));
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_BLAS_GEMM) - before, 2);
    CUDA(cudaFree(data));
}

static void errors_have_a_sentence(void) {
    float *data;
    CUDA(cudaMalloc((void **)&data, 3 * 64 * sizeof *data));
    const struct tensor_product product = square(data, 8);
    OK(tensor__cuda.product(&product, tensor__no_stream));
    sim_fault_next(SIM_CALL_BLAS_GEMM, 1, SIM_FAULT_STATUS(CUBLAS_STATUS_EXECUTION_FAILED));
    BASE_CHECK_EQ(tensor__cuda.product(&product, tensor__no_stream), BASE_CUDA);
    BASE_CHECK(strstr(base_status_message(), "CUBLAS_STATUS_EXECUTION_FAILED") != NULL);
    sim_fault_next(SIM_CALL_LAUNCH, 1, cudaErrorLaunchOutOfResources);
    const struct tensor_loop fill = {
        .operation = TENSOR_FILL, .compute = TENSOR_FLOAT32, .out = {data, TENSOR_FLOAT32, {0}}};
    BASE_CHECK_EQ(tensor__cuda.pointwise(&fill, tensor__no_stream), BASE_CUDA);
    BASE_CHECK(strstr(base_status_message(), "cudaErrorLaunchOutOfResources") != NULL);
    // Another machine: the handles of before are none.
    sim_reset();
    CUDA(cudaMalloc((void **)&data, 3 * 64 * sizeof *data));
    const struct tensor_product again = square(data, 8);
    OK(tensor__cuda.product(&again, tensor__no_stream));
    CUDA(cudaFree(data));
}

static void a_first_product_can_be_captured(void) {
    float *data, result;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    sim_reset();
    CUDA(cudaMalloc((void **)&data, 3 * 64 * sizeof *data));
    CUDA(cudaMemset(data, 0, 3 * 64 * sizeof *data));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const struct tensor_product product = square(data, 8);
    OK(tensor__cuda.product(&product, (struct tensor_device_stream){0, stream}));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaMemset(data + 128, 0xff, 64 * sizeof *data));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(&result, data + 191, sizeof result, cudaMemcpyDeviceToHost));
    BASE_CHECK(result == 0);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(data));
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d loops\n", (unsigned long long)seed, count);
    OK(sim_race_start(&(struct sim_race_options){.fail = true}));
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "launch");
        base_check_context("seed %llu", (unsigned long long)(seed + (uint64_t)i));
        if (i % 4 == 0)
            sums_agree(&random);
        else if (i % 4 == 1)
            products_agree(&random);
        else
            loops_agree(&random);
    }
    sim_race_stop();
    base_check_context(NULL);
    most_products_are_those_of_cublas();
    errors_have_a_sentence();
    a_first_product_can_be_captured();
    tensor_launch_end();
    return 0;
}
