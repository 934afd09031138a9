// See script.h.
#include "bench/script.h"

#include "base/check.h"

#include <stdlib.h>

static struct bench_script_step *step_add(struct bench_script *script) {
    if (script->step_count == script->capacity) {
        script->capacity = script->capacity == 0 ? 1024 : 2 * script->capacity;
        script->steps = realloc(script->steps, script->capacity * sizeof *script->steps);
        BASE_CHECK(script->steps != NULL);
    }
    return &script->steps[script->step_count++];
}

static void slots_grow(struct bench_script *script, uint32_t slot) {
    if (slot < script->slot_count) return;
    const uint32_t count = slot + 1;
    script->held_bytes = realloc(script->held_bytes, count * sizeof *script->held_bytes);
    BASE_CHECK(script->held_bytes != NULL);
    for (uint32_t i = script->slot_count; i < count; i++) script->held_bytes[i] = 0;
    script->slot_count = count;
}

void bench_script_malloc(struct bench_script *script, uint32_t slot, uint64_t bytes,
                         uint32_t stream) {
    BASE_CHECK(bytes > 0);
    slots_grow(script, slot);
    BASE_CHECK(script->held_bytes[slot] == 0);
    script->held_bytes[slot] = bytes;
    script->live_bytes += bytes;
    if (script->live_bytes > script->peak_bytes) script->peak_bytes = script->live_bytes;
    if (stream >= script->stream_count) script->stream_count = stream + 1;
    *step_add(script) = (struct bench_script_step){.bytes = bytes, .slot = slot, .stream = stream};
    script->pair_count++;
}

void bench_script_free(struct bench_script *script, uint32_t slot) {
    BASE_CHECK(bench_script_filled(script, slot));
    script->live_bytes -= script->held_bytes[slot];
    script->held_bytes[slot] = 0;
    *step_add(script) = (struct bench_script_step){.slot = slot};
}

void bench_script_cycle_begin(struct bench_script *script) {
    script->cycle_first = script->step_count;
    script->pair_count = 0;
}

bool bench_script_filled(const struct bench_script *script, uint32_t slot) {
    return slot < script->slot_count && script->held_bytes[slot] != 0;
}

void bench_script_deinit(struct bench_script *script) {
    free(script->steps);
    free(script->held_bytes);
    *script = (struct bench_script){0};
}
