// A matrix times a vector.
#include "simulator/blas.h"

#include <cblas.h>
#include <string.h>

struct gemv {
    bool transposes, is_double;
    int m, n, lda, incx, incy;
    const void *a, *x;
    void *y;
    struct sim__blas_scalar alpha, beta;
};

static int x_count(const struct gemv *gemv) { return gemv->transposes ? gemv->m : gemv->n; }
static int y_count(const struct gemv *gemv) { return gemv->transposes ? gemv->n : gemv->m; }
static size_t size_of(const struct gemv *gemv) {
    return gemv->is_double ? sizeof(double) : sizeof(float);
}

static size_t vector_bytes(const struct gemv *gemv, int count, int increment) {
    const size_t step = (size_t)(increment < 0 ? -(int64_t)increment : increment);
    return ((size_t)(count - 1) * step + 1) * size_of(gemv);
}

// What a beta of 0 scales is not read, NaN or not.
static void y_clear(const struct gemv *gemv, char *y) {
    const size_t size = size_of(gemv);
    const size_t step = (size_t)(gemv->incy < 0 ? -(int64_t)gemv->incy : gemv->incy) * size;
    for (int i = 0; i < y_count(gemv); ++i)
        memset(y + (size_t)i * step, 0, size);
}

static void body(const void *argument) {
    const struct gemv *gemv = argument;
    double alpha, beta;
    if (!sim__blas_scalar_read(&gemv->alpha, gemv->is_double, &alpha) ||
        !sim__blas_scalar_read(&gemv->beta, gemv->is_double, &beta))
        return;
    const size_t size = size_of(gemv);
    const size_t a_count = (size_t)(gemv->n - 1) * (size_t)gemv->lda + (size_t)gemv->m;
    const CBLAS_TRANSPOSE form = gemv->transposes ? CblasTrans : CblasNoTrans;
    const void *a = NULL, *x = NULL;
    void *y = sim_kernel_bytes(gemv->y, vector_bytes(gemv, y_count(gemv), gemv->incy), true);
    if (alpha != 0) {
        a = sim_kernel_bytes(gemv->a, a_count * size, false);
        x = sim_kernel_bytes(gemv->x, vector_bytes(gemv, x_count(gemv), gemv->incx), false);
        if (a == NULL || x == NULL)
            return;
    }
    if (y == NULL)
        return;
    if (beta == 0)
        y_clear(gemv, y);
    if (gemv->is_double)
        cblas_dgemv(CblasColMajor, form, gemv->m, gemv->n, alpha, a, gemv->lda, x, gemv->incx, beta,
                    y, gemv->incy);
    else
        cblas_sgemv(CblasColMajor, form, gemv->m, gemv->n, (float)alpha, a, gemv->lda, x,
                    gemv->incx, (float)beta, y, gemv->incy);
}

static void access_gather(const struct gemv *gemv) {
    const size_t size = size_of(gemv);
    sim__blas_access_begin();
    sim__blas_access_add_scalar(&gemv->alpha, gemv->is_double);
    sim__blas_access_add_scalar(&gemv->beta, gemv->is_double);
    if (gemv->alpha.device != NULL || gemv->alpha.value != 0) {
        sim__blas_access_add_matrix(SIM_ACCESS_READ, gemv->a, size, gemv->m, gemv->n, gemv->lda, 0,
                                    1);
        sim__blas_access_add_vector(SIM_ACCESS_READ, gemv->x, size, x_count(gemv), gemv->incx);
    }
    if (gemv->beta.device != NULL || gemv->beta.value != 0)
        sim__blas_access_add_vector(SIM_ACCESS_READ, gemv->y, size, y_count(gemv), gemv->incy);
    sim__blas_access_add_vector(SIM_ACCESS_WRITE, gemv->y, size, y_count(gemv), gemv->incy);
}

static cublasStatus_t gemv_check(cublasOperation_t trans, const struct gemv *gemv,
                                 const void *alpha, const void *beta) {
    if (trans != CUBLAS_OP_N && trans != CUBLAS_OP_T && trans != CUBLAS_OP_C)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "operation %d", (int)trans);
    if (gemv->m < 0 || gemv->n < 0 || gemv->lda < (gemv->m > 1 ? gemv->m : 1) || gemv->incx == 0 ||
        gemv->incy == 0)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "%d x %d, leading dimension %d, increments %d and %d", gemv->m,
                                gemv->n, gemv->lda, gemv->incx, gemv->incy);
    if (alpha == NULL || beta == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no alpha, or no beta");
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t gemv_locked(struct sim__blas_handle *blas, cublasOperation_t trans,
                                  struct gemv *gemv, const void *alpha, const void *beta) {
    struct sim__blas_target target;
    cublasStatus_t status = gemv_check(trans, gemv, alpha, beta);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = sim__blas_aim(blas, blas->stream, &target);
    if (status != CUBLAS_STATUS_SUCCESS || gemv->m == 0 || gemv->n == 0)
        return status;
    const bool on_device = blas->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    const uint64_t count = (uint64_t)gemv->m * (uint64_t)gemv->n;
    gemv->transposes = trans != CUBLAS_OP_N;
    gemv->alpha = sim__blas_scalar_take(on_device, gemv->is_double, alpha);
    gemv->beta = sim__blas_scalar_take(on_device, gemv->is_double, beta);
    access_gather(gemv);
    return sim__blas_submit(
        &target, &(struct sim_kernel){.name = gemv->is_double ? "gemv_fp64" : "gemv_fp32",
                                      .body = body,
                                      .argument = gemv,
                                      .argument_size = sizeof *gemv,
                                      .bytes = count * size_of(gemv),
                                      .flops = 2 * count});
}

static cublasStatus_t cublas_gemv(cublasHandle_t handle, cublasOperation_t trans, struct gemv gemv,
                                  const void *alpha, const void *beta) {
    struct sim__blas_handle *blas;
    cublasStatus_t status = sim__blas_begin(SIM_CALL_BLAS_GEMV, handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = gemv_locked(blas, trans, &gemv, alpha, beta);
    return sim__blas_end(SIM_CALL_BLAS_GEMV, status);
}

cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const float *alpha, const float *a, int lda, const float *x, int incx,
                           const float *beta, float *y, int incy) {
    const struct gemv gemv = {
        .m = m, .n = n, .lda = lda, .incx = incx, .incy = incy, .a = a, .x = x, .y = y};
    return cublas_gemv(handle, trans, gemv, alpha, beta);
}

cublasStatus_t cublasDgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const double *alpha, const double *a, int lda, const double *x, int incx,
                           const double *beta, double *y, int incy) {
    const struct gemv gemv = {.is_double = true,
                              .m = m,
                              .n = n,
                              .lda = lda,
                              .incx = incx,
                              .incy = incy,
                              .a = a,
                              .x = x,
                              .y = y};
    return cublas_gemv(handle, trans, gemv, alpha, beta);
}
