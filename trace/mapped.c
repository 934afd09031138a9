// Histories with expandable segments. Where their blocks lie is not followed, so such a history
// must begin with nothing: what it frees it has allocated, and what is mapped at the end it has
// mapped.
#include "trace/walk.h"

#include <inttypes.h>

static bool is_mapping(const struct trace_event *event) {
    return event->action == TRACE_SEGMENT_MAP || event->action == TRACE_SEGMENT_UNMAP;
}

bool trace__is_mapped(const struct trace *trace, int device) {
    for (size_t i = trace->device_event_first[device]; i < trace->device_event_first[device + 1];
         i++)
        if (is_mapping(&trace->events[i])) return true;
    for (size_t i = 0; i < trace->segment_count; i++)
        if (trace->segments[i].device == device && trace->segments[i].is_expandable) return true;
    return false;
}

static enum base_status began_before(const char *what, uint64_t address) {
    return base_status_set(BASE_UNSUPPORTED,
                           "the history begins with expandable segments in use (%s 0x%" PRIx64
                           "): with them only whole histories can be replayed",
                           what, address);
}

// One event; what is alive by address, and the bytes that are in segments.
static enum base_status follow(const struct trace_event *event, struct base_address_map *live,
                               uint64_t *bytes) {
    const bool is_live = trace__find(live, event->address) != TRACE_NONE;
    switch ((enum trace_action)event->action) {
    case TRACE_ALLOC:
        if (is_live) return began_before("two blocks at", event->address);
        return base_address_map_set(live, event->address, TRACE_BLOCK_ALLOCATED);
    case TRACE_FREE_REQUESTED:
        return is_live ? BASE_OK : began_before("a free of", event->address);
    case TRACE_FREE_COMPLETED:
        if (!is_live) return began_before("a free of", event->address);
        trace__forget(live, event->address);
        return BASE_OK;
    case TRACE_SEGMENT_ALLOC:
    case TRACE_SEGMENT_MAP: *bytes += event->size; return BASE_OK;
    case TRACE_SEGMENT_FREE:
    case TRACE_SEGMENT_UNMAP:
        if (event->size > *bytes) return began_before("a release of", event->address);
        *bytes -= event->size;
        return BASE_OK;
    default: return BASE_OK;
    }
}

static enum base_status compare_end(const struct trace *trace, int device,
                                    const struct base_address_map *live, uint64_t bytes) {
    uint64_t final_bytes = 0;
    bool has_state = false;
    for (size_t i = 0; i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        if (segment->device != device) continue;
        has_state = true;
        final_bytes += segment->total_size;
        for (uint64_t j = segment->block_first; j < segment->block_first + segment->block_count;
             j++)
            if (trace->blocks[j].state != TRACE_BLOCK_INACTIVE &&
                trace__find(live, trace->blocks[j].address) == TRACE_NONE)
                return began_before("at the end there is block", trace->blocks[j].address);
    }
    if (!has_state || final_bytes == bytes) return BASE_OK;
    return began_before("memory that no event took; at the end bytes", final_bytes);
}

enum base_status trace__check_mapped(const struct trace *trace, int device) {
    struct base_address_map live = {0};
    uint64_t bytes = 0;
    enum base_status status = BASE_OK;
    for (size_t i = trace->device_event_first[device];
         status == BASE_OK && i < trace->device_event_first[device + 1]; i++)
        status = follow(&trace->events[i], &live, &bytes);
    if (status == BASE_OK) status = compare_end(trace, device, &live, bytes);
    base_address_map_deinit(&live);
    return status;
}
