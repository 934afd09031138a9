// How much address space an expandable segment reserves: "0.5" is half of the device's memory,
// "40G" are 40 GiB. A value that is neither is told and changes nothing.
#include "allocator/config_keys.h"

#include "allocator/warning.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB 1073741824.0

// strtod, then nothing or one G.
static bool read_reserve(const char *token, struct cca__reserve *reserve) {
    char *end;
    const double amount = strtod(token, &end);
    if (end == token) return false;
    const bool in_gib = *end == 'G' || *end == 'g';
    if (end[in_gib ? 1 : 0] != '\0' || !isfinite(amount) || !(amount > 0.0)) return false;
    *reserve = (struct cca__reserve){.amount = amount, .in_gib = in_gib};
    return true;
}

static bool reserve_of(const struct cca__parser *parser, const char *token,
                       struct cca__reserve *reserve) {
    if (read_reserve(token, reserve)) return true;
    cca__warn(parser->warnings,
              "Ignoring invalid expandable-segment reserve value '%.200s' in "
              "PYTORCH_CUDA_ALLOC_CONF (expected a positive, finite fraction like 0.5 or an "
              "absolute size like 40G); using default.",
              token);
    return false;
}

enum base_status cca__parse_reserve(struct cca__parser *parser, const char *key) {
    const char *token;
    const enum base_status status = cca__value_token(parser, key, &token);
    if (status == BASE_OK) reserve_of(parser, token, &parser->config->reserve);
    return status;
}

//------------------------------------------------------------------------------------------------
// Classes, in order of their names.

struct classes {
    struct cca__reserve_class *entries;
    size_t count;
};

void cca__reserve_classes_free(struct cca__reserve_class *classes, size_t count) {
    for (size_t index = 0; index < count; ++index) free(classes[index].name);
    free(classes);
}

// The place of NAME, or where it would be.
static size_t place_of(const struct cca__reserve_class *classes, size_t count, const char *name) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(classes[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum base_status no_memory(void) {
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for classes of reserves");
}

// The last of equal names wins.
static enum base_status classes_add(struct classes *classes, const char *name,
                                    const struct cca__reserve *reserve) {
    const size_t place = place_of(classes->entries, classes->count, name);
    if (place < classes->count && strcmp(classes->entries[place].name, name) == 0) {
        classes->entries[place].reserve = *reserve;
        return BASE_OK;
    }
    struct cca__reserve_class *const entries =
        realloc(classes->entries, (classes->count + 1) * sizeof *entries);
    if (entries == NULL) return no_memory();
    classes->entries = entries;
    char *const copy = strdup(name);
    if (copy == NULL) return no_memory();
    memmove(&entries[place + 1], &entries[place], (classes->count - place) * sizeof *entries);
    entries[place] = (struct cca__reserve_class){.name = copy, .reserve = *reserve};
    ++classes->count;
    return BASE_OK;
}

enum base_status cca__reserve_classes_copy(const struct cca__reserve_class *classes, size_t count,
                                           struct cca__reserve_class **copies) {
    struct classes copied = {0};
    for (size_t index = 0; index < count; ++index) {
        const enum base_status status =
            classes_add(&copied, classes[index].name, &classes[index].reserve);
        if (status != BASE_OK) {
            cca__reserve_classes_free(copied.entries, copied.count);
            return status;
        }
    }
    *copies = copied.entries;
    return BASE_OK;
}

// `NAME:VALUE,...]` behind the opening bracket. Any token passes for `:`; the comma may be missing.
static enum base_status parse_entries(struct cca__parser *parser, const char *key,
                                      struct classes *classes) {
    const char *name, *token;
    enum base_status status = cca__next_token(parser, key, &name);
    while (status == BASE_OK && strcmp(name, "]") != 0) {
        status = cca__value_token(parser, key, &token);
        if (status != BASE_OK) break;
        struct cca__reserve reserve;
        if (reserve_of(parser, token, &reserve)) status = classes_add(classes, name, &reserve);
        const char *const behind = cca__peek(parser);
        if (behind != NULL && strcmp(behind, ",") == 0) ++parser->position;
        if (status == BASE_OK) status = cca__next_token(parser, key, &name);
    }
    return status;
}

enum base_status cca__parse_reserve_by_class(struct cca__parser *parser, const char *key) {
    const char *token;
    struct classes classes = {0};
    enum base_status status = cca__value_token(parser, key, &token);
    if (status == BASE_OK) status = parse_entries(parser, key, &classes);
    if (status != BASE_OK) {
        cca__reserve_classes_free(classes.entries, classes.count);
        return status;
    }
    struct cca__config *const config = parser->config;
    cca__reserve_classes_free(config->reserve_classes, config->reserve_class_count);
    config->reserve_classes = classes.entries;
    config->reserve_class_count = classes.count;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// What they come to.

static size_t bytes_of(const struct cca__reserve *reserve, size_t total) {
    if (reserve->amount == 0.0) return 0;
    const double bytes = reserve->amount * (reserve->in_gib ? GIB : (double)total);
    return bytes >= (double)SIZE_MAX ? SIZE_MAX : (size_t)bytes;
}

size_t cca__config_reserve(const struct cca__config *config, const char *class, size_t total,
                           bool *own) {
    if (own != NULL) *own = false;
    if (class != NULL) {
        const size_t place = place_of(config->reserve_classes, config->reserve_class_count, class);
        if (place < config->reserve_class_count &&
            strcmp(config->reserve_classes[place].name, class) == 0) {
            if (own != NULL) *own = true;
            return bytes_of(&config->reserve_classes[place].reserve, total);
        }
    }
    return bytes_of(&config->reserve, total);
}
