// Whether a history can be replayed, and if not the first reason, in one sentence.
#include "trace/trace.h"

#include "trace/walk.h"

#include <inttypes.h>

// What a device's part of a trace holds.
struct survey {
    size_t event_count, alloc_count, segment_count;
    size_t requested_count, completed_count;
};

static struct survey survey_take(const struct trace *trace, int device) {
    struct survey survey = {0};
    for (size_t i = trace->device_event_first[device]; i < trace->device_event_first[device + 1];
         i++) {
        const struct trace_event *event = &trace->events[i];
        survey.event_count++;
        survey.alloc_count += event->action == TRACE_ALLOC;
        survey.requested_count += event->action == TRACE_FREE_REQUESTED;
        survey.completed_count += event->action == TRACE_FREE_COMPLETED;
    }
    for (size_t i = 0; i < trace->segment_count; i++) {
        survey.segment_count += trace->segments[i].device == device;
    }
    return survey;
}

static enum base_status check_history(const struct survey *survey) {
    static const char how[] = "call torch.cuda.memory._record_memory_history before the run";
    if (survey->event_count == 0 && survey->segment_count == 0)
        return base_status_set(BASE_FORMAT, "nothing was recorded on this device: %s", how);
    if (survey->event_count == 0)
        return base_status_set(BASE_FORMAT, "a state without history (%zu segments, no events): %s",
                               survey->segment_count, how);
    if (survey->alloc_count == 0)
        return base_status_set(
            BASE_FORMAT, "no allocation in its history of %zu event%s (%zu segments): %s",
            survey->event_count, survey->event_count == 1 ? "" : "s", survey->segment_count, how);
    return BASE_OK;
}

static enum base_status check_frees(const struct survey *survey) {
    if (survey->completed_count > 0 && survey->requested_count == 0)
        return base_status_set(
            BASE_FORMAT,
            "%zu free_completed events and not one free_requested: the file lacks events",
            survey->completed_count);
    return BASE_OK;
}

static enum base_status contradiction(const struct trace *trace, int device, size_t event,
                                      const char *what) {
    const struct trace_event *entry = &trace->events[event];
    return base_status_set(
        BASE_FORMAT, "event %zu (%s, address 0x%" PRIx64 ", %" PRIu64 " bytes): %s",
        event - trace->device_event_first[device],
        trace_action_name((enum trace_action)entry->action), entry->address, entry->size, what);
}

// A history without placement: every free must name a live block, no live block's name is given
// twice.
static enum base_status check_event(const struct trace *trace, int device, size_t i,
                                    struct base_address_map *live) {
    const struct trace_event *event = &trace->events[i];
    const uint32_t state = trace__find(live, event->address);
    switch ((enum trace_action)event->action) {
    case TRACE_ALLOC:
        if (state != TRACE_NONE)
            return contradiction(trace, device, i,
                                 "the block there is in use: live blocks overlap");
        return base_address_map_set(live, event->address, TRACE_BLOCK_ALLOCATED);
    case TRACE_FREE_REQUESTED:
        if (state == TRACE_NONE)
            return contradiction(trace, device, i, "no live block has this address");
        if (state == TRACE_BLOCK_PENDING_FREE)
            return contradiction(trace, device, i, "the block was freed already");
        return base_address_map_set(live, event->address, TRACE_BLOCK_PENDING_FREE);
    case TRACE_FREE_COMPLETED:
        if (state == TRACE_NONE)
            return contradiction(trace, device, i, "no live block has this address");
        if (state == TRACE_BLOCK_ALLOCATED)
            return contradiction(trace, device, i,
                                 "no free_requested came before: the file lacks events");
        trace__forget(live, event->address);
        return BASE_OK;
    default: return BASE_OK;
    }
}

static enum base_status check_requests(const struct trace *trace, int device) {
    struct base_address_map live = {0};
    enum base_status status = BASE_OK;
    for (size_t i = trace->device_event_first[device];
         status == BASE_OK && i < trace->device_event_first[device + 1]; i++)
        status = check_event(trace, device, i, &live);
    base_address_map_deinit(&live);
    return status;
}

static enum base_status check_sizes(const struct trace *trace, int device) {
    for (size_t i = trace->device_event_first[device]; i < trace->device_event_first[device + 1];
         i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->action == TRACE_ALLOC && (event->size == 0 || event->size >= (uint64_t)1 << 60))
            return contradiction(trace, device, i, "no allocator serves such a size");
    }
    return BASE_OK;
}

enum base_status trace_check_replayable(const struct trace *trace, int device) {
    if (device < 0 || (uint32_t)device >= trace->device_count)
        return base_status_set(BASE_INVALID_VALUE, "%s has no device %d: it has %u", trace->name,
                               device, trace->device_count);
    const struct survey survey = survey_take(trace, device);
    enum base_status status = check_history(&survey);
    if (status == BASE_OK) status = check_frees(&survey);
    if (status == BASE_OK) status = check_sizes(trace, device);
    if (status != BASE_OK) return status;
    if (!trace_has_placement(trace, device)) return check_requests(trace, device);
    struct trace_state state;
    status = trace_start_state(trace, device, &state);
    if (status == BASE_OK) trace_state_deinit(&state);
    return status;
}
