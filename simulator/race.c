// The race checker starts and stops; what the calls tell becomes steps.
#include "simulator/race.h"

#include "simulator/call.h"
#include "simulator/race_access.h"
#include "simulator/race_block.h"
#include "simulator/race_given.h"
#include "simulator/race_life.h"
#include "simulator/race_plan.h"
#include "simulator/race_thread.h"
#include "simulator/race_unwritten.h"
#include "simulator/race_value.h"

bool sim__race_on;
bool sim__race_host_tells;

// --- What the calls tell ---

// The host reads what a copy takes at the call.
static void source_read(const struct sim__copy *copy, uint32_t origin) {
    const struct sim__race_access *access;
    struct sim__race_step step;
    if (sim__race_host_accesses(copy->source, copy->size, copy->rows, copy->source_pitch,
                                SIM_ACCESS_CARRY, &access) == 0)
        return;
    sim__race_step_host(&step, origin);
    sim__race_step_do(&step, access, 1);
}

void sim__race_submitted(struct sim__position position, const struct sim__operation *operation) {
    const struct sim__race_access *accesses;
    struct sim__race_step step;
    if (operation->kind < SIM__OPERATION_COPY || operation->kind > SIM__OPERATION_VALUE)
        return;
    const uint32_t origin = sim__race_origin(operation);
    sim__race_log_operation(position, origin);
    const bool stages = operation->kind == SIM__OPERATION_COPY && operation->copy.stage;
    if (stages) {
        source_read(&operation->copy, origin);
        sim__order_submit(position.stream); // the operation comes behind that
    }
    const size_t count = sim__race_accesses(operation, &accesses), first = stages && count == 2;
    if (count > 0) {
        sim__race_step_stream(&step, position.stream, position.sequence, origin);
        step.on_device = operation->kind != SIM__OPERATION_HOST_FUNCTION;
        step.has_rights = operation->kind == SIM__OPERATION_COPY && operation->copy.named;
        sim__race_step_do(&step, accesses + first, count - first);
    }
    if (operation->kind == SIM__OPERATION_VALUE)
        sim__race_value_written(operation->value.address, operation->value.value,
                                sim__order_point_at(position.stream, position.sequence));
}

void sim__race_host(const void *pointer, size_t size, size_t rows, size_t pitch,
                    enum sim_access_mode mode) {
    const struct sim__race_access *access;
    struct sim__race_step step;
    sim__race_host_tells = true;
    if (sim__race_host_accesses(pointer, size, rows, pitch, mode, &access) == 0)
        return;
    const uint32_t origin = sim__race_origin_act(
        mode == SIM_ACCESS_READ ? SIM__RACE_HOST_READ : SIM__RACE_HOST_WRITE, size);
    sim__race_log_host(origin, (uint64_t)(uintptr_t)pointer, size);
    sim__race_step_host(&step, origin);
    sim__race_step_do(&step, access, 1);
}

// The call under way as a step: of STREAM's last operation, or of the host.
static void step_of_call(struct sim__race_step *step, const struct sim__stream *stream,
                         uint64_t size) {
    const uint32_t origin = sim__race_origin_act(SIM__RACE_CALL, size);
    if (stream != NULL)
        sim__race_step_stream(step, stream, stream->submitted, origin);
    else
        sim__race_step_host(step, origin);
}

void sim__race_alloc(uint64_t start, uint64_t size, bool written,
                     const struct sim__stream *stream) {
    struct sim__race_step step;
    sim__race_log_alloc(start, size, stream);
    step_of_call(&step, stream, size);
    sim__life_begin(&step, start, size, written);
}

void sim__race_free(uint64_t start, uint64_t size, const struct sim__stream *stream) {
    struct sim__race_step step;
    step_of_call(&step, stream, size);
    sim__life_end(&step, start, size);
    sim__race_step_end(&step);
    sim__race_log_free(start, size, stream);
}

static void log_unmapped(const struct sim__life *life) {
    sim__race_log_free(life->range.start, life->range.size, NULL);
}

void sim__race_unmap(uint64_t start, uint64_t size) {
    struct sim__race_step step;
    step_of_call(&step, NULL, size);
    sim__life_unmap(&step, start, size);
    sim__race_step_end(&step);
    sim__life_each_unmapped(start, size, log_unmapped);
}

void sim__race_unregister(uint64_t start, uint64_t size) {
    struct sim__race_step step;
    step_of_call(&step, NULL, size);
    sim__shadow_end(&step, start, size);
    sim__race_step_end(&step);
    sim__life_forget(start, size);
}

void sim__race_learned(void) { sim__unwritten_settle(false); }

// --- Start and stop ---

static void forget(void) {
    sim__unwritten_clear();
    sim__shadow_clear();
    sim__life_clear();
    sim__blocks_clear();
    sim__race_values_clear();
    sim__race_plans_clear();
    sim__race_accesses_clear();
    sim__race_host_tells = false;
    sim__race_steps_clear();
}

// Memory that is there already was written, as far as anybody can know.
static void memory_find(const struct sim__range_index *index, bool is_blocks) {
    struct sim__range *range = sim__range_last(index);
    for (; range != NULL; range = sim__range_overlapping(index, 0, range->start)) {
        const struct sim__segment *segment =
            sim__segment_at((const void *)(uintptr_t)range->start);
        if (is_blocks || segment == NULL)
            sim__life_begin(NULL, range->start, range->size, true);
        else if (segment->kind != SIM__SEGMENT_CHUNK && segment->kind != SIM__SEGMENT_GRAPH &&
                 !segment->freed)
            sim__life_begin(NULL, range->start, segment->size, true);
        if (range->start == 0)
            break;
    }
}

enum base_status sim__race_start(const struct sim_race_options *options) {
    sim__race_stop();
    const enum base_status status = sim__race_report_start(options);
    if (status != BASE_OK)
        return status;
    sim__race_log_reset();
    sim__order_check_begin();
    sim__given_begin(options->blocks_only);
    sim__race_threads_begin();
    sim__race_on = true;
    if (sim__state.ready) {
        memory_find(&sim__state.segments, false);
        memory_find(&sim__state.blocks, true);
        memory_find(&sim__state.host_ranges, false);
    }
    return BASE_OK;
}

void sim__race_stop(void) {
    if (!sim__race_on)
        return;
    sim__unwritten_settle(true);
    sim__race_on = false;
    sim__race_threads_end();
    forget();
    sim__order_check_end();
    sim__race_report_stop();
}

void sim__race_reset(void) {
    if (!sim__race_on)
        return;
    sim__unwritten_settle(true);
    forget();
    sim__race_log_reset();
}

enum base_status sim_race_start(const struct sim_race_options *options) {
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    const enum base_status status = sim__race_start(options);
    base_mutex_unlock(&sim__state.lock);
    return status;
}

void sim_race_stop(void) {
    base_mutex_lock(&sim__state.lock);
    sim__race_stop();
    base_mutex_unlock(&sim__state.lock);
}

bool sim_race_is_running(void) { return sim__race_is_on(); }

// --- Hand-offs ---

void sim_handoff_signal(const void *token) {
    base_mutex_lock(&sim__state.lock);
    if (sim__race_is_on())
        sim__order_signal(token);
    base_mutex_unlock(&sim__state.lock);
}

void sim_handoff_await(const void *token) {
    base_mutex_lock(&sim__state.lock);
    if (sim__race_is_on())
        sim__order_await(token);
    base_mutex_unlock(&sim__state.lock);
}
