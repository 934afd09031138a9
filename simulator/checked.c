// Sentences of checked mode. What a pointer was is known from the live memory, else from the last
// thousand pieces of memory that went. Where the program called from is kept at the beginning of
// each call (call.c), as addresses of code.
#include "simulator/checked.h"

#include "simulator/call.h"
#include "simulator/race.h"
#include "simulator/engine.h"
#include "simulator/pool.h"
#include "simulator/replay.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GONE_MAX 1024

struct gone {
    uint64_t start, size;
    const char *what;
};

static struct gone gone[GONE_MAX];
static uint64_t gone_count; // since the machine started
static uint64_t misuse_count;

void sim__checked_forget(void);

// --- Printing ---

static const char *call_name(const struct sim__thread *thread) {
    return thread->call < SIM_CALL_KIND_COUNT ? sim_call_name(thread->call) : "a CUDA call";
}

static void callers_print(const struct sim__thread *thread) {
    char text[1024];
    if (sim__callers_text(thread->callers, text, sizeof text)[0] != '\0')
        fprintf(stderr, "\n    from %s", text);
    fputc('\n', stderr);
}

static void sentence(const char *argument, const char *format, va_list arguments) {
    struct sim__thread *thread = sim__thread();
    thread->is_explained = true;
    ++misuse_count;
    fprintf(stderr, "tidemark simulator: %s%s: ", call_name(thread), argument);
    vfprintf(stderr, format, arguments);
    if (thread->work_depth == 0 && thread->callers[0] != NULL)
        callers_print(thread);
    else
        fputc('\n', stderr);
}

void sim__misuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sentence("", format, arguments);
    va_end(arguments);
}

void sim__misuse_code(cudaError_t error) {
    static const cudaError_t mistakes[] = {
        cudaErrorInvalidValue,           cudaErrorInvalidConfiguration,
        cudaErrorInvalidMemcpyDirection, cudaErrorInvalidDeviceFunction,
        cudaErrorInvalidDevice,          cudaErrorInvalidResourceHandle,
    };
    if (sim__thread()->is_explained)
        return;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; ++i)
        if (error == mistakes[i])
            sim__misuse("%s: an argument is null, out of range or of the wrong kind",
                        cudaGetErrorName(error));
}

static void misuse_of(const void *pointer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void misuse_of(const void *pointer, const char *format, ...) {
    char argument[40];
    va_list arguments;
    snprintf(argument, sizeof argument, "(%p)", pointer);
    va_start(arguments, format);
    sentence(argument, format, arguments);
    va_end(arguments);
}

void sim__misuse_handle(const char *what, uint64_t handle, bool was_one) {
    if (was_one)
        sim__misuse("0x%" PRIx64 " is %s %s that was destroyed", handle,
                    what[0] == 'e' ? "an" : "a", what);
    else
        sim__misuse("0x%" PRIx64 " is no %s", handle, what);
}

// --- What an address is ---

void sim__checked_gone(uint64_t start, uint64_t size, const char *what) {
    gone[gone_count++ % GONE_MAX] = (struct gone){start, size, what};
}

static const struct gone *gone_at(uint64_t address) {
    for (uint64_t i = 0; i < GONE_MAX && i < gone_count; ++i) {
        const struct gone *entry = &gone[(gone_count - 1 - i) % GONE_MAX];
        if (address - entry->start < entry->size)
            return entry;
    }
    return NULL;
}

static bool describe_live(const void *pointer, char *text, size_t size) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    const struct sim__segment *segment = sim__segment_at(pointer);
    const struct sim__block *block = sim__block_at(pointer);
    const struct sim__host_range *host = sim__host_range_at(pointer);
    const char *what;
    const struct sim__range *range;
    uint64_t length;
    if (block != NULL) {
        what = block->graph != NULL ? "memory of a graph" : "memory of cudaMallocAsync";
        range = &block->range;
        length = block->size;
    } else if (segment != NULL && !sim__segment_has_blocks(segment) && !segment->freed) {
        what = segment->kind == SIM__SEGMENT_MALLOC ? "memory of cudaMalloc"
                                                    : "memory mapped by cuMemMap";
        range = &segment->range;
        length = segment->size;
    } else if (host != NULL) {
        what = host->registered ? "host memory of cudaHostRegister" : "page-locked host memory";
        range = &host->range;
        length = range->size;
    } else {
        return false;
    }
    if (address == range->start)
        snprintf(text, size, "%s, %" PRIu64 " bytes", what, length);
    else
        snprintf(text, size, "%" PRIu64 " bytes inside %s, %" PRIu64 " bytes at 0x%" PRIx64,
                 address - range->start, what, length, range->start);
    return true;
}

// What POINTER is or was, as the end of a sentence.
static void describe(const void *pointer, char *text, size_t size) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    if (describe_live(pointer, text, size))
        return;
    const struct gone *entry = gone_at(address);
    if (entry == NULL)
        snprintf(text, size, "%s",
                 sim__segment_at(pointer) != NULL ? "memory of a pool that is not handed out"
                                                  : "no memory that a CUDA call gave");
    else if (address == entry->start)
        snprintf(text, size, "%s already", entry->what);
    else
        snprintf(text, size,
                 "%" PRIu64 " bytes inside memory that was %s (%" PRIu64 " bytes at 0x%" PRIx64 ")",
                 address - entry->start, entry->what, entry->size, entry->start);
}

void sim__misuse_pointer(const void *pointer) {
    char text[200];
    describe(pointer, text, sizeof text);
    misuse_of(pointer, "%s", text);
}

// Why work of DEVICE cannot have it, as the rest of the sentence.
static const char *reason(int device, const void *pointer, enum sim__access access) {
    const struct sim__segment *segment = sim__segment_at(pointer);
    const struct sim__host_range *host = sim__host_range_at(pointer);
    if (host != NULL)
        return ", which is too short";
    if (segment == NULL || segment->freed)
        return "";
    const uint32_t rights = access == SIM__ACCESS_WRITE ? segment->writers : segment->readers;
    if (segment->kind == SIM__SEGMENT_MALLOC)
        return segment->device == device ? ", which is too short"
                                         : ", which is too short or no peer's";
    if (device != SIM__ANY_DEVICE && (rights >> device & 1) == 0)
        return access == SIM__ACCESS_WRITE ? ", which it may not write" : ", which it may not read";
    return ", which is too short";
}

void sim__misuse_range(int device, const void *pointer, uint64_t size, enum sim__access access) {
    char text[200];
    describe(pointer, text, sizeof text);
    sim__misuse("device %d is to %s %" PRIu64 " bytes at %p, %s%s", device,
                access == SIM__ACCESS_WRITE ? "write" : "read", size, pointer, text,
                reason(device, pointer, access));
}

// --- Pending work ---

struct use {
    const char *what;
    const struct sim__stream *stream;
};

static bool meets(uint64_t start, uint64_t size, const void *pointer, uint64_t other_size) {
    const uint64_t other = (uint64_t)(uintptr_t)pointer;
    return other < start + size && start < other + other_size;
}

// Whether OPERATION writes, or with READS only reads, some of [start, start + size). What a kernel
// uses is not known.
static bool operation_uses(const struct sim__operation *operation, uint64_t start, uint64_t size,
                           bool reads) {
    const struct sim__copy *copy = &operation->copy;
    const struct sim__fill *fill = &operation->fill;
    switch (operation->kind) {
    case SIM__OPERATION_COPY:
        return meets(start, size, copy->destination,
                     sim__extent(copy->size, copy->rows, copy->destination_pitch)) ||
               (reads && !copy->staged &&
                meets(start, size, copy->source,
                      sim__extent(copy->size, copy->rows, copy->source_pitch)));
    case SIM__OPERATION_FILL:
        return meets(start, size, fill->pointer, sim__extent(fill->size, fill->rows, fill->pitch));
    case SIM__OPERATION_VALUE:
        return meets(start, size, operation->value.address, operation->value.size);
    default: return false;
    }
}

static const char *operation_name(const struct sim__operation *operation) {
    return operation->kind == SIM__OPERATION_COPY   ? "a copy"
           : operation->kind == SIM__OPERATION_FILL ? "a fill"
                                                    : "a value to be written";
}

// As the program knows the stream: a lane is part of a launch.
static uint64_t handle_of(const struct sim__stream *stream) {
    return stream->launch != NULL ? stream->launch->stream_handle : stream->slot.handle;
}

static bool find_use(uint64_t start, uint64_t size, bool reads, struct use *use) {
    for (int i = 0; i < sim__state.options.device_count; ++i)
        for (const struct sim__stream *stream = sim__state.devices[i].pending; stream != NULL;
             stream = stream->pending.next)
            for (uint64_t at = stream->completed + 1; at <= stream->submitted; ++at) {
                const struct sim__operation *operation =
                    &stream->ring[at & (stream->ring_size - 1)];
                if (!operation_uses(operation, start, size, reads))
                    continue;
                *use = (struct use){operation_name(operation), stream};
                return true;
            }
    return false;
}

void sim__checked_unused(uint64_t start, uint64_t size) {
    struct use use;
    if (find_use(start, size, true, &use))
        sim__misuse("%s that is pending in stream 0x%" PRIx64 " uses [0x%" PRIx64 ", 0x%" PRIx64
                    ")",
                    use.what, handle_of(use.stream), start, start + size);
}

// --- The control ---

bool sim_host_access(const void *pointer, size_t size, bool write) {
    struct use use;
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    if (sim__race_is_on()) {
        sim__call_note(SIM__CALL_OTHER);
        sim__race_host(pointer, size, 1, 0, write ? SIM_ACCESS_WRITE : SIM_ACCESS_READ);
    }
    const bool used = size > 0 && find_use((uint64_t)(uintptr_t)pointer, size, write, &use);
    if (used && sim__checked()) {
        ++misuse_count;
        fprintf(stderr,
                "tidemark simulator: the host %s %zu bytes at %p, which %s that is pending in "
                "stream 0x%" PRIx64 " uses\n",
                write ? "writes" : "reads", size, pointer, use.what, handle_of(use.stream));
    }
    base_mutex_unlock(&sim__state.lock);
    return !used;
}

uint64_t sim_misuse_count(void) {
    base_mutex_lock(&sim__state.lock);
    const uint64_t count = misuse_count;
    base_mutex_unlock(&sim__state.lock);
    return count;
}

void sim__checked_forget(void) { gone_count = misuse_count = 0; }
