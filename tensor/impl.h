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

// Shared by a tensor, its views and its detached aliases; counts writes.
struct tensor_version {
    uint32_t reference_count, value; // both atomic
};

struct tensor_autograd; // autograd.h

struct tensor_impl {
    struct tensor_count count;
    struct tensor_storage *storage;   // NULL once released
    struct tensor_version *version;   // NULL: an inference tensor
    struct tensor_autograd *autograd; // NULL: no view, and nothing to do with gradients
    enum tensor_type type;
    unsigned flags; // tensor_geometry_flags
    struct tensor_geometry geometry;
};

// A fresh counter at 0; NULL with a sentence set if there is no host memory.
struct tensor_version *tensor__version_create(void);
struct tensor_version *tensor__version_retain(struct tensor_version *version);
void tensor__version_drop(struct tensor_version *version);
static inline uint32_t tensor__version_get(const struct tensor_version *version) {
    return __atomic_load_n(&version->value, __ATOMIC_RELAXED);
}

// An impl with one strong handle. Counts STORAGE, and VERSION (NULL: an inference tensor).
enum base_status tensor__impl_create(struct tensor_storage *storage, enum tensor_type type,
                                     const struct tensor_geometry *geometry,
                                     struct tensor_version *version,
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
