// What comes after what, as CUDA promises it: known from submission, whatever the schedule does and
// whatever is complete already. Two ask: pools, which may hand memory that one stream freed to
// another one that comes after the free; and the race checker (race.h).
//
// Each stream and each host thread is a *column*: its operations are numbered. A *clock* says, for
// each column, up to which of its operations its owner comes after. Each stream has the clock of
// its next operation, each event that of its record, the host (each host thread under the reading
// threads=strict) what it knows to be complete. A clock that two have is one clock until one of
// them learns more; whoever knows an operation knows all that it came after, so that most joins are
// one comparison.
//
// Nothing is tracked while nobody asks; then a call costs the look at one number. When the first
// one asks, all that was submitted before counts as known to everybody.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_ORDER_H
#define TIDEMARK_SIMULATOR_ORDER_H

#include "simulator/state.h"

// Who asks: (pool, stream) pairs with memory that the stream freed and the host has not seen
// complete, and the checker.
extern uint32_t sim__order_count;

struct sim__exec; // graph.h
struct sim__order_clock;

// An operation and all that it comes after. Whoever has one gives it back (sim__order_release);
// zeros are none.
struct sim__order_point {
    uint64_t generation; // of tracking: what is of an earlier one says nothing
    struct sim__order_clock *clock;
    uint32_t column;
    uint64_t sequence; // in the column
    struct sim__position position; // the same, in the engine; of no stream: all work of DEVICE
    int device;
};

// --- Pools ---

// A pool holds memory that STREAM freed: returns the column that stands for STREAM below, also when
// it is gone. It holds none any more.
uint32_t sim__order_begin(struct sim__stream *stream);
void sim__order_end(uint32_t column);
// The next operation of STREAM waits for POSITION, as no program asked: the checker does not know.
void sim__order_behind(struct sim__stream *stream, struct sim__position position);
// Up to which of the column's operations the next one of STREAM comes after, and the host has seen.
uint64_t sim__order_reached(struct sim__stream *stream, uint32_t column);
uint64_t sim__order_observed(uint32_t column);

// --- The checker ---

// From now on, and no more: all is forgotten.
void sim__order_check_begin(void);
void sim__order_check_end(void);

// What somebody who does something now comes after. Valid until anything else here is called.
struct sim__order_view {
    const uint64_t *known; // by column
    uint32_t count;
    uint32_t column;   // its own
    uint64_t sequence; // there
    const uint64_t *settled; // by column: what everything that is still to come comes after
    uint32_t settled_count;
};

// An operation of STREAM with the SEQUENCE (of the engine), for which sim__order_submit was called.
struct sim__order_view sim__order_view_stream(const struct sim__stream *stream, uint64_t sequence);
// The calling host thread's next step.
struct sim__order_view sim__order_view_host(void);
// Whether host threads have an order of their own each; the last step of the calling one.
bool sim__order_is_strict(void);
void sim__order_host(uint32_t *column, uint64_t *sequence);

// Whether operation SEQUENCE of COLUMN comes before, or is the same.
static inline bool sim__order_is_before(const struct sim__order_view *view, uint32_t column,
                                        uint64_t sequence) {
    return column == view->column ? sequence <= view->sequence
                                  : column < view->count && view->known[column] >= sequence;
}
// Whether everything that is still to come comes after it.
static inline bool sim__order_view_settled(const struct sim__order_view *view, uint32_t column,
                                           uint64_t sequence) {
    return column < view->settled_count && view->settled[column] >= sequence;
}
bool sim__order_is_settled(uint32_t column, uint64_t sequence);

struct sim__order_column {
    uint64_t stream; // its number; 0: the host
    int device;
};
struct sim__order_column sim__order_column_at(uint32_t column);
// The engine's number of operation SEQUENCE of COLUMN; 0 if it is none of the stream's.
uint64_t sim__order_sequence(uint32_t column, uint64_t sequence);

// --- What happens ---

void sim__order__submit(struct sim__stream *stream);
void sim__order__submit_fence(uint32_t devices, struct sim__stream *hidden);
void sim__order__record(const struct sim__event *event);
void sim__order__wait(struct sim__stream *stream, const struct sim__event *event);
void sim__order__launch(struct sim__stream *stream, const struct sim__exec *exec);
void sim__order__launched(struct sim__position position, const struct sim__exec *exec);
void sim__order__record_launched(const struct sim__event *event, struct sim__position position);
struct sim__order_point sim__order__stream(struct sim__stream *stream);
struct sim__order_point sim__order__next(struct sim__stream *stream);
struct sim__order_point sim__order__event(const struct sim__event *event);
struct sim__order_point sim__order__device(const struct sim__device *device);
struct sim__order_point sim__order__devices(void);
void sim__order__observe(struct sim__order_point *point);
void sim__order__know(struct sim__order_point *point);
void sim__order_signal(const void *token);
void sim__order_await(const void *token);
void sim__order_forget_token(const void *token);
void sim__order_clear(void);

// STREAM gets an operation.
static inline void sim__order_submit(struct sim__stream *stream) {
    if (sim__order_count > 0)
        sim__order__submit(stream);
}
// HIDDEN gets one between all earlier and all later work of the devices in the bit mask.
static inline void sim__order_submit_fence(uint32_t devices, struct sim__stream *hidden) {
    if (sim__order_count > 0)
        sim__order__submit_fence(devices, hidden);
}
// EVENT was recorded: its position is set.
static inline void sim__order_record(const struct sim__event *event) {
    if (sim__order_count > 0)
        sim__order__record(event);
}
// Later operations of STREAM come after what EVENT covers. Not for one that was never recorded.
static inline void sim__order_wait(struct sim__stream *stream, const struct sim__event *event) {
    if (sim__order_count > 0)
        sim__order__wait(stream, event);
}
// STREAM's next operation begins a launch of EXEC: behind earlier ones. POSITION ends it.
static inline void sim__order_launch(struct sim__stream *stream, const struct sim__exec *exec) {
    if (sim__order_count > 0)
        sim__order__launch(stream, exec);
}
static inline void sim__order_launched(struct sim__position position,
                                       const struct sim__exec *exec) {
    if (sim__order_count > 0)
        sim__order__launched(position, exec);
}

// The host waits: before it does, what it waits for is noted; when that is complete, it knows it.
//
//     struct sim__order_point point = sim__order_of_stream(stream);
//     sim__engine_force_stream(stream);      can give the lock back
//     sim__order_observe(&point);
//
// As the call in question promises: of the legacy stream also what it speaks for.
static inline struct sim__order_point sim__order_of_stream(struct sim__stream *stream) {
    return sim__order_count > 0 ? sim__order__stream(stream) : (struct sim__order_point){0};
}
// The operation that STREAM gets next.
static inline struct sim__order_point sim__order_of_next(struct sim__stream *stream) {
    return sim__order_count > 0 ? sim__order__next(stream) : (struct sim__order_point){0};
}
static inline struct sim__order_point sim__order_of_event(const struct sim__event *event) {
    return sim__order_count > 0 ? sim__order__event(event) : (struct sim__order_point){0};
}
static inline struct sim__order_point sim__order_of_device(const struct sim__device *device) {
    return sim__order_count > 0 ? sim__order__device(device) : (struct sim__order_point){0};
}
static inline struct sim__order_point sim__order_of_devices(void) {
    return sim__order_count > 0 ? sim__order__devices() : (struct sim__order_point){0};
}
// Gives the point back.
static inline void sim__order_observe(struct sim__order_point *point) {
    if (point->generation != 0)
        sim__order__observe(point);
}
// The same for what is of no use to pools: calls that CUDA's pools do not look at.
static inline void sim__order_know(struct sim__order_point *point) {
    if (point->generation != 0)
        sim__order__know(point);
}
void sim__order_release(struct sim__order_point *point);
struct sim__order_point sim__order_point_copy(const struct sim__order_point *point);
// Operation SEQUENCE (of the engine) of STREAM, its last one.
struct sim__order_point sim__order_point_at(const struct sim__stream *stream, uint64_t sequence);

#endif
