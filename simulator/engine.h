// The engine: asynchronous work as operations, each behind its predecessors in stream order, behind
// the event it waits for, and behind the implicit order between the legacy default stream and the
// blocking streams. What is ready may run; when it does is the schedule's decision (schedule.h); a
// call that waits forces what it waits for.
//
// A stream's pending operations stand in a ring. Only the first one of a stream can be blocked, and
// by one operation at a time: then the stream hangs on that operation's list of waiters and is
// looked at again when it completes. So an operation costs O(1) besides the waits it has.
//
//     engine.c   submission, order, running one operation
//     wait.c     what calls wait for and ask about
//     observe.c  what the host knows to be complete
//     work.c     what operations do
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
    SIM__OPERATION_VALUE,
    SIM__OPERATION_LAUNCH_BEGIN, // of a graph: all its nodes come between the two
    SIM__OPERATION_LAUNCH_END,
    SIM__OPERATION_INTERNAL,
};
#define SIM__OPERATION_KIND_COUNT (SIM__OPERATION_INTERNAL + 1)

// ROWS rows of SIZE bytes, their starts PITCH bytes apart; a plain copy has one row.
struct sim__copy {
    void *destination;
    const void *source; // the operation's own bytes once it is staged
    size_t size, rows;
    size_t destination_pitch, source_pitch;
    enum sim__place destination_place : 8, source_place : 8; // when it was submitted
    bool stage;  // CUDA reads the source at the call
    bool staged; // it was
    bool peer;   // between devices, through the peer calls
    bool named;  // the call named each side's device: that one's rights count, not the stream's
};

struct sim__fill {
    void *pointer;
    size_t size, rows, pitch;
    enum sim__place place;
    uint32_t value; // its lowest byte, or all of it, again and again
    bool words;
};

struct sim__kernel {
    const char *name;
    void (*body)(const void *argument);
    const void *argument; // the operation's own bytes
    size_t argument_size;
    // What it moves and computes, for the timed schedule; 0: unknown.
    uint64_t bytes, flops, tensor_flops;
    // What it touches: the caller's, valid while it is submitted or made a node.
    const struct sim_access *accesses;
    size_t access_count;
};

// One of the two functions.
struct sim__host_function {
    cudaHostFn_t function;
    cudaStreamCallback_t callback;
    cudaStream_t stream; // as the callback is told it
    void *user_data;
    const struct sim_access *accesses; // as of a kernel
    size_t access_count;
};

// A value that the stream writes to memory that the host reads (cuStreamWriteValue32, 64).
struct sim__value {
    void *address;
    uint64_t value;
    uint32_t size; // 4 or 8
    enum sim__place place;
};

// Something of the simulator's own in stream order, under its lock. It may not run or submit work.
struct sim__internal {
    const char *name;
    // DISCARDED: the machine is being switched off, and only ARGUMENT is to be freed.
    void (*run)(void *argument, bool discarded);
    void *argument;
};

struct sim__operation {
    enum sim__operation_kind kind;
    uint32_t wait_count; // positions of other streams that must be complete before it runs
    uint32_t wait_done;
    struct sim__position wait;   // the first
    struct sim__position *waits; // all, if there are several
    struct sim__stream *waiters; // streams that are blocked by this operation
    uint64_t earliest_ns;        // virtual time before which it does not start
    struct sim__bounds earliest_bounds;
    // A graph's node in its lane: which one of the executable's, and what it does, counted: the
    // bytes that the operation points to are that one's. Set by the submission.
    uint32_t node;
    struct sim__graph_work *work;
    union {
        uint64_t event; // handle
        struct sim__copy copy;
        struct sim__fill fill;
        struct sim__kernel kernel;
        struct sim__host_function host_function;
        struct sim__value value;
        struct sim__launch *launch; // replay.h
        struct sim__internal internal;
    };
};

static inline bool sim__position_complete(struct sim__position position) {
    return position.stream == NULL || position.stream->completed >= position.sequence;
}
static inline bool sim__stream_pending(const struct sim__stream *stream) {
    return stream->submitted > stream->completed;
}
static inline bool sim__stream_is_blocking(const struct sim__stream *stream) {
    return !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}
// Whether the legacy stream's synchronise and query speak for STREAM.
static inline bool sim__stream_is_ordered(const struct sim__stream *stream) {
    return (stream->flags & cudaStreamNonBlocking) == 0;
}

// Lists of streams through the struct sim__link at LINK_OFFSET of each.
static inline struct sim__link *sim__list_link(struct sim__stream *stream, size_t link_offset) {
    return (struct sim__link *)(void *)((char *)stream + link_offset);
}
static inline void sim__list_add(struct sim__stream **list, struct sim__stream *stream,
                                 size_t link_offset) {
    struct sim__link *link = sim__list_link(stream, link_offset);
    *link = (struct sim__link){*list, list};
    if (*list != NULL)
        sim__list_link(*list, link_offset)->previous = &link->next;
    *list = stream;
}
static inline void sim__list_remove(struct sim__stream *stream, size_t link_offset) {
    struct sim__link *link = sim__list_link(stream, link_offset);
    *link->previous = link->next;
    if (link->next != NULL)
        sim__list_link(link->next, link_offset)->previous = link->previous;
    link->previous = NULL;
}

// --- engine.c ---

// Enqueues OPERATION (copied; what it points to as well, where CUDA copies) in STREAM, behind
// AFTER, and lets the schedule run what it will. Returns its position.
struct sim__position sim__engine_submit(struct sim__stream *stream,
                                        const struct sim__operation *operation,
                                        struct sim__position after);
// Whether an operation of STREAM, which is not the legacy stream, would now come after work of
// others that the stream's earlier ones do not come after.
bool sim__engine_orders(const struct sim__stream *stream);
// As sim__engine_submit, behind COUNT positions.
struct sim__position sim__engine_submit_after(struct sim__stream *stream,
                                              const struct sim__operation *operation,
                                              const struct sim__position *after, size_t count);
// As that in a lane: OPERATION is the NODE-th of the executable that is launched, and its bytes are
// WORK's, which may be NULL for one without bytes.
struct sim__position sim__engine_submit_node(struct sim__stream *lane,
                                             const struct sim__operation *operation, uint32_t node,
                                             struct sim__graph_work *work,
                                             const struct sim__position *after, size_t count);
// What is submitted between the two is one step for other threads: nothing that gives the lock back
// runs before the end.
void sim__engine_group_begin(void);
void sim__engine_group_end(void);
// Enqueues OPERATION between all earlier and all later work of the devices in the bit mask DEVICES;
// the host waits for nothing.
struct sim__position sim__engine_submit_fence(uint32_t devices,
                                              const struct sim__operation *operation);
// Enqueues OPERATION behind all that those devices have pending now; nothing comes after it.
void sim__engine_submit_behind(uint32_t devices, const struct sim__operation *operation);

// A CUDA call begins: the schedule may run something.
void sim__engine_point(void);
// Holds STREAM, or ends that: what is ready may run.
void sim__engine_hold(struct sim__stream *stream, bool held);
// Runs the first operation of STREAM, held or not; false if there is none or it is blocked. A
// launch of a graph is one, with all its nodes.
bool sim__engine_step(struct sim__stream *stream);
// Offers all that is ready to the schedule anew: it is another one than before.
void sim__engine_offer_all(void);

// Drops all pending work of STREAM without running it: the machine is being switched off.
void sim__engine_discard(struct sim__stream *stream);
// STREAM's handle is given back: its lists forget it.
void sim__engine_forget(struct sim__stream *stream);

// For schedules. Ready: the first operation exists, waits for nothing and is not running.
static inline bool sim__engine_is_ready(const struct sim__stream *stream) {
    return sim__stream_pending(stream) && !stream->blocked && !stream->running;
}
// The first operation, which exists; and what it waits for, if it is blocked.
struct sim__operation *sim__engine_first(const struct sim__stream *stream);
// How many operations of STREAM are pending; a launch of a graph is one.
uint64_t sim__engine_pending(const struct sim__stream *stream);
struct sim__position sim__engine_blocked_by(const struct sim__stream *stream);
// Runs it to its end; it must be ready.
void sim__engine_run_first(struct sim__stream *stream);
// A thread that must wait until another one has run the operation that it is at.
void sim__engine_wait_running(void);

// --- wait.c ---

// Runs what the schedule will until POSITION is complete, held streams included where needed.
void sim__engine_force(struct sim__position position);
// What cudaStreamSynchronize waits for.
void sim__engine_force_stream(struct sim__stream *stream);
// All work of the device.
void sim__engine_force_device(struct sim__device *device);
void sim__engine_force_all(void);

// What a query answers: whether POSITION is complete and the host learns of it.
bool sim__engine_query(struct sim__position position);
bool sim__engine_query_stream(struct sim__stream *stream);
// A program watches memory that the device writes: as a query that says "not ready".
void sim__engine_poll(void);

// For schedules. Runs POSITION and what it comes after, held or not, nothing else.
void sim__engine_run_goal(struct sim__position position);
// Runs one operation of those; false if held streams or other threads are in the way.
bool sim__engine_step_goal(struct sim__position position);

// --- observe.c: only under a schedule that doubts ---

// STREAM's operation SEQUENCE comes after POSITION.
void sim__observe_edge(struct sim__stream *stream, uint64_t sequence,
                       struct sim__position position);
// STREAM got an operation.
void sim__observe_submitted(struct sim__stream *stream);
// The host learns that POSITION is complete, and with it all that it came after.
void sim__observe(struct sim__position position);
static inline bool sim__is_observed(struct sim__position position) {
    return position.stream == NULL || position.stream->observation.sequence >= position.sequence;
}
// The host knows what is complete now.
void sim__observe_reset(struct sim__stream *stream);
// The host need not be told of STREAM any more.
void sim__observe_forget(struct sim__stream *stream);

// --- work.c ---

// Either a function is to be called, without the lock; or the work is done at once.
bool sim__operation_is_call(const struct sim__device *device,
                            const struct sim__operation *operation);
void sim__operation_call(const struct sim__operation *operation, int device, cudaError_t status);
void sim__operation_run(struct sim__position position, const struct sim__operation *operation);
// Copies what OPERATION points to and CUDA reads at the call, so that it can run later; and frees
// that.
void sim__operation_keep(struct sim__operation *operation);
void sim__operation_release(struct sim__operation *operation);

// --- launch.c ---

// What a launch of KERNEL is as an operation: its kind and member; what it points to is the
// caller's. cudaErrorInvalidDeviceFunction, cudaErrorInvalidValue.
cudaError_t sim__kernel_operation(const struct sim_kernel *kernel,
                                  struct sim__operation *operation);

// --- Whoever listens: a transcript, a checker ---

struct sim__observer {
    // An operation was enqueued; WAITS are operations of other streams that it comes after, those
    // that are complete left out.
    void (*submitted)(struct sim__position position, const struct sim__operation *operation,
                      const struct sim__position *waits, size_t wait_count);
    // It is complete; when it ran, in virtual time.
    void (*completed)(struct sim__position position, const struct sim__operation *operation,
                      uint64_t start_ns, uint64_t end_ns);
};
extern const struct sim__observer *sim__observer; // NULL: nobody

#endif
