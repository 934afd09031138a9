// Pairs that the checker found become reports: each pair once, in words, in memory, on standard
// error and in a file.
//
//     race_report.c        which are reported, and where to
//     race_words.h         the text: what happened, which edge is missing, what mends it
//     race_json.c          the line of the file, with what a picture needs of the log
//     race_environment.c   TIDEMARK_SIM_RACES
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_RACE_REPORT_H
#define TIDEMARK_SIMULATOR_RACE_REPORT_H

#include "simulator/race_log.h"
#include "simulator/sim_race.h"

struct sim__exec; // graph.h

// One of the two. Of an operation in a stream, a node of a launch, a doing of the host, or what a
// memory call or an allocator did (origin says which).
struct sim__race_side {
    uint32_t origin; // 0 and no stream: there is no such operation
    int device;
    uint64_t stream, sequence; // the stream's number; 0: the host
    enum sim_access_mode mode;
    uint64_t block; // through which it means the memory; 0: none
    // A node of a graph's launch, which the above is: where it was captured or added.
    uint32_t node_origin; // 0: no node
    uint64_t graph, node; // numbers
    uint64_t node_stream; // that captured it, or 0
    uint64_t exec;        // handle of the executable
};

struct sim__race_found {
    enum sim_race_rule rule;
    const char *kind; // of struct sim_race_report; NULL: what the rule and the modes say
    struct sim__race_side first, second; // in submission order
    uint64_t start, size;                // the bytes in question, of several pieces the first
    uint64_t allocation_start;           // of the memory, 0 if there is none
    uint64_t block;                      // that the report is about (reuse: the one that is reused)
    // Up to which operation of the first one's stream the second one does come after.
    uint64_t known;
    // Both are nodes of one launch: the executable.
    const struct sim__exec *inside;
};

void sim__race_report(const struct sim__race_found *found);

// For sim_race_start and sim_race_stop.
enum base_status sim__race_report_start(const struct sim_race_options *options);
void sim__race_report_stop(void);
// race_environment.c: TIDEMARK_SIM_RACES, before the first start of the machine.
enum base_status sim__races_from_environment(void);

#endif
