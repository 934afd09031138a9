// The race checker: finds what a program leaves unordered, whatever this run made of it. It works
// from submission order and from the order that CUDA promises (streams, events, the legacy stream,
// host waits, graph edges), never from when work happened to run: a race is reported under every
// schedule alike. What CUDA only may order (cudaMalloc, a pageable copy that waits) orders nothing.
//
//     sim_race_start(&(struct sim_race_options){.fail = true});
//     ... the program: CUDA calls, sim_launch_kernel with its accesses ...
//     sim_race_stop();
//     sim_race_count(SIM_RACE_RULE_COUNT)      how many pairs, of all rules
//
// The checker knows what copies, fills, values and graphs of these touch. What a kernel touches the
// launch says (struct sim_kernel), what a host function touches sim_next_accesses says, what the
// host touches sim_host_access says. What an allocator does with its memory the sim_block_ calls
// say. With numerics off all of it works alike.
//
// Each pair is reported once: on standard error, in memory (sim_race_report_at), and to a file of
// JSON lines, from which `bazel run //reports:race` draws the streams, the edges and the missing
// one. A pair is two places of the program (call, label, thread, kernel) that touch memory
// allocated at one place, or of a block taken at one place: what a loop does again is counted.
// docs/races.md shows each rule with an example and how to read and mend what is found.
//
// Cost: about two microseconds an operation. Memory: what can still conflict, and the last
// operations for pictures.
//
// Threads: as sim.h; start and stop only while no other thread is in a CUDA call.
#ifndef TIDEMARK_SIMULATOR_SIM_RACE_H
#define TIDEMARK_SIMULATOR_SIM_RACE_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// X(NAME, WORD, TEXT)
#define SIM_RACE_RULE_LIST(X)                                                                      \
    X(WRITE_WRITE, "write-write", "two writes that nothing orders")                                \
    X(READ_WRITE, "read-write", "a read and a write that nothing orders")                          \
    X(HOST_ACCESS, "host-access", "the host touches memory that device work uses")                 \
    X(REUSE, "reuse", "a block is handed out before its last use is ordered before its next")      \
    X(USE_AFTER_FREE, "use-after-free", "an access that is not ordered before the free")           \
    X(USE_BEFORE_ALLOC, "use-before-alloc", "an access that is not ordered behind the allocation") \
    X(UNMAPPED, "unmapped",                                                                        \
      "an access to memory that is not there, or that the device has no right to")                 \
    X(UNINITIALISED, "uninitialised", "a use of bytes that nobody wrote")                          \
    X(GRAPH_MEMORY, "graph-memory",                                                                \
      "a graph is launched over memory that a block taken outside its capture holds now")

enum sim_race_rule {
#define SIM_RACE_ENUMERATOR(name, word, text) SIM_RACE_##name,
    SIM_RACE_RULE_LIST(SIM_RACE_ENUMERATOR)
#undef SIM_RACE_ENUMERATOR
    SIM_RACE_RULE_COUNT,
};
const char *sim_race_rule_name(enum sim_race_rule rule);

struct sim_race_options {
    uint32_t rules; // bit R: rule R is reported; 0: all
    bool fail;      // the first report ends the program with exit status 1, its files complete
    bool quiet;     // nothing on standard error
    // JSON lines, under this name when checking stops or the program exits; NULL: none. A forked
    // child writes none.
    const char *report_path;
    uint32_t report_count_max; // told, written and kept; more are only counted; 0: 1000
    // Memory of a block that was given back is nobody's until it is taken again: whoever names it
    // without a block is reported too (use-after-free). Not for programs that also use the memory
    // themselves, without blocks.
    bool blocks_only;
};

// Checks from now on, through sim_configure and sim_reset, which forget the memory's state but not
// the reports. One that runs is stopped first. BASE_INVALID_VALUE: there is no such rule; BASE_IO:
// the file cannot be written; nothing is checked then. For programs that do not call this:
// TIDEMARK_SIM_RACES=on|fail[,quiet][,blocks-only][,rules=NAME+NAME...][,report=PATH]; text that
// makes no sense ends the program at its first CUDA call, one line, exit status 2.
enum base_status sim_race_start(const struct sim_race_options *options) BASE_MUST_USE;
// Ends checking; the reports stay. What is reported only when nothing can make it right any more
// (uninitialised) is reported now.
void sim_race_stop(void);
// Whether it checks now: who names many places of a kernel can save himself that otherwise.
bool sim_race_is_running(void);

// --- Reports ---

// One of the two operations, or all "" and 0: there is no such one (uninitialised, unmapped).
struct sim_race_operation {
    const char *what;  // "kernel scale", "copy of 4096 bytes to the device", "cudaFree"
    const char *label; // sim_race_label at the call; of a node: at the launch
    const char *node;  // of a graph's node: its label at its own call; else ""
    // "model.c:71" (SIM_CALL_SITES), "upload (model.c:71), called by step (model.c:90)" (debug
    // information), "upload (./program+0x1a5d)"; "" if not known. Of a node: of the launch.
    const char *site;
    const char *node_site; // of a graph's node, its own call; else ""
    uint64_t stream;       // its number, as transcripts have it; 0: the host
    int device;
    int thread;        // host threads by first appearance, from 1
    uint64_t sequence; // in the stream; of the host 0
};

struct sim_race_report {
    enum sim_race_rule rule;
    // What the two do: "read-write", "write-write", "reuse", "use-after-free", ...
    const char *kind;
    struct sim_race_operation first, second; // in submission order
    uint64_t start, size;                    // the bytes in question, of several pieces the first
    uint64_t allocation_start, allocation_size; // 0 if there is none
    uint64_t block;                             // sim_block_take's; 0: none
    const char *text;                           // all of it in words, several lines
    uint64_t count;                             // how often this pair was met
};

// Reports of RULE, or of all rules with SIM_RACE_RULE_COUNT, since sim_race_start or
// sim_race_clear; each pair once.
uint64_t sim_race_count(enum sim_race_rule rule);
// The INDEX-th report kept, NULL beyond; valid until sim_race_clear or sim_race_start.
const struct sim_race_report *sim_race_report_at(uint64_t index);
// Forgets the reports.
void sim_race_clear(void);

// --- What the checker is told ---

enum sim_access_mode {
    SIM_ACCESS_READ,
    SIM_ACCESS_WRITE,
    SIM_ACCESS_ATOMIC, // reads and writes; atomics do not conflict with each other
    // A read whose bytes go as they are, defined or not, to the next access: a WRITE of as many.
    SIM_ACCESS_CARRY,
};

// ROWS pieces of SIZE bytes, PITCH apart (rows 0 or 1: one piece). Several accesses of one
// operation happen in their order, as one step. BLOCK: the block through which memory is meant, 0:
// whichever holds the bytes at the call.
struct sim_access {
    enum sim_access_mode mode;
    const void *pointer;
    size_t size, rows, pitch;
    uint64_t block;
};

// The next host function of this thread (cudaLaunchHostFunc, cudaStreamAddCallback, a host node)
// touches these. Copied.
void sim_next_accesses(const struct sim_access *accesses, size_t count);

// Names what this thread submits from now on; NULL: nothing. Names are kept: use few.
void sim_race_label(const char *label);

// An allocator's block: handed out for STREAM, used by another stream too (record_stream), given
// back. No CUDA calls, and they order nothing: an allocator that reuses memory must have had the
// streams ordered. Taken while STREAM captures, the block is that capture's. The bytes a block
// holds count as not written by its owner yet. Returns a number, never used again; NAME is for
// reports (NULL: none). use and give ignore 0.
uint64_t sim_block_take(const void *pointer, size_t size, cudaStream_t stream, const char *name);
void sim_block_use(uint64_t block, cudaStream_t stream);
void sim_block_give(uint64_t block);

// A host thread saw that the value at POINTER, which streams write (cuStreamWriteValue32, 64), is
// at least VALUE: it comes after the first write of such a value.
void sim_value_seen(const void *pointer, uint64_t value);

// With reading threads=strict: what one thread did before signal comes before what another one does
// behind await of the same TOKEN. The locks, conditions, starts and joins of base/thread.h say so
// by themselves.
void sim_handoff_signal(const void *token);
void sim_handoff_await(const void *token);

// Where calls of this thread come from, until it says otherwise (NULL: it is found out). What the
// macros of SIM_CALL_SITES do around a call (simulator/sim.h). FILE must stay.
void sim_call_site(const char *file, int line);
// The same by an address of code that a call returns to, for wrappers of CUDA calls and allocators:
// sim_call_address(__builtin_return_address(0)) ... sim_call_address(NULL), in a function that is
// not inlined.
void sim_call_address(const void *address);

#ifdef __cplusplus
}
#endif

#endif
