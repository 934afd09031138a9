// What a child process has of its parent's allocators: nothing. CUDA does not pass through fork,
// and a lock that another thread held then stays taken for ever; so in a child every call is
// refused at once, without a lock, and no memory of the device is touched. Costs a hit nothing: the
// table of operations is replaced in the child.
#ifndef TIDEMARK_ALLOCATOR_FORK_H
#define TIDEMARK_ALLOCATOR_FORK_H

#include "allocator/core.h"

// From here on until cca__fork_forget a child is refused. BASE_HOST_MEMORY.
enum base_status cca__fork_watch(struct cca *cca) BASE_MUST_USE;
void cca__fork_forget(struct cca *cca);

// BASE_UNSUPPORTED in a child of the process that made the allocator. First thing in whatever is
// not called through the table of operations and takes a lock.
enum base_status cca__fork_check(const struct cca *cca) BASE_MUST_USE;

#endif
