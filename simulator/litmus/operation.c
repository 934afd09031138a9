// "do THREAD LABEL VERB OPERANDS [if LABEL | ifnot LABEL]": names become indices.
#include "simulator/litmus/read.h"

#include <stdlib.h>
#include <string.h>

static const struct verb {
    const char *word, *operands;
} verbs[] = {
#define LITMUS_VERB_ROW(name, word, operands) {word, operands},
    LITMUS_VERB_LIST(LITMUS_VERB_ROW)
#undef LITMUS_VERB_ROW
};

const char *litmus_verb_word(enum litmus_verb verb) { return verbs[verb].word; }

bool litmus_verb_takes_stream(enum litmus_verb verb) {
    return strchr(verbs[verb].operands, 's') != NULL;
}

bool litmus_verb_takes_buffer(enum litmus_verb verb) {
    return strpbrk(verbs[verb].operands, "ap") != NULL;
}

// --- Operands by letter ---

struct operands {
    struct litmus_operation *operation;
    int event_count, byte_count, number_count;
};

static enum base_status read_stream(const struct litmus_reader *reader, const char *word,
                                    struct operands *operands) {
    const struct litmus_case *current = reader->current;
    for (int i = 0; i < current->stream_count; ++i) {
        if (strcmp(current->streams[i].name, word) == 0) {
            operands->operation->stream = i;
            return BASE_OK;
        }
    }
    return litmus__fault(reader, "\"%s\": no stream of this name", word);
}

static enum base_status read_event(const struct litmus_reader *reader, const char *word,
                                   struct operands *operands) {
    const struct litmus_case *current = reader->current;
    for (int i = 0; i < current->event_count; ++i) {
        if (strcmp(current->events[i].name, word) == 0) {
            operands->operation->events[operands->event_count++] = i;
            return BASE_OK;
        }
    }
    return litmus__fault(reader, "\"%s\": no event of this name", word);
}

static enum base_status read_timeline(const struct litmus_reader *reader, const char *word,
                                      struct operands *operands) {
    const struct litmus_case *current = reader->current;
    for (int i = 0; i < current->timeline_count; ++i) {
        if (strcmp(current->timelines[i], word) == 0) {
            operands->operation->timeline = i;
            return BASE_OK;
        }
    }
    return litmus__fault(reader, "\"%s\": no timeline of this name", word);
}

static enum base_status read_live_buffer(const struct litmus_reader *reader, const char *word,
                                         struct operands *operands) {
    operands->operation->buffer = litmus__buffer_find(reader->current, word);
    if (operands->operation->buffer < 0)
        return litmus__fault(reader, "\"%s\": no buffer of this name", word);
    return BASE_OK;
}

static enum base_status read_block(const struct litmus_reader *reader, const char *word,
                                   struct operands *operands) {
    operands->operation->block = litmus__block_find(reader->current, word);
    return operands->operation->block >= 0
               ? BASE_OK
               : litmus__fault(reader, "\"%s\": no block of this name was taken", word);
}

static enum base_status read_mode(const struct litmus_reader *reader, const char *word,
                                  struct operands *operands) {
    static const char *const modes[] = {
        [LITMUS_MODE_GLOBAL] = "global",
        [LITMUS_MODE_THREAD] = "thread",
        [LITMUS_MODE_RELAXED] = "relaxed",
        [LITMUS_MODE_BAD] = "bad",
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        if (strcmp(modes[i], word) == 0) {
            operands->operation->mode = (enum litmus_mode)i;
            return BASE_OK;
        }
    }
    return litmus__fault(reader, "mode \"%s\": want global, thread, relaxed or bad", word);
}

// A graph or an executable; MADE: by this operation, so that the name may be a new one. A case has
// as many names at most as operations.
static enum base_status read_name(const struct litmus_reader *reader, const char *word, bool made,
                                  const char *what, const char **names, int *count, int *index) {
    for (*index = 0; *index < *count; ++*index)
        if (strcmp(names[*index], word) == 0)
            return BASE_OK;
    if (!made)
        return litmus__fault(reader, "\"%s\": no %s of this name", word, what);
    names[(*count)++] = word;
    return BASE_OK;
}

static enum base_status read_graph(const struct litmus_reader *reader, const char *word, bool made,
                                   struct operands *operands) {
    struct litmus_case *current = reader->current;
    return read_name(reader, word, made, "graph", current->graphs, &current->graph_count,
                     &operands->operation->graph);
}

static enum base_status read_exec(const struct litmus_reader *reader, const char *word, bool made,
                                  struct operands *operands) {
    struct litmus_case *current = reader->current;
    return read_name(reader, word, made, "executable", current->execs, &current->exec_count,
                     &operands->operation->exec);
}

// "A,B": nodes of the same graph, which is read before.
static enum base_status read_dependencies(const struct litmus_reader *reader, const char *word,
                                          struct operands *operands) {
    struct litmus_operation *operation = operands->operation;
    char copy[LITMUS_OPERATION_COUNT_MAX * (LITMUS_NAME_LENGTH_MAX + 1)], *state = NULL;
    if (strcmp(word, "-") == 0)
        return BASE_OK;
    if (strlen(word) >= sizeof copy)
        return litmus__fault(reader, "\"%s\": want labels joined by commas, or -", word);
    for (const char *label = strtok_r(strcpy(copy, word), ",", &state); label != NULL;
         label = strtok_r(NULL, ",", &state)) {
        const int at = litmus__operation_find(reader->current, label);
        const struct litmus_operation *node = at < 0 ? NULL : &reader->current->operations[at];
        if (node == NULL || node->verb != LITMUS_VERB_ADD_KERNEL || node->graph != operation->graph)
            return litmus__fault(reader, "\"%s\": no node of this graph has this label", label);
        if (operation->dependency_count == LITMUS_OPERATION_COUNT_MAX)
            return litmus__fault(reader, "\"%s\": more than %d nodes", word,
                                 LITMUS_OPERATION_COUNT_MAX);
        operation->dependencies[operation->dependency_count++] = at;
    }
    return BASE_OK;
}

static enum base_status read_operand(struct litmus_reader *reader, char letter, const char *word,
                                     struct operands *operands) {
    struct litmus_operation *operation = operands->operation;
    switch (letter) {
    case 's': return read_stream(reader, word, operands);
    case 'e': return read_event(reader, word, operands);
    case 't': return read_timeline(reader, word, operands);
    case 'p': return read_live_buffer(reader, word, operands);
    case 'l': return read_block(reader, word, operands);
    case 'm': return read_mode(reader, word, operands);
    case 'd': return read_dependencies(reader, word, operands);
    case 'g':
    case 'G': return read_graph(reader, word, letter == 'G', operands);
    case 'x':
    case 'X': return read_exec(reader, word, letter == 'X', operands);
    case 'b': return litmus__read_bytes(reader, word, &operation->bytes[operands->byte_count++]);
    case 'n':
        return litmus__number(reader, word, "a number", 0, 255,
                              &operation->numbers[operands->number_count++]);
    default: operation->word = word; return BASE_OK; // 'a', 'k', 'w': a name
    }
}

static enum base_status read_operands(struct litmus_reader *reader, const struct verb *verb,
                                      char *const *words, int word_count,
                                      struct operands *operands) {
    const int wanted = (int)strlen(verb->operands);
    const bool has_effect = strchr(verb->operands, 'f') != NULL;
    if (has_effect ? word_count < wanted : word_count != wanted)
        return litmus__fault(reader, "\"%s\" wants %s%d words behind it", verb->word,
                             has_effect ? "at least " : "", wanted);
    for (int i = 0; i < wanted; ++i) {
        const enum base_status status =
            verb->operands[i] == 'f'
                ? litmus__read_effect(reader, words + i, word_count - i,
                                      &operands->operation->effect)
                : read_operand(reader, verb->operands[i], words[i], operands);
        if (status != BASE_OK)
            return status;
    }
    return BASE_OK;
}

// --- What an operation makes or demands besides ---

// A buffer may be allocated again under its old name, by the same verb and of the same size.
static enum base_status make_buffer(struct litmus_reader *reader,
                                    struct litmus_operation *operation) {
    struct litmus_case *current = reader->current;
    const bool on_host = operation->verb == LITMUS_VERB_HOST_ALLOC;
    const struct litmus_buffer wanted = {
        .name = operation->word,
        .memory = on_host ? LITMUS_MEMORY_PINNED : LITMUS_MEMORY_DEVICE,
        .device = operation->verb == LITMUS_VERB_ALLOC ? operation->numbers[1]
                  : on_host                            ? 0
                                                       : current->streams[operation->stream].device,
        .size = operation->numbers[0],
        .initial = LITMUS_UNDEFINED,
        .allocated = true,
    };
    if (wanted.size < 1 || wanted.size > LITMUS_BYTE_COUNT_MAX ||
        wanted.device >= LITMUS_DEVICE_COUNT)
        return litmus__fault(reader, "\"%s\": %d bytes on device %d: want 1 to %d bytes, device 0 "
                                     "to %d", wanted.name, wanted.size, wanted.device,
                             LITMUS_BYTE_COUNT_MAX, LITMUS_DEVICE_COUNT - 1);
    int at = litmus__buffer_find(current, wanted.name);
    if (litmus__block_find(current, wanted.name) >= 0)
        return litmus__fault(reader, "\"%s\" is a block: a buffer wants another name",
                             wanted.name);
    if (at < 0) {
        at = current->buffer_count++;
        current->buffers[at] = wanted;
    }
    const struct litmus_buffer *buffer = &current->buffers[at];
    if (!buffer->allocated || buffer->memory != wanted.memory || buffer->size != wanted.size ||
        buffer->device != wanted.device)
        return litmus__fault(reader, "\"%s\" was another buffer before", wanted.name);
    operation->buffer = at;
    return BASE_OK;
}

// A block that is taken again under its old name is the new one from here on.
static enum base_status make_block(struct litmus_reader *reader,
                                   struct litmus_operation *operation) {
    struct litmus_case *current = reader->current;
    int at = litmus__block_find(current, operation->word);
    if (litmus__buffer_find(current, operation->word) >= 0)
        return litmus__fault(reader, "\"%s\" is a buffer: a block wants another name",
                             operation->word);
    if (operation->bytes[0].rows != 1)
        return litmus__fault(reader, "a block over strided bytes");
    if (at < 0) {
        at = current->block_count++;
        current->blocks[at] = operation->word;
    }
    reader->blocks[at] = operation->bytes[0];
    operation->block = at;
    return BASE_OK;
}

static bool is_host(const struct litmus_case *current, const struct litmus_bytes *bytes) {
    return current->buffers[bytes->buffer].memory != LITMUS_MEMORY_DEVICE;
}

static bool is_flat(const struct litmus_bytes *bytes) { return bytes->rows == 1; }

static enum base_status check_operation(const struct litmus_reader *reader,
                                        const struct litmus_operation *operation) {
    const struct litmus_case *current = reader->current;
    const struct litmus_bytes *bytes = operation->bytes;
    switch (operation->verb) {
    case LITMUS_VERB_COPY:
    case LITMUS_VERB_COPY_ASYNC:
    case LITMUS_VERB_COPY_PEER:
    case LITMUS_VERB_COPY_PEER_ASYNC:
        if (!is_flat(&bytes[0]) || !is_flat(&bytes[1]))
            return litmus__fault(reader, "a copy of strided bytes: want memcpy2d");
        if (bytes[0].length != bytes[1].length)
            return litmus__fault(reader, "a copy of %d bytes to %d", bytes[1].length,
                                 bytes[0].length);
        return BASE_OK;
    case LITMUS_VERB_COPY_2D:
    case LITMUS_VERB_COPY_2D_ASYNC:
        if (bytes[0].length != bytes[1].length || bytes[0].rows != bytes[1].rows)
            return litmus__fault(reader, "a copy of %d times %d bytes to %d times %d",
                                 bytes[1].rows, bytes[1].length, bytes[0].rows, bytes[0].length);
        return BASE_OK;
    case LITMUS_VERB_FILL:
    case LITMUS_VERB_FILL_ASYNC:
        return is_flat(&bytes[0])
                   ? BASE_OK
                   : litmus__fault(reader, "a fill of strided bytes: want memset2d");
    case LITMUS_VERB_HOST_READ:
    case LITMUS_VERB_HOST_WRITE:
        return is_host(current, &bytes[0])
                   ? BASE_OK
                   : litmus__fault(reader, "the host cannot touch device memory");
    case LITMUS_VERB_SET_DEVICE:
    case LITMUS_VERB_DEVICE_SYNCHRONIZE:
        return operation->numbers[0] < LITMUS_DEVICE_COUNT
                   ? BASE_OK
                   : litmus__fault(reader, "device %d: want 0 to %d", operation->numbers[0],
                                   LITMUS_DEVICE_COUNT - 1);
    default: return BASE_OK;
    }
}

// Takes "if LABEL" or "ifnot LABEL" off the end.
static enum base_status read_guard(const struct litmus_reader *reader,
                                   struct litmus_operation *operation, int *word_count) {
    char *const *words = reader->line->words;
    operation->guard = -1;
    if (*word_count < 6)
        return BASE_OK;
    const char *word = words[*word_count - 2], *label = words[*word_count - 1];
    operation->guard_success = strcmp(word, "if") == 0;
    if (!operation->guard_success && strcmp(word, "ifnot") != 0)
        return BASE_OK;
    *word_count -= 2;
    operation->guard = litmus__operation_find(reader->current, label);
    if (operation->guard < 0)
        return litmus__fault(reader, "\"%s %s\": no earlier operation has this label", word, label);
    return BASE_OK;
}

static enum base_status read_head(const struct litmus_reader *reader,
                                  struct litmus_operation *operation) {
    char *const *words = reader->line->words;
    operation->label = words[2];
    if (strlen(operation->label) > LITMUS_NAME_LENGTH_MAX)
        return litmus__fault(reader, "the label \"%s\" is longer than %d characters", words[2],
                             LITMUS_NAME_LENGTH_MAX);
    if (litmus__operation_find(reader->current, operation->label) >= 0)
        return litmus__fault(reader, "the label \"%s\" occurs twice", operation->label);
    for (operation->verb = 0; operation->verb < LITMUS_VERB_COUNT; ++operation->verb)
        if (strcmp(verbs[operation->verb].word, words[3]) == 0)
            return litmus__number(reader, words[1], "a thread", 0, LITMUS_THREAD_COUNT - 1,
                                  &operation->thread);
    return litmus__fault(reader, "unknown verb \"%s\"", words[3]);
}

enum base_status litmus__read_operation(struct litmus_reader *reader) {
    struct litmus_case *current = reader->current;
    int word_count = reader->line->word_count;
    if (current->operation_count == LITMUS_OPERATION_COUNT_MAX)
        return litmus__fault(reader, "more than %d operations", LITMUS_OPERATION_COUNT_MAX);
    if (current->expectation_count > 0)
        return litmus__fault(reader, "\"do\" behind the first verdict or reading");
    // Counted when it is complete: until then nothing finds it.
    struct litmus_operation *operation = &current->operations[current->operation_count];
    enum base_status status = read_head(reader, operation);
    if (status == BASE_OK)
        status = read_guard(reader, operation, &word_count);
    if (status != BASE_OK)
        return status;
    const struct verb *verb = &verbs[operation->verb];
    struct operands operands = {.operation = operation};
    status = read_operands(reader, verb, reader->line->words + 4, word_count - 4, &operands);
    if (status == BASE_OK && strchr(verb->operands, 'a') != NULL)
        status = make_buffer(reader, operation);
    if (status == BASE_OK && strchr(verb->operands, 'k') != NULL)
        status = make_block(reader, operation);
    if (status == BASE_OK)
        status = check_operation(reader, operation);
    ++current->operation_count;
    return status;
}
