// What computes with tensors and changes them: operators, metadata, storages. See operations.h.
#include "tensor/golden/operations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Metadata and storage

OPERATION(transpose_) { return tensor_transpose_(T(0), I(0), I(1)); }
OPERATION(t_) { return tensor_transpose_2d_(T(0)); }
OPERATION(squeeze_) {
    return call->int_count == 0 ? tensor_squeeze_(T(0)) : tensor_squeeze_dim_(T(0), I(0));
}
OPERATION(unsqueeze_) { return tensor_unsqueeze_(T(0), I(0)); }
OPERATION(as_strided_) { return tensor_as_strided_(T(0), LIST(0), LIST(1), offset_of(call)); }
OPERATION(set_) { return tensor_set_(T(0), T(1)); }
OPERATION(set_storage) {
    return tensor_set_storage_(T(0), call->names[0]->storage, I(0), LIST(0), LIST(1));
}
OPERATION(set_whole) { return tensor_set_whole_(T(0), call->names[0]->storage); }
OPERATION(set_empty) { return tensor_set_empty_(T(0)); }
OPERATION(set_data) { return tensor_set_data(T(0), T(1)); }
OPERATION(resize_) {
    return tensor_resize_(T(0), LIST(0), call->has_format ? &call->format : NULL);
}
OPERATION(resize_as_) { return tensor_resize_as_(T(0), T(1)); }
OPERATION(storage) {
    struct golden_name *name;
    struct tensor_storage *storage = tensor_storage(T(0));
    const enum base_status status =
        golden_name_bind(call->session, call->word, GOLDEN_STORAGE, &name);
    if (status == BASE_OK)
        name->storage = storage;
    else
        tensor_storage_release(&storage);
    return status;
}
OPERATION(storage_resize) { return tensor_storage_resize(call->names[0]->storage, I(0)); }
OPERATION(storage_address) {
    return answer_word(call, tensor_storage_data(call->names[0]->storage) == NULL ? "null" : "set");
}
OPERATION(address) {
    const void *data = tensor_data(T(0));
    struct tensor_storage *storage = tensor_storage(T(0));
    const void *base = tensor_storage_data(storage);
    tensor_storage_release(&storage);
    if (data == NULL)
        return answer_word(call, "null");
    snprintf(call->answer, sizeof call->answer, "%s%" PRIuPTR, base == NULL ? "base-null+" : "",
             (uintptr_t)data - (uintptr_t)base);
    return BASE_OK;
}
OPERATION(keep_address) {
    struct golden_name *name;
    const enum base_status status =
        golden_name_bind(call->session, call->word, GOLDEN_ADDRESS, &name);
    if (status == BASE_OK)
        name->address = tensor_data(T(0));
    return status;
}
OPERATION(address_same) { return answer_flag(call, call->names[0]->address == tensor_data(T(0))); }

//------------------------------------------------------------------------------------------------
// Computing

OPERATION(add) { RESULT(tensor_add(T(0), VALUE, alpha_of(call), made(call))); }
OPERATION(sub) { RESULT(tensor_sub(T(0), VALUE, alpha_of(call), made(call))); }
OPERATION(mul) { RESULT(tensor_mul(T(0), VALUE, made(call))); }
OPERATION(div) { RESULT(tensor_div(T(0), VALUE, made(call))); }
OPERATION(eq) { RESULT(tensor_eq(T(0), VALUE, made(call))); }
OPERATION(neg) { RESULT(tensor_neg(T(0), made(call))); }
OPERATION(relu) { RESULT(tensor_relu(T(0), made(call))); }
OPERATION(sqrt) { RESULT(tensor_sqrt(T(0), made(call))); }
OPERATION(sum) {
    if (call->word == NULL || strcmp(call->word, "-") == 0)
        RESULT(tensor_sum(T(0), made(call)));
    int64_t dims[GOLDEN_LIST_MAX];
    int count = 0;
    char *end;
    for (const char *text = call->word + 1;
         *text != '\0' && *text != ']' && count < GOLDEN_LIST_MAX;
         text = *end == ',' ? end + 1 : end) {
        dims[count++] = strtoll(text, &end, 10);
        if (end == text)
            return base_status_set(BASE_FORMAT, "\"%s\" is no list", call->word);
    }
    RESULT(tensor_sum_dims(T(0), dims, count, call->int_count > 0 && I(0) != 0, made(call)));
}
OPERATION(mm) { RESULT(tensor_mm(T(0), T(1), made(call))); }
OPERATION(matmul) { RESULT(tensor_matmul(T(0), T(1), made(call))); }
OPERATION(cat) { RESULT(tensor_cat(call->tensors, call->tensor_count, I(0), made(call))); }
OPERATION(stack) { RESULT(tensor_stack(call->tensors, call->tensor_count, I(0), made(call))); }
OPERATION(index) { RESULT(tensor_index(T(0), T(1), made(call))); }
// The recorder cleared memory that an operation had added to a storage after it: what an output
// that grew was given in the new part is not in the logs.
static enum base_status growth_clear(struct golden_call *call, size_t bytes_before,
                                     enum base_status status) {
    struct tensor_storage *storage = tensor_storage(T(0));
    const size_t bytes = tensor_storage_bytes(storage);
    if (bytes > bytes_before)
        memset((char *)tensor_storage_data(storage) + bytes_before, 0, bytes - bytes_before);
    tensor_storage_release(&storage);
    return status;
}

static size_t bytes_of(const struct golden_call *call) {
    struct tensor_storage *storage = tensor_storage(T(0));
    const size_t bytes = tensor_storage_bytes(storage);
    tensor_storage_release(&storage);
    return bytes;
}

OPERATION(add_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_add_out(T(0), T(1), VALUE));
}
OPERATION(mul_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_mul_out(T(0), T(1), VALUE));
}
OPERATION(mm_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_mm_out(T(0), T(1), T(2)));
}
OPERATION(sum_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_sum_out(T(0), T(1), LIST(0)));
}
OPERATION(cat_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes,
                        tensor_cat_out(T(0), call->tensors + 1, call->tensor_count - 1, I(0)));
}

OPERATION(add_) { return tensor_add_(T(0), VALUE, alpha_of(call)); }
OPERATION(sub_) { return tensor_sub_(T(0), VALUE, alpha_of(call)); }
OPERATION(mul_) { return tensor_mul_(T(0), VALUE); }
OPERATION(div_) { return tensor_div_(T(0), VALUE); }
OPERATION(copy_) { return tensor_copy_(T(0), T(1)); }
OPERATION(fill_) { return tensor_fill_(T(0), VALUE); }
OPERATION(zero_) { return tensor_zero_(T(0)); }
OPERATION(neg_) { return tensor_neg_(T(0)); }
OPERATION(relu_) { return tensor_relu_(T(0)); }
OPERATION(sqrt_) { return tensor_sqrt_(T(0)); }
OPERATION(setitem_select) { return tensor_assign_select(T(0), I(0), I(1), VALUE); }
OPERATION(setitem_slice) {
    return tensor_assign_slice(T(0), I(0), call->is_absent[1] ? 0 : I(1),
                               call->is_absent[2] ? INT64_MAX : I(2), call->is_absent[3] ? 1 : I(3),
                               VALUE);
}
OPERATION(index_put_) {
    return tensor_index_put_(T(0), T(1), VALUE, call->int_count > 0 && I(0) != 0);
}
OPERATION(bump) {
    tensor_bump_version(T(0));
    return BASE_OK;
}
