// The judge of closure.h: first the points and what each comes after by a rule (one function for
// each kind of call), then every pair.
#include "simulator/race_property/closure.h"

#include "base/check.h"

#include <stdarg.h>
#include <string.h>

const char *pair_kind_name(enum pair_kind kind) {
    static const char *const names[PAIR_KIND_COUNT] = {
        "write-write",      "read-write",   "reuse",         "use-after-free",
        "use-before-alloc", "graph-memory", "uninitialised",
    };
    return names[kind];
}

static bool same_place(struct place_in_program a, struct place_in_program b) {
    return a.operation == b.operation && a.node == b.node;
}

bool pair_equal(const struct pair *a, const struct pair *b) {
    return a->kind == b->kind &&
           ((same_place(a->first, b->first) && same_place(a->second, b->second)) ||
            (same_place(a->first, b->second) && same_place(a->second, b->first)));
}

// --- Sets of points ---

static struct point_set set_of(int point) {
    struct point_set set = {{0}};
    if (point != NONE)
        set.words[point / 64] |= (uint64_t)1 << (point % 64);
    return set;
}

static void set_add(struct point_set *into, const struct point_set *other) {
    for (int i = 0; i < POINTS_MAX / 64; ++i)
        into->words[i] |= other->words[i];
}

static bool set_within(const struct point_set *part, const struct point_set *whole) {
    for (int i = 0; i < POINTS_MAX / 64; ++i)
        if (part->words[i] & ~whole->words[i])
            return false;
    return true;
}

// --- The state that calls leave for later ones ---

#define CAPTURES_MAX 8
#define CAPTURED_MAX 64
#define WRITES_MAX   32

struct captured {
    int operation;
    uint64_t before; // directly, by index in the capture
};

struct capture {
    bool active;
    enum capture_mode mode;
    int thread, origin;
    uint32_t streams;  // that take part, a bit each
    uint32_t returned; // waited for by another one
    int count;
    struct captured nodes[CAPTURED_MAX];
    bool has_memory;
    int instances;
};

static struct world {
    const struct program *program;
    const int *results;
    struct judgement *judgement;
    int operation; // that is submitted
    struct {
        struct point_set last;
        int capture;   // or NONE
        uint64_t nodes; // what its next node depends on
        bool destroyed;
    } streams[STREAMS_MAX];
    struct point_set fences[DEVICES]; // the last plain peer copy
    int host[THREADS];                // the last step
    struct {
        bool exists;
        int device, record; // the point, or NONE
        int capture, stream;
        uint64_t nodes;
    } events[EVENTS_MAX];
    struct capture captures[CAPTURES_MAX];
    int capture_count;
    int graphs[GRAPHS_MAX]; // the capture, or NONE
    struct {
        int capture; // or NONE
        struct point_set last;
    } execs[EXECS_MAX];
    struct point_set signals[TOKENS_MAX];
    bool signalled[TOKENS_MAX];
    struct {
        int value, point;
    } writes[STREAMS_MAX][WRITES_MAX];
    int write_counts[STREAMS_MAX];
    bool value_seen; // any, by any thread
    // Memory that operations allocate: lives, and of memory nodes in how many launches unfreed.
    bool born[BUFFERS_MAX], dead[BUFFERS_MAX], is_node[BUFFERS_MAX];
    bool taken[BLOCKS_MAX], given[BLOCKS_MAX];
    int take_points[BLOCKS_MAX], give_points[BLOCKS_MAX];
    int take_captures[BLOCKS_MAX];
} world;

__attribute__((format(printf, 1, 2))) static void refuse(const char *format, ...) {
    if (!world.judgement->valid)
        return;
    world.judgement->valid = false;
    const int length = snprintf(world.judgement->why, sizeof world.judgement->why, "%s: ",
                                operation_label(world.operation));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world.judgement->why + length, sizeof world.judgement->why - (size_t)length, format,
              arguments);
    va_end(arguments);
}

static const struct operation *current(void) {
    return &world.program->operations[world.operation];
}

// --- Points ---

static int point_add(const struct point_set *direct) {
    struct judgement *judgement = world.judgement;
    BASE_CHECK_LT(judgement->point_count, POINTS_MAX);
    const int index = judgement->point_count++;
    struct point *point = &judgement->points[index];
    *point = (struct point){.at = {world.operation, NONE},
                            .direct = *direct,
                            .before = *direct,
                            .alloc = NONE,
                            .free = NONE,
                            .enqueue = index,
                            .capture = NONE};
    for (int i = 0; i < index; ++i)
        if (point_set_has(direct, i))
            set_add(&point->before, &judgement->points[i].before);
    return index;
}

static void point_touch(int index, const struct access *access) {
    struct point *point = &world.judgement->points[index];
    BASE_CHECK_LT(point->access_count, ACCESSES_MAX);
    point->masks[point->access_count] = span_mask(&access->span);
    point->accesses[point->access_count++] = *access;
}

static void point_step(int index, const struct step *step) {
    struct access accesses[3];
    const int count = step_accesses(step, accesses);
    for (int i = 0; i < count; ++i)
        point_touch(index, &accesses[i]);
}

static void point_steps(int index, const struct operation *operation) {
    for (int i = 0; i < operation->step_count; ++i)
        point_step(index, &operation->steps[i]);
}

static int *host_of(int thread) { return &world.host[world.program->threads_strict ? thread : 0]; }

// The calling thread's next step; AFTER: what the call waits for.
static int host_step(const struct point_set *after) {
    int *host = host_of(current()->thread);
    struct point_set direct = set_of(*host);
    if (after != NULL)
        set_add(&direct, after);
    *host = point_add(&direct);
    return *host;
}

// --- Streams ---

static bool is_barred(int stream) { // by the legacy stream, and bars it
    const enum stream_kind kind = world.program->streams[stream].kind;
    return kind == BLOCKING || kind == PER_THREAD;
}

static int device_of(int stream) { return world.program->streams[stream].device; }

// What comes before the next work of STREAM.
static struct point_set stream_before(int stream) {
    struct point_set before = world.streams[stream].last;
    set_add(&before, &world.fences[device_of(stream)]);
    const bool is_legacy = world.program->streams[stream].kind == LEGACY;
    for (int i = 0; i < world.program->stream_count; ++i) {
        if (device_of(i) != device_of(stream))
            continue;
        const bool other_is_legacy = world.program->streams[i].kind == LEGACY;
        if ((is_legacy && is_barred(i)) || (other_is_legacy && is_barred(stream)))
            set_add(&before, &world.streams[i].last);
    }
    return before;
}

// What synchronising or querying STREAM means.
static struct point_set stream_covered(int stream) {
    return world.program->streams[stream].kind == LEGACY ? stream_before(stream)
                                                         : world.streams[stream].last;
}

static struct point_set device_covered(int device) {
    struct point_set covered = world.fences[device];
    for (int i = 0; i < world.program->stream_count; ++i)
        if (device_of(i) == device)
            set_add(&covered, &world.streams[i].last);
    return covered;
}

static bool stream_usable(int stream) {
    if (world.streams[stream].destroyed)
        refuse("the stream is destroyed");
    if (world.program->streams[stream].kind == PER_THREAD &&
        world.program->streams[stream].thread != current()->thread)
        refuse("the stream is another thread's");
    return world.judgement->valid;
}

// The legacy stream may not be used while one that it bars captures.
static bool legacy_usable(int stream) {
    for (int i = 0; i < world.program->stream_count; ++i)
        if (world.program->streams[stream].kind == LEGACY && is_barred(i) &&
            device_of(i) == device_of(stream) && world.streams[i].capture != NONE)
            refuse("906");
    return world.judgement->valid;
}

// Threads' own modes are global.
static bool host_call_allowed(void) {
    for (int i = 0; i < world.capture_count; ++i) {
        const struct capture *capture = &world.captures[i];
        if (capture->active && (capture->thread == current()->thread
                                    ? capture->mode != MODE_RELAXED
                                    : capture->mode == MODE_GLOBAL))
            refuse("900, an unsafe call");
    }
    return world.judgement->valid;
}

static void capture_add(struct capture *capture, int stream) {
    BASE_CHECK_LT(capture->count, CAPTURED_MAX);
    capture->nodes[capture->count] =
        (struct captured){world.operation, world.streams[stream].nodes};
    world.streams[stream].nodes = (uint64_t)1 << capture->count++;
}

static struct capture *capture_of(int stream) {
    const int capture = world.streams[stream].capture;
    return capture == NONE ? NULL : &world.captures[capture];
}

// The current operation enters STREAM. The point, or NONE if it is captured or illegal.
static int enqueue(int stream, const struct point_set *extra) {
    if (!stream_usable(stream))
        return NONE;
    if (capture_of(stream) != NULL) {
        capture_add(capture_of(stream), stream);
        return NONE;
    }
    if (!legacy_usable(stream))
        return NONE;
    const int call = host_step(NULL);
    struct point_set direct = stream_before(stream);
    const struct point_set called = set_of(call);
    set_add(&direct, &called);
    if (extra != NULL)
        set_add(&direct, extra);
    const int point = point_add(&direct);
    world.judgement->points[point].enqueue = call;
    world.streams[stream].last = set_of(point);
    return point;
}

static void host_waits_for(int point) {
    const struct point_set done = set_of(point);
    host_step(&done);
}

// --- Calls ---

static void submit_work(void) {
    const int point = enqueue(current()->stream, NULL);
    if (point != NONE)
        point_steps(point, current());
}

static void submit_fill(void) {
    const int point = enqueue(current()->stream, NULL);
    if (point == NONE)
        return;
    point_steps(point, current());
    const int buffer = current()->steps[0].to.buffer;
    if (current()->verb == FILL && world.program->buffers[buffer].place == PINNED)
        host_waits_for(point);
}

// The three ways of a copy: staged by the host and sent later; waited for; neither.
static void submit_copy(void) {
    const int stream = current()->stream;
    const struct step *step = &current()->steps[0];
    const bool is_plain = current()->verb == COPY;
    const enum place to = world.program->buffers[step->to.buffer].place;
    const enum place from = world.program->buffers[step->from[0].buffer].place;
    if (!stream_usable(stream))
        return;
    if (capture_of(stream) != NULL) {
        if (is_plain)
            refuse("a plain copy in a capture");
        else
            enqueue(stream, NULL);
        return;
    }
    if (!legacy_usable(stream) || (is_plain && !host_call_allowed()))
        return;
    if (from == PAGEABLE && to == ON_DEVICE) {
        const struct point_set covered = stream_covered(stream);
        const int staging = host_step(is_plain ? &covered : NULL);
        point_touch(staging, &(struct access){READS, true, step->from[0]});
        const int point = enqueue(stream, NULL);
        point_touch(point, &(struct access){WRITES, false, step->to});
        return;
    }
    const int point = enqueue(stream, NULL);
    if (point == NONE)
        return;
    point_step(point, step);
    const bool on_host = to != ON_DEVICE && from != ON_DEVICE;
    const bool on_device = to == ON_DEVICE && from == ON_DEVICE;
    if (on_host || (is_plain && !on_device))
        host_waits_for(point);
}

// Between all earlier and all later work of its devices.
static void submit_peer_copy(void) {
    const struct step *step = &current()->steps[0];
    const bool devices[DEVICES] = {
        current()->device == 0 || world.program->buffers[step->to.buffer].device == 0 ||
            world.program->buffers[step->from[0].buffer].device == 0,
        current()->device == 1 || world.program->buffers[step->to.buffer].device == 1 ||
            world.program->buffers[step->from[0].buffer].device == 1,
    };
    for (int i = 0; i < world.capture_count; ++i)
        if (world.captures[i].active)
            refuse("a plain peer copy during a capture");
    struct point_set direct = {{0}};
    for (int device = 0; device < DEVICES; ++device)
        if (devices[device]) {
            const struct point_set covered = device_covered(device);
            set_add(&direct, &covered);
        }
    const int call = host_step(NULL);
    const struct point_set called = set_of(call);
    set_add(&direct, &called);
    const int point = point_add(&direct);
    world.judgement->points[point].enqueue = call;
    point_step(point, step);
    for (int device = 0; device < DEVICES; ++device)
        if (devices[device])
            world.fences[device] = set_of(point);
}

static void submit_record(void) {
    const int stream = current()->stream, event = current()->event;
    if (!stream_usable(stream))
        return;
    if (!world.events[event].exists || world.events[event].device != device_of(stream)) {
        refuse("400, the event");
        return;
    }
    world.events[event].capture = world.streams[stream].capture;
    if (capture_of(stream) != NULL) {
        world.events[event].nodes = world.streams[stream].nodes;
        world.events[event].stream = stream;
        world.events[event].record = NONE;
        return;
    }
    world.events[event].record = enqueue(stream, NULL);
}

static void submit_wait(void) {
    const int stream = current()->stream, event = current()->event;
    if (!stream_usable(stream))
        return;
    if (!world.events[event].exists) {
        refuse("400, the event");
        return;
    }
    const int captured = world.events[event].capture;
    struct capture *mine = capture_of(stream);
    if (captured != NONE && !world.captures[captured].active) {
        refuse("open: an event of a finished capture");
    } else if (mine != NULL && captured != world.streams[stream].capture) {
        refuse("902 or 905, or an event that was never recorded");
    } else if (mine != NULL) {
        world.streams[stream].nodes |= world.events[event].nodes;
        if (world.events[event].stream != stream)
            mine->returned |= 1u << world.events[event].stream;
    } else if (captured != NONE) {
        if (world.program->streams[stream].kind == LEGACY)
            refuse("the legacy stream joins a capture");
        world.streams[stream].capture = captured;
        world.streams[stream].nodes = world.events[event].nodes;
        world.captures[captured].streams |= 1u << stream;
        world.captures[captured].returned |= 1u << world.events[event].stream;
    } else if (world.events[event].record != NONE) {
        const struct point_set recorded = set_of(world.events[event].record);
        enqueue(stream, &recorded);
    }
}

// A wait of the host for COVERED, or a query about it.
static void host_observes(const struct point_set *covered) {
    const int operation = world.operation;
    if (!verb_queries(current()->verb)) {
        host_step(covered);
        return;
    }
    const int last = *host_of(current()->thread);
    struct point_set known = set_of(last);
    if (last != NONE)
        set_add(&known, &world.judgement->points[last].before);
    world.judgement->known[operation] = set_within(covered, &known);
    // A value that was seen tells of the write, not that the stream is done with it.
    if (world.judgement->known[operation] && world.results[operation] != 0 && !world.value_seen)
        refuse("the query answers %d, but the host knows", world.results[operation]);
    host_step(world.results[operation] == 0 ? covered : NULL);
}

static void submit_event_call(void) {
    const int event = current()->event;
    if (!world.events[event].exists)
        refuse("400, the event");
    else if (world.events[event].capture != NONE)
        refuse("907");
    else if (host_call_allowed()) {
        const struct point_set recorded = set_of(world.events[event].record);
        host_observes(&recorded);
    }
}

static void submit_stream_call(void) {
    const int stream = current()->stream;
    if (!stream_usable(stream))
        return;
    if (capture_of(stream) != NULL)
        refuse("900, the stream captures");
    else if (legacy_usable(stream) && host_call_allowed()) {
        const struct point_set covered = stream_covered(stream);
        host_observes(&covered);
    }
}

static void submit_device_sync(void) {
    const int device = current()->device;
    for (int i = 0; i < world.program->stream_count; ++i)
        if (device_of(i) == device && world.streams[i].capture != NONE)
            refuse("900, a capture in the device");
    const struct point_set covered = device_covered(device);
    host_step(&covered);
}

static void submit_value(void) {
    const int stream = current()->stream;
    const int point = enqueue(stream, NULL);
    if (point == NONE) {
        refuse("a value in a capture");
        return;
    }
    int *count = &world.write_counts[current()->token];
    BASE_CHECK_LT(*count, WRITES_MAX);
    world.writes[current()->token][*count].value = current()->value;
    world.writes[current()->token][(*count)++].point = point;
}

static void submit_value_poll(void) {
    for (int i = 0; i < world.write_counts[current()->token]; ++i)
        if (world.writes[current()->token][i].value >= current()->value) {
            host_waits_for(world.writes[current()->token][i].point);
            world.value_seen = true;
            return;
        }
    refuse("nobody writes the value");
}

// --- Memory ---

static void submit_alloc(void) {
    const int buffer = current()->buffer;
    if (world.born[buffer])
        refuse("the buffer exists");
    if (current()->verb == ALLOC_ASYNC) {
        const int stream = current()->stream;
        if (!stream_usable(stream))
            return;
        world.is_node[buffer] = capture_of(stream) != NULL;
        if (world.is_node[buffer])
            capture_of(stream)->has_memory = true;
        const int point = enqueue(stream, NULL);
        if (point != NONE)
            world.judgement->points[point].alloc = buffer;
    } else if (host_call_allowed()) {
        world.judgement->points[host_step(NULL)].alloc = buffer;
    }
    world.born[buffer] = true;
}

// cudaFree waits for the streams of the memory's device, of page-locked memory for all.
static void submit_free(void) {
    const int buffer = current()->buffer;
    const struct buffer *memory = &world.program->buffers[buffer];
    if (!world.born[buffer] || world.dead[buffer]) {
        refuse("nothing to free");
        return;
    }
    if (current()->verb == FREE_ASYNC) {
        const int stream = current()->stream;
        if (!stream_usable(stream))
            return;
        // What a graph allocates the same graph frees here: all else has its own rules.
        if (world.is_node[buffer] != (capture_of(stream) != NULL))
            refuse("a graph's memory outside of it, or other memory in a capture");
        const int point = enqueue(stream, NULL);
        if (point != NONE)
            world.judgement->points[point].free = buffer;
    } else if (host_call_allowed()) {
        struct point_set covered = {{0}};
        for (int i = 0; i < world.program->stream_count; ++i)
            if (memory->place != ON_DEVICE || device_of(i) == memory->device)
                set_add(&covered, &world.streams[i].last);
        world.judgement->points[host_step(&covered)].free = buffer;
    }
    world.dead[buffer] = true;
}

static void submit_block_call(void) {
    const int block = current()->block;
    if (current()->verb == TAKE) {
        world.taken[block] = true;
        world.take_captures[block] = world.streams[current()->stream].capture;
        world.take_points[block] = host_step(NULL);
        return;
    }
    if (!world.taken[block] || world.given[block])
        refuse("the block is nobody's");
    if (current()->verb == GIVE) {
        world.given[block] = true;
        world.give_points[block] = host_step(NULL);
    }
}

// --- Captures and graphs ---

static void submit_begin(void) {
    const int stream = current()->stream;
    if (!stream_usable(stream))
        return;
    if (world.program->streams[stream].kind == LEGACY || capture_of(stream) != NULL) {
        refuse("900 or 401");
        return;
    }
    BASE_CHECK_LT(world.capture_count, CAPTURES_MAX);
    world.streams[stream].capture = world.capture_count;
    world.streams[stream].nodes = 0;
    world.captures[world.capture_count++] =
        (struct capture){.active = true,
                         .mode = (enum capture_mode)current()->value,
                         .thread = current()->thread,
                         .origin = stream,
                         .streams = 1u << stream};
}

// A graph that the program builds is a capture without streams.
static void submit_graph_create(void) {
    BASE_CHECK_LT(world.capture_count, CAPTURES_MAX);
    world.graphs[current()->graph] = world.capture_count++;
}

static void submit_node(void) {
    if (world.graphs[current()->graph] == NONE) {
        refuse("no graph");
        return;
    }
    struct capture *graph = &world.captures[world.graphs[current()->graph]];
    struct captured node = {world.operation, 0};
    for (int i = 0; i < current()->dependency_count; ++i) {
        int found = NONE;
        for (int k = 0; k < graph->count; ++k)
            if (graph->nodes[k].operation == current()->dependencies[i])
                found = k;
        if (found == NONE)
            refuse("a dependency that is no node");
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

static void submit_end(void) {
    const int stream = current()->stream;
    struct capture *capture = capture_of(stream);
    if (!stream_usable(stream))
        return;
    if (capture == NULL || capture->origin != stream || capture->thread != current()->thread) {
        refuse("401, 903 or 908");
        return;
    }
    const uint64_t reached = captured_before(capture, world.streams[stream].nodes);
    for (int i = 0; i < world.program->stream_count; ++i) {
        if (!(capture->streams >> i & 1))
            continue;
        if (world.streams[i].nodes & ~reached)
            refuse("904");
        if (i != stream && !(capture->returned >> i & 1))
            refuse("open: a fork that nobody waited for");
        world.graphs[current()->graph] = world.streams[i].capture;
        world.streams[i].capture = NONE;
    }
    capture->active = false;
}

static void submit_instantiate(void) {
    const int capture = world.graphs[current()->graph];
    if (capture == NONE) {
        refuse("no graph");
        return;
    }
    if (world.captures[capture].has_memory && world.captures[capture].instances++ > 0)
        refuse("a second executable of memory nodes");
    world.execs[current()->exec].capture = capture;
    world.execs[current()->exec].last = (struct point_set){{0}};
}

static void submit_launch(void) {
    const int stream = current()->stream, exec = current()->exec;
    if (!stream_usable(stream) || !legacy_usable(stream))
        return;
    if (world.execs[exec].capture == NONE || capture_of(stream) != NULL) {
        refuse("no executable, or 900");
        return;
    }
    const struct capture *capture = &world.captures[world.execs[exec].capture];
    const int start = enqueue(stream, &world.execs[exec].last);
    const int call = world.judgement->points[start].enqueue;
    struct point_set all = set_of(start);
    int points[CAPTURED_MAX];
    for (int i = 0; i < capture->count; ++i) {
        struct point_set direct = set_of(start);
        for (int k = 0; k < i; ++k)
            if (capture->nodes[i].before >> k & 1) {
                const struct point_set one = set_of(points[k]);
                set_add(&direct, &one);
            }
        points[i] = point_add(&direct);
        struct point *point = &world.judgement->points[points[i]];
        const struct operation *operation =
            &world.program->operations[capture->nodes[i].operation];
        point->at.node = capture->nodes[i].operation;
        point->enqueue = call;
        point->capture = world.execs[exec].capture;
        point_steps(points[i], operation);
        if (operation->verb == ALLOC_ASYNC)
            point->alloc = operation->buffer;
        if (operation->verb == FREE_ASYNC)
            point->free = operation->buffer;
        const struct point_set one = set_of(points[i]);
        set_add(&all, &one);
    }
    const int end = point_add(&all);
    world.judgement->points[end].enqueue = call;
    world.streams[stream].last = set_of(end);
    world.execs[exec].last = set_of(end);
}

// --- One call ---

static void submit(void) {
    const struct operation *operation = current();
    switch (operation->verb) {
    case KERNEL:
    case HOST_FUNCTION:
    case COPY_PEER_ASYNC: submit_work(); break;
    case COPY:
    case COPY_ASYNC: submit_copy(); break;
    case COPY_PEER: submit_peer_copy(); break;
    case FILL:
    case FILL_ASYNC: submit_fill(); break;
    case HOST_WRITE:
    case HOST_READ: point_steps(host_step(NULL), operation); break;
    case RECORD: submit_record(); break;
    case WAIT: submit_wait(); break;
    case EVENT_SYNC:
    case EVENT_QUERY:
    case EVENT_POLL: submit_event_call(); break;
    case EVENT_CREATE:
        if (world.events[operation->event].exists)
            refuse("the event exists");
        world.events[operation->event].exists = true;
        world.events[operation->event].device = operation->device;
        world.events[operation->event].record = world.events[operation->event].capture = NONE;
        break;
    case EVENT_DESTROY:
        if (!world.events[operation->event].exists)
            refuse("400, the event");
        world.events[operation->event].exists = false;
        break;
    case STREAM_SYNC:
    case STREAM_QUERY:
    case STREAM_POLL: submit_stream_call(); break;
    case STREAM_DESTROY:
        if (stream_usable(operation->stream) && capture_of(operation->stream) != NULL)
            refuse("a capturing stream is destroyed");
        world.streams[operation->stream].destroyed = true;
        break;
    case DEVICE_SYNC: submit_device_sync(); break;
    case SIGNAL: {
        world.signals[operation->token] = set_of(*host_of(operation->thread));
        world.signalled[operation->token] = true;
        break;
    }
    case AWAIT:
        if (!world.signalled[operation->token])
            refuse("nobody signals");
        else
            host_step(&world.signals[operation->token]);
        break;
    case ALLOC:
    case HOST_ALLOC:
    case ALLOC_ASYNC: submit_alloc(); break;
    case FREE:
    case HOST_FREE:
    case FREE_ASYNC: submit_free(); break;
    case TAKE:
    case USE:
    case GIVE: submit_block_call(); break;
    case WRITE_VALUE: submit_value(); break;
    case VALUE_POLL: submit_value_poll(); break;
    case GRAPH_CREATE: submit_graph_create(); break;
    case ADD_KERNEL: submit_node(); break;
    case BEGIN: submit_begin(); break;
    case END: submit_end(); break;
    case INSTANTIATE: submit_instantiate(); break;
    case LAUNCH: submit_launch(); break;
    case EXEC_DESTROY:
        if (world.execs[operation->exec].capture == NONE)
            refuse("no executable");
        (void)host_call_allowed();
        world.execs[operation->exec].capture = NONE;
        break;
    case GRAPH_DESTROY:
        if (world.graphs[operation->graph] == NONE)
            refuse("no graph");
        world.graphs[operation->graph] = NONE;
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
            if (world.program->buffers[span->buffer].allocated &&
                (!world.born[span->buffer] || world.dead[span->buffer]))
                refuse("the buffer does not exist");
            if (world.is_node[span->buffer] &&
                (operation->stream == NONE || capture_of(operation->stream) == NULL))
                refuse("a graph's memory outside of it");
            if (span->block != NONE && !world.taken[span->block])
                refuse("the block does not exist");
        }
    }
}

static bool is_performed(const struct operation *operation) {
    if (operation->dropped)
        return false;
    if (operation->guard == NONE)
        return true;
    if (world.program->operations[operation->guard].dropped) {
        refuse("it depends on no query");
        return false;
    }
    return (world.results[operation->guard] == 0) == operation->guard_success;
}

static void world_start(const struct program *program, const int *results,
                        struct judgement *judgement) {
    memset(&world, 0, sizeof world);
    world.program = program;
    world.results = results;
    world.judgement = judgement;
    judgement->valid = true;
    judgement->point_count = judgement->pair_count = 0;
    judgement->why[0] = '\0';
    judgement->carries_undefined = judgement->spoils_pageable = false;
    memset(judgement->known, 0, sizeof judgement->known);
    for (int i = 0; i < STREAMS_MAX; ++i)
        world.streams[i].capture = NONE;
    for (int i = 0; i < THREADS; ++i)
        world.host[i] = NONE;
    for (int i = 0; i < EVENTS_MAX; ++i) {
        world.events[i].exists = i < program->event_count;
        world.events[i].device = program->event_devices[i];
        world.events[i].record = world.events[i].capture = NONE;
    }
    for (int i = 0; i < GRAPHS_MAX; ++i)
        world.graphs[i] = NONE;
    for (int i = 0; i < EXECS_MAX; ++i)
        world.execs[i].capture = NONE;
}

// --- Pairs ---

static bool ordered(int first, int second) {
    return point_set_has(&world.judgement->points[second].before, first);
}

bool closure_unordered(const struct judgement *judgement, int first, int second) {
    return first != second && !point_set_has(&judgement->points[second].before, first) &&
           !point_set_has(&judgement->points[first].before, second);
}

static void pair_add_kind(enum pair_kind kind, struct place_in_program first,
                          struct place_in_program second, bool is_minor) {
    struct judgement *judgement = world.judgement;
    const struct pair pair = {kind, first, second, is_minor};
    for (int i = 0; i < judgement->pair_count; ++i)
        if (pair_equal(&judgement->pairs[i], &pair)) {
            judgement->pairs[i].is_minor = judgement->pairs[i].is_minor && is_minor;
            return;
        }
    BASE_CHECK_LT(judgement->pair_count, PAIRS_MAX);
    judgement->pairs[judgement->pair_count++] = pair;
}

static void pair_add(enum pair_kind kind, struct place_in_program first,
                     struct place_in_program second) {
    pair_add_kind(kind, first, second, false);
}

// How two points conflict in BUFFER: a bit for each kind.
static uint32_t conflicts_in(const struct point *a, const struct point *b, int buffer) {
    uint32_t found = 0;
    for (int i = 0; i < a->access_count; ++i)
        for (int k = 0; k < b->access_count; ++k) {
            const struct access *one = &a->accesses[i], *other = &b->accesses[k];
            if (one->span.buffer != buffer || other->span.buffer != buffer ||
                !(a->masks[i] & b->masks[k]) || !modes_conflict(one->mode, other->mode))
                continue;
            const bool reused = one->span.block != NONE && other->span.block != NONE &&
                                one->span.block != other->span.block;
            found |= 1u << (reused                                          ? PAIR_REUSE
                            : one->mode == READS || other->mode == READS ? PAIR_READ_WRITE
                                                                         : PAIR_WRITE_WRITE);
        }
    return found;
}

// Reuse tells most, two writes more than a read and a write.
static void add_conflicts(const struct point *first, const struct point *second,
                          uint32_t kinds) {
    static const enum pair_kind ranked[] = {PAIR_REUSE, PAIR_WRITE_WRITE, PAIR_READ_WRITE};
    bool is_minor = false;
    for (int i = 0; i < 3; ++i)
        if (kinds >> ranked[i] & 1) {
            pair_add_kind(ranked[i], first->at, second->at, is_minor);
            is_minor = true;
        }
}

static void find_conflicts(void) {
    const struct judgement *judgement = world.judgement;
    for (int i = 0; i < judgement->point_count; ++i)
        for (int k = i + 1; k < judgement->point_count; ++k) {
            const struct point *first = &judgement->points[i], *second = &judgement->points[k];
            if (first->access_count == 0 || second->access_count == 0 || ordered(i, k))
                continue;
            for (int buffer = 0; buffer < world.program->buffer_count; ++buffer)
                add_conflicts(first, second, conflicts_in(first, second, buffer));
        }
}

// Whether a life of BUFFER that began before POINT began after END did.
static bool born_again(int buffer, int end, int point) {
    for (int i = 0; i < world.judgement->point_count; ++i)
        if (world.judgement->points[i].alloc == buffer && ordered(i, point) && ordered(end, i))
            return true;
    return false;
}

// Accesses outside of the life of memory that operations allocate.
static void find_outside_life(int index, int buffer) {
    const struct judgement *judgement = world.judgement;
    const struct point *point = &judgement->points[index];
    int first = NONE;
    bool born = false;
    for (int i = 0; i < judgement->point_count; ++i)
        if (judgement->points[i].alloc == buffer) {
            first = first == NONE ? i : first;
            born = born || ordered(i, index);
        }
    if (!born && first != NONE)
        pair_add(PAIR_USE_BEFORE_ALLOC, judgement->points[first].at, point->at);
    for (int i = 0; i < judgement->point_count; ++i)
        if (judgement->points[i].free == buffer && !ordered(index, i) &&
            !born_again(buffer, i, index))
            pair_add(PAIR_USE_AFTER_FREE, point->at, judgement->points[i].at);
}

static void find_outside_block(const struct point *point, const struct span *span) {
    const int block = span->block;
    const struct judgement *judgement = world.judgement;
    if (point->capture == NONE) {
        if (world.given[block] && !ordered(point->enqueue, world.give_points[block]))
            pair_add(PAIR_USE_AFTER_FREE, point->at,
                     judgement->points[world.give_points[block]].at);
        return;
    }
    for (int i = 0; i < world.program->block_count; ++i) {
        const struct block *other = &world.program->blocks[i];
        const uint32_t cells = ((1u << other->size) - 1) << other->start;
        if (i != block && world.taken[i] && world.take_captures[i] != point->capture &&
            other->buffer == span->buffer && (cells & span_mask(span)) &&
            ordered(world.take_points[i], point->enqueue) &&
            !(world.given[i] && ordered(world.give_points[i], point->enqueue)))
            pair_add(PAIR_GRAPH_MEMORY, point->at, judgement->points[world.take_points[i]].at);
    }
}

static void find_outside(void) {
    const struct judgement *judgement = world.judgement;
    for (int i = 0; i < judgement->point_count; ++i) {
        const struct point *point = &judgement->points[i];
        for (int k = 0; k < point->access_count; ++k) {
            const struct span *span = &point->accesses[k].span;
            if (world.program->buffers[span->buffer].allocated)
                find_outside_life(i, span->buffer);
            if (span->block != NONE)
                find_outside_block(point, span);
        }
    }
}

// --- Bytes that nobody wrote, in the order of submission ---
//
// It is one of the orders that CUDA allows, and the only one where nothing is unordered.

static struct {
    bool defined[BUFFERS_MAX][CELLS];
    uint32_t writers[BUFFERS_MAX][CELLS]; // blocks through which a cell was written
} contents;

static bool cell_defined(const struct span *span, int index) {
    const int cell = span_cell(span, index);
    return contents.defined[span->buffer][cell] &&
           (span->block == NONE || (contents.writers[span->buffer][cell] >> span->block & 1));
}

static void cell_write(const struct span *span, int index, bool defined) {
    const int cell = span_cell(span, index);
    contents.defined[span->buffer][cell] = defined;
    if (span->block != NONE)
        contents.writers[span->buffer][cell] |= 1u << span->block;
}

static void step_define(const struct step *step, struct place_in_program at) {
    struct access accesses[3];
    const int count = step_accesses(step, accesses);
    bool complete = true;
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < span_size(&accesses[i].span); ++k) {
            if (accesses[i].mode == WRITES || cell_defined(&accesses[i].span, k))
                continue;
            complete = complete && accesses[i].quiet;
            world.judgement->carries_undefined |= accesses[i].quiet;
        }
    if (!complete)
        pair_add(PAIR_UNINITIALISED, at, (struct place_in_program){NONE, NONE});
    if (step->verb == STEP_READ)
        return;
    bool defined[CELLS];
    for (int i = 0; i < span_size(&step->to); ++i)
        defined[i] = step->verb == STEP_SET ||
                     (step->verb == STEP_ATOMIC
                          ? cell_defined(&step->to, i)
                          : cell_defined(&step->from[0], i) &&
                                (step->verb != STEP_SUM || cell_defined(&step->from[1], i)));
    for (int i = 0; i < span_size(&step->to); ++i) {
        cell_write(&step->to, i, defined[i]);
        world.judgement->spoils_pageable |=
            !defined[i] && world.program->buffers[step->to.buffer].place == PAGEABLE;
    }
}

static void operation_define(const struct operation *operation, struct place_in_program at) {
    for (int i = 0; i < operation->step_count; ++i)
        step_define(&operation->steps[i], at);
    if (operation->verb == ALLOC || operation->verb == HOST_ALLOC ||
        operation->verb == ALLOC_ASYNC || operation->verb == FREE ||
        operation->verb == HOST_FREE || operation->verb == FREE_ASYNC)
        for (int i = 0; i < CELLS; ++i)
            contents.defined[operation->buffer][i] = false;
}

// Points stand in the order of submission; those of one operation that touch nothing do no harm.
static void find_uninitialised(void) {
    memset(&contents, 0, sizeof contents);
    for (int i = 0; i < world.program->buffer_count; ++i)
        for (int k = 0; k < CELLS; ++k)
            contents.defined[i][k] = world.program->buffers[i].defined;
    struct place_in_program last = {NONE, NONE};
    for (int i = 0; i < world.judgement->point_count; ++i) {
        const struct point *point = &world.judgement->points[i];
        const bool is_life = point->alloc != NONE || point->free != NONE;
        if ((point->access_count == 0 && !is_life) || same_place(point->at, last))
            continue; // a staged copy has two points, and is one
        last = point->at;
        const int index = point->at.node != NONE ? point->at.node : point->at.operation;
        operation_define(&world.program->operations[index], point->at);
    }
}

void closure_judge(const struct program *program, const int results[OPERATIONS_MAX],
                   struct judgement *judgement) {
    world_start(program, results, judgement);
    for (int i = 0; i < program->count && judgement->valid; ++i) {
        world.operation = i;
        if (!is_performed(&program->operations[i]))
            continue;
        check_names(&program->operations[i]);
        submit();
    }
    for (int i = 0; i < world.capture_count; ++i)
        if (world.captures[i].active)
            refuse("a capture does not end");
    if (!judgement->valid)
        return;
    find_conflicts();
    find_outside();
    find_uninitialised();
}
