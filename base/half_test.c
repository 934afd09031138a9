// 16-bit numbers against what their definition says: value by value, computed with powers of two
// in double; and rounding against a search for the nearest.
#include "base/half.h"

#include "base/check.h"

#include <math.h>

// What a format's bits mean; NaN for NaN.
static double value_of(uint16_t number, int fraction_bits, int exponent_bits) {
    const int exponent = number >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = number & ((1 << fraction_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double sign = (number & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

static double half_value(uint16_t number) { return value_of(number, 10, 5); }
static double bfloat16_value(uint16_t number) { return value_of(number, 7, 8); }

static void every_number_means_what_its_bits_say(void) {
    for (uint32_t i = 0; i < 0x10000; ++i) {
        const uint16_t number = (uint16_t)i;
        base_check_context("0x%04x", i);
        const double half = half_value(number), bfloat16 = bfloat16_value(number);
        const float from_half = base_half_to_float(number);
        const float from_bfloat16 = base_bfloat16_to_float(number);
        BASE_CHECK(isnan(half) ? isnan(from_half) : (double)from_half == half);
        BASE_CHECK(isnan(bfloat16) ? isnan(from_bfloat16) : (double)from_bfloat16 == bfloat16);
        BASE_CHECK(signbit(from_half) == signbit(from_bfloat16));
        // And back.
        if (!isnan(half))
            BASE_CHECK_EQ(base_half_from_float(from_half), number);
        if (!isnan(bfloat16))
            BASE_CHECK_EQ(base_bfloat16_from_float(from_bfloat16), number);
    }
    base_check_context(NULL);
}

// MIDDLE lies in the middle between a number and the next one: it goes to the even one, what is
// beside it to the nearer one.
static void rounds(uint16_t (*from_float)(float), double (*value)(uint16_t), uint16_t number) {
    const uint16_t next = (uint16_t)(number + 1), even = (number & 1) == 0 ? number : next;
    const double here = value(number), there = value(next);
    const double middle = here + (there - here) / 2;
    if ((double)(float)middle != middle)
        return;
    base_check_context("0x%04x", number);
    BASE_CHECK_EQ(from_float((float)middle), even);
    BASE_CHECK_EQ(from_float(nextafterf((float)middle, 0)), number);
    BASE_CHECK_EQ(from_float(nextafterf((float)middle, INFINITY)), next);
    BASE_CHECK_EQ(from_float(-(float)middle), even | 0x8000);
    base_check_context(NULL);
}

static void middles_go_to_the_even_one(void) {
    for (uint16_t number = 0; number < 0x7bff; ++number)
        rounds(base_half_from_float, half_value, number);
    for (uint16_t number = 0; number < 0x7f7f; ++number)
        rounds(base_bfloat16_from_float, bfloat16_value, number);
}

static void what_is_too_large_is_infinite(void) {
    BASE_CHECK_EQ(base_half_from_float(65504.0F), 0x7bff);
    BASE_CHECK_EQ(base_half_from_float(nextafterf(65520.0F, 0)), 0x7bff);
    BASE_CHECK_EQ(base_half_from_float(65520.0F), 0x7c00);
    BASE_CHECK_EQ(base_half_from_float(INFINITY), 0x7c00);
    BASE_CHECK_EQ(base_half_from_float(-INFINITY), 0xfc00);
    BASE_CHECK_EQ(base_bfloat16_from_float(3.4e38F), 0x7f80);
    BASE_CHECK_EQ(base_bfloat16_from_float(-INFINITY), 0xff80);
    BASE_CHECK(isnan(base_half_to_float(base_half_from_float(NAN))));
    BASE_CHECK(isnan(base_bfloat16_to_float(base_bfloat16_from_float(NAN))));
    // Its upper half alone would say infinite.
    const float nan_below = base__float_of_bits(0x7f800001);
    BASE_CHECK(isnan(base_half_to_float(base_half_from_float(nan_below))));
    BASE_CHECK(isnan(base_bfloat16_to_float(base_bfloat16_from_float(nan_below))));
}

int main(void) {
    every_number_means_what_its_bits_say();
    middles_go_to_the_even_one();
    what_is_too_large_is_infinite();
    return 0;
}
