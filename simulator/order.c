// The clocks of order.h: sparse vectors of positions, one entry for each stream with frees that
// matter. What a stream, an event or the host knows is found by slot; a slot's handle says whether
// it is still the one that the clock was kept for. When the last free is settled, all clocks are
// forgotten by counting the generation up.
#include "simulator/order.h"

#include "simulator/engine.h"
#include "simulator/pool.h"

#include <stdlib.h>

struct clock {
    struct sim__position *entries;
    uint32_t count, size;
};

// Of a stream or an event.
struct knower {
    uint64_t handle;
    uint64_t generation;
    uint64_t sequence;   // an event's: of the record that the clock belongs to
    uint32_t free_count; // a stream's: how many pools hold memory that it freed
    struct clock clock;
};

// By slot; a knower stays where it is.
struct knowers {
    struct knower **entries;
    uint32_t count;
};

uint32_t sim__order_count;

static uint64_t generation;
static struct knowers streams, events;
static struct clock host;

// --- Clocks ---

static struct knower *stream_knower(const struct sim__stream *stream);

static void clock_raise(struct clock *clock, struct sim__position position) {
    for (uint32_t i = 0; i < clock->count; ++i) {
        if (clock->entries[i].stream != position.stream)
            continue;
        if (clock->entries[i].sequence < position.sequence)
            clock->entries[i].sequence = position.sequence;
        return;
    }
    if (clock->count == clock->size) {
        clock->size = clock->size == 0 ? 4 : 2 * clock->size;
        clock->entries = realloc(clock->entries, clock->size * sizeof *clock->entries);
        if (clock->entries == NULL)
            sim__host_limit("out of host memory for the order of %u streams", clock->size);
    }
    clock->entries[clock->count++] = position;
}

static uint64_t clock_of(const struct clock *clock, const struct sim__stream *stream) {
    for (uint32_t i = 0; i < clock->count; ++i)
        if (clock->entries[i].stream == stream)
            return clock->entries[i].sequence;
    return 0;
}

// Only positions of streams with frees are of interest.
static void clock_raise_relevant(struct clock *clock, struct sim__position position) {
    if (position.stream != NULL && stream_knower(position.stream)->free_count > 0)
        clock_raise(clock, position);
}

static void clock_unite(struct clock *clock, const struct clock *other) {
    for (uint32_t i = 0; i < other->count; ++i)
        clock_raise_relevant(clock, other->entries[i]);
}

// --- Who knows ---

static struct knower *knower_at(struct knowers *knowers, const struct sim__handle_slot *slot) {
    if (slot->index >= knowers->count) {
        const uint32_t count = slot->index + slot->index / 2 + 16;
        knowers->entries = realloc(knowers->entries, count * sizeof *knowers->entries);
        if (knowers->entries == NULL)
            sim__host_limit("out of host memory for the order of %u streams or events", count);
        for (; knowers->count < count; ++knowers->count)
            knowers->entries[knowers->count] = NULL;
    }
    struct knower **place = &knowers->entries[slot->index], *knower;
    if (*place == NULL && (*place = calloc(1, sizeof **place)) == NULL)
        sim__host_limit("out of host memory for the order of streams or events");
    knower = *place;
    if (knower->generation != generation || knower->handle != slot->handle) {
        knower->clock.count = 0;
        knower->handle = slot->handle;
        if (knower->generation != generation)
            knower->free_count = 0; // a stream's frees outlive it
        knower->generation = generation;
    }
    return knower;
}

static struct knower *stream_knower(const struct sim__stream *stream) {
    return knower_at(&streams, &stream->slot);
}

void sim__order_begin(struct sim__stream *stream) {
    if (sim__order_count++ == 0) {
        ++generation;
        host.count = 0;
    }
    ++stream_knower(stream)->free_count;
}

void sim__order_end(struct sim__stream *stream) {
    --sim__order_count;
    --stream_knower(stream)->free_count;
}

// --- Order ---

uint64_t sim__order_observed(const struct sim__stream *other) { return clock_of(&host, other); }

uint64_t sim__order_reached(const struct sim__stream *stream, const struct sim__stream *other) {
    const uint64_t reached = clock_of(&stream_knower(stream)->clock, other);
    const uint64_t observed = sim__order_observed(other);
    return reached > observed ? reached : observed;
}

void sim__order_behind(struct sim__stream *stream, struct sim__position position) {
    if (position.stream != stream)
        clock_raise_relevant(&stream_knower(stream)->clock, position);
}

// Later operations of STREAM come after all of OTHER so far.
static void unite_stream(const struct sim__stream *stream, struct sim__stream *other) {
    if (stream == other)
        return;
    struct knower *knower = stream_knower(stream);
    clock_unite(&knower->clock, &stream_knower(other)->clock);
    clock_raise_relevant(&knower->clock, (struct sim__position){other, other->submitted});
}

// The stream in a slot, also one that is gone, if it can matter: if it was looked at since tracking
// began. NULL otherwise.
static struct sim__stream *stream_of(uint32_t index) {
    const struct knower *knower = streams.entries[index];
    return knower != NULL && knower->generation == generation
               ? sim__handle_slot_at(&sim__state.streams, index)
               : NULL;
}

static bool is_gone(const struct sim__stream *stream) { return stream->slot.handle == 0; }

// The edges between the legacy stream and the blocking streams of its device.
void sim__order__submit(struct sim__stream *stream) {
    if (sim__stream_is_blocking(stream))
        unite_stream(stream, sim__state.devices[stream->device].legacy);
    for (uint32_t i = 0; stream->legacy && i < streams.count; ++i) {
        struct sim__stream *other = stream_of(i);
        if (other != NULL && !is_gone(other) && other->device == stream->device &&
            sim__stream_is_blocking(other))
            unite_stream(stream, other);
    }
}

void sim__order__record(const struct sim__event *event) {
    sim__order__submit(event->position.stream);
    const struct knower *stream = stream_knower(event->position.stream);
    struct knower *knower = knower_at(&events, &event->slot);
    knower->clock.count = 0;
    knower->sequence = event->position.sequence;
    clock_unite(&knower->clock, &stream->clock);
    clock_raise_relevant(&knower->clock, event->position);
}

// NULL if EVENT was not recorded since tracking began: then it covers no free.
static const struct clock *event_clock(const struct sim__event *event) {
    const struct knower *knower = knower_at(&events, &event->slot);
    return event->recorded && knower->sequence == event->position.sequence ? &knower->clock : NULL;
}

void sim__order__wait(struct sim__stream *stream, const struct sim__event *event) {
    const struct clock *clock = event_clock(event);
    if (clock != NULL)
        clock_unite(&stream_knower(stream)->clock, clock);
}

// --- What the host sees ---

// Other threads may have submitted more while it waited: what is complete counts.
static void observe(const struct clock *clock) {
    for (uint32_t i = 0; i < clock->count; ++i)
        if (sim__position_complete(clock->entries[i]))
            clock_raise_relevant(&host, clock->entries[i]);
}

static void observe_one(struct sim__stream *stream) {
    observe(&stream_knower(stream)->clock);
    clock_raise_relevant(&host, (struct sim__position){stream, stream->completed});
}

void sim__order__observe_stream(struct sim__stream *stream) {
    observe_one(stream);
    for (uint32_t i = 0; stream->legacy && i < streams.count; ++i) {
        struct sim__stream *other = stream_of(i);
        if (other != NULL && !is_gone(other) && other->device == stream->device &&
            sim__stream_is_ordered(other))
            observe_one(other);
    }
    sim__pools_observed();
}

void sim__order__observe_event(const struct sim__event *event) {
    const struct clock *clock = event_clock(event);
    if (clock != NULL)
        observe(clock);
    sim__pools_observed();
}

void sim__order__observe_device(const struct sim__device *device) {
    for (uint32_t i = 0; i < streams.count; ++i) {
        struct sim__stream *stream = stream_of(i);
        if (stream != NULL && (is_gone(stream) || stream->device == device->index))
            observe_one(stream);
    }
    sim__pools_observed();
}

static void knowers_clear(struct knowers *knowers) {
    for (uint32_t i = 0; i < knowers->count; ++i) {
        if (knowers->entries[i] != NULL)
            free(knowers->entries[i]->clock.entries);
        free(knowers->entries[i]);
    }
    free(knowers->entries);
    *knowers = (struct knowers){0};
}

void sim__order_clear(void) {
    BASE_CHECK_EQ(sim__order_count, 0);
    knowers_clear(&streams);
    knowers_clear(&events);
    free(host.entries);
    host = (struct clock){0};
}
