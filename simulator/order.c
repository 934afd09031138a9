// The order of order.h: columns, what streams, events and executables know.
//
// A column's numbers are the engine's sequence numbers of its stream, moved so that a column can be
// used again for another stream: later numbers are greater ones. It is used again when the stream
// is gone and the host knows all that it did, which then comes before whatever is submitted.
//
// A stream with memory that it freed to a pool has a second column, which stands for the same
// operations: what a pool waits for of its own accord raises that one only.
#include "simulator/order_inside.h"

#include "simulator/engine.h"
#include "simulator/graph.h"
#include "simulator/race_log.h"

#include <stdlib.h>

struct entry {
    uint64_t handle;   // of the event or executable
    uint64_t sequence; // an event's: of the record, in the engine
    struct sim__order_point point;
};

// By slot.
struct table {
    struct entry *entries;
    uint32_t count;
};

struct fence {
    struct sim__order_point point;
    uint64_t number;
};

uint32_t sim__order_count;
uint64_t sim__order_generation;

struct sim__column *sim__columns;
uint32_t sim__column_count;
static uint32_t column_size;
static uint64_t fence_count;
static struct fence fences[SIM_DEVICE_COUNT_MAX];
static struct table events, execs;

// --- Points ---

void sim__order_release(struct sim__order_point *point) {
    sim__clock_release(&point->clock);
    *point = (struct sim__order_point){0};
}

static bool is_current(const struct sim__order_point *point) {
    return point->generation == sim__order_generation && point->generation != 0;
}

struct sim__order_point sim__order_point_copy(const struct sim__order_point *point) {
    if (!is_current(point))
        return (struct sim__order_point){0};
    sim__clock_retain(point->clock);
    return *point;
}

// Operation SEQUENCE of COLUMN, without what it came after.
static bool raise(struct sim__order_clock **clock, uint32_t column, uint64_t sequence) {
    bool news = sim__clock_raise(clock, column, sequence);
    const uint32_t pool_column = sim__columns[column].pool_column;
    if (pool_column != 0)
        news |= sim__clock_raise(clock, pool_column, sequence);
    return news;
}

bool sim__order_join(struct sim__order_clock **clock, const struct sim__order_point *point) {
    if (!is_current(point))
        return false;
    const bool news = sim__clock_unite(clock, point->clock);
    return (point->sequence > 0 && raise(clock, point->column, point->sequence)) || news;
}

// Whoever knows the operation knows what it came after.
static void join_new(struct sim__order_clock **clock, const struct sim__order_point *point) {
    if (!is_current(point))
        return;
    const uint32_t pool_column = sim__columns[point->column].pool_column;
    if (sim__clock_at(*clock, point->column) < point->sequence ||
        (pool_column != 0 && sim__clock_at(*clock, pool_column) < point->sequence))
        sim__order_join(clock, point);
}

// --- Columns ---

static bool is_of(const struct sim__column *column, const struct sim__stream *stream) {
    return column->stream == stream && column->handle == stream->slot.handle;
}

// The last operation that its stream got, in the column.
static uint64_t submitted(const struct sim__column *column) {
    return is_of(column, column->stream) ? column->offset + column->stream->submitted
                                         : column->last;
}

// Nobody can do anything in the column any more, and all that was done is known to everybody.
static bool is_over(uint32_t index) {
    const struct sim__column *column = &sim__columns[index];
    return column->stream != NULL && !column->is_pools && column->free_count == 0 &&
           !is_of(column, column->stream) && sim__order_is_settled(index, column->last);
}

static uint32_t column_find_over(void) {
    for (uint32_t i = 1; i < sim__column_count; ++i)
        if (is_over(i))
            return i;
    return 0;
}

uint32_t sim__column_add(void) {
    if (sim__column_count == column_size) {
        column_size = column_size == 0 ? 32 : 2 * column_size;
        sim__columns = realloc(sim__columns, column_size * sizeof *sim__columns);
        if (sim__columns == NULL || column_size > SIM__COLUMNS_MAX)
            sim__host_limit("too many streams for their order: %u", column_size);
    }
    sim__columns[sim__column_count] = (struct sim__column){0};
    sim__clock_columns(sim__column_count + 1);
    return sim__column_count++;
}

static uint32_t column_make(struct sim__stream *stream) {
    uint32_t index = column_find_over();
    uint64_t after = 0; // what the column held before
    uint32_t pool_column = 0;
    if (index == 0) {
        index = sim__column_add();
    } else {
        after = sim__columns[index].last;
        pool_column = sim__columns[index].pool_column;
        sim__clock_release(&sim__columns[index].clock);
    }
    sim__columns[index] = (struct sim__column){
        .stream = stream,
        .handle = stream->slot.handle,
        .number = stream->number,
        .device = stream->device,
        .legacy = stream->legacy,
        .blocking = sim__stream_is_blocking(stream),
        .pool_column = pool_column,
        .offset = after - stream->submitted,
        .first = after,
        .last = after,
        .version = 1,
    };
    stream->order_column = index;
    return index;
}

static uint32_t column_of(struct sim__stream *stream) {
    const uint32_t index = stream->order_column;
    return index < sim__column_count && is_of(&sim__columns[index], stream) ? index
                                                                           : column_make(stream);
}

// The array moves when a column is added.
static struct sim__column *column_at(struct sim__stream *stream) {
    const uint32_t index = column_of(stream);
    return &sim__columns[index];
}

struct sim__order_column sim__order_column_at(uint32_t column) {
    return column < sim__column_count
               ? (struct sim__order_column){sim__columns[column].number,
                                            sim__columns[column].device}
               : (struct sim__order_column){0, 0};
}

uint64_t sim__order_sequence(uint32_t column, uint64_t sequence) {
    return column < sim__column_count && sequence > sim__columns[column].first
               ? sequence - sim__columns[column].offset
               : 0;
}

// --- Pools ---

uint32_t sim__order_begin(struct sim__stream *stream) {
    sim__order_use();
    const uint32_t index = column_of(stream);
    ++sim__columns[index].free_count;
    if (sim__columns[index].pool_column == 0) {
        const uint32_t pool_column = sim__column_add();
        sim__columns[pool_column].is_pools = true;
        sim__columns[index].pool_column = pool_column;
    }
    ++sim__order_pool_count;
    return index;
}

void sim__order_end(uint32_t column) {
    --sim__columns[column].free_count;
    --sim__order_pool_count;
    --sim__order_count;
}

void sim__order_behind(struct sim__stream *stream, struct sim__position position) {
    if (position.stream == NULL || position.stream == stream)
        return;
    const uint32_t of_other = column_of(position.stream), index = column_of(stream);
    const struct sim__column *other = &sim__columns[of_other];
    struct sim__column *column = &sim__columns[index];
    if (other->pool_column != 0 && sim__clock_raise(&column->clock, other->pool_column,
                                                    other->offset + position.sequence))
        ++column->version;
}

// Of the column of a pool's stream, in the engine's numbers.
static uint64_t pool_sequence(uint32_t column, uint64_t sequence) {
    return sim__order_sequence(column, sequence);
}

uint64_t sim__order_reached(struct sim__stream *stream, uint32_t column) {
    const struct sim__order_clock *clock = column_at(stream)->clock;
    const struct sim__column *other = &sim__columns[column];
    const uint64_t reached = sim__clock_at(clock, other->pool_column);
    const uint64_t observed = sim__clock_at(sim__order_seen, other->pool_column);
    return pool_sequence(column, reached > observed ? reached : observed);
}

uint64_t sim__order_observed(uint32_t column) {
    return pool_sequence(column,
                         sim__clock_at(sim__order_seen, sim__columns[column].pool_column));
}

// --- Operations ---

// All that OTHER got so far comes before what COLUMN gets next.
static void follow(struct sim__column *column, const struct sim__column *other) {
    sim__clock_unite(&column->clock, other->clock);
    raise(&column->clock, (uint32_t)(other - sim__columns), submitted(other));
}

static struct sim__column *legacy_column(int device) {
    const struct sim__stream *legacy = sim__state.devices[device].legacy;
    const uint32_t index = legacy->order_column;
    return index < sim__column_count && is_of(&sim__columns[index], legacy) ? &sim__columns[index]
                                                                           : NULL;
}

static void follow_blocking(struct sim__column *column) {
    for (uint32_t i = 1; i < sim__column_count; ++i) {
        struct sim__column *other = &sim__columns[i];
        if (!other->blocking || other->device != column->device ||
            other->legacy_version == other->version)
            continue;
        follow(column, other);
        other->legacy_version = other->version;
    }
}

// STREAM's column, with what its next operation comes after besides its own earlier ones.
static struct sim__column *gather(struct sim__stream *stream) {
    struct sim__host *host = sim__host_step(); // can add a column
    struct sim__column *column = column_at(stream);
    if (column->host_column != host->column || column->host_version != host->version) {
        sim__clock_unite(&column->clock, host->clock);
        column->host_column = host->column;
        column->host_version = host->version;
    }
    host->published = true;
    const struct fence *fence = &fences[column->device];
    if (column->fence_number != fence->number) {
        join_new(&column->clock, &fence->point);
        column->fence_number = fence->number;
    }
    if (column->blocking) {
        const struct sim__column *legacy = legacy_column(column->device);
        if (legacy != NULL && column->seen_version != legacy->version) {
            follow(column, legacy);
            column->seen_version = legacy->version;
        }
    } else if (column->legacy) {
        follow_blocking(column);
    }
    ++column->version;
    return column;
}

void sim__order__submit(struct sim__stream *stream) {
    struct sim__column *column = gather(stream);
    column->last = column->offset + stream->submitted + 1;
}

static struct sim__order_point point_of(const struct sim__column *column, uint64_t sequence) {
    return (struct sim__order_point){
        .generation = sim__order_generation,
        .clock = sim__clock_retain(column->clock),
        .column = (uint32_t)(column - sim__columns),
        .sequence = sequence,
        .position = {column->stream, sequence - column->offset},
        .device = column->device,
    };
}

struct sim__order_point sim__order_point_at(const struct sim__stream *stream, uint64_t sequence) {
    const struct sim__column *column = &sim__columns[stream->order_column];
    return point_of(column, column->offset + sequence);
}

static void join_device(struct sim__order_clock **clock, int device) {
    join_new(clock, &fences[device].point);
    for (uint32_t i = 1; i < sim__column_count; ++i) {
        const struct sim__column *column = &sim__columns[i];
        if (column->stream == NULL || column->device != device || column->is_fences)
            continue;
        sim__clock_unite(clock, column->clock);
        raise(clock, i, submitted(column));
    }
}

// The stream's own order counts only for fences: other work that the simulator does there is none
// of the program's.
void sim__order__submit_fence(uint32_t devices, struct sim__stream *hidden) {
    const uint32_t index = column_of(hidden);
    sim__columns[index].is_fences = true;
    ++fence_count;
    struct sim__host *host = sim__host_step();
    struct sim__order_clock *clock = sim__clock_retain(host->clock);
    host->published = true;
    for (int i = 0; i < sim__state.options.device_count; ++i)
        if ((devices >> i & 1) != 0)
            join_device(&clock, i);
    struct sim__column *column = &sim__columns[index];
    sim__clock_release(&column->clock);
    column->clock = clock;
    ++column->version;
    column->last = column->offset + hidden->submitted + 1;
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        if ((devices >> i & 1) == 0)
            continue;
        sim__order_release(&fences[i].point);
        fences[i] = (struct fence){point_of(column, column->last), fence_count};
    }
}

// --- Events and executables ---

static struct entry *entry_at(struct table *table, const struct sim__handle_slot *slot) {
    if (slot->index >= table->count) {
        const uint32_t count = slot->index + slot->index / 2 + 16;
        table->entries = realloc(table->entries, count * sizeof *table->entries);
        if (table->entries == NULL)
            sim__host_limit("out of host memory for the order of %u events", count);
        for (; table->count < count; ++table->count)
            table->entries[table->count] = (struct entry){0};
    }
    return &table->entries[slot->index];
}

// POINT is given.
static void entry_set(struct table *table, const struct sim__handle_slot *slot, uint64_t sequence,
                      struct sim__order_point point) {
    struct entry *entry = entry_at(table, slot);
    sim__order_release(&entry->point);
    *entry = (struct entry){slot->handle, sequence, point};
}

static void table_clear(struct table *table) {
    for (uint32_t i = 0; i < table->count; ++i)
        sim__order_release(&table->entries[i].point);
    free(table->entries);
    *table = (struct table){0};
}

void sim__order__record(const struct sim__event *event) {
    struct sim__stream *stream = event->position.stream;
    sim__order__submit(stream);
    const struct sim__column *column = column_at(stream);
    entry_set(&events, &event->slot, event->position.sequence, point_of(column, column->last));
    if (sim__race_is_on())
        sim__race_log_record(event->position, event->slot.handle);
}

// NULL if EVENT was not recorded since tracking began.
static const struct sim__order_point *event_point(const struct sim__event *event) {
    const struct entry *entry = entry_at(&events, &event->slot);
    return event->recorded && entry->handle == event->slot.handle &&
                   entry->sequence == event->position.sequence && is_current(&entry->point)
               ? &entry->point
               : NULL;
}

void sim__order__wait(struct sim__stream *stream, const struct sim__event *event) {
    const struct sim__position nothing = {NULL, 0};
    if (sim__race_is_on())
        sim__race_log_wait(stream, event->slot.handle, event->recorded ? event->position : nothing);
    if (!event->recorded)
        return;
    struct sim__column *column = gather(stream);
    const struct sim__order_point *point = event_point(event);
    if (point != NULL)
        join_new(&column->clock, point);
}

void sim__order__launch(struct sim__stream *stream, const struct sim__exec *exec) {
    struct sim__column *column = column_at(stream);
    const struct entry *entry = entry_at(&execs, &exec->slot);
    if (entry->handle == exec->slot.handle && is_current(&entry->point))
        join_new(&column->clock, &entry->point);
}

void sim__order__launched(struct sim__position position, const struct sim__exec *exec) {
    const struct sim__column *column = column_at(position.stream);
    entry_set(&execs, &exec->slot, 0, point_of(column, column->offset + position.sequence));
}

// A node of a launch that POSITION ends: what it covers counts as the whole launch.
void sim__order__record_launched(const struct sim__event *event, struct sim__position position) {
    const struct sim__column *column = column_at(position.stream);
    entry_set(&events, &event->slot, event->position.sequence,
              point_of(column, column->offset + position.sequence));
}

// --- What the host is about to see ---

struct sim__order_point sim__order__stream(struct sim__stream *stream) {
    struct sim__column *column = column_at(stream);
    struct sim__order_point point = point_of(column, submitted(column));
    if (stream->legacy) {
        join_new(&point.clock, &fences[stream->device].point);
        for (uint32_t i = 1; i < sim__column_count; ++i) {
            const struct sim__column *other = &sim__columns[i];
            if (!other->blocking || other->device != stream->device)
                continue;
            sim__clock_unite(&point.clock, other->clock);
            raise(&point.clock, i, submitted(other));
        }
    }
    return point;
}

struct sim__order_point sim__order__next(struct sim__stream *stream) {
    sim__order__submit(stream);
    const struct sim__column *column = column_at(stream);
    return point_of(column, column->last);
}

struct sim__order_point sim__order__event(const struct sim__event *event) {
    const struct sim__order_point *point = event_point(event);
    return point == NULL ? (struct sim__order_point){0} : sim__order_point_copy(point);
}

struct sim__order_point sim__order__device(const struct sim__device *device) {
    struct sim__order_point point = {.generation = sim__order_generation,
                                     .device = device->index};
    join_device(&point.clock, device->index);
    return point;
}

struct sim__order_point sim__order__devices(void) {
    struct sim__order_point point = {.generation = sim__order_generation};
    for (int i = 0; i < sim__state.options.device_count; ++i)
        join_device(&point.clock, i);
    return point;
}

// --- The checker's view ---

struct sim__order_view sim__order_view_stream(const struct sim__stream *stream, uint64_t sequence) {
    const struct sim__column *column = &sim__columns[stream->order_column];
    const struct sim__order_clock *clock = column->clock;
    struct sim__order_view view = {
        .known = clock == NULL ? NULL : clock->known,
        .count = clock == NULL ? 0 : clock->size,
        .column = stream->order_column,
        .sequence = column->offset + sequence,
    };
    sim__order_view_settle(&view);
    return view;
}

// --- Begin and end ---

// Clocks of former streams and events are forgotten; column 0 is the host's.
void sim__order_forget(void) {
    for (uint32_t i = 0; i < sim__column_count; ++i)
        sim__clock_release(&sim__columns[i].clock);
    for (int i = 0; i < SIM_DEVICE_COUNT_MAX; ++i) {
        sim__order_release(&fences[i].point);
        fences[i] = (struct fence){0};
    }
    sim__column_count = 0;
    fence_count = 0;
}

void sim__order_clear(void) {
    BASE_CHECK_EQ(sim__order_pool_count, 0);
    sim__order_forget();
    sim__hosts_clear();
    table_clear(&events);
    table_clear(&execs);
    free(sim__columns);
    sim__columns = NULL;
    column_size = 0;
    sim__clocks_clear();
    if (sim__order_count > 0) // the checker goes on
        sim__order_start();
}
