// The inside of the generator: what it knows while it draws a program (drawing.c), for draw.c,
// which chooses what comes next.
//
// What comes before a call it knows as a set of all that does: two bits an operation, one for the
// step of the host, one for the execution. Sets are handed on by unions: a stream's to an event, an
// event's to a stream, a stream's to the host.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_DRAWING_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_DRAWING_H

#include "base/random.h"
#include "simulator/race_property/program.h"

#define PASTS_MAX 8192

struct seen {
    uint64_t words[OPERATIONS_MAX / 32 + 1];
};

// Who acts: a stream, a host thread, a plain peer copy of some devices (a bit each).
enum home { HOME_STREAM, HOME_HOST, HOME_FENCE };

// An access that may still conflict with a later one.
struct past {
    int bit; // of struct seen
    enum home home;
    int index;
    enum access_mode mode;
    int buffer;
    uint32_t mask;
};
struct pasts {
    int count;
    struct past items[PASTS_MAX];
};

// Which cells hold what somebody wrote, and through which blocks.
struct contents {
    uint32_t defined[BUFFERS_MAX];
    uint32_t written[BLOCKS_MAX];
};

struct drawn_capture { // the graph that it became, too
    bool active;
    enum capture_mode mode;
    int thread, origin;
    int device;
    uint32_t members, returned;
    int count;
    int nodes[OPERATIONS_MAX]; // operations
    bool has_memory;
    int exec_count;
    struct pasts pasts; // of its nodes, among each other
    struct contents contents;
};

struct drawing {
    struct base_random *random;
    struct program *program;
    int thread; // that makes the calls
    struct {
        struct seen seen;     // of eager work
        struct seen captured; // of the nodes of its capture
        int capture;          // or NONE
        bool destroyed;
        int value; // the last one written, and what it comes after
        struct seen value_seen;
    } streams[STREAMS_MAX];
    struct seen hosts[THREADS], fences[DEVICES];
    struct {
        bool exists, recorded;
        int device, capture, stream;
        struct seen seen;
    } events[EVENTS_MAX];
    struct pasts pasts;
    struct contents contents;
    int capture_count;
    struct drawn_capture captures[GRAPHS_MAX];
    struct {
        int capture; // or NONE
        struct seen last;
    } execs[EXECS_MAX];
    int exec_count;
    int token_count;
    // Memory.
    bool is_arena[BUFFERS_MAX];
    bool live[BUFFERS_MAX];
    int node_of[BUFFERS_MAX]; // a memory node's capture, or NONE
    bool is_pool[BUFFERS_MAX];
    bool held[BLOCKS_MAX];
    int held_by[BLOCKS_MAX];           // the capture in which it was taken, or NONE
    struct seen nodes[OPERATIONS_MAX]; // of graphs that the program builds: what each comes after
    struct seen used[BLOCKS_MAX];      // the host's steps that named the block
    int give_bit[BLOCKS_MAX];
    int free_queries;
};

// --- drawing.c, contents.c, drawing_emit.c ---

void drawing_start(struct drawing *drawing, struct base_random *random, struct program *program);
bool drawing_has_room(const struct drawing *drawing, int operations);

struct seen *drawing_host(struct drawing *drawing, int thread);
bool seen_has(const struct seen *seen, int bit);
bool seen_within(const struct seen *part, const struct seen *whole);
void seen_add(struct seen *seen, int bit);
void seen_join(struct seen *into, const struct seen *other);

// Appends OPERATION, with what it does to the order. Returns its index.
int drawing_emit(struct drawing *drawing, const struct operation *operation);
// The first access that OPERATION, if it came next, would conflict with and nothing orders; NULL:
// none. EXTRA: what it comes after besides, or NULL.
const struct past *drawing_blocker(struct drawing *drawing, const struct operation *operation,
                                   const struct seen *extra);
// The same for a node that a program adds to GRAPH behind others: SEEN, what these come after.
const struct past *drawing_node_blocker(const struct drawing *drawing,
                                        const struct operation *operation, const struct seen *seen);
struct seen drawing_node_sees(const struct drawing *drawing, const struct operation *operation);
// What OPERATION sees when it is done: at the call (a staged copy's source), or in its own time.
struct seen drawing_sees(struct drawing *drawing, const struct operation *operation, bool at_call);
// Notes what it touches; HOST_BIT: NONE for a node.
void drawing_note(struct drawing *drawing, const struct operation *operation, struct pasts *pasts,
                  int host_bit, int bit, enum home home, int index);
bool drawing_is_staged(const struct drawing *drawing, const struct operation *operation);
bool operation_is_hosts(const struct operation *operation);
// The devices, a bit each, between whose work a plain peer copy stands.
uint32_t drawing_fence_devices(const struct drawing *drawing, const struct operation *operation);
struct seen drawing_device_sees(struct drawing *drawing, int device);
// What SYNC or a query of the stream covers.
struct seen drawing_covered(struct drawing *drawing, int stream);

// What CUDA allows now.
bool drawing_stream_usable(const struct drawing *drawing, int stream);
bool drawing_host_call_allowed(const struct drawing *drawing);
bool drawing_legacy_allowed(const struct drawing *drawing, int device);
bool drawing_device_captures(const struct drawing *drawing, int device);

bool stream_is_barred(const struct program *program, int stream);
int stream_legacy(const struct program *program, int device);

// Does the operation's steps to CONTENTS; false if something but a copy reads what nobody wrote.
bool contents_apply(struct contents *contents, const struct operation *operation);
uint32_t contents_readable(const struct contents *contents, const struct span *span);

// --- edge.c: order where it is missing ---

// Puts what OPERATION conflicts with behind it by calls that CUDA orders by, then appends it.
// False, with nothing but such calls appended, if that cannot be done now.
bool edges_add_and_emit(struct drawing *drawing, const struct operation *operation);
// The host thread that draws comes behind THREAD's steps; false if they are one, or no token is
// left.
bool edge_behind_thread(struct drawing *drawing, int thread);
// An event of DEVICE: any, destroyed and made anew for it if need be.
int event_for(struct drawing *drawing, int device);
// RECORD of EVENT in STREAM, by the thread that may.
void emit_record(struct drawing *drawing, int event, int stream);
void emit_wait(struct drawing *drawing, int stream, int event);

// --- draw_where.c ---

// Somewhere memory can be touched: a buffer, or a block of it.
struct target {
    int buffer, block, start, size;
};

struct place_wanted {
    uint32_t places;
    int device;  // of device memory; NONE: any
    bool shared; // between devices: what a pool gives belongs to one
    int capture; // that the operation is a node of, or NONE
};

// A usable stream that does not capture: of DEVICE or any (NONE). NONE if there is none.
int stream_choose(struct drawing *drawing, int device);
// That STREAM is in, or NONE.
int drawing_capture_of(const struct drawing *drawing, int stream);
bool block_fits(const struct drawing *drawing, int block, const struct place_wanted *wanted);
bool target_choose(struct drawing *drawing, const struct place_wanted *wanted,
                   struct target *target);
struct span span_draw(struct drawing *drawing, const struct target *target, bool rows);
// As many cells as LIKE, elsewhere; false if they do not fit.
bool span_draw_like(struct drawing *drawing, const struct target *target, const struct span *like,
                    struct span *span);
// Somebody wrote all of it, as a node of CAPTURE finds it, or (NONE) an operation.
bool drawing_is_readable(const struct drawing *drawing, int capture, const struct span *span);

// --- draw_work.c, draw_side.c, draw_memory.c: operations that touch memory ---

// Some operation of STREAM, or of the host; false if nothing came of it.
bool operation_draw(struct drawing *drawing, int stream, struct operation *operation);
// Appends one, with the order it needs: in STREAM, if it captures a node.
bool draw_work(struct drawing *drawing, int stream);
// Appends a node of GRAPH with the dependencies that it needs.
void draw_node(struct drawing *drawing, int graph);
// Appends a node of GRAPH that reads some of BUFFER behind node FIRST.
void draw_reader(struct drawing *drawing, int graph, int buffer, int first);
// Two operations in different streams that nothing need order: pieces between each other's pieces,
// or atomics.
void draw_side_by_side(struct drawing *drawing);
// A long history of some bytes.
void draw_history(struct drawing *drawing);
// A query, and what depends on it.
void draw_query(struct drawing *drawing);
// A call that allocates, frees, takes or gives.
void draw_memory(struct drawing *drawing, int stream);
// In STREAM, if it came from a pool; false if it cannot be now.
bool draw_free(struct drawing *drawing, int stream, int buffer);
bool draw_give(struct drawing *drawing, int block);

// --- draw_graph.c ---

void draw_capture(struct drawing *drawing);
void draw_launch(struct drawing *drawing);
// A graph built node by node; one of many nodes that nothing orders among each other.
void draw_graph(struct drawing *drawing);
void draw_crowd(struct drawing *drawing);

static inline int draw_below(struct drawing *drawing, int bound) {
    return (int)base_random_below(drawing->random, (uint64_t)bound);
}
static inline int draw_between(struct drawing *drawing, int low, int high) {
    return (int)base_random_between(drawing->random, (uint64_t)low, (uint64_t)high);
}
static inline bool draw_chance(struct drawing *drawing, double probability) {
    return base_random_chance(drawing->random, probability);
}

#endif
