// The allocator's lock, and the one seam to it: whoever changes the kind of lock changes this file.
// Not recursive. The order in which locks are taken is in allocator/core.h.
//
// It is *asymmetric*: to take it is one atomic exchange, to release it a plain store, then a plain
// load that asks whether somebody waits. A processor may perform that load before the store; so a
// thread that is about to sleep first says that it waits and then has the kernel put a barrier into
// every running thread (membarrier). After it, either the releasing thread sees the waiter or the
// waiter sees the lock free. The rare sleeper pays for what each release saves: about 11 ns a pair.
//
// Who needs the locks of many at once is in a *hurry*: the holder would release such a lock for
// moments only, too short to be met from another core, so it is asked to give way at its next
// release.
//
// Where the kernel has no membarrier, `waiters` is never 0, so each release asks in full, after a
// barrier of its own. Where threads take turns (base/thread.h), the lock is a mutex.
#ifndef TIDEMARK_ALLOCATOR_LOCK_H
#define TIDEMARK_ALLOCATOR_LOCK_H

#include "base/thread.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// The two words that everybody touches come last: so a struct that has a lock can let a cache line
// begin with them.
struct cca__lock {
    struct base_mutex mutex;  // stands in for both of the following
    _Atomic uint32_t taken;   // 0 or 1
    // Twice the threads that sleep or are about to; CCA__LOCK_HURRIED for each that is in a hurry;
    // 1: always ask in full
    _Atomic uint32_t waiters;
};
#define CCA__LOCK_HURRIED ((uint32_t)1 << 16)

// Whether the kernel has what the asymmetric lock needs; set by the first cca__lock_init.
extern bool cca__lock_is_asymmetric;

void cca__lock_init(struct cca__lock *lock);
void cca__lock_deinit(struct cca__lock *lock);

void cca__lock_wait(struct cca__lock *lock);
void cca__lock_wait_hurried(struct cca__lock *lock);
void cca__lock_wake(struct cca__lock *lock);

static inline bool cca__lock_is_mutex(void) {
    return __builtin_expect(base__thread_hooks_get() != NULL, 0);
}

// Takes the lock if that needs no wait and no turn. To be released by cca__lock_release_taken,
// which asks for turns no second time.
static inline bool cca__lock_take_at_once(struct cca__lock *lock) {
    // Acquire pairs with the releases below.
    return !cca__lock_is_mutex() &&
           __builtin_expect(atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0,
                            1);
}

// True if somebody waits: the caller calls cca__lock_wake.
static inline bool cca__lock_release_taken(struct cca__lock *lock) {
    atomic_store_explicit(&lock->taken, 0, memory_order_release); // pairs with the exchanges
    // Keeps the compiler from moving the load up; the processor is the sleeper's business.
    atomic_signal_fence(memory_order_seq_cst);
    return __builtin_expect(atomic_load_explicit(&lock->waiters, memory_order_relaxed) != 0, 0);
}

// Takes the lock if nobody has it; released as any other.
static inline bool cca__lock_try(struct cca__lock *lock) {
    if (cca__lock_is_mutex()) return base_mutex_try_lock(&lock->mutex);
    return atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0;
}

static inline void cca__lock_take(struct cca__lock *lock) {
    if (cca__lock_is_mutex()) {
        base_mutex_lock(&lock->mutex);
        return;
    }
    // Acquire pairs with the releases.
    if (__builtin_expect(atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) != 0, 0))
        cca__lock_wait(lock);
}

static inline void cca__lock_take_hurried(struct cca__lock *lock) {
    if (cca__lock_is_mutex()) {
        base_mutex_lock(&lock->mutex);
        return;
    }
    // Acquire pairs with the releases.
    if (__builtin_expect(atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) != 0, 0))
        cca__lock_wait_hurried(lock);
}

static inline void cca__lock_release(struct cca__lock *lock) {
    if (cca__lock_is_mutex()) {
        base_mutex_unlock(&lock->mutex);
        return;
    }
    if (cca__lock_release_taken(lock)) cca__lock_wake(lock);
}

#endif
