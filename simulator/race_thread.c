// What one host thread hands over to another one, under the reading threads=strict: the locks,
// conditions, starts and joins of base/thread.h, as tokens of order.h. It stands before the hooks
// that were there, those of sim_serialize, and passes everything on to them.
//
// The simulator's own lock hands over nothing: each CUDA call takes it. It is taken here by its
// pthread name, which no hook sees.
#include "simulator/race_thread.h"

#include "base/thread.h"
#include "simulator/order.h"

#include <sched.h>
#include <stdlib.h>

// What the hooks keep of a thread.
struct started {
    void *inner; // the former hooks', or NULL
    struct started *next;
    char ended; // its address is the token of the end, that of the whole the token of the start
};

static const struct base_thread_hooks *inner; // NULL: none
static bool listening;
static struct started *started; // that were not joined; guarded by the simulator's lock
static _Thread_local struct started *own;

static void lock(void) { BASE_CHECK_EQ(pthread_mutex_lock(&sim__state.lock.mutex), 0); }
static void unlock(void) { BASE_CHECK_EQ(pthread_mutex_unlock(&sim__state.lock.mutex), 0); }

static void signal_token(const void *token) {
    lock();
    sim__order_signal(token);
    unlock();
}

static void await_token(const void *token) {
    lock();
    sim__order_await(token);
    unlock();
}

static bool is_ours(const struct base_mutex *mutex) { return mutex == &sim__state.lock; }

// --- Hooks ---

static void hook_lock(struct base_mutex *mutex) {
    if (inner != NULL)
        inner->lock(mutex);
}

static bool hook_try_lock(struct base_mutex *mutex) {
    return inner == NULL || inner->try_lock(mutex);
}

static void hook_unlock(struct base_mutex *mutex) {
    if (inner != NULL)
        inner->unlock(mutex);
}

static void hook_acquired(struct base_mutex *mutex) {
    if (!is_ours(mutex))
        await_token(mutex);
}

static void hook_released(struct base_mutex *mutex) {
    if (!is_ours(mutex))
        signal_token(mutex);
}

static void hook_wait(struct base_condition *condition, struct base_mutex *mutex) {
    hook_released(mutex);
    if (inner != NULL)
        inner->wait(condition, mutex);
    else
        BASE_CHECK_EQ(pthread_cond_wait(&condition->condition, &mutex->mutex), 0);
    hook_acquired(mutex);
    if (!is_ours(mutex))
        await_token(condition);
}

static void hook_signal(struct base_condition *condition, bool all) {
    if (condition != &sim__state.operation_done)
        signal_token(condition);
    if (inner != NULL)
        inner->signal(condition, all);
}

static void *hook_start(void) {
    struct started *thread = malloc(sizeof *thread);
    BASE_CHECK(thread != NULL);
    thread->inner = inner != NULL ? inner->start() : NULL;
    lock();
    thread->next = started;
    started = thread;
    sim__order_signal(thread);
    unlock();
    return thread;
}

// The thread may have been started under the former hooks, which know it by another name.
static struct started *started_find(void *thread) {
    lock();
    struct started *found = started;
    while (found != NULL && found != thread)
        found = found->next;
    unlock();
    return found;
}

static void hook_begin(void *thread) {
    struct started *found = started_find(thread);
    if (inner != NULL && (found == NULL || found->inner != NULL))
        inner->begin(found == NULL ? thread : found->inner);
    if (found == NULL)
        return;
    own = found;
    (void)sim__thread(); // its end is noticed
    await_token(found);
}

static void hook_join(void *thread) {
    const struct started *found = started_find(thread);
    if (inner != NULL && (found == NULL || found->inner != NULL))
        inner->join(found == NULL ? thread : found->inner);
}

static void hook_joined(void *thread) {
    struct started *found = started_find(thread);
    if (found == NULL)
        return;
    lock();
    sim__order_await(&found->ended);
    struct started **place = &started;
    while (*place != found)
        place = &(*place)->next;
    *place = found->next;
    sim__order_forget_token(found);
    sim__order_forget_token(&found->ended);
    unlock();
    free(found);
}

static void hook_yield(void) {
    if (inner != NULL)
        inner->yield();
    else
        sched_yield();
}

static const struct base_thread_hooks hooks = {
    .lock = hook_lock,
    .try_lock = hook_try_lock,
    .unlock = hook_unlock,
    .wait = hook_wait,
    .signal = hook_signal,
    .start = hook_start,
    .begin = hook_begin,
    .join = hook_join,
    .yield = hook_yield,
    .acquired = hook_acquired,
    .released = hook_released,
    .joined = hook_joined,
};

// --- Begin and end ---

static void hooks_store(const struct base_thread_hooks *set) {
    __atomic_store_n(&base__thread_hooks, set, __ATOMIC_RELAXED);
}

void sim__race_threads_begin(void) {
    if (listening || !sim__order_is_strict())
        return;
    inner = base__thread_hooks_get();
    if (inner != &hooks)
        hooks_store(&hooks);
    else
        inner = NULL;
    listening = true;
}

// Threads that were started meanwhile are still known by our name: then the hooks stay, and pass
// on.
void sim__race_threads_end(void) {
    if (!listening || started != NULL)
        return;
    hooks_store(inner);
    inner = NULL;
    listening = false;
}

void sim__race_threads_inner(const struct base_thread_hooks *set) {
    if (listening)
        inner = set;
    else
        hooks_store(set);
}

void sim__race_thread_ends(void) {
    if (own != NULL)
        sim__order_signal(&own->ended);
    own = NULL;
}
