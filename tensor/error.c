// See error.h, and tensor.h for tensor_error_class and tensor_on_warning.
#include "tensor/error.h"

#include "tensor/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local const char *error_class;
static _Thread_local char error_text[BASE_STATUS_MESSAGE_SIZE];
static _Thread_local void (*warning_listener)(void *context, const char *text);
static _Thread_local void *warning_context;

static enum base_status fail(enum base_status status, const char *name, const char *format,
                             va_list arguments) {
    vsnprintf(error_text, sizeof error_text, format, arguments);
    base_status_set(status, "%s", error_text);
    error_class = name;
    return status;
}

#define FAIL(status, name)                                                                         \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    const enum base_status result = fail(status, name, format, arguments);                         \
    va_end(arguments);                                                                             \
    return result

enum base_status tensor__error(const char *format, ...) {
    FAIL(BASE_INVALID_VALUE, "RuntimeError");
}

enum base_status tensor__error_index(const char *format, ...) {
    FAIL(BASE_INVALID_VALUE, "IndexError");
}

enum base_status tensor__error_not_implemented(const char *format, ...) {
    FAIL(BASE_UNSUPPORTED, "NotImplementedError");
}

// Only sentences of this room have a class of their own; a sentence set since says otherwise.
const char *tensor_error_class(void) {
    return error_class != NULL && strcmp(error_text, base_status_message()) == 0 ? error_class
                                                                                 : "RuntimeError";
}

void tensor_on_warning(void (*listener)(void *context, const char *text), void *context) {
    warning_listener = listener;
    warning_context = context;
}

void tensor__warn(const char *format, ...) {
    if (warning_listener == NULL)
        return;
    char text[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    warning_listener(warning_context, text);
}
