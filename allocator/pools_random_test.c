// Private pools in random programs and under several threads: every block comes from the pool that
// the scopes say, whatever else happens.
#include "allocator/pools.h"

#include "allocator/testing.h"
#include "base/random.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>

#define MIB BASE_MIB

static struct allocator_pool_id user(uint64_t number) {
    return (struct allocator_pool_id){.user = number};
}

static void ok(enum base_status status) {
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static int64_t reserved(struct allocator *allocator) {
    return testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current;
}

//------------------------------------------------------------------------------------------------
// Random programs.

#define POOLS   4
#define STREAMS 3
#define BLOCKS  60

struct program {
    struct allocator *allocator;
    cudaStream_t streams[STREAMS];
    void *blocks[BLOCKS];
    int64_t counts[POOLS];  // of users that this program still has to release
    int scopes[POOLS];      // pools of the open scopes, oldest first
    int only_stream[POOLS]; // of each scope; -1: all
    int scope_count;
    uint64_t told_pool; // of the last hand-out
};

static void note_pool(void *context, const struct allocator_event *event) {
    if (event->action == ALLOCATOR_ALLOC) ((struct program *)context)->told_pool = event->pool.user;
}

static bool is_stream(void *context, cudaStream_t stream) { return (void *)stream == context; }

static uint64_t expected_pool(const struct program *program, int stream) {
    for (int scope = program->scope_count; scope-- > 0;)
        if (program->only_stream[scope] == -1 || program->only_stream[scope] == stream)
            return (uint64_t)program->scopes[scope] + 1;
    return 0;
}

static void open_scope(struct program *program, int pool, int stream) {
    for (int scope = 0; scope < program->scope_count; ++scope)
        if (program->scopes[scope] == pool) return;
    int64_t count = 1;
    if (cca_pool_count(program->allocator, 0, user((uint64_t)pool + 1), &count) == BASE_OK &&
        count == 0)
        return; // about to go
    const struct cca_pool_filter filter = {
        .accepts = is_stream, .context = stream < 0 ? NULL : (void *)program->streams[stream]};
    ok(cca_pool_begin(program->allocator, 0, user((uint64_t)pool + 1),
                      stream < 0 ? NULL : &filter));
    ++program->counts[pool];
    program->scopes[program->scope_count] = pool;
    program->only_stream[program->scope_count++] = stream;
}

static void close_scope(struct program *program, int scope) {
    ok(cca_pool_end(program->allocator, 0, user((uint64_t)program->scopes[scope] + 1)));
    --program->scope_count;
    for (; scope < program->scope_count; ++scope) {
        program->scopes[scope] = program->scopes[scope + 1];
        program->only_stream[scope] = program->only_stream[scope + 1];
    }
}

static void do_something(struct program *program, struct base_random *random) {
    struct allocator *const allocator = program->allocator;
    const int slot = (int)base_random_below(random, BLOCKS);
    const int pool = (int)base_random_below(random, POOLS);
    const int stream = (int)base_random_below(random, STREAMS);
    const uint64_t what = base_random_below(random, 100);
    if (what < 80 && program->blocks[slot] != NULL) {
        testing_free(allocator, program->blocks[slot]);
        program->blocks[slot] = NULL;
    } else if (what < 80) {
        const size_t size = base_random_log_between(random, 1, 40 * MIB);
        const enum base_status status =
            allocator_malloc(allocator, 0, size, program->streams[stream], &program->blocks[slot]);
        BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
        if (status == BASE_OK) BASE_CHECK_EQ(program->told_pool, expected_pool(program, stream));
    } else if (what < 85 && program->blocks[slot] != NULL) {
        ok(allocator_record_stream(allocator, program->blocks[slot], program->streams[stream]));
    } else if (what < 89) {
        open_scope(program, pool, (int)base_random_below(random, STREAMS + 1) - 1);
    } else if (what < 93 && program->scope_count > 0) {
        close_scope(program, (int)base_random_below(random, (uint64_t)program->scope_count));
    } else if (what < 96 && program->counts[pool] > 0) {
        ok(cca_pool_destroy(allocator, 0, user((uint64_t)pool + 1)));
        --program->counts[pool];
    } else if (what < 98) {
        ok(cca_pool_empty_cache(allocator, 0, user((uint64_t)pool + 1)));
    } else {
        ok(allocator_empty_cache(allocator));
    }
}

static void ignore_warning(void *context, const char *text) {
    (void)context;
    (void)text;
}

static void requests_go_where_the_scopes_say(const char *config, uint64_t seed) {
    base_check_context("config \"%s\", seed %llu", config, (unsigned long long)seed);
    struct base_random random = base_random_init(seed, "pools");
    struct program program = {.allocator = testing_create(config, 512 * MIB)};
    for (int stream = 1; stream < STREAMS; ++stream)
        program.streams[stream] = testing_stream();
    ok(allocator_set_observer(program.allocator,
                              &(struct allocator_observer){note_pool, &program}));
    cca_set_warning_observer(program.allocator,
                             &(struct cca_warning_observer){.warning = ignore_warning});
    for (int step = 0; step < 3000; ++step) {
        do_something(&program, &random);
        if (step % 100 == 0) cca_check(program.allocator);
    }
    while (program.scope_count > 0)
        close_scope(&program, 0);
    for (int slot = 0; slot < BLOCKS; ++slot)
        testing_free(program.allocator, program.blocks[slot]);
    for (int pool = 0; pool < POOLS; ++pool)
        while (program.counts[pool]-- > 0)
            ok(cca_pool_release(program.allocator, 0, user((uint64_t)pool + 1)));
    ok(allocator_empty_cache(program.allocator));
    cca_check(program.allocator);
    BASE_CHECK_EQ(reserved(program.allocator), 0);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    allocator_destroy(program.allocator);
}

//------------------------------------------------------------------------------------------------
// Threads: each has a pool of its own time and again, as
// torch.cuda.use_mem_pool does it; blocks are freed by whoever comes.

#define THREADS 4
#define ROUNDS  60

static _Thread_local int thread_number;
static _Atomic(void *) left_blocks[16];

static bool is_thread(void *context, cudaStream_t stream) {
    (void)stream;
    return (int)(intptr_t)context == thread_number;
}

struct thread_plan {
    struct allocator *allocator;
    cudaStream_t stream;
    int number;
};

static void use_pools(void *argument) {
    const struct thread_plan *const plan = argument;
    struct base_random random = base_random_init((uint64_t)plan->number, "threads");
    thread_number = plan->number;
    const struct cca_pool_filter filter = {is_thread, (void *)(intptr_t)plan->number};
    for (int round = 0; round < ROUNDS; ++round) {
        const struct allocator_pool_id id = user((uint64_t)(plan->number * ROUNDS + round));
        ok(cca_pool_begin(plan->allocator, 0, id, &filter));
        for (int request = 0; request < 20; ++request) {
            void *const block = testing_malloc(
                plan->allocator, base_random_log_between(&random, 1, 4 * MIB), plan->stream);
            void *const old = atomic_exchange(&left_blocks[base_random_below(&random, 16)], block);
            testing_free(plan->allocator, old);
        }
        ok(cca_pool_end(plan->allocator, 0, id));
        ok(cca_pool_destroy(plan->allocator, 0, id));
        if (round % 16 == 0) cca_check(plan->allocator);
    }
}

static void threads_have_pools_of_their_own(const char *config) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    struct base_thread threads[THREADS];
    struct thread_plan plans[THREADS];
    cudaStream_t stream = testing_stream(); // of two threads
    for (int number = 0; number < THREADS; ++number) {
        plans[number] =
            (struct thread_plan){allocator, number < 2 ? stream : testing_stream(), number + 1};
        base_thread_start(&threads[number], use_pools, &plans[number]);
    }
    for (int number = 0; number < THREADS; ++number)
        base_thread_join(&threads[number]);
    for (int index = 0; index < 16; ++index)
        testing_free(allocator, atomic_exchange(&left_blocks[index], NULL));
    ok(allocator_empty_cache(allocator));
    cca_check(allocator);
    BASE_CHECK_EQ(reserved(allocator), 0);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    allocator_destroy(allocator);
}

// Requests that find another thread polling are served from what is cached: from their own pool's,
// too. The streams have as many free blocks outside of it.
static _Atomic int astray;
static void note_astray(void *context, const struct allocator_event *event) {
    (void)context;
    if (event->action == ALLOCATOR_ALLOC && event->pool.user == 0) ++astray;
}

static void use_one_pool(void *argument) {
    const struct thread_plan *const plan = argument;
    for (int request = 0; request < 3000; ++request)
        testing_free(plan->allocator, testing_malloc(plan->allocator, 1000, plan->stream));
}

static void requests_keep_to_their_pool_while_others_poll(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct base_thread threads[THREADS];
    struct thread_plan plans[THREADS];
    cudaStream_t held = testing_stream();
    sim_stream_hold(held, true);
    void *const waiting = testing_malloc(allocator, 1000, NULL);
    ok(allocator_record_stream(allocator, waiting, held));
    testing_free(allocator, waiting); // from here on every request polls
    for (int number = 0; number < THREADS; ++number) {
        plans[number] = (struct thread_plan){.allocator = allocator, .stream = testing_stream()};
        testing_free(allocator, testing_malloc(allocator, 1000, plans[number].stream));
    }
    ok(cca_pool_begin(allocator, 0, user(1), NULL));
    ok(allocator_set_observer(allocator, &(struct allocator_observer){.event = note_astray}));
    for (int number = 0; number < THREADS; ++number)
        base_thread_start(&threads[number], use_one_pool, &plans[number]);
    for (int number = 0; number < THREADS; ++number)
        base_thread_join(&threads[number]);
    BASE_CHECK_EQ(astray, 0);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(void) {
    printf("seeds 1 to 3\n");
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        requests_go_where_the_scopes_say("", seed);
        requests_go_where_the_scopes_say("expandable_segments:True", seed);
        requests_go_where_the_scopes_say("max_split_size_mb:20,x_poll:own", seed);
        requests_go_where_the_scopes_say("x_reclaim_idle:True,x_retry_search:True", seed);
    }
    requests_keep_to_their_pool_while_others_poll();
    threads_have_pools_of_their_own("");
    threads_have_pools_of_their_own("release_lock_on_cudamalloc:True");
    return 0;
}
