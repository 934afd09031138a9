// What calls about streams, events, the host and memory leave behind.
#include "simulator/race_property/closure_world.h"

#include "base/check.h"

// --- Calls ---

void closure__submit_work(void) {
    const int point = closure__enqueue(closure__current()->stream, NULL);
    if (point != NONE)
        closure__point_steps(point, closure__current());
}

void closure__submit_fill(void) {
    const int point = closure__enqueue(closure__current()->stream, NULL);
    if (point == NONE)
        return;
    closure__point_steps(point, closure__current());
    const int buffer = closure__current()->steps[0].to.buffer;
    if (closure__current()->verb == FILL && world->program->buffers[buffer].place == PINNED)
        closure__host_waits_for(point);
}

// The three ways of a copy: staged by the host and sent later; waited for; neither.
void closure__submit_copy(void) {
    const int stream = closure__current()->stream;
    const struct step *step = &closure__current()->steps[0];
    const bool is_plain = closure__current()->verb == COPY;
    const enum place to = world->program->buffers[step->to.buffer].place;
    const enum place from = world->program->buffers[step->from[0].buffer].place;
    if (!closure__stream_usable(stream))
        return;
    if (closure__capture_of(stream) != NULL) {
        if (is_plain)
            closure__refuse("a plain copy in a capture");
        else
            closure__enqueue(stream, NULL);
        return;
    }
    if (!closure__legacy_usable(stream) || (is_plain && !closure__host_call_allowed()))
        return;
    if (from == PAGEABLE && to == ON_DEVICE) {
        const struct point_set covered = closure__stream_covered(stream);
        const int staging = closure__host_step(is_plain ? &covered : NULL);
        closure__point_touch(staging, &(struct access){READS, true, step->from[0]});
        const int point = closure__enqueue(stream, NULL);
        closure__point_touch(point, &(struct access){WRITES, false, step->to});
        return;
    }
    const int point = closure__enqueue(stream, NULL);
    if (point == NONE)
        return;
    closure__point_step(point, step);
    const bool on_host = to != ON_DEVICE && from != ON_DEVICE;
    const bool on_device = to == ON_DEVICE && from == ON_DEVICE;
    if (on_host || (is_plain && !on_device))
        closure__host_waits_for(point);
}

// Between all earlier and all later work of its devices.
void closure__submit_peer_copy(void) {
    const struct step *step = &closure__current()->steps[0];
    const bool devices[DEVICES] = {
        closure__current()->device == 0 || world->program->buffers[step->to.buffer].device == 0 ||
            world->program->buffers[step->from[0].buffer].device == 0,
        closure__current()->device == 1 || world->program->buffers[step->to.buffer].device == 1 ||
            world->program->buffers[step->from[0].buffer].device == 1,
    };
    for (int i = 0; i < world->capture_count; ++i)
        if (world->captures[i].active)
            closure__refuse("a plain peer copy during a capture");
    struct point_set direct = {{0}};
    for (int device = 0; device < DEVICES; ++device)
        if (devices[device]) {
            const struct point_set covered = closure__device_covered(device);
            closure__set_add(&direct, &covered);
        }
    const int call = closure__host_step(NULL);
    const struct point_set called = closure__set_of(call);
    closure__set_add(&direct, &called);
    const int point = closure__point_add(&direct);
    world->judgement->points[point].enqueue = call;
    closure__point_step(point, step);
    for (int device = 0; device < DEVICES; ++device)
        if (devices[device])
            world->fences[device] = closure__set_of(point);
}

void closure__submit_record(void) {
    const int stream = closure__current()->stream, event = closure__current()->event;
    if (!closure__stream_usable(stream))
        return;
    if (!world->events[event].exists || world->events[event].device != closure__device_of(stream)) {
        closure__refuse("400, the event");
        return;
    }
    world->events[event].capture = world->streams[stream].capture;
    if (closure__capture_of(stream) != NULL) {
        world->events[event].nodes = world->streams[stream].nodes;
        world->events[event].stream = stream;
        world->events[event].record = NONE;
        return;
    }
    world->events[event].record = closure__enqueue(stream, NULL);
}

void closure__submit_wait(void) {
    const int stream = closure__current()->stream, event = closure__current()->event;
    if (!closure__stream_usable(stream))
        return;
    if (!world->events[event].exists) {
        closure__refuse("400, the event");
        return;
    }
    const int captured = world->events[event].capture;
    struct capture *mine = closure__capture_of(stream);
    if (captured != NONE && !world->captures[captured].active) {
        closure__refuse("open: an event of a finished capture");
    } else if (mine != NULL && captured != world->streams[stream].capture) {
        closure__refuse("902 or 905, or an event that was never recorded");
    } else if (mine != NULL) {
        world->streams[stream].nodes |= world->events[event].nodes;
        if (world->events[event].stream != stream)
            mine->returned |= 1u << world->events[event].stream;
    } else if (captured != NONE) {
        if (world->program->streams[stream].kind == LEGACY)
            closure__refuse("the legacy stream joins a capture");
        world->streams[stream].capture = captured;
        world->streams[stream].nodes = world->events[event].nodes;
        world->captures[captured].streams |= 1u << stream;
        world->captures[captured].returned |= 1u << world->events[event].stream;
    } else if (world->events[event].record != NONE) {
        const struct point_set recorded = closure__set_of(world->events[event].record);
        closure__enqueue(stream, &recorded);
    }
}

// A wait of the host for COVERED, or a query about it.
static void host_observes(const struct point_set *covered) {
    const int operation = world->operation;
    if (!verb_queries(closure__current()->verb)) {
        closure__host_step(covered);
        return;
    }
    const int last = *closure__host_of(closure__current()->thread);
    struct point_set known = closure__set_of(last);
    if (last != NONE)
        closure__set_add(&known, &world->judgement->points[last].before);
    world->judgement->known[operation] = closure__set_within(covered, &known);
    // A value that was seen tells of the write, not that the stream is done with it.
    if (world->judgement->known[operation] && world->results[operation] != 0 && !world->value_seen)
        closure__refuse("the query answers %d, but the host knows", world->results[operation]);
    closure__host_step(world->results[operation] == 0 ? covered : NULL);
}

void closure__submit_event_call(void) {
    const int event = closure__current()->event;
    if (!world->events[event].exists)
        closure__refuse("400, the event");
    else if (world->events[event].capture != NONE)
        closure__refuse("907");
    else if (closure__host_call_allowed()) {
        const struct point_set recorded = closure__set_of(world->events[event].record);
        host_observes(&recorded);
    }
}

void closure__submit_stream_call(void) {
    const int stream = closure__current()->stream;
    if (!closure__stream_usable(stream))
        return;
    if (closure__capture_of(stream) != NULL)
        closure__refuse("900, the stream captures");
    else if (closure__legacy_usable(stream) && closure__host_call_allowed()) {
        const struct point_set covered = closure__stream_covered(stream);
        host_observes(&covered);
    }
}

void closure__submit_device_sync(void) {
    const int device = closure__current()->device;
    for (int i = 0; i < world->program->stream_count; ++i)
        if (closure__device_of(i) == device && world->streams[i].capture != NONE)
            closure__refuse("900, a capture in the device");
    const struct point_set covered = closure__device_covered(device);
    closure__host_step(&covered);
}

void closure__submit_value(void) {
    const int stream = closure__current()->stream;
    const int point = closure__enqueue(stream, NULL);
    if (point == NONE) {
        closure__refuse("a value in a capture");
        return;
    }
    int *count = &world->write_counts[closure__current()->token];
    BASE_CHECK_LT(*count, WRITES_MAX);
    world->writes[closure__current()->token][*count].value = closure__current()->value;
    world->writes[closure__current()->token][(*count)++].point = point;
}

void closure__submit_value_poll(void) {
    for (int i = 0; i < world->write_counts[closure__current()->token]; ++i)
        if (world->writes[closure__current()->token][i].value >= closure__current()->value) {
            closure__host_waits_for(world->writes[closure__current()->token][i].point);
            world->value_seen = true;
            return;
        }
    closure__refuse("nobody writes the value");
}

// --- Memory ---

void closure__submit_alloc(void) {
    const int buffer = closure__current()->buffer;
    if (world->born[buffer])
        closure__refuse("the buffer exists");
    if (closure__current()->verb == ALLOC_ASYNC) {
        const int stream = closure__current()->stream;
        if (!closure__stream_usable(stream))
            return;
        world->is_node[buffer] = closure__capture_of(stream) != NULL;
        if (world->is_node[buffer])
            closure__capture_of(stream)->has_memory = true;
        const int point = closure__enqueue(stream, NULL);
        if (point != NONE)
            world->judgement->points[point].alloc = buffer;
    } else if (closure__host_call_allowed()) {
        world->judgement->points[closure__host_step(NULL)].alloc = buffer;
    }
    world->born[buffer] = true;
}

// cudaFree waits for the memory's device, of page-locked memory for all of them: plain peer copies
// included, which stand in no stream.
void closure__submit_free(void) {
    const int buffer = closure__current()->buffer;
    const struct buffer *memory = &world->program->buffers[buffer];
    if (!world->born[buffer] || world->dead[buffer]) {
        closure__refuse("nothing to free");
        return;
    }
    if (closure__current()->verb == FREE_ASYNC) {
        const int stream = closure__current()->stream;
        if (!closure__stream_usable(stream))
            return;
        // What a graph allocates the same graph frees here: all else has its own rules.
        if (world->is_node[buffer] != (closure__capture_of(stream) != NULL))
            closure__refuse("a graph's memory outside of it, or other memory in a capture");
        const int point = closure__enqueue(stream, NULL);
        if (point != NONE)
            world->judgement->points[point].free = buffer;
    } else if (closure__host_call_allowed()) {
        struct point_set covered = {{0}};
        for (int device = 0; device < DEVICES; ++device)
            if (memory->place != ON_DEVICE || device == memory->device) {
                const struct point_set of_device = closure__device_covered(device);
                closure__set_add(&covered, &of_device);
            }
        world->judgement->points[closure__host_step(&covered)].free = buffer;
    }
    world->dead[buffer] = true;
}

void closure__submit_block_call(void) {
    const int block = closure__current()->block;
    if (closure__current()->verb == TAKE) {
        world->taken[block] = true;
        world->take_captures[block] = world->streams[closure__current()->stream].capture;
        world->take_points[block] = closure__host_step(NULL);
        return;
    }
    if (!world->taken[block] || world->given[block])
        closure__refuse("the block is nobody's");
    if (closure__current()->verb == GIVE) {
        world->given[block] = true;
        world->give_points[block] = closure__host_step(NULL);
    }
}
