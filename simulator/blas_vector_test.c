// Vectors against plain loops: every call, types, increments of either sign, alpha and beta,
// pointer modes, workspaces of any size. The numbers are small integers, so that results are exact;
// norms of them are rounded roots.
//
//     blas_vector_test [SEED [COUNT]]
#include "base/check.h"
#include "base/random.h"
#include "simulator/blas_testing.h"
#include "simulator/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_DEFAULT 2000
#define NUMBERS_MAX 20000

enum form { FORM_AXPY, FORM_SCAL, FORM_DOT, FORM_NRM2, FORM_GEMV, FORM_COUNT };

static cublasHandle_t handle;
static char *memory; // a scalar each at 0 and 8, a result at 16, a workspace at 256
#define WORKSPACE_OFFSET 256
#define WORKSPACE_BYTES 4096

struct vector {
    cudaDataType type;
    int n, increment;
    size_t count; // numbers in memory
    double *numbers;
    void *device;
};

// What a value becomes in a type.
static double rounded(double value, cudaDataType type) {
    double bytes;
    number_store(&bytes, type, 0, value);
    return number_load(&bytes, type, 0);
}

static void vector_make(struct vector *vector, struct base_random *random, cudaDataType type, int n,
                        int increment, int limit) {
    const int step = abs(increment);
    vector->type = type;
    vector->n = n;
    vector->increment = increment;
    vector->count = n > 0 ? (size_t)(n - 1) * (size_t)step + 1 : 1;
    vector->numbers = malloc(vector->count * sizeof *vector->numbers);
    void *host = malloc(vector->count * size_of(type));
    BASE_CHECK(vector->numbers != NULL && host != NULL);
    for (size_t i = 0; i < vector->count; ++i) {
        vector->numbers[i] =
            (double)(int64_t)base_random_below(random, (uint64_t)(2 * limit + 1)) - limit;
        number_store(host, type, i, vector->numbers[i]);
    }
    CUDA(cudaMalloc(&vector->device, vector->count * size_of(type)));
    CUDA(cudaMemcpy(vector->device, host, vector->count * size_of(type), cudaMemcpyHostToDevice));
    free(host);
}

// Element I, as BLAS counts.
static double *at(const struct vector *vector, int i) {
    const int64_t place = vector->increment < 0 ? (int64_t)(vector->n - 1 - i) * -vector->increment
                                                : (int64_t)i * vector->increment;
    return &vector->numbers[place];
}

static void vector_is(const struct vector *vector) {
    void *host = malloc(vector->count * size_of(vector->type));
    BASE_CHECK(host != NULL);
    CUDA(cudaMemcpy(host, vector->device, vector->count * size_of(vector->type),
                    cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < vector->count; ++i) {
        const double got = number_load(host, vector->type, i);
        if (got != vector->numbers[i]) {
            fprintf(stderr, "number %zu: %g, want %g\n", i, got, vector->numbers[i]);
            BASE_CHECK(got == vector->numbers[i]);
        }
    }
    free(host);
}

static void vector_end(struct vector *vector) {
    free(vector->numbers);
    CUDA(cudaFree(vector->device));
}

static int draw(struct base_random *random, int below) {
    return (int)base_random_below(random, (uint64_t)below);
}

static const void *scalar(bool on_device, cudaDataType type, int index, double value) {
    static double host[2];
    number_store(&host[index], type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F, 0, value);
    if (!on_device)
        return &host[index];
    CUDA(cudaMemcpy(memory + 8 * index, &host[index], 8, cudaMemcpyHostToDevice));
    return memory + 8 * index;
}

static void update_is_that_of_a_loop(enum form form, cudaDataType type, bool ex, bool on_device,
                                     struct base_random *random) {
    static const double factors[] = {0, 1, -2, 3};
    struct vector x, y;
    const int n = draw(random, 50), incx = draw(random, 7) - 3, incy = 1 + draw(random, 3);
    const double alpha = factors[draw(random, 4)];
    const cudaDataType computed = type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    vector_make(&x, random, type, n, incx, 3);
    vector_make(&y, random, type, n, draw(random, 2) ? incy : -incy, 3);
    const void *factor = scalar(on_device, type, 0, alpha);
    if (form == FORM_SCAL) {
        if (ex)
            BLAS(cublasScalEx(handle, n, factor, computed, x.device, type, incx, computed));
        else if (type == CUDA_R_64F)
            BLAS(cublasDscal(handle, n, factor, x.device, incx));
        else
            BLAS(cublasSscal(handle, n, factor, x.device, incx));
        for (int i = 0; i < n && incx > 0; ++i)
            *at(&x, i) *= alpha;
    } else {
        if (ex)
            BLAS(cublasAxpyEx(handle, n, factor, computed, x.device, type, incx, y.device, type,
                              y.increment, computed));
        else if (type == CUDA_R_64F)
            BLAS(cublasDaxpy(handle, n, factor, x.device, incx, y.device, y.increment));
        else
            BLAS(cublasSaxpy(handle, n, factor, x.device, incx, y.device, y.increment));
        for (int i = 0; i < n; ++i)
            *at(&y, i) += alpha * *at(&x, i);
    }
    vector_is(&x);
    vector_is(&y);
    vector_end(&x);
    vector_end(&y);
}

static void result_is_that_of_a_loop(enum form form, cudaDataType type, bool ex, bool on_device,
                                     struct base_random *random) {
    struct vector x, y;
    const bool many = draw(random, 20) == 0;
    const int n = draw(random, many ? NUMBERS_MAX : 50);
    const int incx = draw(random, 7) - 3, incy = draw(random, 7) - 3;
    const cudaDataType computed = type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    double host_result = -1, want = 0;
    vector_make(&x, random, type, n, incx, 1);
    vector_make(&y, random, type, n, incy, 1);
    void *result = on_device ? (void *)(memory + 16) : &host_result;
    if (form == FORM_DOT) {
        if (ex)
            BLAS(cublasDotEx(handle, n, x.device, type, incx, y.device, type, incy, result, type,
                             computed));
        else if (type == CUDA_R_64F)
            BLAS(cublasDdot(handle, n, x.device, incx, y.device, incy, result));
        else
            BLAS(cublasSdot(handle, n, x.device, incx, y.device, incy, result));
        for (int i = 0; i < n; ++i)
            want += *at(&x, i) * *at(&y, i);
    } else {
        if (ex)
            BLAS(cublasNrm2Ex(handle, n, x.device, type, incx, result, type, computed));
        else if (type == CUDA_R_64F)
            BLAS(cublasDnrm2(handle, n, x.device, incx, result));
        else
            BLAS(cublasSnrm2(handle, n, x.device, incx, result));
        for (int i = 0; i < n && incx > 0; ++i)
            want += *at(&x, i) * *at(&x, i);
        want = sqrt(want);
    }
    if (on_device)
        CUDA(cudaMemcpy(&host_result, result, size_of(type), cudaMemcpyDeviceToHost));
    BASE_CHECK(number_load(&host_result, type, 0) == rounded(want, type));
    vector_end(&x);
    vector_end(&y);
}

static void gemv_is_that_of_a_loop(cudaDataType type, bool on_device, struct base_random *random) {
    static const double factors[] = {0, 1, -2, 3};
    struct vector a, x, y;
    const int m = draw(random, 20), n = draw(random, 20), lda = (m > 0 ? m : 1) + draw(random, 3);
    const bool transposes = draw(random, 2);
    const int incx = 1 + draw(random, 3), incy = -1 - draw(random, 3);
    const double alpha = factors[draw(random, 4)], beta = factors[draw(random, 4)];
    vector_make(&a, random, type, lda * n, 1, 2);
    vector_make(&x, random, type, transposes ? m : n, incx, 2);
    vector_make(&y, random, type, transposes ? n : m, incy, 2);
    if (beta == 0) // what is not read may be NaN
        CUDA(cudaMemset(y.device, 0xff, y.count * size_of(type)));
    const void *alpha_pointer = scalar(on_device, type, 0, alpha);
    const void *beta_pointer = scalar(on_device, type, 1, beta);
    const cublasOperation_t form = transposes ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (type == CUDA_R_64F)
        BLAS(cublasDgemv(handle, form, m, n, alpha_pointer, a.device, lda, x.device, incx,
                         beta_pointer, y.device, incy));
    else
        BLAS(cublasSgemv(handle, form, m, n, alpha_pointer, a.device, lda, x.device, incx,
                         beta_pointer, y.device, incy));
    for (int i = 0; i < y.n && m > 0 && n > 0; ++i) {
        double sum = 0;
        for (int j = 0; j < x.n; ++j)
            sum += a.numbers[transposes ? i * lda + j : j * lda + i] * *at(&x, j);
        *at(&y, i) = alpha * sum + (beta != 0 ? beta * *at(&y, i) : 0);
    }
    // Between the elements of y NaN stays; that is not looked at here.
    if (beta != 0 || incy == -1) {
        if (beta != 0 || (m > 0 && n > 0))
            vector_is(&y);
    }
    vector_end(&a);
    vector_end(&x);
    vector_end(&y);
}

int main(int argc, char **argv) {
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF};
    static const size_t workspaces[] = {0, 8, 24, WORKSPACE_BYTES};
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d calls\n", (unsigned long long)seed, count);
    BLAS(cublasCreate(&handle));
    CUDA(cudaMalloc((void **)&memory, WORKSPACE_OFFSET + WORKSPACE_BYTES));
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "vector");
        const enum form form = (enum form)draw(&random, FORM_COUNT);
        const bool ex = draw(&random, 2), on_device = draw(&random, 2);
        const cudaDataType type = types[draw(&random, ex && form != FORM_GEMV ? 4 : 2)];
        base_check_context("seed %llu: form %d, type %d, ex %d, on device %d",
                           (unsigned long long)(seed + (uint64_t)i), (int)form, (int)type, ex,
                           on_device);
        BLAS(cublasSetPointerMode(handle, on_device ? CUBLAS_POINTER_MODE_DEVICE
                                                    : CUBLAS_POINTER_MODE_HOST));
        BLAS(cublasSetStream(handle, NULL));
        if (draw(&random, 3) > 0)
            BLAS(cublasSetWorkspace(handle, memory + WORKSPACE_OFFSET,
                                    workspaces[draw(&random, 4)]));
        if (form == FORM_GEMV)
            gemv_is_that_of_a_loop(type, on_device, &random);
        else if (form == FORM_DOT || form == FORM_NRM2)
            result_is_that_of_a_loop(form, type, ex, on_device, &random);
        else
            update_is_that_of_a_loop(form, type, ex, on_device, &random);
    }
    base_check_context(NULL);
    CUDA(cudaFree(memory));
    BLAS(cublasDestroy(handle));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    return 0;
}
