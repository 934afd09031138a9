// The table of readings: reading.h.
#include "simulator/reading.h"

#include "simulator/state.h"

#include <stdlib.h>
#include <string.h>

bool sim__reading_other[SIM__READING_COUNT];

static const struct {
    const char *name, *values[2];
} readings[SIM__READING_COUNT] = {
#define READING_ROW(name, text, standard, other) {text, {standard, other}},
    SIM__READING_LIST(READING_ROW)
#undef READING_ROW
};

static bool equals(const char *word, const char *text, size_t size) {
    return strlen(word) == size && memcmp(word, text, size) == 0;
}

static enum base_status unknown_name(const char *text, size_t size) {
#define NAME_BYTES(name, text, standard, other) +sizeof(text) + 1
    char names[1 SIM__READING_LIST(NAME_BYTES)] = "";
#undef NAME_BYTES
    for (int i = 0; i < SIM__READING_COUNT; ++i) {
        strcat(names, i == 0 ? "" : ", ");
        strcat(names, readings[i].name);
    }
    return base_status_set(BASE_INVALID_VALUE, "reading \"%.*s\": want one of %s", (int)size, text,
                           names);
}

static enum base_status choose(const char *name, size_t name_size, const char *value,
                               size_t value_size) {
    for (int i = 0; i < SIM__READING_COUNT; ++i) {
        if (!equals(readings[i].name, name, name_size))
            continue;
        for (int j = 0; j < 2; ++j) {
            if (equals(readings[i].values[j], value, value_size)) {
                sim__reading_other[i] = j == 1;
                return BASE_OK;
            }
        }
        return base_status_set(BASE_INVALID_VALUE, "reading %s=%.*s: want %s (the default) or %s",
                               readings[i].name, (int)value_size, value, readings[i].values[0],
                               readings[i].values[1]);
    }
    return unknown_name(name, name_size);
}

enum base_status sim_reading(const char *name, const char *value) {
    base_mutex_lock(&sim__state.lock);
    const enum base_status status = choose(name, strlen(name), value, strlen(value));
    base_mutex_unlock(&sim__state.lock);
    return status;
}

const char *sim_reading_value(const char *name) {
    const char *value = NULL;
    base_mutex_lock(&sim__state.lock);
    for (int i = 0; i < SIM__READING_COUNT; ++i)
        if (strcmp(readings[i].name, name) == 0)
            value = readings[i].values[sim__reading_other[i]];
    base_mutex_unlock(&sim__state.lock);
    return value;
}

enum base_status sim__readings_from_environment(void) {
    const char *text = getenv("TIDEMARK_SIM_READINGS");
    while (text != NULL && *text != '\0') {
        const size_t size = strcspn(text, ","), name_size = strcspn(text, "=,");
        const enum base_status status =
            choose(text, name_size, text + name_size + (name_size < size),
                   size - name_size - (name_size < size));
        if (status != BASE_OK)
            return base_status_prefix(status, "TIDEMARK_SIM_READINGS");
        text += size + (text[size] == ',');
    }
    return BASE_OK;
}
