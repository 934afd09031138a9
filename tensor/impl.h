// What a handle counts: the metadata of a tensor.
//
// With the last strong handle an impl lets go of its storage, its base and its graph
// (tensor__impl_release); its own memory goes with the last weak one. Without weak handles both are
// one step.
#ifndef TIDEMARK_TENSOR_IMPL_H
#define TIDEMARK_TENSOR_IMPL_H

#include "tensor/count.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"

// Counts writes; shared by a tensor, its views and its detached aliases. It lies in the impl of the
// tensor for which it was made, whose memory the others keep: a view by its base, an alias by a
// weak handle, which is not one of the program's.
struct tensor_version {
    uint32_t value, alias_count; // atomic
};

// How a view was made, in the order of what it forbids.
enum tensor_creation {
    TENSOR_CREATION_DEFAULT,
    TENSOR_CREATION_MULTI_OUTPUT_NODE,
    TENSOR_CREATION_NO_GRAD_MODE,
    TENSOR_CREATION_INFERENCE_MODE,
};

// See autograd.h.
struct tensor_autograd {
    bool requires_grad; // as set; tensor__requires_grad has the whole answer
    bool retains_grad;
    struct tensor_impl *gradient;  // counted
    struct tape_node *node;        // counted; NULL for a leaf
    int output;                    // which of the node's
    struct tape_node *accumulator; // weak: the graph owns it, it owns the leaf
    // Views.
    struct tensor_impl *base; // counted; never a view itself; NULL: no view
    enum tensor_creation creation;
    uint32_t node_version; // at which `node` was right
};

struct tensor_impl {
    struct tensor_count count;
    struct tensor_storage *storage;   // NULL once released
    struct tensor_version *version;   // NULL: an inference tensor
    struct tensor_autograd *autograd; // NULL: no view, and nothing to do with gradients
    enum tensor_type type;
    unsigned flags; // tensor_geometry_flags
    struct tensor_geometry geometry;
    // What `version` and `autograd` point to where they are the impl's own.
    struct tensor_version own_version;
    struct tensor_autograd own_autograd;
};

static inline uint32_t tensor__version_get(const struct tensor_version *version) {
    return __atomic_load_n(&version->value, __ATOMIC_RELAXED);
}

// Memory for an impl whose geometry is worked out in place: copies of numbers that have just been
// written are slow. It becomes a view (autograd.h), or is given back to free. NULL with a sentence
// set.
struct tensor_impl *tensor__impl_new(void);
// An impl with one strong handle and a counter of its own at 0, or without one: an inference
// tensor. Counts STORAGE.
enum base_status tensor__impl_create(struct tensor_storage *storage, enum tensor_type type,
                                     const struct tensor_geometry *geometry, bool has_version,
                                     struct tensor_impl **impl) BASE_MUST_USE;
// An alias of SOURCE, off the graph and without a base, that shares storage and counter.
enum base_status tensor__impl_alias(struct tensor_impl *source, enum tensor_type type,
                                    const struct tensor_geometry *geometry,
                                    struct tensor_impl **impl) BASE_MUST_USE;
// Memory for the geometry, then an impl: what every operator's result is. An inference tensor in
// inference mode.
enum base_status tensor__impl_alloc(const struct tensor_place *place, enum tensor_type type,
                                    const struct tensor_geometry *geometry,
                                    struct tensor_impl **impl) BASE_MUST_USE;
struct tensor_impl *tensor__impl_retain(struct tensor_impl *impl);
void tensor__impl_drop(struct tensor_impl *impl); // NULL is ignored

// Takes over sizes, strides and offset and refreshes the flags; numel as GEOMETRY has it.
void tensor__impl_set_geometry(struct tensor_impl *impl, const struct tensor_geometry *geometry);
void tensor__impl_set_storage(struct tensor_impl *impl, struct tensor_storage *storage);
void tensor__impl_bump(struct tensor_impl *impl);
// Refuses a write to an inference tensor outside the mode.
enum base_status tensor__impl_check_writable(const struct tensor_impl *impl) BASE_MUST_USE;
static inline size_t tensor__item_size(const struct tensor_impl *impl) {
    return tensor_type_size(impl->type);
}
// Address of an element that is at POSITION in the storage.
static inline void *tensor__element(const struct tensor_impl *impl, int64_t position) {
    return (void *)((uintptr_t)impl->storage->data + (uintptr_t)position * tensor__item_size(impl));
}

#endif
