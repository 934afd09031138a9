// The operations of the logs by name: the words each takes, and the function that does it. The
// functions are in operations_make.c, operations_change.c and operations_ask.c; session.c has the
// letters of the forms.
#ifndef TIDEMARK_TENSOR_GOLDEN_OPERATIONS_H
#define TIDEMARK_TENSOR_GOLDEN_OPERATIONS_H

#include "tensor/golden/session_internal.h"

#include <stdio.h>

// X(name in the logs, form, whether it writes its first tensor, function)
// clang-format off
#define GOLDEN_OPERATION_LIST(X) \
    X(add, "DSX?X", false, add) \
    X(add_, "SX?X", true, add_) \
    X(add_out, "SSX", true, add_out) \
    X(address, "S", false, address) \
    X(address_same, "PS", false, address_same) \
    X(alias, "DS", false, alias) \
    X(alias_view, "DS", false, alias_view) \
    X(arange, "DTxx?x", false, arange) \
    X(as_strided, "DSLL?e", false, as_strided) \
    X(as_strided_, "SLL?e", true, as_strided_) \
    X(backward, "S?Bi", false, backward) \
    X(broadcast, "DSS", false, broadcast) \
    X(bump, "S", true, bump) \
    X(can_cast, "TT", false, can_cast) \
    X(cat, "DAi", false, cat) \
    X(cat_out, "SAi", true, cat_out) \
    X(chunk, "DSii", false, chunk) \
    X(clear_grad, "S", false, clear_grad) \
    X(clone, "DS?F", false, clone) \
    X(contiguous, "DS?F", false, contiguous) \
    X(copy_, "SS", true, copy_) \
    X(creation, "S", false, creation) \
    X(data, "DS", false, data) \
    X(detach, "DS", false, detach) \
    X(detach_, "S", true, detach_) \
    X(diagonal, "DS?iii", false, diagonal) \
    X(div, "DSX", false, div) \
    X(div_, "SX", true, div_) \
    X(empty, "DTL?F", false, empty) \
    X(empty_like, "DS?F", false, empty_like) \
    X(empty_strided, "DTLL", false, empty_strided) \
    X(eq, "DSX", false, eq) \
    X(equal, "SS", false, equal) \
    X(expand, "DSL", false, expand) \
    X(expand_as, "DSS", false, expand_as) \
    X(expired, "W", false, expired) \
    X(fill_, "SX", true, fill_) \
    X(flatten, "DS?ii", false, flatten) \
    X(full, "DTLX", false, full) \
    X(grad, "DS", false, grad) \
    X(index, "DSS", false, index) \
    X(index_put_, "SSX?i", true, index_put_) \
    X(is_contiguous, "SF", false, is_contiguous) \
    X(is_inference, "S", false, is_inference) \
    X(is_set_to, "SS", false, is_set_to) \
    X(item, "S", false, item) \
    X(keep_address, "wS", false, keep_address) \
    X(lock_storage, "wW", false, lock_storage) \
    X(matmul, "DSS", false, matmul) \
    X(mm, "DSS", false, mm) \
    X(mm_out, "SSS", true, mm_out) \
    X(movedim, "DSii", false, movedim) \
    X(mul, "DSX", false, mul) \
    X(mul_, "SX", true, mul_) \
    X(mul_out, "SSX", true, mul_out) \
    X(narrow, "DSiii", false, narrow) \
    X(neg, "DS", false, neg) \
    X(neg_, "S", true, neg_) \
    X(ones, "DTL", false, ones) \
    X(permute, "DSL", false, permute) \
    X(pop, "", false, pop) \
    X(promote, "TT", false, promote) \
    X(push, "w", false, push) \
    X(refs, "S", false, refs) \
    X(relu, "DS", false, relu) \
    X(relu_, "S", true, relu_) \
    X(requires_grad_, "Si", true, requires_grad) \
    X(reshape, "DSL", false, reshape) \
    X(resize_, "SL?F", true, resize_) \
    X(resize_as_, "SS", true, resize_as_) \
    X(result_type, "SX", false, result_type) \
    X(retain_grad, "S", false, retain_grad) \
    X(same, "SS", false, same) \
    X(save, "wS", false, save) \
    X(select, "DSii", false, select) \
    X(set_, "SS", true, set_) \
    X(set_data, "SS", true, set_data) \
    X(set_empty, "S", true, set_empty) \
    X(set_grad, "SS", true, set_grad) \
    X(set_requires_grad, "Si", true, requires_grad) \
    X(set_storage, "SUiLL", true, set_storage) \
    X(set_whole, "SU", true, set_whole) \
    X(setitem_select, "SiiX", true, setitem_select) \
    X(setitem_slice, "SieeeX", true, setitem_slice) \
    X(slice, "DSieee", false, slice) \
    X(split, "DSJi", false, split) \
    X(sqrt, "DS", false, sqrt) \
    X(sqrt_, "S", true, sqrt_) \
    X(squeeze, "DS?w", false, squeeze) \
    X(squeeze_, "S?i", true, squeeze_) \
    X(stack, "DAi", false, stack) \
    X(storage, "wS", false, storage) \
    X(storage_address, "U", false, storage_address) \
    X(storage_resize, "Ui", false, storage_resize) \
    X(sub, "DSX?X", false, sub) \
    X(sub_, "SX?X", true, sub_) \
    X(suggest, "S", false, suggest) \
    X(sum, "DS?wi", false, sum) \
    X(sum_out, "SSL", true, sum_out) \
    X(t_, "S", true, t_) \
    X(tensor, "DTV", false, tensor) \
    X(to, "DST?F", false, to) \
    X(transpose, "DSii", false, transpose) \
    X(transpose_, "Sii", true, transpose_) \
    X(transpose_2d, "DS", false, transpose_2d) \
    X(unbind, "DSi", false, unbind) \
    X(unflatten, "DSiL", false, unflatten) \
    X(unfold, "DSiii", false, unfold) \
    X(unpack, "DK", false, unpack) \
    X(unsafe_split, "DSii", false, unsafe_split) \
    X(unsqueeze, "DSi", false, unsqueeze) \
    X(unsqueeze_, "Si", true, unsqueeze_) \
    X(version, "S", false, version) \
    X(view, "DSL", false, view) \
    X(view_as, "DSS", false, view_as) \
    X(view_dtype, "DST", false, view_dtype) \
    X(weak, "wS", false, weak) \
    X(weak_storage, "wS", false, weak_storage) \
    X(zero_, "S", true, zero_) \
    X(zeros, "DTL", false, zeros) \
    X(zeros_like, "DS?F", false, zeros_like)
// clang-format on

// A function that serves two names is declared twice, which C allows.
#define GOLDEN_OPERATION_DECLARE(name, form, writes, run)                                          \
    enum base_status golden__##run(struct golden_call *call);
GOLDEN_OPERATION_LIST(GOLDEN_OPERATION_DECLARE)
#undef GOLDEN_OPERATION_DECLARE

//------------------------------------------------------------------------------------------------
// Short forms for the functions

#define OPERATION(name) enum base_status golden__##name(struct golden_call *call)
#define T(index) (call->tensors[index])
#define I(index) (call->ints[index])
#define LIST(index) call->lists[index].values, call->lists[index].count
#define VALUE (call->values[0])
#define RESULT(...) return single(call, __VA_ARGS__)

// One new tensor.
static inline struct tensor *made(struct golden_call *call) {
    call->result_count = 1;
    return &call->results[0];
}

// Without a result where the call was refused.
static inline enum base_status single(struct golden_call *call, enum base_status status) {
    if (status != BASE_OK)
        call->result_count = 0;
    return status;
}

static inline enum base_status answer_flag(struct golden_call *call, bool flag) {
    snprintf(call->answer, sizeof call->answer, "%d", flag);
    return BASE_OK;
}

static inline enum base_status answer_word(struct golden_call *call, const char *word) {
    snprintf(call->answer, sizeof call->answer, "%s", word);
    return BASE_OK;
}

static inline const int64_t *offset_of(const struct golden_call *call) {
    return call->int_count == 0 || call->is_absent[0] ? NULL : &call->ints[0];
}

static inline struct tensor_scalar alpha_of(const struct golden_call *call) {
    return call->value_count > 1 ? call->values[1].number : tensor_integer(1);
}

static inline enum tensor_format format_of(const struct golden_call *call,
                                           enum tensor_format otherwise) {
    return call->has_format ? call->format : otherwise;
}

#endif
