// What the operators of nn.h share: tensors as arrays of tensor/kernel, checks, the end of a
// failure's sentence.
//
//     status = tape_begin(...);                       // tape.h
//     status = tensor__check_...(...);
//     status = tensor__impl_alloc(...);
//     status = backend->model->softmax(&kernel, stream);
//     return tensor__explain(tape_end(status, node, &made, result), "softmax", &self, 1);
#ifndef TIDEMARK_TENSOR_OPERATOR_H
#define TIDEMARK_TENSOR_OPERATOR_H

#include "tensor/backend.h"
#include "tensor/impl.h"
#include "tensor/tape.h"

// OUT = A B + BIAS (may be NULL), matrices or batches of them, whose shapes and types fit.
enum base_status tensor__product_write(struct tensor_impl *out, const struct tensor_impl *a,
                                       const struct tensor_impl *b,
                                       const struct tensor_impl *bias) BASE_MUST_USE;

enum tensor_workspace { TENSOR_WORKSPACE_PRODUCT, TENSOR_WORKSPACE_BIASED_PRODUCT };
// As tensor_set_workspaces has it; *workspace is NULL where it asks for none.
enum base_status tensor__workspace_create(const struct tensor_place *place,
                                          enum tensor_workspace kind,
                                          struct tensor_storage **workspace) BASE_MUST_USE;

// IMPL as rows along DIM: SHAPE (may be NULL) of the other dimensions. Refused if it reaches past
// its storage.
enum base_status tensor__rows(const struct tensor_impl *impl, int dim,
                              struct tensor_kernel_shape *shape,
                              struct tensor_kernel_rows *rows) BASE_MUST_USE;
// The same with the last DIMS dimensions, which lie behind each other, as a row.
enum base_status tensor__norm_rows(const struct tensor_impl *impl, int dims,
                                   struct tensor_kernel_shape *shape,
                                   struct tensor_kernel_rows *rows) BASE_MUST_USE;
// As elements in logical order, of any strides.
enum base_status tensor__array(const struct tensor_impl *impl, struct tensor_kernel_shape *shape,
                               struct tensor_kernel_array *array) BASE_MUST_USE;
// Elements without gaps, which IMPL has to have; none for NULL.
enum base_status tensor__flat(const struct tensor_impl *impl,
                              struct tensor_kernel_array *array) BASE_MUST_USE;

// The kernels of IMPL's device and its current stream.
enum base_status tensor__model(const struct tensor_impl *impl,
                               const struct tensor_model_backend **model,
                               struct tensor_device_stream *stream) BASE_MUST_USE;

// A result of TYPE in rows, by SIZES.
enum base_status tensor__make(const struct tensor_impl *like, enum tensor_type type,
                              const int64_t *sizes, int rank, struct tensor *made) BASE_MUST_USE;

// What tensor_set_generator_state has set (none: NULL and no data), for work beside LIKE.
enum base_status tensor__generator_state(const struct tensor_impl *like, struct tensor_impl **impl,
                                         struct tensor_kernel_array *state) BASE_MUST_USE;

// SELF, or a copy in rows where its last DIMS dimensions do not lie behind each other; off the
// graph.
enum base_status tensor__rows_flatten(struct tensor self, int dims,
                                      struct tensor *rows) BASE_MUST_USE;

// NotImplementedError of PyTorch's kernel NAME for a type that is not floating.
enum base_status tensor__check_floating(const char *name,
                                        const struct tensor_impl *impl) BASE_MUST_USE;

// STATUS; out of memory is told with the operator's NAME and the shapes and types of its operands
// (none are left out).
enum base_status tensor__explain(enum base_status status, const char *name,
                                 const struct tensor *operands, int count) BASE_MUST_USE;

// The types that sums are kept in beside results of TYPE: float64 for itself, else float32.
static inline enum tensor_type tensor__wide(enum tensor_type type) {
    return type == TENSOR_FLOAT64 ? TENSOR_FLOAT64 : TENSOR_FLOAT32;
}

// Softmax along the last dimension of scale * SELF. Causal: row R of the dimension before sees
// columns 0 to R + SHIFT; the others come to 0.
enum base_status tensor__softmax(struct tensor self, int dim, double scale, bool is_log,
                                 bool is_causal, int64_t shift,
                                 struct tensor *result) BASE_MUST_USE;

// A tensor of LIKE's type as attention lays out its results: of rank 4, heads inside of the
// sequence.
enum base_status tensor__attention_make(const struct tensor_impl *like, const int64_t *sizes,
                                        int rank, struct tensor *made) BASE_MUST_USE;

#endif
