// Host threads in turns: the same seed gives the same interleaving, other seeds other ones; locks
// and conditions still do what they promise; and a circle of waits is reported.
#include "base/check.h"
#include "base/child.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define STEPS 20

static struct base_mutex lock = BASE_MUTEX_INITIALIZER;
static struct base_condition changed = BASE_CONDITION_INITIALIZER;
static char trail[THREADS * STEPS * 2 + 1]; // guarded by lock; or by the turn
static int trail_length;

static void note(char letter) {
    BASE_CHECK_LT(trail_length, (int)sizeof trail - 1);
    trail[trail_length++] = letter;
    trail[trail_length] = '\0';
}

static void trail_clear(void) {
    trail_length = 0;
    trail[0] = '\0';
}

static void run_threads(int count, void (*body)(void *index)) {
    struct base_thread threads[THREADS];
    for (intptr_t i = 0; i < count; ++i)
        base_thread_start(&threads[i], body, (void *)i);
    for (int i = 0; i < count; ++i)
        base_thread_join(&threads[i]);
}

// --- Locks ---

static void lock_often(void *index) {
    for (int step = 0; step < STEPS; ++step) {
        base_mutex_lock(&lock);
        note((char)('a' + (intptr_t)index));
        base_mutex_unlock(&lock);
    }
}

static void the_same_seed_gives_the_same_interleaving(void) {
    static char first[sizeof trail];
    int different = 0;
    char former[sizeof trail] = "";
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        for (int run = 0; run < 2; ++run) {
            trail_clear();
            sim_serialize(seed);
            run_threads(THREADS, lock_often);
            sim_serialize_end();
            if (run == 0)
                strcpy(first, trail);
        }
        base_check_context("seed %llu: \"%s\" and \"%s\"", (unsigned long long)seed, first, trail);
        BASE_CHECK_EQ(strlen(trail), THREADS * STEPS);
        BASE_CHECK(strcmp(trail, first) == 0);
        different += strcmp(trail, former) != 0;
        strcpy(former, trail);
    }
    base_check_context(NULL);
    BASE_CHECK_GE(different, 19);
}

// --- Conditions ---

static int ball; // whose turn it is; guarded by lock

static void play(void *index) {
    base_mutex_lock(&lock);
    for (int step = 0; step < STEPS; ++step) {
        while (ball != (int)(intptr_t)index)
            base_condition_wait(&changed, &lock);
        note((char)('a' + (intptr_t)index));
        ball = (ball + 1) % 3;
        base_condition_broadcast(&changed);
    }
    base_mutex_unlock(&lock);
}

static void conditions_wake_who_waits_for_them(void) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        trail_clear();
        ball = 0;
        sim_serialize(seed);
        run_threads(3, play);
        sim_serialize_end();
        for (int i = 0; i < 3 * STEPS; ++i)
            BASE_CHECK_EQ(trail[i], 'a' + i % 3);
    }
}

static bool is_open; // guarded by lock
static int passed;   // guarded by lock

static void pass_door(void *index) {
    (void)index;
    base_mutex_lock(&lock);
    while (!is_open)
        base_condition_wait(&changed, &lock);
    is_open = false; // one for each signal
    ++passed;
    base_mutex_unlock(&lock);
}

static void open_door(void *index) {
    if (index != NULL) {
        pass_door(index);
        return;
    }
    for (int i = 1; i < THREADS; ++i) {
        base_mutex_lock(&lock);
        while (is_open) {
            base_mutex_unlock(&lock);
            base_thread_yield();
            base_mutex_lock(&lock);
        }
        is_open = true;
        base_condition_signal(&changed);
        base_mutex_unlock(&lock);
    }
}

static void a_signal_wakes_one(void) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        passed = 0;
        is_open = false;
        sim_serialize(seed);
        run_threads(THREADS, open_door);
        sim_serialize_end();
        BASE_CHECK_EQ(passed, THREADS - 1);
    }
}

// --- CUDA calls ---

static cudaStream_t stream;

static void note_letter(void *letter) { note(*(const char *)letter); }

// Without locks of its own: the turn passes at CUDA calls.
static void launch_often(void *index) {
    static const char letters[] = "abcdefgh";
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    for (int step = 0; step < STEPS; ++step) {
        BASE_CHECK_EQ(cudaLaunchHostFunc(stream, note_letter,
                                         (void *)(uintptr_t)&letters[(intptr_t)index]),
                      cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(event, cudaStreamPerThread), cudaSuccess);
        while (cudaEventQuery(event) == cudaErrorNotReady) {
        }
    }
}

static void cuda_calls_of_threads_interleave_by_the_seed_under(const char *schedule) {
    static char first[sizeof trail];
    int switches = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
        for (int run = 0; run < 2; ++run) {
            trail_clear();
            BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
            BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}),
                          BASE_OK);
            BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
            sim_serialize(seed);
            run_threads(THREADS, launch_often);
            BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
            sim_serialize_end();
            if (run == 0)
                strcpy(first, trail);
        }
        base_check_context("%s, seed %llu: \"%s\" and \"%s\"", schedule, (unsigned long long)seed,
                           first, trail);
        BASE_CHECK_EQ(strlen(trail), THREADS * STEPS);
        BASE_CHECK(strcmp(trail, first) == 0);
        for (int i = 1; i < THREADS * STEPS; ++i)
            switches += trail[i] != trail[i - 1];
    }
    base_check_context(NULL);
    BASE_CHECK_GT(switches, 10 * THREADS * STEPS / 4);
}

// --- What is wrong ---

static struct base_mutex one = BASE_MUTEX_INITIALIZER, two = BASE_MUTEX_INITIALIZER;

static void take_both(void *index) {
    struct base_mutex *locks[2] = {&one, &two};
    const intptr_t i = (intptr_t)index;
    for (int step = 0; step < STEPS; ++step) {
        base_mutex_lock(locks[i]);
        base_mutex_lock(locks[1 - i]);
        base_mutex_unlock(locks[1 - i]);
        base_mutex_unlock(locks[i]);
    }
}

static void take_in_opposite_order(void *unused) {
    (void)unused;
    sim_serialize(7);
    run_threads(2, take_both);
}

static void a_circle_of_waits_ends_the_program(void) {
    struct base_child child = base_child_run(take_in_opposite_order, NULL);
    BASE_CHECK_EQ(child.exit_code, 1);
    BASE_CHECK(strstr(child.error_text, "sim_serialize(7): every thread waits for another one") !=
               NULL);
    base_child_deinit(&child);
}

static void one_call(void *unused) {
    int count;
    (void)unused;
    BASE_CHECK_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    run_threads(THREADS, lock_often);
    fputs(trail, stdout);
}

static void the_environment_can_ask_for_it(void) {
    setenv("TIDEMARK_SIM_SERIALIZE", "5", 1);
    struct base_child first = base_child_run(one_call, NULL);
    struct base_child second = base_child_run(one_call, NULL);
    BASE_CHECK_EQ(first.exit_code, 0);
    BASE_CHECK_EQ(strlen(first.output_text), THREADS * STEPS);
    BASE_CHECK(strcmp(first.output_text, second.output_text) == 0);
    base_child_deinit(&first);
    base_child_deinit(&second);
    setenv("TIDEMARK_SIM_SERIALIZE", "five", 1);
    first = base_child_run(one_call, NULL);
    BASE_CHECK_EQ(first.exit_code, 2);
    BASE_CHECK(strstr(first.error_text, "TIDEMARK_SIM_SERIALIZE=five: want a number") != NULL);
    base_child_deinit(&first);
    unsetenv("TIDEMARK_SIM_SERIALIZE");
}

int main(void) {
    the_environment_can_ask_for_it(); // children of a process that made no CUDA call yet
    a_circle_of_waits_ends_the_program();
    the_same_seed_gives_the_same_interleaving();
    conditions_wake_who_waits_for_them();
    a_signal_wakes_one();
    cuda_calls_of_threads_interleave_by_the_seed_under("eager");
    cuda_calls_of_threads_interleave_by_the_seed_under("lazy");
    cuda_calls_of_threads_interleave_by_the_seed_under("random:3");
    cuda_calls_of_threads_interleave_by_the_seed_under("timed");
    return 0;
}
