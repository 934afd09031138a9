// Sizes: every accepted spelling, every refusal, and texts that parse back.
#include "base/size.h"

#include "base/check.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

static void accepted_spellings_mean_powers_of_1024(void) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"512", 512},
        {"512B", 512},
        {"512 B", 512},
        {"1KiB", 1024},
        {"1k", 1024},
        {"20MiB", 20971520},
        {"20 mib", 20971520},
        {"20M", 20971520},
        {"1.5GiB", 1610612736},
        {"1.50g", 1610612736},
        {"0.5KiB", 512},
        {"2TiB", 2199023255552},
        {"007", 7},
        {"9007199254740993", 9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"0.0009765625KiB", 1},
    };
    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        uint64_t bytes = 99;
        base_check_context("'%s'", cases[row].text);
        BASE_CHECK_EQ(base_size_parse(cases[row].text, &bytes), BASE_OK);
        BASE_CHECK_EQ(bytes, cases[row].bytes);
    }
    base_check_context(NULL);
}

static void everything_else_is_refused_with_an_example(void) {
    static const char *const texts[] = {
        "",
        " ",
        "x",
        "-1",
        "+1",
        "1 ",
        "1  B",
        " 1",
        "1.",
        ".5G",
        "1..5G",
        "1.5",
        "0.1G",
        "1e3",
        "0x10",
        "1PiB",
        "1KB",
        "1MiBx",
        "1 Mi B",
        "1,5GiB",
        "nan",
        "inf",
        "8388608TiB",
        "9223372036854775808",
        "18446744073709551616",
        "99999999999999999999999999",
        "1.0000000000000000000G",
        "8388607.9999999T",
    };
    for (size_t row = 0; row < sizeof texts / sizeof texts[0]; row++) {
        uint64_t bytes = 99;
        base_check_context("'%s'", texts[row]);
        BASE_CHECK_EQ(base_size_parse(texts[row], &bytes), BASE_INVALID_VALUE);
        BASE_CHECK_EQ(bytes, 99);
        BASE_CHECK(strstr(base_status_message(), texts[row]) != NULL);
        BASE_CHECK(strstr(base_status_message(), "for example 512, 20MiB or 1.5GiB") != NULL);
    }
    base_check_context(NULL);
}

static void texts_are_exact_or_have_three_digits(void) {
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1025, "1 KiB"},
        {1536, "1.5 KiB"},
        {20971520, "20 MiB"},
        {1000 * BASE_MIB, "1000 MiB"},
        {1567621120, "1.46 GiB"},
        {12 * BASE_GIB + BASE_GIB / 3, "12.3 GiB"},
        {123 * BASE_GIB + 1, "123 GiB"},
        {BASE_MIB - 1, "1 MiB"},
        {1023 * BASE_KIB + 100, "1023 KiB"},
        {10234, "9.99 KiB"},
        {10239, "10 KiB"},
        {(uint64_t)1 << 63, "8388608 TiB"},
        {UINT64_MAX, "16777216 TiB"},
    };
    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        char buffer[BASE_SIZE_TEXT];
        base_check_context("%s", cases[row].text);
        BASE_CHECK(base_size_format(cases[row].bytes, buffer) == buffer);
        BASE_CHECK_EQ(strcmp(buffer, cases[row].text), 0);
    }
    base_check_context(NULL);
}

// Whole multiples of a unit come back exactly, any other value to half a unit of the third digit.
static void texts_read_back_to_within_three_digits(void) {
    struct base_random random = base_random_init(1, "sizes");
    for (int draw = 0; draw < 20000; draw++) {
        const uint64_t bytes = base_random_log_between(&random, 1, INT64_MAX / 2);
        char buffer[BASE_SIZE_TEXT];
        base_size_format(bytes, buffer);
        base_check_context("%llu bytes as %s", (unsigned long long)bytes, buffer);
        char *unit;
        double value = strtod(buffer, &unit);
        for (const char *letter = "BKMGT"; *letter != unit[1]; letter++)
            value *= 1024;
        const double error = value > (double)bytes ? value - (double)bytes : (double)bytes - value;
        BASE_CHECK(error <= (double)bytes * 0.00501);
    }
    base_check_context(NULL);
}

static void rounding_takes_any_step(void) {
    BASE_CHECK_EQ(base_round_up(0, 512), 0);
    BASE_CHECK_EQ(base_round_up(1, 512), 512);
    BASE_CHECK_EQ(base_round_up(512, 512), 512);
    BASE_CHECK_EQ(base_round_up(7, 3), 9);
    BASE_CHECK_EQ(base_round_down(511, 512), 0);
    BASE_CHECK_EQ(base_round_down(1023, 512), 512);
    BASE_CHECK_EQ(base_round_down(8, 3), 6);
}

int main(void) {
    accepted_spellings_mean_powers_of_1024();
    everything_else_is_refused_with_an_example();
    texts_are_exact_or_have_three_digits();
    texts_read_back_to_within_three_digits();
    rounding_takes_any_step();
    return 0;
}
