// Settings that are lists, for the model: divisions of powers of two, and the address space that
// expandable segments reserve.
#include "allocator/golden/model_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

static size_t entry_of(uint64_t mib) {
    size_t entry = 0;
    while (mib >>= 1)
        entry++;
    return entry < MODEL_DIVISION_COUNT ? entry : MODEL_DIVISION_COUNT - 1;
}

static enum base_status refuse_value(const char *sentence) {
    return model__refuse("c10::ValueError", sentence);
}

// KEY:DIVISION. *LAST is the entry of the pair before, -1 for the first.
static enum base_status pair_next(struct model_reader *reader, int *last) {
    struct model_words *const words = &reader->words;
    size_t *const divisions = reader->settings->divisions;
    const char *key, *value;
    uint64_t mib = 0, division = 0;
    enum base_status status = model__word_next(words, &key);
    if (status == BASE_OK) status = model__separator_next(words, ":");
    if (status != BASE_OK) return status;
    const bool is_rest = strcmp(key, ">") == 0;
    if (!is_rest) status = model__integer_of(key, &mib);
    if (status == BASE_OK && !is_rest && !is_power_of_two(mib))
        return refuse_value("For roundups, the intervals have to be power of 2 ");
    if (status == BASE_OK) status = model__word_next(words, &value);
    if (status == BASE_OK) status = model__integer_of(value, &division);
    if (status != BASE_OK) return status;
    if (division != 0 && !is_power_of_two(division))
        return refuse_value(
            "For roundups, the divisions has to be power of 2 or 0 to disable roundup ");
    if (is_rest) {
        // Old releases overwrote the last interval.
        const int first = (*last < 0 ? 0 : *last) + (words->is_strict ? 0 : 1);
        for (int entry = first; entry < MODEL_DIVISION_COUNT; entry++)
            divisions[entry] = division;
        return BASE_OK;
    }
    const size_t entry = entry_of(mib);
    for (size_t below = 0; *last < 0 && below < entry; below++)
        divisions[below] = division;
    divisions[entry] = division;
    *last = (int)entry;
    return BASE_OK;
}

enum base_status model__divisions_next(struct model_reader *reader) {
    struct model_words *const words = &reader->words;
    const char *word;
    enum base_status status = model__value_next(words, &word);
    if (status != BASE_OK) return status;
    if (strcmp(word, "[") != 0) {
        uint64_t division;
        status = model__integer_of(word, &division);
        if (status != BASE_OK) return status;
        if (!is_power_of_two(division))
            return refuse_value("For roundups, the divisions has to be power of 2 ");
        for (int entry = 0; entry < MODEL_DIVISION_COUNT; entry++)
            reader->settings->divisions[entry] = division;
        return BASE_OK;
    }
    int last = -1;
    while (status == BASE_OK && strcmp(model__word(words), "]") != 0) {
        status = pair_next(reader, &last);
        if (status == BASE_OK && strcmp(model__word(words), "]") != 0)
            status = model__separator_next(words, ",");
    }
    words->at++;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Reserves.

// "0.5" or "40G"; anything else is ignored with a warning.
static bool reserve_of(const struct model_reader *reader, const char *word,
                       struct model_reserve *reserve) {
    char *end;
    const double amount = strtod(word, &end);
    const bool in_gib = end != word && (*end == 'G' || *end == 'g');
    if (in_gib) end++;
    if (end != word && *end == '\0' && amount > 0 && !isinf(amount)) {
        *reserve = (struct model_reserve){.amount = amount, .in_gib = in_gib};
        return true;
    }
    char text[512];
    snprintf(text, sizeof text,
             "Ignoring invalid expandable-segment reserve value '%.200s' in "
             "PYTORCH_CUDA_ALLOC_CONF (expected a positive, finite fraction like 0.5 or an "
             "absolute size like 40G); using default.",
             word);
    if (reader->warnings != NULL && reader->warnings->warning != NULL)
        reader->warnings->warning(reader->warnings->context, text);
    return false;
}

enum base_status model__reserve_next(struct model_reader *reader) {
    const char *word;
    const enum base_status status = model__value_next(&reader->words, &word);
    if (status == BASE_OK) reserve_of(reader, word, &reader->settings->reserve);
    return status;
}

static enum base_status classes_set(struct model_reserve_class *classes, size_t *count,
                                    const char *name, const struct model_reserve *reserve) {
    size_t index = 0;
    while (index < *count && strcmp(classes[index].name, name) != 0)
        index++;
    if (index == MODEL_RESERVE_CLASS_MAX || strlen(name) >= MODEL_CLASS_NAME)
        return base_status_set(BASE_UNSUPPORTED, "classes of reserves like these");
    if (index == *count) ++*count;
    snprintf(classes[index].name, sizeof classes[index].name, "%s", name);
    classes[index].reserve = *reserve;
    return BASE_OK;
}

// [NAME:VALUE,...]: it counts only as a whole.
enum base_status model__reserve_classes_next(struct model_reader *reader) {
    struct model_words *const words = &reader->words;
    struct model_reserve_class classes[MODEL_RESERVE_CLASS_MAX];
    struct model_reserve reserve;
    size_t count = 0;
    const char *name, *value;
    enum base_status status = model__value_next(words, &value); // the bracket, or what stands there
    if (status == BASE_OK) status = model__word_next(words, &name);
    while (status == BASE_OK && strcmp(name, "]") != 0) {
        status = model__value_next(words, &value);
        if (status == BASE_OK && reserve_of(reader, value, &reserve))
            status = classes_set(classes, &count, name, &reserve);
        if (strcmp(model__word(words), ",") == 0) words->at++;
        if (status == BASE_OK) status = model__word_next(words, &name);
    }
    if (status != BASE_OK) return status;
    memcpy(reader->settings->reserve_classes, classes, sizeof classes);
    reader->settings->reserve_class_count = count;
    return BASE_OK;
}
