// Statuses and their sentences. The sentence is a fixed thread-local buffer, so that an error can
// be told even when host memory ran out, and no thread sees another one's. No locks.
#include "base/status.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[BASE_STATUS_MESSAGE_SIZE];

// Both setters format into a buffer of their own first: the arguments may point into the present
// sentence.

enum base_status base_status_set(enum base_status status, const char *format, ...) {
    char text[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    // It may quote what a file holds or is called.
    base_text_clean(text);
    memcpy(message, text, strlen(text) + 1);
    return status;
}

enum base_status base_status_prefix(enum base_status status, const char *format, ...) {
    char text[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const size_t length = strlen(text);
    const char *const parts[] = {": ", message};
    size_t end = length;
    for (int part = 0; part < 2; part++) {
        const size_t room = sizeof text - 1 - end;
        const size_t wanted = strlen(parts[part]);
        const size_t taken = wanted < room ? wanted : room;
        memcpy(text + end, parts[part], taken);
        end += taken;
    }
    text[end] = 0;
    base_text_clean(text);
    memcpy(message, text, end + 1);
    return status;
}

const char *base_status_message(void) { return message; }

struct description {
    const char *name, *text;
    int exit_code;
};

static const struct description descriptions[] = {
#define DESCRIPTION(name, exit_code, text) {#name, text, exit_code},
    BASE_STATUS_LIST(DESCRIPTION)
#undef DESCRIPTION
};

static const struct description *description_of(enum base_status status) {
    static const struct description unknown = {"UNKNOWN", "unknown status", 1};
    const size_t index = (size_t)status;
    return index < sizeof descriptions / sizeof descriptions[0] ? &descriptions[index] : &unknown;
}

const char *base_status_name(enum base_status status) { return description_of(status)->name; }
const char *base_status_text(enum base_status status) { return description_of(status)->text; }
int base_status_exit_code(enum base_status status) { return description_of(status)->exit_code; }
