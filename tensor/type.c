// See type.h.
#include "tensor/type.h"

#include <string.h>

static const struct {
    const char *name, *scalar, *native;
    size_t size;
} types[TENSOR_TYPE_COUNT] = {
#define TENSOR_TYPE_ROW(name, text, scalar, native, bytes) {text, scalar, native, bytes},
    TENSOR_TYPE_LIST(TENSOR_TYPE_ROW)
#undef TENSOR_TYPE_ROW
};

const char *tensor_type_name(enum tensor_type type) { return types[type].name; }
const char *tensor_type_scalar_name(enum tensor_type type) { return types[type].scalar; }
const char *tensor_type_native_name(enum tensor_type type) { return types[type].native; }
size_t tensor_type_size(enum tensor_type type) { return types[type].size; }

bool tensor_type_find(const char *name, enum tensor_type *type) {
    for (int index = 0; index < TENSOR_TYPE_COUNT; index++) {
        if (strcmp(types[index].name, name) != 0)
            continue;
        *type = (enum tensor_type)index;
        return true;
    }
    return false;
}

static int kind_of(enum tensor_type type) {
    return type == TENSOR_BOOL ? 0 : tensor_type_is_floating(type) ? 2 : 1;
}

enum tensor_type tensor_type_promote(enum tensor_type a, enum tensor_type b) {
    if (a == TENSOR_TYPE_NONE || a == b)
        return b;
    if (b == TENSOR_TYPE_NONE)
        return a;
    if (kind_of(a) != kind_of(b))
        return kind_of(a) > kind_of(b) ? a : b;
    const size_t size_a = tensor_type_size(a), size_b = tensor_type_size(b);
    if (size_a != size_b)
        return size_a > size_b ? a : b;
    return tensor_type_is_floating(a) ? TENSOR_FLOAT32 : TENSOR_INT16;
}

bool tensor_type_can_cast(enum tensor_type from, enum tensor_type to) {
    return kind_of(from) <= kind_of(to);
}

struct tensor_promotion tensor_promotion_init(void) {
    return (struct tensor_promotion){TENSOR_TYPE_NONE, TENSOR_TYPE_NONE, TENSOR_TYPE_NONE};
}

void tensor_promotion_add(struct tensor_promotion *promotion, enum tensor_type type, int rank) {
    enum tensor_type *slot = rank > 0 ? &promotion->with_dimensions : &promotion->without;
    *slot = tensor_type_promote(*slot, type);
}

void tensor_promotion_add_scalar(struct tensor_promotion *promotion, struct tensor_scalar scalar) {
    const enum tensor_type type = scalar.kind == TENSOR_SCALAR_FLOATING  ? TENSOR_FLOAT32
                                  : scalar.kind == TENSOR_SCALAR_INTEGER ? TENSOR_INT64
                                                                         : TENSOR_BOOL;
    promotion->number = tensor_type_promote(promotion->number, type);
}

// HIGHER decides unless LOWER is of a kind above it.
static enum tensor_type combine(enum tensor_type higher, enum tensor_type lower) {
    if (higher == TENSOR_TYPE_NONE)
        return lower;
    if (lower == TENSOR_TYPE_NONE || kind_of(lower) <= kind_of(higher))
        return higher;
    return lower;
}

enum tensor_type tensor_promotion_result(const struct tensor_promotion *promotion) {
    return combine(promotion->with_dimensions, combine(promotion->without, promotion->number));
}
