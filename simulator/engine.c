// The engine of engine.h. Order: an operation is only ever made to wait for operations that were
// submitted before it, so the chain "blocked by an operation of a stream that is blocked by ..."
// ends, and never meets a stream twice.
#include "simulator/engine.h"

#include "simulator/schedule.h"

#include <stdlib.h>
#include <string.h>

#define RING_SIZE_FIRST 16

// Positions that the operation being submitted waits for; guarded by the simulator's lock.
static struct sim__position *gathered;
static size_t gathered_count, gathered_size;

static struct sim__operation *operation_at(const struct sim__stream *stream, uint64_t sequence) {
    return &stream->ring[sequence & (stream->ring_size - 1)];
}

static struct sim__operation *first_operation(const struct sim__stream *stream) {
    return operation_at(stream, stream->completed + 1);
}

static struct sim__position wait_at(const struct sim__operation *operation, uint32_t index) {
    return operation->wait_count == 1 ? operation->wait : operation->waits[index];
}

static bool stream_is_blocking(const struct sim__stream *stream) {
    return !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}

// --- Pending work of a stream ---

static void pending_link(struct sim__device *device, struct sim__stream *stream) {
    stream->next_pending = device->pending;
    stream->previous_pending = &device->pending;
    if (device->pending != NULL)
        device->pending->previous_pending = &stream->next_pending;
    device->pending = stream;
}

static void pending_unlink(struct sim__stream *stream) {
    *stream->previous_pending = stream->next_pending;
    if (stream->next_pending != NULL)
        stream->next_pending->previous_pending = stream->previous_pending;
}

static void ring_grow(struct sim__stream *stream) {
    const uint64_t size = stream->ring_size == 0 ? RING_SIZE_FIRST : 2 * stream->ring_size;
    struct sim__operation *ring = malloc(size * sizeof *ring);
    if (ring == NULL)
        sim__host_limit("out of host memory for %llu pending operations", (unsigned long long)size);
    for (uint64_t sequence = stream->completed + 1; sequence <= stream->submitted; ++sequence)
        ring[sequence & (size - 1)] = *operation_at(stream, sequence);
    free(stream->ring);
    stream->ring = ring;
    stream->ring_size = size;
}

// --- What an operation waits for ---

static void gather(struct sim__position position) {
    if (gathered_count == gathered_size) {
        gathered_size = gathered_size == 0 ? 16 : 2 * gathered_size;
        gathered = realloc(gathered, gathered_size * sizeof *gathered);
        if (gathered == NULL)
            sim__host_limit("out of host memory for %zu waits", gathered_size);
    }
    gathered[gathered_count++] = position;
}

// The legacy default stream and the blocking streams of a device wait for each other's earlier
// work. What an earlier operation of the same stream waited for already is covered by stream order.
static void gather_implicit(struct sim__device *device, struct sim__stream *stream) {
    if (device->pending == NULL)
        return;
    if (stream->legacy) {
        for (struct sim__stream *other = device->pending; other != NULL;
             other = other->next_pending) {
            if (!stream_is_blocking(other) || other->seen_by_legacy == other->submitted)
                continue;
            gather((struct sim__position){other, other->submitted});
            other->seen_by_legacy = other->submitted;
        }
    } else if (stream_is_blocking(stream)) {
        struct sim__stream *legacy = device->legacy;
        if (!sim__stream_pending(legacy) || stream->legacy_seen == legacy->submitted)
            return;
        gather((struct sim__position){legacy, legacy->submitted});
        stream->legacy_seen = legacy->submitted;
    }
}

static void waits_attach(struct sim__operation *operation) {
    operation->wait_count = (uint32_t)gathered_count;
    operation->wait_done = 0;
    operation->waits = NULL;
    operation->waiters = NULL;
    if (gathered_count == 1) {
        operation->wait = gathered[0];
    } else if (gathered_count > 1) {
        operation->waits = malloc(gathered_count * sizeof *gathered);
        if (operation->waits == NULL)
            sim__host_limit("out of host memory for %zu waits", gathered_count);
        memcpy(operation->waits, gathered, gathered_count * sizeof *gathered);
    }
}

// The first operation of STREAM is another one than before, or what blocked it is complete: finds
// what it waits for now.
static void stream_examine(struct sim__stream *stream) {
    struct sim__operation *operation = first_operation(stream);
    for (; operation->wait_done < operation->wait_count; ++operation->wait_done) {
        const struct sim__position wait = wait_at(operation, operation->wait_done);
        if (sim__position_complete(wait))
            continue;
        struct sim__operation *blocker = operation_at(wait.stream, wait.sequence);
        stream->blocked = true;
        stream->next_waiter = blocker->waiters;
        blocker->waiters = stream;
        return;
    }
    sim__schedule_offer(stream);
}

// --- Running ---

static void clock_advance(const struct sim__stream *stream,
                          const struct sim__operation *operation) {
    if (operation->kind != SIM__OPERATION_RECORD && operation->kind != SIM__OPERATION_WAIT)
        ++sim__state.devices[stream->device].clock_us;
}

static void stream_drained(struct sim__stream *stream) {
    pending_unlink(stream);
    if (!stream->destroyed)
        return;
    free(stream->ring);
    stream->ring = NULL;
    stream->ring_size = 0;
    sim__handle_give(&sim__state.streams, stream);
}

static void first_complete(struct sim__stream *stream) {
    struct sim__operation *operation = first_operation(stream);
    struct sim__stream *waiter = operation->waiters;
    sim__operation_release(operation);
    free(operation->waits);
    ++stream->completed;
    if (sim__stream_pending(stream))
        stream_examine(stream);
    else
        stream_drained(stream);
    while (waiter != NULL) {
        struct sim__stream *next = waiter->next_waiter;
        waiter->blocked = false;
        stream_examine(waiter);
        waiter = next;
    }
}

// The first operation must be neither blocked nor running. The ring can move while the lock is
// given back.
static void first_run(struct sim__stream *stream) {
    struct sim__operation operation = *first_operation(stream);
    const struct sim__position position = {stream, stream->completed + 1};
    clock_advance(stream, &operation);
    if (sim__operation_is_call(&sim__state.devices[stream->device], &operation)) {
        stream->running = true;
        base_mutex_unlock(&sim__state.lock);
        sim__operation_call(&operation);
        base_mutex_lock(&sim__state.lock);
        stream->running = false;
        if (sim__state.operation_waiters > 0)
            base_condition_broadcast(&sim__state.operation_done);
    } else {
        sim__operation_run(position, &operation);
    }
    first_complete(stream);
}

static void running_wait(void) {
    ++sim__state.operation_waiters;
    base_condition_wait(&sim__state.operation_done, &sim__state.lock);
    --sim__state.operation_waiters;
}

void sim__engine_run_ready(void) {
    struct sim__stream *stream;
    while ((stream = sim__schedule_next()) != NULL)
        if (sim__stream_pending(stream) && !stream->blocked && !stream->running)
            first_run(stream);
}

bool sim__engine_step(struct sim__stream *stream) {
    while (stream->running)
        running_wait();
    if (!sim__stream_pending(stream) || stream->blocked)
        return false;
    first_run(stream);
    return true;
}

void sim__engine_release(struct sim__stream *stream) {
    if (sim__stream_pending(stream) && !stream->blocked && !stream->running)
        sim__schedule_offer(stream);
    sim__engine_run_ready();
}

struct sim__position sim__engine_submit(struct sim__stream *stream,
                                        const struct sim__operation *operation,
                                        struct sim__position after) {
    struct sim__device *device = &sim__state.devices[stream->device];
    const bool idle = !sim__stream_pending(stream);
    gathered_count = 0;
    gather_implicit(device, stream);
    if (!sim__position_complete(after) && after.stream != stream)
        gather(after);

    const struct sim__position position = {stream, ++stream->submitted};
    if (idle && gathered_count == 0 && sim__schedule_runs_now(stream) &&
        !sim__operation_is_call(device, operation)) {
        clock_advance(stream, operation);
        sim__operation_run(position, operation);
        stream->completed = stream->submitted;
        return position;
    }
    if (stream->submitted - stream->completed > stream->ring_size) {
        --stream->submitted; // the ring holds what was pending before
        ring_grow(stream);
        ++stream->submitted;
    }
    struct sim__operation submitted = *operation;
    waits_attach(&submitted);
    sim__operation_keep(&submitted);
    *operation_at(stream, position.sequence) = submitted;
    if (idle) {
        pending_link(device, stream);
        stream_examine(stream);
        sim__engine_run_ready();
    }
    return position;
}

// --- Waiting ---

// Positions still to reach, the last one first: each is needed by the one before it.
struct goals {
    struct sim__position *positions;
    size_t count, size;
};

static void goals_push(struct goals *goals, struct sim__position position) {
    if (goals->count == goals->size) {
        goals->size = goals->size == 0 ? 16 : 2 * goals->size;
        goals->positions = realloc(goals->positions, goals->size * sizeof *goals->positions);
        if (goals->positions == NULL)
            sim__host_limit("out of host memory for a chain of %zu waits", goals->size);
    }
    goals->positions[goals->count++] = position;
}

void sim__engine_force(struct sim__position position) {
    struct goals goals = {0};
    if (!sim__position_complete(position))
        goals_push(&goals, position);
    while (goals.count > 0) {
        const struct sim__position goal = goals.positions[goals.count - 1];
        if (sim__position_complete(goal))
            --goals.count;
        else if (goal.stream->running)
            running_wait();
        else if (goal.stream->blocked)
            goals_push(&goals, wait_at(first_operation(goal.stream),
                                       first_operation(goal.stream)->wait_done));
        else
            first_run(goal.stream);
    }
    free(goals.positions);
    sim__engine_run_ready();
}

// Forcing changes the list of pending streams, so it is read first. What other threads submit
// meanwhile is not waited for.
void sim__engine_force_device(struct sim__device *device, bool only_ordered_with_legacy) {
    struct goals goals = {0};
    for (struct sim__stream *stream = device->pending; stream != NULL;
         stream = stream->next_pending)
        if (!only_ordered_with_legacy || stream->legacy || stream_is_blocking(stream))
            goals_push(&goals, (struct sim__position){stream, stream->submitted});
    for (size_t i = 0; i < goals.count; ++i)
        sim__engine_force(goals.positions[i]);
    free(goals.positions);
}

void sim__engine_force_all(void) {
    for (int i = 0; i < sim__state.options.device_count; ++i)
        sim__engine_force_device(&sim__state.devices[i], false);
}

void sim__engine_discard(struct sim__stream *stream) {
    BASE_CHECK(!stream->running);
    for (; stream->completed < stream->submitted; ++stream->completed) {
        sim__operation_release(first_operation(stream));
        free(first_operation(stream)->waits);
    }
    free(stream->ring);
    stream->ring = NULL;
    stream->ring_size = 0;
}
