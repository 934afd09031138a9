// The race checker's inside, for the calls: what they tell it. sim_race.h says what it is for.
//
//     order.h           what comes after what: clocks of streams, events, host threads
//     race.c            starts and stops; operations become accesses
//     race_memory.c     what was done to which bytes: the shadow
//     race_block.c      allocators' blocks
//     race_graph.c      order within a graph
//     race_report.c     pairs found, in words
//     race_site.c       where calls come from
//     race_log.c        the last operations and edges, for pictures
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_RACE_H
#define TIDEMARK_SIMULATOR_RACE_H

#include "simulator/engine.h"
#include "simulator/sim_race.h"

struct sim__exec; // graph.h

extern bool sim__race_on;
static inline bool sim__race_is_on(void) { return __builtin_expect(sim__race_on, 0); }

// sim_race_start and sim_race_stop, which take the lock; also before the machine starts.
enum base_status sim__race_start(const struct sim_race_options *options) BASE_MUST_USE;
void sim__race_stop(void);

// What follows is called while the checker is on.

// OPERATION was submitted at POSITION, behind all that the order (order.h) knows of its stream by
// now.
void sim__race_submitted(struct sim__position position, const struct sim__operation *operation);
// What sim_next_accesses said goes to FUNCTION; also while the checker is off.
void sim__race_take_accesses(struct sim__host_function *function);
// The host reads or writes, at once.
void sim__race_host(const void *pointer, size_t size, size_t rows, size_t pitch,
                    enum sim_access_mode mode);
// Memory of the device or page-locked memory begins and ends: in host order, or (STREAM not NULL)
// in stream order at the stream's last operation. WRITTEN: somebody wrote it before.
void sim__race_alloc(uint64_t start, uint64_t size, bool written,
                     const struct sim__stream *stream);
void sim__race_free(uint64_t start, uint64_t size, const struct sim__stream *stream);
// These are addresses without memory from now on: unmapped, given back by a pool, reset.
void sim__race_unmap(uint64_t start, uint64_t size);
// The program's own memory is not page-locked any more.
void sim__race_unregister(uint64_t start, uint64_t size);

// The host knows more.
void sim__race_learned(void);

// What the checker keeps of a graph's node: accesses with their blocks, where it was called from,
// its label. Counted references. GRAPH: the number of the graph that is captured, else 0.
struct sim__race_node *sim__race_node_create(const struct sim__operation *operation,
                                             uint64_t graph, uint64_t stream);
struct sim__race_node *sim__race_node_retain(struct sim__race_node *node);
// Also while the checker is off; NULL is fine.
void sim__race_node_release(struct sim__race_node *node);
// For pictures: the node's INDEX-th access, false beyond the last; its label, or NULL.
struct sim__race_node_access {
    enum sim_access_mode mode;
    uint64_t start, size, rows, pitch;
    uint64_t block; // 0: none
};
bool sim__race_node_accesses(const struct sim__race_node *node, uint32_t index,
                             struct sim__race_node_access *access);
const char *sim__race_node_label(const struct sim__race_node *node);
// EXEC was launched: POSITION is the operation of the launch that all its nodes come before and
// after which the stream goes on; what its stream knew before it, the nodes come after.
void sim__race_launched(struct sim__position position, const struct sim__exec *exec);

// The machine stops, which starts anew: nothing is known of memory.
void sim__race_reset(void);
// The thread ends.
void sim__race_leave(void);

#endif
