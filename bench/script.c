// See script.h.
#include "bench/script.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

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
    script->filled = realloc(script->filled, count);
    BASE_CHECK(script->filled != NULL);
    memset(script->filled + script->slot_count, 0, count - script->slot_count);
    script->slot_count = count;
}

void bench_script_malloc(struct bench_script *script, uint32_t slot, uint64_t bytes,
                         uint32_t stream) {
    BASE_CHECK(bytes > 0);
    slots_grow(script, slot);
    BASE_CHECK(!script->filled[slot]);
    script->filled[slot] = 1;
    if (stream >= script->stream_count) script->stream_count = stream + 1;
    *step_add(script) = (struct bench_script_step){.bytes = bytes, .slot = slot, .stream = stream};
    script->pair_count++;
}

void bench_script_free(struct bench_script *script, uint32_t slot) {
    BASE_CHECK(bench_script_filled(script, slot));
    script->filled[slot] = 0;
    *step_add(script) = (struct bench_script_step){.slot = slot};
}

void bench_script_cycle_begin(struct bench_script *script) {
    script->cycle_first = script->step_count;
    script->pair_count = 0;
}

bool bench_script_filled(const struct bench_script *script, uint32_t slot) {
    return slot < script->slot_count && script->filled[slot];
}

void bench_script_deinit(struct bench_script *script) {
    free(script->steps);
    free(script->filled);
    *script = (struct bench_script){0};
}
