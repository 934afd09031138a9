// Sizes are parsed in whole numbers throughout: 0.1GiB is no whole number of bytes and is refused
// rather than rounded, and 9007199254740993 does not lose its last digit to a double.
#include "base/size.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// Enough for every fraction that people write; ten to this power times a tebibyte fits 128 bits.
#define FRACTION_DIGITS_MAX 18

static const char *const unit_names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
#define UNIT_COUNT (sizeof unit_names / sizeof unit_names[0])

// The shift of a unit ("", "B", "KiB", "k" ...), -1 if it is none.
static int unit_shift(const char *text) {
    if (*text == 0)
        return 0;
    for (int unit = 0; unit < (int)UNIT_COUNT; unit++) {
        const char letter[] = {unit_names[unit][0], 0};
        if (strcasecmp(text, unit_names[unit]) == 0 || strcasecmp(text, letter) == 0)
            return 10 * unit;
    }
    return -1;
}

// Digits of *text as a number below 2^63; false if there are none or too many.
static bool parse_digits(const char **text, uint64_t *value) {
    if (!isdigit((unsigned char)**text))
        return false;
    *value = 0;
    for (; isdigit((unsigned char)**text); (*text)++) {
        const uint64_t digit = (uint64_t)(**text - '0');
        if (*value > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return true;
}

static bool parse(const char *text, uint64_t *bytes) {
    uint64_t whole, fraction = 0, fraction_scale = 1;
    if (!parse_digits(&text, &whole))
        return false;
    if (*text == '.') {
        const char *const start = ++text;
        const size_t digits = strspn(start, "0123456789");
        if (digits > FRACTION_DIGITS_MAX || !parse_digits(&text, &fraction))
            return false;
        for (size_t digit = 0; digit < digits; digit++)
            fraction_scale *= 10;
    }
    if (text[0] == ' ' && text[1] != 0)
        text++;
    const int shift = unit_shift(text);
    if (shift < 0)
        return false;
    const unsigned __int128 scaled = (unsigned __int128)fraction << shift;
    if (scaled % fraction_scale != 0)
        return false;
    const unsigned __int128 result = ((unsigned __int128)whole << shift) + scaled / fraction_scale;
    if (result > INT64_MAX)
        return false;
    *bytes = (uint64_t)result;
    return true;
}

enum base_status base_size_parse(const char *text, uint64_t *bytes) {
    if (parse(text, bytes))
        return BASE_OK;
    return base_status_set(BASE_INVALID_VALUE,
                           "'%s' is not a size: write a whole number of bytes below 8 EiB, "
                           "in B, KiB, MiB, GiB or TiB, for example 512, 20MiB or 1.5GiB",
                           text);
}

char *base_size_format(uint64_t bytes, char buffer[BASE_SIZE_TEXT]) {
    size_t unit = 0;
    while (unit + 1 < UNIT_COUNT && bytes >> (10 * (unit + 1)) != 0)
        unit++;
    if ((bytes & (((uint64_t)1 << (10 * unit)) - 1)) == 0) {
        snprintf(buffer, BASE_SIZE_TEXT, "%llu %s", (unsigned long long)(bytes >> (10 * unit)),
                 unit_names[unit]);
        return buffer;
    }
    const double value = (double)bytes / (double)((uint64_t)1 << (10 * unit));
    if (value >= 1023.5 && unit + 1 < UNIT_COUNT) {
        snprintf(buffer, BASE_SIZE_TEXT, "1 %s", unit_names[unit + 1]);
        return buffer;
    }
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    int length = snprintf(buffer, BASE_SIZE_TEXT, "%.*f", decimals, value);
    if (decimals > 0) {
        while (buffer[length - 1] == '0')
            length--;
        if (buffer[length - 1] == '.')
            length--;
    }
    snprintf(buffer + length, BASE_SIZE_TEXT - (size_t)length, " %s", unit_names[unit]);
    return buffer;
}
