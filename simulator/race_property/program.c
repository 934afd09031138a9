// Programs as data: spans, accesses, and the litmus format.
#include "simulator/race_property/program.h"

#include "base/check.h"

#include <string.h>

const char *verb_word(enum verb verb) {
    static const char *const words[] = {
#define VERB_WORD(name, word) word,
        VERB_LIST(VERB_WORD)
#undef VERB_WORD
    };
    return words[verb];
}

bool verb_queries(enum verb verb) { return verb == EVENT_QUERY || verb == STREAM_QUERY; }

struct operation operation_make(enum verb verb, int thread) {
    return (struct operation){
        .verb = verb,
        .thread = thread,
        .stream = NONE,
        .event = NONE,
        .device = NONE,
        .buffer = NONE,
        .block = NONE,
        .graph = NONE,
        .exec = NONE,
        .token = NONE,
        .guard = NONE,
    };
}

int operation_device(const struct program *program, const struct operation *operation) {
    if (operation->device != NONE)
        return operation->device;
    return operation->stream != NONE ? program->streams[operation->stream].device : 0;
}

int span_size(const struct span *span) { return span->length * span->count; }

int span_cell(const struct span *span, int index) {
    return span->start + index / span->length * span->stride + index % span->length;
}

uint32_t span_mask(const struct span *span) {
    uint32_t mask = 0;
    for (int i = 0; i < span_size(span); ++i)
        mask |= 1u << span_cell(span, i);
    return mask;
}

int step_accesses(const struct step *step, struct access accesses[3]) {
    const struct access write = {.mode = WRITES, .span = step->to};
    const struct access reads[2] = {
        {.mode = READS, .quiet = step->verb == STEP_CARRY, .span = step->from[0]},
        {.mode = READS, .span = step->from[1]},
    };
    switch (step->verb) {
    case STEP_SET: accesses[0] = write; return 1;
    case STEP_ATOMIC: accesses[0] = (struct access){.mode = UPDATES, .span = step->to}; return 1;
    case STEP_READ: accesses[0] = reads[0]; return 1;
    case STEP_MOVE:
    case STEP_CARRY:
        accesses[0] = reads[0];
        accesses[1] = write;
        return 2;
    case STEP_SUM:
        accesses[0] = reads[0];
        accesses[1] = reads[1];
        accesses[2] = write;
        return 3;
    }
    return 0;
}

bool modes_conflict(enum access_mode a, enum access_mode b) { return a != b || a == WRITES; }

const char *operation_label(int index) {
    static char labels[OPERATIONS_MAX][8];
    BASE_CHECK(index >= 0 && index < OPERATIONS_MAX);
    if (labels[index][0] == '\0')
        snprintf(labels[index], sizeof labels[index], "O%d", index);
    return labels[index];
}

// --- The litmus format ---

struct printer {
    FILE *out;
    const struct program *program;
    int current[THREADS]; // device of each thread
};

static void print_stream(const struct printer *printer, int index) {
    const struct stream *stream = &printer->program->streams[index];
    // The two threads' own streams have one name in the format, as in CUDA.
    if (stream->kind == PER_THREAD)
        fprintf(printer->out, " p%d", stream->device);
    else
        fprintf(printer->out, " %c%d", stream->kind == LEGACY ? 'l' : 's', index);
}

static void print_declarations(const struct printer *printer) {
    static const char *const kinds[] = {"legacy", "blocking", "nonblocking", "perthread"};
    static const char *const places[] = {"device", "pinned", "pageable"};
    const struct program *program = printer->program;
    FILE *out = printer->out;
    for (int i = 0; i < program->stream_count; ++i) {
        const struct stream *stream = &program->streams[i];
        bool first = true;
        for (int k = 0; k < i; ++k)
            first =
                first && !(stream->kind == PER_THREAD && program->streams[k].kind == PER_THREAD &&
                           program->streams[k].device == stream->device);
        if (!first)
            continue;
        fprintf(out, "stream");
        print_stream(printer, i);
        fprintf(out, " %s %d\n", kinds[stream->kind], stream->device);
    }
    for (int i = 0; i < program->event_count; ++i)
        fprintf(out, "event e%d %d\n", i, program->event_devices[i]);
    bool counted[STREAMS_MAX] = {false};
    for (int i = 0; i < program->count; ++i) {
        const struct operation *operation = &program->operations[i];
        if (operation->dropped || operation->verb != WRITE_VALUE || counted[operation->token])
            continue;
        counted[operation->token] = true;
        fprintf(out, "timeline T%d\n", operation->token);
    }
    for (int i = 0; i < program->buffer_count; ++i) {
        const struct buffer *buffer = &program->buffers[i];
        if (buffer->allocated)
            continue;
        fprintf(out, "%s b%d %d", places[buffer->place], i, buffer->size);
        if (buffer->place == ON_DEVICE)
            fprintf(out, " %d", buffer->device);
        fprintf(out, buffer->defined ? " 1\n" : " ?\n");
    }
}

static void print_span(const struct printer *printer, const struct span *span) {
    int start = span->start;
    if (span->block != NONE) {
        start -= printer->program->blocks[span->block].start;
        fprintf(printer->out, " k%d", span->block);
    } else {
        fprintf(printer->out, " b%d", span->buffer);
    }
    fprintf(printer->out, ":%d:%d", start, span->length);
    if (span->count > 1)
        fprintf(printer->out, ":%d:%d", span->stride, span->count);
}

static void print_effect(const struct printer *printer, const struct operation *operation) {
    static const char *const words[] = {"set", "copy", "sum", "atomic", "read", "carry"};
    if (operation->step_count == 0)
        fprintf(printer->out, " nothing");
    for (int i = 0; i < operation->step_count; ++i) {
        const struct step *step = &operation->steps[i];
        fprintf(printer->out, "%s %s", i > 0 ? " +" : "", words[step->verb]);
        if (step->verb != STEP_READ)
            print_span(printer, &step->to);
        if (step->verb == STEP_SET || step->verb == STEP_ATOMIC) {
            fprintf(printer->out, " 1");
            continue;
        }
        print_span(printer, &step->from[0]);
        if (step->verb == STEP_SUM)
            print_span(printer, &step->from[1]);
    }
}

static bool is_carried(const struct operation *operation) {
    return operation->step_count == 1 && operation->steps[0].verb == STEP_CARRY;
}

// What stands behind the verb.
static void print_operands(const struct printer *printer, const struct operation *operation) {
    static const char *const modes[] = {"global", "thread", "relaxed"};
    FILE *out = printer->out;
    switch (operation->verb) {
    case KERNEL:
    case HOST_FUNCTION:
        print_stream(printer, operation->stream);
        if (is_carried(operation)) {
            print_span(printer, &operation->steps[0].to);
            print_span(printer, &operation->steps[0].from[0]);
        } else {
            print_effect(printer, operation);
        }
        break;
    case COPY:
    case COPY_ASYNC:
    case COPY_PEER_ASYNC:
    case COPY_PEER:
        if (operation->verb != COPY_PEER)
            print_stream(printer, operation->stream);
        print_span(printer, &operation->steps[0].to);
        print_span(printer, &operation->steps[0].from[0]);
        break;
    case FILL:
    case FILL_ASYNC: print_stream(printer, operation->stream); // fallthrough
    case HOST_WRITE:
        print_span(printer, &operation->steps[0].to);
        fprintf(out, " 1");
        break;
    case HOST_READ: print_span(printer, &operation->steps[0].from[0]); break;
    case RECORD:
        fprintf(out, " e%d", operation->event);
        print_stream(printer, operation->stream);
        break;
    case WAIT:
        print_stream(printer, operation->stream);
        fprintf(out, " e%d", operation->event);
        break;
    case EVENT_CREATE: fprintf(out, " e%d %d", operation->event, operation->device); break;
    case EVENT_SYNC:
    case EVENT_QUERY:
    case EVENT_POLL:
    case EVENT_DESTROY: fprintf(out, " e%d", operation->event); break;
    case STREAM_SYNC:
    case STREAM_QUERY:
    case STREAM_POLL:
    case STREAM_DESTROY: print_stream(printer, operation->stream); break;
    case DEVICE_SYNC: fprintf(out, " %d", operation->device); break;
    case SIGNAL:
    case AWAIT: fprintf(out, " t%d", operation->token); break;
    case ALLOC:
        fprintf(out, " b%d %d %d", operation->buffer,
                printer->program->buffers[operation->buffer].size, operation->device);
        break;
    case HOST_ALLOC:
        fprintf(out, " b%d %d", operation->buffer,
                printer->program->buffers[operation->buffer].size);
        break;
    case FREE:
    case HOST_FREE: fprintf(out, " b%d", operation->buffer); break;
    case ALLOC_ASYNC:
        fprintf(out, " b%d %d", operation->buffer,
                printer->program->buffers[operation->buffer].size);
        print_stream(printer, operation->stream);
        break;
    case FREE_ASYNC:
        fprintf(out, " b%d", operation->buffer);
        print_stream(printer, operation->stream);
        break;
    case TAKE: {
        const struct block *block = &printer->program->blocks[operation->block];
        fprintf(out, " k%d b%d:%d:%d", operation->block, block->buffer, block->start, block->size);
        print_stream(printer, operation->stream);
        break;
    }
    case USE:
        fprintf(out, " k%d", operation->block);
        print_stream(printer, operation->stream);
        break;
    case GIVE: fprintf(out, " k%d", operation->block); break;
    case WRITE_VALUE:
        print_stream(printer, operation->stream);
        fprintf(out, " T%d %d", operation->token, operation->value);
        break;
    case VALUE_POLL: fprintf(out, " T%d %d", operation->token, operation->value); break;
    case GRAPH_CREATE: fprintf(out, " g%d", operation->graph); break;
    case ADD_KERNEL:
        fprintf(out, " g%d", operation->graph);
        for (int i = 0; i < operation->dependency_count; ++i)
            fprintf(out, "%c%s", i == 0 ? ' ' : ',', operation_label(operation->dependencies[i]));
        if (operation->dependency_count == 0)
            fprintf(out, " -");
        print_effect(printer, operation);
        break;
    case BEGIN:
        print_stream(printer, operation->stream);
        fprintf(out, " %s", modes[operation->value]);
        break;
    case END:
        print_stream(printer, operation->stream);
        fprintf(out, " g%d", operation->graph);
        break;
    case INSTANTIATE: fprintf(out, " x%d g%d", operation->exec, operation->graph); break;
    case LAUNCH:
        print_stream(printer, operation->stream);
        fprintf(out, " x%d", operation->exec);
        break;
    case EXEC_DESTROY: fprintf(out, " x%d", operation->exec); break;
    case GRAPH_DESTROY: fprintf(out, " g%d", operation->graph); break;
    case VERB_COUNT: break;
    }
}

// The format's word; a kernel that only carries bytes on is written as the copy that does the same.
static void print_verb(const struct printer *printer, const struct operation *operation) {
    enum verb verb = operation->verb;
    if (verb == KERNEL && is_carried(operation))
        verb = COPY_ASYNC;
    const char *word = verb_word(verb);
    const bool rows = operation->step_count > 0 && operation->steps[0].to.count > 1;
    if (rows && (verb == COPY || verb == FILL))
        fprintf(printer->out, " %s2d", word);
    else if (rows && (verb == COPY_ASYNC || verb == FILL_ASYNC))
        fprintf(printer->out, verb == COPY_ASYNC ? " memcpy2dasync" : " memset2dasync");
    else
        fprintf(printer->out, " %s", word);
}

// Kernels and plain peer copies depend on the current device.
static void print_device(struct printer *printer, int index) {
    const struct operation *operation = &printer->program->operations[index];
    const int wanted = operation_device(printer->program, operation);
    if ((operation->verb != KERNEL && operation->verb != COPY_PEER &&
         operation->verb != ADD_KERNEL) ||
        printer->current[operation->thread] == wanted)
        return;
    printer->current[operation->thread] = wanted;
    fprintf(printer->out, "do %d D%d setdevice %d\n", operation->thread, index, wanted);
}

void program_print(FILE *out, const struct program *program, const char *name, const char *why) {
    struct printer printer = {.out = out, .program = program};
    fprintf(out, "case %s\nkind property\nwhy %s\n", name, why);
    print_declarations(&printer);
    for (int i = 0; i < program->count; ++i) {
        const struct operation *operation = &program->operations[i];
        if (operation->dropped)
            continue;
        print_device(&printer, i);
        fprintf(out, "do %d %s", operation->thread, operation_label(i));
        print_verb(&printer, operation);
        print_operands(&printer, operation);
        if (operation->guard != NONE)
            fprintf(out, " %s %s", operation->guard_success ? "if" : "ifnot",
                    operation_label(operation->guard));
        fprintf(out, "\n");
    }
    if (program->threads_strict)
        fprintf(out, "reading threads=strict\n");
    fprintf(out, "end\n");
}
