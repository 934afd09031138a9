// See free_memory.h. The list is copied before the first one runs, since callbacks call the
// allocator and may take as long as they like.
#include "allocator/free_memory.h"

#include "allocator/fork.h"

#include <string.h>

// Whose callbacks this thread is in, innermost first: what they allocate there asks nobody again.
// Callbacks of one allocator may call another, whose callbacks call the first.
struct running {
    const struct cca *cca;
    const struct running *outer;
};
static _Thread_local const struct running *innermost;

static bool is_running(const struct cca *cca) {
    const struct running *running = innermost;
    while (running != NULL && running->cca != cca)
        running = running->outer;
    return running != NULL;
}

static bool is_same(const struct cca_free_memory_callback *a,
                    const struct cca_free_memory_callback *b) {
    return a->free_memory == b->free_memory && a->context == b->context;
}

enum base_status cca_add_free_memory_callback(struct allocator *allocator,
                                              const struct cca_free_memory_callback *callback) {
    struct cca *const cca = cca__of(allocator);
    enum base_status status = cca__require_caching(allocator, "free-memory callbacks");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->callbacks_lock);
    const size_t count = atomic_load_explicit(&cca->callback_count, memory_order_relaxed);
    const bool has_room = count < CCA_FREE_MEMORY_CALLBACKS_MAX;
    if (has_room) {
        cca->callbacks[count] = *callback;
        atomic_store_explicit(&cca->callback_count, count + 1, memory_order_relaxed);
    }
    cca__lock_release(&cca->callbacks_lock);
    if (has_room) return BASE_OK;
    return base_status_set(BASE_LIMIT, "an allocator has at most %d free-memory callbacks",
                           CCA_FREE_MEMORY_CALLBACKS_MAX);
}

enum base_status cca_remove_free_memory_callback(struct allocator *allocator,
                                                 const struct cca_free_memory_callback *callback) {
    struct cca *const cca = cca__of(allocator);
    enum base_status status = cca__require_caching(allocator, "free-memory callbacks");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->callbacks_lock);
    const size_t count = atomic_load_explicit(&cca->callback_count, memory_order_relaxed);
    size_t place = 0;
    while (place < count && !is_same(&cca->callbacks[place], callback))
        ++place;
    if (place < count) {
        memmove(&cca->callbacks[place], &cca->callbacks[place + 1],
                (count - place - 1) * sizeof cca->callbacks[0]);
        atomic_store_explicit(&cca->callback_count, count - 1, memory_order_relaxed);
    }
    cca__lock_release(&cca->callbacks_lock);
    if (place < count) return BASE_OK;
    return base_status_set(BASE_INVALID_VALUE,
                           "this free-memory callback was not added, or was removed already");
}

bool cca__free_memory(struct cca *cca, int device) {
    if (atomic_load_explicit(&cca->callback_count, memory_order_relaxed) == 0 || is_running(cca))
        return false;
    struct cca_free_memory_callback callbacks[CCA_FREE_MEMORY_CALLBACKS_MAX];
    cca__lock_take(&cca->callbacks_lock);
    const size_t count = atomic_load_explicit(&cca->callback_count, memory_order_relaxed);
    memcpy(callbacks, cca->callbacks, count * sizeof callbacks[0]);
    cca__lock_release(&cca->callbacks_lock);

    const struct running running = {.cca = cca, .outer = innermost};
    bool freed = false;
    innermost = &running;
    for (size_t index = 0; index < count; ++index)
        freed |= callbacks[index].free_memory(callbacks[index].context, device);
    innermost = running.outer;
    return freed;
}
