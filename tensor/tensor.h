// The reference tensor: a handle on an impl (metadata) on a storage (bytes) on a block of an
// allocator, as PyTorch has them.
//
//     struct tensor_place cpu = {host_allocator, TENSOR_CPU, 0};
//     struct tensor matrix, row;
//     status = tensor_ones(&cpu, TENSOR_FLOAT32, (int64_t[]){2, 3}, 2, &matrix);
//     status = tensor_select(matrix, 0, 1, &row);          // same storage, own impl, base = matrix
//     status = tensor_add_(row, tensor_operand_integer(1), tensor_integer(1));
//     // tensor_version(matrix) is 1 now: both share one counter
//     tensor_release(&row);
//     tensor_release(&matrix);
//
// Terms. An *impl* holds sizes, strides, offset, type, a counted reference to its storage, to its
// version counter and, where it takes part in gradients or is a view, its autograd part. A *handle*
// (struct tensor) counts the impl. A *view* is an impl of its own on the storage of its *base*, the
// tensor that the first view of a row of views was taken of; it keeps its base alive. The *version*
// counts in-place writes through any sharer of the counter. A *leaf* has no gradient function.
//
// Every function that can fail returns a status; the sentence (base_status_message) is PyTorch's
// own, and tensor_error_class names the exception that Python raises. Out-parameters are set only
// on success, and a refused operation changes nothing: not sizes, not bytes, not the version.
//
// Threads: counts are atomic, so handles of one tensor may be used on several threads; a tensor
// that one thread writes (bytes, metadata or graph) is nobody else's to touch meanwhile. Modes, the
// current stream and messages belong to the thread.
#ifndef TIDEMARK_TENSOR_TENSOR_H
#define TIDEMARK_TENSOR_TENSOR_H

#include "allocator/allocator.h"
#include "base/status.h"
#include "tensor/geometry.h"
#include "tensor/type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor_impl;
struct tensor_storage;

// One counted reference, or NULL for no tensor.
struct tensor {
    struct tensor_impl *impl;
};

enum tensor_device_kind { TENSOR_CPU, TENSOR_CUDA };

// Where tensors are made. The allocator outlives them all.
struct tensor_place {
    struct allocator *allocator;
    enum tensor_device_kind kind;
    int device; // index; 0 for the CPU
};

// PyTorch's class of the exception for the last refusal of this thread: "RuntimeError",
// "IndexError", "NotImplementedError". Never NULL.
const char *tensor_error_class(void);
// Where this thread's warnings go (PyTorch's text, one line); NULL: nowhere.
void tensor_on_warning(void (*listener)(void *context, const char *text), void *context);

// The stream that this thread's operators use on a device; the default stream at first. Below
// TENSOR_DEVICE_MAX.
#define TENSOR_DEVICE_MAX 64
cudaStream_t tensor_stream(int device);
void tensor_set_stream(int device, cudaStream_t stream);

//------------------------------------------------------------------------------------------------
// Handles

struct tensor tensor_retain(struct tensor self); // another handle on the same impl
void tensor_release(struct tensor *self);        // *self is none afterwards; none is ignored
static inline bool tensor_is_same(struct tensor a, struct tensor b) { return a.impl == b.impl; }
uint32_t tensor_count_strong_handles(struct tensor self); // a hint where threads share it
// With 1 for all strong handles together, as PyTorch's weak_use_count: 1 if nobody is weak.
uint32_t tensor_count_weak_handles(struct tensor self);

// A weak handle keeps the impl's memory, nothing else: with the last strong handle its storage,
// base and graph go.
struct tensor_weak {
    struct tensor_impl *impl;
};
struct tensor_weak tensor_weak(struct tensor self);
bool tensor_weak_expired(struct tensor_weak weak);
bool tensor_weak_lock(struct tensor_weak weak, struct tensor *self); // false: expired
void tensor_weak_release(struct tensor_weak *weak);

//------------------------------------------------------------------------------------------------
// Questions

int tensor_rank(struct tensor self);
int64_t tensor_numel(struct tensor self);
int64_t tensor_size(struct tensor self, int dim);   // 0 <= dim < rank
int64_t tensor_stride(struct tensor self, int dim); // in elements
int64_t tensor_offset(struct tensor self);
const struct tensor_geometry *tensor_geometry(struct tensor self);
enum tensor_type tensor_type(struct tensor self);
struct tensor_place tensor_place(struct tensor self);
unsigned tensor_flags(struct tensor self); // TENSOR_IS_... of geometry.h
bool tensor_is_contiguous(struct tensor self, enum tensor_format format); // PRESERVE as CONTIGUOUS
// First element: NULL if there are none. A storage without memory counts as address 0.
void *tensor_data(struct tensor self);
bool tensor_is_pinned(struct tensor self);    // in memory of tensor/pinned_allocator.h
bool tensor_is_inference(struct tensor self); // made inside inference mode: has no version
// RuntimeError for an inference tensor.
enum base_status tensor_version(struct tensor self, uint32_t *version) BASE_MUST_USE;
void tensor_bump_version(struct tensor self); // nothing for an inference tensor
// Whether a write through one counts for the other: views and detached tensors of each other. Never
// for inference tensors.
bool tensor_shares_version(struct tensor a, struct tensor b);
bool tensor_is_view(struct tensor self);
struct tensor tensor_base(struct tensor self); // borrowed; none if it is no view
// How a view came about: "default", "multi_output_node", "no_grad_mode", "inference_mode"; NULL if
// it is no view. All but the first make later writes to it a question of gradients.
const char *tensor_creation(struct tensor self);
// Same storage, offset, sizes and strides.
bool tensor_is_set_to(struct tensor self, struct tensor other);
// Same type, shape and elements.
enum base_status tensor_equal(struct tensor self, struct tensor other, bool *equal) BASE_MUST_USE;
// The only element, as a double or (integers, bool) exactly in .integer.
enum base_status tensor_item(struct tensor self, struct tensor_scalar *value) BASE_MUST_USE;
// All elements in logical order, as the type has them, into SIZE = numel * item size bytes of host
// memory; waits for the current stream of a device.
enum base_status tensor_read(struct tensor self, void *bytes) BASE_MUST_USE;
// Whether all elements lie inside the storage: false after a storage was made smaller.
bool tensor_is_in_bounds(struct tensor self);

//------------------------------------------------------------------------------------------------
// Storages

// Another counted handle on it.
struct tensor_storage *tensor_storage(struct tensor self);
void tensor_storage_release(struct tensor_storage **storage);
size_t tensor_storage_bytes(const struct tensor_storage *storage);
void *tensor_storage_data(const struct tensor_storage *storage);
bool tensor_storage_is_resizable(const struct tensor_storage *storage);
uint32_t tensor_storage_count(const struct tensor_storage *storage); // strong handles, impls' too
// Moves to a block of BYTES, larger or smaller, and frees the old one; tensors keep their sizes and
// may reach past the end now. Not counted as a write.
enum base_status tensor_storage_resize(struct tensor_storage *storage, int64_t bytes) BASE_MUST_USE;

struct tensor_storage_weak {
    struct tensor_storage *storage;
};
struct tensor_storage_weak tensor_storage_weak(struct tensor_storage *storage);
bool tensor_storage_weak_expired(struct tensor_storage_weak weak);
struct tensor_storage *tensor_storage_weak_lock(struct tensor_storage_weak weak); // NULL: expired
void tensor_storage_weak_release(struct tensor_storage_weak *weak);

// Tells the allocator that work on STREAM uses the tensor: the whole storage, whatever part the
// tensor is of it. To be called before the last handle goes. Nothing for CPU tensors, empty
// storages and memory that is not the allocator's.
enum base_status tensor_record_stream(struct tensor self, cudaStream_t stream) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Making tensors. Sizes as an array and its length. Memory is not cleared by tensor_empty*.

enum base_status tensor_empty(const struct tensor_place *place, enum tensor_type type,
                              const int64_t *sizes, int rank, enum tensor_format format,
                              struct tensor *result) BASE_MUST_USE;
enum base_status tensor_empty_strided(const struct tensor_place *place, enum tensor_type type,
                                      const int64_t *sizes, int rank, const int64_t *strides,
                                      int stride_count, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_zeros(const struct tensor_place *place, enum tensor_type type,
                              const int64_t *sizes, int rank, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_ones(const struct tensor_place *place, enum tensor_type type,
                             const int64_t *sizes, int rank, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_full(const struct tensor_place *place, enum tensor_type type,
                             const int64_t *sizes, int rank, struct tensor_scalar value,
                             struct tensor *result) BASE_MUST_USE;
enum base_status tensor_arange(const struct tensor_place *place, enum tensor_type type,
                               double start, double end, double step,
                               struct tensor *result) BASE_MUST_USE;
// Elements from host memory, in logical order; of a device, the copy is done on return.
enum base_status tensor_from_bytes(const struct tensor_place *place, enum tensor_type type,
                                   const int64_t *sizes, int rank, const void *bytes,
                                   struct tensor *result) BASE_MUST_USE;
// Memory of somebody else's, contiguous; DELETER (may be NULL) runs when the storage goes. Such a
// storage cannot be resized.
enum base_status tensor_from_memory(const struct tensor_place *place, enum tensor_type type,
                                    const int64_t *sizes, int rank, void *memory,
                                    void (*deleter)(void *context, void *memory), void *context,
                                    struct tensor *result) BASE_MUST_USE;
enum base_status tensor_empty_like(struct tensor self, enum tensor_format format,
                                   struct tensor *result) BASE_MUST_USE;
enum base_status tensor_zeros_like(struct tensor self, enum tensor_format format,
                                   struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Views. Negative dimensions count from the end.

enum base_status tensor_view(struct tensor self, const int64_t *sizes, int rank,
                             struct tensor *result) BASE_MUST_USE;
// A view where one is possible, else a contiguous copy.
enum base_status tensor_reshape(struct tensor self, const int64_t *sizes, int rank,
                                struct tensor *result) BASE_MUST_USE;
// Shares the counter but is off the graph and has no base, even for the same type.
enum base_status tensor_view_type(struct tensor self, enum tensor_type type,
                                  struct tensor *result) BASE_MUST_USE;
enum base_status tensor_transpose(struct tensor self, int64_t dim0, int64_t dim1,
                                  struct tensor *result) BASE_MUST_USE;
enum base_status tensor_transpose_2d(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_permute(struct tensor self, const int64_t *dims, int count,
                                struct tensor *result) BASE_MUST_USE;
enum base_status tensor_movedim(struct tensor self, int64_t source, int64_t destination,
                                struct tensor *result) BASE_MUST_USE;
enum base_status tensor_narrow(struct tensor self, int64_t dim, int64_t start, int64_t length,
                               struct tensor *result) BASE_MUST_USE;
enum base_status tensor_select(struct tensor self, int64_t dim, int64_t index,
                               struct tensor *result) BASE_MUST_USE;
// START 0 and END INT64_MAX: from the first to the last.
enum base_status tensor_slice(struct tensor self, int64_t dim, int64_t start, int64_t end,
                              int64_t step, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_unsqueeze(struct tensor self, int64_t dim,
                                  struct tensor *result) BASE_MUST_USE;
enum base_status tensor_squeeze(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_squeeze_dim(struct tensor self, int64_t dim,
                                    struct tensor *result) BASE_MUST_USE;
enum base_status tensor_squeeze_dims(struct tensor self, const int64_t *dims, int count,
                                     struct tensor *result) BASE_MUST_USE;
enum base_status tensor_expand(struct tensor self, const int64_t *sizes, int rank,
                               struct tensor *result) BASE_MUST_USE;
// OFFSET counts from the start of the storage; NULL: the tensor's own.
enum base_status tensor_as_strided(struct tensor self, const int64_t *sizes, int rank,
                                   const int64_t *strides, int stride_count, const int64_t *offset,
                                   struct tensor *result) BASE_MUST_USE;
enum base_status tensor_unfold(struct tensor self, int64_t dim, int64_t size, int64_t step,
                               struct tensor *result) BASE_MUST_USE;
enum base_status tensor_diagonal(struct tensor self, int64_t offset, int64_t dim0, int64_t dim1,
                                 struct tensor *result) BASE_MUST_USE;
enum base_status tensor_flatten(struct tensor self, int64_t first, int64_t last,
                                struct tensor *result) BASE_MUST_USE;
enum base_status tensor_unflatten(struct tensor self, int64_t dim, const int64_t *sizes, int count,
                                  struct tensor *result) BASE_MUST_USE;
enum base_status tensor_alias(struct tensor self, struct tensor *result) BASE_MUST_USE;

// Functions of many outputs: *count views, which the caller releases with tensor_list_free.
struct tensor_list {
    struct tensor *tensors;
    int count;
};
void tensor_list_free(struct tensor_list *list);
enum base_status tensor_split(struct tensor self, int64_t size, int64_t dim,
                              struct tensor_list *result) BASE_MUST_USE;
enum base_status tensor_split_sizes(struct tensor self, const int64_t *sizes, int count,
                                    int64_t dim, struct tensor_list *result) BASE_MUST_USE;
enum base_status tensor_chunk(struct tensor self, int64_t chunks, int64_t dim,
                              struct tensor_list *result) BASE_MUST_USE;
enum base_status tensor_unbind(struct tensor self, int64_t dim,
                               struct tensor_list *result) BASE_MUST_USE;
// Pieces without a base and with counters of their own: writes to them go unnoticed.
enum base_status tensor_unsafe_split(struct tensor self, int64_t size, int64_t dim,
                                     struct tensor_list *result) BASE_MUST_USE;
// Both expanded to their common shape; one that has it already is itself.
enum base_status tensor_broadcast(struct tensor a, struct tensor b, struct tensor *result_a,
                                  struct tensor *result_b) BASE_MUST_USE;

// Off the graph: detach shares the counter, data has one of its own at 0. Neither names a base.
enum base_status tensor_detach(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_data_of(struct tensor self, struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// In place, metadata only; each counts as a write.

enum base_status tensor_transpose_(struct tensor self, int64_t dim0, int64_t dim1) BASE_MUST_USE;
enum base_status tensor_transpose_2d_(struct tensor self) BASE_MUST_USE;
enum base_status tensor_squeeze_(struct tensor self) BASE_MUST_USE;
enum base_status tensor_squeeze_dim_(struct tensor self, int64_t dim) BASE_MUST_USE;
enum base_status tensor_unsqueeze_(struct tensor self, int64_t dim) BASE_MUST_USE;
enum base_status tensor_as_strided_(struct tensor self, const int64_t *sizes, int rank,
                                    const int64_t *strides, int stride_count,
                                    const int64_t *offset) BASE_MUST_USE;

// Other storages. tensor_set_ takes everything of SOURCE, tensor_set_storage_ names it, and both
// enlarge a storage that is too small; tensor_set_whole_ takes all of a storage as one dimension.
enum base_status tensor_set_(struct tensor self, struct tensor source) BASE_MUST_USE;
enum base_status tensor_set_storage_(struct tensor self, struct tensor_storage *storage,
                                     int64_t offset, const int64_t *sizes, int rank,
                                     const int64_t *strides, int stride_count) BASE_MUST_USE;
enum base_status tensor_set_whole_(struct tensor self,
                                   struct tensor_storage *storage) BASE_MUST_USE;
enum base_status tensor_set_empty_(struct tensor self) BASE_MUST_USE;
// `self.data = source`: storage, metadata and type of SOURCE; counter, base and graph stay.
enum base_status tensor_set_data(struct tensor self, struct tensor source) BASE_MUST_USE;
// Other sizes on the same storage, which grows if it has to and never shrinks. Equal sizes change
// nothing, not even the strides. FORMAT NULL: contiguous.
enum base_status tensor_resize_(struct tensor self, const int64_t *sizes, int rank,
                                const enum tensor_format *format) BASE_MUST_USE;
enum base_status tensor_resize_as_(struct tensor self, struct tensor other) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Copies

enum base_status tensor_contiguous(struct tensor self, enum tensor_format format,
                                   struct tensor *result) BASE_MUST_USE; // itself if it is so
enum base_status tensor_clone(struct tensor self, enum tensor_format format,
                              struct tensor *result) BASE_MUST_USE;
enum base_status tensor_to(struct tensor self, enum tensor_type type, enum tensor_format format,
                           struct tensor *result) BASE_MUST_USE; // itself if nothing changes

// In PLACE, of the same type; itself if it is there, in memory of the place's allocator. Streams
// and NON_BLOCKING as of a copy between places (tensor_copy_non_blocking_).
enum base_status tensor_to_place(struct tensor self, const struct tensor_place *place,
                                 bool non_blocking, struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Operators. An operand is a tensor or a number.

struct tensor_operand_value {
    struct tensor tensor; // none: the number
    struct tensor_scalar number;
};
static inline struct tensor_operand_value tensor_operand_tensor(struct tensor tensor) {
    return (struct tensor_operand_value){.tensor = tensor};
}
static inline struct tensor_operand_value tensor_operand_integer(int64_t value) {
    return (struct tensor_operand_value){.number = tensor_integer(value)};
}
static inline struct tensor_operand_value tensor_operand_floating(double value) {
    return (struct tensor_operand_value){.number = tensor_floating(value)};
}

enum base_status tensor_add(struct tensor self, struct tensor_operand_value other,
                            struct tensor_scalar alpha, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_sub(struct tensor self, struct tensor_operand_value other,
                            struct tensor_scalar alpha, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_mul(struct tensor self, struct tensor_operand_value other,
                            struct tensor *result) BASE_MUST_USE;
enum base_status tensor_div(struct tensor self, struct tensor_operand_value other,
                            struct tensor *result) BASE_MUST_USE;
enum base_status tensor_eq(struct tensor self, struct tensor_operand_value other,
                           struct tensor *result) BASE_MUST_USE;
enum base_status tensor_neg(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_relu(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_sqrt(struct tensor self, struct tensor *result) BASE_MUST_USE;
// Over DIMS (none: over all); integers add up in int64.
enum base_status tensor_sum(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_sum_dims(struct tensor self, const int64_t *dims, int count, bool keep,
                                 struct tensor *result) BASE_MUST_USE;
enum base_status tensor_mm(struct tensor a, struct tensor b, struct tensor *result) BASE_MUST_USE;
// Of batches of matrices: [n, i, k] and [n, k, j].
enum base_status tensor_bmm(struct tensor a, struct tensor b, struct tensor *result) BASE_MUST_USE;
// By rank: vectors, matrices, or batches whose leading dimensions broadcast.
enum base_status tensor_matmul(struct tensor a, struct tensor b,
                               struct tensor *result) BASE_MUST_USE;
enum base_status tensor_cat(const struct tensor *tensors, int count, int64_t dim,
                            struct tensor *result) BASE_MUST_USE;
enum base_status tensor_stack(const struct tensor *tensors, int count, int64_t dim,
                              struct tensor *result) BASE_MUST_USE;
// self[index]: INDEX of integers along the first dimension, or a mask.
enum base_status tensor_index(struct tensor self, struct tensor index,
                              struct tensor *result) BASE_MUST_USE;

// Into a given output, which is resized (with a warning if it was not empty) and counts a write.
enum base_status tensor_add_out(struct tensor out, struct tensor self,
                                struct tensor_operand_value other) BASE_MUST_USE;
enum base_status tensor_mul_out(struct tensor out, struct tensor self,
                                struct tensor_operand_value other) BASE_MUST_USE;
enum base_status tensor_sum_out(struct tensor out, struct tensor self, const int64_t *dims,
                                int count) BASE_MUST_USE;
enum base_status tensor_mm_out(struct tensor out, struct tensor a, struct tensor b) BASE_MUST_USE;
enum base_status tensor_cat_out(struct tensor out, const struct tensor *tensors, int count,
                                int64_t dim) BASE_MUST_USE;

// In place.
enum base_status tensor_add_(struct tensor self, struct tensor_operand_value other,
                             struct tensor_scalar alpha) BASE_MUST_USE;
enum base_status tensor_sub_(struct tensor self, struct tensor_operand_value other,
                             struct tensor_scalar alpha) BASE_MUST_USE;
enum base_status tensor_mul_(struct tensor self, struct tensor_operand_value other) BASE_MUST_USE;
enum base_status tensor_div_(struct tensor self, struct tensor_operand_value other) BASE_MUST_USE;
// Between places: with a device, on its current stream, and the host waits; between two devices on
// that of the source, behind the destination's and before what comes on it next, and nobody waits.
enum base_status tensor_copy_(struct tensor self, struct tensor source) BASE_MUST_USE;
// The same, but for page-locked host memory (tensor/pinned_allocator.h) the host does not wait:
// what it holds is there, or may be written again, when the stream has come so far. It may be
// dropped at once. Other host memory: as tensor_copy_.
enum base_status tensor_copy_non_blocking_(struct tensor self, struct tensor source) BASE_MUST_USE;
enum base_status tensor_fill_(struct tensor self, struct tensor_operand_value value) BASE_MUST_USE;
enum base_status tensor_zero_(struct tensor self) BASE_MUST_USE;
enum base_status tensor_neg_(struct tensor self) BASE_MUST_USE;
enum base_status tensor_relu_(struct tensor self) BASE_MUST_USE;
enum base_status tensor_sqrt_(struct tensor self) BASE_MUST_USE;
// self[:, ..., INDEX] = value, and of a slice: a view, then fill or copy.
enum base_status tensor_assign_select(struct tensor self, int64_t dim, int64_t index,
                                      struct tensor_operand_value value) BASE_MUST_USE;
enum base_status tensor_assign_slice(struct tensor self, int64_t dim, int64_t start, int64_t end,
                                     int64_t step, struct tensor_operand_value value) BASE_MUST_USE;
enum base_status tensor_index_put_(struct tensor self, struct tensor index,
                                   struct tensor_operand_value value,
                                   bool accumulate) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Gradients

bool tensor_requires_grad(struct tensor self);
// For a leaf. Only floating types.
enum base_status tensor_set_requires_grad(struct tensor self, bool value) BASE_MUST_USE;
// The two can be refused: a view whose base was written while the view's history cannot follow.
enum base_status tensor_is_leaf(struct tensor self, bool *leaf) BASE_MUST_USE;
enum base_status tensor_gradient_function(struct tensor self, const char **name) BASE_MUST_USE;
// From SELF back to the leaves that require it; gradients add up in tensor_grad. GRADIENT none: 1,
// for a tensor of one element. RETAIN keeps what the nodes saved for another run.
enum base_status tensor_backward(struct tensor self, struct tensor gradient,
                                 bool retain) BASE_MUST_USE;
struct tensor tensor_grad(struct tensor self); // borrowed; none if there is none
// None clears it. Refused if shape or type differ.
enum base_status tensor_set_grad(struct tensor self, struct tensor gradient) BASE_MUST_USE;
enum base_status
tensor_retain_grad(struct tensor self) BASE_MUST_USE; // of a tensor that is no leaf
enum base_status tensor_detach_(struct tensor self) BASE_MUST_USE;

// FUNCTION of INPUT without keeping what its gradient needs, which backward makes by running it
// again: less memory for more work. CONTEXT has to live until then, and the function to do the same
// both times: same random numbers, same weights, which take their gradients from within. If INPUT
// does not require grad, it is simply run.
typedef enum base_status tensor_function(void *context, struct tensor input, struct tensor *result);
enum base_status tensor_checkpoint(tensor_function *function, void *context, struct tensor input,
                                   struct tensor *result) BASE_MUST_USE;

// A tensor kept for a gradient: it remembers the version, and unpacking checks it.
struct tensor_saved;
enum base_status tensor_save(struct tensor self, struct tensor_saved **saved) BASE_MUST_USE;
enum base_status tensor_unpack(struct tensor_saved *saved, struct tensor *result) BASE_MUST_USE;
void tensor_saved_free(struct tensor_saved **saved);

// Modes of this thread. Set them back to what they were.
bool tensor_grad_mode(void);
void tensor_set_grad_mode(bool enabled);
bool tensor_inference_mode(void);
void tensor_set_inference_mode(bool enabled); // switches grad mode off, too, while it lasts

#endif
