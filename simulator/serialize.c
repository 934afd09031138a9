// One host thread at a time, the next one drawn from a seed: so that what threads do to each other
// can be repeated. It stands behind the hooks of base/thread.h, which all of our code calls, and
// the simulator's own lock among them, so that each CUDA call is a point where the turn can pass.
//
// Locks are modelled here before they are taken: a thread that wants one that another thread holds
// gives its turn away until the holder gave it back. So whoever has the turn never waits for a lock
// whose owner waits for the turn, and the pthread locks below are never contended. Conditions are
// modelled outright: a waiting thread has no turn until it is signalled; which of several, the seed
// decides. When nobody can have the turn, the program hangs, and that is said.
//
// Lock order: control is taken last, and held by whoever changes the state below; a thread without
// the turn waits in it.
#include "base/random.h"
#include "simulator/race_thread.h"
#include "simulator/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PARTICIPANTS_MAX 1024
#define HELD_MAX 4096

enum participant_state { RUNNABLE, WAITS_FOR_LOCK, WAITS_FOR_SIGNAL, WAITS_FOR_END, ENDED };

struct participant {
    enum participant_state state;
    const void *object; // what it waits for
    bool joined;        // nobody will ask for it again
    bool leaving;       // other destructors of the thread ran
    pthread_cond_t turn;
};

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static struct participant *participants[PARTICIPANTS_MAX]; // in order of their start
static int participant_count;
static struct participant *current; // who has the turn
static struct {
    const struct base_mutex *mutex;
    struct participant *owner;
} held[HELD_MAX];
static int held_count;
static struct base_random choice;
static uint64_t choice_seed;

static _Thread_local struct participant *self;
static pthread_key_t end_key;
static pthread_once_t end_key_once = PTHREAD_ONCE_INIT;

// --- The turn ---

static _Noreturn void report_deadlock(void) {
    fprintf(stderr, "sim_serialize(%llu): every thread waits for another one\n",
            (unsigned long long)choice_seed);
    for (int i = 0; i < participant_count; ++i) {
        static const char *const states[] = {"could run", "waits for a lock", "waits for a signal",
                                             "waits for a thread to end", "has ended"};
        fprintf(stderr, "  thread %d %s\n", i, states[participants[i]->state]);
    }
    fflush(NULL);
    _exit(1);
}

// Who goes on; the caller may be among them. NULL if all have ended.
static struct participant *draw(void) {
    int runnable = 0, ended = 0;
    for (int i = 0; i < participant_count; ++i) {
        runnable += participants[i]->state == RUNNABLE;
        ended += participants[i]->state == ENDED;
    }
    if (runnable == 0) {
        if (ended < participant_count)
            report_deadlock();
        return NULL;
    }
    uint64_t left = base_random_below(&choice, (uint64_t)runnable);
    for (int i = 0;; ++i)
        if (participants[i]->state == RUNNABLE && left-- == 0)
            return participants[i];
}

static void turn_await(struct participant *participant) {
    while (current != participant)
        BASE_CHECK_EQ(pthread_cond_wait(&participant->turn, &control), 0);
}

static void turn_pass(void) {
    current = draw();
    if (current != NULL)
        BASE_CHECK_EQ(pthread_cond_signal(&current->turn), 0);
}

static void turn_offer(void) {
    current = draw();
    if (current == self)
        return;
    BASE_CHECK_EQ(pthread_cond_signal(&current->turn), 0);
    turn_await(self);
}

static void wait_for(enum participant_state state, const void *object) {
    self->state = state;
    self->object = object;
    turn_offer();
}

static void wake(enum participant_state state, const void *object) {
    for (int i = 0; i < participant_count; ++i)
        if (participants[i]->state == state && participants[i]->object == object)
            participants[i]->state = RUNNABLE;
}

// --- Threads ---

static void participant_remove(struct participant *participant) {
    int at = 0;
    while (participants[at] != participant)
        ++at;
    for (--participant_count; at < participant_count; ++at)
        participants[at] = participants[at + 1];
    BASE_CHECK_EQ(pthread_cond_destroy(&participant->turn), 0);
    free(participant);
}

static struct participant *participant_add(void) {
    struct participant *participant = calloc(1, sizeof *participant);
    if (participant == NULL || participant_count == PARTICIPANTS_MAX)
        sim__host_limit("sim_serialize: more than %d threads", PARTICIPANTS_MAX);
    BASE_CHECK_EQ(pthread_cond_init(&participant->turn, NULL), 0);
    participants[participant_count++] = participant;
    return participant;
}

// The thread's other destructors may take locks: this one comes after them, in the second round.
static void thread_end(void *argument) {
    struct participant *participant = argument;
    if (!participant->leaving) {
        participant->leaving = true;
        BASE_CHECK_EQ(pthread_setspecific(end_key, participant), 0);
        return;
    }
    pthread_mutex_lock(&control);
    participant->state = ENDED;
    wake(WAITS_FOR_END, participant);
    turn_pass();
    if (participant->joined)
        participant_remove(participant);
    self = NULL;
    pthread_mutex_unlock(&control);
}

static void end_key_make(void) { BASE_CHECK_EQ(pthread_key_create(&end_key, thread_end), 0); }

static void self_set(struct participant *participant) {
    self = participant;
    pthread_once(&end_key_once, end_key_make);
    BASE_CHECK_EQ(pthread_setspecific(end_key, participant), 0);
}

// A thread that nobody announced takes part from its first call on; nobody will join it.
static void enter(void) {
    pthread_mutex_lock(&control);
    if (self == NULL) {
        self_set(participant_add());
        self->joined = true;
        if (current == NULL)
            current = self;
        turn_await(self);
    }
    BASE_CHECK(current == self);
}

static void leave(void) { pthread_mutex_unlock(&control); }

// --- The hooks ---

static int held_find(const struct base_mutex *mutex) {
    int at = held_count - 1;
    while (at >= 0 && held[at].mutex != mutex)
        --at;
    return at;
}

static void held_add(const struct base_mutex *mutex) {
    if (held_count == HELD_MAX)
        sim__host_limit("sim_serialize: more than %d locks are held", HELD_MAX);
    held[held_count].mutex = mutex;
    held[held_count++].owner = self;
}

static void held_remove(const struct base_mutex *mutex) {
    const int at = held_find(mutex);
    if (at < 0)
        return; // taken before this began
    held[at] = held[--held_count];
    wake(WAITS_FOR_LOCK, mutex);
}

static void lock_modelled(const struct base_mutex *mutex) {
    while (held_find(mutex) >= 0)
        wait_for(WAITS_FOR_LOCK, mutex);
    held_add(mutex);
}

static void hook_lock(struct base_mutex *mutex) {
    enter();
    turn_offer();
    lock_modelled(mutex);
    leave();
}

static bool hook_try_lock(struct base_mutex *mutex) {
    enter();
    turn_offer();
    const bool taken = held_find(mutex) < 0;
    if (taken)
        held_add(mutex);
    leave();
    return taken;
}

static void hook_unlock(struct base_mutex *mutex) {
    enter();
    held_remove(mutex);
    turn_offer();
    leave();
}

static void hook_wait(struct base_condition *condition, struct base_mutex *mutex) {
    enter();
    BASE_CHECK_EQ(pthread_mutex_unlock(&mutex->mutex), 0);
    held_remove(mutex);
    wait_for(WAITS_FOR_SIGNAL, condition);
    lock_modelled(mutex);
    leave();
    BASE_CHECK_EQ(pthread_mutex_lock(&mutex->mutex), 0);
}

static void hook_signal(struct base_condition *condition, bool all) {
    uint64_t waiting = 0;
    enter();
    for (int i = 0; i < participant_count; ++i)
        waiting += participants[i]->state == WAITS_FOR_SIGNAL &&
                   participants[i]->object == condition;
    uint64_t chosen = waiting > 0 ? base_random_below(&choice, waiting) : 0;
    for (int i = 0; i < participant_count; ++i)
        if (participants[i]->state == WAITS_FOR_SIGNAL && participants[i]->object == condition &&
            (all || chosen-- == 0))
            participants[i]->state = RUNNABLE;
    leave();
}

static void *hook_start(void) {
    enter();
    struct participant *participant = participant_add();
    leave();
    return participant;
}

static void hook_begin(void *thread) {
    pthread_mutex_lock(&control);
    self_set(thread);
    turn_await(self);
    pthread_mutex_unlock(&control);
}

static void hook_join(void *thread) {
    struct participant *participant = thread;
    enter();
    while (participant->state != ENDED)
        wait_for(WAITS_FOR_END, participant);
    participant_remove(participant);
    leave();
}

static void hook_yield(void) {
    enter();
    turn_offer();
    leave();
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
};

void sim_serialize(uint64_t seed) {
    pthread_mutex_lock(&control);
    choice_seed = seed;
    choice = base_random_init(seed, "serialize");
    held_count = 0;
    if (self == NULL)
        self_set(participant_add());
    self->joined = true;
    current = self;
    BASE_CHECK_EQ(participant_count, 1);
    pthread_mutex_unlock(&control);
    sim__race_threads_inner(&hooks);
}

void sim_serialize_end(void) { sim__race_threads_inner(NULL); }

// The caller holds the simulator's lock, taken before this began.
enum base_status sim__serialize_from_environment(void) {
    const char *text = getenv("TIDEMARK_SIM_SERIALIZE");
    if (text == NULL)
        return BASE_OK;
    char *end;
    errno = 0;
    const uint64_t seed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        return base_status_set(BASE_INVALID_VALUE,
                               "TIDEMARK_SIM_SERIALIZE=%s: want a number, the seed", text);
    sim_serialize(seed);
    held_add(&sim__state.lock);
    return BASE_OK;
}
