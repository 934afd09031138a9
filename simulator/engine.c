// The engine of engine.h: submission, order, and running one operation. Order: an operation is only
// ever made to wait for operations that were submitted before it, so the chain "blocked by an
// operation of a stream that is blocked by ..." ends, and never meets a stream twice.
#include "simulator/engine.h"
#include "simulator/plant.h"

#include "simulator/graph.h"
#include "simulator/order.h"
#include "simulator/schedule.h"
#include "simulator/stream.h"

#include <stdlib.h>
#include <string.h>

#define RING_SIZE_FIRST 16
#define UNTIMED_OPERATION_NS 1000

const struct sim__observer *sim__observer;

// Positions that the operation being submitted waits for; guarded by the simulator's lock.
static struct sim__position *gathered;
static size_t gathered_count, gathered_size;

static bool grouping; // see sim__engine_group_begin

static struct sim__operation *operation_at(const struct sim__stream *stream, uint64_t sequence) {
    return &stream->ring[sequence & (stream->ring_size - 1)];
}

struct sim__operation *sim__engine_first(const struct sim__stream *stream) {
    return operation_at(stream, stream->completed + 1);
}

static struct sim__position wait_at(const struct sim__operation *operation, uint32_t index) {
    return operation->wait_count == 1 ? operation->wait : operation->waits[index];
}

// --- A stream's place among others, and its ring ---

static void unseen_remove(struct sim__stream *stream) {
    if (stream->unseen.previous != NULL)
        sim__list_remove(stream, offsetof(struct sim__stream, unseen));
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

static void ring_free(struct sim__stream *stream) {
    free(stream->ring);
    stream->ring = NULL;
    stream->ring_size = 0;
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

// What the legacy stream's rule and an executable's own order ask for is often one position.
static bool is_gathered_last(struct sim__position position) {
    return gathered_count > 0 && gathered[gathered_count - 1].stream == position.stream &&
           gathered[gathered_count - 1].sequence == position.sequence;
}

// What is complete already matters only for what the host learns.
static void gather_edge(struct sim__stream *stream, struct sim__position position) {
    if (position.stream == stream)
        return;
    if (sim__schedule->doubts && !sim__is_observed(position))
        sim__observe_edge(stream, stream->submitted + 1, position);
    if (!sim__position_complete(position))
        gather(position);
}

static void gather_fence(struct sim__device *device, struct sim__stream *stream) {
    if (sim__position_complete(device->fence) &&
        (!sim__schedule->doubts || sim__is_observed(device->fence))) {
        device->fence.stream = NULL;
    } else if (stream->fence_seen != device->fence_number) {
        stream->fence_seen = device->fence_number;
        gather_edge(stream, device->fence);
    }
}

// The legacy default stream and the blocking streams of a device wait for each other's earlier
// work. What an earlier operation of the same stream waited for already is covered by stream order.
static void gather_implicit(struct sim__device *device, struct sim__stream *stream) {
    if (device->fence.stream != NULL)
        gather_fence(device, stream);
    if (device->pending == NULL && !sim__schedule->doubts)
        return;
    if (sim__planted(SIM__PLANT_LEGACY_BARRIER))
        return;
    if (stream->legacy) {
        struct sim__stream *other;
        while ((other = device->unseen) != NULL) {
            unseen_remove(other);
            gather_edge(stream, (struct sim__position){other, other->submitted});
        }
    } else if (sim__stream_is_blocking(stream)) {
        struct sim__stream *legacy = device->legacy;
        if (stream->legacy_seen == legacy->submitted)
            return;
        gather_edge(stream, (struct sim__position){legacy, legacy->submitted});
        stream->legacy_seen = legacy->submitted;
    }
}

bool sim__engine_orders(const struct sim__stream *stream) {
    const struct sim__device *device = &sim__state.devices[stream->device];
    if (device->fence.stream != NULL && stream->fence_seen != device->fence_number)
        return true;
    return sim__stream_is_blocking(stream) && stream->legacy_seen != device->legacy->submitted &&
           (sim__schedule->doubts || sim__stream_pending(device->legacy));
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

// The first operation of STREAM is another one than before, or what blocked it is complete: it is
// blocked by the next thing it waits for, else offered to the schedule.
static void stream_examine(struct sim__stream *stream) {
    struct sim__operation *operation = sim__engine_first(stream);
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
    if (!stream->held)
        sim__schedule->offer(stream);
}

struct sim__position sim__engine_blocked_by(const struct sim__stream *stream) {
    const struct sim__operation *first = sim__engine_first(stream);
    return wait_at(first, first->wait_done);
}

// --- Running ---

static bool does_work(const struct sim__operation *operation) {
    return operation->kind != SIM__OPERATION_RECORD && operation->kind != SIM__OPERATION_WAIT &&
           operation->kind != SIM__OPERATION_LAUNCH_BEGIN &&
           operation->kind != SIM__OPERATION_LAUNCH_END;
}

static void clock_advance(struct sim__stream *stream, const struct sim__operation *operation) {
    if (sim__schedule == &sim__schedule_timed)
        return;
    stream->schedule.start_ns = sim__state.now_ns;
    if (does_work(operation))
        sim__state.now_ns += UNTIMED_OPERATION_NS;
    stream->schedule.end_ns = sim__state.now_ns;
}

static void stream_drained(struct sim__stream *stream) {
    sim__list_remove(stream, offsetof(struct sim__stream, pending));
    if (!stream->destroyed)
        return;
    ring_free(stream);
    sim__engine_forget(stream);
    sim__handle_give(&sim__state.streams, stream);
}

static void observer_completed(const struct sim__stream *stream, struct sim__position position,
                               const struct sim__operation *operation) {
    if (sim__observer != NULL)
        sim__observer->completed(position, operation, stream->schedule.start_ns,
                                 stream->schedule.end_ns);
}

static void operation_drop(struct sim__operation *operation) {
    if (operation->work != NULL)
        sim__graph_work_release(operation->work);
    else
        sim__operation_release(operation);
    if (operation->waits != NULL)
        free(operation->waits);
}

static void first_complete(struct sim__stream *stream) {
    struct sim__operation *operation = sim__engine_first(stream);
    struct sim__stream *waiter = operation->waiters;
    observer_completed(stream, (struct sim__position){stream, stream->completed + 1}, operation);
    operation_drop(operation);
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

// Without the lock; the ring can move meanwhile.
static void first_call(struct sim__stream *stream, const struct sim__operation *first,
                       cudaError_t status) {
    struct sim__operation call;
    call.kind = first->kind;
    if (first->kind == SIM__OPERATION_KERNEL)
        call.kernel = first->kernel;
    else
        call.host_function = first->host_function;
    stream->running = true;
    base_mutex_unlock(&sim__state.lock);
    sim__operation_call(&call, stream->device, status);
    base_mutex_lock(&sim__state.lock);
    stream->running = false;
    if (sim__state.operation_waiters > 0)
        base_condition_broadcast(&sim__state.operation_done);
}

void sim__engine_run_first(struct sim__stream *stream) {
    struct sim__device *device = &sim__state.devices[stream->device];
    const struct sim__operation *first = sim__engine_first(stream);
    sim__schedule->withdraw(stream);
    clock_advance(stream, first);
    if (sim__operation_is_call(device, first))
        first_call(stream, first, device->sticky_error);
    else
        sim__operation_run((struct sim__position){stream, stream->completed + 1}, first);
    first_complete(stream);
}

void sim__engine_wait_running(void) {
    ++sim__state.operation_waiters;
    base_condition_wait(&sim__state.operation_done, &sim__state.lock);
    --sim__state.operation_waiters;
}

void sim__engine_point(void) {
    if (sim__schedule->point != NULL)
        sim__schedule->point();
}

static bool step_one(struct sim__stream *stream) {
    while (stream->running)
        sim__engine_wait_running();
    if (!sim__stream_pending(stream) || stream->blocked)
        return false;
    sim__engine_run_first(stream);
    sim__engine_point(); // what comes next may wait for it
    return true;
}

// One of the nodes that the end of a launch, the first operation of STREAM, waits for.
static bool step_node(struct sim__stream *stream) {
    const struct sim__operation *end = sim__engine_first(stream);
    const uint32_t left = end->wait_count - end->wait_done;
    const uint32_t chosen = sim__schedule->choose == NULL ? 0 : sim__schedule->choose(left);
    for (uint32_t i = 0; i < left; ++i) {
        const struct sim__position wait = wait_at(end, end->wait_done + (chosen + i) % left);
        if (!sim__position_complete(wait))
            return sim__engine_step_goal(wait);
    }
    return false;
}

bool sim__engine_step(struct sim__stream *stream) {
    if (sim__stream_pending(stream) &&
        sim__engine_first(stream)->kind == SIM__OPERATION_LAUNCH_BEGIN && !step_one(stream))
        return false;
    const uint64_t sequence = stream->completed + 1;
    while (sim__stream_pending(stream) && stream->completed < sequence && stream->blocked &&
           sim__engine_first(stream)->kind == SIM__OPERATION_LAUNCH_END) {
        if (!step_node(stream))
            return false;
        sim__engine_point();
    }
    // Another thread, or the schedule, may have ended the launch meanwhile.
    return stream->completed >= sequence || step_one(stream);
}

uint64_t sim__engine_pending(const struct sim__stream *stream) {
    uint64_t count = 0;
    for (uint64_t i = stream->completed + 1; i <= stream->submitted; ++i)
        count += operation_at(stream, i)->kind != SIM__OPERATION_LAUNCH_BEGIN;
    return count;
}

void sim__engine_hold(struct sim__stream *stream, bool held) {
    if (held && !stream->held && sim__engine_is_ready(stream))
        sim__schedule->withdraw(stream);
    if (!held && stream->held && sim__engine_is_ready(stream))
        sim__schedule->offer(stream);
    stream->held = held;
    if (!held)
        sim__engine_point();
}

void sim__engine_offer_all(void) {
    for (int i = 0; i < sim__state.options.device_count; ++i)
        for (struct sim__stream *stream = sim__state.devices[i].pending; stream != NULL;
             stream = stream->pending.next)
            if (!stream->held && sim__engine_is_ready(stream))
                sim__schedule->offer(stream);
}

// --- Submission ---

// Runs the operation of an idle stream on the spot; false if it has to be enqueued.
static bool run_at_once(struct sim__device *device, struct sim__stream *stream,
                        struct sim__position position, const struct sim__operation *operation) {
    if (gathered_count > 0 || !sim__schedule->runs_at_once || stream->held ||
        sim__operation_is_call(device, operation))
        return false;
    if (sim__observer != NULL && stream->launch != NULL)
        return false; // who listens is told of nodes, and OPERATION is shared by launches
    clock_advance(stream, operation);
    if (sim__observer != NULL)
        sim__observer->submitted(position, operation, NULL, 0);
    sim__operation_run(position, operation);
    observer_completed(stream, position, operation);
    stream->completed = ++stream->submitted;
    return true;
}

// Behind what was gathered. NODE and WORK: as sim__engine_submit_node, else 0 and NULL.
static struct sim__position submit_gathered(struct sim__device *device, struct sim__stream *stream,
                                            const struct sim__operation *operation, uint32_t node,
                                            struct sim__graph_work *work) {
    const bool idle = !sim__stream_pending(stream);
    const struct sim__position position = {stream, stream->submitted + 1};
    if (sim__schedule->doubts)
        sim__observe_submitted(stream);
    if (idle && run_at_once(device, stream, position, operation))
        return position;
    if (position.sequence - stream->completed > stream->ring_size)
        ring_grow(stream); // what was pending before moves
    struct sim__operation *submitted = operation_at(stream, position.sequence);
    if (operation->kind == SIM__OPERATION_KERNEL) { // the most frequent, and small
        submitted->kind = operation->kind;
        submitted->kernel = operation->kernel;
    } else {
        *submitted = *operation;
    }
    submitted->node = node;
    submitted->work = sim__graph_work_retain(work);
    waits_attach(submitted);
    submitted->earliest_ns = sim__state.now_ns + sim__state.stall_ns;
    submitted->earliest_bounds =
        (struct sim__bounds){sim__state.now_bounds.low_ns + sim__state.stall_ns,
                             sim__state.now_bounds.high_ns + sim__state.stall_ns};
    if (work == NULL)
        sim__operation_keep(submitted);
    ++stream->submitted;
    if (sim__stream_is_blocking(stream) && stream->unseen.previous == NULL)
        sim__list_add(&device->unseen, stream, offsetof(struct sim__stream, unseen));
    if (sim__observer != NULL)
        sim__observer->submitted(position, submitted, gathered, gathered_count);
    if (idle) {
        sim__list_add(&device->pending, stream, offsetof(struct sim__stream, pending));
        if (gathered_count == 0 && sim__schedule->runs_at_once && !stream->held && !grouping)
            sim__engine_run_first(stream);
        else
            stream_examine(stream);
    }
    if (sim__schedule->submitted != NULL)
        sim__schedule->submitted(stream);
    if (!grouping)
        sim__engine_point();
    return position;
}

struct sim__position sim__engine_submit(struct sim__stream *stream,
                                        const struct sim__operation *operation,
                                        struct sim__position after) {
    struct sim__device *device = &sim__state.devices[stream->device];
    if (sim__order_count > 0) {
        sim__order__submit(stream);
        if (sim__race_is_on())
            sim__race_submitted((struct sim__position){stream, stream->submitted + 1}, operation);
    }
    gathered_count = 0;
    gather_implicit(device, stream);
    if (after.stream != NULL)
        gather_edge(stream, after);
    return submit_gathered(device, stream, operation, 0, NULL);
}

struct sim__position sim__engine_submit_after(struct sim__stream *stream,
                                              const struct sim__operation *operation,
                                              const struct sim__position *after, size_t count) {
    sim__order_submit(stream);
    return sim__engine_submit_node(stream, operation, 0, NULL, after, count);
}

struct sim__position sim__engine_submit_node(struct sim__stream *lane,
                                             const struct sim__operation *operation, uint32_t node,
                                             struct sim__graph_work *work,
                                             const struct sim__position *after, size_t count) {
    struct sim__device *device = &sim__state.devices[lane->device];
    gathered_count = 0;
    gather_implicit(device, lane);
    for (size_t i = 0; i < count; ++i)
        if (after[i].stream != NULL && !is_gathered_last(after[i]))
            gather_edge(lane, after[i]);
    return submit_gathered(device, lane, operation, node, work);
}

void sim__engine_group_begin(void) {
    BASE_CHECK(!grouping);
    grouping = true;
}

void sim__engine_group_end(void) {
    grouping = false;
    sim__engine_point();
}

static void gather_device(struct sim__device *device, struct sim__stream *stream) {
    if (device->fence.stream != NULL)
        gather_edge(stream, device->fence);
    struct sim__stream *other = device->pending;
    for (; other != NULL; other = other->pending.next)
        gather_edge(stream, (struct sim__position){other, other->submitted});
    for (other = device->unobserved; other != NULL; other = other->observation.link.next)
        if (!sim__stream_pending(other))
            gather_edge(stream, (struct sim__position){other, other->submitted});
}

// Gathers all work of the devices in the bit mask; returns the first of them.
static struct sim__device *gather_devices(uint32_t devices) {
    struct sim__device *home = NULL;
    gathered_count = 0;
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        if ((devices >> i & 1) == 0)
            continue;
        if (home == NULL)
            home = &sim__state.devices[i];
        gather_device(&sim__state.devices[i], sim__stream_hidden(home));
    }
    BASE_CHECK(home != NULL);
    return home;
}

// It stands as a fence before the schedule can run anything.
struct sim__position sim__engine_submit_fence(uint32_t devices,
                                              const struct sim__operation *operation) {
    struct sim__device *home = gather_devices(devices);
    const struct sim__position position = {home->hidden, home->hidden->submitted + 1};
    sim__order_submit_fence(devices, home->hidden);
    if (sim__race_is_on())
        sim__race_submitted(position, operation);
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        if ((devices >> i & 1) == 0)
            continue;
        sim__state.devices[i].fence = position;
        ++sim__state.devices[i].fence_number;
    }
    return submit_gathered(home, home->hidden, operation, 0, NULL);
}

void sim__engine_submit_behind(uint32_t devices, const struct sim__operation *operation) {
    struct sim__device *home = gather_devices(devices);
    submit_gathered(home, home->hidden, operation, 0, NULL);
}

void sim__engine_forget(struct sim__stream *stream) {
    unseen_remove(stream);
    if (sim__schedule->doubts)
        sim__observe_forget(stream);
}

void sim__engine_discard(struct sim__stream *stream) {
    BASE_CHECK(!stream->running);
    for (; stream->completed < stream->submitted; ++stream->completed) {
        struct sim__operation *operation = sim__engine_first(stream);
        if (operation->kind == SIM__OPERATION_INTERNAL && operation->work == NULL)
            operation->internal.run(operation->internal.argument, true);
        operation_drop(operation);
    }
    ring_free(stream);
    free(stream->observation.edges);
    stream->observation.edges = NULL;
}
