// Answers in the format of the recorded logs.
#include "allocator/golden/capture_internal.h"

#include "base/check.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void golden__capture_print_address(const struct golden_capture_run *run, const void *address) {
    const uint64_t at = (uintptr_t)address;
    for (size_t number = run->segment_count; number > 0; number--) {
        const struct golden_capture_segment *const segment = &run->segments[number - 1];
        if (at < segment->address || at - segment->address >= segment->size)
            continue;
        fprintf(run->output, "%zu+%" PRIu64, number - 1, at - segment->address);
        return;
    }
    fprintf(run->output, "?+%" PRIu64, at);
}

//--------------------------------------------------------------------------------------------------
// Errors.

// The code of the CUDA error that a sentence names: 0 if it names none.
static int named_error(const char *sentence, char name[64]) {
    const char *const found = strstr(sentence, "cudaError");
    if (found == NULL)
        return 0;
    size_t length = 0;
    while (isalnum((unsigned char)found[length]) && length < 63)
        length++;
    snprintf(name, 64, "%.*s", (int)length, found);
    for (int code = 1; code < 1000; code++)
        if (strcmp(cudaGetErrorName((cudaError_t)code), name) == 0)
            return code;
    return 0;
}

// A sentence ends with PyTorch's where it has one; only what it calls a check is one.
static const char *refusal(const char *sentence) {
    const char *const pytorchs = strstr(sentence, "(PyTorch: c10::Error ");
    const bool is_check = pytorchs != NULL && strstr(pytorchs, "INTERNAL ASSERT") == NULL &&
                          strstr(pytorchs, "it != graph_pools.end()") == NULL;
    return is_check ? "check" : "assert";
}

void golden__capture_print_error(struct golden_capture_run *run, enum base_status status) {
    char name[64];
    if (status == BASE_OK)
        return;
    const char *const sentence = base_status_message();
    const int code = status == BASE_CUDA ? named_error(sentence, name) : 0;
    if (code != 0)
        fprintf(run->output, "error cuda %d %s", code, name);
    else
        fprintf(run->output, "error %s",
                status == BASE_OUT_OF_MEMORY ? "oom"
                : status == BASE_CUDA        ? sentence
                                             : refusal(sentence));
}

//--------------------------------------------------------------------------------------------------
// Events.

static void segment_add(struct golden_capture_run *run, const struct allocator_event *event) {
    run->segments = golden__capture_grow(run->segments, run->segment_count, &run->segment_capacity,
                                         sizeof *run->segments);
    run->segments[run->segment_count++] =
        (struct golden_capture_segment){.address = (uintptr_t)event->address, .size = event->size};
}

void golden__capture_trace(void *context, const struct allocator_event *event) {
    struct golden_capture_run *const run = context;
    switch (event->action) {
    case ALLOCATOR_SEGMENT_RESERVE:
        segment_add(run, event);
        return;
    case ALLOCATOR_SEGMENT_UNRESERVE:
    case ALLOCATOR_EMPTY_CACHE:
    case ALLOCATOR_SNAPSHOT:
        return;
    case ALLOCATOR_SEGMENT_ALLOC:
        segment_add(run, event);
        break;
    default:
        break;
    }
    run->trace = golden__capture_grow(run->trace, run->trace_count, &run->trace_capacity,
                                      sizeof *run->trace);
    run->trace[run->trace_count++] = *event;
}

// Runs of the same kind may come in any order: PyTorch visits sets by the hash of a pointer.
static int kind_of(const struct allocator_event *event) {
    return event->action == ALLOCATOR_FREE_COMPLETED ? ALLOCATOR_FREE_REQUESTED
                                                     : (int)event->action;
}

// Insertion: the order of equal addresses stays, and what is nearly sorted is cheap.
static void sort_runs(struct allocator_event *events, size_t count) {
    for (size_t index = 1; index < count; index++) {
        const struct allocator_event event = events[index];
        size_t at = index;
        while (at > 0 && kind_of(&events[at - 1]) == kind_of(&event) &&
               (uintptr_t)events[at - 1].address > (uintptr_t)event.address) {
            events[at] = events[at - 1];
            at--;
        }
        events[at] = event;
    }
}

static void print_event(const struct golden_capture_run *run, const struct allocator_event *event) {
    fprintf(run->output, "%s", allocator_action_name(event->action));
    if (event->action == ALLOCATOR_OOM) {
        fprintf(run->output, ":%zu free %zu", event->size, event->device_free);
    } else {
        fputc(' ', run->output);
        golden__capture_print_address(run, event->address);
        fprintf(run->output, ":%zu@%s", event->size,
                golden__capture_stream_name(run, event->stream));
    }
    if (event->pool.capture != 0 || event->pool.user != 0)
        fprintf(run->output, " p%" PRIu64 ",%" PRIu64, event->pool.capture, event->pool.user);
}

void golden__capture_print_events(struct golden_capture_run *run) {
    if (run->trace_count == 0)
        return;
    sort_runs(run->trace, run->trace_count);
    fputs(" ev=[", run->output);
    for (size_t index = 0; index < run->trace_count; index++) {
        if (index > 0)
            fputs("; ", run->output);
        print_event(run, &run->trace[index]);
    }
    fputc(']', run->output);
    run->trace_count = 0;
}

//--------------------------------------------------------------------------------------------------
// What is where, and counters.

static void print_block(const struct golden_capture_run *run, uint64_t segment,
                        const struct allocator_snapshot_block *block) {
    static const char states[] = {[ALLOCATOR_BLOCK_INACTIVE] = 'F',
                                  [ALLOCATOR_BLOCK_ALLOCATED] = 'A',
                                  [ALLOCATOR_BLOCK_PENDING_FREE] = 'P'};
    fprintf(run->output, " %" PRIu64 ":%zu:%c", (uintptr_t)block->address - segment, block->size,
            states[block->state]);
    if (block->state != ALLOCATOR_BLOCK_INACTIVE)
        fprintf(run->output, "(%zu)", block->requested_size);
}

void golden__capture_print_layout(struct golden_capture_run *run) {
    struct allocator_snapshot snapshot;
    const enum base_status status = allocator_snapshot(run->allocator, &snapshot);
    if (status != BASE_OK) {
        golden__capture_print_error(run, status);
        return;
    }
    if (snapshot.segment_count == 0)
        fputs("empty", run->output);
    for (size_t index = 0; index < snapshot.segment_count; index++) {
        const struct allocator_snapshot_segment *const segment = &snapshot.segments[index];
        fputs("\n  seg ", run->output);
        golden__capture_print_address(run, segment->address);
        fprintf(run->output,
                " size %zu stream %s pool %" PRIu64 ",%" PRIu64 " %s%s:", segment->total_size,
                golden__capture_stream_name(run, segment->stream), segment->pool.capture,
                segment->pool.user, segment->is_large ? "large" : "small",
                segment->is_expandable ? " expandable" : "");
        for (size_t block = 0; block < segment->block_count; block++)
            print_block(run, (uintptr_t)segment->address,
                        &snapshot.blocks[segment->block_first + block]);
    }
    allocator_snapshot_deinit(&snapshot);
}

static void print_counter(FILE *output, const char *name, const struct allocator_stat *stat) {
    fprintf(output, " %s=%" PRId64, name, stat->current);
    // Of the others peaks and sums depend on the order in which PyTorch visits sets.
    if (strncmp(name, "inactive_split", strlen("inactive_split")) != 0)
        fprintf(output, "/%" PRId64 "/%" PRId64, stat->peak, stat->allocated);
}

void golden__capture_print_stat(struct golden_capture_run *run) {
    struct allocator_stats stats;
    struct cca_pool_stats *pools = NULL;
    size_t pool_count = 0;
    enum base_status status = allocator_stats(run->allocator, 0, &stats);
    if (status == BASE_OK)
        status = cca_pool_stats(run->allocator, 0, &pools, &pool_count);
    if (status != BASE_OK) {
        golden__capture_print_error(run, status);
        return;
    }
#define PRINT_FAMILY(name) print_counter(run->output, #name, &stats.name[ALLOCATOR_STAT_ALL]);
    ALLOCATOR_STAT_LIST(PRINT_FAMILY)
#undef PRINT_FAMILY
    fprintf(run->output,
            " retries=%" PRId64 " ooms=%" PRId64 " sync_all=%" PRId64 " device_alloc=%" PRId64
            " device_free=%" PRId64,
            stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams,
            stats.num_device_alloc, stats.num_device_free);
    for (size_t index = 0; index < pool_count; index++)
        fprintf(run->output, " private[%" PRIu64 ",%" PRIu64 "]=%" PRId64, pools[index].id.capture,
                pools[index].id.user, pools[index].reserved_bytes[ALLOCATOR_STAT_ALL].current);
    free(pools);
}
