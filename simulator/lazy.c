// The lazy schedule: nothing runs before something needs it. A wait runs what it waits for and what
// that comes after, no more; a query that must say "not ready" runs one operation of those, so that
// polling ends. It keeps nothing: what is needed is found from the other end.
#include "simulator/engine.h"
#include "simulator/schedule.h"

static void reset(void) {}
static void offer(struct sim__stream *stream) { (void)stream; }
static void withdraw(struct sim__stream *stream) { (void)stream; }
static void poll(struct sim__position position) { (void)sim__engine_step_goal(position); }

const struct sim__schedule sim__schedule_lazy = {
    .name = "lazy",
    .reset = reset,
    .offer = offer,
    .withdraw = withdraw,
    .force = sim__engine_run_goal,
    .poll = poll,
};
