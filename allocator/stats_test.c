// The limits of streams (stats.h) in a state that only threads bring about by themselves.
#include "allocator/stats.h"

#include "allocator/core.h"
#include "allocator/stream.h"
#include "allocator/testing.h"

#define MIB BASE_MIB

// A stream has passed its limit and released its lock, and before it meets the others, one of those
// calls a meeting. What the limits have beyond the peak then is more than the others can give up:
// the caller gives the rest, though nobody asked it to.
static void a_meeting_takes_from_its_caller_what_others_cannot_give_up(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    const cudaStream_t handles[2] = {testing_stream(), testing_stream()};
    struct cca__stream *streams[2] = {NULL, NULL};
    int64_t limits[2][CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];
    int64_t peak[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];
    void *const first = testing_malloc(allocator, 20 * MIB, handles[0]);
    void *const second = testing_malloc(allocator, 20 * MIB, handles[1]);
    testing_free(allocator, first);
    cca_check(allocator);
    struct cca__device *const device = atomic_load(&cca__of(allocator)->devices[0]);
    for (size_t index = 0; index < device->stream_count; ++index)
        for (int each = 0; each < 2; ++each)
            if (device->by_handle[index]->handle == handles[each])
                streams[each] = device->by_handle[index];
    BASE_CHECK(streams[0] != NULL && streams[1] != NULL);
    for (int each = 0; each < 2; ++each)
        memcpy(limits[each], streams[each]->family_limit, sizeof limits[each]);
    memcpy(peak, device->peak, sizeof peak);
    // It passes its limits; and is put back to where it did not meet yet.
    void *const third = testing_malloc(allocator, 50 * MIB, handles[1]);
    const int64_t most = testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].peak;
    BASE_CHECK_EQ(most, 70 * MIB);
    cca__streams_lock_all(device);
    for (int each = 0; each < 2; ++each) {
        memcpy(streams[each]->family_limit, limits[each], sizeof limits[each]);
        cca__stats_update_limits_locked(streams[each]);
    }
    memcpy(device->peak, peak, sizeof peak);
    cca__stats_meet_locked(device, streams[0]);
    cca__streams_unlock_all(device);
    cca_check(allocator); // together the limits stay below the peaks
    // So no peak passes unseen.
    void *const fourth = testing_malloc(allocator, 20 * MIB, handles[0]);
    BASE_CHECK_EQ(testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].peak, 90 * MIB);
    testing_free(allocator, second);
    testing_free(allocator, third);
    testing_free(allocator, fourth);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(void) {
    a_meeting_takes_from_its_caller_what_others_cannot_give_up();
    return 0;
}
