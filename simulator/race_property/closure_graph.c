// Captures, graphs that a program builds, and launches: a launch makes a point of each node.
#include "simulator/race_property/closure_world.h"

#include "base/check.h"

// --- Captures and graphs ---

void closure__submit_begin(void) {
    const int stream = closure__current()->stream;
    if (!closure__stream_usable(stream))
        return;
    if (world->program->streams[stream].kind == LEGACY || closure__capture_of(stream) != NULL) {
        closure__refuse("900 or 401");
        return;
    }
    BASE_CHECK_LT(world->capture_count, CAPTURES_MAX);
    world->streams[stream].capture = world->capture_count;
    world->streams[stream].nodes = 0;
    world->captures[world->capture_count++] =
        (struct capture){.active = true,
                         .mode = (enum capture_mode)closure__current()->value,
                         .thread = closure__current()->thread,
                         .origin = stream,
                         .streams = 1u << stream};
}

// A graph that the program builds is a capture without streams.
void closure__submit_graph_create(void) {
    BASE_CHECK_LT(world->capture_count, CAPTURES_MAX);
    world->graphs[closure__current()->graph] = world->capture_count++;
}

void closure__submit_node(void) {
    if (world->graphs[closure__current()->graph] == NONE) {
        closure__refuse("no graph");
        return;
    }
    struct capture *graph = &world->captures[world->graphs[closure__current()->graph]];
    struct captured node = {world->operation, 0};
    for (int i = 0; i < closure__current()->dependency_count; ++i) {
        int found = NONE;
        for (int k = 0; k < graph->count; ++k)
            if (graph->nodes[k].operation == closure__current()->dependencies[i])
                found = k;
        if (found == NONE)
            closure__refuse("a dependency that is no node");
        else
            node.before |= (uint64_t)1 << found;
    }
    BASE_CHECK_LT(graph->count, CAPTURED_MAX);
    graph->nodes[graph->count++] = node;
}

// All that NODES come after, themselves included.
static uint64_t captured_before(const struct capture *capture, uint64_t nodes) {
    for (int i = capture->count - 1; i >= 0; --i)
        if (nodes >> i & 1)
            nodes |= capture->nodes[i].before;
    return nodes;
}

void closure__submit_end(void) {
    const int stream = closure__current()->stream;
    struct capture *capture = closure__capture_of(stream);
    if (!closure__stream_usable(stream))
        return;
    if (capture == NULL || capture->origin != stream ||
        capture->thread != closure__current()->thread) {
        closure__refuse("401, 903 or 908");
        return;
    }
    const uint64_t reached = captured_before(capture, world->streams[stream].nodes);
    for (int i = 0; i < world->program->stream_count; ++i) {
        if (!(capture->streams >> i & 1))
            continue;
        if (world->streams[i].nodes & ~reached)
            closure__refuse("904");
        if (i != stream && !(capture->returned >> i & 1))
            closure__refuse("open: a fork that nobody waited for");
        world->graphs[closure__current()->graph] = world->streams[i].capture;
        world->streams[i].capture = NONE;
    }
    capture->active = false;
}

void closure__submit_instantiate(void) {
    const int capture = world->graphs[closure__current()->graph];
    if (capture == NONE) {
        closure__refuse("no graph");
        return;
    }
    if (world->captures[capture].has_memory && world->captures[capture].instances++ > 0)
        closure__refuse("a second executable of memory nodes");
    world->execs[closure__current()->exec].capture = capture;
    world->execs[closure__current()->exec].last = (struct point_set){{0}};
}

void closure__submit_launch(void) {
    const int stream = closure__current()->stream, exec = closure__current()->exec;
    if (!closure__stream_usable(stream) || !closure__legacy_usable(stream))
        return;
    if (world->execs[exec].capture == NONE || closure__capture_of(stream) != NULL) {
        closure__refuse("no executable, or 900");
        return;
    }
    const struct capture *capture = &world->captures[world->execs[exec].capture];
    const int start = closure__enqueue(stream, &world->execs[exec].last);
    const int call = world->judgement->points[start].enqueue;
    struct point_set all = closure__set_of(start);
    int points[CAPTURED_MAX];
    for (int i = 0; i < capture->count; ++i) {
        struct point_set direct = closure__set_of(start);
        for (int k = 0; k < i; ++k)
            if (capture->nodes[i].before >> k & 1) {
                const struct point_set one = closure__set_of(points[k]);
                closure__set_add(&direct, &one);
            }
        points[i] = closure__point_add(&direct);
        struct point *point = &world->judgement->points[points[i]];
        const struct operation *operation =
            &world->program->operations[capture->nodes[i].operation];
        point->at.node = capture->nodes[i].operation;
        point->enqueue = call;
        point->capture = world->execs[exec].capture;
        closure__point_steps(points[i], operation);
        if (operation->verb == ALLOC_ASYNC)
            point->alloc = operation->buffer;
        if (operation->verb == FREE_ASYNC)
            point->free = operation->buffer;
        const struct point_set one = closure__set_of(points[i]);
        closure__set_add(&all, &one);
    }
    const int end = closure__point_add(&all);
    world->judgement->points[end].enqueue = call;
    world->streams[stream].last = closure__set_of(end);
    world->execs[exec].last = closure__set_of(end);
}
