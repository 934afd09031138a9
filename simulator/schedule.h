// The schedule decides when ready work runs:
//
//     eager.c    at once, within the call that makes it ready
//     lazy.c     not before a wait needs it, or a query asks again
//     random.c   any legal order, from a seed
//     timed.c    when a virtual clock says so
//
// The engine tells the schedule which streams have a first operation that could run, and the
// schedule has it run through sim__engine_run_first. Held streams are never offered. All functions
// need the simulator's lock, and may return with the state changed by other threads.
#ifndef TIDEMARK_SIMULATOR_SCHEDULE_H
#define TIDEMARK_SIMULATOR_SCHEDULE_H

#include "simulator/state.h"

struct sim__schedule {
    const char *name;
    // Work that is ready when it is submitted runs within the submission and is never offered.
    bool runs_at_once;
    // A query may say "not ready" of work that is complete, so what the host knows is tracked.
    bool doubts;
    // Forgets everything; the machine starts.
    void (*reset)(void);
    // The first operation of STREAM became ready; it no longer is the schedule's to run.
    void (*offer)(struct sim__stream *stream);
    void (*withdraw)(struct sim__stream *stream);
    // STREAM has a new operation, ready or not. NULL: of no interest.
    void (*submitted)(struct sim__stream *stream);
    // A CUDA call begins, or ends a submission: what may run now does. NULL: nothing ever.
    void (*point)(void);
    // Runs work until POSITION, which is not complete, is.
    void (*force)(struct sim__position position);
    // A query of POSITION finds it incomplete: polling must succeed in the end.
    void (*poll)(struct sim__position position);
    // The host learns that POSITION is complete. NULL: of no interest.
    void (*learned)(struct sim__position position);
    // Whether a query of complete work whose completion the host does not know says "not ready".
    bool (*doubt)(void);
    // Which of COUNT, all equal in order, is to run next where the schedule is not asked to run it.
    // NULL: the first.
    uint32_t (*choose)(uint32_t count);
};

extern const struct sim__schedule sim__schedule_eager;
extern const struct sim__schedule sim__schedule_lazy;
extern const struct sim__schedule sim__schedule_random;
extern const struct sim__schedule sim__schedule_timed;

// The one in force.
extern const struct sim__schedule *sim__schedule;

// The seed of sim__schedule_random; takes effect at the next reset.
void sim__schedule_random_seed(uint64_t seed);

// The text that chose it.
const char *sim__schedule_text(void);

// Chooses the schedule that TEXT names; of the environment, if nothing was chosen so far.
enum base_status sim__schedule_choose(const char *text);
enum base_status sim__schedule_from_environment(void);

#endif
