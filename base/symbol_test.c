// Addresses of this test's own functions and lines, of a file without debug information, of the C
// library, and of what is no code.
#include "base/symbol.h"

#include "base/check.h"
#include "base/symbol_test_bare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char file_name[] = __FILE__;

static __attribute__((noinline)) const void *caller(void) { return __builtin_return_address(0); }

static int line;

static __attribute__((noinline)) const void *named_function(void) {
    line = __LINE__ + 1;
    const void *volatile address = caller();
    return address;
}

static inline __attribute__((always_inline)) const void *inlined_function(void) {
    line = __LINE__ + 1;
    const void *volatile address = caller();
    return address;
}

static void a_call_has_its_function_file_and_line(void) {
    struct base_symbol symbol;
    BASE_CHECK(base_symbol_find(named_function(), &symbol));
    base_check_context("%s (%s:%d)", symbol.function, symbol.file, symbol.line);
    BASE_CHECK(strcmp(symbol.function, "named_function") == 0);
    BASE_CHECK(strcmp(symbol.file, file_name) == 0);
    BASE_CHECK_EQ(symbol.line, line);
    BASE_CHECK(strstr(symbol.module, "symbol_test") != NULL);
    BASE_CHECK_GT(symbol.offset, 0);
    base_check_context(NULL);
}

static void an_inlined_call_has_the_inlined_function(void) {
    struct base_symbol symbol;
    BASE_CHECK(base_symbol_find(inlined_function(), &symbol));
    base_check_context("%s (%s:%d)", symbol.function, symbol.file, symbol.line);
    BASE_CHECK(strcmp(symbol.function, "inlined_function") == 0);
    BASE_CHECK_EQ(symbol.line, line);
    base_check_context(NULL);
}

static inline __attribute__((always_inline)) const void *inlined_caller(int *middle_line) {
    *middle_line = __LINE__ + 1;
    const void *address = inlined_function();
    return address;
}

static void frames_are_what_it_is_inlined_into(void) {
    struct base_symbol frames[4];
    int middle_line;
    const int outer_line = __LINE__ + 1;
    const void *address = inlined_caller(&middle_line);
    BASE_CHECK_EQ(base_symbol_frames(address, frames, 4), 3);
    const char *const functions[] = {"inlined_function", "inlined_caller", __func__};
    const int lines[] = {line, middle_line, outer_line};
    for (int i = 0; i < 3; ++i) {
        base_check_context("%d: %s (%s:%d)", i, frames[i].function, frames[i].file, frames[i].line);
        BASE_CHECK(strcmp(frames[i].function, functions[i]) == 0);
        BASE_CHECK(strcmp(frames[i].file, file_name) == 0);
        BASE_CHECK_EQ(frames[i].line, lines[i]);
    }
    base_check_context(NULL);
    BASE_CHECK_EQ(base_symbol_frames(address, frames, 2), 2);
    BASE_CHECK_EQ(base_symbol_frames(named_function(), frames, 4), 1);
}

static void text_is_function_file_and_line(void) {
    char text[BASE_SYMBOL_TEXT], expected[BASE_SYMBOL_TEXT];
    const void *address = named_function();
    snprintf(expected, sizeof expected, "named_function (%s:%d)", file_name, line);
    base_check_context("%s", base_symbol_text(address, text));
    BASE_CHECK(strcmp(text, expected) == 0);
    base_check_context(NULL);
}

static void without_debug_information_there_are_name_and_place(void) {
    char text[BASE_SYMBOL_TEXT];
    struct base_symbol symbol;
    const void *address = symbol_test_bare(caller);
    BASE_CHECK(base_symbol_find(address, &symbol));
    base_symbol_text(address, text);
    base_check_context("%s", text);
    BASE_CHECK(strcmp(symbol.function, "symbol_test_bare") == 0);
    BASE_CHECK_EQ(symbol.line, 0);
    BASE_CHECK(strncmp(text, "symbol_test_bare (", 18) == 0);
    const char *plus = strrchr(text, '+');
    BASE_CHECK(plus != NULL);
    BASE_CHECK_EQ(strtoull(plus + 1, NULL, 16), symbol.offset);
    base_check_context(NULL);
}

static const void *comparing; // what calls compare

static int compare(const void *a, const void *b) {
    comparing = __builtin_return_address(0);
    return *(const char *)a - *(const char *)b;
}

static void a_library_has_its_name(void) {
    struct base_symbol symbol;
    char bytes[] = "cab";
    qsort(bytes, 3, 1, compare);
    BASE_CHECK(base_symbol_find(comparing, &symbol));
    base_check_context("%s %s", symbol.module, symbol.function);
    BASE_CHECK(strstr(symbol.module, "libc") != NULL);
    base_check_context(NULL);
}

static void no_code_is_a_number(void) {
    char text[BASE_SYMBOL_TEXT], expected[BASE_SYMBOL_TEXT];
    struct base_symbol symbol;
    void *memory = malloc(100);
    const void *const addresses[] = {(void *)0x1234, &symbol, memory, NULL};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; ++i) {
        BASE_CHECK(!base_symbol_find(addresses[i], &symbol));
        BASE_CHECK_EQ(symbol.module[0] | symbol.function[0] | symbol.file[0] | symbol.line, 0);
        snprintf(expected, sizeof expected, "0x%" PRIxPTR, (uintptr_t)addresses[i]);
        BASE_CHECK(strcmp(base_symbol_text(addresses[i], text), expected) == 0);
    }
    free(memory);
}

static void long_names_are_cut(void) {
    struct base_symbol symbol = {.line = 7};
    char text[BASE_SYMBOL_TEXT];
    memset(symbol.function, 'f', sizeof symbol.function - 1);
    memset(symbol.file, 'n', sizeof symbol.file - 1);
    BASE_CHECK_EQ(strlen(base_symbol_format(&symbol, text)), BASE_SYMBOL_TEXT - 1);
    memset(symbol.function, 0, sizeof symbol.function);
    BASE_CHECK_EQ(strlen(base_symbol_format(&symbol, text)), BASE_SYMBOL_TEXT - 1);
}

int main(void) {
    no_code_is_a_number();
    a_call_has_its_function_file_and_line();
    an_inlined_call_has_the_inlined_function();
    frames_are_what_it_is_inlined_into();
    text_is_function_file_and_line();
    without_debug_information_there_are_name_and_place();
    a_library_has_its_name();
    long_names_are_cut();
    return 0;
}
