// Locks, conditions and threads, as all of our code takes them: thin names over pthreads that
// check every return, so that one place can make interleavings reproducible: whoever sets
// base__thread_hooks decides which thread passes these calls next (simulator/serialize.c). A mutex
// is not recursive; relocking by its owner is a bug that the checker build finds.
#ifndef TIDEMARK_BASE_THREAD_H
#define TIDEMARK_BASE_THREAD_H

#include "base/check.h"

#include <pthread.h>
#include <stdbool.h>

struct base_mutex {
    pthread_mutex_t mutex;
};
#define BASE_MUTEX_INITIALIZER {PTHREAD_MUTEX_INITIALIZER}

struct base_condition {
    pthread_cond_t condition;
};
#define BASE_CONDITION_INITIALIZER {PTHREAD_COND_INITIALIZER}

// What the calls below tell of themselves. The pthread objects are used as well, except that `wait`
// is the whole of base_condition_wait.
struct base_thread_hooks {
    void (*lock)(struct base_mutex *mutex); // returns when the caller may take it
    bool (*try_lock)(struct base_mutex *mutex);
    void (*unlock)(struct base_mutex *mutex); // it was given back
    void (*wait)(struct base_condition *condition, struct base_mutex *mutex);
    void (*signal)(struct base_condition *condition, bool all);
    void *(*start)(void);        // in the creator; what it returns is the new thread's
    void (*begin)(void *thread); // in the new thread
    void (*join)(void *thread);  // returns when the thread is about to end
    void (*yield)(void);
    // What follows can be NULL. The caller has the mutex, it is about to give it back; the thread
    // has ended.
    void (*acquired)(struct base_mutex *mutex);
    void (*released)(struct base_mutex *mutex);
    void (*joined)(void *thread);
};
// NULL: nobody listens, which costs a load and a branch. Set while there is one thread.
extern const struct base_thread_hooks *base__thread_hooks;
static inline const struct base_thread_hooks *base__thread_hooks_get(void) {
    return __atomic_load_n(&base__thread_hooks, __ATOMIC_RELAXED);
}
// For the thread that has the turn: its calls are no points until the hooks are back.
static inline const struct base_thread_hooks *base__thread_hooks_suspend(void) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL) __atomic_store_n(&base__thread_hooks, NULL, __ATOMIC_RELAXED);
    return hooks;
}
static inline void base__thread_hooks_resume(const struct base_thread_hooks *hooks) {
    if (hooks != NULL) __atomic_store_n(&base__thread_hooks, hooks, __ATOMIC_RELAXED);
}

void base_mutex_init(struct base_mutex *mutex);
void base_mutex_deinit(struct base_mutex *mutex);
void base__mutex_lock(struct base_mutex *mutex, const struct base_thread_hooks *hooks);
void base__mutex_unlock(struct base_mutex *mutex, const struct base_thread_hooks *hooks);
static inline void base_mutex_lock(struct base_mutex *mutex) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (__builtin_expect(hooks != NULL, 0))
        base__mutex_lock(mutex, hooks);
    else
        BASE_CHECK_EQ(pthread_mutex_lock(&mutex->mutex), 0);
}
static inline void base_mutex_unlock(struct base_mutex *mutex) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (__builtin_expect(hooks != NULL, 0))
        base__mutex_unlock(mutex, hooks);
    else
        BASE_CHECK_EQ(pthread_mutex_unlock(&mutex->mutex), 0);
}
// True if the lock was taken.
bool base_mutex_try_lock(struct base_mutex *mutex);

void base_condition_init(struct base_condition *condition);
void base_condition_deinit(struct base_condition *condition);
// Spurious wake-ups happen: wait in a loop over the awaited state.
void base_condition_wait(struct base_condition *condition, struct base_mutex *mutex);
void base_condition_signal(struct base_condition *condition);
void base_condition_broadcast(struct base_condition *condition);

struct base_thread {
    pthread_t thread;
    void *hooked; // what the hooks keep of it
};
// Starts BODY(ARGUMENT); the creator joins. A thread that cannot be started aborts: callers start a
// handful.
void base_thread_start(struct base_thread *thread, void (*body)(void *argument), void *argument);
void base_thread_join(struct base_thread *thread);
// For loops that wait for another thread by other means than these: lets it run.
void base_thread_yield(void);

#endif
