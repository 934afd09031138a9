// Interned strings: one after another in one buffer, found through a hash table of ids. A file
// repeats few strings very often, so that most lookups end at the first slot.
#include "trace/pickle_machine.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

// A string that is not found within so many slots is entered without a slot. Chance never goes that
// far at a load of a half; a file made to collide then costs a constant per string, and its strings
// merely have several ids.
#define PROBE_COUNT_MAX 64

static uint32_t hash_bytes(const char *bytes, size_t length) {
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length;
    for (; length >= 8; length -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    if (length > 0) {
        uint64_t word = 0;
        memcpy(&word, bytes, length);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    }
    return (uint32_t)((hash ^ hash >> 29) * 0xc4ceb9fe1a85ec53u >> 32);
}

const char *trace__pickle_string(const struct trace__pickle *machine, uint32_t id, size_t *length) {
    const struct trace__pickle_strings *strings = &machine->strings;
    BASE_CHECK(id < strings->count);
    *length = strings->starts[id + 1] - strings->starts[id];
    return strings->bytes + strings->starts[id];
}

uint32_t trace__pickle_string_count(const struct trace__pickle *machine) {
    return machine->strings.count;
}

// Finds the string, or the slot where it belongs (SIZE_MAX: none near).
static bool find(const struct trace__pickle *machine, const char *bytes, size_t length,
                 size_t *slot, uint32_t *id) {
    const struct trace__pickle_strings *strings = &machine->strings;
    size_t mask = strings->slot_count - 1, at = hash_bytes(bytes, length) & mask;
    for (int probe = 0; probe < PROBE_COUNT_MAX; probe++, at = (at + 1) & mask) {
        if (strings->slots[at] == 0) {
            *slot = at;
            return false;
        }
        size_t found_length;
        const char *found = trace__pickle_string(machine, strings->slots[at] - 1, &found_length);
        if (found_length == length && memcmp(found, bytes, length) == 0) {
            *id = strings->slots[at] - 1;
            return true;
        }
    }
    *slot = SIZE_MAX;
    return false;
}

static enum base_status grow_slots(struct trace__pickle *machine) {
    struct trace__pickle_strings *strings = &machine->strings;
    size_t slot_count = strings->slot_count == 0 ? 256 : strings->slot_count * 2;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu hash slots", slot_count);
    free(strings->slots);
    strings->slots = slots;
    strings->slot_count = slot_count;
    for (uint32_t id = 0; id < strings->count; id++) {
        size_t length, slot;
        uint32_t same;
        const char *bytes = trace__pickle_string(machine, id, &length);
        if (!find(machine, bytes, length, &slot, &same) && slot != SIZE_MAX) slots[slot] = id + 1;
    }
    return BASE_OK;
}

enum base_status trace__pickle_intern(struct trace__pickle *machine, const void *bytes,
                                      size_t length, uint32_t *id) {
    struct trace__pickle_strings *strings = &machine->strings;
    enum base_status status = BASE_OK;
    if ((size_t)strings->count * 2 >= strings->slot_count) status = grow_slots(machine);
    size_t slot;
    if (status == BASE_OK && find(machine, bytes, length, &slot, id)) return BASE_OK;
    if (status == BASE_OK && strings->count >= UINT32_MAX - 1)
        return base_status_set(BASE_LIMIT, "the file holds more than %u strings", UINT32_MAX - 1);
    uint64_t start = strings->count == 0 ? 0 : strings->starts[strings->count];
    if (status == BASE_OK)
        status = trace__pickle_grow((void **)&strings->starts, &strings->starts_capacity,
                                    strings->count + 2u, sizeof *strings->starts);
    if (status == BASE_OK)
        status = trace__pickle_grow((void **)&strings->bytes, &strings->bytes_capacity,
                                    start + length + 1, 1);
    if (status != BASE_OK) return status;
    memcpy(strings->bytes + start, bytes, length);
    strings->starts[strings->count] = start;
    strings->starts[strings->count + 1u] = start + length;
    *id = strings->count++;
    if (slot != SIZE_MAX) strings->slots[slot] = *id + 1;
    return BASE_OK;
}

enum base_status trace__pickle_push_string(struct trace__pickle *machine, uint64_t length) {
    struct trace_input *input = machine->input;
    if (length > PICKLE_STRING_BYTES_MAX) {
        enum base_status status = trace_input_skip(input, length);
        return status == BASE_OK ? trace__pickle_push(machine, PICKLE_SCALAR, 0) : status;
    }
    enum base_status status = trace_input_need(input, length);
    uint32_t id;
    if (status == BASE_OK) status = trace__pickle_intern(machine, input->next, length, &id);
    if (status != BASE_OK) return status;
    input->next += length;
    return trace__pickle_push(machine, PICKLE_STRING, id);
}

uint64_t trace__pickle_strings_bytes(const struct trace__pickle *machine) {
    const struct trace__pickle_strings *strings = &machine->strings;
    return strings->bytes_capacity + strings->starts_capacity * sizeof *strings->starts +
           strings->slot_count * sizeof *strings->slots;
}
