// What operations touch: ranges of bytes become offsets in their buffer, effects become steps.
#include "simulator/litmus/read.h"

#include <stdlib.h>
#include <string.h>

// --- Bytes: NAME, NAME:OFFSET:LENGTH or NAME:OFFSET:LENGTH:STRIDE:COUNT ---

// All bytes of a buffer or of a block.
static bool bytes_named(const struct litmus_reader *reader, const char *name,
                        struct litmus_bytes *bytes) {
    const int block = litmus__block_find(reader->current, name);
    if (block >= 0) {
        *bytes = reader->blocks[block];
        bytes->block = 1 + block;
        return true;
    }
    const int buffer = litmus__buffer_find(reader->current, name);
    if (buffer < 0)
        return false;
    const int size = reader->current->buffers[buffer].size;
    *bytes = (struct litmus_bytes){.buffer = buffer, .length = size, .stride = size, .rows = 1};
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
        .block = bytes->block,
    };
    const int end = part.rows == 0 ? values[0]
                                   : values[0] + (part.rows - 1) * part.stride + part.length;
    if (end > size || litmus_bytes_count(&part) > LITMUS_BYTE_COUNT_MAX)
        return litmus__fault(reader, "\"%s\": ends at byte %d of %d", word, end, size);
    *bytes = part;
    return BASE_OK;
}

enum base_status litmus__read_bytes(const struct litmus_reader *reader, const char *word,
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
        status = litmus__read_bytes(reader, words[next++], &step->to);
    for (int i = 0; i < form->source_count && status == BASE_OK; ++i) {
        status = litmus__read_bytes(reader, words[next++], &step->from[i]);
        if (status == BASE_OK && form->writes &&
            litmus_bytes_count(&step->from[i]) != litmus_bytes_count(&step->to))
            return litmus__fault(reader, "effect \"%s\": %d bytes from %d", form->word,
                                 litmus_bytes_count(&step->to), litmus_bytes_count(&step->from[i]));
    }
    if (status == BASE_OK && form->has_value)
        status = litmus__number(reader, words[next], "a byte", 0, 255, &step->value);
    return status;
}

enum base_status litmus__read_effect(const struct litmus_reader *reader, char *const *words,
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
