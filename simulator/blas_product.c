// How products are computed: OpenBLAS where it has the types; 16-bit matrices become float piece by
// piece, and what comes out is rounded once.
//
// As a device does with a product whose sum is long, the sum is cut: for some columns the second
// half goes to the workspace first, and is added in the end. So a workspace that is somebody else's
// at that time shows, on either side.
#include "simulator/blas_product.h"

#include "base/half.h"
#include "simulator/plant.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Partial sums are kept for one column, or as many as this holds.
#define PARTIAL_BYTES ((size_t)8 << 10)
// 16-bit products are computed in pieces of so many columns.
#define PIECE_COLUMNS 256

static size_t accumulator_size(bool is_double) {
    return is_double ? sizeof(double) : sizeof(float);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

size_t sim__blas_product_partial_bytes(const struct sim__blas_product *product, size_t available) {
    const size_t size = accumulator_size(product->is_double), column = (size_t)product->m * size;
    if (product->k < 2 || product->m == 0 || product->n == 0) return 0;
    size_t bytes = PARTIAL_BYTES / column * column;
    bytes = bytes < column ? column : bytes;
    bytes = bytes > column * (size_t)product->n ? column * (size_t)product->n : bytes;
    if (bytes > available) // fewer columns, or a part of one
        bytes = available >= column ? available / column * column : available / size * size;
    return bytes;
}

// --- One matrix by OpenBLAS ---

// Matrices of float or double, with the rest of one product.
struct dense {
    bool is_double, transposes_a, transposes_b;
    int64_t lda, ldb, ldc;
    double alpha;
    const char *a, *b; // their first elements
};

// C = beta C. With a beta of 0 it is not read.
static void scale(bool is_double, double beta, int64_t rows, int64_t columns, void *c,
                  int64_t ldc) {
    for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i)
            if (is_double) {
                double *const to = (double *)c + j * ldc + i;
                *to = beta == 0 ? 0 : beta * *to;
            } else {
                float *const to = (float *)c + j * ldc + i;
                *to = beta == 0 ? 0 : (float)beta * *to;
            }
}

// C = alpha A B + beta C, of the K terms from the FIRST one on. Without a term, A and B are not
// read; OpenBLAS reads small ones even with an alpha of 0, on CPUs with AVX-512.
static void multiply(const struct dense *dense, double alpha, int64_t m, int64_t n, int64_t first,
                     int64_t k, int64_t row, int64_t column, double beta, void *c, int64_t ldc) {
    if (alpha == 0 || k == 0) {
        scale(dense->is_double, beta, m, n, c, ldc);
        return;
    }
    const int64_t size = (int64_t)accumulator_size(dense->is_double);
    const CBLAS_TRANSPOSE a_form = dense->transposes_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE b_form = dense->transposes_b ? CblasTrans : CblasNoTrans;
    const void *a =
        dense->a +
        (dense->transposes_a ? row * dense->lda + first : first * dense->lda + row) * size;
    const void *b =
        dense->b +
        (dense->transposes_b ? first * dense->ldb + column : column * dense->ldb + first) * size;
    if (dense->is_double)
        cblas_dgemm(CblasColMajor, a_form, b_form, (blasint)m, (blasint)n, (blasint)k, alpha, a,
                    (blasint)dense->lda, b, (blasint)dense->ldb, beta, c, (blasint)ldc);
    else
        cblas_sgemm(CblasColMajor, a_form, b_form, (blasint)m, (blasint)n, (blasint)k, (float)alpha,
                    a, (blasint)dense->lda, b, (blasint)dense->ldb, (float)beta, c, (blasint)ldc);
}

static void partial_add(bool is_double, double alpha, const void *partial, int64_t rows,
                        int64_t columns, void *c, int64_t ldc) {
    for (int64_t j = 0; j < columns; ++j) {
        if (is_double) {
            const double *from = (const double *)partial + j * rows;
            double *to = (double *)c + j * ldc;
            for (int64_t i = 0; i < rows; ++i)
                to[i] += alpha * from[i];
        } else {
            const float *from = (const float *)partial + j * rows;
            float *to = (float *)c + j * ldc;
            for (int64_t i = 0; i < rows; ++i)
                to[i] += (float)alpha * from[i];
        }
    }
}

// C = alpha A B + beta C, m x n, k terms; PARTIAL: bytes for partial sums, or NULL.
static void dense_run(const struct dense *dense, int64_t m, int64_t n, int64_t k, double beta,
                      char *c, void *partial, size_t partial_bytes) {
    const int64_t size = (int64_t)accumulator_size(dense->is_double);
    if (partial == NULL || partial_bytes == 0 || dense->alpha == 0) {
        multiply(dense, dense->alpha, m, n, 0, k, 0, 0, beta, c, dense->ldc);
        return;
    }
    const int64_t room = (int64_t)partial_bytes / size, rows = least(m, room);
    const int64_t columns = least(n, room / rows), half = k / 2;
    multiply(dense, 1, rows, columns, half, k - half, 0, 0, 0, partial, rows);
    multiply(dense, dense->alpha, rows, columns, 0, half, 0, 0, beta, c, dense->ldc);
    if (rows < m)
        multiply(dense, dense->alpha, m - rows, columns, 0, k, rows, 0, beta, c + rows * size,
                 dense->ldc);
    if (columns < n)
        multiply(dense, dense->alpha, m, n - columns, 0, k, 0, columns, beta,
                 c + columns * dense->ldc * size, dense->ldc);
    partial_add(dense->is_double, dense->alpha, partial, rows, columns, c, dense->ldc);
}

// --- Behind the product ---

static double number_at(const void *numbers, cudaDataType type, int64_t i) {
    switch (type) {
    case CUDA_R_64F:
        return ((const double *)numbers)[i];
    case CUDA_R_16F:
        return (double)base_half_to_float(((const uint16_t *)numbers)[i]);
    case CUDA_R_16BF:
        return (double)base_bfloat16_to_float(((const uint16_t *)numbers)[i]);
    default:
        return (double)((const float *)numbers)[i];
    }
}

static double activate(enum sim__blas_activation activation, double x) {
    if (activation == SIM__BLAS_RELU) return x > 0 || x != x ? x : 0;
    if (activation == SIM__BLAS_GELU)
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x;
}

static void finish(const struct sim__blas_product *product, const void *bias, int64_t columns,
                   void *c, int64_t ldc) {
    if (bias == NULL && product->activation == SIM__BLAS_NONE) return;
    for (int64_t i = 0; i < product->m; ++i) {
        const double added = bias != NULL ? number_at(bias, product->bias_type, i) : 0;
        for (int64_t j = 0; j < columns; ++j) {
            if (product->is_double) {
                double *at = (double *)c + j * ldc + i;
                *at = activate(product->activation, *at + added);
            } else {
                float *at = (float *)c + j * ldc + i;
                *at = (float)activate(product->activation, (double)*at + added);
            }
        }
    }
}

// --- 16-bit matrices ---

static void widen(cudaDataType type, const uint16_t *from, int64_t ld, int64_t rows,
                  int64_t columns, float *to) {
    for (int64_t j = 0; j < columns; ++j, from += ld, to += rows)
        if (type == CUDA_R_16F)
            for (int64_t i = 0; i < rows; ++i)
                to[i] = base_half_to_float(from[i]);
        else
            for (int64_t i = 0; i < rows; ++i)
                to[i] = base_bfloat16_to_float(from[i]);
}

static void narrow(cudaDataType type, const float *from, int64_t rows, int64_t columns,
                   uint16_t *to, int64_t ld) {
    for (int64_t j = 0; j < columns; ++j, from += rows, to += ld)
        if (type == CUDA_R_16F)
            for (int64_t i = 0; i < rows; ++i)
                to[i] = base_half_from_float(from[i]);
        else
            for (int64_t i = 0; i < rows; ++i)
                to[i] = base_bfloat16_from_float(from[i]);
}

static void *take(int64_t count) {
    float *numbers = malloc((size_t)(count > 0 ? count : 1) * sizeof *numbers);
    if (numbers == NULL)
        sim__host_limit("out of host memory for a matrix of %lld numbers", (long long)count);
    return numbers;
}

// One product, its matrices where they can be touched.
struct bytes {
    const char *a, *b, *c, *bias;
    char *d, *partial;
};

// COLUMNS columns of D from COLUMN on; A is WIDE_A.
static void piece_run(const struct sim__blas_product *product, const struct bytes *at,
                      const float *wide_a, float *wide_b, float *wide_d, double alpha, double beta,
                      int64_t column, int64_t columns) {
    const int64_t m = product->m, k = product->k;
    const struct sim__blas_matrix *b = &product->b, *d = &product->d, *c = &product->c;
    const bool narrows = sim__blas_is_16_bit(d->type);
    const int64_t b_rows = product->transposes_b ? columns : k;
    if (k > 0 && alpha != 0)
        widen(b->type,
              (const uint16_t *)(const void *)at->b +
                  (product->transposes_b ? column : column * b->ld),
              b->ld, b_rows, product->transposes_b ? k : columns, wide_b);
    float *sum = narrows ? wide_d : (float *)(void *)at->d + column * d->ld;
    const int64_t sum_ld = narrows ? m : d->ld;
    if (narrows && beta != 0)
        widen(c->type, (const uint16_t *)(const void *)at->c + column * c->ld, c->ld, m, columns,
              sum);
    const struct dense dense = {
        .transposes_a = product->transposes_a,
        .transposes_b = product->transposes_b,
        .lda = product->transposes_a ? (k > 0 ? k : 1) : m,
        .ldb = b_rows > 0 ? b_rows : 1,
        .ldc = sum_ld,
        .alpha = alpha,
        .a = (const char *)wide_a,
        .b = (const char *)wide_b,
    };
    dense_run(&dense, m, columns, k, beta, (char *)sum, column == 0 ? at->partial : NULL,
              column == 0 ? (size_t)least((int64_t)product->partial_bytes,
                                          m * columns * (int64_t)sizeof(float))
                          : 0);
    finish(product, at->bias, columns, sum, sum_ld);
    if (narrows)
        narrow(d->type, sum, m, columns, (uint16_t *)(void *)at->d + column * d->ld, d->ld);
}

static void narrow_run(const struct sim__blas_product *product, const struct bytes *at,
                       double alpha, double beta) {
    const int64_t m = product->m, k = product->k;
    const int64_t most = least(product->n, PIECE_COLUMNS);
    const int64_t a_rows = product->transposes_a ? k : m;
    float *a = take(m * k), *b = take(k * most), *d = take(m * most);
    if (k > 0 && alpha != 0)
        widen(product->a.type, (const uint16_t *)(const void *)at->a, product->a.ld, a_rows,
              product->transposes_a ? m : k, a);
    for (int64_t column = 0; column < product->n; column += most)
        piece_run(product, at, a, b, d, alpha, beta, column, least(most, product->n - column));
    free(a);
    free(b);
    free(d);
}

// --- The kernel ---

static void c_copy(const struct sim__blas_product *product, const struct bytes *at) {
    const size_t size = sim__blas_size_of(product->d.type);
    for (int64_t j = 0; j < product->n; ++j)
        memmove(at->d + (size_t)(j * product->d.ld) * size,
                at->c + (size_t)(j * product->c.ld) * size, (size_t)product->m * size);
}

static void one_run(const struct sim__blas_product *product, const struct bytes *at, double alpha,
                    double beta) {
    const bool narrows = sim__blas_is_16_bit(product->d.type);
    if (beta != 0 && !narrows && at->c != at->d) c_copy(product, at);
    if (sim__blas_is_16_bit(product->a.type)) {
        narrow_run(product, at, alpha, beta);
        return;
    }
    const struct dense dense = {
        .is_double = product->is_double,
        .transposes_a = product->transposes_a,
        .transposes_b = product->transposes_b,
        .lda = product->a.ld,
        .ldb = product->b.ld,
        .ldc = product->d.ld,
        .alpha = alpha,
        .a = at->a,
        .b = at->b,
    };
    dense_run(&dense, product->m, product->n, product->k, beta, at->d, at->partial,
              product->partial_bytes);
    finish(product, at->bias, product->n, at->d, product->d.ld);
}

// What device work may touch of the INDEX-th matrix; NULL: the device has faulted.
static void *matrix_bytes(const struct sim__blas_product *product,
                          const struct sim__blas_matrix *matrix, int64_t index, int64_t rows,
                          int64_t columns, bool write) {
    const size_t size = sim__blas_size_of(matrix->type);
    const char *pointer = (const char *)matrix->pointer + index * matrix->stride * (int64_t)size;
    if (product->by_pointers) {
        const void *array = sim_kernel_bytes(
            (const char *)matrix->pointer + index * (int64_t)sizeof pointer, sizeof pointer, false);
        if (array == NULL) return NULL;
        memcpy(&pointer, array, sizeof pointer);
    }
    const int64_t count = (columns - 1) * matrix->ld + rows;
    return sim_kernel_bytes(pointer, (size_t)count * size, write);
}

// false: the device has faulted.
static bool bytes_find(const struct sim__blas_product *product, int64_t index, bool reads,
                       bool reads_c, struct bytes *at) {
    const int64_t m = product->m, n = product->n, k = product->k;
    *at = (struct bytes){0};
    if (reads) {
        at->a = product->transposes_a ? matrix_bytes(product, &product->a, index, k, m, false)
                                      : matrix_bytes(product, &product->a, index, m, k, false);
        at->b = product->transposes_b ? matrix_bytes(product, &product->b, index, n, k, false)
                                      : matrix_bytes(product, &product->b, index, k, n, false);
        if (at->a == NULL || at->b == NULL) return false;
    }
    at->d = matrix_bytes(product, &product->d, index, m, n, true);
    at->c = !reads_c || product->c.pointer == product->d.pointer
                ? at->d
                : matrix_bytes(product, &product->c, index, m, n, false);
    if (product->bias != NULL) {
        const size_t size = sim__blas_size_of(product->bias_type);
        at->bias = sim_kernel_bytes((const char *)product->bias +
                                        index * product->bias_stride * (int64_t)size,
                                    (size_t)m * size, false);
        if (at->bias == NULL) return false;
    }
    if (index == 0 && reads && product->partial_bytes > 0) {
        at->partial = sim_kernel_bytes(product->workspace, product->partial_bytes, true);
        if (at->partial == NULL) return false;
    }
    return at->c != NULL && at->d != NULL;
}

void sim__blas_product_body(const void *argument) {
    const struct sim__blas_product *product = argument;
    double alpha, beta;
    if (!sim__blas_scalar_read(&product->alpha, product->is_double, &alpha) ||
        !sim__blas_scalar_read(&product->beta, product->is_double, &beta))
        return;
    if (sim__planted(SIM__PLANT_BLAS_BETA) && beta == 0) beta = 1e-30;
    const bool reads = alpha != 0 && product->k > 0;
    for (int64_t i = 0; i < product->count; ++i) {
        struct bytes at;
        if (!bytes_find(product, i, reads, beta != 0, &at)) return;
        one_run(product, &at, alpha, beta);
    }
}
