// xoshiro256** 1.0 (Blackman and Vigna), seeded through splitmix64 as its authors advise. No libm:
// log() and exp() may differ in the last bit between C libraries, and the same seed has to give the
// same numbers everywhere, so the logarithm below uses nothing but exactly specified IEEE
// operations.
#include "base/random.h"

#include "base/check.h"

#include <math.h>

static uint64_t rotate_left(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

static uint64_t splitmix64_next(uint64_t *state) {
    uint64_t value = *state += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

// FNV-1a.
static uint64_t hash_of_name(const char *name) {
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name != 0; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

struct base_random base_random_init(uint64_t seed, const char *stream_name) {
    // The seed is spread before the name is mixed in: else seed 1 of one name could be seed 2 of
    // another.
    uint64_t seed_state = seed;
    uint64_t state = splitmix64_next(&seed_state) ^ hash_of_name(stream_name);
    struct base_random random;
    for (int word = 0; word < 4; word++)
        random.state[word] = splitmix64_next(&state);
    return random;
}

uint64_t base_random_next(struct base_random *random) {
    uint64_t *const state = random->state;
    const uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    const uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

// Lemire's multiplication: the high half is the result; low halves under 2^64 mod bound are drawn
// again, which leaves every result equally many values.
uint64_t base_random_below(struct base_random *random, uint64_t bound) {
    BASE_CHECK(bound >= 1);
    unsigned __int128 product = (unsigned __int128)base_random_next(random) * bound;
    if ((uint64_t)product < bound) {
        const uint64_t excess = -bound % bound;
        while ((uint64_t)product < excess)
            product = (unsigned __int128)base_random_next(random) * bound;
    }
    return (uint64_t)(product >> 64);
}

uint64_t base_random_between(struct base_random *random, uint64_t low, uint64_t high) {
    BASE_CHECK(low <= high);
    const uint64_t span = high - low;
    return span == UINT64_MAX ? base_random_next(random)
                              : low + base_random_below(random, span + 1);
}

double base_random_unit(struct base_random *random) {
    return (double)(base_random_next(random) >> 11) * 0x1p-53;
}

// log2 of a positive number: mantissa in [sqrt(1/2), sqrt(2)), then the series of the inverse
// hyperbolic tangent, whose argument is below 0.172; eleven terms leave an error under 1e-17.
static double logarithm(double value) {
    int exponent;
    double mantissa = frexp(value, &exponent);
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2;
        exponent--;
    }
    const double argument = (mantissa - 1) / (mantissa + 1), square = argument * argument;
    double series = 0;
    for (int term = 21; term >= 1; term -= 2)
        series = series * square + 1.0 / term;
    return exponent + 2 * argument * series * 1.44269504088896341;
}

// 2 to the given power, by the series of exp for the fraction within one half.
static double power_of_two(double power) {
    const int whole = (int)(power + 0.5);
    const double argument = (power - whole) * 0.69314718055994531;
    double series = 1;
    for (int term = 17; term >= 1; term--)
        series = 1 + series * argument / term;
    return ldexp(series, whole);
}

uint64_t base_random_log_between(struct base_random *random, uint64_t low, uint64_t high) {
    BASE_CHECK(low >= 1 && low <= high);
    const double from = logarithm((double)low), to = logarithm((double)high + 1);
    const double value = power_of_two(from + base_random_unit(random) * (to - from));
    if (value >= (double)high)
        return high;
    return value <= (double)low ? low : (uint64_t)value;
}

bool base_random_chance(struct base_random *random, double probability) {
    return base_random_unit(random) < probability;
}
