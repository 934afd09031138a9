// The part of the wrappers that is not on a hot path. A failing pthread call here means a broken
// caller (a mutex destroyed while held) or a host that cannot start a handful of threads: both
// abort.
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

const struct base_thread_hooks *base__thread_hooks;

void base_mutex_init(struct base_mutex *mutex) {
    BASE_CHECK_EQ(pthread_mutex_init(&mutex->mutex, NULL), 0);
}

void base_mutex_deinit(struct base_mutex *mutex) {
    BASE_CHECK_EQ(pthread_mutex_destroy(&mutex->mutex), 0);
}

// The hooks can be others by the end of a call: those of its begin are meant.
void base__mutex_lock(struct base_mutex *mutex, const struct base_thread_hooks *hooks) {
    hooks->lock(mutex);
    BASE_CHECK_EQ(pthread_mutex_lock(&mutex->mutex), 0);
    if (hooks->acquired != NULL)
        hooks->acquired(mutex);
}

void base__mutex_unlock(struct base_mutex *mutex, const struct base_thread_hooks *hooks) {
    if (hooks->released != NULL)
        hooks->released(mutex);
    BASE_CHECK_EQ(pthread_mutex_unlock(&mutex->mutex), 0);
    hooks->unlock(mutex);
}

bool base_mutex_try_lock(struct base_mutex *mutex) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL && !hooks->try_lock(mutex))
        return false;
    const int result = pthread_mutex_trylock(&mutex->mutex);
    BASE_CHECK(result == 0 || result == EBUSY);
    if (result == 0 && hooks != NULL && hooks->acquired != NULL)
        hooks->acquired(mutex);
    return result == 0;
}

void base_condition_init(struct base_condition *condition) {
    BASE_CHECK_EQ(pthread_cond_init(&condition->condition, NULL), 0);
}

void base_condition_deinit(struct base_condition *condition) {
    BASE_CHECK_EQ(pthread_cond_destroy(&condition->condition), 0);
}

void base_condition_wait(struct base_condition *condition, struct base_mutex *mutex) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL)
        hooks->wait(condition, mutex);
    else
        BASE_CHECK_EQ(pthread_cond_wait(&condition->condition, &mutex->mutex), 0);
}

static void signal_hook(struct base_condition *condition, bool all) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL)
        hooks->signal(condition, all);
}

void base_condition_signal(struct base_condition *condition) {
    signal_hook(condition, false);
    BASE_CHECK_EQ(pthread_cond_signal(&condition->condition), 0);
}

void base_condition_broadcast(struct base_condition *condition) {
    signal_hook(condition, true);
    BASE_CHECK_EQ(pthread_cond_broadcast(&condition->condition), 0);
}

// What a new thread runs; owned by the thread from its start on.
struct start {
    void (*body)(void *argument);
    void *argument;
    void *hooked;
};

static void *run(void *argument) {
    struct start *const start = argument;
    const struct start copy = *start;
    free(start);
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL && copy.hooked != NULL)
        hooks->begin(copy.hooked);
    copy.body(copy.argument);
    return NULL;
}

void base_thread_start(struct base_thread *thread, void (*body)(void *argument), void *argument) {
    struct start *const start = malloc(sizeof *start);
    BASE_CHECK(start != NULL);
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    thread->hooked = hooks != NULL ? hooks->start() : NULL;
    *start = (struct start){body, argument, thread->hooked};
    BASE_CHECK_EQ(pthread_create(&thread->thread, NULL, run, start), 0);
}

void base_thread_join(struct base_thread *thread) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL && thread->hooked != NULL)
        hooks->join(thread->hooked);
    BASE_CHECK_EQ(pthread_join(thread->thread, NULL), 0);
    if (hooks != NULL && thread->hooked != NULL && hooks->joined != NULL)
        hooks->joined(thread->hooked);
}

void base_thread_yield(void) {
    const struct base_thread_hooks *hooks = base__thread_hooks_get();
    if (hooks != NULL)
        hooks->yield();
    else
        sched_yield();
}
