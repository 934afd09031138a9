// What the host knows. Under a schedule that doubts, a query may say "not ready" of work that is
// complete, as CUDA allows; but not once the program has seen its completion, by a wait, by a
// successful query, or by seeing something complete that came after it. So each stream keeps what
// its operations waited for, and up to which operation the host knows of it.
#include "simulator/engine.h"

#include <stdlib.h>
#include <string.h>

// Edges of a stream are thrown away when the host learns of it. A stream that the host never looks
// at keeps this many; older ones count as known, so they are not doubted any more.
#define EDGES_MAX 256

struct sim__edge {
    uint64_t sequence;
    struct sim__position position;
};

static const size_t link_offset =
    offsetof(struct sim__stream, observation) + offsetof(struct sim__observation, link);

// Positions that the host knows of, whose own edges are still to be followed.
static struct sim__position *found;
static size_t found_count, found_size;

static void found_push(struct sim__position position) {
    if (found_count == found_size) {
        found_size = found_size == 0 ? 16 : 2 * found_size;
        found = realloc(found, found_size * sizeof *found);
        if (found == NULL)
            sim__host_limit("out of host memory for %zu edges", found_size);
    }
    found[found_count++] = position;
}

static void edges_take(struct sim__observation *observation, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        found_push(observation->edges[observation->edge_first + i].position);
    observation->edge_first += count;
    observation->edge_count -= count;
}

static void stream_observe(struct sim__stream *stream, uint64_t sequence) {
    struct sim__observation *observation = &stream->observation;
    if (observation->sequence >= sequence)
        return;
    observation->sequence = sequence;
    if (sequence == stream->submitted && observation->link.previous != NULL)
        sim__list_remove(stream, link_offset);
    uint32_t known = 0;
    while (known < observation->edge_count &&
           observation->edges[observation->edge_first + known].sequence <= sequence)
        ++known;
    edges_take(observation, known);
}

static void follow(void) {
    while (found_count > 0) {
        const struct sim__position position = found[--found_count];
        stream_observe(position.stream, position.sequence);
    }
}

void sim__observe(struct sim__position position) {
    if (position.stream == NULL)
        return;
    stream_observe(position.stream, position.sequence);
    follow();
}

void sim__observe_submitted(struct sim__stream *stream) {
    if (stream->observation.link.previous == NULL)
        sim__list_add(&sim__state.devices[stream->device].unobserved, stream, link_offset);
}

// Room for one more edge.
static void edges_grow(struct sim__observation *observation) {
    if (observation->edge_count == EDGES_MAX) {
        edges_take(observation, EDGES_MAX / 2);
        follow();
    }
    if (observation->edge_first > 0) {
        memmove(observation->edges, observation->edges + observation->edge_first,
                observation->edge_count * sizeof *observation->edges);
        observation->edge_first = 0;
    }
    if (observation->edge_count <= observation->edge_size / 2 && observation->edge_size > 0)
        return;
    observation->edge_size = observation->edge_size == 0 ? 8 : 2 * observation->edge_size;
    observation->edges =
        realloc(observation->edges, observation->edge_size * sizeof *observation->edges);
    if (observation->edges == NULL)
        sim__host_limit("out of host memory for %u edges", observation->edge_size);
}

void sim__observe_edge(struct sim__stream *stream, uint64_t sequence,
                       struct sim__position position) {
    struct sim__observation *observation = &stream->observation;
    if (observation->edge_first + observation->edge_count == observation->edge_size)
        edges_grow(observation);
    observation->edges[observation->edge_first + observation->edge_count++] =
        (struct sim__edge){sequence, position};
}

void sim__observe_reset(struct sim__stream *stream) {
    struct sim__observation *observation = &stream->observation;
    if (observation->link.previous != NULL)
        sim__list_remove(stream, link_offset);
    observation->sequence = stream->completed;
    observation->edge_first = observation->edge_count = 0;
    if (sim__stream_pending(stream))
        sim__observe_submitted(stream);
}

void sim__observe_forget(struct sim__stream *stream) {
    stream_observe(stream, stream->completed);
    follow();
    BASE_CHECK(stream->observation.link.previous == NULL);
}
