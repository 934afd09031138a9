// What the simulated machine consists of, for the files of this room: its devices, streams and
// events, behind one lock. A CUDA call takes the lock at its start and gives it back at its end
// (call.h); kernels and host functions run without it. No other lock is taken while it is held.
//
// Names with sim__ are linked but internal to simulator/.
#ifndef TIDEMARK_SIMULATOR_STATE_H
#define TIDEMARK_SIMULATOR_STATE_H

#include "base/thread.h"
#include "simulator/handle.h"
#include "simulator/range_index.h"
#include "simulator/sim.h"
#include "simulator/space.h"

#include <stdatomic.h>

struct sim__operation;     // engine.h
struct sim__launch;        // replay.h
struct sim__capture_part;  // capture.h
struct sim__event_capture; // capture.h

// A point in a stream: complete when all of the stream's operations up to this sequence number are.
// Streams never restart their numbers, so a position stays meaningful when its stream is long gone.
struct sim__position {
    struct sim__stream *stream; // NULL: always complete
    uint64_t sequence;
};

// A place in a list of streams; previous is NULL outside it.
struct sim__link {
    struct sim__stream *next;
    struct sim__stream **previous;
};

// How much of a stream the host knows to be complete, and what it knows with it (observe.c).
struct sim__observation {
    uint64_t sequence;       // the host knows that this operation and all before are complete
    struct sim__link link;   // among the device's streams with operations that it does not know of
    struct sim__edge *edges; // what this stream's operations waited for, oldest first
    uint32_t edge_first, edge_count, edge_size;
};

// What stands beside a typical virtual time: the same time with the low and the high costs
// (cost.h).
struct sim__bounds {
    uint64_t low_ns, high_ns;
};

// What the schedule in force keeps of a stream.
struct sim__stream_schedule {
    bool offered;                     // eager: it stands in the queue
    struct sim__stream *next_offered; // eager
    uint32_t heap_place;              // random, timed: 1 + index in a heap, 0 outside
    uint32_t ordinal;                 // random: 1, 2 ... by first use; 0: nothing was drawn
    bool prompt;                      // random: its work runs at once
    uint32_t draw_count;              // random
    uint64_t key;                     // random
    uint8_t resource;                 // timed: what its first operation occupies or queues for
    bool started;                     // timed: its first operation is under way
    uint64_t ready_ns;                // timed: when its first operation became ready
    uint64_t start_ns, end_ns;        // of the operation that runs, or ran last
    struct sim__bounds ready_bounds, end_bounds; // timed
};

struct sim__stream {
    struct sim__handle_slot slot;
    uint64_t number; // from 1 since the machine started, each stream another one
    int device;
    unsigned int flags;
    int priority;
    bool legacy;    // the legacy default stream of its device
    bool held;      // sim_stream_hold
    bool destroyed; // by the program, while work was pending
    bool blocked;   // its first operation waits for one of another stream
    bool running;   // a thread runs its first operation without the lock
    struct sim__capture_part *capture; // its part in a capture; NULL: it does not capture

    // Operations are numbered from 1. Pending ones, completed + 1 to submitted, stand in a ring.
    uint64_t submitted;
    uint64_t completed;
    struct sim__operation *ring;
    uint64_t ring_size; // a power of two, or 0

    struct sim__launch *launch; // of a lane: whose nodes it runs now; of the program's streams NULL
    uint32_t lane;              // which of that launch's, from 0

    uint64_t legacy_seen; // the legacy stream's operation that this stream waited for last
    uint64_t fence_seen;  // the number of the device's fence that this stream waited for last
    uint32_t order_column; // order.h, if that column is this stream's
    struct sim__stream *next_waiter;      // among the streams blocked by one operation
    struct sim__link pending;             // among the device's streams with pending work
    struct sim__link unseen;              // see struct sim__device
    struct sim__observation observation;  // observe.c
    struct sim__stream_schedule schedule; // the schedule in force
};

struct sim__event {
    struct sim__handle_slot slot;
    int device;
    unsigned int flags;
    bool recorded;
    struct sim__position position; // what it covers
    uint64_t time_ns;              // virtual time at which the position was reached
    struct sim__event_capture *captured; // recorded in a capture (capture.h); else NULL
};

struct sim__device {
    int index;
    cudaError_t
        sticky_error; // after it every call of a thread whose current device this is fails alike
    struct sim__stream *legacy;
    struct sim__stream *hidden;  // for work that belongs to no stream of the program; NULL before
    struct sim__stream *pending; // streams with pending work
    // Blocking streams with operations that the legacy stream has not waited for yet; may hold
    // streams whose operations are complete meanwhile.
    struct sim__stream *unseen;
    struct sim__stream *unobserved; // streams with operations that the host does not know of
    // An operation that all later ones of the device come after.
    struct sim__position fence;
    uint64_t fence_number;  // grows with each fence
    uint32_t peers_enabled; // bit D: access to device D was enabled

    // Memory. Free physical memory is known by place only with numerics on.
    uint64_t used_bytes;
    uint64_t foreign_bytes;
    uint64_t context_bytes; // what the primary context takes while it is active
    int physical_file;
    struct sim__space physical_free;

    // Addresses that this device chooses from.
    uint64_t addresses_start;
    uint64_t addresses_end;
    uint64_t address_next;          // ascending
    struct sim__space address_free; // reused
    uint64_t *queued_addresses;     // sim_next_address, first in first out
    size_t queued_first, queued_count, queued_size;
    bool addresses_chosen; // a queued address was used: ascending ones may meet it
};

struct sim__state {
    struct base_mutex lock;
    // A thread that must wait for an operation that another thread is running waits here.
    struct base_condition operation_done;
    int operation_waiters;

    bool ready; // configured, by sim_configure or by the first call
    // Virtual time of the host. Under "timed" the calls' and operations' costs make it; else each
    // operation that does work adds a microsecond.
    uint64_t now_ns;
    struct sim__bounds now_bounds; // only under "timed"
    uint64_t stall_ns; // what a planned fault adds to the start of the call's operations
    struct sim_options options;
    struct sim__device devices[SIM_DEVICE_COUNT_MAX];
    uint64_t stream_count; // taken since the machine started
    struct sim__handle_table streams;
    struct sim__handle_table events;
    struct sim__range_index segments; // mapped device memory of all devices: struct sim__segment
    struct sim__range_index blocks;   // what cudaMallocAsync handed out: struct sim__block
    struct sim__range_index reservations; // of cuMemAddressReserve: struct sim__reservation
    struct sim__range_index host_ranges;  // page-locked host memory

    uint64_t address_used_bytes; // of the budget, options.address_bytes
    // Where cuMemAddressReserve finds addresses.
    uint64_t virtual_start, virtual_end;
    // Device memory at an address the program holds is mapped for the simulator this much further;
    // 0 outside checked mode: at the address itself.
    uint64_t mirror_offset;
};

extern struct sim__state sim__state;

// How many contexts a thread can have pushed.
#define SIM__CONTEXT_STACK 32
// How many callers of a call are kept in checked mode and while races are looked for.
#define SIM__CALLERS 8

// What belongs to a host thread. It starts anew when the devices do.
struct sim__thread {
    uint64_t epoch;
    uint64_t number; // from 1, unique in the process
    int device;
    cudaError_t last_error;
    enum cudaStreamCaptureMode capture_mode;
    int work_depth;            // inside a kernel or host function
    int work_device;           // whose work that is
    bool has_context;          // the primary context of its device is current, or none is
    bool in_driver_call;       // which neither needs that nor changes the last error
    cudaError_t runtime_error; // the last error before the driver call
    uint8_t context_count;
    int8_t contexts[SIM__CONTEXT_STACK];    // below the current one; their devices, or -1
    bool is_explained;                      // checked mode: why the call fails was said, or is
                                            // no mistake of the program's
    enum sim_call call;                     // as the callers: the call that it is in
    const void *callers[SIM__CALLERS];      // who called it, and that, as addresses of code
    uint64_t streams[SIM_DEVICE_COUNT_MAX]; // handles of its per-thread default streams, 0 before
                                            // the first use
};
extern _Thread_local struct sim__thread sim__thread_state;
extern _Atomic uint64_t sim__epoch; // counts the stops of the machine
void sim__thread_begin(uint64_t now);
static inline struct sim__thread *sim__thread(void) {
    const uint64_t now = atomic_load_explicit(
        &sim__epoch, memory_order_acquire); // pairs with the addition in machine_stop
    if (__builtin_expect(sim__thread_state.epoch != now, 0))
        sim__thread_begin(now);
    return &sim__thread_state;
}

// Configures from the environment if nothing did so far; a bad variable ends the program with one
// line and exit status 2.
void sim__start_locked(void);
// Host threads take turns from now on, if TIDEMARK_SIM_SERIALIZE says so (serialize.c).
enum base_status sim__serialize_from_environment(void);
// A host limit ends the program with one line and exit status 3; it must never look like a CUDA
// error.
_Noreturn void sim__host_limit(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
