// The transcript as a trace of events in the JSON form that Chrome's tracing brought up, which
// Perfetto (ui.perfetto.dev) and other viewers show: host threads are the rows of one process, the
// streams of each device those of another; calls and operations are slices with a duration, what
// one operation waited for is an arrow to it, used memory is a counter.
#include "simulator/transcript.h"

#include <stdarg.h>

// Viewers keep process 0 for the idle one of a system.
#define HOST_PROCESS 1
#define DEVICE_PROCESS(device) ((device) + 2)

#define ROWS_OF_STREAM 4096 // lanes and the stream itself, for the order of rows

#define US(ns) ((double)(ns) / 1000)

static void string_write(FILE *file, const char *text) {
    putc('"', file);
    for (; text != NULL && *text != '\0'; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            putc(c, file);
    }
    putc('"', file);
}

static void name_write(FILE *file, const char *what, int process, uint64_t row,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

static void name_write(FILE *file, const char *what, int process, uint64_t row,
                       const char *format, ...) {
    va_list arguments;
    fprintf(file,
            ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%llu,\"args\":{\"name\":\"", what,
            process, (unsigned long long)row);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputs("\"}}", file);
}

void sim__timeline_begin(FILE *file) {
    fprintf(file,
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"host\"}}",
            HOST_PROCESS);
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        name_write(file, "process_name", DEVICE_PROCESS(i), 0, "device %d", i);
        sim__timeline_memory(file, i, 0, 0);
    }
}

void sim__timeline_end(FILE *file) { fputs("\n]}\n", file); }

void sim__timeline_thread(FILE *file, int thread) {
    name_write(file, "thread_name", HOST_PROCESS, (uint64_t)thread, "thread %d", thread);
}

void sim__timeline_stream(FILE *file, const struct sim__mark *mark, bool sorted) {
    char lane[64] = "";
    if (mark->lane > 0)
        snprintf(lane, sizeof lane, ", graph %llu, lane %u", (unsigned long long)mark->graph,
                 mark->lane);
    name_write(file, "thread_name", DEVICE_PROCESS(mark->device), mark->row, "%sstream %llu%s",
               mark->legacy ? "legacy " : "", (unsigned long long)mark->stream, lane);
    if (sorted)
        fprintf(file,
                ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%llu,"
                "\"args\":{\"sort_index\":%llu}}",
                DEVICE_PROCESS(mark->device), (unsigned long long)mark->row,
                (unsigned long long)(mark->stream * ROWS_OF_STREAM +
                                     (mark->lane > 0 ? mark->row - SIM__TIMELINE_LANE_FIRST + 1
                                                     : 0)));
}

static void slice_write(FILE *file, const char *name, int process, uint64_t row, uint64_t start_ns,
                        uint64_t end_ns) {
    fputs(",\n{\"ph\":\"X\",\"name\":", file);
    string_write(file, name);
    fprintf(file, ",\"pid\":%d,\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f", process,
            (unsigned long long)row, US(start_ns), US(end_ns - start_ns));
}

void sim__timeline_call(FILE *file, const struct sim__transcript_call *call, int thread) {
    slice_write(file, call->name, HOST_PROCESS, (uint64_t)thread, call->begin_ns, call->end_ns);
    fprintf(file, ",\"args\":{\"number\":%llu,\"arguments\":", (unsigned long long)call->number);
    string_write(file, call->arguments.bytes);
    fputs(",\"result\":", file);
    string_write(file, sim__transcript_result_name(call));
    fputs(",\"stored\":", file);
    string_write(file, call->outputs.bytes);
    fputs("}}", file);
}

void sim__timeline_operation(FILE *file, const struct sim__mark *mark, uint64_t end_ns,
                             const char *what) {
    slice_write(file, what, DEVICE_PROCESS(mark->device), mark->row, mark->start_ns, end_ns);
    if (mark->lane > 0)
        fprintf(file, ",\"args\":{\"graph\":%llu,\"node\":%llu}}", (unsigned long long)mark->graph,
                (unsigned long long)mark->node);
    else
        fprintf(file, ",\"args\":{\"operation\":%llu}}", (unsigned long long)mark->sequence);
}

static void arrow_end_write(FILE *file, const char *phase, uint64_t number,
                            const struct sim__mark *mark) {
    fprintf(file,
            ",\n{%s,\"id\":%llu,\"name\":\"waits\",\"cat\":\"order\",\"pid\":%d,\"tid\":%llu,"
            "\"ts\":%.3f}",
            phase, (unsigned long long)number, DEVICE_PROCESS(mark->device),
            (unsigned long long)mark->row, US(mark->start_ns));
}

void sim__timeline_arrow(FILE *file, uint64_t number, const struct sim__mark *from,
                         const struct sim__mark *to) {
    arrow_end_write(file, "\"ph\":\"s\"", number, from);
    arrow_end_write(file, "\"ph\":\"f\",\"bp\":\"e\"", number, to);
}

void sim__timeline_memory(FILE *file, int device, uint64_t used_bytes, uint64_t ns) {
    fprintf(file,
            ",\n{\"ph\":\"C\",\"name\":\"used memory\",\"pid\":%d,\"ts\":%.3f,"
            "\"args\":{\"bytes\":%llu}}",
            DEVICE_PROCESS(device), US(ns), (unsigned long long)used_bytes);
}
