// See summary.h. The peak comes from a walk along the recording, so it is what memory_stats calls
// allocated_bytes.all.peak; where the walk is not possible the requests alone are added up.
#include "trace/summary.h"

#include "trace/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum base_status count_events(const struct trace *trace, int device,
                                     struct trace_summary *summary) {
    bool *streams = calloc(trace->stream_count + (size_t)trace->pool_count, sizeof *streams);
    if (streams == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory to count streams");
    bool *pools = streams + trace->stream_count;
    for (size_t i = trace->device_event_first[device]; i < trace->device_event_first[device + 1];
         i++) {
        const struct trace_event *event = &trace->events[i];
        summary->event_count++;
        summary->action_count[event->action]++;
        streams[event->stream] = pools[event->pool] = true;
        if (event->time_us == 0) continue;
        if (summary->first_time_us == 0 || event->time_us < summary->first_time_us)
            summary->first_time_us = event->time_us;
        if (event->time_us > summary->last_time_us) summary->last_time_us = event->time_us;
    }
    for (size_t i = 0; i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        if (segment->device != device) continue;
        streams[segment->stream] = pools[segment->pool] = true;
        summary->segment_count++;
        summary->reserved_bytes += segment->total_size;
        for (uint64_t j = segment->block_first; j < segment->block_first + segment->block_count;
             j++) {
            summary->block_count[trace->blocks[j].state]++;
            summary->block_bytes[trace->blocks[j].state] += trace->blocks[j].size;
        }
    }
    for (uint32_t i = 0; i < trace->stream_count; i++) summary->stream_count += streams[i];
    for (uint32_t i = 0; i < trace->pool_count; i++) summary->pool_count += pools[i];
    free(streams);
    return BASE_OK;
}

// The live bytes along the walk. A contradiction cannot come: trace_check_replayable has walked the
// same way.
static enum base_status peak_by_walk(const struct trace *trace, int device,
                                     struct trace_summary *summary) {
    struct trace_state start;
    struct trace_walk walk = {0};
    uint64_t live = 0;
    enum base_status status = trace_start_state(trace, device, &start);
    if (status != BASE_OK) return status;
    summary->start_segment_count = start.segment_count;
    for (size_t i = 0; i < start.block_count; i++) {
        summary->start_block_count += start.blocks[i].state != TRACE_BLOCK_INACTIVE;
        if (start.blocks[i].state == TRACE_BLOCK_ALLOCATED) live += start.blocks[i].size;
    }
    summary->peak_allocated_bytes = live;
    status = trace__walk_init(&walk, trace, device, &start, NULL);
    for (size_t i = trace->device_event_first[device];
         status == BASE_OK && i < trace->device_event_first[device + 1]; i++) {
        const struct trace_event *event = &trace->events[i];
        status = trace__walk_event(&walk, i);
        if (status != BASE_OK ||
            (event->action != TRACE_ALLOC && event->action != TRACE_FREE_REQUESTED))
            continue;
        const uint64_t size = walk.blocks[trace__find(&walk.by_address, event->address)].size;
        live = event->action == TRACE_ALLOC ? live + size : live - size;
        if (live > summary->peak_allocated_bytes) summary->peak_allocated_bytes = live;
    }
    trace__walk_deinit(&walk);
    trace_state_deinit(&start);
    summary->peak_exact = true;
    return status;
}

// The requests alone: blocks that the events allocate, by their requested size.
static enum base_status peak_by_requests(const struct trace *trace, int device,
                                         struct trace_summary *summary) {
    struct base_address_map sizes = {0};
    uint64_t live = 0, size = 0;
    enum base_status status = BASE_OK;
    for (size_t i = trace->device_event_first[device];
         status == BASE_OK && i < trace->device_event_first[device + 1]; i++) {
        const struct trace_event *event = &trace->events[i];
        const bool is_alloc = event->action == TRACE_ALLOC;
        if (!is_alloc && event->action != TRACE_FREE_REQUESTED &&
            event->action != TRACE_FREE_COMPLETED)
            continue;
        if (base_address_map_remove(&sizes, event->address, &size)) live -= size;
        if (is_alloc && event->size < (uint64_t)1
                                          << 60) { // larger is no size: it would only blur the sum
            status = base_address_map_set(&sizes, event->address, event->size);
            live += event->size;
        }
        if (live > summary->peak_allocated_bytes) summary->peak_allocated_bytes = live;
    }
    base_address_map_deinit(&sizes);
    return status;
}

enum base_status trace__summarize(const struct trace *trace, int device,
                                  struct trace_summary *summary) {
    *summary = (struct trace_summary){0};
    summary->replay_status = trace_check_replayable(trace, device);
    if (summary->replay_status == BASE_HOST_MEMORY) return summary->replay_status;
    if (summary->replay_status != BASE_OK)
        snprintf(summary->replay_message, sizeof summary->replay_message, "%s",
                 base_status_message());
    enum base_status status = count_events(trace, device, summary);
    if (status != BASE_OK) return status;
    if (summary->replay_status == BASE_OK && trace_has_placement(trace, device))
        return peak_by_walk(trace, device, summary);
    return peak_by_requests(trace, device, summary);
}
