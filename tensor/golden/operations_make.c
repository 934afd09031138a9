// What makes tensors: new ones, views, copies. See operations.h.
#include "tensor/golden/operations.h"

#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Making

OPERATION(empty) {
    RESULT(tensor_empty(&call->session->place, call->types[0], LIST(0),
                        format_of(call, TENSOR_CONTIGUOUS), made(call)));
}
OPERATION(zeros) {
    RESULT(tensor_zeros(&call->session->place, call->types[0], LIST(0), made(call)));
}
OPERATION(ones) { RESULT(tensor_ones(&call->session->place, call->types[0], LIST(0), made(call))); }
OPERATION(full) {
    RESULT(tensor_full(&call->session->place, call->types[0], LIST(0), VALUE.number, made(call)));
}
OPERATION(arange) {
    RESULT(tensor_arange(&call->session->place, call->types[0], call->numbers[0], call->numbers[1],
                         call->number_count > 2 ? call->numbers[2] : 1, made(call)));
}
OPERATION(tensor) {
    const int64_t size = call->number_count;
    struct tensor numbers;
    enum base_status status =
        tensor_from_bytes(&call->session->place, TENSOR_FLOAT64, &size, 1, call->numbers, &numbers);
    if (status != BASE_OK)
        return status;
    status = tensor_to(numbers, call->types[0], TENSOR_PRESERVE, made(call));
    tensor_release(&numbers);
    return single(call, status);
}
OPERATION(empty_strided) {
    RESULT(
        tensor_empty_strided(&call->session->place, call->types[0], LIST(0), LIST(1), made(call)));
}
OPERATION(empty_like) {
    RESULT(tensor_empty_like(T(0), format_of(call, TENSOR_PRESERVE), made(call)));
}
OPERATION(zeros_like) {
    RESULT(tensor_zeros_like(T(0), format_of(call, TENSOR_PRESERVE), made(call)));
}
OPERATION(alias) {
    *made(call) = tensor_retain(T(0));
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Views

OPERATION(view) { RESULT(tensor_view(T(0), LIST(0), made(call))); }
OPERATION(reshape) { RESULT(tensor_reshape(T(0), LIST(0), made(call))); }
OPERATION(view_as) {
    RESULT(tensor_view(T(0), tensor_geometry(T(1))->sizes, tensor_rank(T(1)), made(call)));
}
OPERATION(view_dtype) { RESULT(tensor_view_type(T(0), call->types[0], made(call))); }
OPERATION(transpose) { RESULT(tensor_transpose(T(0), I(0), I(1), made(call))); }
OPERATION(movedim) { RESULT(tensor_movedim(T(0), I(0), I(1), made(call))); }
OPERATION(transpose_2d) { RESULT(tensor_transpose_2d(T(0), made(call))); }
OPERATION(permute) { RESULT(tensor_permute(T(0), LIST(0), made(call))); }
OPERATION(narrow) { RESULT(tensor_narrow(T(0), I(0), I(1), I(2), made(call))); }
OPERATION(select) { RESULT(tensor_select(T(0), I(0), I(1), made(call))); }
OPERATION(slice) {
    RESULT(tensor_slice(T(0), I(0), call->is_absent[1] ? 0 : I(1),
                        call->is_absent[2] ? INT64_MAX : I(2), call->is_absent[3] ? 1 : I(3),
                        made(call)));
}
OPERATION(unsqueeze) { RESULT(tensor_unsqueeze(T(0), I(0), made(call))); }
OPERATION(squeeze) {
    if (call->word == NULL || strcmp(call->word, "-") == 0)
        RESULT(tensor_squeeze(T(0), made(call)));
    char *end;
    int64_t dims[GOLDEN_LIST_MAX];
    int count = 0;
    const bool is_list = call->word[0] == '[';
    for (const char *text = call->word + is_list;
         *text != '\0' && *text != ']' && count < GOLDEN_LIST_MAX;
         text = *end == ',' ? end + 1 : end) {
        dims[count++] = strtoll(text, &end, 10);
        if (end == text)
            return base_status_set(BASE_FORMAT, "\"%s\" is no dimension", call->word);
    }
    if (is_list)
        RESULT(tensor_squeeze_dims(T(0), dims, count, made(call)));
    RESULT(tensor_squeeze_dim(T(0), dims[0], made(call)));
}
OPERATION(expand) { RESULT(tensor_expand(T(0), LIST(0), made(call))); }
OPERATION(expand_as) {
    RESULT(tensor_expand(T(0), tensor_geometry(T(1))->sizes, tensor_rank(T(1)), made(call)));
}
OPERATION(as_strided) {
    RESULT(tensor_as_strided(T(0), LIST(0), LIST(1), offset_of(call), made(call)));
}
OPERATION(unfold) { RESULT(tensor_unfold(T(0), I(0), I(1), I(2), made(call))); }
OPERATION(diagonal) {
    RESULT(tensor_diagonal(T(0), I(0), call->int_count > 1 ? I(1) : 0,
                           call->int_count > 2 ? I(2) : 1, made(call)));
}
OPERATION(flatten) {
    RESULT(tensor_flatten(T(0), I(0), call->int_count > 1 ? I(1) : -1, made(call)));
}
OPERATION(unflatten) { RESULT(tensor_unflatten(T(0), I(0), LIST(0), made(call))); }
OPERATION(alias_view) { RESULT(tensor_alias(T(0), made(call))); }

// The tensors of a list become the results.
static enum base_status many(struct golden_call *call, enum base_status status,
                             struct tensor_list *list) {
    if (status != BASE_OK)
        return status;
    for (int index = 0; index < list->count && index < GOLDEN_RESULT_MAX; index++) {
        call->results[index] = list->tensors[index];
        list->tensors[index].impl = NULL;
        call->result_count = index + 1;
    }
    tensor_list_free(list);
    return BASE_OK;
}

OPERATION(split) {
    struct tensor_list list = {0};
    const struct golden_list *sizes = &call->lists[0];
    if (sizes->is_list)
        return many(call, tensor_split_sizes(T(0), LIST(0), I(0), &list), &list);
    return many(call, tensor_split(T(0), sizes->values[0], I(0), &list), &list);
}
OPERATION(chunk) {
    struct tensor_list list = {0};
    return many(call, tensor_chunk(T(0), I(0), I(1), &list), &list);
}
OPERATION(unbind) {
    struct tensor_list list = {0};
    return many(call, tensor_unbind(T(0), I(0), &list), &list);
}
OPERATION(unsafe_split) {
    struct tensor_list list = {0};
    return many(call, tensor_unsafe_split(T(0), I(0), I(1), &list), &list);
}
OPERATION(broadcast) {
    const enum base_status status =
        tensor_broadcast(T(0), T(1), &call->results[0], &call->results[1]);
    if (status == BASE_OK)
        call->result_count = 2;
    return status;
}

//------------------------------------------------------------------------------------------------
// Copies, and off the graph

OPERATION(contiguous) {
    RESULT(tensor_contiguous(T(0), format_of(call, TENSOR_CONTIGUOUS), made(call)));
}
OPERATION(clone) { RESULT(tensor_clone(T(0), format_of(call, TENSOR_PRESERVE), made(call))); }
OPERATION(to) {
    RESULT(tensor_to(T(0), call->types[0], format_of(call, TENSOR_PRESERVE), made(call)));
}
OPERATION(detach) { RESULT(tensor_detach(T(0), made(call))); }
OPERATION(data) { RESULT(tensor_data_of(T(0), made(call))); }
OPERATION(detach_) { return tensor_detach_(T(0)); }
