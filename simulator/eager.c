// The eager schedule: all that is ready runs at once, streams in the order in which they became
// ready. A stream that was forced or held after it was offered stays in the queue; whoever takes it
// out looks at its state again.
#include "simulator/engine.h"
#include "simulator/schedule.h"

static struct sim__stream *first_offered;
static struct sim__stream **last_link = &first_offered;

static void reset(void) {
    first_offered = NULL;
    last_link = &first_offered;
}

static void offer(struct sim__stream *stream) {
    if (stream->schedule.offered)
        return;
    stream->schedule.offered = true;
    stream->schedule.next_offered = NULL;
    *last_link = stream;
    last_link = &stream->schedule.next_offered;
}

static void withdraw(struct sim__stream *stream) { (void)stream; }

static void point(void) {
    struct sim__stream *stream;
    while ((stream = first_offered) != NULL) {
        first_offered = stream->schedule.next_offered;
        if (first_offered == NULL)
            last_link = &first_offered;
        stream->schedule.offered = false;
        if (!stream->held && sim__engine_is_ready(stream))
            sim__engine_run_first(stream);
    }
}

static void force(struct sim__position position) {
    sim__engine_run_goal(position);
    point();
}

// What is ready ran already; the rest is held.
static void poll(struct sim__position position) { (void)position; }

const struct sim__schedule sim__schedule_eager = {
    .name = "eager",
    .runs_at_once = true,
    .reset = reset,
    .offer = offer,
    .withdraw = withdraw,
    .point = point,
    .force = force,
    .poll = poll,
};
