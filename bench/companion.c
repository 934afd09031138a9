// See companion.h.
#include "bench/companion.h"

#include "base/thread.h"

#include <stdbool.h>
#include <stddef.h>

static struct {
    struct base_thread thread;
    struct base_mutex mutex;
    struct base_condition condition;
    bool leave; // guarded by mutex
} companion = {.mutex = BASE_MUTEX_INITIALIZER, .condition = BASE_CONDITION_INITIALIZER};

static void wait_for_end(void *argument) {
    (void)argument;
    base_mutex_lock(&companion.mutex);
    while (!companion.leave) base_condition_wait(&companion.condition, &companion.mutex);
    base_mutex_unlock(&companion.mutex);
}

void bench_companion_begin(void) {
    companion.leave = false; // nobody else is there yet
    base_thread_start(&companion.thread, wait_for_end, NULL);
}

void bench_companion_end(void) {
    base_mutex_lock(&companion.mutex);
    companion.leave = true;
    base_condition_signal(&companion.condition);
    base_mutex_unlock(&companion.mutex);
    base_thread_join(&companion.thread);
}
