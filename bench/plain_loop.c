// See plain_loop.h. Compiled with -O3, as the kernels of the simulated device are.
#include "bench/plain_loop.h"

#include "base/half.h"

#include <math.h>

void bench_loop_add_float(float *out, const float *a, const float *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

void bench_loop_add_double(double *out, const double *a, const double *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

void bench_loop_add_bfloat16(uint16_t *out, const uint16_t *a, const uint16_t *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] =
            base_bfloat16_from_float(base_bfloat16_to_float(a[i]) + base_bfloat16_to_float(b[i]));
}

void bench_loop_scale_float(float *out, const float *a, float factor, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] * factor;
}

void bench_loop_relu_float(float *out, const float *a, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] < 0 ? 0 : a[i];
}

void bench_loop_relu_bfloat16(uint16_t *out, const uint16_t *a, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const float value = base_bfloat16_to_float(a[i]);
        out[i] = base_bfloat16_from_float(value < 0 ? 0 : value);
    }
}

void bench_loop_to_bfloat16(uint16_t *out, const float *a, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = base_bfloat16_from_float(a[i]);
}

void bench_loop_add_pitched(float *out, const float *a, int64_t pitch, const float *b, int64_t rows,
                            int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        bench_loop_add_float(out + i * columns, a + i * pitch, b + i * columns, columns);
}

void bench_loop_add_transposed(float *out, const float *a, const float *b, int64_t rows,
                               int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            out[i * columns + j] = a[j * rows + i] + b[i * columns + j];
}

void bench_loop_add_row(float *out, const float *a, const float *b, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        bench_loop_add_float(out + i * columns, a + i * columns, b, columns);
}

double bench_loop_sum_float(const float *a, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i];
    return sum;
}

void bench_loop_adamw_float(float *parameter, const float *gradient, float *mean, float *square,
                            int64_t count) {
    const double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, decay = 0.01;
    for (int64_t i = 0; i < count; i++) {
        const double g = (double)gradient[i], p = (double)parameter[i] * (1 - rate * decay);
        const double m = beta1 * (double)mean[i] + (1 - beta1) * g;
        const double v = beta2 * (double)square[i] + (1 - beta2) * g * g;
        mean[i] = (float)m;
        square[i] = (float)v;
        parameter[i] = (float)(p - rate * (m / (1 - beta1)) / (sqrt(v / (1 - beta2)) + 1e-8));
    }
}
