// See text.h. Strict UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF. The controls
// are those of ASCII and U+0080 to U+009F, which terminals obey as well.
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t base_utf8_length(const char *bytes, size_t size) {
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *const byte = (const unsigned char *)bytes;
    for (size_t more = 0; more < 4; more++) {
        if (size <= more || (byte[0] & forms[more].mask) != forms[more].lead) continue;
        uint32_t code = byte[0] & (unsigned char)~forms[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((byte[i] & 0xc0) != 0x80) return 0;
            code = code << 6 | (byte[i] & 0x3f);
        }
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        return code >= forms[more].least && code <= 0x10ffff && !surrogate ? more + 1 : 0;
    }
    return 0;
}

static bool is_control(const char *bytes, size_t length) {
    const unsigned char *const byte = (const unsigned char *)bytes;
    return (length == 1 && (byte[0] < 0x20 || byte[0] == 0x7f)) ||
           (length == 2 && byte[0] == 0xc2 && byte[1] < 0xa0);
}

void base_text_clean(char *text) {
    const size_t size = strlen(text);
    for (size_t i = 0; i < size;) {
        const size_t length = base_utf8_length(text + i, size - i);
        const size_t step = length == 0 ? 1 : length;
        if (length == 0 || is_control(text + i, length)) memset(text + i, '?', step);
        i += step;
    }
}
