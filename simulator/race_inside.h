// The inside of the race checker: what its files share.
//
// A *step* is what comes as one: an operation of a stream, a node of a launch, something that the
// host does. Its accesses are looked at one after the other; when it ends, the pairs that were
// found are told, one for each other step and allocation.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_RACE_INSIDE_H
#define TIDEMARK_SIMULATOR_RACE_INSIDE_H

#include "simulator/order.h"
#include "simulator/race.h"
#include "simulator/race_report.h"
#include "simulator/race_rows.h"

struct sim__block_record;
struct sim__race_plan;

// What the shadow says of a step that touched memory.
struct sim__race_key {
    uint64_t column : 20, sequence : 44;
    uint32_t origin;
    uint32_t place;             // of a launch's node: 1 + its index; else 0
    struct sim__race_node *node; // of it: a reference, in the shadow
};

struct sim__race_step {
    struct sim__race_key key;
    struct sim__order_view view;
    struct sim__race_plan *plan; // of the launch
    const struct sim__exec *exec;
    bool is_host;    // the host's own doing
    bool on_device;  // it reaches memory as the device does
    bool has_rights; // the call named each side's device, and that one has them
    bool is_passing; // nothing that is still to come needs to know of it
};

// An access of the step, resolved.
struct sim__race_access {
    struct sim__rows rows;
    enum sim_access_mode mode; // CARRY: the next one is a WRITE that takes its bytes
    uint64_t block;            // 0: none
    struct sim__block_record *record; // of the block, while it is known
    bool is_sign; // ATOMIC: a value that a stream writes for others to see
};

extern uint64_t sim__race_step_count; // since checking began, or the machine started
// A small program so far: what only makes its reports more complete is kept.
static inline bool sim__race_is_early(void) { return sim__race_step_count <= 4096; }

// The program tells what the host touches (sim_host_access): so memory of the host that nobody
// wrote was not written.
extern bool sim__race_host_tells;

// --- race_step.c ---

// The next step of a stream that was told to order.h, at SEQUENCE; of the host.
void sim__race_step_stream(struct sim__race_step *step, const struct sim__stream *stream,
                           uint64_t sequence, uint32_t origin);
void sim__race_step_host(struct sim__race_step *step, uint32_t origin);
// All its accesses, in their order; and it ends.
void sim__race_step_do(struct sim__race_step *step, const struct sim__race_access *accesses,
                       size_t count);
// What is kept from step to step goes.
void sim__race_steps_clear(void);
// It ends: tells the pairs that were found.
void sim__race_step_end(const struct sim__race_step *step);

// A pair: STEP and the earlier OTHER.
struct sim__race_pair {
    enum sim_race_rule rule;
    struct sim__race_key other;
    enum sim_access_mode other_mode, mode;
    uint64_t other_block, block;
    uint64_t about_block; // that the report is about
    struct sim__range range;
};
void sim__race_pair(const struct sim__race_step *step, const struct sim__race_pair *pair);
// Told at once: a step alone.
void sim__race_alone(const struct sim__race_key *key, enum sim_race_rule rule,
                     const char *kind, enum sim_access_mode mode, uint64_t block,
                     const struct sim__rows *rows);

static inline bool sim__race_is_same(const struct sim__race_key *a,
                                     const struct sim__race_key *b) {
    return a->column == b->column && a->sequence == b->sequence && a->place == b->place;
}
// Whether OTHER comes before STEP, which is another one.
bool sim__race_is_before_in_launch(const struct sim__race_step *step,
                                   const struct sim__race_key *other);
static inline bool sim__race_is_before(const struct sim__race_step *step,
                                       const struct sim__race_key *other) {
    if (other->column == step->key.column && other->sequence == step->key.sequence)
        return sim__race_is_before_in_launch(step, other);
    return sim__order_is_before(&step->view, other->column, other->sequence);
}

// --- race_graph.c: order within a launch ---

// Nodes A and B, by place, of which A has the smaller one: whether A comes before B; whether it
// does because both are in one lane.
bool sim__race_plan_before(struct sim__race_plan *plan, uint32_t a, uint32_t b);
bool sim__race_plan_same_lane(struct sim__race_plan *plan, uint32_t a, uint32_t b);
// Notes the last of some nodes in each lane; whether NODE is it.
void sim__race_plan_note_begin(struct sim__race_plan *plan);
void sim__race_plan_note(struct sim__race_plan *plan, uint32_t node);
bool sim__race_plan_is_noted(struct sim__race_plan *plan, uint32_t node);

// --- race_memory.c: what was done last to which bytes ---

void sim__shadow_access(const struct sim__race_step *step, const struct sim__race_access *access);
// The memory ends: all that is not before the step is a pair (use-after-free).
void sim__shadow_end(const struct sim__race_step *step, uint64_t start, uint64_t size);
void sim__shadow_forget(uint64_t start, uint64_t size);
void sim__shadow_clear(void);
uint64_t sim__shadow_piece_count(void);

#endif
