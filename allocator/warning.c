// See warning.h.
#include "allocator/warning.h"

#include <stdarg.h>
#include <stdio.h>

void cca__warn(const struct cca_warning_observer *observer, const char *format, ...) {
    if (observer == NULL || observer->warning == NULL) return;
    char text[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    observer->warning(observer->context, text);
}

static void print_warning(void *context, const char *text) {
    (void)context;
    fprintf(stderr, "warning: %s\n", text);
}

const struct cca_warning_observer cca__warn_on_stderr = {.warning = print_warning};
