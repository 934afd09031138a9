// What an uncontended lock does not need: see lock.h.
#include "allocator/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

// A holder is about its business for tens of nanoseconds; a sleep costs microseconds.
#define SPIN_COUNT 200
// Until one that is in a hurry has seen the lock free: a cache line's way to its core.
#define GIVE_WAY_SPIN_COUNT 20

bool cca__lock_is_asymmetric;

static void register_process(void) {
    cca__lock_is_asymmetric =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void cca__lock_init(struct cca__lock *lock) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    BASE_CHECK_EQ(pthread_once(&once, register_process), 0);
    atomic_init(&lock->taken, 0);
    atomic_init(&lock->waiters, cca__lock_is_asymmetric ? 0 : 1);
    base_mutex_init(&lock->mutex);
}

void cca__lock_deinit(struct cca__lock *lock) { base_mutex_deinit(&lock->mutex); }

static bool try_take(struct cca__lock *lock) {
    return atomic_load_explicit(&lock->taken, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0;
}

void cca__lock_wait(struct cca__lock *lock) {
    for (int spin = 0; spin < SPIN_COUNT; ++spin) {
        if (try_take(lock)) return;
        __builtin_ia32_pause();
    }
    // Sequentially consistent, as in cca__lock_wake: this and the exchange, there the store and the
    // question.
    atomic_fetch_add_explicit(&lock->waiters, 2, memory_order_seq_cst);
    // From here on a release sees the waiter, or was seen by the exchange.
    if (cca__lock_is_asymmetric)
        BASE_CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
    while (atomic_exchange_explicit(&lock->taken, 1, memory_order_seq_cst) != 0)
        // Returns at once if the lock was released meanwhile; wakes without cause are harmless.
        (void)syscall(SYS_futex, &lock->taken, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    atomic_fetch_sub_explicit(&lock->waiters, 2, memory_order_relaxed);
}

void cca__lock_wait_hurried(struct cca__lock *lock) {
    atomic_fetch_add_explicit(&lock->waiters, CCA__LOCK_HURRIED, memory_order_relaxed);
    cca__lock_wait(lock);
    atomic_fetch_sub_explicit(&lock->waiters, CCA__LOCK_HURRIED, memory_order_relaxed);
}

static void give_way(const struct cca__lock *lock) {
    for (int spin = 0; spin < GIVE_WAY_SPIN_COUNT; ++spin) {
        if (atomic_load_explicit(&lock->taken, memory_order_relaxed) != 0) return;
        __builtin_ia32_pause();
    }
}

void cca__lock_wake(struct cca__lock *lock) {
    // Adds nothing, but is a barrier behind the store of the release.
    const uint32_t waiters = atomic_fetch_add_explicit(&lock->waiters, 0, memory_order_seq_cst);
    if (waiters >= CCA__LOCK_HURRIED) give_way(lock);
    if (waiters % CCA__LOCK_HURRIED / 2 == 0) return;
    (void)syscall(SYS_futex, &lock->taken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
