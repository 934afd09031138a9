// Frees that wait for events: their numbers, and the settings that change which events a request
// asks about. Streams are held, so the test says when work is done and knows the numbers itself.
#include "allocator/testing.h"
#include "base/random.h"
#include "base/thread.h"

#include <stdio.h>

#define MIB ((size_t)1 << 20)

static struct cca_pending_frees pending(struct allocator *allocator) {
    struct cca_pending_frees numbers;
    BASE_CHECK_EQ(cca_pending_frees(allocator, 0, &numbers), BASE_OK);
    return numbers;
}

// A block of the default stream that was used on USERS and freed.
static void free_after_use(struct allocator *allocator, size_t size, const cudaStream_t *users,
                           size_t user_count) {
    void *const pointer = testing_malloc(allocator, size, NULL);
    for (size_t index = 0; index < user_count; ++index)
        BASE_CHECK_EQ(allocator_record_stream(allocator, pointer, users[index]), BASE_OK);
    testing_free(allocator, pointer);
}

static void check_blocks(struct cca_pending_frees numbers, size_t blocks, size_t finished,
                         size_t behind, size_t stuck) {
    BASE_CHECK_EQ(numbers.blocks, blocks);
    BASE_CHECK_EQ(numbers.finished_blocks, finished);
    BASE_CHECK_EQ(numbers.behind_blocks, behind);
    BASE_CHECK_EQ(numbers.stuck_blocks, stuck);
}

static void a_block_with_several_events_is_counted_once(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    const cudaStream_t users[2] = {testing_held_stream(), testing_held_stream()};
    check_blocks(pending(allocator), 0, 0, 0, 0);
    // Queues: the first stream's 4 MiB, 8 MiB; the second's 8 MiB, 16 MiB.
    free_after_use(allocator, 4 * MIB, users, 1);
    free_after_use(allocator, 8 * MIB, users, 2);
    free_after_use(allocator, 16 * MIB, users + 1, 1);
    struct cca_pending_frees numbers = pending(allocator);
    check_blocks(numbers, 3, 0, 2, 0);
    BASE_CHECK_EQ(numbers.bytes, 28 * MIB);
    BASE_CHECK_EQ(numbers.behind_bytes, 24 * MIB);
    BASE_CHECK_EQ(numbers.events, 4);

    BASE_CHECK_EQ(sim_stream_run(users[0], 1), 1);
    numbers = pending(allocator);
    check_blocks(numbers, 3, 1, 1, 0); // 8 MiB became first in both queues
    BASE_CHECK_EQ(numbers.finished_bytes, 4 * MIB);
    BASE_CHECK_EQ(numbers.behind_bytes, 16 * MIB);

    BASE_CHECK_EQ(sim_stream_run(users[1], 2), 2);
    numbers = pending(allocator);
    check_blocks(numbers, 3, 2, 0, 0); // 8 MiB still waits for the first stream
    BASE_CHECK_EQ(numbers.finished_bytes, 20 * MIB);

    testing_free(allocator, testing_malloc(allocator, 512, NULL)); // polls
    numbers = pending(allocator);
    check_blocks(numbers, 1, 0, 0, 0);
    BASE_CHECK_EQ(numbers.bytes, 8 * MIB);
    BASE_CHECK_EQ(numbers.events, 1);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_ALL].current -
                      stats.allocated_bytes[ALLOCATOR_STAT_ALL].current,
                  8 * MIB);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void an_event_that_cannot_be_asked_is_a_status_and_changes_nothing(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    const cudaStream_t user = testing_held_stream();
    free_after_use(allocator, 4 * MIB, &user, 1);
    free_after_use(allocator, 4 * MIB, &user, 1);
    struct cca_pending_frees numbers = {.blocks = 7};
    sim_fault_next(SIM_CALL_EVENT_QUERY, 2, cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cca_pending_frees(allocator, 0, &numbers), BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaEventQuery"));
    BASE_CHECK_EQ(numbers.blocks, 7);
    cca_check(allocator);
    check_blocks(pending(allocator), 2, 0, 1, 0);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Random programs against a count of our own.

#define STREAMS 3
#define EVENTS 4096

// What the test knows: each stream's events in order, how many ran and how many a poll saw.
struct program {
    cudaStream_t streams[STREAMS];
    struct {
        size_t block[EVENTS], count, done, seen;
    } queues[STREAMS];
    size_t size[EVENTS], waits[EVENTS]; // of each block: events that no poll has seen
    size_t block_count;
};

static struct cca_pending_frees expected(const struct program *program) {
    struct cca_pending_frees numbers = {0};
    for (size_t block = 0; block < program->block_count; ++block) {
        if (program->waits[block] == 0) continue;
        bool is_done = true, is_behind = false;
        for (int stream = 0; stream < STREAMS; ++stream)
            for (size_t at = program->queues[stream].seen; at < program->queues[stream].count;
                 ++at) {
                if (program->queues[stream].block[at] != block) continue;
                if (at >= program->queues[stream].done) is_done = false;
                if (at > program->queues[stream].done) is_behind = true;
            }
        numbers.blocks++;
        numbers.bytes += program->size[block];
        numbers.events += program->waits[block];
        if (is_done) numbers.finished_bytes += program->size[block];
        if (is_done) numbers.finished_blocks++;
        if (is_behind) numbers.behind_bytes += program->size[block];
        if (is_behind) numbers.behind_blocks++;
    }
    return numbers; // events of one stream complete in order: nothing is stuck
}

static void poll(struct program *program) {
    for (int stream = 0; stream < STREAMS; ++stream)
        for (; program->queues[stream].seen < program->queues[stream].done;
             program->queues[stream].seen++)
            program->waits[program->queues[stream].block[program->queues[stream].seen]]--;
}

static void free_one(struct program *program, struct allocator *allocator,
                     struct base_random *random) {
    const size_t size = (size_t)base_random_between(random, 1, 8) * 2 * MIB;
    const uint64_t mask = base_random_between(random, 1, (1 << STREAMS) - 1);
    cudaStream_t users[STREAMS];
    size_t user_count = 0;
    for (int stream = 0; stream < STREAMS; ++stream) {
        if ((mask >> stream & 1) == 0) continue;
        users[user_count++] = program->streams[stream];
        program->queues[stream].block[program->queues[stream].count++] = program->block_count;
    }
    poll(program);
    free_after_use(allocator, size, users, user_count);
    program->size[program->block_count] = size;
    program->waits[program->block_count++] = user_count;
}

static void numbers_agree_with_a_count_of_our_own(uint64_t seed) {
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    static struct program program;
    memset(&program, 0, sizeof program);
    struct base_random random = base_random_init(seed, "pending");
    // One size a segment: a block is then as large as was asked for.
    struct allocator *const allocator = testing_create("", 256 * BASE_GIB);
    for (int stream = 0; stream < STREAMS; ++stream)
        program.streams[stream] = testing_held_stream();
    for (int step = 0; step < 600; ++step) {
        if (base_random_chance(&random, 0.5)) {
            free_one(&program, allocator, &random);
        } else {
            const int stream = (int)base_random_below(&random, STREAMS);
            program.queues[stream].done +=
                sim_stream_run(program.streams[stream], base_random_below(&random, 4));
        }
        const struct cca_pending_frees numbers = pending(allocator), wanted = expected(&program);
        BASE_CHECK_EQ(memcmp(&numbers, &wanted, sizeof numbers), 0);
    }
    cca_check(allocator);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// One handle, two streams: pt#71616's kind.

#define STUCK 40 // events that never become complete while the test looks
#define DONE 5   // complete ones behind them

// Another thread's cudaStreamPerThread, with work that does not end until it is told.
struct stuck_thread {
    struct allocator *allocator;
    struct base_mutex mutex;
    struct base_condition condition;
    int step;
};

static void advance(struct stuck_thread *stuck, int step) {
    base_mutex_lock(&stuck->mutex);
    stuck->step = step;
    base_condition_broadcast(&stuck->condition);
    base_mutex_unlock(&stuck->mutex);
}

static void await(struct stuck_thread *stuck, int step) {
    base_mutex_lock(&stuck->mutex);
    while (stuck->step < step)
        base_condition_wait(&stuck->condition, &stuck->mutex);
    base_mutex_unlock(&stuck->mutex);
}

static void run_stuck_thread(void *argument) {
    struct stuck_thread *const stuck = argument;
    const cudaStream_t own = cudaStreamPerThread;
    sim_stream_hold(own, true);
    for (int index = 0; index < STUCK; ++index)
        free_after_use(stuck->allocator, 2 * MIB, &own, 1);
    advance(stuck, 1);
    await(stuck, 2);
    sim_stream_hold(own, false);
    advance(stuck, 3);
    await(stuck, 4);
}

// Requests until the blocks behind are back; at most LIMIT of them. Returns how many it took.
static int requests_until(struct allocator *allocator, size_t blocks, int limit) {
    for (int count = 0; count <= limit; ++count) {
        if (pending(allocator).blocks == blocks) return count;
        const uint64_t queries = sim_call_count(SIM_CALL_EVENT_QUERY);
        testing_free(allocator, testing_malloc(allocator, 512, NULL));
        // The front, and 16 behind it: what the setting may cost.
        BASE_CHECK_LE(sim_call_count(SIM_CALL_EVENT_QUERY) - queries, 17);
    }
    return limit + 1;
}

static void finished_blocks_behind_a_stuck_event_come_back(const char *config, bool skips) {
    struct stuck_thread stuck = {.allocator = testing_create(config, 8 * BASE_GIB),
                                 .mutex = BASE_MUTEX_INITIALIZER,
                                 .condition = BASE_CONDITION_INITIALIZER};
    struct allocator *const allocator = stuck.allocator;
    struct base_thread thread;
    base_thread_start(&thread, run_stuck_thread, &stuck);
    await(&stuck, 1);
    const cudaStream_t own = cudaStreamPerThread;
    sim_stream_hold(own, true);
    for (int index = 0; index < DONE; ++index)
        free_after_use(allocator, 4 * MIB, &own, 1);
    sim_stream_hold(own, false);
    const struct cca_pending_frees numbers = pending(allocator);
    check_blocks(numbers, STUCK + DONE, 0, STUCK - 1 + DONE, DONE);
    BASE_CHECK_EQ(numbers.stuck_bytes, DONE * 4 * MIB);
    // Without: never. With: the 39 + 5 behind the front are asked 16 at a time, from where the
    // last poll stopped.
    const int requests = requests_until(allocator, STUCK, 10);
    if (skips)
        BASE_CHECK_LE(requests, (STUCK - 1 + DONE + 15) / 16 + 1);
    else
        BASE_CHECK_EQ(requests, 11);
    cca_check(allocator);
    advance(&stuck, 2);
    await(&stuck, 3);
    testing_free(allocator, testing_malloc(allocator, 512, NULL));
    BASE_CHECK_EQ(pending(allocator).blocks, 0);
    advance(&stuck, 4);
    base_thread_join(&thread);
    cca_check(allocator);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// x_poll:own.

static void a_request_polls_for_its_own_stream_only(void) {
    struct allocator *const allocator = testing_create("x_poll:own", 8 * BASE_GIB);
    const cudaStream_t users[2] = {testing_stream(), testing_stream()};
    const cudaStream_t other = testing_stream(), idle = testing_stream();
    // The work of both is done at once, so each free is finished, but not seen.
    free_after_use(allocator, 4 * MIB, users, 1);
    void *const pointer = testing_malloc(allocator, 8 * MIB, other);
    BASE_CHECK_EQ(allocator_record_stream(allocator, pointer, users[1]), BASE_OK);
    testing_free(allocator, pointer);
    check_blocks(pending(allocator), 2, 2, 0, 0);

    uint64_t queries = sim_call_count(SIM_CALL_EVENT_QUERY);
    testing_free(allocator, testing_malloc(allocator, 512, idle));
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_QUERY) - queries, 0);
    testing_free(allocator, testing_malloc(allocator, 512, other));
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_QUERY) - queries, 1);
    BASE_CHECK_EQ(pending(allocator).bytes, 4 * MIB);
    testing_free(allocator, testing_malloc(allocator, 512, NULL));
    BASE_CHECK_EQ(pending(allocator).blocks, 0);
    // Nothing waits any more: no stream is asked again.
    queries = sim_call_count(SIM_CALL_EVENT_QUERY);
    testing_free(allocator, testing_malloc(allocator, 512, NULL));
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_QUERY) - queries, 0);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void polling_own_streams_can_be_set_and_unset_while_frees_wait(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    const cudaStream_t user = testing_held_stream(), other = testing_stream();
    free_after_use(allocator, 4 * MIB, &user, 1);
    BASE_CHECK_EQ(cca_set_config(allocator, "x_poll:own"), BASE_OK);
    sim_stream_run(user, UINT64_MAX);
    testing_free(allocator, testing_malloc(allocator, 512, other));
    check_blocks(pending(allocator), 1, 1, 0, 0);
    BASE_CHECK_EQ(cca_set_config(allocator, "x_poll:all"), BASE_OK);
    testing_free(allocator, testing_malloc(allocator, 512, other));
    check_blocks(pending(allocator), 0, 0, 0, 0);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(void) {
    a_block_with_several_events_is_counted_once();
    an_event_that_cannot_be_asked_is_a_status_and_changes_nothing();
    for (uint64_t seed = 1; seed <= 5; ++seed)
        numbers_agree_with_a_count_of_our_own(seed);
    finished_blocks_behind_a_stuck_event_come_back("", false);
    finished_blocks_behind_a_stuck_event_come_back("x_skip_stuck:True", true);
    finished_blocks_behind_a_stuck_event_come_back("x_skip_stuck:True,x_poll:own", true);
    a_request_polls_for_its_own_stream_only();
    polling_own_streams_can_be_set_and_unset_while_frees_wait();
}
