// Element types and which one a result has.
//
// Three kinds, each above the one before: bool, integers, floating. A tensor with dimensions
// decides within its kind; one without dimensions, and below it a plain number, only lifts the
// kind. So int32 [2] + 1.5 is float32, and float16 [2] + float64 [] stays float16.
#ifndef TIDEMARK_TENSOR_TYPE_H
#define TIDEMARK_TENSOR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(NAME, name, PyTorch's scalar name, its C++ name, bytes): in the order of PyTorch's numbers.
#define TENSOR_TYPE_LIST(X)                                                                        \
    X(UINT8, "uint8", "Byte", "unsigned char", 1)                                                  \
    X(INT8, "int8", "Char", "signed char", 1)                                                      \
    X(INT16, "int16", "Short", "short int", 2)                                                     \
    X(INT32, "int32", "Int", "int", 4)                                                             \
    X(INT64, "int64", "Long", "long int", 8)                                                       \
    X(FLOAT16, "float16", "Half", "c10::Half", 2)                                                  \
    X(FLOAT32, "float32", "Float", "float", 4)                                                     \
    X(FLOAT64, "float64", "Double", "double", 8)                                                   \
    X(BOOL, "bool", "Bool", "bool", 1)                                                             \
    X(BFLOAT16, "bfloat16", "BFloat16", "c10::BFloat16", 2)

enum tensor_type {
#define TENSOR_TYPE_ENUMERATOR(name, text, scalar, native, bytes) TENSOR_##name,
    TENSOR_TYPE_LIST(TENSOR_TYPE_ENUMERATOR)
#undef TENSOR_TYPE_ENUMERATOR
        TENSOR_TYPE_COUNT,
    TENSOR_TYPE_NONE = TENSOR_TYPE_COUNT, // nothing said yet
};

const char *tensor_type_name(enum tensor_type type);        // "float32"
const char *tensor_type_scalar_name(enum tensor_type type); // "Float", for messages
const char *tensor_type_native_name(enum tensor_type type); // "float", for messages
size_t tensor_type_size(enum tensor_type type);             // bytes of an element
bool tensor_type_find(const char *name, enum tensor_type *type);

static inline bool tensor_type_is_floating(enum tensor_type type) {
    return type == TENSOR_FLOAT16 || type == TENSOR_FLOAT32 || type == TENSOR_FLOAT64 ||
           type == TENSOR_BFLOAT16;
}
static inline bool tensor_type_is_integer(enum tensor_type type) { // bool is none
    return type <= TENSOR_INT64;
}

// The smallest type that both fit in (float16 and bfloat16: float32; uint8 and int8: int16).
// TENSOR_TYPE_NONE with a type gives that type.
enum tensor_type tensor_type_promote(enum tensor_type a, enum tensor_type b);
// Whether a result of FROM may be stored as TO: never down a kind.
bool tensor_type_can_cast(enum tensor_type from, enum tensor_type to);

// A number that stands beside tensors: it counts as int64 or as the default float32.
struct tensor_scalar {
    enum { TENSOR_SCALAR_INTEGER, TENSOR_SCALAR_FLOATING, TENSOR_SCALAR_BOOL } kind;
    int64_t integer; // valid for INTEGER and BOOL
    double floating; // valid for FLOATING
};
static inline struct tensor_scalar tensor_integer(int64_t value) {
    return (struct tensor_scalar){.kind = TENSOR_SCALAR_INTEGER, .integer = value};
}
static inline struct tensor_scalar tensor_floating(double value) {
    return (struct tensor_scalar){.kind = TENSOR_SCALAR_FLOATING, .floating = value};
}

// Collects the operands of an operator; all-NONE at the start (tensor_promotion_init).
struct tensor_promotion {
    enum tensor_type with_dimensions, without, number;
};
struct tensor_promotion tensor_promotion_init(void);
void tensor_promotion_add(struct tensor_promotion *promotion, enum tensor_type type, int rank);
void tensor_promotion_add_scalar(struct tensor_promotion *promotion, struct tensor_scalar scalar);
enum tensor_type tensor_promotion_result(const struct tensor_promotion *promotion);

#endif
