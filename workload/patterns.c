// The program `patterns`: what is hard on allocators, by itself. Each variant is one of them:
//
//     bleed      threads hand what they made to the next thread, which uses it on its own stream
//     and
//                drops it: every block is freed by another thread than its owner
//     pipeline   one stream makes, another one uses; what is handed over is dropped at once with
//                record_stream, or kept until its stream has waited
//     death      threads make objects and end; the main thread and later threads free them
//     mixed      frees last in first out, first in first out and in random order
//     sawtooth   memory grows in many objects and shrinks to a few that lie anywhere
//     phases     small objects, large ones, then those between, some of each staying on
//     all        one after the other (the default)
#include "workload/programs.h"

#include "base/size.h"
#include "workload/patterns.h"
#include "workload/patterns_live.h"

#include <string.h>

static const struct workload__pattern_scale scales[] = {
    {4 * BASE_MIB, 48}, {32 * BASE_MIB, 400}, {128 * BASE_MIB, 1000}};

struct base_random workload__pattern_random(const struct workload__pattern *pattern,
                                            const char *name, int thread) {
    struct base_random random = base_random_init(pattern->run->options.seed, name);
    const uint64_t own =
        base_random_next(&random) + pattern->round * WORKLOAD_PATTERN_THREADS + (uint64_t)thread;
    return base_random_init(own, name);
}

uint64_t workload__pattern_key(const struct workload__pattern *pattern, int which, int thread) {
    return (pattern->round << 16) + ((uint64_t)which << 8) + (uint64_t)thread;
}

enum base_status workload__pattern_object(const struct workload__pattern *pattern,
                                          struct base_random *random,
                                          struct workload_object *object) {
    const size_t bytes = base_random_log_between(random, 4, pattern->scale.bytes_max);
    return workload_object_make(&pattern->run->devices[0], bytes,
                                (int64_t)base_random_below(random, 1000), object);
}

//------------------------------------------------------------------------------------------------
// Producer and consumer.

#define BACKLOG 8

// Used on the consumer's stream, which is current; then dropped at once, with record_stream, or
// when the producer's stream has waited for the use.
static enum base_status consume(struct workload_object *object, struct workload_tally *tally,
                                uint64_t factor, cudaStream_t producer, cudaStream_t consumer,
                                bool is_recorded) {
    enum base_status status = workload_object_add(object, 3);
    if (status == BASE_OK) status = workload_tally_add(tally, object, factor);
    if (status == BASE_OK)
        status = is_recorded ? tensor_record_stream(object->tensor, consumer)
                             : workload_stream_wait(0, producer, 0, consumer);
    tensor_release(&object->tensor);
    return status;
}

static enum base_status pipeline_run(const struct workload__pattern *pattern, cudaStream_t producer,
                                     cudaStream_t consumer, struct workload_tally *tally) {
    struct base_random random = workload__pattern_random(pattern, "pipeline", 0);
    struct workload_object backlog[BACKLOG] = {{.value = 0}};
    uint64_t made = 0, used = 0;
    const uint64_t count = (uint64_t)pattern->scale.count;
    enum base_status status = BASE_OK;
    while (used < count && status == BASE_OK) {
        const bool makes = made < count && made - used < BACKLOG &&
                           (made == used || base_random_chance(&random, 0.6));
        struct workload_object *const object = &backlog[(makes ? made : used) % BACKLOG];
        if (makes) {
            tensor_set_stream(0, producer);
            status = workload__pattern_object(pattern, &random, object);
            made += status == BASE_OK;
        } else {
            tensor_set_stream(0, consumer);
            status = workload_stream_wait(0, consumer, 0, producer);
            if (status == BASE_OK)
                status = consume(object, tally, used + 1, producer, consumer,
                                 base_random_chance(&random, 0.5));
            used += status == BASE_OK;
        }
    }
    for (int index = 0; index < BACKLOG; ++index)
        tensor_release(&backlog[index].tensor);
    return status;
}

static enum base_status pipeline(const struct workload__pattern *pattern) {
    const cudaStream_t producer = pattern->streams[0], consumer = pattern->streams[1];
    struct workload_tally tally = {.expected = 0};
    tensor_set_stream(0, consumer);
    enum base_status status = workload_tally_begin(&pattern->run->devices[0], &tally);
    if (status == BASE_OK) status = pipeline_run(pattern, producer, consumer, &tally);
    tensor_set_stream(0, consumer);
    const enum base_status ended =
        workload_tally_end(pattern->run, &tally, workload__pattern_key(pattern, 1, 0));
    tensor_set_stream(0, NULL);
    return status == BASE_OK ? ended : status;
}

//------------------------------------------------------------------------------------------------
// One stream, orders of frees and sizes.

static enum base_status mixed(const struct workload__pattern *pattern, struct workload_live *live) {
    static const enum workload_live_order orders[] = {WORKLOAD_LIVE_LAST, WORKLOAD_LIVE_FIRST,
                                                      WORKLOAD_LIVE_ANY};
    const int count = pattern->scale.count;
    enum base_status status = BASE_OK;
    for (int order = 0; order < 3 && status == BASE_OK; ++order) {
        const struct workload_live_sizes sizes = {4, pattern->scale.bytes_max};
        status = workload_live_grow(live, count / 2, sizes);
        for (int turn = 0; turn < count / 4 && status == BASE_OK; ++turn) {
            const int live_count = live->count;
            status = workload_live_shrink(
                live, live_count - 1 - (int)base_random_below(&live->random, 3), orders[order]);
            if (status == BASE_OK) status = workload_live_grow(live, live_count, sizes);
        }
        if (status == BASE_OK) status = workload_live_shrink(live, 0, orders[order]);
    }
    return status;
}

static enum base_status sawtooth(const struct workload__pattern *pattern,
                                 struct workload_live *live) {
    const int count = pattern->scale.count;
    enum base_status status = BASE_OK;
    for (int tooth = 1; tooth <= 4 && status == BASE_OK; ++tooth) {
        const struct workload_live_sizes sizes = {512,
                                                  pattern->scale.bytes_max * (size_t)tooth / 4};
        status = workload_live_grow(live, count, sizes);
        if (status == BASE_OK) status = workload_live_shrink(live, count / 8, WORKLOAD_LIVE_ANY);
    }
    return status == BASE_OK ? workload_live_shrink(live, 0, WORKLOAD_LIVE_FIRST) : status;
}

static enum base_status phases(const struct workload__pattern *pattern,
                               struct workload_live *live) {
    const size_t most = pattern->scale.bytes_max;
    const struct workload_live_sizes sizes[] = {
        {64, most / 64}, {most / 4, most}, {most / 32, most / 4}};
    const int count = pattern->scale.count;
    enum base_status status = BASE_OK;
    for (int phase = 0; phase < 3 && status == BASE_OK; ++phase) {
        for (int turn = 0; turn < 3 && status == BASE_OK; ++turn) {
            status = workload_live_grow(live, count / 2, sizes[phase]);
            if (status == BASE_OK)
                status = workload_live_shrink(live, count / 4, WORKLOAD_LIVE_ANY);
        }
        if (status == BASE_OK) status = workload_live_shrink(live, count / 8, WORKLOAD_LIVE_ANY);
    }
    return status == BASE_OK ? workload_live_shrink(live, 0, WORKLOAD_LIVE_ANY) : status;
}

static enum base_status
on_one_stream(const struct workload__pattern *pattern, int which, const char *name,
              enum base_status (*body)(const struct workload__pattern *, struct workload_live *)) {
    struct workload_live live;
    enum base_status status =
        workload_live_init(&live, &pattern->run->devices[0],
                           workload__pattern_random(pattern, name, 0), pattern->scale.count);
    if (status == BASE_OK) status = body(pattern, &live);
    const enum base_status ended =
        workload_tally_end(pattern->run, &live.tally, workload__pattern_key(pattern, which, 0));
    workload_live_deinit(&live);
    return status == BASE_OK ? ended : status;
}

static enum base_status mixed_run(const struct workload__pattern *pattern) {
    return on_one_stream(pattern, 3, "mixed", mixed);
}
static enum base_status sawtooth_run(const struct workload__pattern *pattern) {
    return on_one_stream(pattern, 4, "sawtooth", sawtooth);
}
static enum base_status phases_run(const struct workload__pattern *pattern) {
    return on_one_stream(pattern, 5, "phases", phases);
}

//------------------------------------------------------------------------------------------------
// The program.

static const char *const variants[] = {"all",   "bleed",    "pipeline", "death",
                                       "mixed", "sawtooth", "phases",   NULL};
static enum base_status (*const bodies[])(const struct workload__pattern *) = {
    workload__pattern_bleed,
    pipeline,
    workload__pattern_death,
    mixed_run,
    sawtooth_run,
    phases_run};

static enum base_status run(struct workload_run *run) {
    cudaStream_t streams[WORKLOAD_PATTERN_THREADS];
    struct workload__pattern pattern = {
        .run = run, .scale = scales[run->options.size], .streams = streams};
    const bool all = strcmp(run->options.variant, variants[0]) == 0;
    enum base_status status = BASE_OK;
    for (int index = 0; index < WORKLOAD_PATTERN_THREADS && status == BASE_OK; ++index)
        status = workload_run_stream(run, 0, &streams[index]);
    for (uint64_t step = 0; step < run->options.steps && status == BASE_OK; ++step) {
        pattern.round = step;
        for (int which = 0; variants[which + 1] != NULL && status == BASE_OK; ++which)
            if (all || strcmp(run->options.variant, variants[which + 1]) == 0)
                status = bodies[which](&pattern);
        if (status == BASE_OK) status = workload_run_step(run);
    }
    return status;
}

const struct workload_program workload_patterns = {
    .name = "patterns",
    .summary = "what is hard on allocators: bleeding, pipelines, thread death, orders of frees",
    .variants = variants,
    .steps = {1, 4, 16},
    .device_count_min = 1,
    .device_count_max = 1,
    .run = run,
};
