// See impl.h, and tensor.h for what programs call.
#include "tensor/impl.h"

#include "tensor/autograd.h"
#include "tensor/error.h"

#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Version counters

static struct tensor_impl *version_owner(struct tensor_version *version) {
    return (void *)((uintptr_t)version - offsetof(struct tensor_impl, own_version));
}

static void impl_drop_weak(struct tensor_impl *impl) {
    if (tensor_count_drop_weak(&impl->count) == TENSOR_COUNT_DESTROY)
        free(impl);
}

void tensor__impl_bump(struct tensor_impl *impl) {
    if (impl->version != NULL)
        __atomic_fetch_add(&impl->version->value, 1, __ATOMIC_RELAXED);
}

enum base_status tensor__impl_check_writable(const struct tensor_impl *impl) {
    if (impl->version != NULL || tensor_inference_mode())
        return BASE_OK;
    return tensor__error(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
        "clone to get a normal tensor before doing inplace update.See "
        "https://github.com/pytorch/rfcs/pull/17 for more details.");
}

//------------------------------------------------------------------------------------------------
// Life

struct tensor_impl *tensor__impl_new(void) {
    struct tensor_impl *impl = malloc(sizeof *impl);
    if (impl == NULL)
        base_status_set(BASE_HOST_MEMORY, "no host memory for a tensor");
    return impl;
}

// All but the geometry; without a counter. Takes over a handle on STORAGE.
static inline void impl_init(struct tensor_impl *impl, struct tensor_storage *storage,
                             enum tensor_type type) {
    impl->count = tensor_count_one();
    impl->storage = storage;
    impl->version = NULL;
    impl->autograd = NULL;
    impl->type = type;
}

// Takes over a handle on STORAGE, if it succeeds.
static inline enum base_status impl_make(struct tensor_storage *storage, enum tensor_type type,
                                         const struct tensor_geometry *geometry,
                                         struct tensor_impl **result) {
    struct tensor_impl *impl = tensor__impl_new();
    if (impl == NULL)
        return BASE_HOST_MEMORY;
    impl_init(impl, storage, type);
    tensor__impl_set_geometry(impl, geometry);
    *result = impl;
    return BASE_OK;
}

static void version_share(struct tensor_impl *impl, const struct tensor_impl *source) {
    impl->version = source->version;
    if (source->version == NULL)
        return;
    tensor_count_up_weak(&version_owner(source->version)->count);
    __atomic_fetch_add(&source->version->alias_count, 1, __ATOMIC_RELAXED);
}

static void version_leave(struct tensor_version *version) {
    __atomic_fetch_sub(&version->alias_count, 1, __ATOMIC_RELAXED);
    impl_drop_weak(version_owner(version));
}

static void version_begin(struct tensor_impl *impl) {
    impl->own_version = (struct tensor_version){0};
    impl->version = &impl->own_version;
}

enum base_status tensor__impl_create(struct tensor_storage *storage, enum tensor_type type,
                                     const struct tensor_geometry *geometry, bool has_version,
                                     struct tensor_impl **result) {
    const enum base_status status = impl_make(storage, type, geometry, result);
    if (status != BASE_OK)
        return status;
    tensor__storage_retain(storage);
    if (has_version)
        version_begin(*result);
    return BASE_OK;
}

enum base_status tensor__impl_alias(struct tensor_impl *source, enum tensor_type type,
                                    const struct tensor_geometry *geometry,
                                    struct tensor_impl **result) {
    const enum base_status status = impl_make(source->storage, type, geometry, result);
    if (status != BASE_OK)
        return status;
    tensor__storage_retain(source->storage);
    version_share(*result, source);
    return BASE_OK;
}

void tensor__impl_become_view(struct tensor_impl *view, struct tensor_impl *source, bool multiple) {
    impl_init(view, tensor__storage_retain(source->storage), source->type);
    view->flags = tensor_geometry_flags(&view->geometry);
    if (source->version == NULL)
        return; // views of inference tensors name no base
    const struct tensor_autograd *from = source->autograd;
    const bool is_chained = from != NULL && from->base != NULL;
    enum tensor_creation creation = tensor_grad_mode()        ? TENSOR_CREATION_DEFAULT
                                    : tensor_inference_mode() ? TENSOR_CREATION_INFERENCE_MODE
                                                              : TENSOR_CREATION_NO_GRAD_MODE;
    if (multiple && creation == TENSOR_CREATION_DEFAULT)
        creation = TENSOR_CREATION_MULTI_OUTPUT_NODE;
    // What stands in the way of a view stands in the way of views of it: the graver of the two.
    if (is_chained && from->creation > creation)
        creation = from->creation;
    tensor__autograd_make(view);
    view->version = source->version;
    view->autograd->base = tensor__impl_retain(is_chained ? from->base : source);
    view->autograd->creation = creation;
    view->autograd->node_version = tensor__version_get(view->version);
}

static TENSOR_RARE enum base_status refuse_geometry(const struct tensor_geometry *geometry) {
    char sizes[TENSOR_SIZES_TEXT_SIZE], strides[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error("Storage size calculation overflowed with sizes=%s and strides=%s",
                         tensor_sizes_text(geometry->sizes, geometry->rank, sizes),
                         tensor_sizes_text(geometry->strides, geometry->rank, strides));
}

enum base_status tensor__impl_alloc(const struct tensor_place *place, enum tensor_type type,
                                    const struct tensor_geometry *geometry,
                                    struct tensor_impl **impl) {
    int64_t bytes;
    if (!tensor_geometry_bytes(geometry, tensor_type_size(type), &bytes))
        return refuse_geometry(geometry);
    struct tensor_storage *storage;
    enum base_status status = tensor__storage_create(place, (size_t)bytes, &storage);
    if (status != BASE_OK)
        return status;
    status = impl_make(storage, type, geometry, impl);
    if (status != BASE_OK)
        tensor__storage_drop(storage);
    else if (!tensor_inference_mode())
        version_begin(*impl);
    return status;
}

struct tensor_impl *tensor__impl_retain(struct tensor_impl *impl) {
    if (impl != NULL)
        tensor_count_up(&impl->count);
    return impl;
}

static void autograd_end(struct tensor_impl *impl) {
    struct tensor_autograd *autograd = impl->autograd;
    impl->autograd = NULL;
    if (autograd->accumulator != NULL)
        tape_node_drop_weak(autograd->accumulator);
    if (autograd->gradient != NULL)
        tensor__impl_drop(autograd->gradient);
    if (autograd->node != NULL)
        tape_node_drop(autograd->node);
    if (autograd->base != NULL)
        tensor__impl_drop(autograd->base);
}

// With weak handles left it runs early, and the memory goes later.
static inline void impl_release(struct tensor_impl *impl) {
    struct tensor_version *version = impl->version;
    // A view's counter is its base's.
    const bool holds_version = version != NULL && version != &impl->own_version &&
                               (impl->autograd == NULL || impl->autograd->base == NULL);
    struct tensor_storage *storage = impl->storage;
    impl->storage = NULL;
    impl->version = NULL;
    if (impl->autograd != NULL)
        autograd_end(impl);
    if (holds_version)
        version_leave(version);
    tensor__storage_drop(storage);
}

void tensor__impl_drop(struct tensor_impl *impl) {
    if (impl == NULL)
        return;
    const enum tensor_count_drop drop = tensor_count_drop(&impl->count);
    if (drop == TENSOR_COUNT_KEEP)
        return;
    impl_release(impl);
    if (drop == TENSOR_COUNT_RELEASE)
        impl_drop_weak(impl);
    else
        free(impl);
}

void tensor__impl_set_geometry(struct tensor_impl *impl, const struct tensor_geometry *geometry) {
    tensor_geometry_copy(&impl->geometry, geometry);
    impl->flags = tensor_geometry_flags(geometry);
}

void tensor__impl_set_storage(struct tensor_impl *impl, struct tensor_storage *storage) {
    struct tensor_storage *old = impl->storage;
    impl->storage = tensor__storage_retain(storage);
    tensor__storage_drop(old);
}

//------------------------------------------------------------------------------------------------
// Handles

struct tensor tensor_retain(struct tensor self) {
    return (struct tensor){tensor__impl_retain(self.impl)};
}

void tensor_release(struct tensor *self) {
    tensor__impl_drop(self->impl);
    self->impl = NULL;
}

uint32_t tensor_count_strong_handles(struct tensor self) {
    return tensor_count_strong(&self.impl->count);
}

uint32_t tensor_count_weak_handles(struct tensor self) {
    const struct tensor_impl *impl = self.impl;
    const bool is_owner = impl->version == &impl->own_version;
    return tensor_count_weak(&impl->count) -
           (is_owner ? __atomic_load_n(&impl->own_version.alias_count, __ATOMIC_RELAXED) : 0);
}

struct tensor_weak tensor_weak(struct tensor self) {
    tensor_count_up_weak(&self.impl->count);
    return (struct tensor_weak){self.impl};
}

bool tensor_weak_expired(struct tensor_weak weak) {
    return tensor_count_strong(&weak.impl->count) == 0;
}

bool tensor_weak_lock(struct tensor_weak weak, struct tensor *self) {
    if (!tensor_count_lock(&weak.impl->count))
        return false;
    self->impl = weak.impl;
    return true;
}

void tensor_weak_release(struct tensor_weak *weak) {
    if (weak->impl != NULL && tensor_count_drop_weak(&weak->impl->count) == TENSOR_COUNT_DESTROY)
        free(weak->impl);
    weak->impl = NULL;
}

//------------------------------------------------------------------------------------------------
// Questions

int tensor_rank(struct tensor self) { return self.impl->geometry.rank; }
int64_t tensor_numel(struct tensor self) { return self.impl->geometry.numel; }
int64_t tensor_size(struct tensor self, int dim) { return self.impl->geometry.sizes[dim]; }
int64_t tensor_stride(struct tensor self, int dim) { return self.impl->geometry.strides[dim]; }
int64_t tensor_offset(struct tensor self) { return self.impl->geometry.offset; }
const struct tensor_geometry *tensor_geometry(struct tensor self) { return &self.impl->geometry; }
enum tensor_type tensor_type(struct tensor self) { return self.impl->type; }
struct tensor_place tensor_place(struct tensor self) {
    return self.impl->storage->place;
}
unsigned tensor_flags(struct tensor self) { return self.impl->flags; }

bool tensor_is_contiguous(struct tensor self, enum tensor_format format) {
    const unsigned flag = format == TENSOR_CHANNELS_LAST      ? TENSOR_IS_CHANNELS_LAST
                          : format == TENSOR_CHANNELS_LAST_3D ? TENSOR_IS_CHANNELS_LAST_3D
                                                              : TENSOR_IS_CONTIGUOUS;
    return (self.impl->flags & flag) != 0;
}

void *tensor_data(struct tensor self) {
    if (self.impl->geometry.numel == 0)
        return NULL;
    return tensor__element(self.impl, self.impl->geometry.offset);
}

bool tensor_is_inference(struct tensor self) { return self.impl->version == NULL; }

enum base_status tensor_version(struct tensor self, uint32_t *version) {
    if (self.impl->version == NULL)
        return tensor__error("Inference tensors do not track version counter.");
    *version = tensor__version_get(self.impl->version);
    return BASE_OK;
}

void tensor_bump_version(struct tensor self) { tensor__impl_bump(self.impl); }

bool tensor_shares_version(struct tensor a, struct tensor b) {
    return a.impl->version != NULL && a.impl->version == b.impl->version;
}

bool tensor_is_set_to(struct tensor self, struct tensor other) {
    const struct tensor_geometry *a = &self.impl->geometry, *b = &other.impl->geometry;
    return self.impl->storage == other.impl->storage && a->offset == b->offset &&
           tensor_geometry_same_shape(a, b) &&
           memcmp(a->strides, b->strides, (size_t)a->rank * sizeof a->strides[0]) == 0;
}

bool tensor_is_in_bounds(struct tensor self) {
    int64_t bytes;
    return tensor_geometry_bytes(&self.impl->geometry, tensor__item_size(self.impl), &bytes) &&
           (uint64_t)bytes <= self.impl->storage->bytes;
}

struct tensor_storage *tensor_storage(struct tensor self) {
    return tensor__storage_retain(self.impl->storage);
}

enum base_status tensor_record_stream(struct tensor self, cudaStream_t stream) {
    const struct tensor_storage *storage = self.impl->storage;
    if (storage->place.kind != TENSOR_CUDA || storage->place.allocator == NULL ||
        storage->data == NULL)
        return BASE_OK;
    return allocator_record_stream(storage->place.allocator, storage->data, stream);
}
