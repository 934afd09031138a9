// Outcomes in the logs' format.
#include "allocator/golden/session_internal.h"

#include <inttypes.h>
#include <string.h>

void golden__print_address(const struct golden_session *session, const void *address,
                           FILE *output) {
    const struct golden_segment *const segment =
        address == NULL ? NULL : golden__segment_find(session, (uintptr_t)address);
    if (segment == NULL)
        fprintf(output, "- %" PRIuPTR, (uintptr_t)address);
    else
        fprintf(output, "%zu %" PRIu64, segment->number, (uintptr_t)address - segment->address);
}

void golden__print_escaped(const char *text, FILE *output) {
    static const char special[] = "\n\t\r\v\f\\", letters[] = "ntrvf\\";
    for (; *text != '\0'; text++) {
        const char *found = strchr(special, *text);
        if (found == NULL)
            fputc(*text, output);
        else
            fprintf(output, "\\%c", letters[found - special]);
    }
}

// Prints the size before MARKER, the last two words ("20.00 MiB"), without their blank; "-" if the
// text has no MARKER.
static void print_number_before(const char *message, const char *label, const char *marker,
                                FILE *output) {
    fprintf(output, " %s=", label);
    const char *end = strstr(message, marker);
    const char *begin = end;
    for (int blanks = 0; begin != NULL && begin > message; begin--)
        if (begin[-1] == ' ' && ++blanks == 2) break;
    if (end == NULL) fputc('-', output);
    for (; begin < end; begin++)
        if (*begin != ' ') fputc(*begin, output);
}

void golden__print_out_of_memory(const struct golden_session *session, const char *message,
                                 FILE *output) {
    fputs("oom", output);
    print_number_before(message, "tried", ". GPU ", output);
    print_number_before(message, "total", " of which ", output);
    print_number_before(message, "free", " is free", output);
    print_number_before(message, "allowed", " allowed;", output);
    print_number_before(message, "allocated", " is allocated by PyTorch", output);
    print_number_before(message, "private", " allocated in private pools", output);
    print_number_before(message, "unallocated", " is reserved by PyTorch but unallocated", output);
    const struct cca_out_of_memory *numbers = &session->out_of_memory;
    fprintf(output, " observer=%zu,%zu,%zu", numbers->tried,
            numbers->limited ? numbers->allowed : numbers->total, numbers->free);
}

static void print_size(const char *name, size_t size, FILE *output) {
    if (size == SIZE_MAX)
        fprintf(output, " %s=-", name);
    else
        fprintf(output, " %s=%zu", name, size);
}

static void print_reserve(const struct golden_reserve *reserve, FILE *output) {
    if (reserve->bytes == 0)
        fputc('-', output);
    else
        fprintf(output, "%zu%s", reserve->bytes, reserve->own ? "k" : "");
}

void golden__print_settings(const struct golden_settings *settings, FILE *output) {
    fprintf(output, "large=%zu", settings->large);
    print_size("split", settings->split, output);
    fprintf(output, " rounding=%zu gc=%g expandable=%d div=", settings->rounding, settings->gc,
            settings->expandable);
    for (int entry = 0; entry < CCA_SETTINGS_DIVISION_COUNT; entry++)
        fprintf(output, "%s%" PRIu64, entry == 0 ? "" : ",", settings->divisions[entry]);
    fprintf(output, " unlock=%d reuse=%d fraction=%g throw=%d reserve=", settings->unlock,
            settings->reuse, settings->fraction, settings->throws);
    for (int index = 0; index < 3; index++) {
        if (index > 0) fputc(',', output);
        print_reserve(&settings->reserve[index], output);
    }
    fprintf(output, " host_register=%d threads=%" PRIu64 " background=%d pinned_reserve=%" PRIu64,
            settings->host_register, settings->threads, settings->background,
            settings->pinned_reserve);
    fprintf(output, " catch=%d", settings->catches);
    print_size("round", settings->round, output);
    print_size("cached", settings->cached, output);
    fputs(" last=", output);
    golden__print_escaped(settings->last, output);
}

static void print_stat(const struct allocator_stat *stat, FILE *output) {
    fprintf(output, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, stat->current, stat->peak,
            stat->allocated, stat->freed);
}

static void print_pool(const struct allocator_pool_id *pool, FILE *output) {
    fprintf(output, "%" PRIu64 ".%" PRIu64, pool->capture, pool->user);
}

static void print_pool_stats(const struct cca_pool_stats *pool, FILE *output) {
    fputs("p ", output);
    print_pool(&pool->id, output);
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; kind++)
        print_stat(&pool->reserved_bytes[kind], output);
    fputc('\n', output);
}

void golden__print_statistics(const struct allocator_stats *stats,
                              const struct cca_pool_stats *pools, size_t pool_count, FILE *output) {
#define PRINT_FAMILY(name)                                                                         \
    fputs("s " #name, output);                                                                     \
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; kind++)                                   \
        print_stat(&stats->name[kind], output);                                                    \
    fputc('\n', output);
    ALLOCATOR_STAT_LIST(PRINT_FAMILY)
#undef PRINT_FAMILY
    for (size_t index = 0; index < pool_count; index++)
        print_pool_stats(&pools[index], output);
    fputs("o oversize_allocations", output);
    print_stat(&stats->oversize_allocations, output);
    fputs("\no oversize_segments", output);
    print_stat(&stats->oversize_segments, output);
    fprintf(output,
            "\nn %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
            "\n",
            stats->num_alloc_retries, stats->num_ooms, stats->num_sync_all_streams,
            stats->num_device_alloc, stats->num_device_free, stats->num_oom_rejections,
            stats->max_split_size);
}

int golden__stream_number(const struct golden_session *session, cudaStream_t stream) {
    for (int number = 0; number < GOLDEN_STREAM_COUNT; number++)
        if (session->streams[number] == stream) return number;
    return -1;
}

static void print_block(const struct golden_session *session,
                        const struct allocator_snapshot_block *block, FILE *output) {
    fputs("b ", output);
    golden__print_address(session, block->address, output);
    fprintf(output, " %zu %zu %c\n", block->size, block->requested_size,
            block->state == ALLOCATOR_BLOCK_ALLOCATED      ? 'A'
            : block->state == ALLOCATOR_BLOCK_PENDING_FREE ? 'P'
                                                           : 'I');
}

void golden__print_layout(const struct golden_session *session,
                          const struct allocator_snapshot *snapshot, FILE *output) {
    for (size_t index = 0; index < snapshot->segment_count; index++) {
        const struct allocator_snapshot_segment *segment = &snapshot->segments[index];
        fputs("g ", output);
        golden__print_address(session, segment->address, output);
        fprintf(output, " %zu %d %s %d ", segment->total_size,
                golden__stream_number(session, segment->stream),
                segment->is_large ? "large" : "small", segment->is_expandable);
        print_pool(&segment->pool, output);
        fprintf(output, " %zu %zu %zu %zu\n", segment->allocated_size, segment->active_size,
                segment->requested_size, segment->block_count);
        for (size_t block = 0; block < segment->block_count; block++)
            print_block(session, &snapshot->blocks[segment->block_first + block], output);
    }
}

void golden__print_trace(const struct golden_session *session, FILE *output) {
    for (size_t index = 0; index < session->trace_count; index++) {
        const struct allocator_event *event = &session->trace[index];
        fprintf(output, "t %s ", allocator_action_name(event->action));
        if (event->action == ALLOCATOR_OOM)
            fprintf(output, "%zu -", event->device_free);
        else
            golden__print_address(session, event->address, output);
        fprintf(output, " %zu %d ", event->size, golden__stream_number(session, event->stream));
        print_pool(&event->pool, output);
        fputc('\n', output);
    }
}

void golden__print_calls(const struct golden_counts *before, const struct golden_counts *after,
                         FILE *output) {
    const struct {
        char letter;
        uint64_t count;
    } calls[] = {
        {'M', after->malloc - before->malloc},
        {'m', after->malloc_failed - before->malloc_failed},
        {'F', after->free - before->free},
        {'R', after->address_reserve - before->address_reserve},
        {'X', after->address_free - before->address_free},
        {'C', after->create - before->create},
        {'c', after->create_failed - before->create_failed},
        {'L', after->release - before->release},
        {'P', after->map - before->map},
        {'U', after->unmap - before->unmap},
        {'A', after->set_access - before->set_access},
        {'S', after->stream_synchronize - before->stream_synchronize},
        {'D', after->device_synchronize - before->device_synchronize},
        {'E', after->event_record - before->event_record},
        {'W', after->event_synchronize - before->event_synchronize},
        {'K', after->callback - before->callback},
    };
    const char *separator = " |";
    for (size_t index = 0; index < sizeof calls / sizeof calls[0]; index++) {
        if (calls[index].count == 0) continue;
        fprintf(output, "%s %c%" PRIu64, separator, calls[index].letter, calls[index].count);
        separator = "";
    }
}
