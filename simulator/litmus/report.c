// What the race checker reported, in the words of a case: labels become operations, addresses
// buffers, numbers of blocks their names.
#include "simulator/litmus/player.h"

#include <string.h>

static int operation_find(const struct litmus_case *current, const char *label) {
    for (int i = 0; i < current->operation_count; ++i)
        if (strcmp(current->operations[i].label, label) == 0)
            return i;
    return -1;
}

static struct litmus_side side_of(const struct litmus_case *current,
                                  const struct sim_race_operation *operation) {
    struct litmus_side side = {.operation = operation_find(current, operation->label),
                               .launch = -1};
    if (operation->node[0] != '\0') {
        side.launch = side.operation;
        side.operation = operation_find(current, operation->node);
    }
    return side;
}

// The checker tells some things apart that a case's kinds do not: its report says which kind of
// access it is.
static enum litmus_race_kind kind_of(const struct sim_race_report *report) {
    for (int kind = 0; kind < LITMUS_RACE_KIND_COUNT; ++kind)
        if (strcmp(litmus_race_kind_word((enum litmus_race_kind)kind), report->kind) == 0)
            return (enum litmus_race_kind)kind;
    return LITMUS_RACE_KIND_COUNT;
}

// --- Where ---

static bool bytes_are_in(const struct litmus_bytes *bytes, int buffer) {
    return litmus_bytes_count(bytes) > 0 && bytes->buffer == buffer;
}

static bool step_touches(const struct litmus_step *step, int buffer) {
    for (int i = 0; i < litmus_step_source_count(step->kind); ++i)
        if (bytes_are_in(&step->from[i], buffer))
            return true;
    return step->kind != LITMUS_STEP_READ && bytes_are_in(&step->to, buffer);
}

static bool operation_touches(const struct litmus_operation *operation, int buffer) {
    if (litmus_verb_takes_buffer(operation->verb))
        return operation->buffer == buffer;
    for (int i = 0; i < operation->effect.step_count; ++i)
        if (step_touches(&operation->effect.steps[i], buffer))
            return true;
    return bytes_are_in(&operation->bytes[0], buffer) || bytes_are_in(&operation->bytes[1], buffer);
}

static bool race_touches(const struct litmus_case *current, const struct litmus_race *race,
                         int buffer) {
    for (int i = 0; i < 2; ++i)
        if (race->sides[i].operation >= 0 &&
            operation_touches(&current->operations[race->sides[i].operation], buffer))
            return true;
    return false;
}

// A pool gives an address of before to another buffer: then it is the one that an operation of the
// race names.
static int buffer_find(const struct litmus_player *player, const struct litmus_race *race,
                       uint64_t address) {
    const struct litmus_case *current = player->current;
    int found = -1;
    for (int i = 0; i < current->buffer_count; ++i) {
        const uint64_t start = (uint64_t)(uintptr_t)player->addresses[i];
        if (start == 0 || address < start || address >= start + (uint64_t)current->buffers[i].size)
            continue;
        if (found < 0 || race_touches(current, race, i))
            found = i;
    }
    return found;
}

static int block_find(const struct litmus_player *player, uint64_t number) {
    for (int i = 0; i < player->current->block_count; ++i)
        if (number != 0 && player->blocks[i] == number)
            return i;
    return -1;
}

// Two blocks meet in the memory below them.
static bool is_about_block(const struct litmus_race *race) {
    return race->kind == LITMUS_RACE_USE_AFTER_FREE || race->kind == LITMUS_RACE_UNINITIALISED;
}

struct litmus_race litmus__race(const struct litmus_player *player,
                                const struct sim_race_report *report) {
    struct litmus_race race = {
        .kind = kind_of(report),
        .sides = {side_of(player->current, &report->first),
                  side_of(player->current, &report->second)},
        .buffer = -1,
        .block = -1,
    };
    if (is_about_block(&race))
        race.block = block_find(player, report->block);
    if (race.block < 0)
        race.buffer = buffer_find(player, &race, report->start);
    return race;
}

void litmus__races_collect(const struct litmus_player *player, struct litmus_result *result) {
    const struct sim_race_report *report;
    for (uint64_t i = 0; (report = sim_race_report_at(i)) != NULL; ++i)
        if (result->race_count++ < LITMUS_RACE_COUNT_MAX)
            result->races[i] = litmus__race(player, report);
}
