// What the tensor benchmark compares with: element work as plain loops over arrays without gaps, as
// a program without tensors would write it.
#ifndef TIDEMARK_BENCH_PLAIN_LOOP_H
#define TIDEMARK_BENCH_PLAIN_LOOP_H

#include <stdint.h>

// 16-bit numbers (bf16) as their bits; computed as float.
void bench_loop_add_float(float *out, const float *a, const float *b, int64_t count);
void bench_loop_add_double(double *out, const double *a, const double *b, int64_t count);
void bench_loop_add_bfloat16(uint16_t *out, const uint16_t *a, const uint16_t *b, int64_t count);
void bench_loop_scale_float(float *out, const float *a, float factor, int64_t count);
void bench_loop_relu_float(float *out, const float *a, int64_t count);
void bench_loop_relu_bfloat16(uint16_t *out, const uint16_t *a, int64_t count);
void bench_loop_to_bfloat16(uint16_t *out, const float *a, int64_t count);
// Matrices: rows of A that lie PITCH elements apart; A added as its transposed one; one row B added
// to each row; the sum of all.
void bench_loop_add_pitched(float *out, const float *a, int64_t pitch, const float *b, int64_t rows,
                            int64_t columns);
void bench_loop_add_transposed(float *out, const float *a, const float *b, int64_t rows,
                               int64_t columns);
void bench_loop_add_row(float *out, const float *a, const float *b, int64_t rows, int64_t columns);
double bench_loop_sum_float(const float *a, int64_t count);
// A step of AdamW, its numbers widened as the kernels do.
void bench_loop_adamw_float(float *parameter, const float *gradient, float *mean, float *square,
                            int64_t count);

#endif
