// The lock excludes, in both of its forms, and no sleeper is forgotten.
#include "allocator/lock.h"

#include "base/thread.h"

#include <sched.h>

#define THREADS 4
#define STEPS   20000

struct shared {
    struct cca__lock lock;
    uint64_t first, second; // guarded by lock; always equal outside
};

static void work(void *argument) {
    struct shared *const shared = argument;
    for (int step = 0; step < STEPS; ++step) {
        if (step % 7 == 0)
            cca__lock_take_hurried(&shared->lock);
        else
            cca__lock_take(&shared->lock);
        BASE_CHECK_EQ(shared->first, shared->second);
        ++shared->first;
        // Now and then long enough that others fall asleep.
        if (step % 1000 == 0) sched_yield();
        ++shared->second;
        cca__lock_release(&shared->lock);
    }
}

static void threads_exclude_each_other(void) {
    struct shared shared = {.first = 0};
    struct base_thread threads[THREADS];
    cca__lock_init(&shared.lock);
    for (int index = 0; index < THREADS; ++index) base_thread_start(&threads[index], work, &shared);
    for (int index = 0; index < THREADS; ++index) base_thread_join(&threads[index]);
    BASE_CHECK_EQ(shared.first, THREADS * STEPS);
    BASE_CHECK_EQ(shared.second, THREADS * STEPS);
    BASE_CHECK_EQ(atomic_load(&shared.lock.waiters), cca__lock_is_asymmetric ? 0 : 1);
    cca__lock_deinit(&shared.lock);
}

int main(void) {
    threads_exclude_each_other();
    cca__lock_is_asymmetric = false; // as on a kernel without membarrier
    threads_exclude_each_other();
    return 0;
}
