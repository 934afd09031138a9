// The blocks of race_block.h: by number in a table, and those that are held by address. A block
// that was given back is forgotten, unless nodes of graphs still mean it; a number that is not
// known any more is one that was given back. Their history, for reports, is the log's.
#include "simulator/race_block.h"

#include "base/address_map.h"
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/race_given.h"
#include "simulator/race_node.h"
#include "simulator/stream.h"

#include <stdlib.h>

// Of a thread, so many accesses to a block are kept.
#define USES_MAX 4

struct sim__block_use {
    struct sim__race_key key;
    enum sim_access_mode mode;
    uint32_t column;
    uint64_t sequence; // of the thread
    struct sim__range range;
};

static uint64_t number_last;
static struct base_address_map records; // by number
static struct sim__range_index held;
static struct sim__block_record *idle; // through the range
static struct sim__block_record *idle_next(const struct sim__block_record *record) {
    return (struct sim__block_record *)(uintptr_t)record->range.start;
}

// --- Records ---

struct sim__block_record *sim__block_record_find(uint64_t number) {
    uint64_t address;
    return base_address_map_get(&records, number, &address)
               ? (struct sim__block_record *)(uintptr_t)address
               : NULL;
}

struct sim__block_record *sim__block_record_of(const struct sim__rows *rows) {
    struct sim__block_record *record =
        (struct sim__block_record *)sim__range_at(&held, rows->start);
    return record != NULL &&
                   sim__rows_end(rows) <= record->range.start + record->range.size
               ? record
               : NULL;
}

static void index_remove(struct sim__block_record *record) {
    if (record->is_indexed)
        sim__range_remove(&held, &record->range);
    record->is_indexed = false;
}

static void record_free(struct sim__block_record *record) {
    uint64_t address;
    index_remove(record);
    sim__undefined_clear(&record->undefined);
    free(record->uses);
    base_address_map_remove(&records, record->number, &address);
    record->range.start = (uint64_t)(uintptr_t)idle;
    idle = record;
}

void sim__block_retain(uint64_t number) {
    struct sim__block_record *record = sim__block_record_find(number);
    if (record != NULL)
        ++record->nodes;
}

void sim__block_release(uint64_t number) {
    struct sim__block_record *record = sim__block_record_find(number);
    if (record != NULL && record->nodes > 0 && --record->nodes == 0 && !record->is_held)
        record_free(record);
}

// --- Taking and giving back ---

static struct sim__block_record *record_make(uint64_t start, uint64_t size) {
    struct sim__block_record *record = idle;
    if (record != NULL)
        idle = idle_next(record);
    else if ((record = malloc(sizeof *record)) == NULL)
        sim__host_limit("out of host memory for the race checker");
    *record = (struct sim__block_record){
        .range = {start, size}, .number = ++number_last, .is_held = true, .is_indexed = true};
    if (base_address_map_set(&records, record->number, (uint64_t)(uintptr_t)record) != BASE_OK)
        sim__host_limit("out of host memory for the race checker");
    sim__given_forget(start, size);
    struct sim__range *other;
    while ((other = sim__range_overlapping(&held, start, size)) != NULL)
        index_remove((struct sim__block_record *)other);
    sim__range_insert(&held, &record->range);
    sim__undefined_add(&record->undefined, &(struct sim__rows){start, size, 1, 0}, NULL);
    return record;
}

void sim__blocks_clear(void) {
    for (size_t i = 0; i < records.capacity; ++i)
        while (records.capacity > 0 && records.entries[i].value != BASE_ADDRESS_UNUSED)
            record_free((struct sim__block_record *)(uintptr_t)records.entries[i].value);
    base_address_map_deinit(&records);
    sim__range_index_deinit(&held);
    sim__given_clear();
    while (idle != NULL) {
        struct sim__block_record *next = idle_next(idle);
        free(idle);
        idle = next;
    }
}

// --- Accesses ---

void sim__block_resolve(struct sim__race_access *access, uint64_t block) {
    access->record = block != 0 ? sim__block_record_find(block)
                                : sim__block_record_of(&access->rows);
    access->block = access->record != NULL ? access->record->number : block;
    if (access->block == 0)
        access->block = sim__given_block(&access->rows);
}

static void given_access(const struct sim__race_step *step,
                         const struct sim__race_access *access) {
    const struct sim__race_block *block = sim__race_log_block(access->block);
    const struct sim__race_pair pair = {
        .rule = SIM_RACE_USE_AFTER_FREE,
        .other = {.origin = block == NULL ? 0 : block->given_origin},
        .other_mode = SIM_ACCESS_WRITE,
        .other_block = access->block,
        .mode = access->mode,
        .block = access->block,
        .about_block = access->block,
        .range = {access->rows.start, access->rows.size},
    };
    sim__race_pair(step, &pair);
}

// Whether the capture of the graph that is launched, or of its part that has the node, took the
// block: it came by memory of the node's there, with the order of that graph.
static bool is_of_capture(const struct sim__block_record *record,
                          const struct sim__race_step *step) {
    return record->graph != 0 && (record->graph == step->key.node->graph ||
                                  record->graph == step->exec->graph);
}

static void replay_access(const struct sim__race_step *step,
                          const struct sim__race_access *access) {
    const uint64_t start = access->rows.start;
    uint64_t end = sim__rows_end(&access->rows);
    struct sim__range *range;
    while (end > start && (range = sim__range_overlapping(&held, start, end - start)) != NULL) {
        const struct sim__block_record *other = (const struct sim__block_record *)range;
        const struct sim__rows whole = {range->start, range->size, 1, 0};
        struct sim__race_pair pair = {
            .rule = SIM_RACE_GRAPH_MEMORY,
            .other = {.origin = other->take_origin},
            .other_mode = SIM_ACCESS_WRITE,
            .other_block = other->number,
            .mode = access->mode,
            .block = access->block,
            .about_block = access->block,
        };
        end = range->start;
        if (other->number != access->block &&
            !is_of_capture(other, step) &&
            sim__rows_meet(&access->rows, &whole, &pair.range))
            sim__race_pair(step, &pair);
    }
}

// The thread's last accesses come behind its earlier ones.
static void use_add(const struct sim__race_step *step, const struct sim__race_access *access) {
    struct sim__block_record *record = access->record;
    struct sim__block_use use = {.key = step->key,
                                 .mode = access->mode,
                                 .range = {access->rows.start, access->rows.size}};
    uint32_t alike = 0, oldest = 0;
    sim__order_host(&use.column, &use.sequence);
    for (uint32_t i = record->use_count; i-- > 0;) {
        if (record->uses[i].column != use.column)
            continue;
        ++alike;
        oldest = i;
    }
    if (alike == USES_MAX) {
        for (uint32_t i = oldest; i + 1 < record->use_count; ++i)
            record->uses[i] = record->uses[i + 1];
        record->uses[record->use_count - 1] = use;
        return;
    }
    record->uses = realloc(record->uses, (record->use_count + 1) * sizeof *record->uses);
    if (record->uses == NULL)
        sim__host_limit("out of host memory for the race checker");
    record->uses[record->use_count++] = use;
}

// What another thread enqueued, and nobody knows that it did so before.
static void uses_end(const struct sim__block_record *record, uint32_t origin) {
    struct sim__race_step step;
    sim__race_step_host(&step, origin);
    for (uint32_t i = 0; i < record->use_count; ++i) {
        const struct sim__block_use *use = &record->uses[i];
        const struct sim__race_pair pair = {
            .rule = SIM_RACE_USE_AFTER_FREE,
            .other = use->key,
            .other_mode = use->mode,
            .mode = SIM_ACCESS_WRITE,
            .other_block = record->number,
            .block = record->number,
            .about_block = record->number,
            .range = use->range,
        };
        if (!sim__order_is_before(&step.view, use->column, use->sequence))
            sim__race_pair(&step, &pair);
    }
    sim__race_step_end(&step);
}

void sim__block_access(const struct sim__race_step *step, const struct sim__race_access *access) {
    if (access->block == 0)
        return;
    if (step->key.node != NULL)
        replay_access(step, access);
    else if (access->record == NULL || !access->record->is_held)
        given_access(step, access);
    else if (sim__order_is_strict())
        use_add(step, access);
}

// --- What allocators tell ---

uint64_t sim_block_take(const void *pointer, size_t size, cudaStream_t handle, const char *name) {
    struct sim__stream *stream;
    struct sim__rows rows;
    uint64_t number = 0;
    base_mutex_lock(&sim__state.lock);
    if (sim__race_is_on() && sim__rows_make((uint64_t)(uintptr_t)pointer, size, 1, 0, &rows)) {
        sim__call_note(SIM__CALL_OTHER);
        if (sim__stream_resolve(handle, &stream) != cudaSuccess)
            stream = sim__device_current()->legacy;
        struct sim__block_record *record = record_make(rows.start, rows.size);
        record->graph = sim__capture_graph(stream);
        record->take_origin = sim__race_origin_act(SIM__RACE_TAKE, size);
        number = record->number;
        sim__race_log_take(number, rows.start, rows.size, stream, name);
    }
    base_mutex_unlock(&sim__state.lock);
    return number;
}

void sim_block_use(uint64_t block, cudaStream_t handle) {
    struct sim__stream *stream;
    base_mutex_lock(&sim__state.lock);
    if (sim__race_is_on() && block != 0 && sim__stream_resolve(handle, &stream) == cudaSuccess) {
        sim__call_note(SIM__CALL_OTHER);
        sim__race_log_use(block, stream);
    }
    base_mutex_unlock(&sim__state.lock);
}

void sim_block_give(uint64_t block) {
    base_mutex_lock(&sim__state.lock);
    struct sim__block_record *record =
        sim__race_is_on() && block != 0 ? sim__block_record_find(block) : NULL;
    if (record != NULL && record->is_held) {
        sim__call_note(SIM__CALL_OTHER);
        record->is_held = false;
        index_remove(record);
        sim__given_set(&record->range, record->number);
        sim__race_log_give(block);
        if (record->use_count > 0)
            uses_end(record, sim__race_origin_act(SIM__RACE_GIVE, record->range.size));
        if (record->nodes == 0)
            record_free(record);
    }
    base_mutex_unlock(&sim__state.lock);
}
