// Host threads under the reading threads=strict: what locks, conditions, starts and joins hand
// over, and that nothing else does. Each program under sim_serialize too.
#include "base/check.h"
#include "base/thread.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <pthread.h>
#include <string.h>

static char bytes[64]; // the host's, that the threads touch
static struct base_mutex mutex = BASE_MUTEX_INITIALIZER, other_mutex = BASE_MUTEX_INITIALIZER;
static struct base_condition condition = BASE_CONDITION_INITIALIZER;
static bool done;
static bool serialized;
static _Atomic int turn; // hands over nothing

static void touch(const char *label, int at) {
    sim_race_label(label);
    sim_host_access(bytes + at, 1, true);
}

static void await_turn(int wanted) {
    while (turn != wanted)
        base_thread_yield();
}

// --- Bodies of the second thread ---

static void touch_first(void *argument) {
    (void)argument;
    touch("second", 0);
}

static void touch_under_lock(void *argument) {
    (void)argument;
    await_turn(1);
    base_mutex_lock(&mutex);
    touch("second", 0);
    base_mutex_unlock(&mutex);
    turn = 2;
}

static void touch_under_other_lock(void *argument) {
    (void)argument;
    await_turn(1);
    base_mutex_lock(&other_mutex);
    touch("second", 0);
    base_mutex_unlock(&other_mutex);
    turn = 2;
}

static void touch_when_tried(void *argument) {
    (void)argument;
    await_turn(1);
    while (!base_mutex_try_lock(&mutex))
        base_thread_yield();
    touch("second", 0);
    base_mutex_unlock(&mutex);
    turn = 2;
}

static void touch_and_tell(void *argument) {
    (void)argument;
    touch("second", 0);
    base_mutex_lock(&mutex);
    done = true;
    base_condition_signal(&condition);
    base_mutex_unlock(&mutex);
}

static void call_cuda(void *argument) {
    (void)argument;
    await_turn(1);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    touch("second", 0);
    turn = 2;
}

// --- Programs ---

static void begin(void) {
    BASE_CHECK_EQ(sim_reading("threads", "strict"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    done = false;
    turn = 0;
    if (serialized)
        sim_serialize(3);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
}

static void end(uint64_t races) {
    sim_race_label(NULL);
    sim_race_stop();
    if (serialized)
        sim_serialize_end();
    BASE_CHECK(base__thread_hooks_get() == NULL);
    base_check_context("%s", races == 0 && sim_race_count(SIM_RACE_RULE_COUNT) > 0
                                 ? sim_race_report_at(0)->text
                                 : "");
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_HOST_ACCESS), races);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), races);
    base_check_context(NULL);
    BASE_CHECK_EQ(sim_reading("threads", "shared"), BASE_OK);
}

static void a_start_hands_over_and_a_join_takes_over(void) {
    struct base_thread thread;
    begin();
    touch("before", 0);
    base_thread_start(&thread, touch_first, NULL);
    base_thread_join(&thread);
    touch("behind", 0);
    end(0);
}

static void what_comes_beside_a_thread_races_with_it(void) {
    struct base_thread thread;
    begin();
    base_thread_start(&thread, touch_first, NULL);
    touch("beside", 0);
    base_thread_join(&thread);
    end(1);
}

static void between(void (*body)(void *argument), uint64_t races) {
    struct base_thread thread;
    begin();
    base_thread_start(&thread, body, NULL);
    base_mutex_lock(&mutex);
    touch("first", 0);
    base_mutex_unlock(&mutex);
    turn = 1;
    await_turn(2);
    base_mutex_lock(&mutex);
    touch("last", 0);
    base_mutex_unlock(&mutex);
    base_thread_join(&thread);
    end(races);
}

static void locks_hand_over(void) { between(touch_under_lock, 0); }
static void tried_locks_hand_over(void) { between(touch_when_tried, 0); }
static void different_locks_do_not(void) { between(touch_under_other_lock, 2); }
static void calls_of_cuda_do_not(void) { between(call_cuda, 2); }

static void conditions_hand_over(void) {
    struct base_thread thread;
    begin();
    base_thread_start(&thread, touch_and_tell, NULL);
    base_mutex_lock(&mutex);
    while (!done)
        base_condition_wait(&condition, &mutex);
    base_mutex_unlock(&mutex);
    touch("told", 0);
    base_thread_join(&thread);
    end(0);
}

static void *touch_plainly(void *argument) {
    touch_first(argument);
    return NULL;
}

// Nobody can know of it.
static void a_plain_thread_starts_with_nothing(void) {
    pthread_t thread;
    begin();
    touch("before", 0);
    BASE_CHECK_EQ(pthread_create(&thread, NULL, touch_plainly, NULL), 0);
    BASE_CHECK_EQ(pthread_join(thread, NULL), 0);
    end(1);
}

static void a_thread_that_outlives_checking_can_be_joined(void) {
    struct base_thread thread;
    begin();
    base_thread_start(&thread, touch_under_lock, NULL);
    sim_race_label(NULL);
    sim_race_stop();
    turn = 1;
    await_turn(2);
    base_thread_join(&thread);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    end(0);
}

int main(void) {
    for (int i = 0; i < 2; ++i) {
        serialized = i == 1;
        a_start_hands_over_and_a_join_takes_over();
        what_comes_beside_a_thread_races_with_it();
        locks_hand_over();
        tried_locks_hand_over();
        different_locks_do_not();
        calls_of_cuda_do_not();
        conditions_hand_over();
        if (!serialized)
            a_plain_thread_starts_with_nothing();
        a_thread_that_outlives_checking_can_be_joined();
    }
    return 0;
}
