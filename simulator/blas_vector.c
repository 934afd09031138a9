// Vectors: sums, scalings, dots, norms; and a matrix times a vector.
#include "simulator/blas.h"

#include "base/half.h"
#include "simulator/capture.h"
#include "simulator/order.h"
#include "simulator/pool.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

// Dots and norms: so many numbers a partial sum, and at most so many of those.
#define PARTIAL_NUMBERS 4096
#define PARTIAL_COUNT_MAX 128

struct vector {
    const void *pointer;
    cudaDataType type;
    int increment;
};

enum form { FORM_AXPY, FORM_SCAL, FORM_DOT, FORM_NRM2 };

struct vector_work {
    enum form form;
    int n; // not negative
    struct vector x, y;
    bool is_double;
    struct sim__blas_scalar alpha;
    cudaDataType result_type;
    void *result; // on the device
    void *box;    // or the host's, which waits
    void *workspace;
    int partial_count;
};

// --- Numbers ---

static int64_t step_of(const struct vector *vector) {
    return vector->increment < 0 ? -(int64_t)vector->increment : vector->increment;
}

// The element that comes first: with a negative increment the last one in memory.
static int64_t start_of(const struct vector *vector, int64_t n) {
    return vector->increment < 0 ? (n - 1) * step_of(vector) : 0;
}

static float narrow_read(const uint16_t *at, cudaDataType type) {
    return type == CUDA_R_16F ? base_half_to_float(*at) : base_bfloat16_to_float(*at);
}

static uint16_t narrow_round(float value, cudaDataType type) {
    return type == CUDA_R_16F ? base_half_from_float(value) : base_bfloat16_from_float(value);
}

static double number_read(const void *bytes, cudaDataType type, int64_t i) {
    if (type == CUDA_R_64F)
        return ((const double *)bytes)[i];
    if (type == CUDA_R_32F)
        return (double)((const float *)bytes)[i];
    return (double)narrow_read((const uint16_t *)bytes + i, type);
}

static void number_write(void *bytes, cudaDataType type, double value) {
    if (type == CUDA_R_64F)
        *(double *)bytes = value;
    else if (type == CUDA_R_32F)
        *(float *)bytes = (float)value;
    else
        *(uint16_t *)bytes = narrow_round((float)value, type);
}

// NULL: the device has faulted, or there are no bytes to reach.
static void *vector_bytes(const struct vector *vector, int64_t n, bool write) {
    const int64_t count = (n - 1) * step_of(vector) + 1;
    return sim_kernel_bytes(vector->pointer, (size_t)count * sim__blas_size_of(vector->type),
                            write);
}

// --- Kernels ---

static void axpy_run(const struct vector_work *work, double alpha, const void *x, void *y) {
    const int n = work->n;
    if (work->x.type == CUDA_R_64F) {
        cblas_daxpy(n, alpha, x, work->x.increment, y, work->y.increment);
    } else if (work->x.type == CUDA_R_32F) {
        cblas_saxpy(n, (float)alpha, x, work->x.increment, y, work->y.increment);
    } else {
        const uint16_t *from = (const uint16_t *)x + start_of(&work->x, n);
        uint16_t *to = (uint16_t *)y + start_of(&work->y, n);
        for (int i = 0; i < n; ++i, from += work->x.increment, to += work->y.increment)
            *to = narrow_round((float)alpha * narrow_read(from, work->x.type) +
                                   narrow_read(to, work->y.type),
                               work->y.type);
    }
}

static void scal_run(const struct vector_work *work, double alpha, void *x) {
    if (work->x.type == CUDA_R_64F) {
        cblas_dscal(work->n, alpha, x, work->x.increment);
    } else if (work->x.type == CUDA_R_32F) {
        cblas_sscal(work->n, (float)alpha, x, work->x.increment);
    } else {
        uint16_t *at = x;
        for (int i = 0; i < work->n; ++i, at += work->x.increment)
            *at = narrow_round((float)alpha * narrow_read(at, work->x.type), work->x.type);
    }
}

// Elements FIRST to LAST - 1 of the sum that makes a dot, or the square of a norm.
static double sum_of(const struct vector_work *work, const void *x, const void *y, int64_t first,
                     int64_t last) {
    const struct vector *of_y = work->form == FORM_NRM2 ? &work->x : &work->y;
    int64_t at_x = start_of(&work->x, work->n) + first * work->x.increment;
    int64_t at_y = start_of(of_y, work->n) + first * of_y->increment;
    double sum = 0;
    for (int64_t i = first; i < last; ++i, at_x += work->x.increment, at_y += of_y->increment)
        sum += number_read(x, work->x.type, at_x) * number_read(y, of_y->type, at_y);
    return sum;
}

// Squares of doubles can be beyond what a double holds.
static double norm_of(const struct vector_work *work, const void *x, double squares) {
    if (work->is_double && !(squares > 1e-280 && squares < 1e280))
        return cblas_dnrm2(work->n, x, work->x.increment);
    return sqrt(squares);
}

static double reduce(const struct vector_work *work, const void *x, const void *y,
                     double *partials) {
    const int64_t n = work->n, count = work->partial_count > 0 ? work->partial_count : 1;
    double sum = 0, here;
    for (int64_t i = 0; i < count; ++i)
        *(partials != NULL ? &partials[i] : &here) =
            sum_of(work, x, y, n * i / count, n * (i + 1) / count);
    if (partials == NULL)
        return here;
    for (int64_t i = 0; i < count; ++i)
        sum += partials[i];
    return sum;
}

// false: the device has faulted.
static bool reduction_run(const struct vector_work *work) {
    const void *x = NULL, *y = NULL;
    double *partials = NULL, sum = 0;
    if (work->n > 0) {
        x = vector_bytes(&work->x, work->n, false);
        y = work->form == FORM_NRM2 ? x : vector_bytes(&work->y, work->n, false);
        if (x == NULL || y == NULL)
            return false;
        if (work->partial_count > 0) {
            partials = sim_kernel_bytes(work->workspace,
                                        (size_t)work->partial_count * sizeof *partials, true);
            if (partials == NULL)
                return false;
        }
        sum = reduce(work, x, y, partials);
        if (work->form == FORM_NRM2)
            sum = norm_of(work, x, sum);
    }
    void *result = work->box != NULL
                       ? work->box
                       : sim_kernel_bytes(work->result, sim__blas_size_of(work->result_type), true);
    if (result == NULL)
        return false;
    number_write(result, work->result_type, sum);
    return true;
}

static void body(const void *argument) {
    const struct vector_work *work = argument;
    double alpha = 0;
    if (work->form == FORM_DOT || work->form == FORM_NRM2) {
        (void)reduction_run(work);
        return;
    }
    if (!sim__blas_scalar_read(&work->alpha, work->is_double, &alpha))
        return;
    void *x = vector_bytes(&work->x, work->n, work->form == FORM_SCAL);
    void *y = work->form == FORM_AXPY ? vector_bytes(&work->y, work->n, true) : x;
    if (x == NULL || y == NULL)
        return;
    if (work->form == FORM_AXPY)
        axpy_run(work, alpha, x, y);
    else
        scal_run(work, alpha, x);
}

// --- Submission ---

static void access_gather(const struct vector_work *work, const struct sim__blas_target *target) {
    const size_t size = sim__blas_size_of(work->x.type);
    const bool reduces = work->form == FORM_DOT || work->form == FORM_NRM2;
    sim__blas_access_begin();
    if (!reduces)
        sim__blas_access_add_scalar(&work->alpha, work->is_double);
    sim__blas_access_add_vector(SIM_ACCESS_READ, work->x.pointer, size, work->n, work->x.increment);
    if (work->form == FORM_AXPY || work->form == FORM_DOT)
        sim__blas_access_add_vector(SIM_ACCESS_READ, work->y.pointer, size, work->n,
                                    work->y.increment);
    if (work->form == FORM_AXPY)
        sim__blas_access_add_vector(SIM_ACCESS_WRITE, work->y.pointer, size, work->n,
                                    work->y.increment);
    if (work->form == FORM_SCAL)
        sim__blas_access_add_vector(SIM_ACCESS_WRITE, work->x.pointer, size, work->n,
                                    work->x.increment);
    if (reduces)
        sim__blas_access_add_workspace(target, (size_t)work->partial_count * sizeof(double));
    if (reduces && work->box == NULL)
        sim__blas_access_add(SIM_ACCESS_WRITE, work->result, sim__blas_size_of(work->result_type));
}

static void workspace_use(struct vector_work *work, const struct sim__blas_target *target) {
    const size_t room = target->workspace_bytes / sizeof(double);
    size_t count = (size_t)(work->n / PARTIAL_NUMBERS + 1);
    count = count > PARTIAL_COUNT_MAX ? PARTIAL_COUNT_MAX : count;
    count = count > room ? room : count;
    work->workspace = target->workspace;
    work->partial_count = target->workspace == NULL || work->n == 0 ? 0 : (int)count;
}

static cublasStatus_t work_submit(struct sim__blas_handle *blas, struct vector_work *work,
                                  struct sim__blas_target *target) {
    static const char *const names[] = {"axpy", "scal", "dot", "nrm2"};
    const uint64_t n = (uint64_t)work->n;
    if (work->form == FORM_DOT || work->form == FORM_NRM2) {
        const cublasStatus_t status = sim__blas_aim_workspace(blas, target);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
        workspace_use(work, target);
    }
    access_gather(work, target);
    return sim__blas_submit(target, &(struct sim_kernel){
                                        .name = names[work->form],
                                        .body = body,
                                        .argument = work,
                                        .argument_size = sizeof *work,
                                        .bytes = n * sim__blas_size_of(work->x.type) *
                                                 (work->form == FORM_AXPY   ? 3
                                                  : work->form == FORM_NRM2 ? 1
                                                                            : 2),
                                        .flops = 2 * n,
                                    });
}

static bool types_fit(const struct vector_work *work, cudaDataType scalar_type,
                      cudaDataType execution_type) {
    const cudaDataType computed = work->x.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    return sim__blas_size_of(work->x.type) > 0 && execution_type == computed &&
           ((work->form == FORM_SCAL || work->form == FORM_NRM2) || work->y.type == work->x.type) &&
           (work->form == FORM_DOT || work->form == FORM_NRM2 ? scalar_type == work->x.type
                                                              : scalar_type == computed);
}

// axpy and scal.
static cublasStatus_t update_locked(struct sim__blas_handle *blas, struct vector_work *work,
                                    const void *alpha, cudaDataType alpha_type,
                                    cudaDataType execution_type) {
    struct sim__blas_target target;
    if (alpha == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no alpha");
    if (!types_fit(work, alpha_type, execution_type))
        return sim__blas_refuse(CUBLAS_STATUS_NOT_SUPPORTED, "types that do not go together");
    work->is_double = work->x.type == CUDA_R_64F;
    const cublasStatus_t status = sim__blas_aim(blas, blas->stream, &target);
    if (status != CUBLAS_STATUS_SUCCESS || work->n <= 0 ||
        (work->form == FORM_SCAL && work->x.increment <= 0))
        return status;
    work->alpha = sim__blas_scalar_take(blas->pointer_mode == CUBLAS_POINTER_MODE_DEVICE,
                                        work->is_double, alpha);
    return work_submit(blas, work, &target);
}

// The work is in; the host waits for its result.
static void result_wait(struct sim__stream *stream) {
    struct sim__order_point point = sim__order_of_stream(stream);
    sim__engine_force_stream(stream);
    sim__order_observe(&point);
    sim__pools_release();
}

// dot and nrm2.
static cublasStatus_t result_locked(struct sim__blas_handle *blas, struct vector_work *work,
                                    void *result, cudaDataType result_type,
                                    cudaDataType execution_type) {
    struct sim__blas_target target;
    double box; // as large as any
    if (result == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "no place for the result");
    if (!types_fit(work, result_type, execution_type))
        return sim__blas_refuse(CUBLAS_STATUS_NOT_SUPPORTED, "types that do not go together");
    work->is_double = work->x.type == CUDA_R_64F;
    work->result_type = result_type;
    if (work->n < 0 || (work->form == FORM_NRM2 && work->x.increment <= 0))
        work->n = 0;
    cublasStatus_t status = sim__blas_aim(blas, blas->stream, &target);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (blas->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        work->result = result;
        return work_submit(blas, work, &target);
    }
    status = sim__blas_status_of(sim__capture_stream_waited(target.stream));
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    const size_t size = sim__blas_size_of(result_type);
    memcpy(&box, result, size); // what it stays without numerics
    work->box = &box;
    const int device = blas->device; // the wait can give the lock back
    status = work_submit(blas, work, &target);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    result_wait(target.stream);
    if (sim__state.devices[device].sticky_error != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    memcpy(result, &box, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublas_update(cublasHandle_t handle, struct vector_work work,
                                    const void *alpha, cudaDataType alpha_type,
                                    cudaDataType execution_type) {
    struct sim__blas_handle *blas;
    cublasStatus_t status = sim__blas_begin(SIM_CALL_BLAS_AXPY, handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = update_locked(blas, &work, alpha, alpha_type, execution_type);
    return sim__blas_end(SIM_CALL_BLAS_AXPY, status);
}

static cublasStatus_t cublas_result(cublasHandle_t handle, struct vector_work work, void *result,
                                    cudaDataType result_type, cudaDataType execution_type) {
    struct sim__blas_handle *blas;
    cublasStatus_t status = sim__blas_begin(SIM_CALL_BLAS_DOT, handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = result_locked(blas, &work, result, result_type, execution_type);
    return sim__blas_end(SIM_CALL_BLAS_DOT, status);
}

// --- The calls ---

cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void *alpha,
                            cudaDataType alpha_type, const void *x, cudaDataType x_type, int incx,
                            void *y, cudaDataType y_type, int incy, cudaDataType execution_type) {
    const struct vector_work work = {
        .form = FORM_AXPY, .n = n, .x = {x, x_type, incx}, .y = {y, y_type, incy}};
    return cublas_update(handle, work, alpha, alpha_type, execution_type);
}

cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float *alpha, const float *x,
                           int incx, float *y, int incy) {
    const struct vector_work work = {
        .form = FORM_AXPY, .n = n, .x = {x, CUDA_R_32F, incx}, .y = {y, CUDA_R_32F, incy}};
    return cublas_update(handle, work, alpha, CUDA_R_32F, CUDA_R_32F);
}

cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double *alpha, const double *x,
                           int incx, double *y, int incy) {
    const struct vector_work work = {
        .form = FORM_AXPY, .n = n, .x = {x, CUDA_R_64F, incx}, .y = {y, CUDA_R_64F, incy}};
    return cublas_update(handle, work, alpha, CUDA_R_64F, CUDA_R_64F);
}

cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void *alpha,
                            cudaDataType alpha_type, void *x, cudaDataType x_type, int incx,
                            cudaDataType execution_type) {
    const struct vector_work work = {.form = FORM_SCAL, .n = n, .x = {x, x_type, incx}};
    return cublas_update(handle, work, alpha, alpha_type, execution_type);
}

cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float *alpha, float *x, int incx) {
    const struct vector_work work = {.form = FORM_SCAL, .n = n, .x = {x, CUDA_R_32F, incx}};
    return cublas_update(handle, work, alpha, CUDA_R_32F, CUDA_R_32F);
}

cublasStatus_t cublasDscal(cublasHandle_t handle, int n, const double *alpha, double *x, int incx) {
    const struct vector_work work = {.form = FORM_SCAL, .n = n, .x = {x, CUDA_R_64F, incx}};
    return cublas_update(handle, work, alpha, CUDA_R_64F, CUDA_R_64F);
}

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType x_type,
                           int incx, const void *y, cudaDataType y_type, int incy, void *result,
                           cudaDataType result_type, cudaDataType execution_type) {
    const struct vector_work work = {
        .form = FORM_DOT, .n = n, .x = {x, x_type, incx}, .y = {y, y_type, incy}};
    return cublas_result(handle, work, result, result_type, execution_type);
}

cublasStatus_t cublasSdot(cublasHandle_t handle, int n, const float *x, int incx, const float *y,
                          int incy, float *result) {
    const struct vector_work work = {
        .form = FORM_DOT, .n = n, .x = {x, CUDA_R_32F, incx}, .y = {y, CUDA_R_32F, incy}};
    return cublas_result(handle, work, result, CUDA_R_32F, CUDA_R_32F);
}

cublasStatus_t cublasDdot(cublasHandle_t handle, int n, const double *x, int incx, const double *y,
                          int incy, double *result) {
    const struct vector_work work = {
        .form = FORM_DOT, .n = n, .x = {x, CUDA_R_64F, incx}, .y = {y, CUDA_R_64F, incy}};
    return cublas_result(handle, work, result, CUDA_R_64F, CUDA_R_64F);
}

cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void *x, cudaDataType x_type,
                            int incx, void *result, cudaDataType result_type,
                            cudaDataType execution_type) {
    const struct vector_work work = {.form = FORM_NRM2, .n = n, .x = {x, x_type, incx}};
    return cublas_result(handle, work, result, result_type, execution_type);
}

cublasStatus_t cublasSnrm2(cublasHandle_t handle, int n, const float *x, int incx, float *result) {
    const struct vector_work work = {.form = FORM_NRM2, .n = n, .x = {x, CUDA_R_32F, incx}};
    return cublas_result(handle, work, result, CUDA_R_32F, CUDA_R_32F);
}

cublasStatus_t cublasDnrm2(cublasHandle_t handle, int n, const double *x, int incx,
                           double *result) {
    const struct vector_work work = {.form = FORM_NRM2, .n = n, .x = {x, CUDA_R_64F, incx}};
    return cublas_result(handle, work, result, CUDA_R_64F, CUDA_R_64F);
}
