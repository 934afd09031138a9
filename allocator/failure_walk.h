// The failure walk: a scenario is a short program on an allocator, each call of which may fail. Its
// steps are made through the functions below, which check after each what must hold then.
#ifndef TIDEMARK_ALLOCATOR_FAILURE_WALK_H
#define TIDEMARK_ALLOCATOR_FAILURE_WALK_H

#include "allocator/testing_calls.h"
#include "allocator/testing_state.h"

#define FAILURE_BLOCKS_MAX  64
#define FAILURE_STREAMS_MAX 4

// One run of a scenario.
struct failure_walk {
    struct allocator *allocator;
    cudaStream_t streams[FAILURE_STREAMS_MAX]; // 0: the default stream; 3: of the last device
    void *blocks[FAILURE_BLOCKS_MAX];          // handed out and not freed yet
    // What the race checker knows of each, and is told of its uses
    struct {
        uint64_t number;
        size_t size;
        int device, stream;
    } uses[FAILURE_BLOCKS_MAX];
    int device_count;
    enum testing_call call; // that fails
    bool for_ever;
    bool is_uncached; // statistics and snapshots know nothing of its blocks; a block whose free
    size_t refused;   // fails is the program's no more: how many
    // Memory in use went back to the device (x_torch_faults): until its blocks are freed the books
    // are not those of the device.
    bool has_lost_memory;
};

struct failure_scenario {
    const char *name, *config;
    void (*body)(struct failure_walk *walk);
    size_t capacity_mib;
    double fraction; // 0: none
    int device_count;
    bool no_caching;
};
extern const struct failure_scenario failure_scenarios[];
extern const size_t failure_scenario_count;

void failure_capture(struct failure_walk *walk); // failure_captures.c

// Any call of the allocator as a step of a scenario: its status.
#define FAILURE_STEP(walk, call) failure_step_end(walk, (failure_step_begin(), (call)))
void failure_step_begin(void);
enum base_status failure_step_end(struct failure_walk *walk, enum base_status status);

// Blocks have a place each. A block whose free fails stays with the program.
void failure_take_on(struct failure_walk *walk, int slot, int device, size_t size, int stream);
void failure_take(struct failure_walk *walk, int slot, size_t size, int stream);
void failure_give(struct failure_walk *walk, int slot);
void failure_mark(struct failure_walk *walk, int slot, int stream); // record_stream
void failure_empty_cache(struct failure_walk *walk);
// A free by the program while a step of its own is under way, in a callback; whether it was taken.
bool failure_give_inside(struct failure_walk *walk, int slot);
void failure_set_config(struct failure_walk *walk, const char *config);

// What a step checks, for those that cannot be made as above: the sentence of a failure; the walk
// over everything, statistics that add up, nothing lost.
void failure_is_told(const struct failure_walk *walk, enum base_status status);
void failure_left_no_trace(const struct failure_walk *walk);

#endif
