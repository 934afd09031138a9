// All pairs of the settings beyond PyTorch, beside the settings they meet, near the end of memory:
// random programs over several streams whose device work runs in any legal order. cca_check walks
// the allocator again and again, the race checker follows each block: whatever the settings decide,
// no block may be handed out before its last use is ordered before its next. Settings also change
// while blocks are in use and frees wait.
#include "allocator/testing.h"
#include "base/random.h"
#include "base/thread.h"
#include "simulator/sim_race.h"

#include <stdio.h>

#define CAPACITY ((uint64_t)512 << 20)
#define STREAMS  4 // and the default stream
#define LIVE_MAX 48
#define STEPS    300

static const char *const own_settings[] = {
    "x_retry_search:True", "x_wait:enough",       "x_skip_stuck:True",  "x_bound_growth:True",
    "x_poll:own",          "x_reclaim_idle:True", "x_torch_faults:True"};
static const char *const own_off =
    "x_retry_search:False,x_wait:all,x_skip_stuck:False,x_bound_growth:False,x_poll:all,"
    "x_reclaim_idle:False";
static const char *const beside[] = {
    "", "expandable_segments:True,", "max_split_size_mb:40,",
    "max_split_size_mb:40,expandable_segments:True,",
    "garbage_collection_threshold:0.6,per_process_memory_fraction:0.9,"};

// What the settings did, over all programs: a stress that never meets them shows nothing.
static struct {
    int64_t out_of_memory, reclaimed, served_by_enough, served_by_search;
    int64_t refused_releases, times_gone; // x_torch_faults: errors; memory in use was released
} seen;

struct live_block {
    void *pointer;
    size_t size;
    int stream;
    uint64_t block; // the race checker's number
};

struct program {
    struct allocator *allocator;
    struct base_random random;
    cudaStream_t streams[STREAMS + 1];
    cudaEvent_t event;
    bool has_faults; // memory in use may go back to the device
    struct live_block live[LIVE_MAX];
    int live_count;
    int64_t segment_frees; // that the observer saw
};

static void no_body(const void *argument) { (void)argument; }

static void use(struct program *program, const struct live_block *block, int stream,
                enum sim_access_mode mode) {
    const struct sim_access access = {mode, block->pointer, .size = block->size,
                                      .block = block->block};
    const struct sim_kernel kernel = {
        .name = "use", .body = no_body, .accesses = &access, .access_count = 1};
    BASE_CHECK_EQ(sim_launch_kernel(program->streams[stream], &kernel), cudaSuccess);
}

// Which setting served a request, by what it cost.
static enum base_status watched_malloc(struct program *program, struct live_block *block) {
    const struct allocator_stats before = testing_stats(program->allocator);
    const uint64_t waits = sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE);
    const enum base_status status = allocator_malloc(
        program->allocator, 0, block->size, program->streams[block->stream], &block->pointer);
    const struct allocator_stats after = testing_stats(program->allocator);
    seen.out_of_memory += status == BASE_OUT_OF_MEMORY;
    if (after.num_alloc_retries > before.num_alloc_retries) return status;
    if (after.num_sync_all_streams > before.num_sync_all_streams)
        ++seen.served_by_search;
    else if (sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE) > waits)
        ++seen.served_by_enough;
    return status;
}

static void free_block(struct program *program, int index) {
    sim_block_give(program->live[index].block);
    testing_free(program->allocator, program->live[index].pointer);
    program->live[index] = program->live[--program->live_count];
}

static void allocate(struct program *program) {
    if (program->live_count == LIVE_MAX) {
        free_block(program, (int)base_random_below(&program->random, LIVE_MAX));
        return;
    }
    struct live_block *const block = &program->live[program->live_count];
    block->size = base_random_log_between(&program->random, 512, 160 << 20);
    block->stream = (int)base_random_below(&program->random, STREAMS + 1);
    const enum base_status status = watched_malloc(program, block);
    const bool is_refused_release = program->has_faults && status == BASE_CUDA;
    seen.refused_releases += is_refused_release;
    if (status == BASE_OUT_OF_MEMORY || is_refused_release) {
        for (int count = program->live_count / 2; count > 0; --count)
            free_block(program,
                       (int)base_random_below(&program->random, (uint64_t)program->live_count));
        return;
    }
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    block->block =
        sim_block_take(block->pointer, block->size, program->streams[block->stream], "block");
    ++program->live_count;
    use(program, block, block->stream, SIM_ACCESS_WRITE);
}

// Uses a block on another stream as a program has to: ordered, and told by record_stream; the
// owner goes on behind it, or does not touch the block again before its free.
static void use_elsewhere(struct program *program) {
    const int index = (int)base_random_below(&program->random, (uint64_t)program->live_count);
    struct live_block *const block = &program->live[index];
    const int user = (int)base_random_below(&program->random, STREAMS + 1);
    if (user == block->stream) return;
    BASE_CHECK_EQ(cudaEventRecord(program->event, program->streams[block->stream]), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(program->streams[user], program->event, 0), cudaSuccess);
    BASE_CHECK_EQ(
        allocator_record_stream(program->allocator, block->pointer, program->streams[user]),
        BASE_OK);
    sim_block_use(block->block, program->streams[user]);
    use(program, block, user, SIM_ACCESS_READ);
    if (base_random_chance(&program->random, 0.7))
        free_block(program, index);
    else {
        BASE_CHECK_EQ(cudaEventRecord(program->event, program->streams[user]), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(program->streams[block->stream], program->event, 0),
                      cudaSuccess);
    }
}

static void set(struct program *program, const char *config) {
    if (cca_set_config(program->allocator, config) != BASE_OK)
        base_check_context("%s", base_status_message());
}

static void step(struct program *program, const char *config) {
    const double chance = base_random_unit(&program->random);
    if (chance < 0.45 || program->live_count == 0)
        allocate(program);
    else if (chance < 0.70)
        use_elsewhere(program);
    else if (chance < (program->has_faults ? 0.9 : 0.97)) // they take settings that change
        free_block(program,
                   (int)base_random_below(&program->random, (uint64_t)program->live_count));
    else if (chance >= 0.995)
        BASE_CHECK_EQ(allocator_empty_cache(program->allocator), BASE_OK);
    else
        set(program, base_random_chance(&program->random, program->has_faults ? 0.5 : 0.3)
                         ? own_off
                         : config);
}

static void check(struct program *program) {
    cca_check(program->allocator);
    if (!program->has_faults) return;
    // Snapshots leave out what is gone, statistics do not.
    struct allocator_snapshot snapshot;
    size_t bytes = 0;
    const struct allocator_stats stats = testing_stats(program->allocator);
    BASE_CHECK_EQ(allocator_snapshot(program->allocator, &snapshot), BASE_OK);
    for (size_t index = 0; index < snapshot.segment_count; ++index)
        bytes += snapshot.segments[index].total_size;
    allocator_snapshot_deinit(&snapshot);
    seen.times_gone += bytes < (size_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].current;
}

static void on_event(void *context, const struct allocator_event *event) {
    struct program *const program = context;
    program->segment_frees += event->action == ALLOCATOR_SEGMENT_FREE;
}

static void ignore(void *context, const char *text) {
    (void)context;
    (void)text;
}

static void run(uint64_t seed, const char *config) {
    char schedule[64];
    snprintf(schedule, sizeof schedule, "random:%llu", (unsigned long long)seed);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    struct program program = {.random = base_random_init(seed, "own settings")};
    program.allocator = testing_create(config, CAPACITY);
    cca_set_warning_observer(program.allocator, &(struct cca_warning_observer){ignore, NULL});
    program.has_faults = strstr(config, "x_torch_faults:True") != NULL;
    if (!program.has_faults)
        BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.blocks_only = true}), BASE_OK);
    BASE_CHECK_EQ(
        allocator_set_observer(program.allocator, &(struct allocator_observer){on_event, &program}),
        BASE_OK);
    for (int stream = 1; stream <= STREAMS; ++stream)
        program.streams[stream] = testing_stream();
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&program.event, cudaEventDisableTiming), cudaSuccess);
    for (int number = 0; number < STEPS; ++number) {
        step(&program, config);
        if (number % 25 == 0) check(&program);
    }
    cca_check(program.allocator);
    while (program.live_count > 0)
        free_block(&program, 0);
    BASE_CHECK_EQ(allocator_empty_cache(program.allocator), BASE_OK);
    cca_check(program.allocator);
    // A segment that leaves without cudaFree went to another stream.
    seen.reclaimed += program.segment_frees - (int64_t)sim_call_count(SIM_CALL_FREE);
    if (!program.has_faults) {
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
        sim_race_stop();
    }
    allocator_destroy(program.allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void every_pair_of_settings_is_sound_near_the_end_of_memory(void) {
    const size_t count_own = sizeof own_settings / sizeof own_settings[0];
    uint64_t seed = 1;
    for (size_t first = 0; first < count_own; ++first)
        for (size_t second = first + 1; second < count_own; ++second)
            for (size_t other = 0; other < sizeof beside / sizeof beside[0]; ++other, ++seed) {
                char config[256];
                snprintf(config, sizeof config, "%s%s,%s", beside[other], own_settings[first],
                         own_settings[second]);
                printf("seed %llu: %s\n", (unsigned long long)seed, config);
                fflush(stdout);
                run(seed, config);
            }
}

//------------------------------------------------------------------------------------------------
// Several threads, each on a stream of its own, with blocks that the next one's stream used too.

#define THREADS      3
#define THREAD_STEPS 400

struct thread_work {
    struct allocator *allocator;
    cudaStream_t own, other;
    uint64_t seed;
};

static void work(void *argument) {
    const struct thread_work *const thread = argument;
    struct base_random random = base_random_init(thread->seed, "thread");
    void *live[8] = {NULL};
    for (int number = 0; number < THREAD_STEPS; ++number) {
        void **const slot = &live[base_random_below(&random, 8)];
        if (*slot != NULL && base_random_chance(&random, 0.5))
            BASE_CHECK_EQ(allocator_record_stream(thread->allocator, *slot, thread->other),
                          BASE_OK);
        testing_free(thread->allocator, *slot);
        *slot = NULL;
        const enum base_status status =
            allocator_malloc(thread->allocator, 0, base_random_log_between(&random, 512, 64 << 20),
                             thread->own, slot);
        BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    }
    for (int slot = 0; slot < 8; ++slot)
        testing_free(thread->allocator, live[slot]);
}

static void threads_meet_near_the_end_of_memory(const char *config) {
    struct allocator *const allocator = testing_create(config, CAPACITY);
    cca_set_warning_observer(allocator, &(struct cca_warning_observer){ignore, NULL});
    struct thread_work works[THREADS];
    struct base_thread threads[THREADS];
    for (int index = 0; index < THREADS; ++index)
        works[index] = (struct thread_work){allocator, testing_stream(), NULL, (uint64_t)index + 1};
    for (int index = 0; index < THREADS; ++index)
        works[index].other = works[(index + 1) % THREADS].own;
    for (int index = 0; index < THREADS; ++index)
        base_thread_start(&threads[index], work, &works[index]);
    for (int index = 0; index < THREADS; ++index)
        base_thread_join(&threads[index]);
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    cca_check(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    allocator_destroy(allocator);
}

int main(void) {
    static const char all[] = "x_retry_search:True,x_wait:enough,x_skip_stuck:True,x_poll:own,"
                              "x_bound_growth:True,x_reclaim_idle:True";
    char with_pages[256];
    snprintf(with_pages, sizeof with_pages, "expandable_segments:True,%s", all);
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    threads_meet_near_the_end_of_memory(all);
    threads_meet_near_the_end_of_memory(with_pages);
    every_pair_of_settings_is_sound_near_the_end_of_memory();
    for (uint64_t seed = 1000; seed < 1060; ++seed)
        run(seed, "max_split_size_mb:40,x_torch_faults:True");
    printf("%lld out of memory, %lld segments reclaimed, %lld requests served by waiting for "
           "enough, %lld by another search\n",
           (long long)seen.out_of_memory, (long long)seen.reclaimed,
           (long long)seen.served_by_enough, (long long)seen.served_by_search);
    BASE_CHECK_GT(seen.out_of_memory, 0);
    BASE_CHECK_GT(seen.reclaimed, 0);
    BASE_CHECK_GT(seen.served_by_enough, 0);
    BASE_CHECK_GT(seen.served_by_search, 0);
    printf("%lld refused releases, memory in use gone at %lld checks\n",
           (long long)seen.refused_releases, (long long)seen.times_gone);
    BASE_CHECK_GT(seen.refused_releases, 0);
    BASE_CHECK_GT(seen.times_gone, 0);
}
