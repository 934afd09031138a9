// See tensor_text.h.
#include "docs/examples/tensor_text.h"

#include <inttypes.h>
#include <stdarg.h>

#define LINE_WIDTH 108

struct tensor_place tensor_text_place(const struct drawing *drawing) {
    return (struct tensor_place){drawing->allocator, TENSOR_CUDA, 0};
}

struct tensor tensor_text_range(const struct tensor_place *place, const int64_t *sizes, int rank) {
    float values[TENSOR_TEXT_ELEMENTS_MAX];
    struct tensor self;
    for (int index = 0; index < TENSOR_TEXT_ELEMENTS_MAX; ++index)
        values[index] = (float)index;
    CHECK_OK(tensor_from_bytes(place, TENSOR_FLOAT32, sizes, rank, values, &self));
    BASE_CHECK(tensor_numel(self) <= TENSOR_TEXT_ELEMENTS_MAX);
    return self;
}

bool tensor_text_is_same_storage(struct tensor a, struct tensor b) {
    struct tensor_storage *first = tensor_storage(a), *second = tensor_storage(b);
    const bool is_same = first == second;
    tensor_storage_release(&first);
    tensor_storage_release(&second);
    return is_same;
}

// Adds to TEXT, which has to have room.
__attribute__((format(printf, 2, 3))) static void text_add(char text[TENSOR_TEXT_SIZE],
                                                           const char *format, ...) {
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(text + length, TENSOR_TEXT_SIZE - length, format, arguments);
    va_end(arguments);
    BASE_CHECK(length + (size_t)added < TENSOR_TEXT_SIZE);
}

char *tensor_text_list(const int64_t *numbers, int count, char text[TENSOR_TEXT_SIZE]) {
    text[0] = '\0';
    text_add(text, "(");
    for (int index = 0; index < count; ++index)
        text_add(text, index == 0 ? "%" PRId64 : ", %" PRId64, numbers[index]);
    text_add(text, count == 1 ? ",)" : ")");
    return text;
}

char *tensor_text_sizes(struct tensor self, char text[TENSOR_TEXT_SIZE]) {
    return tensor_text_list(tensor_geometry(self)->sizes, tensor_rank(self), text);
}

char *tensor_text_strides(struct tensor self, char text[TENSOR_TEXT_SIZE]) {
    return tensor_text_list(tensor_geometry(self)->strides, tensor_rank(self), text);
}

char *tensor_text_elements(struct tensor self, int count_max, char text[TENSOR_TEXT_SIZE]) {
    float values[TENSOR_TEXT_ELEMENTS_MAX];
    const int64_t count = tensor_numel(self);
    BASE_CHECK(count <= TENSOR_TEXT_ELEMENTS_MAX);
    CHECK_OK(tensor_read(self, values));
    text[0] = '\0';
    for (int index = 0; index < count && index < count_max; ++index)
        text_add(text, index == 0 ? "%g" : " %g", (double)values[index]);
    if (count > count_max) text_add(text, " ...");
    if (count == 0) text_add(text, "none");
    return text;
}

void tensor_text_refusal(const char *what, enum base_status status) {
    BASE_CHECK_NE(status, BASE_OK);
    int column = printf("%s\n  %s:", what, tensor_error_class()) - (int)strlen(what) - 1;
    // The hint that some end with is about a mode of Python's.
    const char *const message = base_status_message(), *const hint = strstr(message, " Hint:");
    const char *const end = hint != NULL ? hint : message + strlen(message);
    for (const char *word = message; word < end;) {
        const int length = (int)strcspn(word, " \n");
        if (column + 1 + length > LINE_WIDTH) column = printf("\n   ") - 1;
        column += printf(" %.*s", length, word);
        word += length;
        word += strspn(word, " \n");
    }
    putchar('\n');
}
