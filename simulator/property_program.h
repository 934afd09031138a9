// Random race-free programs for property_test: drawn from a seed, with what orders every
// conflicting pair, and with the memory that they must leave.
//
// A program is made race-free as it is drawn: before an access that some earlier one conflicts with
// and that nothing orders yet, the generator adds what orders it, an event, a wait of the host, a
// polling loop. What is ordered it knows from vector clocks of its own; what memory must be in the
// end, from running the operations one by one as they were drawn. Neither comes from the simulator.
#ifndef TIDEMARK_SIMULATOR_PROPERTY_PROGRAM_H
#define TIDEMARK_SIMULATOR_PROPERTY_PROGRAM_H

#include "base/random.h"

#include <stdbool.h>

#define STREAMS 6  // 0 is the legacy stream, 1 and 2 are blocking, 3 is the thread's own
#define BLOCKING_FIRST 1
#define BLOCKING_LAST 3
#define BUFFERS 5
#define PINNED_FIRST 3 // the last buffers are page-locked host memory
#define CELLS 24       // of each buffer
#define OPERATIONS_MAX 40
#define EVENTS 4

enum kind {
    ADD,         // cells of TO += VALUE, a kernel
    MIX,         // cells of TO = 3 * TO + cells of FROM, a kernel
    ATOMIC,      // cells of TO += VALUE, as atomics
    COPY,        // cudaMemcpy2DAsync or cudaMemcpyAsync, by the stride
    FILL,        // the same for memset
    PLAIN_COPY,  // cudaMemcpy in the legacy stream
    PEER_COPY,   // cudaMemcpyPeer, from the device to itself: between all its work
    HOST_ADD,    // the host does it
    HOST_FUNCTION,
    RECORD,
    WAIT,
    EVENT_SYNC,
    EVENT_POLL,
    STREAM_SYNC,
    STREAM_POLL,
    DEVICE_SYNC,
    HAND_OVER, // the calls that follow are another thread's
    KIND_COUNT,
};

// COUNT pieces of LENGTH cells, their starts STRIDE apart.
struct span {
    int buffer, start, length, stride, count;
};

struct operation {
    enum kind kind;
    int stream, event;
    unsigned char value;
    struct span to, from;
};

// What it has of what is hard to get right: strided ranges between each other's pieces, unordered
// atomics, loops of queries, hand-offs to the other thread.
struct program {
    struct operation operations[4 * OPERATIONS_MAX];
    int count;
    bool has_stride, has_atomic, has_poll, has_hand_over;
};

bool operation_is_work(const struct operation *operation);
bool stream_is_blocking(int stream);

// Does to BYTES, the buffers, what OPERATION does.
void operation_perform(const struct operation *operation, unsigned char *const bytes[BUFFERS]);

// Draws PROGRAM; MEMORY, all 0 before it, is what it must leave.
void program_draw(struct base_random *random, struct program *program,
                  unsigned char memory[BUFFERS][CELLS]);

#endif
