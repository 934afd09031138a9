// Checked mode: what a program does wrong gets a sentence on standard error besides its code,
// device memory is out of the host's reach, and memory that nobody wrote is not what somebody wrote
// before.
//
//     checked.c         sentences; what addresses were; pending work that uses memory
//     checked_memory.c  poison and guards; the host touches device memory
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_CHECKED_H
#define TIDEMARK_SIMULATOR_CHECKED_H

#include "simulator/memory.h"

static inline bool sim__checked(void) { return sim__state.options.checked; }

// Prints "tidemark simulator: CALL: TEXT (called from ...)", with the thread's call. For callers in
// checked mode only.
void sim__misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// What is left to say of a call that ends with a code for wrong arguments, if nothing was said.
void sim__misuse_code(cudaError_t error);
// The same for a call that does not take POINTER: says what it is.
void sim__misuse_pointer(const void *pointer);
// And for [POINTER, POINTER + SIZE), which device work cannot have.
void sim__misuse_range(int device, const void *pointer, uint64_t size, enum sim__access access);
// A handle that names nothing.
void sim__misuse_handle(const char *what, uint64_t handle, bool was_one);

// The memory at [START, START + SIZE) is gone: WHAT happened to it ("freed by cudaFree"), for later
// sentences.
void sim__checked_gone(uint64_t start, uint64_t size, const char *what);
// Complains if pending work uses device memory that goes now.
void sim__checked_unused(uint64_t start, uint64_t size);

enum sim__poison {
    SIM__POISON_ALLOCATED = 0xca,
    SIM__POISON_FREED = 0xfe,
    SIM__POISON_GUARD = 0xab,
};
// Fills the edges of a block, and what of it was ever written.
void sim__checked_poison(uint64_t start, uint64_t size, enum sim__poison poison);
// Fills what lies behind the SIZE bytes at START up to END, at most a host page; and complains if
// somebody wrote there.
void sim__checked_guard(uint64_t start, uint64_t size, uint64_t end);
void sim__checked_guard_verify(uint64_t start, uint64_t size, uint64_t end);

// The machine starts or stops: forgets everything, and listens for faults of the host while it runs
// in checked mode.
void sim__checked_start(void);
void sim__checked_stop(void);

#endif
