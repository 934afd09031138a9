// "do THREAD LABEL VERB OPERANDS [if LABEL | ifnot LABEL]": names become indices, ranges of bytes
// become offsets in their buffer, effects become steps.
#include "simulator/litmus/read.h"

#include <stdlib.h>
#include <string.h>

static const struct verb {
    const char *word, *operands, *needs;
} verbs[] = {
#define LITMUS_VERB_ROW(name, word, operands, needs) {word, operands, needs},
    LITMUS_VERB_LIST(LITMUS_VERB_ROW)
#undef LITMUS_VERB_ROW
};

const char *litmus_verb_word(enum litmus_verb verb) { return verbs[verb].word; }

bool litmus_verb_takes_stream(enum litmus_verb verb) {
    return strchr(verbs[verb].operands, 's') != NULL;
}

// --- Bytes: NAME, NAME:OFFSET:LENGTH or NAME:OFFSET:LENGTH:STRIDE:COUNT ---

// All bytes of a buffer or of a block.
static bool bytes_named(const struct litmus_reader *reader, const char *name,
                        struct litmus_bytes *bytes) {
    for (int i = 0; i < reader->block_count; ++i) {
        if (strcmp(reader->blocks[i].name, name) == 0) {
            *bytes = reader->blocks[i].bytes;
            return true;
        }
    }
    const int buffer = litmus__buffer_find(reader->current, name);
    if (buffer < 0)
        return false;
    const int size = reader->current->buffers[buffer].size;
    *bytes = (struct litmus_bytes){buffer, 0, size, size, 1};
    return true;
}

static enum base_status read_part(const struct litmus_reader *reader, const char *word,
                                  char *numbers, struct litmus_bytes *bytes) {
    int values[4], count = 0;
    char *state = NULL;
    for (const char *part = strtok_r(numbers, ":", &state); part != NULL;
         part = strtok_r(NULL, ":", &state)) {
        if (count == 4)
            return litmus__fault(reader, "\"%s\": want NAME:OFFSET:LENGTH[:STRIDE:COUNT]", word);
        const enum base_status status = litmus__number(reader, part, "a number of bytes", 0,
                                                       LITMUS_BYTE_COUNT_MAX, &values[count++]);
        if (status != BASE_OK)
            return status;
    }
    if (count != 2 && count != 4)
        return litmus__fault(reader, "\"%s\": want NAME:OFFSET:LENGTH[:STRIDE:COUNT]", word);
    if (bytes->rows != 1)
        return litmus__fault(reader, "\"%s\": a part of a block that is strided itself", word);
    const int size = bytes->length;
    const struct litmus_bytes part = {
        .buffer = bytes->buffer,
        .offset = bytes->offset + values[0],
        .length = values[1],
        .stride = count == 4 ? values[2] : values[1],
        .rows = count == 4 ? values[3] : 1,
    };
    const int end = part.rows == 0 ? values[0]
                                   : values[0] + (part.rows - 1) * part.stride + part.length;
    if (end > size || litmus_bytes_count(&part) > LITMUS_BYTE_COUNT_MAX)
        return litmus__fault(reader, "\"%s\": ends at byte %d of %d", word, end, size);
    *bytes = part;
    return BASE_OK;
}

static enum base_status read_bytes(const struct litmus_reader *reader, const char *word,
                                   struct litmus_bytes *bytes) {
    char copy[2 * LITMUS_NAME_LENGTH_MAX];
    if (strlen(word) >= sizeof copy)
        return litmus__fault(reader, "\"%s\": want NAME, NAME:OFFSET:LENGTH or "
                                     "NAME:OFFSET:LENGTH:STRIDE:COUNT", word);
    char *numbers = strchr(strcpy(copy, word), ':');
    if (numbers != NULL)
        *numbers++ = '\0';
    if (!bytes_named(reader, copy, bytes))
        return litmus__fault(reader, "\"%s\": no buffer or block of this name", word);
    return numbers == NULL ? BASE_OK : read_part(reader, word, numbers, bytes);
}

// --- Effects ---

static const struct effect_form {
    const char *word;
    enum litmus_step_kind kind;
    int source_count;
    bool writes, has_value;
} effect_forms[] = {
    {"set", LITMUS_STEP_SET, 0, true, true},   {"copy", LITMUS_STEP_ADD, 1, true, false},
    {"add", LITMUS_STEP_ADD, 1, true, true},   {"sum", LITMUS_STEP_SUM, 2, true, false},
    {"atomic", LITMUS_STEP_ATOMIC, 0, true, true}, {"read", LITMUS_STEP_READ, 1, false, false},
};

static enum base_status read_step(const struct litmus_reader *reader, char *const *words,
                                  int word_count, struct litmus_effect *effect) {
    const struct effect_form *form = NULL;
    for (size_t i = 0; i < sizeof effect_forms / sizeof *effect_forms; ++i)
        if (word_count > 0 && strcmp(effect_forms[i].word, words[0]) == 0)
            form = &effect_forms[i];
    if (word_count == 1 && strcmp(words[0], "nothing") == 0)
        return BASE_OK;
    if (form == NULL)
        return litmus__fault(reader, "effect \"%s\": want set, copy, add, sum, atomic, read or "
                                     "nothing", word_count > 0 ? words[0] : "");
    if (word_count != 1 + form->writes + form->source_count + form->has_value)
        return litmus__fault(reader, "effect \"%s\" wants %d words behind it", form->word,
                             form->writes + form->source_count + form->has_value);
    struct litmus_step *step = &effect->steps[effect->step_count++];
    step->kind = form->kind;
    int next = 1;
    enum base_status status = BASE_OK;
    if (form->writes)
        status = read_bytes(reader, words[next++], &step->to);
    for (int i = 0; i < form->source_count && status == BASE_OK; ++i) {
        status = read_bytes(reader, words[next++], &step->from[i]);
        if (status == BASE_OK && form->writes &&
            litmus_bytes_count(&step->from[i]) != litmus_bytes_count(&step->to))
            return litmus__fault(reader, "effect \"%s\": %d bytes from %d", form->word,
                                 litmus_bytes_count(&step->to), litmus_bytes_count(&step->from[i]));
    }
    if (status == BASE_OK && form->has_value)
        status = litmus__number(reader, words[next], "a byte", 0, 255, &step->value);
    return status;
}

static enum base_status read_effect(const struct litmus_reader *reader, char *const *words,
                                    int word_count, struct litmus_effect *effect) {
    int begin = 0;
    for (int at = 0; at <= word_count; ++at) {
        if (at < word_count && strcmp(words[at], "+") != 0)
            continue;
        if (effect->step_count == LITMUS_STEP_COUNT_MAX)
            return litmus__fault(reader, "more than %d effects", LITMUS_STEP_COUNT_MAX);
        const enum base_status status = read_step(reader, words + begin, at - begin, effect);
        if (status != BASE_OK)
            return status;
        begin = at + 1;
    }
    return BASE_OK;
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
    (void)operands;
    for (int i = 0; i < reader->block_count; ++i)
        if (strcmp(reader->blocks[i].name, word) == 0)
            return BASE_OK;
    return litmus__fault(reader, "\"%s\": no block of this name was taken", word);
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
    case 'b': return read_bytes(reader, word, &operation->bytes[operands->byte_count++]);
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
                ? read_effect(reader, words + i, word_count - i, &operands->operation->effect)
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
                                   const struct litmus_operation *operation) {
    int at = 0;
    while (at < reader->block_count && strcmp(reader->blocks[at].name, operation->word) != 0)
        ++at;
    if (litmus__buffer_find(reader->current, operation->word) >= 0)
        return litmus__fault(reader, "\"%s\" is a buffer: a block wants another name",
                             operation->word);
    if (at == reader->block_count)
        ++reader->block_count;
    reader->blocks[at] = (struct litmus_block){operation->word, operation->bytes[0]};
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
    if (verb->needs != NULL)
        current->needs = verb->needs;
    // What is not played can leave names undefined, so the rest of such a case is not looked at.
    if (current->needs == NULL) {
        struct operands operands = {.operation = operation};
        status = read_operands(reader, verb, reader->line->words + 4, word_count - 4, &operands);
        if (status == BASE_OK && strchr(verb->operands, 'a') != NULL)
            status = make_buffer(reader, operation);
        if (status == BASE_OK && strchr(verb->operands, 'k') != NULL)
            status = make_block(reader, operation);
        if (status == BASE_OK)
            status = check_operation(reader, operation);
    }
    ++current->operation_count;
    return status;
}
