// Locks, conditions and threads, as all of our code takes them: thin names over pthreads that
// check every return, so that one place can later make interleavings reproducible (a token passed
// at these calls). A mutex is not recursive; relocking by its owner is a bug that the checker build
// finds.
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

void base_mutex_init(struct base_mutex *mutex);
void base_mutex_deinit(struct base_mutex *mutex);
static inline void base_mutex_lock(struct base_mutex *mutex) {
    BASE_CHECK_EQ(pthread_mutex_lock(&mutex->mutex), 0);
}
static inline void base_mutex_unlock(struct base_mutex *mutex) {
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
};
// Starts BODY(ARGUMENT); the creator joins. A thread that cannot be started aborts: callers start a
// handful.
void base_thread_start(struct base_thread *thread, void (*body)(void *argument), void *argument);
void base_thread_join(struct base_thread *thread);

#endif
