// The judge of closure.h: one call after the other becomes points, then every pair is looked at.
#include "simulator/race_property/closure_world.h"

#include <string.h>

// --- One call ---

static void submit(void) {
    const struct operation *operation = closure__current();
    switch (operation->verb) {
    case KERNEL:
    case HOST_FUNCTION:
    case COPY_PEER_ASYNC: closure__submit_work(); break;
    case COPY:
    case COPY_ASYNC: closure__submit_copy(); break;
    case COPY_PEER: closure__submit_peer_copy(); break;
    case FILL:
    case FILL_ASYNC: closure__submit_fill(); break;
    case HOST_WRITE:
    case HOST_READ: closure__point_steps(closure__host_step(NULL), operation); break;
    case RECORD: closure__submit_record(); break;
    case WAIT: closure__submit_wait(); break;
    case EVENT_SYNC:
    case EVENT_QUERY:
    case EVENT_POLL: closure__submit_event_call(); break;
    case EVENT_CREATE:
        if (world->events[operation->event].exists)
            closure__refuse("the event exists");
        world->events[operation->event].exists = true;
        world->events[operation->event].device = operation->device;
        world->events[operation->event].record = world->events[operation->event].capture = NONE;
        break;
    case EVENT_DESTROY:
        if (!world->events[operation->event].exists)
            closure__refuse("400, the event");
        world->events[operation->event].exists = false;
        break;
    case STREAM_SYNC:
    case STREAM_QUERY:
    case STREAM_POLL: closure__submit_stream_call(); break;
    case STREAM_DESTROY:
        if (closure__stream_usable(operation->stream) &&
            closure__capture_of(operation->stream) != NULL)
            closure__refuse("a capturing stream is destroyed");
        world->streams[operation->stream].destroyed = true;
        break;
    case DEVICE_SYNC: closure__submit_device_sync(); break;
    case SIGNAL: {
        world->signals[operation->token] = closure__set_of(*closure__host_of(operation->thread));
        world->signalled[operation->token] = true;
        break;
    }
    case AWAIT:
        if (!world->signalled[operation->token])
            closure__refuse("nobody signals");
        else
            closure__host_step(&world->signals[operation->token]);
        break;
    case ALLOC:
    case HOST_ALLOC:
    case ALLOC_ASYNC: closure__submit_alloc(); break;
    case FREE:
    case HOST_FREE:
    case FREE_ASYNC: closure__submit_free(); break;
    case TAKE:
    case USE:
    case GIVE: closure__submit_block_call(); break;
    case WRITE_VALUE: closure__submit_value(); break;
    case VALUE_POLL: closure__submit_value_poll(); break;
    case GRAPH_CREATE: closure__submit_graph_create(); break;
    case ADD_KERNEL: closure__submit_node(); break;
    case BEGIN: closure__submit_begin(); break;
    case END: closure__submit_end(); break;
    case INSTANTIATE: closure__submit_instantiate(); break;
    case LAUNCH: closure__submit_launch(); break;
    case EXEC_DESTROY:
        if (world->execs[operation->exec].capture == NONE)
            closure__refuse("no executable");
        (void)closure__host_call_allowed();
        world->execs[operation->exec].capture = NONE;
        break;
    case GRAPH_DESTROY:
        if (world->graphs[operation->graph] == NONE)
            closure__refuse("no graph");
        world->graphs[operation->graph] = NONE;
        break;
    case VERB_COUNT: break;
    }
}

// What the program names must exist, by then.
static void check_names(const struct operation *operation) {
    for (int i = 0; i < operation->step_count; ++i) {
        struct access accesses[3];
        const int count = step_accesses(&operation->steps[i], accesses);
        for (int k = 0; k < count; ++k) {
            const struct span *span = &accesses[k].span;
            if (world->program->buffers[span->buffer].allocated &&
                (!world->born[span->buffer] || world->dead[span->buffer]))
                closure__refuse("the buffer does not exist");
            if (world->is_node[span->buffer] &&
                (operation->stream == NONE || closure__capture_of(operation->stream) == NULL))
                closure__refuse("a graph's memory outside of it");
            if (span->block != NONE && !world->taken[span->block])
                closure__refuse("the block does not exist");
        }
    }
}

static bool is_performed(const struct operation *operation) {
    if (operation->dropped)
        return false;
    if (operation->guard == NONE)
        return true;
    if (world->program->operations[operation->guard].dropped) {
        closure__refuse("it depends on no query");
        return false;
    }
    return (world->results[operation->guard] == 0) == operation->guard_success;
}

static void world_start(const struct program *program, const int *results,
                        struct judgement *judgement) {
    memset(world, 0, sizeof *world);
    world->program = program;
    world->results = results;
    world->judgement = judgement;
    judgement->valid = true;
    judgement->point_count = judgement->pair_count = 0;
    judgement->why[0] = '\0';
    judgement->carries_undefined = judgement->spoils_pageable = false;
    memset(judgement->known, 0, sizeof judgement->known);
    for (int i = 0; i < STREAMS_MAX; ++i)
        world->streams[i].capture = NONE;
    for (int i = 0; i < THREADS; ++i)
        world->host[i] = NONE;
    for (int i = 0; i < EVENTS_MAX; ++i) {
        world->events[i].exists = i < program->event_count;
        world->events[i].device = program->event_devices[i];
        world->events[i].record = world->events[i].capture = NONE;
    }
    for (int i = 0; i < GRAPHS_MAX; ++i)
        world->graphs[i] = NONE;
    for (int i = 0; i < EXECS_MAX; ++i)
        world->execs[i].capture = NONE;
}

void closure_judge(const struct program *program, const int results[OPERATIONS_MAX],
                   struct judgement *judgement) {
    world_start(program, results, judgement);
    for (int i = 0; i < program->count && judgement->valid; ++i) {
        world->operation = i;
        if (!is_performed(&program->operations[i]))
            continue;
        check_names(&program->operations[i]);
        submit();
    }
    for (int i = 0; i < world->capture_count; ++i)
        if (world->captures[i].active)
            closure__refuse("a capture does not end");
    if (!judgement->valid)
        return;
    closure__find_conflicts();
    closure__find_outside();
    closure__find_uninitialised();
}
