// Blocks used by several streams: which streams use a block (record_stream), and the events that
// tell when their work is done.
//
// A free of such a block records an event on every stream that uses it and puts the block aside;
// it becomes available when all of them are complete (event_poll.h).
#ifndef TIDEMARK_ALLOCATOR_STREAM_USE_H
#define TIDEMARK_ALLOCATOR_STREAM_USE_H

#include "allocator/core.h"

// The streams that use a block, by the number of their small pool, plus 1 for a use in a capture:
// each once of both kinds. In the arena use_records,
// named by cca__block.uses.
#define CCA__USES_PER_RECORD 26
struct cca__use_record {
    uint32_t next;   // more streams, or unused records; 0
    uint16_t count;  // of pools below
    uint16_t events; // of the first record: not complete yet. Written under the events lock
    uint16_t pools[CCA__USES_PER_RECORD];
    // Of the first record, while pending frees are counted (pending_frees.c), else 0, in unused
    // records too: its events that are complete, whether one lies behind an unfinished one, whether
    // the block was added. Guarded by the events lock.
    uint16_t complete;
    bool is_behind, is_counted;
};
_Static_assert(sizeof(struct cca__use_record) == 64, "a record of uses fills one cache line");
#define CCA__USE_RECORDS_MAX ((uint32_t)1 << 26)

static inline struct cca__use_record *cca__use_record_at(const struct cca *cca, uint32_t number) {
    return (struct cca__use_record *)(void *)cca->use_records.base + number;
}

// Adds a use to a block of STREAM, whose lock is held: the small pool's number of the stream that
// uses it, plus 1 for a use in a capture (deferral.h).
enum base_status cca__use_add_locked(struct cca *cca, struct cca__stream *stream,
                                     struct cca__block *block, uint16_t use) BASE_MUST_USE;

// The same where it is the block's first use and the stream has an unused record; else false.
static inline bool cca__use_add_first_locked(struct cca *cca, struct cca__stream *stream,
                                             struct cca__block *block, uint16_t use) {
    const uint32_t number = stream->unused_uses;
    if (block->uses != 0 || number == 0) return false;
    struct cca__use_record *const record = cca__use_record_at(cca, number);
    stream->unused_uses = record->next;
    record->next = 0;
    record->count = 1;
    record->pools[0] = use;
    block->uses = number;
    return true;
}

// Forgets a block's streams; they are none afterwards. The same lock held. The records stay with
// the stream for its next blocks.
static inline void cca__uses_forget_locked(struct cca *cca, struct cca__stream *stream,
                             struct cca__block *block) {
    for (uint32_t number = block->uses, next; number != 0; number = next) {
        struct cca__use_record *const record = cca__use_record_at(cca, number);
        next = record->next;
        record->next = stream->unused_uses;
        stream->unused_uses = number;
    }
    block->uses = 0;
}
// Gives the stream's unused records back. Its lock held.
void cca__uses_trim_locked(struct cca *cca, struct cca__stream *stream);

// Frees a block with uses, handed out at POINTER: records the events and lets it wait. The lock of
// its stream is held, and released here. If an event cannot be recorded the block stays with the
// caller.
enum base_status cca__free_used_locked(struct cca__stream *stream, void *pointer,
                                       uint32_t number) BASE_MUST_USE;

// Its steps, for frees that were put off (deferral.h). Records the events of a pending block's uses
// and queues them; on failure none is. The events lock held.
enum base_status cca__events_record_locked(struct cca__stream *stream,
                                           uint32_t number) BASE_MUST_USE;
// The same while captures may be under way. *is_captured: none is queued, since a stream of the
// uses is captured; it may have joined after it was last asked.
enum base_status cca__events_record_beside_locked(struct cca__stream *stream, uint32_t number,
                                                  bool *is_captured) BASE_MUST_USE;
// Tells of the free of a pending block. The events lock held: nobody completes it meanwhile.
void cca__free_observe(struct cca__stream *stream, uint32_t number);

// Events of the device's own, for one use each. The events lock held.
enum base_status cca__event_take_locked(struct cca__device *device,
                                        cudaEvent_t *event) BASE_MUST_USE;
void cca__event_keep_growing_locked(struct cca__device *device, cudaEvent_t event);
static inline void cca__event_keep_locked(struct cca__device *device, cudaEvent_t event) {
    if (__builtin_expect(device->spare_event_count == device->spare_event_capacity, 0))
        cca__event_keep_growing_locked(device, event);
    else
        device->spare_events[device->spare_event_count++] = event;
}

#endif
