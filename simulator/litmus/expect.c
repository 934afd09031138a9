// What a case may leave behind: "reading", "verdict", "race", "return" and "outcome" lines.
#include "simulator/litmus/read.h"

#include <stdlib.h>
#include <string.h>

// Makes room for one more element behind COUNT; NULL if there is none.
static void *array_grow(void *array, int count, size_t size) {
    void *grown = realloc(array, ((size_t)count + 1) * size);
    if (grown != NULL)
        memset((char *)grown + (size_t)count * size, 0, size);
    return grown;
}

static enum base_status out_of_memory(const struct litmus_reader *reader) {
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for the case \"%s\"",
                           reader->current->name);
}

static enum base_status expectation_add(struct litmus_reader *reader, const char *reading,
                                        const char *value) {
    struct litmus_case *current = reader->current;
    struct litmus_expectation *expectations = array_grow(
        current->expectations, current->expectation_count, sizeof *expectations);
    if (expectations == NULL)
        return out_of_memory(reader);
    current->expectations = expectations;
    expectations[current->expectation_count].reading = reading;
    expectations[current->expectation_count].reading_value = value;
    ++current->expectation_count;
    return BASE_OK;
}

static enum base_status read_reading(struct litmus_reader *reader) {
    char *word = reader->line->words[1], *separator = strchr(word, '=');
    if (separator == NULL || separator == word || separator[1] == '\0')
        return litmus__fault(reader, "reading \"%s\": want SWITCH=VALUE", word);
    if (reader->current->expectation_count > 0 && reader->current->expectations[0].reading == NULL)
        return litmus__fault(reader, "a reading behind a verdict that always holds");
    *separator = '\0';
    return expectation_add(reader, word, separator + 1);
}

static enum base_status read_verdict(struct litmus_reader *reader,
                                     struct litmus_expectation *expectation) {
    const char *word = reader->line->words[1];
    expectation->race = strcmp(word, "race") == 0;
    if (!expectation->race && strcmp(word, "ok") != 0)
        return litmus__fault(reader, "verdict \"%s\": want ok or race", word);
    return BASE_OK;
}

// --- Races ---

static const char *const race_words[LITMUS_RACE_KIND_COUNT] = {
    [LITMUS_RACE_WRITE_WRITE] = "write-write",
    [LITMUS_RACE_READ_WRITE] = "read-write",
    [LITMUS_RACE_REUSE] = "reuse",
    [LITMUS_RACE_USE_AFTER_FREE] = "use-after-free",
    [LITMUS_RACE_USE_BEFORE_ALLOC] = "use-before-alloc",
    [LITMUS_RACE_UNINITIALISED] = "uninitialised",
};

const char *litmus_race_kind_word(enum litmus_race_kind kind) { return race_words[kind]; }

static enum base_status read_race_kind(const struct litmus_reader *reader, const char *word,
                                       enum litmus_race_kind *kind) {
    for (int i = 0; i < LITMUS_RACE_KIND_COUNT; ++i) {
        if (strcmp(race_words[i], word) == 0) {
            *kind = (enum litmus_race_kind)i;
            return BASE_OK;
        }
    }
    return litmus__fault(reader, "race \"%s\": want write-write, read-write, reuse, "
                                 "use-after-free, use-before-alloc or uninitialised", word);
}

// "LABEL", "LAUNCH/NODE" or "-".
static enum base_status read_side(const struct litmus_reader *reader, const char *word,
                                  struct litmus_side *side) {
    char copy[2 * LITMUS_NAME_LENGTH_MAX + 2];
    *side = (struct litmus_side){.operation = -1, .launch = -1};
    if (strcmp(word, "-") == 0)
        return BASE_OK;
    if (strlen(word) >= sizeof copy)
        return litmus__fault(reader, "race \"%s\": want LABEL, LAUNCH/NODE or -", word);
    char *node = strchr(strcpy(copy, word), '/');
    if (node != NULL) {
        *node++ = '\0';
        side->launch = litmus__operation_find(reader->current, copy);
    }
    side->operation = litmus__operation_find(reader->current, node == NULL ? copy : node);
    if (side->operation < 0 || (node != NULL && side->launch < 0))
        return litmus__fault(reader, "race \"%s\": no operation has this label", word);
    return BASE_OK;
}

static enum base_status read_race(struct litmus_reader *reader,
                                  struct litmus_expectation *expectation) {
    char *const *words = reader->line->words;
    struct litmus_race race;
    enum base_status status = read_race_kind(reader, words[1], &race.kind);
    for (int i = 0; i < 2 && status == BASE_OK; ++i)
        status = read_side(reader, words[2 + i], &race.sides[i]);
    if (status != BASE_OK)
        return status;
    race.buffer = litmus__buffer_find(reader->current, words[4]);
    race.block = litmus__block_find(reader->current, words[4]);
    if (race.buffer < 0 && race.block < 0)
        return litmus__fault(reader, "race in \"%s\": no buffer or block of this name", words[4]);
    if (!expectation->race)
        return litmus__fault(reader, "a race behind the verdict ok");
    if (expectation->race_count == LITMUS_RACE_COUNT_MAX)
        return litmus__fault(reader, "more than %d races", LITMUS_RACE_COUNT_MAX);
    struct litmus_race *races =
        array_grow(expectation->races, expectation->race_count, sizeof *races);
    if (races == NULL)
        return out_of_memory(reader);
    expectation->races = races;
    races[expectation->race_count++] = race;
    expectation->outside_life |= race.kind == LITMUS_RACE_USE_AFTER_FREE ||
                                 race.kind == LITMUS_RACE_USE_BEFORE_ALLOC;
    return BASE_OK;
}

// --- Codes ---

static enum base_status read_return(struct litmus_reader *reader,
                                    struct litmus_expectation *expectation) {
    char *const *words = reader->line->words;
    struct litmus_return *returns =
        array_grow(expectation->returns, expectation->return_count, sizeof *returns);
    if (returns == NULL)
        return out_of_memory(reader);
    expectation->returns = returns;
    struct litmus_return *added = &returns[expectation->return_count++];
    added->operation = litmus__operation_find(reader->current, words[1]);
    if (added->operation < 0)
        return litmus__fault(reader, "return \"%s\": no operation has this label", words[1]);
    return litmus__number(reader, words[2], "an error code", 1, 999, &added->code);
}

// --- Outcomes ---

// "V" is LITMUS_UNDEFINED or a number.
static enum base_status read_value(const struct litmus_reader *reader, const char *word,
                                   int16_t *value) {
    int number = LITMUS_UNDEFINED;
    const enum base_status status = strcmp(word, "?") == 0
                                        ? BASE_OK
                                        : litmus__number(reader, word, "a value or ?", 0, 999,
                                                         &number);
    *value = (int16_t)number;
    return status;
}

// "V" or "V*N,V*N,...".
static enum base_status read_values(const struct litmus_reader *reader, char *text,
                                    struct litmus_content *content) {
    char *state = NULL;
    for (char *run = strtok_r(text, ",", &state); run != NULL; run = strtok_r(NULL, ",", &state)) {
        char *times = strchr(run, '*');
        int16_t value;
        int count = 1;
        if (times != NULL)
            *times++ = '\0';
        enum base_status status = read_value(reader, run, &value);
        if (status == BASE_OK && times != NULL)
            status = litmus__number(reader, times, "a count", 1, LITMUS_BYTE_COUNT_MAX, &count);
        if (status != BASE_OK)
            return status;
        if (content->count + count > LITMUS_BYTE_COUNT_MAX)
            return litmus__fault(reader, "more than %d bytes", LITMUS_BYTE_COUNT_MAX);
        for (int i = 0; i < count; ++i)
            content->values[content->count++] = value;
    }
    if (content->count == 0)
        return litmus__fault(reader, "want NAME=V or NAME=V*N,...");
    return BASE_OK;
}

static enum base_status read_content(const struct litmus_reader *reader, const char *word,
                                     struct litmus_content *content) {
    const struct litmus_case *current = reader->current;
    char copy[LITMUS_NAME_LENGTH_MAX + 8 * LITMUS_BYTE_COUNT_MAX];
    if (strlen(word) >= sizeof copy || strchr(word, '=') == NULL)
        return litmus__fault(reader, "outcome \"%s\": want NAME=BYTES", word);
    char *bytes = strchr(strcpy(copy, word), '=');
    *bytes++ = '\0';
    content->buffer = litmus__buffer_find(current, copy);
    content->operation = litmus__operation_find(current, copy);
    if (content->buffer < 0 && content->operation < 0)
        return litmus__fault(reader, "outcome \"%s\": no buffer or operation of this name", word);
    const enum base_status status = read_values(reader, bytes, content);
    if (status != BASE_OK)
        return status;
    const int size = content->buffer >= 0 ? current->buffers[content->buffer].size : content->count;
    if (content->count != 1 && content->count != size)
        return litmus__fault(reader, "outcome \"%s\": %d bytes, the buffer has %d", word,
                             content->count, size);
    return BASE_OK;
}

// Puts back the blanks that cutting the line apart took.
static const char *words_join(const struct litmus_line *line) {
    for (int i = 1; i + 1 < line->word_count; ++i)
        line->words[i][strlen(line->words[i])] = ' ';
    return line->words[1];
}

static enum base_status read_outcome(struct litmus_reader *reader,
                                     struct litmus_expectation *expectation) {
    const struct litmus_line *line = reader->line;
    struct litmus_outcome *outcomes =
        array_grow(expectation->outcomes, expectation->outcome_count, sizeof *outcomes);
    if (outcomes == NULL)
        return out_of_memory(reader);
    expectation->outcomes = outcomes;
    struct litmus_outcome *outcome = &outcomes[expectation->outcome_count++];
    const bool empty = line->word_count == 2 && strcmp(line->words[1], "-") == 0;
    outcome->content_count = empty ? 0 : line->word_count - 1;
    outcome->contents = calloc((size_t)line->word_count, sizeof *outcome->contents);
    if (outcome->contents == NULL)
        return out_of_memory(reader);
    for (int i = 0; i < outcome->content_count; ++i) {
        const enum base_status status =
            read_content(reader, line->words[1 + i], &outcome->contents[i]);
        if (status != BASE_OK)
            return status;
    }
    outcome->text = words_join(line);
    return BASE_OK;
}

enum base_status litmus__read_expectation(struct litmus_reader *reader) {
    struct litmus_case *current = reader->current;
    const char *keyword = reader->line->words[0];
    if (strcmp(keyword, "reading") == 0)
        return read_reading(reader);
    if (current->expectation_count == 0) {
        const enum base_status status = expectation_add(reader, NULL, NULL);
        if (status != BASE_OK)
            return status;
    }
    struct litmus_expectation *expectation =
        &current->expectations[current->expectation_count - 1];
    if (strcmp(keyword, "verdict") == 0)
        return read_verdict(reader, expectation);
    if (strcmp(keyword, "race") == 0)
        return read_race(reader, expectation);
    if (strcmp(keyword, "return") == 0)
        return read_return(reader, expectation);
    return read_outcome(reader, expectation);
}
