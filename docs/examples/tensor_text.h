// What the programs of docs/tensor.md share: tensors in words.
#ifndef TIDEMARK_DOCS_EXAMPLES_TENSOR_TEXT_H
#define TIDEMARK_DOCS_EXAMPLES_TENSOR_TEXT_H

#include "docs/examples/drawing.h"
#include "tensor/testing.h"

// Of the drawing's allocator, on its device.
struct tensor_place tensor_text_place(const struct drawing *drawing);

// arange(product of the sizes) in their shape, float32.
struct tensor tensor_text_range(const struct tensor_place *place, const int64_t *sizes, int rank);

bool tensor_text_is_same_storage(struct tensor a, struct tensor b);

// As Python writes a tuple: "(2, 3)", "(4,)", "()". Returns TEXT.
#define TENSOR_TEXT_SIZE 64
#define TENSOR_TEXT_ELEMENTS_MAX 64
char *tensor_text_list(const int64_t *numbers, int count, char text[TENSOR_TEXT_SIZE]);
char *tensor_text_sizes(struct tensor self, char text[TENSOR_TEXT_SIZE]);
char *tensor_text_strides(struct tensor self, char text[TENSOR_TEXT_SIZE]);
// The first elements of a float32 tensor, in logical order: "0 6 12 ..."
char *tensor_text_elements(struct tensor self, int count_max, char text[TENSOR_TEXT_SIZE]);

// Prints WHAT, and below it the class and the sentence with which it was refused, in lines of a
// page's width. Aborts if STATUS is no refusal.
void tensor_text_refusal(const char *what, enum base_status status);

#endif
