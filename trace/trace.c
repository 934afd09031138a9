// What every holder of a trace needs: names, the rules it was recorded under, the end of its life.
#include "trace/trace.h"

#include "trace/build.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

const char *trace_action_name(enum trace_action action) {
    static const char *const names[] = {
#define ACTION_TEXT(name, value, text) [value] = text,
        TRACE_ACTION_LIST(ACTION_TEXT)
#undef ACTION_TEXT
    };
    return (unsigned)action < TRACE_ACTION_COUNT ? names[action] : "unknown";
}

struct trace *trace_create(const char *name) {
    struct trace_builder builder;
    struct trace *trace = NULL;
    if (trace_builder_init(&builder, name, 0) != BASE_OK) return NULL;
    if (trace_builder_finish(&builder, &trace) != BASE_OK) return NULL;
    return trace;
}

void trace_destroy(struct trace *trace) {
    if (trace == NULL) return;
    free(trace->name);
    free(trace->source);
    free(trace->settings.config);
    free(trace->settings.torch_version);
    free(trace->events);
    free(trace->streams);
    free(trace->pools);
    for (uint32_t i = 0; i < trace->string_count; i++) free(trace->strings[i]);
    free(trace->strings);
    free(trace->stacks);
    free(trace->frames);
    free(trace->segments);
    free(trace->blocks);
    free(trace);
}

const char *trace_rules_version(const struct trace *trace, bool *assumed) {
    const char *version = trace->settings.torch_version;
    *assumed = version == NULL;
    if (version != NULL) return version;
    return trace->has_pool_ids ? "2.15" : "2.11";
}

bool trace_has_placement(const struct trace *trace, int device) {
    BASE_CHECK(device >= 0 && device < TRACE_DEVICE_COUNT_MAX);
    for (size_t i = 0; i < trace->segment_count; i++)
        if (trace->segments[i].device == device) return true;
    for (size_t i = trace->device_event_first[device]; i < trace->device_event_first[device + 1];
         i++)
        if (trace->events[i].action >= TRACE_SEGMENT_ALLOC &&
            trace->events[i].action <= TRACE_SEGMENT_UNMAP)
            return true;
    return false;
}
