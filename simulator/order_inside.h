// The inside of the order, for order.c (streams, events, executables) and order_host.c (the host).
#ifndef TIDEMARK_SIMULATOR_ORDER_INSIDE_H
#define TIDEMARK_SIMULATOR_ORDER_INSIDE_H

#include "simulator/order.h"
#include "simulator/order_clock.h"

#define SIM__COLUMNS_MAX (1u << 20)

struct sim__column {
    struct sim__stream *stream; // NULL: a host thread's, or a pools' column
    uint64_t handle;            // tells the stream from a later one in its slot
    uint64_t number;            // of the stream
    int device;
    bool legacy, blocking;
    bool is_fences; // what is ordered in it are fences
    bool is_pools;  // another column's pool_column
    uint32_t pool_column;
    uint32_t free_count; // pools that hold memory that the stream freed
    uint64_t offset;     // what the engine's numbers are moved by
    uint64_t first;      // numbers up to this one are of an earlier stream
    uint64_t last;       // given to an operation
    struct sim__order_clock *clock; // of the next operation
    uint64_t version;               // grows with the clock and with each operation
    uint64_t seen_version;   // of a blocking stream: of the legacy stream, when it was joined last
    uint64_t legacy_version; // its own, when the legacy stream joined it last
    uint32_t host_column;    // the host thread that was joined last, and its version then
    uint64_t host_version;
    uint64_t fence_number; // the device's fence that was joined last
};

// A host thread, or all of them.
struct sim__host {
    uint32_t column;
    bool published; // somebody knows of its steps so far: the next one gets another number
    uint64_t version;
    struct sim__order_clock *clock; // with its own step
};

extern uint64_t sim__order_generation;
extern uint32_t sim__order_pool_count; // of sim__order_count
extern struct sim__column *sim__columns; // moves when one is added; the first is the host's
extern uint32_t sim__column_count;
uint32_t sim__column_add(void);

// What any host thread knows: for pools.
extern struct sim__order_clock *sim__order_seen;

bool sim__order_join(struct sim__order_clock **clock, const struct sim__order_point *point);

// The calling thread's. Can add a column. It does something: a step, which whoever took over its
// earlier ones does not know of.
struct sim__host *sim__host_current(void);
struct sim__host *sim__host_step(void);
void sim__hosts_clear(void);

void sim__order_view_settle(struct sim__order_view *view);

// One more asks. If it is the first, tracking starts.
void sim__order_use(void);
void sim__order_start(void);
void sim__order_forget(void);

#endif
