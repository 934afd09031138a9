// What happened last, for the words and the pictures of reports: operations and edges as they were
// submitted, in a ring; and of memory and of allocators' blocks who has them, while they live and
// a while longer. What the checker decides never comes from here.
//
// All functions need the simulator's lock. A call costs some 20 ns: no memory is taken.
#ifndef TIDEMARK_SIMULATOR_RACE_LOG_H
#define TIDEMARK_SIMULATOR_RACE_LOG_H

#include "simulator/race_site.h"

enum sim__race_entry_kind {
    SIM__RACE_LOG_OPERATION, // kernels, copies, fills, values, host functions; launches of graphs
    SIM__RACE_LOG_NODE,   // an operation that was captured: SEQUENCE is the node, OBJECT the graph
    SIM__RACE_LOG_RECORD, // an event was recorded: OTHER and OTHER_SEQUENCE are what it covers
    SIM__RACE_LOG_WAIT,   // STREAM waits for what an event covers; OTHER 0: it was never recorded
    SIM__RACE_LOG_HOST_WAIT, // the host saw OTHER complete up to OTHER_SEQUENCE; OTHER 0: all work
    SIM__RACE_LOG_HOST,      // the host touched memory
    SIM__RACE_LOG_ALLOC,     // memory begins, in host order or in that of STREAM; it ends
    SIM__RACE_LOG_FREE,
    SIM__RACE_LOG_TAKE, // of a block: OBJECT is its number
    SIM__RACE_LOG_USE,
    SIM__RACE_LOG_GIVE,
};

struct sim__race_entry {
    uint64_t number;           // of all entries, from 1
    uint64_t stream, sequence; // the stream's number, 0: the host
    uint64_t other, other_sequence;
    uint64_t object;      // event handle, block, graph
    uint64_t start, size; // memory, if any
    uint32_t origin;
    uint8_t kind; // enum sim__race_entry_kind
    int8_t device;
    bool captured; // RECORD and WAIT: within a capture; SEQUENCE and OTHER_SEQUENCE are nodes, or 0
};

#define SIM__RACE_LOG_ENTRIES 32768

void sim__race_log_operation(struct sim__position position, uint32_t origin);
// A graph: OPERATION's node NODE of the capture that makes GRAPH.
void sim__race_log_node(const struct sim__stream *stream, uint64_t graph, uint64_t node,
                        uint32_t origin);
// EVENT was recorded in POSITION's stream, which POSITION covers.
void sim__race_log_record(struct sim__position position, uint64_t event);
// Later operations of STREAM come after COVERED; of no stream: the event was never recorded.
void sim__race_log_wait(const struct sim__stream *stream, uint64_t event,
                        struct sim__position covered);
// The same while they capture.
void sim__race_log_record_captured(const struct sim__stream *stream, uint64_t event);
void sim__race_log_wait_captured(const struct sim__stream *stream, uint64_t event,
                                 uint64_t other_stream);
// The host saw that COVERED is complete; of no stream: all work of DEVICE.
void sim__race_log_host_wait(struct sim__position covered, int device);
void sim__race_log_host(uint32_t origin, uint64_t start, uint64_t size);
// STREAM NULL: in host order.
void sim__race_log_alloc(uint64_t start, uint64_t size, const struct sim__stream *stream);
void sim__race_log_free(uint64_t start, uint64_t size, const struct sim__stream *stream);
void sim__race_log_take(uint64_t block, uint64_t start, uint64_t size,
                        const struct sim__stream *stream, const char *name);
void sim__race_log_use(uint64_t block, const struct sim__stream *stream);
void sim__race_log_give(uint64_t block);
// The machine starts; and the checker does.
void sim__race_log_reset(void);

// --- For reports ---

// Number of the last entry; entries from sim__race_log_first() on are kept.
uint64_t sim__race_log_last(void);
uint64_t sim__race_log_first(void);
const struct sim__race_entry *sim__race_log_at(uint64_t number);

// A stream that was seen in an entry; of others a blocking stream of device 0.
struct sim__race_stream {
    int device;
    bool legacy, nonblocking;
};
struct sim__race_stream sim__race_log_stream(uint64_t number);

#define SIM__RACE_BLOCK_USES 4

struct sim__race_block {
    uint64_t number, start, size, stream;
    const char *name;      // kept, or NULL
    uint64_t taken, given; // numbers of entries; given 0: it is held
    uint32_t taken_origin, given_origin;
    // The first streams it was recorded for; more are only counted.
    struct {
        uint64_t stream, number;
        uint32_t origin;
    } uses[SIM__RACE_BLOCK_USES];
    uint32_t use_count;
};
// NULL if it is none or was given back longer ago than the last thousand.
const struct sim__race_block *sim__race_log_block(uint64_t number);

struct sim__race_allocation {
    uint64_t start, size, stream;
    uint32_t origin, freed_origin; // freed_origin 0: it lives
};
// What holds ADDRESS, else what held it last, within the last thousand that went; NULL: nothing.
const struct sim__race_allocation *sim__race_log_allocation(uint64_t address);

#endif
