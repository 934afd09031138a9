// Memory in checked mode. A new or freed block is filled with a byte that no sane program wrote, as
// far as it costs little: its edges, and what of it was ever written; the rest is zero as it was.
// The bytes behind an allocation up to its last page are a guard that nobody may write.
//
// The program's own addresses are without access (physical.c), so host code that follows a device
// pointer faults. The handler of that signal says whose memory it was, and lets the fault happen
// again under the handler that was there before.
#include "simulator/checked.h"

#include "base/size.h"
#include "simulator/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define EDGE_BYTES 4096

void sim__checked_forget(void);

static struct sigaction before;
static bool listening;

// --- Poison ---

struct poison {
    uint64_t start; // of the segment
    enum sim__poison byte;
};

static void poison_fill(uint64_t offset, uint64_t size, void *argument) {
    const struct poison *poison = argument;
    memset(sim__memory_bytes(poison->start + offset), (int)poison->byte, size);
}

void sim__checked_poison(uint64_t start, uint64_t size, enum sim__poison byte) {
    const struct sim__segment *segment = sim__segment_at((const void *)(uintptr_t)start);
    if (segment == NULL || !sim__segment_is_there(segment) ||
        sim__state.options.numerics != SIM_NUMERICS_ON)
        return;
    struct poison poison = {segment->range.start, byte};
    const uint64_t offset = start - poison.start;
    sim__physical_written(&sim__state.devices[segment->device], &segment->backing, offset, size,
                          poison_fill, &poison);
    const uint64_t edge = size < EDGE_BYTES ? size : EDGE_BYTES;
    poison_fill(offset, edge, &poison);
    poison_fill(offset + size - edge, edge, &poison);
}

// --- Guards ---

static uint64_t guard_size(uint64_t start, uint64_t size, uint64_t end) {
    const uint64_t room = end - (start + size);
    return sim__state.options.numerics != SIM_NUMERICS_ON ? 0
           : room < EDGE_BYTES                            ? room
                                                          : EDGE_BYTES;
}

void sim__checked_guard(uint64_t start, uint64_t size, uint64_t end) {
    const uint64_t guard = guard_size(start, size, end);
    if (guard > 0)
        memset(sim__memory_bytes(start + size), SIM__POISON_GUARD, guard);
}

void sim__checked_guard_verify(uint64_t start, uint64_t size, uint64_t end) {
    const uint64_t guard = guard_size(start, size, end);
    const unsigned char *bytes = sim__memory_bytes(start + size);
    for (uint64_t i = 0; i < guard; ++i) {
        if (bytes[i] == SIM__POISON_GUARD)
            continue;
        sim__misuse("the %" PRIu64 " bytes at 0x%" PRIx64 " were written beyond their end, at "
                    "offset %" PRIu64,
                    size, start, size + i);
        return;
    }
}

// --- The host touches device memory ---

static const char *verb_of(const void *context) {
#if defined(__x86_64__)
    const ucontext_t *machine = context;
    return (machine->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "writes" : "reads";
#else
    (void)context;
    return "touches";
#endif
}

// What lies at ADDRESS, if the index can be looked at: the thread may hold the lock itself.
static void what_lies(const void *address, char *text, size_t size) {
    snprintf(text, size, "a device's addresses");
    if (!base_mutex_try_lock(&sim__state.lock))
        return;
    const struct sim__segment *segment = sim__segment_at(address);
    const struct sim__block *block = sim__block_at(address);
    if (segment != NULL) {
        const struct sim__range *range = block != NULL ? &block->range : &segment->range;
        snprintf(text, size,
                 "%s of device %d, %" PRIu64 " bytes at 0x%" PRIx64 ", at offset %" PRIu64,
                 block != NULL && block->graph != NULL   ? "memory of a graph"
                 : block != NULL                         ? "memory of cudaMallocAsync"
                 : segment->kind == SIM__SEGMENT_MALLOC  ? "memory of cudaMalloc"
                 : segment->kind == SIM__SEGMENT_MAPPING ? "memory mapped by cuMemMap"
                                                         : "a pool's memory",
                 segment->device, range->size, range->start,
                 (uint64_t)(uintptr_t)address - range->start);
    } else {
        snprintf(text, size, "a device's addresses, where no memory is");
    }
    base_mutex_unlock(&sim__state.lock);
}

// The process is about to end: what is not safe in a handler may be tried.
static void fault(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    if (info->si_code > 0 && sim__physical_is_window((uint64_t)(uintptr_t)info->si_addr)) {
        char what[160], text[320];
        what_lies(info->si_addr, what, sizeof what);
        const int length = snprintf(text, sizeof text,
                                    "tidemark simulator: the host %s %p: %s; device memory is for "
                                    "copies and kernels\n",
                                    verb_of(context), info->si_addr, what);
        if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
            (void)number;
    }
    sigaction(SIGSEGV, &before, NULL);
    errno = saved;
}

void sim__checked_start(void) {
    sim__checked_forget();
    if (!sim__checked() || sim__state.options.numerics != SIM_NUMERICS_ON)
        return;
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    BASE_CHECK_EQ(sigaction(SIGSEGV, &action, &before), 0);
    listening = true;
}

void sim__checked_stop(void) {
    if (!listening)
        return;
    listening = false;
    BASE_CHECK_EQ(sigaction(SIGSEGV, &before, NULL), 0);
}
