// Locks exclude, conditions wake, threads run and end. Under --config=tsan the same tests show that
// the wrappers order memory.
#include "base/thread.h"

#define THREADS 4
#define INCREMENTS 20000

struct counter {
    struct base_mutex lock;
    uint64_t value; // guarded by lock
};

static void increment_many(void *argument) {
    struct counter *const counter = argument;
    for (int increment = 0; increment < INCREMENTS; increment++) {
        base_mutex_lock(&counter->lock);
        counter->value++;
        base_mutex_unlock(&counter->lock);
    }
}

static void mutex_excludes_threads(void) {
    struct counter counter = {.value = 0};
    base_mutex_init(&counter.lock);
    struct base_thread threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++)
        base_thread_start(&threads[thread], increment_many, &counter);
    for (int thread = 0; thread < THREADS; thread++)
        base_thread_join(&threads[thread]);
    BASE_CHECK_EQ(counter.value, THREADS * INCREMENTS);
    base_mutex_deinit(&counter.lock);
}

static void expect_locked(void *argument) { BASE_CHECK(!base_mutex_try_lock(argument)); }

static void try_lock_fails_while_another_thread_holds_it(void) {
    static struct base_mutex mutex = BASE_MUTEX_INITIALIZER;
    BASE_CHECK(base_mutex_try_lock(&mutex));
    struct base_thread thread;
    base_thread_start(&thread, expect_locked, &mutex);
    base_thread_join(&thread);
    base_mutex_unlock(&mutex);
    BASE_CHECK(base_mutex_try_lock(&mutex));
    base_mutex_unlock(&mutex);
}

// Two threads pass a ball; whose turn it is, and nothing else, lets them go on.
struct table {
    struct base_mutex lock;
    struct base_condition turned;
    int turn, turns; // guarded by lock
};
#define TURNS 2000

static void play(struct table *table, int player) {
    base_mutex_lock(&table->lock);
    while (table->turns < TURNS) {
        if (table->turn != player) {
            base_condition_wait(&table->turned, &table->lock);
            continue;
        }
        table->turns++;
        table->turn = 1 - player;
        base_condition_signal(&table->turned);
    }
    base_mutex_unlock(&table->lock);
}

static void play_second(void *argument) { play(argument, 1); }

static void signal_hands_over_between_two_threads(void) {
    struct table table = {.turn = 0};
    base_mutex_init(&table.lock);
    base_condition_init(&table.turned);
    struct base_thread thread;
    base_thread_start(&thread, play_second, &table);
    play(&table, 0);
    base_thread_join(&thread);
    BASE_CHECK_EQ(table.turns, TURNS);
    base_condition_deinit(&table.turned);
    base_mutex_deinit(&table.lock);
}

struct gate {
    struct base_mutex lock;
    struct base_condition opened;
    bool open;  // guarded by lock
    int passed; // guarded by lock
};

static void pass(void *argument) {
    struct gate *const gate = argument;
    base_mutex_lock(&gate->lock);
    while (!gate->open)
        base_condition_wait(&gate->opened, &gate->lock);
    gate->passed++;
    base_mutex_unlock(&gate->lock);
}

static void broadcast_wakes_every_waiter(void) {
    static struct gate gate = {.lock = BASE_MUTEX_INITIALIZER,
                               .opened = BASE_CONDITION_INITIALIZER};
    struct base_thread threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++)
        base_thread_start(&threads[thread], pass, &gate);
    base_mutex_lock(&gate.lock);
    gate.open = true;
    base_condition_broadcast(&gate.opened);
    base_mutex_unlock(&gate.lock);
    for (int thread = 0; thread < THREADS; thread++)
        base_thread_join(&threads[thread]);
    BASE_CHECK_EQ(gate.passed, THREADS);
}

int main(void) {
    mutex_excludes_threads();
    try_lock_fails_while_another_thread_holds_it();
    signal_hands_over_between_two_threads();
    broadcast_wakes_every_waiter();
    return 0;
}
