// Which frees of pool memory a stream comes after, and the host: what cudaMallocAsync must know to
// hand memory of one stream to another. It is known from submission, whatever the schedule does:
// each stream carries, for each stream with such frees, up to which operation of that stream its
// own next operation comes after; events carry it on, and so do the edges between the legacy stream
// and the blocking ones.
//
// Nothing is tracked while no pool holds memory that a stream freed and the host has not seen
// complete; then a call costs the look at one number.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_ORDER_H
#define TIDEMARK_SIMULATOR_ORDER_H

#include "simulator/state.h"

// How many (pool, stream) pairs hold such memory.
extern uint32_t sim__order_count;

// A pool holds memory that STREAM freed; it holds none any more.
void sim__order_begin(struct sim__stream *stream);
void sim__order_end(struct sim__stream *stream);
// The next operation of STREAM waits for POSITION.
void sim__order_behind(struct sim__stream *stream, struct sim__position position);
// Up to which operation of OTHER the next one of STREAM comes after, and what the host knows of
// OTHER.
uint64_t sim__order_reached(const struct sim__stream *stream, const struct sim__stream *other);
uint64_t sim__order_observed(const struct sim__stream *other);

void sim__order__submit(struct sim__stream *stream);
void sim__order__record(const struct sim__event *event);
void sim__order__wait(struct sim__stream *stream, const struct sim__event *event);
void sim__order__observe_stream(struct sim__stream *stream);
void sim__order__observe_event(const struct sim__event *event);
void sim__order__observe_device(const struct sim__device *device);
void sim__order_clear(void);

// STREAM gets an operation.
static inline void sim__order_submit(struct sim__stream *stream) {
    if (sim__order_count > 0)
        sim__order__submit(stream);
}
// EVENT was recorded: its position is set.
static inline void sim__order_record(const struct sim__event *event) {
    if (sim__order_count > 0)
        sim__order__record(event);
}
// Later operations of STREAM come after what EVENT covers.
static inline void sim__order_wait(struct sim__stream *stream, const struct sim__event *event) {
    if (sim__order_count > 0)
        sim__order__wait(stream, event);
}
// The host saw that the work of STREAM (of the legacy stream: of those that it speaks for) is
// complete, or that EVENT is, or all work of DEVICE.
static inline void sim__order_observe_stream(struct sim__stream *stream) {
    if (sim__order_count > 0)
        sim__order__observe_stream(stream);
}
static inline void sim__order_observe_event(const struct sim__event *event) {
    if (sim__order_count > 0)
        sim__order__observe_event(event);
}
static inline void sim__order_observe_device(const struct sim__device *device) {
    if (sim__order_count > 0)
        sim__order__observe_device(device);
}

#endif
