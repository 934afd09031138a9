// What the random schedule reaches: for random small programs, every order in which their operations
// may run, and no other. The orders are counted out here, by trying all permutations.
//
// A program is a list of operations in up to three streams, some of which wait for earlier ones, and
// of marks, where the host looks at what ran so far. An operation is submitted after the marks
// before it; between a mark and the next one, with no call between them, nothing can run.
#include "base/check.h"
#include "base/random.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEEDS 2000
#define STEPS_MAX 6
#define STREAMS_MAX 3
#define ORDERS_MAX 64
// The sanitizers' builds are ten times as slow.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PROGRAMS 2
#else
#define PROGRAMS 15
#endif

struct step {
    bool mark;
    int stream;
    int waits_for; // an earlier operation, or -1
};

static struct step steps[STEPS_MAX];
static int step_count;
static unsigned comes_after[STEPS_MAX]; // bit J: step J comes before
static char orders[ORDERS_MAX + 1][STEPS_MAX + 1];
static int order_count;

static void program_draw(struct base_random *random, int operation_count, int mark_count) {
    const uint64_t streams = base_random_between(random, 2, STREAMS_MAX);
    step_count = operation_count + mark_count;
    for (int i = 0, marks = mark_count; i < step_count; ++i) {
        struct step *step = &steps[i];
        *step = (struct step){.stream = (int)base_random_below(random, streams), .waits_for = -1};
        step->mark = i > 0 && base_random_below(random, (uint64_t)(step_count - i)) < (uint64_t)marks;
        marks -= step->mark;
        if (step->mark || i == 0 || !base_random_chance(random, 0.25))
            continue;
        const int earlier = (int)base_random_below(random, (uint64_t)i);
        if (!steps[earlier].mark)
            step->waits_for = earlier;
    }
    for (int i = 0; i < step_count; ++i) {
        comes_after[i] = steps[i].waits_for >= 0 ? 1u << steps[i].waits_for : 0;
        for (int j = 0; j < i; ++j)
            if (steps[j].mark || (!steps[i].mark && steps[j].stream == steps[i].stream))
                comes_after[i] |= 1u << j;
    }
}

static bool may_follow(int step, int former) {
    return steps[step].mark || former < 0 || !steps[former].mark || former + 1 == step_count ||
           !steps[former + 1].mark;
}

static void orders_count(unsigned done, char *order, int length) {
    if (order_count > ORDERS_MAX)
        return;
    if (length == step_count) {
        memcpy(orders[order_count], order, (size_t)length);
        orders[order_count++][length] = '\0';
        return;
    }
    for (int i = 0; i < step_count; ++i) {
        if ((done >> i & 1) != 0 || (comes_after[i] & ~done) != 0 ||
            !may_follow(i, length == 0 ? -1 : order[length - 1] - 'a'))
            continue;
        order[length] = (char)('a' + i);
        orders_count(done | 1u << i, order, length + 1);
    }
}

static char trail[STEPS_MAX + 1];

static void note(void *letter) {
    const size_t length = strlen(trail);
    BASE_CHECK_LT(length, STEPS_MAX);
    trail[length] = (char)(intptr_t)letter;
    trail[length + 1] = '\0';
}

static void program_run(uint64_t seed) {
    char schedule[32];
    cudaStream_t streams[STREAMS_MAX];
    cudaEvent_t events[STEPS_MAX];
    snprintf(schedule, sizeof schedule, "random:%" PRIu64, seed);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    for (int i = 0; i < STREAMS_MAX; ++i)
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
    trail[0] = '\0';
    for (int i = 0; i < step_count; ++i) {
        void *const letter = (void *)(intptr_t)('a' + i);
        if (steps[i].mark) {
            note(letter);
            continue;
        }
        const cudaStream_t stream = streams[steps[i].stream];
        if (steps[i].waits_for >= 0)
            BASE_CHECK_EQ(cudaStreamWaitEvent(stream, events[steps[i].waits_for], 0), cudaSuccess);
        BASE_CHECK_EQ(cudaLaunchHostFunc(stream, note, letter), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreate(&events[i]), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(events[i], stream), cudaSuccess);
    }
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// How many of the program's orders come; any other one is a fault.
static int reached_count(void) {
    bool reached[ORDERS_MAX] = {false};
    int count = 0;
    for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
        program_run(seed);
        int at = 0;
        while (at < order_count && strcmp(orders[at], trail) != 0)
            ++at;
        base_check_context("seed %" PRIu64 " left \"%s\", which is not allowed", seed, trail);
        BASE_CHECK_LT(at, order_count);
        count += !reached[at];
        reached[at] = true;
    }
    return count;
}

// WANTED: share of all orders.
static void orders_come(int operation_count, int mark_count, double wanted) {
    int programs = 0, all = 0, reached = 0;
    for (uint64_t seed = 1; programs < PROGRAMS; ++seed) {
        struct base_random random = base_random_init(seed, "reach_test");
        char order[STEPS_MAX];
        program_draw(&random, operation_count, mark_count);
        order_count = 0;
        orders_count(0, order, 0);
        if (order_count > ORDERS_MAX)
            continue;
        ++programs;
        all += order_count;
        reached += reached_count();
    }
    base_check_context(NULL);
    printf("%d operations, the host looks %d times: %d of %d orders of %d programs in %d seeds\n",
           operation_count, mark_count, reached, all, programs, SEEDS);
    BASE_CHECK_GE((double)reached, wanted * all);
}

int main(void) {
    orders_come(5, 0, 1);
    orders_come(6, 0, 0.99);
    orders_come(3, 1, 1);
    orders_come(3, 2, 0.98);
    return 0;
}
