// Who did something: what the race checker keeps of an operation, or of an access of the host,
// besides its place in the order. Each distinct origin (what it is, the call, where that came from,
// the thread, its label) has a number, so that a shadow holds four bytes of it.
//
// Where a call comes from is FILE:LINE if the program was compiled with SIM_CALL_SITES (sim.h),
// else the addresses that the program's functions return to; these become names and lines only when
// a report is written (base/symbol.h).
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_RACE_SITE_H
#define TIDEMARK_SIMULATOR_RACE_SITE_H

#include "simulator/engine.h"

// What is no operation of a stream; the kinds of engine.h come before these.
enum sim__race_act {
    SIM__RACE_HOST_READ = SIM__OPERATION_KIND_COUNT,
    SIM__RACE_HOST_WRITE,
    SIM__RACE_CALL,   // the call itself: allocates, frees, waits, records
    SIM__RACE_LAUNCH, // of a graph; SIZE: its number
    SIM__RACE_TAKE,   // of an allocator's block; SIZE: its bytes
    SIM__RACE_USE,
    SIM__RACE_GIVE,
};

struct sim__race_origin {
    const char *name;  // of kernels; kept
    const char *label; // sim_race_label's; kept; or NULL
    uint64_t size;     // bytes, of copies, fills and accesses
    uint32_t site;     // where the call came from: a number, 0 if not known
    uint32_t thread;   // from 1, by first appearance
    uint8_t act;       // enum sim__operation_kind or enum sim__race_act
    uint8_t call;      // enum sim_call, or SIM__CALL_OTHER
    uint8_t from, to;  // of copies: enum sim__place
};

// The origin of OPERATION, which the call under way submits; and of something that is no operation.
// 0 if it cannot be kept: out of memory. Behind a million they begin anew.
uint32_t sim__race_origin(const struct sim__operation *operation);
uint32_t sim__race_origin_act(enum sim__race_act act, uint64_t size);
// Never NULL: number 0, and that of one forgotten since, knows nothing.
const struct sim__race_origin *sim__race_origin_at(uint32_t origin);
// The checker starts: threads are numbered anew, and many origins are forgotten.
void sim__race_origins_reset(void);
// The calling thread's number.
uint32_t sim__race_thread(void);
// TEXT, kept for as long as the process lives; NULL of NULL.
const char *sim__race_keep(const char *text);

// "kernel scale", "copy of 4096 bytes to the device", "host read of 16 bytes", "cudaFree"; cut to
// SIZE. Returns TEXT.
const char *sim__race_origin_what(uint32_t origin, char *text, size_t size);
// "train.c:31", "upload (train.c:31), called by step (train.c:80)", "./program+0x1a5d"; "" if not
// known.
const char *sim__race_origin_site(uint32_t origin, char *text, size_t size);

#endif
