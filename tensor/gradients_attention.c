// The gradients of attention, query by query and key by key. See formulas.h.
#include "tensor/formulas.h"
#include "tensor/operator.h"

#include <string.h>

enum { QUERY, KEY, VALUE, OUT, TOTAL, STATE, KEPT_COUNT };

// All rows but the results'.
static enum base_status attention_rows(const struct tensor *kept, struct tensor gradient,
                                       struct tensor shares,
                                       struct tensor_kernel_attention_query *query,
                                       struct tensor_kernel_attention_key *key) {
    const int last = gradient.impl->geometry.rank - 1;
    enum base_status status = tensor__rows(kept[QUERY].impl, last, NULL, &query->query);
    if (status == BASE_OK)
        status = tensor__rows(kept[KEY].impl, last, NULL, &query->key);
    if (status == BASE_OK)
        status = tensor__rows(kept[VALUE].impl, last, NULL, &query->value);
    if (status == BASE_OK)
        status = tensor__rows(kept[OUT].impl, last, NULL, &query->out);
    if (status == BASE_OK)
        status = tensor__rows(gradient.impl, last, NULL, &query->gradient);
    if (status == BASE_OK)
        status = tensor__flat(kept[TOTAL].impl, &query->total);
    if (status == BASE_OK)
        status = tensor__flat(shares.impl, &query->shares);
    key->form = query->form;
    key->query = query->query;
    key->key = query->key;
    key->value = query->value;
    key->gradient = query->gradient;
    key->total = query->total;
    key->shares = query->shares;
    return status;
}

static enum base_status attention_run(const struct tape_node *node, const struct tensor *kept,
                                      struct tensor gradient, struct tensor shares,
                                      const struct tensor made[3]) {
    const struct tape_attention_payload *payload = node->payload;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    const int last = gradient.impl->geometry.rank - 1;
    struct tensor_kernel_attention_query query = {.form = payload->form};
    struct tensor_kernel_attention_key key;
    memset(&key, 0, sizeof key);
    enum base_status status = attention_rows(kept, gradient, shares, &query, &key);
    if (status == BASE_OK)
        status = tensor__rows(made[QUERY].impl, last, NULL, &query.of_query);
    if (status == BASE_OK)
        status = tensor__rows(made[KEY].impl, last, NULL, &key.of_key);
    if (status == BASE_OK)
        status = tensor__rows(made[VALUE].impl, last, NULL, &key.of_value);
    if (status == BASE_OK)
        status = tensor__model(gradient.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->attention_query(&query, stream);
    return status != BASE_OK ? status : model->attention_key(&key, stream);
}

// All three gradients are made, as PyTorch does, whichever is wanted.
static enum base_status attention_back(struct tape_node *node, struct tensor *gradients,
                                       struct tensor *results) {
    struct tensor kept[KEPT_COUNT] = {{0}}, made[3] = {{0}}, shares = {0};
    enum base_status status = BASE_OK;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    const struct tape_attention_payload *payload = node->payload;
    const int kept_count = payload->form.state.data != NULL ? KEPT_COUNT : STATE;
    for (int slot = 0; slot < kept_count && status == BASE_OK; slot++)
        status = tape_unpack(node, slot, &kept[slot]);
    for (int edge = 0; edge < 3 && status == BASE_OK; edge++)
        status = tensor__attention_make(kept[edge].impl, kept[edge].impl->geometry.sizes,
                                        kept[edge].impl->geometry.rank, &made[edge]);
    if (status == BASE_OK)
        status =
            tensor__make(kept[TOTAL].impl, kept[TOTAL].impl->type, kept[TOTAL].impl->geometry.sizes,
                         kept[TOTAL].impl->geometry.rank, &shares);
    if (status == BASE_OK)
        status = attention_run(node, kept, gradients[0], shares, made);
    for (int edge = 0; edge < 3; edge++)
        if (status == BASE_OK && tape_wants(node, edge))
            results[edge] = tensor_retain(made[edge]);
    tensor_release(&shares);
    for (int edge = 0; edge < 3; edge++)
        tensor_release(&made[edge]);
    for (int slot = 0; slot < KEPT_COUNT; slot++)
        tensor_release(&kept[slot]);
    return status;
}

const struct tape_formula tape_attention = {.name = "ScaledDotProductFlashAttentionBackward0",
                                            .apply = attention_back};
