// What a refused or failed call must leave as it was: everything that the
// allocator tells of itself, and what the device says is used.
#ifndef TIDEMARK_ALLOCATOR_TESTING_STATE_H
#define TIDEMARK_ALLOCATOR_TESTING_STATE_H

#include "allocator/testing.h"

#include <ctype.h>

#define TESTING_STATE_DEVICES_MAX 4

struct testing_state {
    int device_count;
    uint64_t used_bytes[TESTING_STATE_DEVICES_MAX];
    struct allocator_stats stats[TESTING_STATE_DEVICES_MAX];
    struct allocator_snapshot snapshot;
};

// Makes the allocator meet the devices below DEVICE_COUNT, if it has not yet.
static inline void testing_state_init(struct testing_state *state, struct allocator *allocator,
                                      int device_count) {
    state->device_count = device_count;
    for (int device = 0; device < device_count; ++device) {
        state->used_bytes[device] = sim_used_bytes(device);
        BASE_CHECK_EQ(allocator_stats(allocator, device, &state->stats[device]), BASE_OK);
    }
    BASE_CHECK_EQ(allocator_snapshot(allocator, &state->snapshot), BASE_OK);
}

static inline void testing_state_deinit(struct testing_state *state) {
    allocator_snapshot_deinit(&state->snapshot);
}

static inline void testing_state_is(const struct testing_state *before,
                                    struct allocator *allocator) {
    struct testing_state now;
    testing_state_init(&now, allocator, before->device_count);
    for (int device = 0; device < now.device_count; ++device) {
        BASE_CHECK_EQ(now.used_bytes[device], before->used_bytes[device]);
        BASE_CHECK_EQ(memcmp(&now.stats[device], &before->stats[device], sizeof now.stats[device]),
                      0);
    }
    BASE_CHECK_EQ(now.snapshot.segment_count, before->snapshot.segment_count);
    BASE_CHECK_EQ(now.snapshot.block_count, before->snapshot.block_count);
    for (size_t index = 0; index < now.snapshot.segment_count; ++index) {
        const struct allocator_snapshot_segment *const a = &now.snapshot.segments[index],
                                                       *const b = &before->snapshot.segments[index];
        BASE_CHECK(a->address == b->address);
        BASE_CHECK_EQ(a->total_size, b->total_size);
        BASE_CHECK_EQ(a->registration, b->registration);
        BASE_CHECK_EQ(a->block_count, b->block_count);
    }
    for (size_t index = 0; index < now.snapshot.block_count; ++index) {
        const struct allocator_snapshot_block *const a = &now.snapshot.blocks[index],
                                                     *const b = &before->snapshot.blocks[index];
        BASE_CHECK(a->address == b->address);
        BASE_CHECK_EQ(a->size, b->size);
        BASE_CHECK_EQ(a->requested_size, b->requested_size);
        BASE_CHECK_EQ(a->state, b->state);
    }
    testing_state_deinit(&now);
}

// A failure says what happened in one line: some words, nothing but printable
// characters.
static inline void testing_message_is_a_sentence(void) {
    const char *const text = base_status_message();
    BASE_CHECK_GT(strlen(text), 10);
    BASE_CHECK(strchr(text, ' ') != NULL);
    for (const char *at = text; *at != '\0'; ++at)
        BASE_CHECK(isprint((unsigned char)*at) || (unsigned char)*at >= 0x80);
}

#endif
