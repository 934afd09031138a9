// When and where a transcript is written, and its form as lines of text: a line a call, and
// indented behind it the operations that ran within it.
//
// A file holds one life of the machine: sim_configure and sim_reset end it, and what follows goes
// to the next one (out.txt, out.2.txt ...). A life without a call makes none.
#include "simulator/transcript.h"

#include "base/address_map.h"
#include "base/file.h"
#include "simulator/blas_status.h"
#include "simulator/graph.h"
#include "simulator/profile.h"
#include "simulator/replay.h"
#include "simulator/schedule.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 100

_Atomic int sim__transcript_state = SIM__TRANSCRIPT_UNKNOWN;

static char *path; // as it was given
static bool is_timeline;
static int file_number; // of the file that is open, or of the next one
static struct base_file file;
static bool is_open;
static uint64_t line_count;
static uint64_t arrow_count;
static uint64_t used_bytes[SIM_DEVICE_COUNT_MAX]; // as last written

// Operations that others wait for: from slot and sequence number to an index of marks.
static struct base_address_map mark_indices;
static struct sim__mark *marks;
static size_t mark_count, mark_size;
// Streams that ran something, by number: the rows that need a name at the end. Lanes of launches
// have rows of their own behind these, found by stream, graph and lane.
static struct sim__mark *rows;
static uint64_t row_count;
static struct base_address_map lane_rows;
static struct sim__mark *lanes;
static uint64_t lane_count, lane_size;

static int thread_count;
static _Thread_local int thread_number; // from 1
static _Thread_local struct sim__transcript_call *current_call;

static const struct sim__wrapper *wrappers;
static size_t wrapper_count;

void sim__transcript_wrappers_are(const struct sim__wrapper *all, size_t count) {
    wrappers = all;
    wrapper_count = count;
}

const char *sim__transcript_result_name(const struct sim__transcript_call *call) {
    if (strncmp(call->name, "cublas", 6) != 0)
        return cudaGetErrorName((cudaError_t)call->result);
    const struct sim__blas_status *status = sim__blas_status_find(call->result);
    return status != NULL ? status->name : "unknown status";
}

void (*sim__transcript_wrapper_of(void (*call)(void)))(void) {
    for (size_t i = 0; i < wrapper_count; ++i)
        if (wrappers[i].call == call)
            return wrappers[i].wrapper;
    return call;
}

static void lock(void) { BASE_CHECK_EQ(pthread_mutex_lock(&sim__state.lock.mutex), 0); }
static void unlock(void) { BASE_CHECK_EQ(pthread_mutex_unlock(&sim__state.lock.mutex), 0); }

// --- Files ---

// Files take a lock of base/thread.h, which would be a point of sim_serialize: its hooks look away
// meanwhile.

static void marks_clear(void) {
    base_address_map_deinit(&mark_indices);
    free(marks);
    free(rows);
    free(lanes);
    base_address_map_deinit(&lane_rows);
    marks = rows = lanes = NULL;
    mark_count = mark_size = row_count = lane_count = lane_size = 0;
}

static void head_write(void) {
    if (is_timeline)
        sim__timeline_begin(file.stream);
    else
        fprintf(file.stream,
                "# Tidemark simulator: %s, schedule %s\n"
                "# number, virtual time in us, thread, call\n",
                sim__profile()->name, sim__schedule_text());
}

// FILE, then FILE with a number before its ending.
static enum base_status file_open(void) {
    char *name = NULL;
    const char *ending = strrchr(path, '.');
    if (ending == NULL || strchr(ending, '/') != NULL)
        ending = path + strlen(path);
    const int length = file_number == 1 ? asprintf(&name, "%s", path)
                                        : asprintf(&name, "%.*s.%d%s", (int)(ending - path), path,
                                                   file_number, ending);
    if (length < 0)
        return base_status_set(BASE_HOST_MEMORY, "cannot write %s: out of host memory", path);
    const struct base_thread_hooks *hooks = base__thread_hooks_suspend();
    const enum base_status status = base_file_create(&file, name);
    base__thread_hooks_resume(hooks);
    free(name);
    if (status != BASE_OK)
        return status;
    is_open = true;
    line_count = arrow_count = 0;
    memset(used_bytes, 0, sizeof used_bytes);
    return BASE_OK;
}

static enum base_status file_close(void) {
    if (is_timeline) {
        for (int thread = 1; thread <= thread_count; ++thread)
            sim__timeline_thread(file.stream, thread);
        for (uint64_t i = 0; i < row_count; ++i)
            if (rows[i].stream > 0)
                sim__timeline_stream(file.stream, &rows[i], lane_count > 0);
        for (uint64_t i = 0; i < lane_count; ++i)
            sim__timeline_stream(file.stream, &lanes[i], true);
        sim__timeline_end(file.stream);
    }
    const struct base_thread_hooks *hooks = base__thread_hooks_suspend();
    const enum base_status status = base_file_commit(&file);
    base__thread_hooks_resume(hooks);
    is_open = false;
    ++file_number;
    return status;
}

static enum base_status finish(void) {
    enum base_status status = BASE_OK;
    if (is_open && line_count > 0) {
        status = file_close();
    } else if (is_open) {
        base_file_abandon(&file);
        is_open = false;
    }
    marks_clear();
    return status;
}

static void switch_off(void) {
    atomic_store(&sim__transcript_state, SIM__TRANSCRIPT_OFF);
    sim__observer = NULL;
    free(path);
    path = NULL;
}

// The program's calls must not fail for a transcript's sake.
static void give_up(void) {
    fprintf(stderr, "transcript: %s\n", base_status_message());
    switch_off();
}

static void at_exit(void) {
    lock();
    if (path != NULL) {
        if (finish() != BASE_OK)
            give_up();
        else
            switch_off();
    }
    unlock();
}

// A child has the file open and may not write to it.
static void before_fork(void) {
    lock();
    if (is_open)
        fflush(file.stream);
}

static void in_child(void) {
    if (path != NULL) {
        is_open = false;
        marks_clear();
        switch_off();
    }
    unlock();
}

// A line is about to be written; false if there is no file for it.
static bool line_begin(void) {
    if (atomic_load(&sim__transcript_state) != SIM__TRANSCRIPT_ON)
        return false;
    if (!is_open && file_number > FILES_MAX)
        base_status_set(BASE_LIMIT, "no more than %d files", FILES_MAX);
    if (!is_open && (file_number > FILES_MAX || file_open() != BASE_OK)) {
        give_up();
        return false;
    }
    if (line_count++ == 0)
        head_write();
    return true;
}

// --- Marks ---

static uint64_t mark_key(struct sim__position position) {
    return (uint64_t)position.stream->slot.index << 40 | position.sequence;
}

// An operation of a lane is pending, or has just run: its launch and what it is in it are known.
static struct sim__mark mark_of(struct sim__position position,
                                const struct sim__operation *operation, uint64_t start_ns) {
    const struct sim__stream *stream = position.stream;
    struct sim__mark mark = {
        .device = stream->device,
        .stream = stream->number,
        .legacy = stream->legacy,
        .sequence = position.sequence,
        .start_ns = start_ns,
        .row = stream->number,
    };
    if (stream->launch != NULL) {
        mark.stream = stream->launch->stream;
        mark.legacy = stream->launch->legacy;
        mark.graph = stream->launch->graph;
        mark.lane = stream->lane + 1;
        mark.node = stream->launch->exec->nodes[operation->node].number;
    }
    return mark;
}

static const struct sim__operation *pending_at(struct sim__position position) {
    return &position.stream->ring[position.sequence & (position.stream->ring_size - 1)];
}

static struct sim__mark *mark_find(struct sim__position position) {
    uint64_t index;
    return base_address_map_get(&mark_indices, mark_key(position), &index) ? &marks[index] : NULL;
}

// Without memory for it there is no arrow.
static void mark_add(struct sim__position position) {
    if (mark_find(position) != NULL)
        return;
    if (mark_count == mark_size) {
        const size_t size = mark_size == 0 ? 64 : 2 * mark_size;
        struct sim__mark *grown = realloc(marks, size * sizeof *grown);
        if (grown == NULL)
            return;
        marks = grown;
        mark_size = size;
    }
    if (base_address_map_set(&mark_indices, mark_key(position), mark_count) == BASE_OK)
        marks[mark_count++] = mark_of(position, pending_at(position), 0);
}

// --- Operations ---

static void operation_submitted(struct sim__position position,
                                const struct sim__operation *operation,
                                const struct sim__position *waits, size_t wait_count) {
    (void)position;
    (void)operation;
    for (size_t i = 0; i < wait_count; ++i)
        mark_add(waits[i]);
}

static const struct sim__position *waits_of(const struct sim__operation *operation) {
    return operation->wait_count == 1 ? &operation->wait : operation->waits;
}

static void mark_name(struct sim__text *text, const struct sim__mark *mark) {
    sim__text_add(text, "%s %llu", mark->legacy ? "legacy stream" : "stream",
                  (unsigned long long)mark->stream);
    if (mark->lane == 0)
        sim__text_add(text, " #%llu", (unsigned long long)mark->sequence);
    else if (mark->node > 0)
        sim__text_add(text, " graph %llu node %llu", (unsigned long long)mark->graph,
                      (unsigned long long)mark->node);
    else // no node of the program's: it ends those of a child graph
        sim__text_add(text, " graph %llu", (unsigned long long)mark->graph);
}

static void time_add(struct sim__text *text, uint64_t ns) {
    sim__text_add(text, "%llu.%03llu", (unsigned long long)(ns / 1000),
                  (unsigned long long)(ns % 1000));
}

static void operation_line(struct sim__text *text, const struct sim__mark *mark,
                           const struct sim__operation *operation, uint64_t end_ns) {
    sim__text_add(text, "%8llu            ", (unsigned long long)line_count);
    mark_name(text, mark);
    sim__text_add(text, ": ");
    sim__value_operation(text, operation);
    sim__text_add(text, ", ");
    time_add(text, mark->start_ns);
    sim__text_add(text, " to ");
    time_add(text, end_ns);
    for (uint32_t i = 0; i < operation->wait_count; ++i) {
        const struct sim__mark *from = mark_find(waits_of(operation)[i]);
        sim__text_add(text, i == 0 ? ", after " : ", ");
        if (from != NULL)
            mark_name(text, from);
    }
    sim__text_add(text, "\n");
}

// Without memory for it the row has no name.
static void row_add(const struct sim__mark *mark) {
    if (mark->stream >= row_count) {
        const uint64_t count = 2 * mark->stream + 16;
        struct sim__mark *grown = realloc(rows, count * sizeof *grown);
        if (grown == NULL)
            return;
        memset(grown + row_count, 0, (count - row_count) * sizeof *grown);
        rows = grown;
        row_count = count;
    }
    rows[mark->stream] = *mark;
}

// Beyond these numbers of streams, rows may be mistaken.
static uint64_t lane_key(const struct sim__mark *mark) {
    return mark->stream << 40 | (mark->graph << 16 & 0xffffff0000) | (mark->lane & 0xffff);
}

// Without memory for it the lane stands in its stream's row.
static void lane_row_find(struct sim__mark *mark) {
    mark->row = mark->stream;
    uint64_t index;
    if (base_address_map_get(&lane_rows, lane_key(mark), &index)) {
        mark->row = SIM__TIMELINE_LANE_FIRST + index;
        return;
    }
    if (lane_count == lane_size) {
        const uint64_t size = lane_size == 0 ? 64 : 2 * lane_size;
        struct sim__mark *grown = realloc(lanes, size * sizeof *grown);
        if (grown == NULL)
            return;
        lanes = grown;
        lane_size = size;
    }
    if (base_address_map_set(&lane_rows, lane_key(mark), lane_count) == BASE_OK) {
        mark->row = SIM__TIMELINE_LANE_FIRST + lane_count;
        lanes[lane_count++] = *mark;
    }
}

static void operation_timeline(const struct sim__mark *mark,
                               const struct sim__operation *operation, uint64_t end_ns) {
    struct sim__text what = {NULL, 0, 0};
    if (mark->lane == 0)
        row_add(mark);
    sim__value_operation(&what, operation);
    sim__timeline_operation(file.stream, mark, end_ns, what.bytes);
    sim__text_deinit(&what);
    for (uint32_t i = 0; i < operation->wait_count; ++i) {
        const struct sim__mark *from = mark_find(waits_of(operation)[i]);
        if (from != NULL)
            sim__timeline_arrow(file.stream, ++arrow_count, from, mark);
    }
}

// What waits for it has to know when it started. The line follows that of the call within which it
// ran.
static void operation_completed(struct sim__position position,
                                const struct sim__operation *operation, uint64_t start_ns,
                                uint64_t end_ns) {
    struct sim__mark mark = mark_of(position, operation, start_ns);
    if (mark.lane > 0 && is_timeline)
        lane_row_find(&mark);
    struct sim__mark *kept = mark_find(position);
    if (kept != NULL)
        *kept = mark;
    if (!line_begin())
        return;
    if (is_timeline) {
        operation_timeline(&mark, operation, end_ns);
        return;
    }
    struct sim__text line = {NULL, 0, 0};
    operation_line(current_call != NULL ? &current_call->ran : &line, &mark, operation, end_ns);
    if (line.length > 0)
        fputs(line.bytes, file.stream);
    sim__text_deinit(&line);
}

static const struct sim__observer observer = {operation_submitted, operation_completed};

// --- Calls ---

static void environment_ask(void);

// So that the head knows schedule and device. The start may begin to serialize threads, which has
// to see who holds the lock.
static void machine_start(void) {
    unlock();
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    base_mutex_unlock(&sim__state.lock);
    lock();
}

static void call_text(const struct sim__transcript_call *call) {
    struct sim__text line = {NULL, 0, 0};
    struct sim__text *to = call->outer != NULL ? &call->outer->ran : &line;
    sim__text_add(to, "%8llu ", (unsigned long long)call->number);
    struct sim__text time = {NULL, 0, 0};
    time_add(&time, call->begin_ns);
    sim__text_add(to, "%12s %3d  %s(%s) = %s%s%s\n%s", time.bytes, thread_number, call->name,
                  call->arguments.length > 0 ? call->arguments.bytes : "",
                  sim__transcript_result_name(call),
                  call->outputs.length > 0 ? ", " : "",
                  call->outputs.length > 0 ? call->outputs.bytes : "",
                  call->ran.length > 0 ? call->ran.bytes : "");
    sim__text_deinit(&time);
    if (line.length > 0)
        fputs(line.bytes, file.stream);
    sim__text_deinit(&line);
}

static void call_timeline(const struct sim__transcript_call *call) {
    sim__timeline_call(file.stream, call, thread_number);
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        const uint64_t used = sim__state.devices[i].used_bytes;
        if (used != used_bytes[i])
            sim__timeline_memory(file.stream, i, used, call->end_ns);
        used_bytes[i] = used;
    }
}

// With the lock: formatting asks the machine.
void sim__transcript_begin(struct sim__transcript_call *call, const char *name) {
    *call = (struct sim__transcript_call){.name = name, .outer = current_call};
    lock();
    if (atomic_load(&sim__transcript_state) == SIM__TRANSCRIPT_UNKNOWN)
        environment_ask();
    if (atomic_load(&sim__transcript_state) == SIM__TRANSCRIPT_ON && !sim__state.ready)
        machine_start();
    if (line_begin()) {
        call->number = line_count;
        call->begin_ns = sim__state.now_ns;
    }
    if (thread_number == 0)
        thread_number = ++thread_count;
    current_call = call;
}

void sim__transcript_go(struct sim__transcript_call *call) {
    (void)call;
    unlock();
}

void sim__transcript_returned(struct sim__transcript_call *call, int result) {
    lock();
    call->result = result;
    call->end_ns = sim__state.now_ns;
}

void sim__transcript_end(struct sim__transcript_call *call) {
    if (is_open && call->number > 0 && is_timeline)
        call_timeline(call);
    else if (is_open && call->number > 0)
        call_text(call);
    current_call = call->outer;
    unlock();
    sim__text_deinit(&call->arguments);
    sim__text_deinit(&call->outputs);
    sim__text_deinit(&call->ran);
}

// --- On and off ---

static enum base_status start(const char *new_path) {
    path = strdup(new_path);
    if (path == NULL)
        return base_status_set(BASE_HOST_MEMORY, "cannot write %s: out of host memory", new_path);
    const char *ending = strrchr(path, '.');
    is_timeline = ending != NULL && strcmp(ending, ".json") == 0;
    file_number = 1;
    const enum base_status status = file_open();
    if (status != BASE_OK) {
        switch_off();
        return status;
    }
    static bool is_installed;
    if (!is_installed) {
        BASE_CHECK_EQ(pthread_atfork(before_fork, unlock, in_child), 0);
        BASE_CHECK_EQ(atexit(at_exit), 0); // behind base/file's, so that it runs before that one
        is_installed = true;
    }
    sim__observer = &observer;
    atomic_store(&sim__transcript_state, SIM__TRANSCRIPT_ON);
    return BASE_OK;
}

static void environment_ask(void) {
    const char *text = getenv("TIDEMARK_SIM_TRACE");
    if (text == NULL) {
        atomic_store(&sim__transcript_state, SIM__TRANSCRIPT_OFF);
        return;
    }
    const enum base_status status = start(text);
    if (status == BASE_OK)
        return;
    fprintf(stderr, "TIDEMARK_SIM_TRACE: %s\n", base_status_message());
    fflush(NULL);
    _exit(base_status_exit_code(status));
}

enum base_status sim_transcript(const char *new_path) {
    lock();
    enum base_status status = path != NULL ? finish() : BASE_OK;
    switch_off();
    if (status == BASE_OK && new_path != NULL)
        status = start(new_path);
    unlock();
    return status;
}

void sim__transcript_machine_starts(void) { sim__values_reset(); }

void sim__transcript_machine_stops(void) {
    if (path != NULL && line_count > 0 && finish() != BASE_OK)
        give_up();
}
