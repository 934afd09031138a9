// Products of matrices against plain loops over the same numbers: every form of the call, random
// shapes, transpositions, leading dimensions, types, alpha and beta, workspaces and pointer modes.
// The numbers are integers so small that each sum is exact in every type: results must be equal,
// and what lies between the columns of C must stay.
//
//     blas_gemm_test [SEED [COUNT]]
#include "base/check.h"
#include "base/random.h"
#include "simulator/blas_testing.h"
#include "simulator/sim.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 1500
#define BATCH_MAX 4
#define WORKSPACE_BYTES 65536

enum form {
    FORM_PLAIN,
    FORM_EX,
    FORM_STRIDED,
    FORM_STRIDED_EX,
    FORM_POINTERS,
    FORM_POINTERS_EX,
    FORM_LT,
    FORM_COUNT
};

struct matrix {
    cudaDataType type;
    int rows, columns, ld, count; // as they are stored; COUNT of them, one behind the other
    double *numbers;              // ld x columns x count
    void *device;
};

struct product {
    enum form form;
    int m, n, k, batch;
    bool transa, transb, on_device, has_bias, relu;
    double alpha, beta;
    struct matrix a, b, c, bias;
};

static cublasHandle_t handle;
static cublasLtHandle_t light;
static void *workspace, *scalars;

static bool is_narrow(cudaDataType type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }
static size_t number_count(const struct matrix *matrix) {
    return (size_t)matrix->ld * (size_t)matrix->columns * (size_t)matrix->count;
}

// All NaN if WRONG, else integers from -LIMIT to LIMIT; and its copy on the device.
static void matrix_make(struct matrix *matrix, struct base_random *random, int limit, bool wrong) {
    const size_t count = number_count(matrix), bytes = count * size_of(matrix->type);
    void *host = malloc(bytes + 1);
    matrix->numbers = malloc((count + 1) * sizeof *matrix->numbers);
    BASE_CHECK(host != NULL && matrix->numbers != NULL);
    for (size_t i = 0; i < count; ++i) {
        matrix->numbers[i] =
            wrong ? (double)NAN
                  : (double)(int64_t)base_random_below(random, (uint64_t)(2 * limit + 1)) - limit;
        number_store(host, matrix->type, i, matrix->numbers[i]);
    }
    CUDA(cudaMalloc(&matrix->device, bytes > 0 ? bytes : 1));
    CUDA(cudaMemcpy(matrix->device, host, bytes, cudaMemcpyHostToDevice));
    free(host);
}

static void matrix_end(struct matrix *matrix) {
    free(matrix->numbers);
    CUDA(cudaFree(matrix->device));
}

static double at(const struct matrix *matrix, bool transposed, int batch, int row, int column) {
    const size_t start =
        (size_t)matrix->ld * (size_t)matrix->columns * (size_t)(matrix->count > 1 ? batch : 0);
    return matrix->numbers[start + (size_t)(transposed ? row : column) * (size_t)matrix->ld +
                           (size_t)(transposed ? column : row)];
}

static double wanted_at(const struct product *product, int batch, int i, int j) {
    double sum = 0;
    if (product->alpha != 0)
        for (int l = 0; l < product->k; ++l)
            sum += at(&product->a, product->transa, batch, i, l) *
                   at(&product->b, product->transb, batch, l, j);
    double value = product->alpha * sum;
    if (product->alpha == 0) value = 0;
    if (product->beta != 0) value += product->beta * at(&product->c, false, batch, i, j);
    if (product->has_bias) value += product->bias.numbers[i];
    return product->relu && value < 0 ? 0 : value;
}

static void compare(const struct product *product) {
    const struct matrix *c = &product->c;
    const size_t count = number_count(c), bytes = count * size_of(c->type);
    void *host = malloc(bytes + 1);
    BASE_CHECK(host != NULL);
    CUDA(cudaMemcpy(host, c->device, bytes, cudaMemcpyDeviceToHost));
    for (int batch = 0; batch < product->batch; ++batch)
        for (int j = 0; j < product->n; ++j)
            for (int i = 0; i < c->ld; ++i) {
                const size_t place =
                    ((size_t)batch * (size_t)c->columns + (size_t)j) * (size_t)c->ld + (size_t)i;
                const double got = number_load(host, c->type, place);
                const double want =
                    i < product->m ? wanted_at(product, batch, i, j) : c->numbers[place];
                if (got != want && !(isnan(got) && isnan(want))) {
                    fprintf(stderr, "batch %d, row %d, column %d: %g, want %g\n", batch, i, j, got,
                            want);
                    BASE_CHECK(got == want);
                }
            }
    free(host);
}

// --- The forms ---

static const void *scalar(const struct product *product, double value, int index) {
    static union {
        float single;
        double full;
    } host[2];
    if (product->a.type == CUDA_R_64F)
        host[index].full = value;
    else
        host[index].single = (float)value;
    if (!product->on_device) return &host[index];
    void *place = (char *)scalars + 8 * index;
    CUDA(cudaMemcpy(place, &host[index], 8, cudaMemcpyHostToDevice));
    return place;
}

static cublasComputeType_t compute_type(const struct product *product) {
    return product->a.type == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

static void layout_make(const struct product *product, const struct matrix *matrix,
                        cublasLtMatrixLayout_t layout) {
    const int32_t batch = product->batch;
    const int64_t stride = matrix->count > 1 ? (int64_t)matrix->ld * matrix->columns : 0;
    BLAS(cublasLtMatrixLayoutInit(layout, matrix->type, (uint64_t)matrix->rows,
                                  (uint64_t)matrix->columns, matrix->ld));
    BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, 4));
    BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &stride, 8));
}

static void run_light(const struct product *product, const void *alpha, const void *beta) {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    const int32_t transa = product->transa ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t transb = product->transb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t mode = product->on_device;
    const uint32_t epilogue = (product->has_bias ? 4u : 0u) | (product->relu ? 2u : 0u);
    const uint64_t most = WORKSPACE_BYTES;
    int count;
    BLAS(cublasLtMatmulDescInit(&operation, compute_type(product),
                                product->a.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F));
    BLAS(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &transa, 4));
    BLAS(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSB, &transb, 4));
    BLAS(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, 4));
    if (epilogue != 0)
        BLAS(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                            4));
    if (product->has_bias) {
        const int32_t type = product->bias.type;
        BLAS(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                            &product->bias.device, sizeof(void *)));
        BLAS(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type,
                                            4));
    }
    layout_make(product, &product->a, &a);
    layout_make(product, &product->b, &b);
    layout_make(product, &product->c, &c);
    BLAS(cublasLtMatmulPreferenceInit(&preference));
    BLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &most, 8));
    BLAS(cublasLtMatmulAlgoGetHeuristic(light, &operation, &a, &b, &c, &c, &preference, 1, &result,
                                        &count));
    BASE_CHECK_EQ(count, 1);
    BASE_CHECK_LE(result.workspaceSize, WORKSPACE_BYTES);
    BLAS(cublasLtMatmul(light, &operation, alpha, product->a.device, &a, product->b.device, &b,
                        beta, product->c.device, &c, product->c.device, &c, &result.algo, workspace,
                        WORKSPACE_BYTES, NULL));
}

static void *pointers_make(const struct matrix *matrix, int batch) {
    const char *pointers[BATCH_MAX];
    void *device;
    const size_t step = matrix->count > 1
                            ? (size_t)matrix->ld * (size_t)matrix->columns * size_of(matrix->type)
                            : 0;
    for (int i = 0; i < batch; ++i)
        pointers[i] = (const char *)matrix->device + (size_t)i * step;
    CUDA(cudaMalloc(&device, sizeof pointers));
    CUDA(cudaMemcpy(device, pointers, sizeof pointers, cudaMemcpyHostToDevice));
    return device;
}

static void run_pointers(const struct product *p, const void *alpha, const void *beta) {
    const cublasOperation_t ta = p->transa ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t tb = p->transb ? CUBLAS_OP_C : CUBLAS_OP_N;
    void *const a = pointers_make(&p->a, p->batch), *const b = pointers_make(&p->b, p->batch),
                *const c = pointers_make(&p->c, p->batch);
    if (p->form == FORM_POINTERS_EX)
        BLAS(cublasGemmBatchedEx(handle, ta, tb, p->m, p->n, p->k, alpha, a, p->a.type, p->a.ld, b,
                                 p->b.type, p->b.ld, beta, c, p->c.type, p->c.ld, p->batch,
                                 compute_type(p), CUBLAS_GEMM_DEFAULT));
    else if (p->a.type == CUDA_R_64F)
        BLAS(cublasDgemmBatched(handle, ta, tb, p->m, p->n, p->k, alpha, a, p->a.ld, b, p->b.ld,
                                beta, c, p->c.ld, p->batch));
    else
        BLAS(cublasSgemmBatched(handle, ta, tb, p->m, p->n, p->k, alpha, a, p->a.ld, b, p->b.ld,
                                beta, c, p->c.ld, p->batch));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
}

static long long stride_of(const struct matrix *matrix) {
    return matrix->count > 1 ? (long long)matrix->ld * matrix->columns : 0;
}

static void run_strided(const struct product *p, const void *alpha, const void *beta) {
    const cublasOperation_t ta = p->transa ? CUBLAS_OP_C : CUBLAS_OP_N;
    const cublasOperation_t tb = p->transb ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (p->form == FORM_STRIDED_EX)
        BLAS(cublasGemmStridedBatchedEx(
            handle, ta, tb, p->m, p->n, p->k, alpha, p->a.device, p->a.type, p->a.ld,
            stride_of(&p->a), p->b.device, p->b.type, p->b.ld, stride_of(&p->b), beta, p->c.device,
            p->c.type, p->c.ld, stride_of(&p->c), p->batch, compute_type(p), CUBLAS_GEMM_DEFAULT));
    else if (p->a.type == CUDA_R_64F)
        BLAS(cublasDgemmStridedBatched(handle, ta, tb, p->m, p->n, p->k, alpha, p->a.device,
                                       p->a.ld, stride_of(&p->a), p->b.device, p->b.ld,
                                       stride_of(&p->b), beta, p->c.device, p->c.ld,
                                       stride_of(&p->c), p->batch));
    else
        BLAS(cublasSgemmStridedBatched(handle, ta, tb, p->m, p->n, p->k, alpha, p->a.device,
                                       p->a.ld, stride_of(&p->a), p->b.device, p->b.ld,
                                       stride_of(&p->b), beta, p->c.device, p->c.ld,
                                       stride_of(&p->c), p->batch));
}

static void run(const struct product *p) {
    const cublasOperation_t ta = p->transa ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t tb = p->transb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const void *alpha = scalar(p, p->alpha, 0), *beta = scalar(p, p->beta, 1);
    BLAS(cublasSetPointerMode(handle, p->on_device ? CUBLAS_POINTER_MODE_DEVICE
                                                   : CUBLAS_POINTER_MODE_HOST));
    if (p->form == FORM_LT)
        run_light(p, alpha, beta);
    else if (p->form == FORM_POINTERS || p->form == FORM_POINTERS_EX)
        run_pointers(p, alpha, beta);
    else if (p->form == FORM_STRIDED || p->form == FORM_STRIDED_EX)
        run_strided(p, alpha, beta);
    else if (p->form == FORM_EX)
        BLAS(cublasGemmEx(handle, ta, tb, p->m, p->n, p->k, alpha, p->a.device, p->a.type, p->a.ld,
                          p->b.device, p->b.type, p->b.ld, beta, p->c.device, p->c.type, p->c.ld,
                          compute_type(p), CUBLAS_GEMM_DEFAULT));
    else if (p->a.type == CUDA_R_64F)
        BLAS(cublasDgemm(handle, ta, tb, p->m, p->n, p->k, alpha, p->a.device, p->a.ld, p->b.device,
                         p->b.ld, beta, p->c.device, p->c.ld));
    else
        BLAS(cublasSgemm(handle, ta, tb, p->m, p->n, p->k, alpha, p->a.device, p->a.ld, p->b.device,
                         p->b.ld, beta, p->c.device, p->c.ld));
}

// --- Drawing ---

static int draw(struct base_random *random, int below) {
    return (int)base_random_below(random, (uint64_t)below);
}

// Small ones mostly; at times more columns than a piece of a 16-bit product has.
static int draw_size(struct base_random *random) {
    return draw(random, 12) == 0 ? draw(random, 300) : draw(random, 24);
}

static void types_draw(struct base_random *random, struct product *product) {
    static const cudaDataType types[][2] = {{CUDA_R_32F, CUDA_R_32F},   {CUDA_R_64F, CUDA_R_64F},
                                            {CUDA_R_16F, CUDA_R_16F},   {CUDA_R_16F, CUDA_R_32F},
                                            {CUDA_R_16BF, CUDA_R_16BF}, {CUDA_R_16BF, CUDA_R_32F}};
    const bool any = product->form != FORM_PLAIN && product->form != FORM_STRIDED &&
                     product->form != FORM_POINTERS;
    const int which = draw(random, any ? 6 : 2);
    product->a.type = product->b.type = types[which][0];
    product->c.type = types[which][1];
    product->bias.type =
        is_narrow(product->c.type) && draw(random, 2) ? CUDA_R_32F : product->c.type;
}

static struct matrix matrix_of(cudaDataType type, int rows, int columns, int extra, int count) {
    return (struct matrix){.type = type,
                           .rows = rows,
                           .columns = columns,
                           .ld = (rows > 0 ? rows : 1) + extra,
                           .count = count};
}

static void product_draw(struct base_random *random, struct product *p) {
    static const double factors[] = {0, 1, -1, 2};
    memset(p, 0, sizeof *p);
    p->form = (enum form)draw(random, FORM_COUNT);
    p->m = draw_size(random);
    p->n = draw_size(random);
    p->k = draw(random, 24);
    p->transa = draw(random, 2);
    p->transb = draw(random, 2);
    p->on_device = draw(random, 3) == 0;
    p->alpha = factors[draw(random, 4)];
    p->beta = factors[draw(random, 4)];
    p->batch = p->form >= FORM_STRIDED ? 1 + draw(random, BATCH_MAX) : 1;
    if (p->form == FORM_LT) {
        p->has_bias = draw(random, 2);
        p->relu = draw(random, 2);
    }
    types_draw(random, p);
    const int shared = p->batch > 1 && draw(random, 4) == 0;
    p->a = matrix_of(p->a.type, p->transa ? p->k : p->m, p->transa ? p->m : p->k, draw(random, 3),
                     shared ? 1 : p->batch);
    p->b = matrix_of(p->b.type, p->transb ? p->n : p->k, p->transb ? p->k : p->n, draw(random, 3),
                     p->batch);
    p->c = matrix_of(p->c.type, p->m, p->n, draw(random, 3), p->batch);
    p->bias = matrix_of(p->bias.type, p->m, 1, 0, 1);
    matrix_make(&p->a, random, 1, p->alpha == 0);
    matrix_make(&p->b, random, 2, p->alpha == 0);
    matrix_make(&p->c, random, 3, p->beta == 0);
    matrix_make(&p->bias, random, 3, false);
}

// The handle's own, none, and the program's: large, of a few numbers, of less than a column.
static void workspace_draw(struct base_random *random) {
    static const size_t sizes[] = {0, WORKSPACE_BYTES, 256, 40, 8};
    BLAS(cublasSetStream(handle, NULL));
    const int which = draw(random, 6);
    if (which > 0) BLAS(cublasSetWorkspace(handle, workspace, sizes[which - 1]));
}

static void products_are_those_of_plain_loops(uint64_t seed, int count) {
    int forms[FORM_COUNT] = {0};
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "gemm");
        struct product p;
        product_draw(&random, &p);
        workspace_draw(&random);
        base_check_context("seed %llu: form %d, %d x %d x %d, %d times, types %d %d, trans %d %d, "
                           "alpha %g, beta %g",
                           (unsigned long long)(seed + (uint64_t)i), (int)p.form, p.m, p.n, p.k,
                           p.batch, (int)p.a.type, (int)p.c.type, p.transa, p.transb, p.alpha,
                           p.beta);
        run(&p);
        CUDA(cudaDeviceSynchronize());
        compare(&p);
        matrix_end(&p.a);
        matrix_end(&p.b);
        matrix_end(&p.c);
        matrix_end(&p.bias);
        ++forms[p.form];
    }
    base_check_context(NULL);
    for (int i = 0; i < FORM_COUNT; ++i)
        BASE_CHECK_GT(forms[i], 0);
}

// One more factor of a sum that is to come to MOST.
static void number_set(struct matrix *matrix, size_t i, double value) {
    char bytes[8];
    matrix->numbers[i] = value;
    number_store(bytes, matrix->type, 0, value);
    CUDA(cudaMemcpy((char *)matrix->device + i * size_of(matrix->type), bytes,
                    size_of(matrix->type), cudaMemcpyHostToDevice));
}

#define LARGE_K 64

// Integers up to 2^24, 2^11 and 2^8, as the result's type holds them, come out whole: factors from
// 0 to LIMIT, and in C's first place a sum that is MOST, whose last bit is one.
static void large_product_is_exact(struct product *p, struct base_random *random, int limit,
                                   double most, cudaDataType sum_type) {
    p->a = matrix_of(p->a.type, p->transa ? LARGE_K : p->m, p->transa ? p->m : LARGE_K, 1, 1);
    p->b = matrix_of(p->a.type, p->transb ? p->n : LARGE_K, p->transb ? LARGE_K : p->n, 1, 1);
    p->c = matrix_of(sum_type, p->m, p->n, 1, 1);
    p->bias = matrix_of(sum_type, p->m, 1, 0, 1);
    matrix_make(&p->a, random, limit, false);
    matrix_make(&p->b, random, limit, false);
    matrix_make(&p->c, random, 0, false);
    matrix_make(&p->bias, random, 0, false);
    for (size_t l = 0; l < LARGE_K; ++l) {
        number_set(&p->a, p->transa ? l : l * (size_t)p->a.ld, limit);
        number_set(&p->b, p->transb ? l * (size_t)p->b.ld : l, limit);
    }
    number_set(p->has_bias ? &p->bias : &p->c, 0, most - (double)LARGE_K * limit * limit);
    BASE_CHECK(wanted_at(p, 0, 0, 0) == most);
    run(p);
    compare(p);
    matrix_end(&p->a);
    matrix_end(&p->b);
    matrix_end(&p->c);
    matrix_end(&p->bias);
}

// By every form of the call, in every math mode, with scalars here and there.
static void large_integers_are_exact(void) {
    static const cublasMath_t modes[] = {CUBLAS_DEFAULT_MATH, CUBLAS_PEDANTIC_MATH,
                                         CUBLAS_TF32_TENSOR_OP_MATH};
    static const struct {
        cudaDataType type, sum_type;
        int limit; // also of TF32's 11 bits
        double most;
    } rows[] = {{CUDA_R_32F, CUDA_R_32F, 512, 16777215},
                {CUDA_R_64F, CUDA_R_64F, 1 << 23, 9007199254740991},
                {CUDA_R_16F, CUDA_R_32F, 512, 16777215},
                {CUDA_R_16F, CUDA_R_16F, 5, 2047},
                {CUDA_R_16BF, CUDA_R_16BF, 2, 255},
                {CUDA_R_16BF, CUDA_R_32F, 256, 16777215}};
    struct base_random random = base_random_init(1, "large");
    for (int form = 0; form < FORM_COUNT; ++form)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i)
            for (int way = 0; way < 24; ++way) {
                const bool any = form == FORM_EX || form == FORM_STRIDED_EX ||
                                 form == FORM_POINTERS_EX || form == FORM_LT;
                struct product p = {.form = (enum form)form, .m = 3, .n = 5, .k = LARGE_K};
                p.a.type = rows[i].type;
                p.batch = 1;
                p.alpha = p.beta = 1;
                p.on_device = way % 2;
                p.transa = way / 2 % 2;
                p.transb = way / 4 % 2;
                p.has_bias = form == FORM_LT && p.transb;
                if (i >= 2 && !any) continue;
                base_check_context("form %d, row %zu, way %d", form, i, way);
                BLAS(cublasSetMathMode(handle, modes[way / 8]));
                large_product_is_exact(&p, &random, rows[i].limit, rows[i].most, rows[i].sum_type);
            }
    BLAS(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
    base_check_context(NULL);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d products\n", (unsigned long long)seed, count);
    BLAS(cublasCreate(&handle));
    BLAS(cublasLtCreate(&light));
    CUDA(cudaMalloc(&workspace, WORKSPACE_BYTES));
    CUDA(cudaMalloc(&scalars, 16));
    products_are_those_of_plain_loops(seed, count);
    BLAS(cublasSetStream(handle, NULL));
    large_integers_are_exact();
    CUDA(cudaFree(workspace));
    CUDA(cudaFree(scalars));
    BLAS(cublasLtDestroy(light));
    BLAS(cublasDestroy(handle));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    return 0;
}
