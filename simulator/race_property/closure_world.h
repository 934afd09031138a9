// The inside of the judge: the state that calls leave for later ones, and what they are made of.
//
//     closure_points.c   points, and what comes before a stream's next one
//     closure_calls.c    calls about streams, events, the host and memory
//     closure_graph.c    captures, graphs and launches
//     closure.c          one call after the other
//     closure_pairs.c    what is unordered, or outside of its memory's life
//     closure_contents.c bytes that nobody wrote
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_CLOSURE_WORLD_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_CLOSURE_WORLD_H

#include "simulator/race_property/closure.h"

#define CAPTURES_MAX 8
#define CAPTURED_MAX 64
#define WRITES_MAX   32

struct captured {
    int operation;
    uint64_t before; // directly, by index in the capture
};

struct capture {
    bool active;
    enum capture_mode mode;
    int thread, origin;
    uint32_t streams;  // that take part, a bit each
    uint32_t returned; // waited for by another one
    int count;
    struct captured nodes[CAPTURED_MAX];
    bool has_memory;
    int instances;
};

struct closure_world {
    const struct program *program;
    const int *results;
    struct judgement *judgement;
    int operation; // that is submitted
    struct {
        struct point_set last;
        int capture;    // or NONE
        uint64_t nodes; // what its next node depends on
        bool destroyed;
    } streams[STREAMS_MAX];
    struct point_set fences[DEVICES]; // the last plain peer copy
    int host[THREADS];                // the last step
    struct {
        bool exists;
        int device, record; // the point, or NONE
        int capture, stream;
        uint64_t nodes;
    } events[EVENTS_MAX];
    struct capture captures[CAPTURES_MAX];
    int capture_count;
    int graphs[GRAPHS_MAX]; // the capture, or NONE
    struct {
        int capture; // or NONE
        struct point_set last;
    } execs[EXECS_MAX];
    struct point_set signals[TOKENS_MAX];
    bool signalled[TOKENS_MAX];
    struct {
        int value, point;
    } writes[STREAMS_MAX][WRITES_MAX];
    int write_counts[STREAMS_MAX];
    bool value_seen; // any, by any thread
    // Memory that operations allocate: lives, and of memory nodes in how many launches unfreed.
    bool born[BUFFERS_MAX], dead[BUFFERS_MAX], is_node[BUFFERS_MAX];
    bool taken[BLOCKS_MAX], given[BLOCKS_MAX];
    int take_points[BLOCKS_MAX], give_points[BLOCKS_MAX];
    int take_captures[BLOCKS_MAX];
};
extern struct closure_world closure__world;
static struct closure_world *const world = &closure__world;

// --- closure_points.c ---

struct point_set closure__set_of(int point); // NONE: empty
void closure__set_add(struct point_set *into, const struct point_set *other);
bool closure__set_within(const struct point_set *part, const struct point_set *whole);

// The program is not legal.
__attribute__((format(printf, 1, 2))) void closure__refuse(const char *format, ...);
// The operation that is submitted.
const struct operation *closure__current(void);

// A point that comes after DIRECT.
int closure__point_add(const struct point_set *direct);
void closure__point_touch(int index, const struct access *access);
void closure__point_step(int index, const struct step *step);
void closure__point_steps(int index, const struct operation *operation);

// The last step of THREAD, or of all of them.
int *closure__host_of(int thread);
// The calling thread's next step; AFTER: what the call waits for, or NULL.
int closure__host_step(const struct point_set *after);
void closure__host_waits_for(int point);

bool closure__is_barred(int stream); // by the legacy stream, and bars it
int closure__device_of(int stream);
struct capture *closure__capture_of(int stream);      // or NULL
struct point_set closure__stream_before(int stream);  // its next work
struct point_set closure__stream_covered(int stream); // what synchronising or querying it means
struct point_set closure__device_covered(int device);
// What CUDA refuses is refused.
bool closure__stream_usable(int stream);
bool closure__legacy_usable(int stream);
bool closure__host_call_allowed(void);
// The current operation enters STREAM, also behind EXTRA. Its point, or NONE if it is captured or
// illegal.
int closure__enqueue(int stream, const struct point_set *extra);

// --- closure_calls.c, closure_graph.c: the current operation ---

void closure__submit_work(void);
void closure__submit_fill(void);
void closure__submit_copy(void);
void closure__submit_peer_copy(void);
void closure__submit_record(void);
void closure__submit_wait(void);
void closure__submit_event_call(void);
void closure__submit_stream_call(void);
void closure__submit_device_sync(void);
void closure__submit_value(void);
void closure__submit_value_poll(void);
void closure__submit_alloc(void);
void closure__submit_free(void);
void closure__submit_block_call(void);
void closure__submit_begin(void);
void closure__submit_graph_create(void);
void closure__submit_node(void);
void closure__submit_end(void);
void closure__submit_instantiate(void);
void closure__submit_launch(void);

// --- closure_pairs.c, closure_contents.c ---

void closure__pair_add(enum pair_kind kind, struct place_in_program first,
                       struct place_in_program second);
bool closure__same_place(struct place_in_program a, struct place_in_program b);
void closure__find_conflicts(void);
void closure__find_outside(void);
void closure__find_uninitialised(void);

#endif
