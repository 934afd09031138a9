// What masks do: dropout, masked_fill. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

enum base_status tensor_masked_fill(struct tensor self, struct tensor mask,
                                    struct tensor_scalar value, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    const struct tensor operands[] = {self, mask};
    enum base_status status = tape_begin(&tape_masked_fill, &self, 1, 1, 0, &node);
    if (status == BASE_OK && mask.impl->type != TENSOR_BOOL)
        status = tensor__error("masked_fill_ only supports boolean masks, but got mask with dtype "
                               "%s",
                               tensor_type_native_name(mask.impl->type));
    if (status == BASE_OK && value.kind == TENSOR_SCALAR_FLOATING &&
        !tensor_type_is_floating(self.impl->type))
        status = tensor__error("value cannot be converted to type %s without overflow",
                               tensor_type_native_name(self.impl->type));
    const struct tensor_iteration iteration = {.operation = TENSOR_MASKED_FILL,
                                               .result_type = TENSOR_RESULT_COMMON,
                                               .a = self.impl,
                                               .b = mask.impl,
                                               .has_alpha = true,
                                               .alpha = value};
    if (status == BASE_OK && node != NULL)
        status = tape_save(node, 0, mask.impl);
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &made.impl);
    return tensor__explain(tape_end(status, node, &made, result), "masked_fill", operands, 2);
}

static enum base_status dropout_write(struct tensor self, struct tensor mask, struct tensor made,
                                      double probability,
                                      const struct tensor_generator *generator) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_impl *state;
    struct tensor_kernel_dropout kernel = {
        .probability = probability, .seed = generator->seed, .offset = generator->offset};
    enum base_status status = tensor__array(self.impl, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__array(made.impl, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__array(mask.impl, NULL, &kernel.mask);
    if (status == BASE_OK)
        status = tensor__generator_state(self.impl, &state, &kernel.state);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    return status != BASE_OK ? status : model->dropout(&kernel, stream);
}

enum base_status tensor_dropout(struct tensor self, double probability,
                                struct tensor_generator *generator, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor mask = {0}, made = {0};
    if (!(probability >= 0 && probability <= 1))
        return tensor__error("dropout probability has to be between 0 and 1, but got %g",
                             probability);
    enum base_status status = tensor__check_floating("fused_dropout", self.impl);
    if (status != BASE_OK)
        return status;
    if (probability == 0 || self.impl->geometry.numel == 0) {
        *result = tensor_retain(self);
        return BASE_OK;
    }
    status = tape_begin(&tape_dropout, &self, 1, 1, sizeof(struct tape_dropout_payload), &node);
    struct tensor_geometry geometry;
    tensor_geometry_copy(&geometry, &self.impl->geometry);
    geometry.offset = 0;
    if ((self.impl->flags & TENSOR_IS_DENSE) == 0)
        tensor_geometry_densify(&geometry);
    const struct tensor_place *place = &self.impl->storage->place;
    if (status == BASE_OK)
        status = tensor__impl_alloc(place, TENSOR_BOOL, &geometry, &mask.impl);
    if (status == BASE_OK)
        status = tensor__impl_alloc(place, self.impl->type, &geometry, &made.impl);
    if (status == BASE_OK)
        status = dropout_write(self, mask, made, probability, generator);
    if (status == BASE_OK && node != NULL) {
        struct tape_dropout_payload *payload = node->payload;
        payload->scale = probability < 1 ? 1 / (1 - probability) : 0;
        status = tape_save_result(node, 0, mask.impl);
    }
    tensor_release(&mask);
    status = tape_end(status, node, &made, result);
    if (status == BASE_OK) // whole numbers of four are drawn
        generator->offset += ((uint64_t)self.impl->geometry.numel + 3) / 4 * 4;
    return tensor__explain(status, "dropout", &self, 1);
}
