// The operations of random programs. See script_internal.h.
#include "allocator/golden/script_internal.h"

#include "base/check.h"
#include "base/size.h"

#include <inttypes.h>
#include <string.h>

//--------------------------------------------------------------------------------------------------
// Allocating and freeing.

static uint64_t pick_size(struct script_plan *plan) {
    if (script__chance(plan, 0.002)) return 0;
    if (script__chance(plan, 0.002)) return (uint64_t)1 << (40 + script__below(plan, 23));
    return script__chance(plan, plan->palette_share)
               ? plan->palette[script__below(plan, plan->palette_size)]
               : script__size(plan);
}

static uint64_t any_live(struct script_plan *plan) {
    return plan->live[script__below(plan, plan->live_count)];
}

static uint64_t any_stream(struct script_plan *plan) {
    return script__below(plan, plan->stream_count);
}

static uint64_t new_id(struct script_plan *plan) {
    plan->live[plan->live_count++] = plan->next_id;
    return plan->next_id++;
}

static void add_alloc(struct script_plan *plan) {
    const uint64_t size = pick_size(plan), stream = any_stream(plan);
    script__add(plan, "alloc %" PRIu64 " %" PRIu64 " %" PRIu64, new_id(plan), size, stream);
    // What no device holds gives an error of its own.
    if (size >= (uint64_t)1 << 40 && script__chance(plan, 0.5)) script__add(plan, "error");
}

static void add_free(struct script_plan *plan) {
    if (plan->live_count == 0) return;
    const unsigned order =
        plan->free_order == 3 ? (unsigned)script__below(plan, 3) : plan->free_order;
    const size_t index = order == 0   ? 0
                         : order == 1 ? plan->live_count - 1
                                      : (size_t)script__below(plan, plan->live_count);
    script__add(plan, "free %" PRIu64, plan->live[index]);
    plan->live_count--;
    memmove(&plan->live[index], &plan->live[index + 1],
            (plan->live_count - index) * sizeof *plan->live);
}

static void add_record(struct script_plan *plan) {
    if (plan->live_count == 0) return;
    script__add(plan, "record %" PRIu64 " %" PRIu64, any_live(plan), any_stream(plan));
}

static void add_complete(struct script_plan *plan) {
    if (script__chance(plan, 0.2))
        script__add(plan, "complete all");
    else
        script__add(plan, "complete %" PRIu64, any_stream(plan));
}

//--------------------------------------------------------------------------------------------------
// The rarer kinds.

// Where an allocation lay, mostly a recent one, and near it.
static void add_alloc_at(struct script_plan *plan) {
    if (plan->next_id == 0) return;
    const uint64_t recent = script__below(plan, 40);
    const uint64_t other = recent < plan->next_id ? plan->next_id - 1 - recent : 0;
    const uint64_t offset = script__chance(plan, 0.5)    ? 0
                            : script__chance(plan, 0.05) ? 100
                            : script__chance(plan, 0.3)  ? 512 * script__below(plan, 400000)
                                                         : 512 * script__below(plan, 8000);
    const uint64_t size = script__size(plan), stream = any_stream(plan);
    script__add(plan, "alloc_at %" PRIu64 " %" PRIu64 " %" PRIu64 " @%" PRIu64 " %" PRIu64,
                new_id(plan), size, stream, other, offset);
}

static void add_on_miss(struct script_plan *plan) {
    if (plan->live_count == 0) return;
    if (script__chance(plan, 0.5))
        script__add(plan, "on_miss %" PRIu64 " %" PRIu64, any_live(plan), any_live(plan));
    else
        script__add(plan, "on_miss %" PRIu64, any_live(plan));
}

static void add_empty_cache(struct script_plan *plan) { script__add(plan, "empty_cache"); }

static void add_fraction(struct script_plan *plan) {
    script__add(plan, "fraction %g",
                script__chance(plan, 0.15) ? 1.0 : (double)script__below(plan, 1010) / 1000);
}

static void add_set(struct script_plan *plan) {
    char config[SCRIPT_CONFIG_MAX];
    script__config_set(plan, config);
    script__add(plan, "set %s", config);
    script__add(plan, "get");
}

static void add_cfg(struct script_plan *plan) {
    char config[SCRIPT_CONFIG_MAX];
    script__config_any(plan, config);
    script__add(plan, "cfg %s", config);
}

static void add_foreign(struct script_plan *plan) {
    script__add(plan, "foreign %" PRIu64,
                script__chance(plan, 0.4) ? 0
                                          : script__below(plan, plan->script->capacity_bytes / 2));
}

static int fault_code(struct script_plan *plan) { return script__chance(plan, 0.8) ? 2 : 999; }

static void add_fault_malloc(struct script_plan *plan) {
    script__add(plan, "fault malloc %" PRIu64 " %d", 1 + script__below(plan, 4), fault_code(plan));
}

static void add_fault_create(struct script_plan *plan) {
    script__add(plan, "fault create %" PRIu64 " %d", 1 + script__below(plan, 12), fault_code(plan));
}

static void add_nvml(struct script_plan *plan) {
    script__add(plan, "nvml %d", script__chance(plan, 0.5));
}

static void add_auto(struct script_plan *plan) {
    if (script__chance(plan, 0.02)) script__add(plan, "auto 1");
}

static void add_class(struct script_plan *plan) {
    static const char *const names[] = {"", "a", "b", "c", "d"};
    script__add(plan, "class %" PRIu64 " %s", any_stream(plan), names[script__below(plan, 5)]);
}

static void add_class_default(struct script_plan *plan) {
    static const char *const names[] = {"a", "b", "c", "d"};
    script__add(plan, "class_default %s 0.%" PRIu64, names[script__below(plan, 4)],
                10 + script__below(plan, 80));
}

static void add_reset(struct script_plan *plan) {
    script__add(plan, script__chance(plan, 0.5) ? "reset_peak" : "reset_accumulated");
}

static void add_base(struct script_plan *plan) {
    if (plan->live_count > 0) script__add(plan, "base %" PRIu64, any_live(plan));
}

// Its outcome does not depend on what is cached, but it leaves a fraction of 0 behind.
static void add_rounded(struct script_plan *plan) {
    script__add(plan, "rounded %" PRIu64, script__size(plan));
    script__add(plan, "fraction %g",
                script__chance(plan, 0.6) ? 1.0 : (double)script__below(plan, 1000) / 1000);
}

static void add_layout(struct script_plan *plan) { script__add(plan, "layout"); }
static void add_largest(struct script_plan *plan) { script__add(plan, "largest"); }
static void add_get_fraction(struct script_plan *plan) { script__add(plan, "get_fraction"); }
static void add_counts(struct script_plan *plan) { script__add(plan, "counts"); }
static void add_error(struct script_plan *plan) { script__add(plan, "error"); }
static void add_va(struct script_plan *plan) { script__add(plan, "va"); }
static void add_segment_sizes(struct script_plan *plan) { script__add(plan, "segment_sizes"); }

static const struct kind {
    void (*add)(struct script_plan *plan);
    double weight;
    bool without_cache; // also where there is none
} kinds[] = {
    {add_alloc_at, 6, false},
    {add_on_miss, 5, false},
    {add_empty_cache, 1, true},
    {add_fraction, 1, false},
    {add_set, 1, false},
    {add_cfg, 1, true},
    {add_foreign, 1, true},
    {add_fault_malloc, 1, true},
    {add_fault_create, 1, false},
    {add_nvml, 0.5, false},
    {add_auto, 0.5, false},
    {add_class, 1, false},
    {add_class_default, 0.5, false},
    {add_reset, 1, true},
    {add_base, 1, false},
    {add_rounded, 0.5, false},
    {add_layout, 1, true},
    {add_largest, 1, false},
    {add_get_fraction, 0.5, false},
    {add_counts, 1, true},
    {add_error, 2, true},
    {add_va, 0.5, false},
    {add_segment_sizes, 0.5, false},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])
_Static_assert(KIND_COUNT <= SCRIPT_KIND_MAX, "the plan has room for all kinds");

// Whole kinds are switched off, so that what the others do is not always interrupted.
void script__kinds_choose(struct script_plan *plan) {
    for (size_t index = 0; index < KIND_COUNT; index++) {
        const bool possible = kinds[index].without_cache || !plan->script->no_caching;
        const bool on = script__chance(plan, 0.55);
        const double factor = 0.25 + base_random_unit(&plan->random);
        plan->kind_weights[index] = possible && on ? kinds[index].weight * factor : 0;
        plan->kind_weight_sum += plan->kind_weights[index];
    }
}

static void add_rare(struct script_plan *plan) {
    double mark = base_random_unit(&plan->random) * plan->kind_weight_sum;
    for (size_t index = 0; index < KIND_COUNT; index++) {
        mark -= plan->kind_weights[index];
        if (mark >= 0 || plan->kind_weights[index] == 0) continue;
        kinds[index].add(plan);
        return;
    }
}

void script__step(struct script_plan *plan, size_t step) {
    if (step % 50 == 0) script__add(plan, "trace");
    if (step % 40 == 0) script__add(plan, "stat");
    if (script__chance(plan, 0.03)) add_rare(plan);
    if (plan->has_events && script__chance(plan, plan->record_share)) add_record(plan);
    if (plan->has_events && script__chance(plan, plan->record_share / 2)) add_complete(plan);
    // Now and then everything is freed, as at the end of a training step.
    if (script__chance(plan, 0.001))
        while (plan->live_count > 0)
            add_free(plan);
    const double fullness = (double)plan->live_count / (double)plan->live_max;
    if (script__chance(plan, fullness < 1 ? 0.7 - 0.4 * fullness : 0.1))
        add_alloc(plan);
    else
        add_free(plan);
}
