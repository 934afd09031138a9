// Points of the order, and what comes before a stream's next one.
#include "simulator/race_property/closure_world.h"

#include "base/check.h"

#include <stdarg.h>

struct closure_world closure__world;

// --- Sets of points ---

struct point_set closure__set_of(int point) {
    struct point_set set = {{0}};
    if (point != NONE)
        set.words[point / 64] |= (uint64_t)1 << (point % 64);
    return set;
}

void closure__set_add(struct point_set *into, const struct point_set *other) {
    for (int i = 0; i < POINTS_MAX / 64; ++i)
        into->words[i] |= other->words[i];
}

bool closure__set_within(const struct point_set *part, const struct point_set *whole) {
    for (int i = 0; i < POINTS_MAX / 64; ++i)
        if (part->words[i] & ~whole->words[i])
            return false;
    return true;
}

__attribute__((format(printf, 1, 2))) void closure__refuse(const char *format, ...) {
    if (!world->judgement->valid)
        return;
    world->judgement->valid = false;
    const int length = snprintf(world->judgement->why, sizeof world->judgement->why,
                                "%s: ", operation_label(world->operation));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->judgement->why + length, sizeof world->judgement->why - (size_t)length, format,
              arguments);
    va_end(arguments);
}

const struct operation *closure__current(void) {
    return &world->program->operations[world->operation];
}

// --- Points ---

int closure__point_add(const struct point_set *direct) {
    struct judgement *judgement = world->judgement;
    BASE_CHECK_LT(judgement->point_count, POINTS_MAX);
    const int index = judgement->point_count++;
    struct point *point = &judgement->points[index];
    *point = (struct point){.at = {world->operation, NONE},
                            .direct = *direct,
                            .before = *direct,
                            .alloc = NONE,
                            .free = NONE,
                            .enqueue = index,
                            .capture = NONE};
    for (int i = 0; i < index; ++i)
        if (point_set_has(direct, i))
            closure__set_add(&point->before, &judgement->points[i].before);
    return index;
}

void closure__point_touch(int index, const struct access *access) {
    struct point *point = &world->judgement->points[index];
    BASE_CHECK_LT(point->access_count, ACCESSES_MAX);
    point->masks[point->access_count] = span_mask(&access->span);
    point->accesses[point->access_count++] = *access;
}

void closure__point_step(int index, const struct step *step) {
    struct access accesses[3];
    const int count = step_accesses(step, accesses);
    for (int i = 0; i < count; ++i)
        closure__point_touch(index, &accesses[i]);
}

void closure__point_steps(int index, const struct operation *operation) {
    for (int i = 0; i < operation->step_count; ++i)
        closure__point_step(index, &operation->steps[i]);
}

int *closure__host_of(int thread) {
    return &world->host[world->program->threads_strict ? thread : 0];
}

// The calling thread's next step; AFTER: what the call waits for.
int closure__host_step(const struct point_set *after) {
    int *host = closure__host_of(closure__current()->thread);
    struct point_set direct = closure__set_of(*host);
    if (after != NULL)
        closure__set_add(&direct, after);
    *host = closure__point_add(&direct);
    return *host;
}

// --- Streams ---

bool closure__is_barred(int stream) { // by the legacy stream, and bars it
    const enum stream_kind kind = world->program->streams[stream].kind;
    return kind == BLOCKING || kind == PER_THREAD;
}

int closure__device_of(int stream) { return world->program->streams[stream].device; }

// What comes before the next work of STREAM.
struct point_set closure__stream_before(int stream) {
    struct point_set before = world->streams[stream].last;
    closure__set_add(&before, &world->fences[closure__device_of(stream)]);
    const bool is_legacy = world->program->streams[stream].kind == LEGACY;
    for (int i = 0; i < world->program->stream_count; ++i) {
        if (closure__device_of(i) != closure__device_of(stream))
            continue;
        const bool other_is_legacy = world->program->streams[i].kind == LEGACY;
        if ((is_legacy && closure__is_barred(i)) || (other_is_legacy && closure__is_barred(stream)))
            closure__set_add(&before, &world->streams[i].last);
    }
    return before;
}

// What synchronising or querying STREAM means.
struct point_set closure__stream_covered(int stream) {
    return world->program->streams[stream].kind == LEGACY ? closure__stream_before(stream)
                                                          : world->streams[stream].last;
}

struct point_set closure__device_covered(int device) {
    struct point_set covered = world->fences[device];
    for (int i = 0; i < world->program->stream_count; ++i)
        if (closure__device_of(i) == device)
            closure__set_add(&covered, &world->streams[i].last);
    return covered;
}

bool closure__stream_usable(int stream) {
    if (world->streams[stream].destroyed)
        closure__refuse("the stream is destroyed");
    if (world->program->streams[stream].kind == PER_THREAD &&
        world->program->streams[stream].thread != closure__current()->thread)
        closure__refuse("the stream is another thread's");
    return world->judgement->valid;
}

// The legacy stream may not be used while one that it bars captures.
bool closure__legacy_usable(int stream) {
    for (int i = 0; i < world->program->stream_count; ++i)
        if (world->program->streams[stream].kind == LEGACY && closure__is_barred(i) &&
            closure__device_of(i) == closure__device_of(stream) &&
            world->streams[i].capture != NONE)
            closure__refuse("906");
    return world->judgement->valid;
}

// Threads' own modes are global.
bool closure__host_call_allowed(void) {
    for (int i = 0; i < world->capture_count; ++i) {
        const struct capture *capture = &world->captures[i];
        if (capture->active &&
            (capture->thread == closure__current()->thread ? capture->mode != MODE_RELAXED
                                                           : capture->mode == MODE_GLOBAL))
            closure__refuse("900, an unsafe call");
    }
    return world->judgement->valid;
}

static void capture_add(struct capture *capture, int stream) {
    BASE_CHECK_LT(capture->count, CAPTURED_MAX);
    capture->nodes[capture->count] =
        (struct captured){world->operation, world->streams[stream].nodes};
    world->streams[stream].nodes = (uint64_t)1 << capture->count++;
}

struct capture *closure__capture_of(int stream) {
    const int capture = world->streams[stream].capture;
    return capture == NONE ? NULL : &world->captures[capture];
}

// The current operation enters STREAM. The point, or NONE if it is captured or illegal.
int closure__enqueue(int stream, const struct point_set *extra) {
    if (!closure__stream_usable(stream))
        return NONE;
    if (closure__capture_of(stream) != NULL) {
        capture_add(closure__capture_of(stream), stream);
        return NONE;
    }
    if (!closure__legacy_usable(stream))
        return NONE;
    const int call = closure__host_step(NULL);
    struct point_set direct = closure__stream_before(stream);
    const struct point_set called = closure__set_of(call);
    closure__set_add(&direct, &called);
    if (extra != NULL)
        closure__set_add(&direct, extra);
    const int point = closure__point_add(&direct);
    world->judgement->points[point].enqueue = call;
    world->streams[stream].last = closure__set_of(point);
    return point;
}

void closure__host_waits_for(int point) {
    const struct point_set done = closure__set_of(point);
    closure__host_step(&done);
}
