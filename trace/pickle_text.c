// The opcodes of protocol 0: numbers and strings as lines of text.
#include "trace/pickle_machine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Takes the rest of the line; *line stays valid until the input is asked for more.
static enum base_status take_line(struct trace__pickle *machine, const char **line,
                                  size_t *length) {
    struct trace_input *input = machine->input;
    for (size_t wanted = 1;; wanted = TRACE_INPUT_WINDOW_BYTES) {
        enum base_status status = trace_input_need(input, 1);
        if (status == BASE_OK) status = trace_input_fill(input, wanted);
        if (status != BASE_OK) return status;
        size_t available = (size_t)(input->end - input->next);
        if (available > TRACE_INPUT_WINDOW_BYTES) available = TRACE_INPUT_WINDOW_BYTES;
        const uint8_t *newline = memchr(input->next, '\n', available);
        if (newline != NULL) {
            *line = (const char *)input->next;
            *length = (size_t)(newline - input->next);
            input->next = newline + 1;
            return BASE_OK;
        }
        if (wanted == TRACE_INPUT_WINDOW_BYTES)
            return trace__pickle_refuse(machine, "its line does not end within %zu bytes",
                                        available);
    }
}

// A decimal integer of 64 bits; LARGE tells that it has more.
static bool parse_decimal(const char *text, size_t length, bool *negative, uint64_t *magnitude,
                          bool *large) {
    size_t i = 0;
    *negative = length > 0 && text[0] == '-';
    if (length > 0 && (text[0] == '-' || text[0] == '+')) i++;
    if (i == length) return false;
    *magnitude = 0;
    *large = false;
    for (; i < length; i++) {
        if (!isdigit((unsigned char)text[i])) return false;
        unsigned digit = (unsigned)(text[i] - '0');
        *large |= *magnitude > (UINT64_MAX - digit) / 10;
        *magnitude = *magnitude * 10 + digit;
    }
    return true;
}

enum base_status trace__pickle_text_int(struct trace__pickle *machine) {
    const char *line;
    size_t length;
    enum base_status status = take_line(machine, &line, &length);
    if (status != BASE_OK) return status;
    if (length == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1'))
        return trace__pickle_push(machine, PICKLE_BOOL, (uint64_t)(line[1] - '0'));
    if (length > 0 && line[length - 1] == 'L') length--;
    bool negative, large;
    uint64_t magnitude;
    if (!parse_decimal(line, length, &negative, &magnitude, &large))
        return trace__pickle_refuse(machine, "its line is no decimal integer");
    if (large || (negative && magnitude > (uint64_t)1 << 63))
        return trace__pickle_push(machine, PICKLE_SCALAR, 0);
    if (negative) return trace__pickle_push(machine, PICKLE_INT, 0 - magnitude);
    return trace__pickle_push(machine, magnitude >> 63 ? PICKLE_BIG : PICKLE_INT, magnitude);
}

enum base_status trace__pickle_text_float(struct trace__pickle *machine) {
    const char *line;
    char text[64], *end;
    size_t length;
    enum base_status status = take_line(machine, &line, &length);
    if (status != BASE_OK) return status;
    if (length == 0 || length >= sizeof text)
        return trace__pickle_refuse(machine, "its line is no number");
    memcpy(text, line, length);
    text[length] = 0;
    double value = strtod(text, &end);
    if (end != text + length) return trace__pickle_refuse(machine, "its line is no number");
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return trace__pickle_push(machine, PICKLE_FLOAT, bits);
}

enum base_status trace__pickle_text_index(struct trace__pickle *machine, uint64_t *index) {
    const char *line;
    size_t length;
    enum base_status status = take_line(machine, &line, &length);
    if (status != BASE_OK) return status;
    bool negative, large;
    if (!parse_decimal(line, length, &negative, index, &large) || negative || large)
        return trace__pickle_refuse(machine, "its line is no memo index");
    return BASE_OK;
}

// What Python 2 wrote for a str: quotes around it. Escapes are left as they stand.
enum base_status trace__pickle_text_string(struct trace__pickle *machine) {
    const char *line;
    size_t length;
    uint32_t id;
    enum base_status status = take_line(machine, &line, &length);
    if (status != BASE_OK) return status;
    if (length < 2 || (line[0] != '\'' && line[0] != '"') || line[length - 1] != line[0])
        return trace__pickle_refuse(machine, "its line is not in quotes");
    status = trace__pickle_intern(machine, line + 1, length - 2, &id);
    return status == BASE_OK ? trace__pickle_push(machine, PICKLE_STRING, id) : status;
}

static char *encode_utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

// At \uXXXX or \UXXXXXXXX: its code, and how many characters it takes; 0 if it is no such escape,
// UINT32_MAX if a broken one.
static size_t parse_escape(const char *text, size_t length, uint32_t *code) {
    if (length < 2 || text[0] != '\\' || (text[1] != 'u' && text[1] != 'U')) return 0;
    size_t digits = text[1] == 'u' ? 4 : 8;
    if (length < 2 + digits) return SIZE_MAX;
    *code = 0;
    for (size_t i = 2; i < 2 + digits; i++) {
        if (!isxdigit((unsigned char)text[i])) return SIZE_MAX;
        unsigned digit =
            (unsigned)(isdigit((unsigned char)text[i]) ? text[i] - '0' : (text[i] | 32) - 'a' + 10);
        *code = *code << 4 | digit;
    }
    return *code <= 0x10ffff ? 2 + digits : SIZE_MAX;
}

// Python's raw-unicode-escape: bytes are Latin-1, anything else is \u or \U; no other escape
// exists.
enum base_status trace__pickle_text_unicode(struct trace__pickle *machine) {
    const char *line;
    size_t length, step;
    enum base_status status = take_line(machine, &line, &length);
    if (status != BASE_OK) return status;
    if (machine->scratch == NULL) machine->scratch = malloc(2 * TRACE_INPUT_WINDOW_BYTES);
    if (machine->scratch == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory to decode a string");
    char *to = machine->scratch;
    for (size_t i = 0; i < length; i += step) {
        uint32_t code = (unsigned char)line[i];
        step = parse_escape(line + i, length - i, &code);
        if (step == SIZE_MAX)
            return trace__pickle_refuse(machine, "its line has a broken \\u escape");
        if (step == 0) step = 1;
        to = encode_utf8(to, code);
    }
    uint32_t id;
    status = trace__pickle_intern(machine, machine->scratch, (size_t)(to - machine->scratch), &id);
    return status == BASE_OK ? trace__pickle_push(machine, PICKLE_STRING, id) : status;
}
