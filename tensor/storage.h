// Bytes that tensors share: a block of an allocator, its size, whether it may be resized.
//
//     tensor ---> impl ---+
//     view   ---> impl ---+--> storage ---> block of the allocator
//     handle -------------+
//
// Storages are counted; whether two tensors share memory is decided by the identity of the storage,
// not by addresses. Dropping the last handle gives the block back; while weak handles are left the
// object stays, its bytes do not.
#ifndef TIDEMARK_TENSOR_STORAGE_H
#define TIDEMARK_TENSOR_STORAGE_H

#include "tensor/count.h"
#include "tensor/tensor.h"

struct tensor_storage {
    struct tensor_count count;
    void *data; // NULL if there are no bytes
    size_t bytes;
    struct tensor_place place;
    bool is_resizable;                          // false for memory that somebody else owns
    void (*deleter)(void *context, void *data); // of such memory; NULL: the allocator's free
    void *context;
};

// A new storage of BYTES on the current stream of the place, with one strong handle.
enum base_status tensor__storage_create(const struct tensor_place *place, size_t bytes,
                                        struct tensor_storage **storage) BASE_MUST_USE;
// Takes memory that somebody else owns: not resizable; DELETER (may be NULL) is called once.
enum base_status tensor__storage_adopt(const struct tensor_place *place, void *data, size_t bytes,
                                       void (*deleter)(void *context, void *data), void *context,
                                       struct tensor_storage **storage) BASE_MUST_USE;
// Another block of BYTES; what both sizes hold is copied, on the current stream, and the old block
// is freed at once: the stream orders both. 0 bytes: a null address.
enum base_status tensor__storage_resize(struct tensor_storage *storage, size_t bytes) BASE_MUST_USE;

struct tensor_storage *tensor__storage_retain(struct tensor_storage *storage);
void tensor__storage_drop(struct tensor_storage *storage);

#endif
