// Rows by an index. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <string.h>

static enum base_status embedding_check(struct tensor weight, struct tensor indices) {
    const enum tensor_type type = indices.impl->type;
    if (weight.impl->geometry.rank != 2)
        return tensor__error("'weight' must be 2-D");
    if (type != TENSOR_INT64 && type != TENSOR_INT32)
        return tensor__error("Expected tensor for argument #1 'indices' to have one of the "
                             "following scalar types: Long, Int; but got torch.%s%sTensor instead "
                             "(while checking arguments for embedding)",
                             indices.impl->storage->place.kind == TENSOR_CUDA ? "cuda." : "",
                             tensor_type_scalar_name(type));
    if (indices.impl->geometry.rank >= TENSOR_RANK_MAX)
        return tensor__error("embedding: %d dimensions of indices are too many",
                             indices.impl->geometry.rank);
    return tensor__check_same_device(weight.impl, indices.impl);
}

static enum base_status embedding_write(struct tensor weight, struct tensor indices,
                                        struct tensor made) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    const int64_t columns = weight.impl->geometry.sizes[1];
    struct tensor_kernel_gather kernel = {.count = indices.impl->geometry.numel,
                                          .columns = columns,
                                          .table_rows = weight.impl->geometry.sizes[0],
                                          .out = {.array.strides = {columns}, .step = 1}};
    struct tensor_kernel_array out;
    enum base_status status = tensor__rows(weight.impl, 1, NULL, &kernel.table);
    if (status == BASE_OK)
        status = tensor__flat(indices.impl, &kernel.index);
    if (status == BASE_OK)
        status = tensor__flat(made.impl, &out);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    if (status != BASE_OK || made.impl->geometry.numel == 0)
        return status;
    kernel.out.array.data = out.data;
    kernel.out.array.type = out.type;
    return model->gather(&kernel, stream);
}

enum base_status tensor_embedding(struct tensor weight, struct tensor indices,
                                  struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor flat = {0}, made = {0};
    const struct tensor operands[] = {weight, indices};
    const struct tensor_geometry *shape = &indices.impl->geometry;
    int64_t sizes[TENSOR_RANK_MAX + 1];
    enum base_status status =
        tape_begin(&tape_embedding, &weight, 1, 1, sizeof(struct tape_embedding_payload), &node);
    if (status == BASE_OK)
        status = embedding_check(weight, indices);
    if (status == BASE_OK)
        status = tensor_contiguous(indices, TENSOR_CONTIGUOUS, &flat);
    if (status == BASE_OK) {
        memcpy(sizes, shape->sizes, (size_t)shape->rank * sizeof sizes[0]);
        sizes[shape->rank] = weight.impl->geometry.sizes[1];
        status = tensor__make(weight.impl, weight.impl->type, sizes, shape->rank + 1, &made);
    }
    if (status == BASE_OK)
        status = embedding_write(weight, flat, made);
    if (status == BASE_OK && node != NULL) {
        ((struct tape_embedding_payload *)node->payload)->rows = weight.impl->geometry.sizes[0];
        status = tape_save(node, 0, flat.impl);
    }
    tensor_release(&flat);
    return tensor__explain(tape_end(status, node, &made, result), "embedding", operands, 2);
}
