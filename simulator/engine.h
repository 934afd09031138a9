// The engine: asynchronous work as operations, each behind its predecessors in stream order, behind
// the event it waits for, and behind the implicit order between the legacy default stream and the
// blocking streams. What is ready may run; when it does is the schedule's decision (schedule.h); a
// call that waits forces what it waits for.
//
// A stream's pending operations stand in a ring. Only the first one of a stream can be blocked, and
// by one operation at a time: then the stream hangs on that operation's list of waiters and is
// looked at again when it completes. So an operation costs O(1) besides the waits it has.
//
// All functions need the simulator's lock. Kernels and host functions run without it: every
// function that may run something can return with the state changed by other threads.
#ifndef TIDEMARK_SIMULATOR_ENGINE_H
#define TIDEMARK_SIMULATOR_ENGINE_H

#include "simulator/memory.h"
#include "simulator/state.h"

enum sim__operation_kind {
    SIM__OPERATION_RECORD,
    SIM__OPERATION_WAIT,
    SIM__OPERATION_COPY,
    SIM__OPERATION_FILL,
    SIM__OPERATION_KERNEL,
    SIM__OPERATION_HOST_FUNCTION,
};

struct sim__copy {
    void *destination;
    const void *source; // the operation's own bytes once it is staged
    size_t size;
    enum sim__place destination_place, source_place; // when it was submitted
    bool staged;
};

struct sim__fill {
    void *pointer;
    size_t size;
    enum sim__place place;
    unsigned char value;
};

struct sim__kernel {
    const char *name;
    void (*body)(const void *argument);
    const void *argument; // the operation's own bytes
    size_t argument_size;
};

struct sim__host_function {
    cudaHostFn_t function;
    void *user_data;
};

struct sim__operation {
    enum sim__operation_kind kind;
    uint32_t wait_count; // positions of other streams that must be complete before it runs
    uint32_t wait_done;
    struct sim__position wait;   // the first
    struct sim__position *waits; // all, if there are several
    struct sim__stream *waiters; // streams that are blocked by this operation
    union {
        uint64_t event; // handle
        struct sim__copy copy;
        struct sim__fill fill;
        struct sim__kernel kernel;
        struct sim__host_function host_function;
    };
};

static inline bool sim__position_complete(struct sim__position position) {
    return position.stream == NULL || position.stream->completed >= position.sequence;
}
static inline bool sim__stream_pending(const struct sim__stream *stream) {
    return stream->submitted > stream->completed;
}

// Enqueues OPERATION (copied; what it points to as well, where CUDA copies) in STREAM, behind
// AFTER, and lets the schedule run what it will. Returns its position.
struct sim__position sim__engine_submit(struct sim__stream *stream,
                                        const struct sim__operation *operation,
                                        struct sim__position after);

// Runs whatever POSITION needs, held streams included, until it is complete.
void sim__engine_force(struct sim__position position);
// All work of the device; of the legacy stream and all blocking streams, if
// only_ordered_with_legacy.
void sim__engine_force_device(struct sim__device *device, bool only_ordered_with_legacy);
void sim__engine_force_all(void);

// Runs what the schedule lets run.
void sim__engine_run_ready(void);
// The hold of STREAM ended: what is ready may run.
void sim__engine_release(struct sim__stream *stream);
// Runs the first operation of STREAM, held or not; false if there is none or it is blocked.
bool sim__engine_step(struct sim__stream *stream);

// Drops all pending work of STREAM without running it: the machine is being switched off.
void sim__engine_discard(struct sim__stream *stream);

// The work of an operation (work.c). Either a function is to be called, without the lock; or it is
// done at once.
bool sim__operation_is_call(const struct sim__device *device,
                            const struct sim__operation *operation);
void sim__operation_call(const struct sim__operation *operation);
void sim__operation_run(struct sim__position position, const struct sim__operation *operation);
// Copies what OPERATION points to and CUDA reads at the call, so that it can run later; and frees
// that.
void sim__operation_keep(struct sim__operation *operation);
void sim__operation_release(struct sim__operation *operation);

#endif
