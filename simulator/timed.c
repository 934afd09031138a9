// The timed schedule: a discrete-event simulation on a virtual clock.
//
// The host has a time, which its calls move on by what they cost, and a wait moves to when what it
// waits for is complete. One host clock for all threads. An operation starts when it is ready, its
// call's launch latency has passed and its resource is free: one of so many kernel slots, or a copy
// engine; records, waits and host functions need none. Who queues for a resource gets it by
// priority of the stream, then by age. What an operation does, it does at its end, and ends come in
// order of time; nothing runs that would end after the host's time.
//
// Beside each time go two bounds: what it would be with the low and the high costs, had everything
// come in the same order (cost.h).
//
// Not modelled: kernels that share bandwidth slow each other down; a kernel's share of the device.
#include "simulator/cost.h"
#include "simulator/engine.h"
#include "simulator/schedule.h"

#include <stdlib.h>
#include <string.h>

enum resource {
    RESOURCE_NONE,
    RESOURCE_KERNELS,
    RESOURCE_TO_DEVICE,
    RESOURCE_TO_HOST,
    RESOURCE_PEER,
    RESOURCE_COUNT,
};

// A heap of streams. Each stream stands in one at most.
struct heap {
    struct sim__stream **streams;
    uint32_t count, size;
    bool (*is_above)(const struct sim__stream *a, const struct sim__stream *b);
};

// Operations under way, the first to end on top; and those that queue for a resource.
static bool ends_first(const struct sim__stream *a, const struct sim__stream *b) {
    if (a->schedule.end_ns != b->schedule.end_ns)
        return a->schedule.end_ns < b->schedule.end_ns;
    return a->number < b->number;
}

static bool queues_first(const struct sim__stream *a, const struct sim__stream *b) {
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->schedule.ready_ns != b->schedule.ready_ns)
        return a->schedule.ready_ns < b->schedule.ready_ns;
    return a->number < b->number;
}

static struct heap running = {.is_above = ends_first};
static struct resource_state {
    uint32_t busy;
    struct heap queue;
} resources[SIM_DEVICE_COUNT_MAX][RESOURCE_COUNT];

// When devices were busy since sim_busy_begin: pieces that neither meet nor overlap, in order.
struct piece {
    uint64_t begin_ns, end_ns;
};
static struct {
    bool on;
    uint64_t since_ns;
    struct piece *pieces;
    size_t count, size;
} busy;

static uint64_t event_ns;            // when what is being processed happens
static struct sim__bounds event_bounds;
static struct sim__stream *in_turn;  // whose first operation is at its end
static uint64_t polled_ns;           // when a query last said "not ready"

static void heap_place(struct heap *heap, uint32_t at, struct sim__stream *stream) {
    heap->streams[at] = stream;
    stream->schedule.heap_place = at + 1;
}

static void heap_settle(struct heap *heap, uint32_t at, struct sim__stream *stream) {
    for (; at > 0 && heap->is_above(stream, heap->streams[(at - 1) / 2]); at = (at - 1) / 2)
        heap_place(heap, at, heap->streams[(at - 1) / 2]);
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->is_above(heap->streams[child + 1], heap->streams[child]))
            ++child;
        if (!heap->is_above(heap->streams[child], stream))
            break;
        heap_place(heap, at, heap->streams[child]);
        at = child;
    }
    heap_place(heap, at, stream);
}

static void heap_add(struct heap *heap, struct sim__stream *stream) {
    if (heap->count == heap->size) {
        heap->size = heap->size == 0 ? 64 : 2 * heap->size;
        heap->streams = realloc(heap->streams, heap->size * sizeof(struct sim__stream *));
        if (heap->streams == NULL)
            sim__host_limit("out of host memory for %u ready streams", heap->size);
    }
    heap_settle(heap, heap->count++, stream);
}

static void heap_remove(struct heap *heap, struct sim__stream *stream) {
    const uint32_t at = stream->schedule.heap_place - 1;
    struct sim__stream *last = heap->streams[--heap->count];
    stream->schedule.heap_place = 0;
    if (last != stream)
        heap_settle(heap, at, last);
}

static enum resource resource_of(const struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_KERNEL || operation->kind == SIM__OPERATION_FILL)
        return RESOURCE_KERNELS;
    if (operation->kind != SIM__OPERATION_COPY)
        return RESOURCE_NONE;
    const struct sim__copy *copy = &operation->copy;
    const uint32_t engines = sim__costs[SIM__TYPICAL].copy_engines;
    if (copy->peer)
        return engines >= 3   ? RESOURCE_PEER
               : engines == 2 ? RESOURCE_TO_HOST
                              : RESOURCE_TO_DEVICE;
    if (copy->destination_place == SIM__PLACE_DEVICE)
        return copy->source_place == SIM__PLACE_DEVICE ? RESOURCE_KERNELS : RESOURCE_TO_DEVICE;
    if (copy->source_place == SIM__PLACE_DEVICE)
        return engines >= 2 ? RESOURCE_TO_HOST : RESOURCE_TO_DEVICE;
    return RESOURCE_NONE;
}

static uint32_t resource_size(enum resource resource) {
    return resource == RESOURCE_NONE      ? UINT32_MAX
           : resource == RESOURCE_KERNELS ? sim__costs[SIM__TYPICAL].concurrent_kernels
                                          : 1;
}

static struct resource_state *resource_state(const struct sim__stream *stream) {
    return &resources[stream->device][stream->schedule.resource];
}

static uint64_t latest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static struct sim__bounds bounds_latest(struct sim__bounds a, struct sim__bounds b) {
    return (struct sim__bounds){latest(a.low_ns, b.low_ns), latest(a.high_ns, b.high_ns)};
}

static void now_move(uint64_t ns, struct sim__bounds bounds) {
    sim__state.now_ns = latest(sim__state.now_ns, ns);
    sim__state.now_bounds = bounds_latest(sim__state.now_bounds, bounds);
}

static void event_is_now(void) {
    event_ns = sim__state.now_ns;
    event_bounds = sim__state.now_bounds;
}

static void start(struct sim__stream *stream, uint64_t start_ns, struct sim__bounds start_bounds) {
    const struct sim__operation *first = sim__engine_first(stream);
    ++resource_state(stream)->busy;
    stream->schedule.started = true;
    stream->schedule.start_ns = start_ns;
    stream->schedule.end_ns = start_ns + sim__cost_operation(first, SIM__TYPICAL);
    stream->schedule.end_bounds = (struct sim__bounds){
        start_bounds.low_ns + sim__cost_operation(first, SIM__LOW),
        start_bounds.high_ns + sim__cost_operation(first, SIM__HIGH),
    };
    heap_add(&running, stream);
}

// What lies between what an operation waited for and its start. A launch of a graph has it before
// each of its nodes that does something, and not at its own ends.
static uint64_t gap_of(enum sim__level level, const struct sim__stream *stream,
                       const struct sim__operation *operation) {
    switch (operation->kind) {
    case SIM__OPERATION_LAUNCH_BEGIN:
    case SIM__OPERATION_LAUNCH_END: return 0;
    case SIM__OPERATION_INTERNAL:
        return stream->launch != NULL ? 0 : sim__costs[level].operation_gap_ns;
    default:
        return stream->launch != NULL ? sim__costs[level].graph_node_gap_ns
                                      : sim__costs[level].operation_gap_ns;
    }
}

// When an operation is ready that was submitted at EARLIEST and that nothing keeps since EVENT.
static uint64_t ready_at(enum sim__level level, const struct sim__stream *stream,
                         const struct sim__operation *operation, uint64_t earliest,
                         uint64_t event) {
    return latest(earliest + sim__costs[level].launch_latency_ns,
                  latest(event, earliest) + gap_of(level, stream, operation));
}

static void offer(struct sim__stream *stream) {
    const struct sim__operation *first = sim__engine_first(stream);
    const struct sim__bounds earliest = first->earliest_bounds;
    stream->schedule.ready_ns =
        ready_at(SIM__TYPICAL, stream, first, first->earliest_ns, event_ns);
    stream->schedule.ready_bounds = (struct sim__bounds){
        ready_at(SIM__LOW, stream, first, earliest.low_ns, event_bounds.low_ns),
        ready_at(SIM__HIGH, stream, first, earliest.high_ns, event_bounds.high_ns),
    };
    stream->schedule.resource = (uint8_t)resource_of(first);
    stream->schedule.started = false;
    struct resource_state *state = resource_state(stream);
    if (state->busy < resource_size(stream->schedule.resource))
        start(stream, stream->schedule.ready_ns, stream->schedule.ready_bounds);
    else
        heap_add(&state->queue, stream);
}

// The stream leaves its resource to whoever is next.
static void resource_leave(struct sim__stream *stream) {
    struct resource_state *state = resource_state(stream);
    --state->busy;
    if (state->queue.count == 0)
        return;
    struct sim__stream *next = state->queue.streams[0];
    heap_remove(&state->queue, next);
    start(next, latest(event_ns, next->schedule.ready_ns),
          bounds_latest(event_bounds, next->schedule.ready_bounds));
}

// Runs out of turn and takes no time, or is held: as if it had not been offered.
static void withdraw(struct sim__stream *stream) {
    if (stream == in_turn) {
        in_turn = NULL;
        return;
    }
    event_is_now();
    if (stream->schedule.heap_place > 0 && stream->schedule.started) {
        heap_remove(&running, stream);
        resource_leave(stream);
    } else if (stream->schedule.heap_place > 0) {
        heap_remove(&resource_state(stream)->queue, stream);
    }
    stream->schedule.start_ns = sim__state.now_ns;
    stream->schedule.end_ns = sim__state.now_ns;
    stream->schedule.end_bounds = sim__state.now_bounds;
}

static void busy_insert(size_t first, size_t last, struct piece piece) {
    if (busy.count == busy.size) {
        busy.size = busy.size == 0 ? 64 : 2 * busy.size;
        busy.pieces = realloc(busy.pieces, busy.size * sizeof *busy.pieces);
        if (busy.pieces == NULL)
            sim__host_limit("out of host memory for %zu busy times", busy.size);
    }
    memmove(busy.pieces + first + 1, busy.pieces + last,
            (busy.count - last) * sizeof *busy.pieces);
    busy.count = busy.count + 1 - (last - first);
    busy.pieces[first] = piece;
}

// The stream's first operation, as far as it has come. Mostly that is the last piece or behind it.
static void busy_add(const struct sim__stream *stream) {
    struct piece piece = {latest(stream->schedule.start_ns, busy.since_ns),
                          stream->schedule.end_ns};
    if (piece.end_ns > sim__state.now_ns)
        piece.end_ns = sim__state.now_ns;
    if (!busy.on || stream->schedule.resource == RESOURCE_NONE || piece.begin_ns >= piece.end_ns)
        return;
    size_t last = busy.count;
    while (last > 0 && busy.pieces[last - 1].begin_ns > piece.end_ns)
        --last;
    size_t first = last;
    for (; first > 0 && busy.pieces[first - 1].end_ns >= piece.begin_ns; --first) {
        if (busy.pieces[first - 1].begin_ns < piece.begin_ns)
            piece.begin_ns = busy.pieces[first - 1].begin_ns;
        piece.end_ns = latest(piece.end_ns, busy.pieces[first - 1].end_ns);
    }
    busy_insert(first, last, piece);
}

void sim_busy_begin(void) {
    base_mutex_lock(&sim__state.lock);
    busy.on = sim__schedule == &sim__schedule_timed;
    busy.since_ns = sim__state.now_ns;
    busy.count = 0;
    base_mutex_unlock(&sim__state.lock);
}

uint64_t sim_busy_ns(void) {
    uint64_t total_ns = 0;
    base_mutex_lock(&sim__state.lock);
    for (uint32_t i = 0; busy.on && i < running.count; ++i)
        busy_add(running.streams[i]);
    for (size_t i = 0; busy.on && i < busy.count; ++i)
        total_ns += busy.pieces[i].end_ns - busy.pieces[i].begin_ns;
    base_mutex_unlock(&sim__state.lock);
    return total_ns;
}

// The first end of all.
static void advance(void) {
    struct sim__stream *stream = running.streams[0];
    heap_remove(&running, stream);
    if (busy.on)
        busy_add(stream);
    event_ns = stream->schedule.end_ns;
    event_bounds = stream->schedule.end_bounds;
    resource_leave(stream);
    in_turn = stream;
    sim__engine_run_first(stream);
}

static void point(void) {
    while (running.count > 0 && running.streams[0]->schedule.end_ns <= sim__state.now_ns)
        advance();
    event_is_now();
}

static void force(struct sim__position position) {
    while (!sim__position_complete(position)) {
        if (running.count > 0) {
            sim__state.now_ns = latest(sim__state.now_ns, running.streams[0]->schedule.end_ns);
            advance();
        } else {
            sim__engine_run_goal(position); // what is left is held, or runs in another thread
        }
    }
    event_is_now();
}

// What is complete by the clock can end later with high costs: then the host waits for it, in the
// bounds alone. Of what a stream ran, the end of the last is known.
static void learned(struct sim__position position) {
    if (position.stream != NULL && position.sequence == position.stream->completed)
        now_move(sim__state.now_ns, position.stream->schedule.end_bounds);
}

// The query's own cost moves the clock; if queries cost nothing, to the next end.
static void poll(struct sim__position position) {
    (void)position;
    if (polled_ns == sim__state.now_ns && running.count > 0) {
        now_move(running.streams[0]->schedule.end_ns, running.streams[0]->schedule.end_bounds);
        point();
    }
    polled_ns = sim__state.now_ns;
}

static void reset(void) {
    running.count = 0;
    busy.on = false;
    for (int i = 0; i < SIM_DEVICE_COUNT_MAX; ++i)
        for (int j = 0; j < RESOURCE_COUNT; ++j) {
            resources[i][j].busy = 0;
            resources[i][j].queue.count = 0;
            resources[i][j].queue.is_above = queues_first;
        }
    sim__state.now_bounds = (struct sim__bounds){sim__state.now_ns, sim__state.now_ns};
    event_is_now();
    polled_ns = UINT64_MAX;
    in_turn = NULL;
}

const struct sim__schedule sim__schedule_timed = {
    .name = "timed",
    .reset = reset,
    .offer = offer,
    .withdraw = withdraw,
    .point = point,
    .force = force,
    .poll = poll,
    .learned = learned,
};
