// The generator against its published algorithm, and its distributions against their definitions.
// All seeds are fixed: a failure repeats.
#include "base/random.h"

#include "base/check.h"

#include <math.h>

// From the state {1, 2, 3, 4}: the test vector that implementations of xoshiro256** share.
static void numbers_are_those_of_xoshiro256_starstar(void) {
    static const uint64_t expected[] = {11520,
                                        0,
                                        1509978240,
                                        1215971899390074240,
                                        1216172134540287360,
                                        607988272756665600,
                                        16172922978634559625u,
                                        8476171486693032832};
    struct base_random random = {{1, 2, 3, 4}};
    for (int number = 0; number < 8; number++)
        BASE_CHECK_EQ(base_random_next(&random), expected[number]);
}

// Computed by an independent program: splitmix64 of the seed, xor FNV-1a of the name, and four
// numbers of splitmix64 from there. They must never change: recorded seeds in reports would lose
// their meaning.
static void seed_and_name_give_the_same_numbers_for_ever(void) {
    static const struct {
        uint64_t seed;
        const char *name;
        uint64_t numbers[3];
    } cases[] = {
        {1, "sizes", {0x2a7160282996a9f6, 0xd200418b2116817b, 0x7a2d39be84d0d7e6}},
        {42, "", {0xfb29c77af3965ce5, 0x09f3e3196ade0db1, 0x897e2e9c9eda6db2}},
        {UINT64_MAX, "lifetimes", {0xdf8d2f0b63dff814, 0x9a34b4e12b62b0d5, 0x07d1c4e8f9682d1f}},
    };
    for (int row = 0; row < 3; row++) {
        struct base_random random = base_random_init(cases[row].seed, cases[row].name);
        for (int number = 0; number < 3; number++)
            BASE_CHECK_EQ(base_random_next(&random), cases[row].numbers[number]);
    }
}

// The chi-square statistic of COUNT numbers over BINS equally likely bins, in standard deviations
// from its mean: within five for an honest generator.
static double chi_square_deviation(const unsigned *bins, int bin_count, unsigned count) {
    const double expected = (double)count / bin_count;
    double statistic = 0;
    for (int bin = 0; bin < bin_count; bin++)
        statistic += (bins[bin] - expected) * (bins[bin] - expected) / expected;
    const double degrees = bin_count - 1;
    return fabs(statistic - degrees) / sqrt(2 * degrees);
}

#define DRAWS 200000

static void below_is_uniform_for_any_bound(void) {
    static const uint64_t bounds[] = {2, 3, 7, 10, 64, 100};
    for (int row = 0; row < 6; row++) {
        struct base_random random = base_random_init((uint64_t)row + 1, "below");
        unsigned bins[100] = {0};
        for (unsigned draw = 0; draw < DRAWS; draw++) {
            const uint64_t value = base_random_below(&random, bounds[row]);
            BASE_CHECK_LT(value, bounds[row]);
            bins[value]++;
        }
        BASE_CHECK(chi_square_deviation(bins, (int)bounds[row], DRAWS) < 5);
    }
}

// With a bound of 3/4 * 2^64 a plain multiplication or modulo favours a third of the values
// twofold.
static void below_has_no_bias_at_large_bounds(void) {
    struct base_random random = base_random_init(7, "large bound");
    const uint64_t bound = (uint64_t)3 << 62;
    unsigned bins[3] = {0};
    for (unsigned draw = 0; draw < DRAWS; draw++)
        bins[base_random_below(&random, bound) % 3]++;
    BASE_CHECK(chi_square_deviation(bins, 3, DRAWS) < 5);
    unsigned halves[2] = {0};
    for (unsigned draw = 0; draw < DRAWS; draw++)
        halves[base_random_below(&random, bound) >= bound / 2]++;
    BASE_CHECK(chi_square_deviation(halves, 2, DRAWS) < 5);
}

static void between_reaches_both_ends_and_the_whole_range(void) {
    struct base_random random = base_random_init(3, "between");
    bool low_seen = false, high_seen = false;
    for (int draw = 0; draw < 1000; draw++) {
        const uint64_t value = base_random_between(&random, 10, 13);
        BASE_CHECK(value >= 10 && value <= 13);
        low_seen = low_seen || value == 10;
        high_seen = high_seen || value == 13;
    }
    BASE_CHECK(low_seen && high_seen);
    BASE_CHECK_EQ(base_random_between(&random, 5, 5), 5);
    BASE_CHECK_EQ(base_random_between(&random, UINT64_MAX, UINT64_MAX), UINT64_MAX);
    struct base_random copy = random;
    BASE_CHECK_EQ(base_random_between(&random, 0, UINT64_MAX), base_random_next(&copy));
}

static void unit_is_uniform_in_its_half_open_range(void) {
    struct base_random random = base_random_init(4, "unit");
    unsigned bins[50] = {0};
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        const double value = base_random_unit(&random);
        BASE_CHECK(value >= 0 && value < 1);
        bins[(int)(value * 50)]++;
    }
    BASE_CHECK(chi_square_deviation(bins, 50, DRAWS) < 5);
}

// From 1 to 2^20 - 1 each octave gets the same share.
static void log_between_gives_every_octave_the_same_share(void) {
    struct base_random random = base_random_init(5, "log");
    unsigned bins[20] = {0};
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        const uint64_t value = base_random_log_between(&random, 1, ((uint64_t)1 << 20) - 1);
        BASE_CHECK(value >= 1 && value < (uint64_t)1 << 20);
        bins[63 - __builtin_clzll(value)]++;
    }
    BASE_CHECK(chi_square_deviation(bins, 20, DRAWS) < 5);
}

// The same numbers through libm: equal but for a last-bit difference that falls on a whole number.
static void log_between_agrees_with_the_definition(void) {
    struct base_random random = base_random_init(6, "log"), units = random;
    const uint64_t low = 512, high = (uint64_t)3 << 33;
    for (int draw = 0; draw < 20000; draw++) {
        const uint64_t value = base_random_log_between(&random, low, high);
        const double unit = base_random_unit(&units);
        const double expected = (double)low * pow(((double)high + 1) / (double)low, unit);
        BASE_CHECK(fabs((double)value - floor(expected)) <= 1 + expected * 1e-13);
    }
}

static void log_between_stays_within_extreme_ends(void) {
    struct base_random random = base_random_init(8, "log");
    for (int draw = 0; draw < 1000; draw++) {
        BASE_CHECK_EQ(base_random_log_between(&random, 5, 5), 5);
        BASE_CHECK_EQ(base_random_log_between(&random, UINT64_MAX, UINT64_MAX), UINT64_MAX);
        BASE_CHECK(base_random_log_between(&random, 1, UINT64_MAX) >= 1);
    }
}

static void chance_follows_its_probability(void) {
    struct base_random random = base_random_init(9, "chance");
    unsigned bins[2] = {0};
    for (unsigned draw = 0; draw < DRAWS; draw++)
        bins[base_random_chance(&random, 0.5)]++;
    BASE_CHECK(chi_square_deviation(bins, 2, DRAWS) < 5);
    for (int draw = 0; draw < 1000; draw++) {
        BASE_CHECK(!base_random_chance(&random, 0));
        BASE_CHECK(base_random_chance(&random, 1));
    }
}

int main(void) {
    numbers_are_those_of_xoshiro256_starstar();
    seed_and_name_give_the_same_numbers_for_ever();
    below_is_uniform_for_any_bound();
    below_has_no_bias_at_large_bounds();
    between_reaches_both_ends_and_the_whole_range();
    unit_is_uniform_in_its_half_open_range();
    log_between_gives_every_octave_the_same_share();
    log_between_agrees_with_the_definition();
    log_between_stays_within_extreme_ends();
    chance_follows_its_probability();
    return 0;
}
