// The parts of race_capture.c: what the program holds, and what its files give each other.
//
// Threads: the first *actor* owns the program, the graphs, and the capture that is under way.
// Others live only while a capture runs. Each has blocks, random numbers and an event of its own;
// whatever belongs to the capture is touched under capture_lock.
#ifndef TIDEMARK_WORKLOAD_RACE_CAPTURE_PROGRAM_H
#define TIDEMARK_WORKLOAD_RACE_CAPTURE_PROGRAM_H

#include "allocator/captures.h"
#include "allocator/cca.h"
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "workload/race_capture.h"
#include "workload/race_work.h"

#include <pthread.h>

#define CAPTURE_STREAMS 4 // the first ones; one capture holds them
#define EAGER_STREAMS 6   // they and two others, which never capture
#define PART_STREAMS 2    // behind these: those of parts of a capture
#define STREAMS (EAGER_STREAMS + PART_STREAMS)
#define BLOCKS 16
#define GRAPHS 3
#define PARTS_MAX 3
#define ACTORS_MAX (1 + WORKLOAD_RACE_THREADS_MAX)
#define MISSED_STREAM 2 // WORKLOAD_RACE_MISSES_STREAM
#define CAPACITY (768 * BASE_MIB)

#define CHECK_CUDA(call) BASE_CHECK_EQ(call, cudaSuccess)

struct workload__race_block {
    struct workload_race_bytes bytes; // without a pointer: free
    int owner, last;                  // streams: the one it was taken for, the last that touched it
    bool is_shared;                   // other streams used it
    bool is_kept;                     // not touched until the capture has ended
    unsigned char captured_value;     // of a graph's: what a launch leaves in it
};

struct workload__race_pool {
    struct allocator_pool_id id;
    int last;          // the stream of the last launch of one of its graphs; -1: none yet
    uint64_t captures; // so far
    int graph_count;   // that live
};

// Requests of one thread (or of all) that are the capture's, or that are none's.
struct workload__race_scope {
    struct allocator_pool_id id;                 // without a number: there is no such pool yet
    const _Atomic(unsigned long long) *captured; // NULL: those of streams that never capture
    const struct workload__race_program *program;
    pthread_t thread;
    bool all_threads, is_open;
};

struct workload__race_graph {
    bool is_live;
    struct workload__race_pool *pool;
    uint64_t order; // in its pool: later ones may have what it freed
    _Atomic(unsigned long long) captured;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct workload__race_block blocks[BLOCKS]; // those that outlived the capture
    struct workload__race_scope user;
    struct allocator_pool_id parts[PARTS_MAX]; // their pools
    int part_count;
};

struct workload__race_actor {
    struct workload__race_program *program;
    struct base_random random;
    cudaEvent_t event;
    struct workload__race_block eager[BLOCKS];
    struct workload__race_scope user;
    uint64_t beside;
    struct base_thread thread;
};

struct workload__race_program {
    const struct workload_race_capture *options;
    struct workload_race_found *found;
    struct allocator *caching, *allocator; // the second tells the checker
    cudaStream_t streams[STREAMS];
    struct workload__race_actor actors[ACTORS_MAX]; // the first one captures
    struct workload__race_graph graphs[GRAPHS];
    struct workload__race_pool pools[GRAPHS];
    _Atomic(uint64_t) capture_pool_number, user_pool_number;
    // Of the capture that is under way.
    bool is_capturing;
    bool beside; // others may allocate
    bool shared; // other threads are alive
    enum cudaStreamCaptureMode mode;
    struct base_mutex capture_lock; // what follows is guarded by it, and so are the graph's blocks
    struct workload__race_graph *capturing;
    bool is_lost;                           // invalidated
    _Atomic(int) deferred[CAPTURE_STREAMS]; // not guarded: blocks with uses that were freed, by
                                            // their own stream
    cudaEvent_t later[CAPTURE_STREAMS];     // what was unjoined, to be joined at the end
    bool is_later[CAPTURE_STREAMS];
};

static inline bool workload__race_chance(struct workload__race_actor *actor, double probability) {
    return base_random_chance(&actor->random, probability);
}

static inline int workload__race_below(struct workload__race_actor *actor, int limit) {
    return (int)base_random_below(&actor->random, (uint64_t)limit);
}

// --- race_capture_blocks.c ---

// STREAM waits for what OTHER has done.
void workload__race_behind(struct workload__race_actor *actor, int stream, int other);
// A block of SIZE bytes, written at once; false: there is no memory.
bool workload__race_take_sized(struct workload__race_actor *actor,
                               struct workload__race_block *block, int owner, size_t size);
void workload__race_take(struct workload__race_actor *actor, struct workload__race_block *block,
                         int owner);
void workload__race_give(struct workload__race_actor *actor, struct workload__race_block *block);
void workload__race_record(struct workload__race_actor *actor, struct workload__race_block *block,
                           int stream);
// Read or written on STREAM, which is behind the others' uses already; then told.
void workload__race_touch(struct workload__race_actor *actor, struct workload__race_block *block,
                          int stream);
void workload__race_use(struct workload__race_actor *actor, struct workload__race_block *block,
                        int stream);

// Work that no graph captures. While streams capture, on others.
int workload__race_eager_stream(struct workload__race_actor *actor);
void workload__race_eager_step(struct workload__race_actor *actor);

// How many frees the request of a capture that is being made completes: for the observer.
bool workload__race_is_taking(void);

// --- race_capture_scope.c ---

// Opens the scope, with a new pool if it has none; or closes it.
void workload__race_scope_flip(struct workload__race_actor *actor,
                               struct workload__race_scope *scope);
void workload__race_scope_close(struct workload__race_program *program,
                                struct workload__race_scope *scope);
// Closes it and lets the pool go.
void workload__race_scope_end(struct workload__race_program *program,
                              struct workload__race_scope *scope);

// --- race_capture_inside.c ---

bool workload__race_captures(const struct workload__race_program *program, int stream);
// A step of the capture, under its lock.
void workload__race_capture_step(struct workload__race_actor *actor,
                                 struct workload__race_graph *graph);
// A capture of other streams, which becomes a node of this one.
void workload__race_part(struct workload__race_actor *actor, struct workload__race_graph *graph);
// All streams come back to the first, but for LEFT (0: none of them stays away).
void workload__race_join_all(struct workload__race_actor *actor, int left);

// --- race_capture_graph.c ---

void workload__race_launch(struct workload__race_actor *actor, struct workload__race_graph *graph);
void workload__race_output_step(struct workload__race_actor *actor,
                                struct workload__race_graph *graph);
void workload__race_destroy(struct workload__race_actor *actor, struct workload__race_graph *graph);

#endif
