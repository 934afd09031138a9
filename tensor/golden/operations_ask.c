// Questions, weak handles, the tape and its modes. See operations.h.
#include "tensor/golden/operations.h"

#include <string.h>

//------------------------------------------------------------------------------------------------
// Questions

OPERATION(same) { return answer_flag(call, tensor_is_same(T(0), T(1))); }
OPERATION(refs) {
    uint32_t owners = tensor_count_strong_handles(T(0));
    for (size_t index = 0; index < call->session->name_count; index++)
        owners -= call->session->names[index]->tensor.impl == T(0).impl;
    snprintf(call->answer, sizeof call->answer, "%u", owners);
    return BASE_OK;
}
OPERATION(is_set_to) { return answer_flag(call, tensor_is_set_to(T(0), T(1))); }
OPERATION(equal) {
    bool equal;
    const enum base_status status = tensor_equal(T(0), T(1), &equal);
    return status != BASE_OK ? status : answer_flag(call, equal);
}
OPERATION(result_type) {
    struct tensor_promotion promotion = tensor_promotion_init();
    tensor_promotion_add(&promotion, tensor_type(T(0)), tensor_rank(T(0)));
    if (VALUE.tensor.impl != NULL)
        tensor_promotion_add(&promotion, tensor_type(VALUE.tensor), tensor_rank(VALUE.tensor));
    else
        tensor_promotion_add_scalar(&promotion, VALUE.number);
    return answer_word(call, tensor_type_name(tensor_promotion_result(&promotion)));
}
OPERATION(promote) {
    return answer_word(call, tensor_type_name(tensor_type_promote(call->types[0], call->types[1])));
}
OPERATION(can_cast) {
    return answer_flag(call, tensor_type_can_cast(call->types[0], call->types[1]));
}
OPERATION(version) {
    uint32_t version;
    const enum base_status status = tensor_version(T(0), &version);
    if (status == BASE_OK)
        snprintf(call->answer, sizeof call->answer, "%u", version);
    return status;
}
OPERATION(item) {
    struct tensor_scalar value;
    const enum base_status status = tensor_item(T(0), &value);
    if (status != BASE_OK)
        return status;
    char bytes[8];
    const enum base_status read = tensor_read(T(0), bytes);
    if (read == BASE_OK)
        golden_value_text(tensor_type(T(0)), bytes, call->answer);
    return read;
}
OPERATION(is_contiguous) { return answer_flag(call, tensor_is_contiguous(T(0), call->format)); }
OPERATION(is_inference) { return answer_flag(call, tensor_is_inference(T(0))); }
OPERATION(suggest) {
    static const char *const names[] = {"contiguous", "channels_last", "channels_last_3d"};
    return answer_word(call, names[tensor_geometry_suggested(tensor_geometry(T(0)))]);
}
OPERATION(creation) {
    const char *creation = tensor_creation(T(0));
    return answer_word(call, creation == NULL ? "none" : creation);
}

//------------------------------------------------------------------------------------------------
// Weak handles

OPERATION(weak) {
    struct golden_name *name;
    const enum base_status status = golden_name_bind(call->session, call->word, GOLDEN_WEAK, &name);
    if (status == BASE_OK)
        name->weak = tensor_weak(T(0));
    return status;
}
OPERATION(weak_storage) {
    struct golden_name *name;
    const enum base_status status =
        golden_name_bind(call->session, call->word, GOLDEN_WEAK_STORAGE, &name);
    if (status != BASE_OK)
        return status;
    struct tensor_storage *storage = tensor_storage(T(0));
    name->weak_storage = tensor_storage_weak(storage);
    tensor_storage_release(&storage);
    return BASE_OK;
}
OPERATION(expired) {
    const struct golden_name *name = call->names[0];
    if (name->kind == GOLDEN_WEAK)
        return answer_flag(call, tensor_weak_expired(name->weak));
    if (name->kind == GOLDEN_WEAK_STORAGE)
        return answer_flag(call, tensor_storage_weak_expired(name->weak_storage));
    return base_status_set(BASE_FORMAT, "\"%s\" is no weak handle", name->text);
}
OPERATION(lock_storage) {
    const struct golden_name *weak = call->names[0];
    if (weak->kind != GOLDEN_WEAK_STORAGE)
        return base_status_set(BASE_FORMAT, "\"%s\" is no weak handle on a storage", weak->text);
    struct tensor_storage *storage = tensor_storage_weak_lock(weak->weak_storage);
    struct golden_name *name;
    if (storage == NULL) {
        call->is_none = true;
        return BASE_OK;
    }
    const enum base_status status =
        golden_name_bind(call->session, call->word, GOLDEN_STORAGE, &name);
    if (status == BASE_OK)
        name->storage = storage;
    else
        tensor_storage_release(&storage);
    return status;
}

//------------------------------------------------------------------------------------------------
// The tape

OPERATION(requires_grad) { return tensor_set_requires_grad(T(0), I(0) != 0); }
OPERATION(backward) {
    const struct tensor gradient = call->tensor_count > 1 ? T(1) : (struct tensor){0};
    return tensor_backward(T(0), gradient, call->int_count > 0 && I(0) != 0);
}
OPERATION(retain_grad) { return tensor_retain_grad(T(0)); }
OPERATION(grad) {
    const struct tensor gradient = tensor_grad(T(0));
    call->is_none = gradient.impl == NULL;
    if (!call->is_none)
        *made(call) = tensor_retain(gradient);
    return BASE_OK;
}
OPERATION(set_grad) { return tensor_set_grad(T(0), T(1)); }
OPERATION(clear_grad) { return tensor_set_grad(T(0), (struct tensor){0}); }
OPERATION(save) {
    struct golden_name *name;
    struct tensor_saved *saved;
    const enum base_status status = tensor_save(T(0), &saved);
    if (status != BASE_OK)
        return status;
    const enum base_status bound = golden_name_bind(call->session, call->word, GOLDEN_SAVED, &name);
    if (bound == BASE_OK) {
        name->saved = saved;
        name->saved_tensor = T(0);
    } else {
        tensor_saved_free(&saved);
    }
    return bound;
}
OPERATION(unpack) { RESULT(tensor_unpack(call->names[0]->saved, made(call))); }

static void mode_apply(const struct golden_session *session) {
    tensor_set_grad_mode(session->modes[session->mode_depth].gradients);
    tensor_set_inference_mode(session->modes[session->mode_depth].inference);
}
OPERATION(push) {
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
OPERATION(pop) {
    struct golden_session *session = call->session;
    if (session->mode_depth == 0)
        return base_status_set(BASE_FORMAT, "no mode to pop");
    session->mode_depth--;
    mode_apply(session);
    return BASE_OK;
}
