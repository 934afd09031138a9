// For tests: prints what the snapshot reader holds of each file as lines of JSON, to be compared
// with what Python's own pickle.load holds (snapshot_compare.py). One line per fact; numbers are
// exact.
//
//     snapshot_dump FILE...
//
// A file that is refused gives {"error": SENTENCE}; the exit status is 0 all the same.
#include "trace/snapshot_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_string(const char *text) {
    putchar('"');
    for (const unsigned char *byte = (const unsigned char *)text; *byte != 0; byte++) {
        if (*byte == '"' || *byte == '\\')
            printf("\\%c", *byte);
        else if (*byte < ' ' || *byte == 0x7f)
            printf("\\u%04x", *byte);
        else
            putchar(*byte);
    }
    putchar('"');
}

static void print_stack(const struct trace *trace, uint32_t stack) {
    if (stack == TRACE_NONE) {
        printf("null");
        return;
    }
    const struct trace_frame *frame = trace->frames + trace->stacks[stack].first;
    putchar('[');
    for (uint32_t i = 0; i < trace->stacks[stack].count; i++, frame++) {
        printf("%s[", i > 0 ? ", " : "");
        print_string(trace->strings[frame->function]);
        printf(", ");
        print_string(trace->strings[frame->file]);
        printf(", %" PRIu32 "]", frame->line);
    }
    putchar(']');
}

static void print_place(const struct trace *trace, unsigned stream, unsigned pool) {
    printf(", \"stream\": %" PRIu64 ", \"pool\": [%" PRIu64 ", %" PRIu64 "], \"frames\": ",
           trace->streams[stream], trace->pools[pool].capture, trace->pools[pool].user);
}

static void print_events(const struct trace *trace) {
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        printf("{\"event\": \"%s\", \"device\": %u, \"address\": %" PRIu64 ", \"size\": %" PRIu64
               ", \"time\": %" PRIu64 ", \"metadata\": ",
               trace_action_name(event->action), event->device, event->address, event->size,
               event->time_us);
        if (event->metadata == TRACE_NONE)
            printf("null");
        else
            print_string(trace->strings[event->metadata]);
        print_place(trace, event->stream, event->pool);
        print_stack(trace, event->stack);
        printf("}\n");
    }
}

static void print_segments(const struct trace *trace) {
    for (size_t i = 0; i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        printf("{\"segment\": %" PRIu64 ", \"device\": %u, \"sizes\": [%" PRIu64 ", %" PRIu64
               ", %" PRIu64 ", %" PRIu64 "], \"large\": %s, \"expandable\": %s",
               segment->address, segment->device, segment->total_size, segment->allocated_size,
               segment->active_size, segment->requested_size, segment->is_large ? "true" : "false",
               segment->is_expandable ? "true" : "false");
        print_place(trace, segment->stream, segment->pool);
        print_stack(trace, segment->stack);
        printf("}\n");
        for (uint32_t j = 0; j < segment->block_count; j++) {
            const struct trace_block *block = &trace->blocks[segment->block_first + j];
            printf("{\"block\": %" PRIu64 ", \"size\": %" PRIu64 ", \"requested\": %" PRIu64
                   ", \"state\": %u, \"frames\": ",
                   block->address, block->size, block->requested_size, block->state);
            print_stack(trace, block->stack);
            printf("}\n");
        }
    }
}

static void print_trace(const struct trace *trace) {
    const struct trace_settings *settings = &trace->settings;
    printf("{\"trace\": %" PRIu32 ", \"pool_ids\": %s, \"settings\": %s, \"config\": ",
           trace->device_count, trace->has_pool_ids ? "true" : "false",
           settings->known ? "true" : "false");
    print_string(settings->config);
    printf(", \"max_split\": %" PRId64
           ", \"threshold\": %.17g, \"expandable\": %s, \"divisions\": [",
           settings->max_split_size, settings->garbage_collection_threshold,
           settings->expandable_segments ? "true" : "false");
    for (int i = 0; i < 16; i++)
        printf("%s%" PRIu32, i > 0 ? ", " : "", settings->roundup_power2_divisions[i]);
    printf("]}\n");
    print_events(trace);
    print_segments(trace);
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        printf("{\"file\": ");
        print_string(paths[i]);
        printf("}\n");
        struct trace_input input;
        struct trace *trace = NULL;
        enum base_status status = trace_input_open(&input, paths[i]);
        if (status == BASE_OK) {
            status = trace__read_snapshot(&input, NULL, &trace);
            trace_input_close(&input);
        }
        if (status == BASE_OK) {
            print_trace(trace);
            trace_destroy(trace);
        } else {
            printf("{\"error\": ");
            print_string(base_status_message());
            printf("}\n");
        }
    }
    return 0;
}
