// See fork.h. The list of allocators is the one thing that they share: fork tells nobody in
// particular.
#include "allocator/fork.h"

#include <pthread.h>

static struct base_mutex list_mutex = BASE_MUTEX_INITIALIZER; // taken last, held through fork
static struct cca *first;                                     // guarded by list_mutex

enum base_status cca__fork_check(const struct cca *cca) {
    if (!cca->is_of_parent) return BASE_OK;
    return base_status_set(BASE_UNSUPPORTED,
                           "this allocator belongs to the process that forked this one: CUDA does "
                           "not pass to a child; start a program (exec) or fork before CUDA is "
                           "used, and make an allocator there");
}

//------------------------------------------------------------------------------------------------
// What the child calls.

static enum base_status refuse_malloc(struct allocator *allocator, int device, size_t size,
                                      cudaStream_t stream, void **pointer) {
    (void)device;
    (void)size;
    (void)stream;
    (void)pointer;
    return cca__fork_check(cca__of(allocator));
}
static enum base_status refuse_free(struct allocator *allocator, void *pointer) {
    return pointer == NULL ? BASE_OK : cca__fork_check(cca__of(allocator));
}
static enum base_status refuse_record_stream(struct allocator *allocator, void *pointer,
                                             cudaStream_t stream) {
    (void)stream;
    return refuse_free(allocator, pointer);
}
static enum base_status refuse(struct allocator *allocator) {
    return cca__fork_check(cca__of(allocator));
}
static enum base_status refuse_base_allocation(struct allocator *allocator, const void *pointer,
                                               void **base, size_t *size) {
    (void)pointer;
    (void)base;
    (void)size;
    return refuse(allocator);
}
static enum base_status refuse_largest_block(struct allocator *allocator, int device,
                                             size_t *size) {
    (void)device;
    (void)size;
    return refuse(allocator);
}
static enum base_status refuse_stats(struct allocator *allocator, int device,
                                     struct allocator_stats *stats) {
    (void)device;
    (void)stats;
    return refuse(allocator);
}
static enum base_status refuse_reset(struct allocator *allocator, int device) {
    (void)device;
    return refuse(allocator);
}
static enum base_status refuse_snapshot(struct allocator *allocator,
                                        struct allocator_snapshot *snapshot) {
    (void)snapshot;
    return refuse(allocator);
}
static enum base_status refuse_observer(struct allocator *allocator,
                                        const struct allocator_observer *observer) {
    (void)observer;
    return refuse(allocator);
}
// Whoever was in the allocator at the fork may have left it half changed: it stays as it is, and
// goes with the process.
static void leave(struct allocator *allocator) { (void)allocator; }

static const struct allocator_operations operations_of_child = {
    .name = "forked",
    .malloc = refuse_malloc,
    .free = refuse_free,
    .record_stream = refuse_record_stream,
    .empty_cache = refuse,
    .base_allocation = refuse_base_allocation,
    .largest_block = refuse_largest_block,
    .stats = refuse_stats,
    .reset_peak_stats = refuse_reset,
    .reset_accumulated_stats = refuse_reset,
    .snapshot = refuse_snapshot,
    .set_observer = refuse_observer,
    .destroy = leave,
};

//------------------------------------------------------------------------------------------------
// The fork.

static void before_fork(void) { base_mutex_lock(&list_mutex); }
static void after_in_parent(void) { base_mutex_unlock(&list_mutex); }
static void after_in_child(void) {
    for (struct cca *each = first; each != NULL; each = each->made_next) {
        each->is_of_parent = true;
        each->interface.operations = &operations_of_child;
    }
    base_mutex_unlock(&list_mutex);
}

static bool is_registered;
static void register_once(void) {
    is_registered = pthread_atfork(before_fork, after_in_parent, after_in_child) == 0;
}

enum base_status cca__fork_watch(struct cca *cca) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    BASE_CHECK_EQ(pthread_once(&once, register_once), 0);
    if (!is_registered)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a handler of forks");
    base_mutex_lock(&list_mutex);
    cca->made_next = first;
    if (first != NULL) first->made_previous = cca;
    first = cca;
    base_mutex_unlock(&list_mutex);
    return BASE_OK;
}

void cca__fork_forget(struct cca *cca) {
    base_mutex_lock(&list_mutex);
    if (cca->made_next != NULL) cca->made_next->made_previous = cca->made_previous;
    if (cca->made_previous != NULL)
        cca->made_previous->made_next = cca->made_next;
    else
        first = cca->made_next;
    base_mutex_unlock(&list_mutex);
}
