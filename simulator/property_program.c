// The generator of property_program.h.
#include "simulator/property_program.h"

#include "base/check.h"

#include <string.h>

// Who acts: streams, and beside them the host, and plain peer copies.
#define HOST STREAMS
#define FENCE (STREAMS + 1)
#define ACTORS (STREAMS + 2)

// --- What orders what: vector clocks ---

struct clock {
    int time[ACTORS]; // how many operations of each stream and fence, and steps of the host, it saw
};

// The last accesses of a cell by each stream and the host.
struct cell {
    int written[ACTORS], read[ACTORS], updated[ACTORS]; // 0: never
};

static struct world {
    struct clock streams[STREAMS], host, fence, events[EVENTS];
    bool recorded[EVENTS];
    struct cell cells[BUFFERS][CELLS];
} world;

static void clock_join(struct clock *into, const struct clock *other) {
    for (int i = 0; i < ACTORS; ++i)
        if (other->time[i] > into->time[i])
            into->time[i] = other->time[i];
}

bool stream_is_blocking(int stream) {
    return stream >= BLOCKING_FIRST && stream <= BLOCKING_LAST;
}

// The clock of an operation enqueued in STREAM now.
static struct clock clock_enqueued(int stream) {
    struct clock clock = world.streams[stream];
    clock_join(&clock, &world.host);
    clock_join(&clock, &world.fence);
    if (stream == 0)
        for (int i = BLOCKING_FIRST; i <= BLOCKING_LAST; ++i)
            clock_join(&clock, &world.streams[i]);
    else if (stream_is_blocking(stream))
        clock_join(&clock, &world.streams[0]);
    return clock;
}

// The clock of a plain peer copy.
static struct clock clock_fenced(void) {
    struct clock clock = world.host;
    clock_join(&clock, &world.fence);
    for (int i = 0; i < STREAMS; ++i)
        clock_join(&clock, &world.streams[i]);
    return clock;
}

static void clock_of_sync(struct clock *host, int stream) {
    clock_join(host, &world.streams[stream]);
    if (stream != 0)
        return;
    clock_join(host, &world.fence);
    for (int i = BLOCKING_FIRST; i <= BLOCKING_LAST; ++i)
        clock_join(host, &world.streams[i]);
}

enum access { READ, WRITE, UPDATE };

static int span_cell(const struct span *span, int i) {
    return span->start + i / span->length * span->stride + i % span->length;
}
static int span_size(const struct span *span) { return span->length * span->count; }

// The first actor whose access conflicts with this one and is not in CLOCK; -1: none.
static int conflict(const struct span *span, enum access access, const struct clock *clock,
                    int self) {
    for (int i = 0; i < span_size(span); ++i) {
        const struct cell *cell = &world.cells[span->buffer][span_cell(span, i)];
        for (int other = 0; other < ACTORS; ++other) {
            if (other == self)
                continue;
            if (cell->written[other] > clock->time[other] ||
                (access != READ && cell->read[other] > clock->time[other]) ||
                (access != UPDATE && cell->updated[other] > clock->time[other]))
                return other;
        }
    }
    return -1;
}

static void note_access(const struct span *span, enum access access, int self, int time) {
    for (int i = 0; i < span_size(span); ++i) {
        struct cell *cell = &world.cells[span->buffer][span_cell(span, i)];
        *(access == READ ? &cell->read[self]
          : access == WRITE ? &cell->written[self]
                            : &cell->updated[self]) = time;
    }
}

bool operation_is_work(const struct operation *operation) {
    return operation->kind <= HOST_FUNCTION;
}
static bool reads_from(enum kind kind) {
    return kind == MIX || kind == COPY || kind == PLAIN_COPY || kind == PEER_COPY;
}

static enum access access_to(const struct operation *operation) {
    return operation->kind == ATOMIC ? UPDATE : WRITE;
}

// --- What an operation does to memory ---

void operation_perform(const struct operation *operation, unsigned char *const bytes[BUFFERS]) {
    for (int i = 0; i < span_size(&operation->to); ++i) {
        unsigned char *to = &bytes[operation->to.buffer][span_cell(&operation->to, i)];
        const unsigned char *from =
            reads_from(operation->kind)
                ? &bytes[operation->from.buffer][span_cell(&operation->from, i)]
                : NULL;
        switch (operation->kind) {
        case ADD:
        case HOST_ADD:
        case HOST_FUNCTION: *to = (unsigned char)(*to * 5 + operation->value); break;
        case ATOMIC: __atomic_fetch_add(to, operation->value, __ATOMIC_RELAXED); break;
        case MIX: *to = (unsigned char)(3 * *to + *from); break;
        case COPY:
        case PLAIN_COPY:
        case PEER_COPY: *to = *from; break;
        case FILL: *to = operation->value; break;
        default: break;
        }
    }
}

// --- Drawing a program ---

static void program_add(struct program *program, const struct operation *operation) {
    BASE_CHECK_LT(program->count, 4 * OPERATIONS_MAX);
    program->operations[program->count++] = *operation;
}

// The clocks after it.
static void apply_order(const struct operation *operation) {
    const int stream = operation->stream;
    ++world.host.time[HOST];
    switch (operation->kind) {
    case RECORD:
    case WAIT: {
        struct clock clock = clock_enqueued(stream);
        if (operation->kind == WAIT && world.recorded[operation->event])
            clock_join(&clock, &world.events[operation->event]);
        ++clock.time[stream];
        world.streams[stream] = clock;
        if (operation->kind == RECORD) {
            world.events[operation->event] = clock;
            world.recorded[operation->event] = true;
        }
        break;
    }
    case EVENT_SYNC:
    case EVENT_POLL:
        if (world.recorded[operation->event])
            clock_join(&world.host, &world.events[operation->event]);
        break;
    case STREAM_SYNC:
    case STREAM_POLL: clock_of_sync(&world.host, stream); break;
    case DEVICE_SYNC: world.host = clock_fenced(); break;
    default: break;
    }
}

static void add_order(struct program *program, struct operation operation) {
    // A wait that waits for nothing would be no operation of its stream.
    if (operation.kind == WAIT && !world.recorded[operation.event])
        return;
    apply_order(&operation);
    program->has_poll |= operation.kind == EVENT_POLL || operation.kind == STREAM_POLL;
    program->has_hand_over |= operation.kind == HAND_OVER;
    program_add(program, &operation);
}

// Makes the work of OTHER come before what SELF (a stream, or HOST) does next.
static void order_behind(struct base_random *random, struct program *program, int self,
                         int other) {
    const int event = (int)base_random_below(random, EVENTS);
    BASE_CHECK(other != HOST); // the host's own steps come before all that it enqueues
    if (other == FENCE) { // all later work comes after it, only the host does not
        BASE_CHECK_EQ(self, HOST);
        other = (int)base_random_below(random, STREAMS);
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = EVENT_SYNC, .event = event});
        return;
    }
    switch (self == HOST ? base_random_between(random, 2, 6) : base_random_below(random, 7)) {
    case 0:
    case 1:
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = WAIT, .stream = self, .event = event});
        break;
    case 2:
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = EVENT_SYNC, .event = event});
        break;
    case 3:
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = EVENT_POLL, .event = event});
        break;
    case 4: add_order(program, (struct operation){.kind = STREAM_SYNC, .stream = other}); break;
    case 5: add_order(program, (struct operation){.kind = STREAM_POLL, .stream = other}); break;
    default: add_order(program, (struct operation){.kind = DEVICE_SYNC}); break;
    }
}

static struct span span_draw(struct base_random *random, int buffer) {
    struct span span = {.buffer = buffer, .count = 1};
    span.length = (int)base_random_between(random, 1, 6);
    span.stride = span.length;
    if (base_random_chance(random, 0.4)) {
        span.stride = span.length + (int)base_random_between(random, 1, 4);
        span.count = (int)base_random_between(random, 2, 4);
        while ((span.count - 1) * span.stride + span.length > CELLS)
            --span.count;
    }
    const int extent = (span.count - 1) * span.stride + span.length;
    span.start = (int)base_random_below(random, (uint64_t)(CELLS - extent + 1));
    return span;
}

static bool spans_meet(const struct span *a, const struct span *b) {
    for (int i = 0; i < span_size(a); ++i)
        for (int j = 0; j < span_size(b); ++j)
            if (a->buffer == b->buffer && span_cell(a, i) == span_cell(b, j))
                return true;
    return false;
}

// Strided pieces between which another unordered operation has its own: what a checker that only
// knows extents would call a race. Found by looking at the accesses that are not ordered.
static bool meets_by_extent_only(const struct span *span, const struct clock *clock, int self) {
    if (span->count == 1)
        return false;
    struct span hull = {span->buffer, span->start,
                        (span->count - 1) * span->stride + span->length, 1, 1};
    hull.stride = hull.length;
    return conflict(&hull, WRITE, clock, self) >= 0;
}

static struct operation work_draw(struct base_random *random) {
    static const enum kind kinds[] = {ADD,  ADD,  MIX,        MIX,      ATOMIC,       ATOMIC,
                                      COPY, FILL, PLAIN_COPY, HOST_ADD, HOST_FUNCTION, PEER_COPY};
    struct operation operation = {
        .kind = kinds[base_random_below(random, sizeof kinds / sizeof kinds[0])],
        .stream = (int)base_random_below(random, STREAMS),
        .value = (unsigned char)base_random_between(random, 1, 255),
    };
    const bool is_host = operation.kind == HOST_ADD || operation.kind == HOST_FUNCTION;
    operation.to = span_draw(random, (int)(is_host ? base_random_between(random, PINNED_FIRST,
                                                                         BUFFERS - 1)
                                                   : base_random_below(random, BUFFERS)));
    if (operation.kind == PEER_COPY)
        operation.to.buffer %= PINNED_FIRST;
    if (operation.kind == PLAIN_COPY || operation.kind == PEER_COPY) {
        operation.stream = 0;
        operation.to.count = 1;
    }
    operation.from = operation.to;
    if (reads_from(operation.kind)) {
        do {
            operation.from.buffer = (int)base_random_below(
                random, operation.kind == PEER_COPY ? PINNED_FIRST : BUFFERS);
            const int extent = (operation.from.count - 1) * operation.from.stride +
                               operation.from.length;
            operation.from.start = (int)base_random_below(random, (uint64_t)(CELLS - extent + 1));
        } while (spans_meet(&operation.from, &operation.to));
    }
    return operation;
}

// Adds what orders the operation behind all that it conflicts with, then itself.
static void add_work(struct base_random *random, struct program *program,
                     struct operation operation) {
    const int self = operation.kind == HOST_ADD    ? HOST
                     : operation.kind == PEER_COPY ? FENCE
                                                   : operation.stream;
    struct clock clock;
    for (;;) {
        clock = self == HOST    ? world.host
                : self == FENCE ? clock_fenced()
                                : clock_enqueued(self);
        int other = conflict(&operation.to, access_to(&operation), &clock, self);
        if (other < 0 && reads_from(operation.kind))
            other = conflict(&operation.from, READ, &clock, self);
        if (other < 0)
            break;
        order_behind(random, program, self, other);
    }
    program->has_stride |= meets_by_extent_only(&operation.to, &clock, self);
    program->has_atomic |= operation.kind == ATOMIC &&
                           conflict(&operation.to, WRITE, &clock, self) >= 0;
    ++world.host.time[HOST];
    ++clock.time[self];
    clock.time[HOST] = world.host.time[HOST];
    if (self == HOST)
        world.host = clock;
    else if (self == FENCE)
        world.fence = clock;
    else
        world.streams[self] = clock;
    // A plain copy of which a side is on the host is complete when it returns.
    if (operation.kind == PLAIN_COPY &&
        (operation.to.buffer >= PINNED_FIRST || operation.from.buffer >= PINNED_FIRST))
        clock_join(&world.host, &world.streams[0]);
    // Between page-locked buffers every copy is.
    if (operation.kind == COPY && operation.to.buffer >= PINNED_FIRST &&
        operation.from.buffer >= PINNED_FIRST)
        clock_join(&world.host, &world.streams[self]);
    note_access(&operation.to, access_to(&operation), self, clock.time[self]);
    if (reads_from(operation.kind))
        note_access(&operation.from, READ, self, clock.time[self]);
    program_add(program, &operation);
}

void program_draw(struct base_random *random, struct program *program,
                  unsigned char memory[BUFFERS][CELLS]) {
    memset(program, 0, sizeof *program);
    memset(&world, 0, sizeof world);
    memset(memory, 0, sizeof(unsigned char[BUFFERS][CELLS]));
    const int target = (int)base_random_between(random, 8, OPERATIONS_MAX);
    const bool threads = base_random_chance(random, 0.3);
    for (int i = 0; i < target && program->count < 3 * OPERATIONS_MAX; ++i) {
        struct operation operation = {.stream = (int)base_random_below(random, STREAMS),
                                      .event = (int)base_random_below(random, EVENTS)};
        switch (base_random_below(random, 20)) {
        case 0: operation.kind = RECORD; break;
        case 1: operation.kind = WAIT; break;
        case 2: operation.kind = threads ? HAND_OVER : STREAM_POLL; break;
        default: operation.kind = KIND_COUNT;
        }
        // The thread's own stream is another one in the other thread.
        if (threads && operation.stream == BLOCKING_LAST)
            operation.stream = BLOCKING_FIRST;
        if (operation.kind != KIND_COUNT) {
            add_order(program, operation);
            continue;
        }
        operation = work_draw(random);
        if (threads && operation.stream == BLOCKING_LAST)
            operation.stream = BLOCKING_FIRST;
        add_work(random, program, operation);
    }
    unsigned char *bytes[BUFFERS];
    for (int i = 0; i < BUFFERS; ++i)
        bytes[i] = memory[i];
    for (int i = 0; i < program->count; ++i)
        if (operation_is_work(&program->operations[i]))
            operation_perform(&program->operations[i], bytes);
}
