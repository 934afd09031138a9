// self += value * a * b, and a / b. See nn.h.
#include "tensor/error.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

static enum base_status addc(struct tensor self, struct tensor a, struct tensor b, double value,
                             bool divides) {
    const char *name = divides ? "addcdiv_" : "addcmul_";
    const struct tensor operands[] = {self, a, b};
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_addc kernel = {.divides = divides, .factor = value};
    char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
    enum base_status status = BASE_OK;
    for (int index = 0; index < 3 && status == BASE_OK; index++) {
        const struct tensor_geometry *shape = &operands[index].impl->geometry;
        if (!tensor_geometry_same_shape(&self.impl->geometry, shape))
            return tensor__error(
                "%s: shapes %s and %s differ", name,
                tensor_sizes_text(self.impl->geometry.sizes, self.impl->geometry.rank, want),
                tensor_sizes_text(shape->sizes, shape->rank, have));
        if (tensor_grad_mode() && tensor_requires_grad(operands[index]))
            return tensor__error("%s: has no gradient; turn gradients off", name);
        status = tensor__check_floating(name, operands[index].impl);
        if (status == BASE_OK)
            status = tensor__check_same_device(self.impl, operands[index].impl);
        if (status == BASE_OK && index > 0)
            status = tensor__check_no_partial_overlap(self.impl, operands[index].impl);
    }
    if (status == BASE_OK)
        status = tensor__check_no_internal_overlap(self.impl);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(self.impl);
    if (status == BASE_OK)
        status = tensor__array(self.impl, &kernel.shape, &kernel.out);
    if (status == BASE_OK)
        status = tensor__array(a.impl, NULL, &kernel.a);
    if (status == BASE_OK)
        status = tensor__array(b.impl, NULL, &kernel.b);
    if (status == BASE_OK)
        status = tensor__model(self.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->addc(&kernel, stream);
    if (status == BASE_OK)
        tensor__impl_bump(self.impl);
    return status;
}

enum base_status tensor_addcmul_(struct tensor self, struct tensor a, struct tensor b,
                                 double value) {
    return addc(self, a, b, value, false);
}

enum base_status tensor_addcdiv_(struct tensor self, struct tensor a, struct tensor b,
                                 double value) {
    return addc(self, a, b, value, true);
}
