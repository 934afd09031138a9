// cca_pending_frees: what frees wait for, found by asking the events.
//
// Three walks over the queues under the events lock: the first counts at each block how many of its
// events are complete and whether one lies behind an unfinished one, the second adds the blocks up,
// the third clears the marks.
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"

static struct cca__use_record *record_of(const struct cca *cca,
                                         const struct cca__event_queue *queue, size_t index) {
    const uint32_t number = cca__event_queue_at(queue, index)->block;
    return cca__use_record_at(cca, cca__block_at(cca, number)->uses);
}

static enum base_status ask_queue_locked(const struct cca__device *device,
                                         const struct cca__event_queue *queue) {
    bool is_behind = false;
    for (size_t index = 0; index < queue->count; ++index) {
        bool is_complete;
        const enum base_status status =
            cca__event_query(device, cca__event_queue_at(queue, index)->event, &is_complete);
        if (status != BASE_OK) return status;
        struct cca__use_record *const record = record_of(device->owner, queue, index);
        record->complete = (uint16_t)(record->complete + is_complete);
        if (is_behind) record->is_behind = true;
        if (!is_complete) is_behind = true;
    }
    return BASE_OK;
}

// A block is added at the first of its events.
static void add_queue_locked(const struct cca *cca, const struct cca__event_queue *queue,
                             struct cca_pending_frees *numbers) {
    for (size_t index = 0; index < queue->count; ++index) {
        const uint32_t number = cca__event_queue_at(queue, index)->block;
        struct cca__use_record *const record = record_of(cca, queue, index);
        const size_t bytes = cca__block_at(cca, number)->size;
        ++numbers->events;
        if (record->is_counted) continue;
        record->is_counted = true;
        ++numbers->blocks;
        numbers->bytes += bytes;
        const bool is_done = record->complete == record->events;
        if (record->is_behind) {
            ++numbers->behind_blocks;
            numbers->behind_bytes += bytes;
            numbers->stuck_blocks += is_done;
            numbers->stuck_bytes += is_done ? bytes : 0;
        } else if (is_done) {
            ++numbers->finished_blocks;
            numbers->finished_bytes += bytes;
        }
    }
}

static void clear_queue_locked(const struct cca *cca, const struct cca__event_queue *queue) {
    for (size_t index = 0; index < queue->count; ++index) {
        struct cca__use_record *const record = record_of(cca, queue, index);
        record->complete = 0;
        record->is_behind = record->is_counted = false;
    }
}

static void add_deferred_locked(struct cca__device *device, struct cca_pending_frees *numbers) {
    cca__lock_take(&device->captures_lock);
    for (uint32_t number = device->captures.first_deferred; number != 0;
         number = cca__block_at(device->owner, number)->link[2]) {
        ++numbers->deferred_blocks;
        numbers->deferred_bytes += cca__block_at(device->owner, number)->size;
    }
    cca__lock_release(&device->captures_lock);
    numbers->blocks += numbers->deferred_blocks;
    numbers->bytes += numbers->deferred_bytes;
}

enum base_status cca_pending_frees(struct allocator *allocator, int ordinal,
                                   struct cca_pending_frees *numbers) {
    struct cca *const cca = cca__of(allocator);
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "pending frees", &device);
    if (status != BASE_OK) return status;
    struct cca_pending_frees counted = {0};
    cca__lock_take(&device->events_lock);
    for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index)
        status = ask_queue_locked(device, &device->by_handle[index]->queue);
    for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index)
        add_queue_locked(cca, &device->by_handle[index]->queue, &counted);
    add_deferred_locked(device, &counted);
    for (size_t index = 0; index < device->stream_count; ++index)
        clear_queue_locked(cca, &device->by_handle[index]->queue);
    cca__lock_release(&device->events_lock);
    if (status == BASE_OK) *numbers = counted;
    return status;
}
