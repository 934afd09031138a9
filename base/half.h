// 16-bit floating-point numbers as the host computes with them: as float, rounded back to the
// nearest, of two equally near ones to the even one, as devices round. Without branches in the
// common case, so that loops over them become vector code.
//
//     fp16   1 sign, 5 exponent, 10 fraction bits: integers to 2^11 are exact, 65504 is the largest
//     bf16   1 sign, 8 exponent, 7 fraction bits: the upper half of a float, integers to 2^8
#ifndef TIDEMARK_BASE_HALF_H
#define TIDEMARK_BASE_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__ // device code computes with them, too
#define BASE_HALF static __host__ __device__ inline
#else
#define BASE_HALF static inline
#endif

BASE_HALF float base__float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
BASE_HALF uint32_t base__bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Exact.
BASE_HALF float base_bfloat16_to_float(uint16_t number) {
    return base__float_of_bits((uint32_t)number << 16);
}

// NaN stays NaN.
BASE_HALF uint16_t base_bfloat16_from_float(float value) {
    const uint32_t bits = base__bits_of_float(value);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((value != value ? bits | 0x00400000 : rounded) >> 16);
}

// Exact. The exponent is moved to its place, and 2^112 corrects its bias, for numbers below the
// normal ones as well.
BASE_HALF float base_half_to_float(uint16_t number) {
    const uint32_t magnitude = (uint32_t)(number & 0x7fff) << 13;
    const float moved = base__float_of_bits(magnitude) * base__float_of_bits(0x77800000);
    const uint32_t special = magnitude | 0x7f800000; // infinite, or NaN
    const uint32_t bits = magnitude >= 0x0f800000 ? special : base__bits_of_float(moved);
    return base__float_of_bits(bits | (uint32_t)(number & 0x8000) << 16);
}

// From 65520 on infinite; NaN stays NaN. Below 2^-14 the addition of 0.5 leaves the fraction, at
// steps of 2^-24 and rounded, in the lowest bits.
BASE_HALF uint16_t base_half_from_float(float value) {
    const uint32_t bits = base__bits_of_float(value), magnitude = bits & 0x7fffffff;
    const uint32_t small = base__bits_of_float(base__float_of_bits(magnitude) + 0.5F) - 0x3f000000;
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t number = magnitude < 0x38800000 ? small : normal;
    number = magnitude >= 0x477ff000 ? 0x7c00 : number;
    number = magnitude > 0x7f800000 ? 0x7e00 : number;
    return (uint16_t)(number | (bits >> 16 & 0x8000));
}

#endif
