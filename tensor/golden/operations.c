// The operations of the logs, each as calls of this library. See session_internal.h for the call
// and session.c for the letters of the forms.
#include "tensor/golden/session_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum base_status outcome;
#define OPERATION(name) static outcome name(struct golden_call *call)

// One new tensor.
static struct tensor *made(struct golden_call *call) {
    call->result_count = 1;
    return &call->results[0];
}

// Without a result where the call was refused.
static outcome single(struct golden_call *call, outcome status) {
    if (status != BASE_OK)
        call->result_count = 0;
    return status;
}

static outcome answer_flag(struct golden_call *call, bool flag) {
    snprintf(call->answer, sizeof call->answer, "%d", flag);
    return BASE_OK;
}

static outcome answer_word(struct golden_call *call, const char *word) {
    snprintf(call->answer, sizeof call->answer, "%s", word);
    return BASE_OK;
}

#define T(index) (call->tensors[index])
#define I(index) (call->ints[index])
#define LIST(index) call->lists[index].values, call->lists[index].count
#define VALUE (call->values[0])
#define RESULT(...) return single(call, __VA_ARGS__)

static const int64_t *offset_of(const struct golden_call *call) {
    return call->int_count == 0 || call->is_absent[0] ? NULL : &call->ints[0];
}

static struct tensor_scalar alpha_of(const struct golden_call *call) {
    return call->value_count > 1 ? call->values[1].number : tensor_integer(1);
}

static enum tensor_format format_of(const struct golden_call *call, enum tensor_format otherwise) {
    return call->has_format ? call->format : otherwise;
}

//------------------------------------------------------------------------------------------------
// Making

OPERATION(op_empty) {
    RESULT(tensor_empty(&call->session->place, call->types[0], LIST(0),
                        format_of(call, TENSOR_CONTIGUOUS), made(call)));
}
OPERATION(op_zeros) {
    RESULT(tensor_zeros(&call->session->place, call->types[0], LIST(0), made(call)));
}
OPERATION(op_ones) {
    RESULT(tensor_ones(&call->session->place, call->types[0], LIST(0), made(call)));
}
OPERATION(op_full) {
    RESULT(tensor_full(&call->session->place, call->types[0], LIST(0), VALUE.number, made(call)));
}
OPERATION(op_arange) {
    RESULT(tensor_arange(&call->session->place, call->types[0], call->numbers[0], call->numbers[1],
                         call->number_count > 2 ? call->numbers[2] : 1, made(call)));
}
OPERATION(op_tensor) {
    const int64_t size = call->number_count;
    struct tensor numbers;
    outcome status =
        tensor_from_bytes(&call->session->place, TENSOR_FLOAT64, &size, 1, call->numbers, &numbers);
    if (status != BASE_OK)
        return status;
    status = tensor_to(numbers, call->types[0], TENSOR_PRESERVE, made(call));
    tensor_release(&numbers);
    return single(call, status);
}
OPERATION(op_empty_strided) {
    RESULT(
        tensor_empty_strided(&call->session->place, call->types[0], LIST(0), LIST(1), made(call)));
}
OPERATION(op_empty_like) {
    RESULT(tensor_empty_like(T(0), format_of(call, TENSOR_PRESERVE), made(call)));
}
OPERATION(op_zeros_like) {
    RESULT(tensor_zeros_like(T(0), format_of(call, TENSOR_PRESERVE), made(call)));
}
OPERATION(op_alias) {
    *made(call) = tensor_retain(T(0));
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Views

OPERATION(op_view) { RESULT(tensor_view(T(0), LIST(0), made(call))); }
OPERATION(op_reshape) { RESULT(tensor_reshape(T(0), LIST(0), made(call))); }
OPERATION(op_view_as) {
    RESULT(tensor_view(T(0), tensor_geometry(T(1))->sizes, tensor_rank(T(1)), made(call)));
}
OPERATION(op_view_dtype) { RESULT(tensor_view_type(T(0), call->types[0], made(call))); }
OPERATION(op_transpose) { RESULT(tensor_transpose(T(0), I(0), I(1), made(call))); }
OPERATION(op_movedim) { RESULT(tensor_movedim(T(0), I(0), I(1), made(call))); }
OPERATION(op_transpose_2d) { RESULT(tensor_transpose_2d(T(0), made(call))); }
OPERATION(op_permute) { RESULT(tensor_permute(T(0), LIST(0), made(call))); }
OPERATION(op_narrow) { RESULT(tensor_narrow(T(0), I(0), I(1), I(2), made(call))); }
OPERATION(op_select) { RESULT(tensor_select(T(0), I(0), I(1), made(call))); }
OPERATION(op_slice) {
    RESULT(tensor_slice(T(0), I(0), call->is_absent[1] ? 0 : I(1),
                        call->is_absent[2] ? INT64_MAX : I(2), call->is_absent[3] ? 1 : I(3),
                        made(call)));
}
OPERATION(op_unsqueeze) { RESULT(tensor_unsqueeze(T(0), I(0), made(call))); }
OPERATION(op_squeeze) {
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
OPERATION(op_expand) { RESULT(tensor_expand(T(0), LIST(0), made(call))); }
OPERATION(op_expand_as) {
    RESULT(tensor_expand(T(0), tensor_geometry(T(1))->sizes, tensor_rank(T(1)), made(call)));
}
OPERATION(op_as_strided) {
    RESULT(tensor_as_strided(T(0), LIST(0), LIST(1), offset_of(call), made(call)));
}
OPERATION(op_unfold) { RESULT(tensor_unfold(T(0), I(0), I(1), I(2), made(call))); }
OPERATION(op_diagonal) {
    RESULT(tensor_diagonal(T(0), I(0), call->int_count > 1 ? I(1) : 0,
                           call->int_count > 2 ? I(2) : 1, made(call)));
}
OPERATION(op_flatten) {
    RESULT(tensor_flatten(T(0), I(0), call->int_count > 1 ? I(1) : -1, made(call)));
}
OPERATION(op_unflatten) { RESULT(tensor_unflatten(T(0), I(0), LIST(0), made(call))); }
OPERATION(op_alias_view) { RESULT(tensor_alias(T(0), made(call))); }

// The tensors of a list become the results.
static outcome many(struct golden_call *call, outcome status, struct tensor_list *list) {
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

OPERATION(op_split) {
    struct tensor_list list = {0};
    const struct golden_list *sizes = &call->lists[0];
    if (sizes->is_list)
        return many(call, tensor_split_sizes(T(0), LIST(0), I(0), &list), &list);
    return many(call, tensor_split(T(0), sizes->values[0], I(0), &list), &list);
}
OPERATION(op_chunk) {
    struct tensor_list list = {0};
    return many(call, tensor_chunk(T(0), I(0), I(1), &list), &list);
}
OPERATION(op_unbind) {
    struct tensor_list list = {0};
    return many(call, tensor_unbind(T(0), I(0), &list), &list);
}
OPERATION(op_unsafe_split) {
    struct tensor_list list = {0};
    return many(call, tensor_unsafe_split(T(0), I(0), I(1), &list), &list);
}
OPERATION(op_broadcast) {
    const outcome status = tensor_broadcast(T(0), T(1), &call->results[0], &call->results[1]);
    if (status == BASE_OK)
        call->result_count = 2;
    return status;
}

//------------------------------------------------------------------------------------------------
// Copies, and off the graph

OPERATION(op_contiguous) {
    RESULT(tensor_contiguous(T(0), format_of(call, TENSOR_CONTIGUOUS), made(call)));
}
OPERATION(op_clone) { RESULT(tensor_clone(T(0), format_of(call, TENSOR_PRESERVE), made(call))); }
OPERATION(op_to) {
    RESULT(tensor_to(T(0), call->types[0], format_of(call, TENSOR_PRESERVE), made(call)));
}
OPERATION(op_detach) { RESULT(tensor_detach(T(0), made(call))); }
OPERATION(op_data) { RESULT(tensor_data_of(T(0), made(call))); }
OPERATION(op_detach_) { return tensor_detach_(T(0)); }

//------------------------------------------------------------------------------------------------
// Metadata and storage

OPERATION(op_transpose_) { return tensor_transpose_(T(0), I(0), I(1)); }
OPERATION(op_t_) { return tensor_transpose_2d_(T(0)); }
OPERATION(op_squeeze_) {
    return call->int_count == 0 ? tensor_squeeze_(T(0)) : tensor_squeeze_dim_(T(0), I(0));
}
OPERATION(op_unsqueeze_) { return tensor_unsqueeze_(T(0), I(0)); }
OPERATION(op_as_strided_) { return tensor_as_strided_(T(0), LIST(0), LIST(1), offset_of(call)); }
OPERATION(op_set_) { return tensor_set_(T(0), T(1)); }
OPERATION(op_set_storage) {
    return tensor_set_storage_(T(0), call->names[0]->storage, I(0), LIST(0), LIST(1));
}
OPERATION(op_set_whole) { return tensor_set_whole_(T(0), call->names[0]->storage); }
OPERATION(op_set_empty) { return tensor_set_empty_(T(0)); }
OPERATION(op_set_data) { return tensor_set_data(T(0), T(1)); }
OPERATION(op_resize_) {
    return tensor_resize_(T(0), LIST(0), call->has_format ? &call->format : NULL);
}
OPERATION(op_resize_as_) { return tensor_resize_as_(T(0), T(1)); }
OPERATION(op_storage) {
    struct golden_name *name;
    struct tensor_storage *storage = tensor_storage(T(0));
    const outcome status = golden_name_bind(call->session, call->word, GOLDEN_STORAGE, &name);
    if (status == BASE_OK)
        name->storage = storage;
    else
        tensor_storage_release(&storage);
    return status;
}
OPERATION(op_storage_resize) { return tensor_storage_resize(call->names[0]->storage, I(0)); }
OPERATION(op_storage_address) {
    return answer_word(call, tensor_storage_data(call->names[0]->storage) == NULL ? "null" : "set");
}
OPERATION(op_address) {
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
OPERATION(op_keep_address) {
    struct golden_name *name;
    const outcome status = golden_name_bind(call->session, call->word, GOLDEN_ADDRESS, &name);
    if (status == BASE_OK)
        name->address = tensor_data(T(0));
    return status;
}
OPERATION(op_address_same) {
    return answer_flag(call, call->names[0]->address == tensor_data(T(0)));
}

//------------------------------------------------------------------------------------------------
// Computing

OPERATION(op_add) { RESULT(tensor_add(T(0), VALUE, alpha_of(call), made(call))); }
OPERATION(op_sub) { RESULT(tensor_sub(T(0), VALUE, alpha_of(call), made(call))); }
OPERATION(op_mul) { RESULT(tensor_mul(T(0), VALUE, made(call))); }
OPERATION(op_div) { RESULT(tensor_div(T(0), VALUE, made(call))); }
OPERATION(op_eq) { RESULT(tensor_eq(T(0), VALUE, made(call))); }
OPERATION(op_neg) { RESULT(tensor_neg(T(0), made(call))); }
OPERATION(op_relu) { RESULT(tensor_relu(T(0), made(call))); }
OPERATION(op_sqrt) { RESULT(tensor_sqrt(T(0), made(call))); }
OPERATION(op_sum) {
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
OPERATION(op_mm) { RESULT(tensor_mm(T(0), T(1), made(call))); }
OPERATION(op_matmul) { RESULT(tensor_matmul(T(0), T(1), made(call))); }
OPERATION(op_cat) { RESULT(tensor_cat(call->tensors, call->tensor_count, I(0), made(call))); }
OPERATION(op_stack) { RESULT(tensor_stack(call->tensors, call->tensor_count, I(0), made(call))); }
OPERATION(op_index) { RESULT(tensor_index(T(0), T(1), made(call))); }
// The recorder cleared memory that an operation had added to a storage after it: what an output
// that grew was given in the new part is not in the logs.
static outcome growth_clear(struct golden_call *call, size_t bytes_before, outcome status) {
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

OPERATION(op_add_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_add_out(T(0), T(1), VALUE));
}
OPERATION(op_mul_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_mul_out(T(0), T(1), VALUE));
}
OPERATION(op_mm_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_mm_out(T(0), T(1), T(2)));
}
OPERATION(op_sum_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes, tensor_sum_out(T(0), T(1), LIST(0)));
}
OPERATION(op_cat_out) {
    const size_t bytes = bytes_of(call);
    return growth_clear(call, bytes,
                        tensor_cat_out(T(0), call->tensors + 1, call->tensor_count - 1, I(0)));
}

OPERATION(op_add_) { return tensor_add_(T(0), VALUE, alpha_of(call)); }
OPERATION(op_sub_) { return tensor_sub_(T(0), VALUE, alpha_of(call)); }
OPERATION(op_mul_) { return tensor_mul_(T(0), VALUE); }
OPERATION(op_div_) { return tensor_div_(T(0), VALUE); }
OPERATION(op_copy_) { return tensor_copy_(T(0), T(1)); }
OPERATION(op_fill_) { return tensor_fill_(T(0), VALUE); }
OPERATION(op_zero_) { return tensor_zero_(T(0)); }
OPERATION(op_neg_) { return tensor_neg_(T(0)); }
OPERATION(op_relu_) { return tensor_relu_(T(0)); }
OPERATION(op_sqrt_) { return tensor_sqrt_(T(0)); }
OPERATION(op_setitem_select) { return tensor_assign_select(T(0), I(0), I(1), VALUE); }
OPERATION(op_setitem_slice) {
    return tensor_assign_slice(T(0), I(0), call->is_absent[1] ? 0 : I(1),
                               call->is_absent[2] ? INT64_MAX : I(2), call->is_absent[3] ? 1 : I(3),
                               VALUE);
}
OPERATION(op_index_put_) {
    return tensor_index_put_(T(0), T(1), VALUE, call->int_count > 0 && I(0) != 0);
}
OPERATION(op_bump) {
    tensor_bump_version(T(0));
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Questions

OPERATION(op_same) { return answer_flag(call, tensor_is_same(T(0), T(1))); }
OPERATION(op_refs) {
    uint32_t owners = tensor_count_strong_handles(T(0));
    for (size_t index = 0; index < call->session->name_count; index++)
        owners -= call->session->names[index]->tensor.impl == T(0).impl;
    snprintf(call->answer, sizeof call->answer, "%u", owners);
    return BASE_OK;
}
OPERATION(op_is_set_to) { return answer_flag(call, tensor_is_set_to(T(0), T(1))); }
OPERATION(op_equal) {
    bool equal;
    const outcome status = tensor_equal(T(0), T(1), &equal);
    return status != BASE_OK ? status : answer_flag(call, equal);
}
OPERATION(op_result_type) {
    struct tensor_promotion promotion = tensor_promotion_init();
    tensor_promotion_add(&promotion, tensor_type(T(0)), tensor_rank(T(0)));
    if (VALUE.tensor.impl != NULL)
        tensor_promotion_add(&promotion, tensor_type(VALUE.tensor), tensor_rank(VALUE.tensor));
    else
        tensor_promotion_add_scalar(&promotion, VALUE.number);
    return answer_word(call, tensor_type_name(tensor_promotion_result(&promotion)));
}
OPERATION(op_promote) {
    return answer_word(call, tensor_type_name(tensor_type_promote(call->types[0], call->types[1])));
}
OPERATION(op_can_cast) {
    return answer_flag(call, tensor_type_can_cast(call->types[0], call->types[1]));
}
OPERATION(op_version) {
    uint32_t version;
    const outcome status = tensor_version(T(0), &version);
    if (status == BASE_OK)
        snprintf(call->answer, sizeof call->answer, "%u", version);
    return status;
}
OPERATION(op_item) {
    struct tensor_scalar value;
    const outcome status = tensor_item(T(0), &value);
    if (status != BASE_OK)
        return status;
    char bytes[8];
    const outcome read = tensor_read(T(0), bytes);
    if (read == BASE_OK)
        golden_value_text(tensor_type(T(0)), bytes, call->answer);
    return read;
}
OPERATION(op_is_contiguous) { return answer_flag(call, tensor_is_contiguous(T(0), call->format)); }
OPERATION(op_is_inference) { return answer_flag(call, tensor_is_inference(T(0))); }
OPERATION(op_suggest) {
    static const char *const names[] = {"contiguous", "channels_last", "channels_last_3d"};
    return answer_word(call, names[tensor_geometry_suggested(tensor_geometry(T(0)))]);
}
OPERATION(op_creation) {
    const char *creation = tensor_creation(T(0));
    return answer_word(call, creation == NULL ? "none" : creation);
}

//------------------------------------------------------------------------------------------------
// Weak handles

OPERATION(op_weak) {
    struct golden_name *name;
    const outcome status = golden_name_bind(call->session, call->word, GOLDEN_WEAK, &name);
    if (status == BASE_OK)
        name->weak = tensor_weak(T(0));
    return status;
}
OPERATION(op_weak_storage) {
    struct golden_name *name;
    const outcome status = golden_name_bind(call->session, call->word, GOLDEN_WEAK_STORAGE, &name);
    if (status != BASE_OK)
        return status;
    struct tensor_storage *storage = tensor_storage(T(0));
    name->weak_storage = tensor_storage_weak(storage);
    tensor_storage_release(&storage);
    return BASE_OK;
}
OPERATION(op_expired) {
    const struct golden_name *name = call->names[0];
    if (name->kind == GOLDEN_WEAK)
        return answer_flag(call, tensor_weak_expired(name->weak));
    if (name->kind == GOLDEN_WEAK_STORAGE)
        return answer_flag(call, tensor_storage_weak_expired(name->weak_storage));
    return base_status_set(BASE_FORMAT, "\"%s\" is no weak handle", name->text);
}
OPERATION(op_lock_storage) {
    const struct golden_name *weak = call->names[0];
    if (weak->kind != GOLDEN_WEAK_STORAGE)
        return base_status_set(BASE_FORMAT, "\"%s\" is no weak handle on a storage", weak->text);
    struct tensor_storage *storage = tensor_storage_weak_lock(weak->weak_storage);
    struct golden_name *name;
    if (storage == NULL) {
        call->is_none = true;
        return BASE_OK;
    }
    const outcome status = golden_name_bind(call->session, call->word, GOLDEN_STORAGE, &name);
    if (status == BASE_OK)
        name->storage = storage;
    else
        tensor_storage_release(&storage);
    return status;
}

//------------------------------------------------------------------------------------------------
// The tape

OPERATION(op_requires_grad) { return tensor_set_requires_grad(T(0), I(0) != 0); }
OPERATION(op_backward) {
    const struct tensor gradient = call->tensor_count > 1 ? T(1) : (struct tensor){0};
    return tensor_backward(T(0), gradient, call->int_count > 0 && I(0) != 0);
}
OPERATION(op_retain_grad) { return tensor_retain_grad(T(0)); }
OPERATION(op_grad) {
    const struct tensor gradient = tensor_grad(T(0));
    call->is_none = gradient.impl == NULL;
    if (!call->is_none)
        *made(call) = tensor_retain(gradient);
    return BASE_OK;
}
OPERATION(op_set_grad) { return tensor_set_grad(T(0), T(1)); }
OPERATION(op_clear_grad) { return tensor_set_grad(T(0), (struct tensor){0}); }
OPERATION(op_save) {
    struct golden_name *name;
    struct tensor_saved *saved;
    const outcome status = tensor_save(T(0), &saved);
    if (status != BASE_OK)
        return status;
    const outcome bound = golden_name_bind(call->session, call->word, GOLDEN_SAVED, &name);
    if (bound == BASE_OK) {
        name->saved = saved;
        name->saved_tensor = T(0);
    } else {
        tensor_saved_free(&saved);
    }
    return bound;
}
OPERATION(op_unpack) { RESULT(tensor_unpack(call->names[0]->saved, made(call))); }

static void mode_apply(const struct golden_session *session) {
    tensor_set_grad_mode(session->modes[session->mode_depth].gradients);
    tensor_set_inference_mode(session->modes[session->mode_depth].inference);
}
OPERATION(op_push) {
    struct golden_session *session = call->session;
    if (session->mode_depth + 1 == GOLDEN_MODE_MAX)
        return base_status_set(BASE_FORMAT, "more than %d modes in each other", GOLDEN_MODE_MAX);
    struct golden_mode mode = session->modes[session->mode_depth];
    if (strcmp(call->word, "no_grad") == 0)
        mode.gradients = false;
    else if (strcmp(call->word, "grad") == 0)
        mode.gradients = true;
    else if (strcmp(call->word, "inference") == 0)
        mode.inference = true;
    else
        return base_status_set(BASE_FORMAT, "\"%s\" is no mode", call->word);
    session->modes[++session->mode_depth] = mode;
    mode_apply(session);
    return BASE_OK;
}
OPERATION(op_pop) {
    struct golden_session *session = call->session;
    if (session->mode_depth == 0)
        return base_status_set(BASE_FORMAT, "no mode to pop");
    session->mode_depth--;
    mode_apply(session);
    return BASE_OK;
}

#define MAKE(name, form, run) {name, form, false, run},
#define ASK(name, form, run) {name, form, false, run},
#define WRITE(name, form, run) {name, form, true, run},

const struct golden_operation_row golden_operation_rows[] = {
    MAKE("empty", "DTL?F", op_empty) MAKE("zeros", "DTL", op_zeros) MAKE(
        "ones", "DTL", op_ones) MAKE("full", "DTLX", op_full) MAKE("arange", "DTxx?x", op_arange)
        MAKE("tensor", "DTV", op_tensor) MAKE("empty_strided", "DTLL", op_empty_strided) MAKE(
            "empty_like", "DS?F", op_empty_like) MAKE("zeros_like", "DS?F",
                                                      op_zeros_like) MAKE("alias", "DS", op_alias)
            MAKE("view", "DSL", op_view) MAKE("reshape", "DSL", op_reshape) MAKE(
                "view_as", "DSS", op_view_as) MAKE("view_dtype", "DST", op_view_dtype)
                MAKE("transpose", "DSii", op_transpose) MAKE(
                    "movedim", "DSii", op_movedim) MAKE("transpose_2d", "DS", op_transpose_2d)
                    MAKE("permute", "DSL", op_permute) MAKE("narrow", "DSiii", op_narrow) MAKE(
                        "select", "DSii", op_select) MAKE("slice", "DSieee", op_slice)
                        MAKE("unsqueeze", "DSi", op_unsqueeze) MAKE("squeeze", "DS?w", op_squeeze)
                            MAKE("expand", "DSL", op_expand) MAKE("expand_as", "DSS", op_expand_as)
                                MAKE("as_strided", "DSLL?e", op_as_strided) MAKE(
                                    "unfold", "DSiii", op_unfold) MAKE("diagonal",
                                                                       "DS?iii", op_diagonal)
                                    MAKE("flatten", "DS?ii", op_flatten) MAKE(
                                        "unflatten",
                                        "DSiL",
                                        op_unflatten) MAKE("split", "DSJi",
                                                           op_split) MAKE("chunk", "DSii", op_chunk)
                                        MAKE("unbind", "DSi", op_unbind) MAKE(
                                            "unsafe_split",
                                            "DSii",
                                            op_unsafe_split) MAKE("alias_view", "DS", op_alias_view)
                                            MAKE("broadcast", "DSS", op_broadcast) MAKE(
                                                "contiguous", "DS?F",
                                                op_contiguous) MAKE("clone", "DS?F", op_clone)
                                                MAKE("to", "DST?F", op_to) MAKE(
                                                    "detach", "DS",
                                                    op_detach) MAKE("data", "DS", op_data)
                                                    WRITE("detach_", "S", op_detach_) WRITE(
                                                        "transpose_",
                                                        "Sii",
                                                        op_transpose_) WRITE("t_", "S", op_t_)
                                                        WRITE("squeeze_", "S?i",
                                                              op_squeeze_) WRITE("unsqueeze_", "Si",
                                                                                 op_unsqueeze_)
                                                            WRITE("as_strided_", "SLL?e",
                                                                  op_as_strided_)
                                                                WRITE("set_", "SS", op_set_) WRITE(
                                                                    "set_storage", "SUiLL",
                                                                    op_set_storage)
                                                                    WRITE("set_whole", "SU",
                                                                          op_set_whole)
                                                                        WRITE("set_empty",
                                                                              "S", op_set_empty) WRITE("set_data", "SS", op_set_data) WRITE("resize_", "SL?F", op_resize_) WRITE("resize_as_", "SS", op_resize_as_) ASK("storage", "wS", op_storage) ASK("storage_resize", "Ui", op_storage_resize) ASK("storage_address",
                                                                                                                                                                                                                                                                                                        "U",
                                                                                                                                                                                                                                                                                                        op_storage_address) ASK("address",
                                                                                                                                                                                                                                                                                                                                "S",
                                                                                                                                                                                                                                                                                                                                op_address) ASK("keep_address",
                                                                                                                                                                                                                                                                                                                                                "wS", op_keep_address) ASK("address_same", "PS", op_address_same) MAKE("add",
                                                                                                                                                                                                                                                                                                                                                                                                                       "DSX?X",
                                                                                                                                                                                                                                                                                                                                                                                                                       op_add) MAKE("sub", "DSX?X", op_sub) MAKE("mul",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "DSX",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                 op_mul) MAKE("div", "DSX", op_div) MAKE("eq",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         "DSX", op_eq) MAKE("neg", "DS", op_neg) MAKE("relu",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "DS",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      op_relu) MAKE("sqrt",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "DS",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    op_sqrt) MAKE("sum",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  "DS?wi",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  op_sum) MAKE("mm",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               "DSS",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               op_mm) MAKE("matmul",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "DSS", op_matmul) MAKE("cat",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  "DAi", op_cat) MAKE("stack",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "DAi", op_stack) MAKE("index", "DSS", op_index) WRITE("add_out",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "SSX",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            op_add_out) WRITE("mul_out",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              "SSX",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              op_mul_out) WRITE("mm_out", "SSS", op_mm_out) WRITE("sum_out", "SSL", op_sum_out) WRITE("cat_out",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "SAi",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      op_cat_out) WRITE("add_", "SX?X", op_add_) WRITE("sub_", "SX?X", op_sub_) WRITE("mul_",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "SX", op_mul_) WRITE("div_", "SX", op_div_) WRITE("copy_",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "SS", op_copy_) WRITE("fill_",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              "SX", op_fill_) WRITE("zero_",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "S",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    op_zero_) WRITE("neg_", "S", op_neg_) WRITE("relu_", "S", op_relu_) WRITE("sqrt_", "S", op_sqrt_) WRITE("setitem_select",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "SiiX", op_setitem_select) WRITE("setitem_slice", "SieeeX", op_setitem_slice) WRITE("index_put_",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "SSX?i",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                op_index_put_) WRITE("bump",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "S",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     op_bump) ASK("same", "SS", op_same) ASK("refs", "S", op_refs) ASK("is_set_to", "SS", op_is_set_to) ASK("equal",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "SS", op_equal) ASK("result_type", "SX", op_result_type)
                                                                            ASK("promote", "TT", op_promote) ASK("can_cast", "TT", op_can_cast) ASK("version", "S", op_version) ASK(
                                                                                "item",
                                                                                "S",
                                                                                op_item) ASK("is_"
                                                                                             "conti"
                                                                                             "guou"
                                                                                             "s",
                                                                                             "SF", op_is_contiguous) ASK("is_inference",
                                                                                                                         "S", op_is_inference)
                                                                                ASK("suggest", "S", op_suggest) ASK("creation", "S", op_creation) ASK(
                                                                                    "weak",
                                                                                    "wS",
                                                                                    op_weak) ASK("w"
                                                                                                 "e"
                                                                                                 "a"
                                                                                                 "k"
                                                                                                 "_"
                                                                                                 "s"
                                                                                                 "t"
                                                                                                 "o"
                                                                                                 "r"
                                                                                                 "a"
                                                                                                 "g"
                                                                                                 "e",
                                                                                                 "w"
                                                                                                 "S",
                                                                                                 op_weak_storage) ASK("expired",
                                                                                                                      "W", op_expired)
                                                                                    ASK("lock_"
                                                                                        "storage",
                                                                                        "wW",
                                                                                        op_lock_storage) WRITE("requires_grad_",
                                                                                                               "Si",
                                                                                                               op_requires_grad)
                                                                                        WRITE(
                                                                                            "set_"
                                                                                            "requir"
                                                                                            "es_"
                                                                                            "grad",
                                                                                            "Si",
                                                                                            op_requires_grad) ASK("backward",
                                                                                                                  "S?Bi",
                                                                                                                  op_backward)
                                                                                            ASK("re"
                                                                                                "ta"
                                                                                                "in"
                                                                                                "_g"
                                                                                                "ra"
                                                                                                "d",
                                                                                                "S",
                                                                                                op_retain_grad) MAKE("grad", "DS", op_grad)
                                                                                                WRITE(
                                                                                                    "set_grad",
                                                                                                    "SS",
                                                                                                    op_set_grad) ASK("clear_grad",
                                                                                                                     "S",
                                                                                                                     op_clear_grad)
                                                                                                    ASK("save", "wS", op_save) MAKE(
                                                                                                        "unpack",
                                                                                                        "DK",
                                                                                                        op_unpack)
                                                                                                        ASK("push",
                                                                                                            "w",
                                                                                                            op_push)
                                                                                                            ASK("pop",
                                                                                                                "",
                                                                                                                op_pop){
                                                                                                                NULL,
                                                                                                                NULL,
                                                                                                                false,
                                                                                                                NULL}};
