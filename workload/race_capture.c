// See race_capture.h. This file has the whole: captures with all that takes part in them, how they
// end and are lost, and what must be true then.
#include "workload/race_capture_program.h"

#include "simulator/sim.h"
#include "simulator/sim_race.h"
#include "workload/race_blocks.h"

#include <string.h>

#define ROUNDS 10
#define CAPTURE_STEPS 70
#define THREAD_STEPS 40
#define EAGER_STEPS 30

// How a capture goes wrong.
enum failure { NONE, UNJOINED, INVALIDATED, OUT_OF_MEMORY, FAILURE_COUNT };

//--------------------------------------------------------------------------------------------------
// Begin and end.

static struct workload__race_pool *pool_pick(struct workload__race_actor *actor) {
    struct workload__race_program *const program = actor->program;
    struct workload__race_pool *const shared = &program->pools[workload__race_below(actor, GRAPHS)];
    if (shared->graph_count > 0 && workload__race_chance(actor, 0.5)) return shared;
    for (int index = 0; index < GRAPHS; index++) {
        struct workload__race_pool *const pool = &program->pools[index];
        if (pool->graph_count > 0) continue;
        *pool = (struct workload__race_pool){.id = {.capture = ++program->capture_pool_number},
                                             .last = -1};
        return pool;
    }
    return shared;
}

static void begin(struct workload__race_program *program, struct workload__race_graph *graph) {
    const struct cca_pool_filter filter = cca_capture_filter(&graph->captured);
    unsigned long long id;
    enum cudaStreamCaptureStatus status;
    graph->captured = 0;
    BASE_CHECK_EQ(cca_pool_begin(program->caching, 0, graph->pool->id, &filter), BASE_OK);
    CHECK_CUDA(cudaStreamBeginCapture(program->streams[0], program->mode));
    CHECK_CUDA(cudaStreamGetCaptureInfo(program->streams[0], &status, &id, NULL, NULL, NULL, NULL));
    graph->captured = id;
    BASE_CHECK_EQ(cca_capture_begin(program->caching, 0,
                                    &(struct cca_capture){.id = id, .stream = program->streams[0]}),
                  BASE_OK);
}

static void end(struct workload__race_program *program, struct workload__race_graph *graph,
                cudaError_t expected) {
    graph->graph = NULL;
    graph->exec = NULL;
    const cudaError_t error = cudaStreamEndCapture(program->streams[0], &graph->graph);
    BASE_CHECK_EQ(error, expected);
    (void)cudaGetLastError();
    BASE_CHECK_EQ(cca_capture_end(program->caching, 0, graph->captured), BASE_OK);
    BASE_CHECK_EQ(cca_pool_end(program->caching, 0, graph->pool->id), BASE_OK);
    if (error == cudaSuccess) CHECK_CUDA(cudaGraphInstantiate(&graph->exec, graph->graph, 0));
}

//--------------------------------------------------------------------------------------------------
// What goes wrong.

// Returns a stream that has work and will not come back; 0 if there is no memory for it.
static int leave(struct workload__race_actor *actor, struct workload__race_graph *graph) {
    const int stream = 1 + workload__race_below(actor, CAPTURE_STREAMS - 1);
    struct workload__race_block *block = graph->blocks;
    while (block < graph->blocks + BLOCKS && block->bytes.pointer != NULL)
        block++;
    workload__race_behind(actor, stream, 0);
    return block < graph->blocks + BLOCKS && workload__race_take_sized(actor, block, stream, 4096)
               ? stream
               : 0;
}

static void invalidate(struct workload__race_program *program) {
    BASE_CHECK_EQ(cudaStreamSynchronize(program->streams[0]), cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    program->is_lost = true;
}

// The capture goes on, and nothing was given back for it.
static void ask_too_much(struct workload__race_actor *actor) {
    struct workload__race_program *const program = actor->program;
    struct allocator_stats before, after;
    struct workload__race_block block = {0};
    BASE_CHECK_EQ(allocator_stats(program->caching, 0, &before), BASE_OK);
    BASE_CHECK(!workload__race_take_sized(actor, &block, 0, CAPACITY + BASE_MIB));
    BASE_CHECK_EQ(allocator_stats(program->caching, 0, &after), BASE_OK);
    BASE_CHECK(workload__race_captures(program, 0));
    if (program->shared) return; // others have their own reasons
    BASE_CHECK_EQ(after.num_device_free, before.num_device_free);
    BASE_CHECK_EQ(after.num_ooms, before.num_ooms + 1);
}

// Everything goes, and with it all memory.
static void settle(struct workload__race_program *program) {
    struct workload__race_actor *const actor = &program->actors[0];
    struct allocator_stats stats;
    for (int graph = 0; graph < GRAPHS; graph++)
        workload__race_destroy(actor, &program->graphs[graph]);
    for (int each = 0; each <= program->options->threads; each++) {
        for (int index = 0; index < BLOCKS; index++)
            if (program->actors[each].eager[index].bytes.pointer != NULL)
                workload__race_give(actor, &program->actors[each].eager[index]);
        workload__race_scope_end(program, &program->actors[each].user);
    }
    cca_check(program->caching);
    CHECK_CUDA(cudaDeviceSynchronize());
    BASE_CHECK_EQ(allocator_empty_cache(program->allocator), BASE_OK);
    cca_check(program->caching);
    BASE_CHECK_EQ(allocator_stats(program->caching, 0, &stats), BASE_OK);
    BASE_CHECK_EQ(stats.active[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
}

//--------------------------------------------------------------------------------------------------
// A capture.

static void run_locked_step(struct workload__race_actor *actor) {
    struct workload__race_program *const program = actor->program;
    base_mutex_lock(&program->capture_lock);
    workload__race_capture_step(actor, program->capturing);
    base_mutex_unlock(&program->capture_lock);
}

static void run_thread(void *argument) {
    struct workload__race_actor *const actor = argument;
    const bool alone = actor->program->options->alone;
    for (int step = 0; step < THREAD_STEPS; step++)
        if (alone || workload__race_chance(actor, 0.3))
            run_locked_step(actor);
        else
            workload__race_eager_step(actor);
}

// Who captures may also work beside it, where the mode lets it.
static void run_steps(struct workload__race_actor *actor, int count) {
    const struct workload__race_program *const program = actor->program;
    for (int step = 0; step < count; step++)
        if (program->beside && program->mode == cudaStreamCaptureModeRelaxed &&
            workload__race_chance(actor, 0.15))
            workload__race_eager_step(actor);
        else
            run_locked_step(actor);
}

static enum failure failure_pick(struct workload__race_actor *actor) {
    return actor->program->options->fails && workload__race_chance(actor, 0.4)
               ? (enum failure)(1 + workload__race_below(actor, FAILURE_COUNT - 1))
               : NONE;
}

// Steps of all that take part, and what goes wrong among them.
static void fill(struct workload__race_actor *actor, enum failure failure) {
    struct workload__race_program *const program = actor->program;
    const int threads = program->shared ? program->options->threads : 0;
    for (int thread = 1; thread <= threads; thread++)
        base_thread_start(&program->actors[thread].thread, run_thread, &program->actors[thread]);
    run_steps(actor, CAPTURE_STEPS / 2);
    base_mutex_lock(&program->capture_lock);
    if (failure == INVALIDATED) invalidate(program);
    if (failure == OUT_OF_MEMORY) ask_too_much(actor);
    base_mutex_unlock(&program->capture_lock);
    run_steps(actor, CAPTURE_STEPS / 2);
    for (int thread = 1; thread <= threads; thread++)
        base_thread_join(&program->actors[thread].thread);
}

static cudaError_t join(struct workload__race_actor *actor, struct workload__race_graph *graph,
                        enum failure failure) {
    if (failure == INVALIDATED) {
        memset(actor->program->is_later, 0, sizeof actor->program->is_later);
        return cudaErrorStreamCaptureInvalidated;
    }
    const int left = failure == UNJOINED ? leave(actor, graph) : 0;
    workload__race_join_all(actor, left);
    return left > 0 ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
}

static void capture_blocks_end(struct workload__race_graph *graph) {
    for (int index = 0; index < BLOCKS; index++) {
        struct workload__race_block *const block = &graph->blocks[index];
        block->last = -1; // nothing ran yet
        block->is_kept = false;
        block->captured_value = block->bytes.value;
    }
}

static void mode_pick(struct workload__race_actor *actor) {
    struct workload__race_program *const program = actor->program;
    program->beside = !program->options->alone && workload__race_chance(actor, 0.5);
    program->shared = program->options->threads > 0;
    program->mode = program->beside   ? cudaStreamCaptureModeRelaxed
                    : program->shared ? cudaStreamCaptureModeThreadLocal
                                      : cudaStreamCaptureModeGlobal;
}

static void capture(struct workload__race_actor *actor, struct workload__race_graph *graph) {
    struct workload__race_program *const program = actor->program;
    const enum failure failure = failure_pick(actor);
    workload__race_destroy(actor, graph);
    memset(graph->blocks, 0, sizeof graph->blocks);
    graph->pool = pool_pick(actor);
    graph->order = graph->pool->captures++;
    graph->pool->graph_count++;
    graph->part_count = 0;
    graph->user = (struct workload__race_scope){.captured = &graph->captured};
    mode_pick(actor);
    memset(program->deferred, 0, sizeof program->deferred);
    program->is_lost = false;
    program->capturing = graph;
    begin(program, graph);
    program->is_capturing = true;
    fill(actor, failure);
    const bool closes_late = workload__race_chance(actor, 0.5);
    if (!closes_late) workload__race_scope_close(program, &graph->user);
    const cudaError_t expected = join(actor, graph, failure);
    program->is_capturing = false;
    end(program, graph, expected);
    workload__race_scope_close(program, &graph->user);
    graph->is_live = true;
    program->found->captures++;
    capture_blocks_end(graph);
    cca_check(program->caching);
    program->found->unjoined += expected == cudaErrorStreamCaptureUnjoined;
    program->found->invalidated += failure == INVALIDATED;
    program->found->out_of_memory += failure == OUT_OF_MEMORY;
    if (failure != NONE) settle(program);
}

//--------------------------------------------------------------------------------------------------
// The whole.

static void round_of(struct workload__race_program *program) {
    struct workload__race_actor *const actor = &program->actors[0];
    capture(actor, &program->graphs[workload__race_below(actor, GRAPHS)]);
    program->shared = false;
    for (int step = 0; step < EAGER_STEPS; step++) {
        struct workload__race_graph *const graph =
            &program->graphs[workload__race_below(actor, GRAPHS)];
        if (workload__race_chance(actor, 0.2))
            workload__race_launch(actor, graph);
        else if (workload__race_chance(actor, 0.3))
            workload__race_output_step(actor, graph);
        else
            workload__race_eager_step(actor);
    }
}

// Only requests of a capture count, which its lock keeps apart.
static void observe(void *context, const struct allocator_event *event) {
    struct workload__race_program *const program = context;
    if (workload__race_is_taking() && event->action == ALLOCATOR_FREE_COMPLETED)
        program->found->proven++;
}

static void setup(struct workload__race_program *program) {
    const struct workload_race_capture *const options = program->options;
    BASE_CHECK_LE(options->threads, WORKLOAD_RACE_THREADS_MAX);
    BASE_CHECK_EQ(sim_schedule(options->schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = CAPACITY}), BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true, .blocks_only = true}),
                  BASE_OK);
    base_mutex_init(&program->capture_lock);
    for (int stream = 0; stream < STREAMS; stream++)
        CHECK_CUDA(cudaStreamCreateWithFlags(&program->streams[stream], cudaStreamNonBlocking));
    for (int each = 0; each <= options->threads; each++) {
        struct workload__race_actor *const actor = &program->actors[each];
        actor->program = program;
        actor->random = base_random_init(options->seed + ((uint64_t)each << 32), "race capture");
        CHECK_CUDA(cudaEventCreateWithFlags(&actor->event, cudaEventDisableTiming));
    }
    for (int stream = 0; stream < CAPTURE_STREAMS; stream++)
        CHECK_CUDA(cudaEventCreateWithFlags(&program->later[stream], cudaEventDisableTiming));
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = options->config}, &program->caching),
        BASE_OK);
    BASE_CHECK_EQ(workload_race_blocks_create(program->caching, &program->allocator), BASE_OK);
    BASE_CHECK_EQ(
        allocator_set_observer(program->allocator, &(struct allocator_observer){observe, program}),
        BASE_OK);
    if (options->turns) sim_serialize(options->seed);
}

static void read_numbers(struct workload__race_program *program) {
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(program->caching, 0, &stats), BASE_OK);
    program->found->reserved_peak = (uint64_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    program->found->reserved_at_end = (uint64_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].current;
    for (int each = 1; each < ACTORS_MAX; each++)
        program->found->beside += program->actors[each].beside;
}

void workload_race_capture(const struct workload_race_capture *options,
                           struct workload_race_found *found) {
    static struct workload__race_program program;
    *found = (struct workload_race_found){0};
    memset(&program, 0, sizeof program);
    program.options = options;
    program.found = found;
    base_check_context("\"%s\", %s, seed %llu, %d threads", options->config, options->schedule,
                       (unsigned long long)options->seed, options->threads);
    setup(&program);
    (void)workload_race_wrong_bytes();
    for (int round = 0; round < ROUNDS; round++)
        round_of(&program);
    settle(&program);
    sim_race_stop();
    read_numbers(&program);
    if (options->turns) sim_serialize_end();
    allocator_destroy(program.allocator);
    allocator_destroy(program.caching);
    base_mutex_deinit(&program.capture_lock);
    found->races = sim_race_count(SIM_RACE_RULE_COUNT);
    found->wrong_bytes = workload_race_wrong_bytes();
}
