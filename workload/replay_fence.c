// Which side stream plays the work that a deferred free waits for.
//
// An allocator looks at the events of one stream in order and stops at the first that is not
// complete. So two frees may share a side stream only if they complete in the order in which they
// were requested. Taking, for each, the side stream whose last completion is the latest that still
// fits uses the fewest streams.
#include "workload/replay_plan.h"

uint16_t workload__fences_assign(const uint64_t *keys, size_t count, uint16_t *side_streams,
                                 uint64_t *numbers) {
    uint64_t last_key[WORKLOAD__SIDE_STREAM_COUNT_MAX],
        fence_count[WORKLOAD__SIDE_STREAM_COUNT_MAX];
    uint16_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t best = WORKLOAD__SIDE_STREAM_NONE;
        for (uint16_t stream = 0; stream < used; stream++)
            if (last_key[stream] <= keys[i] &&
                (best == WORKLOAD__SIDE_STREAM_NONE || last_key[stream] > last_key[best]))
                best = stream;
        if (best == WORKLOAD__SIDE_STREAM_NONE && used < WORKLOAD__SIDE_STREAM_COUNT_MAX) {
            best = used++;
            fence_count[best] = 0;
        }
        side_streams[i] = best;
        numbers[i] = 0;
        if (best == WORKLOAD__SIDE_STREAM_NONE) continue;
        last_key[best] = keys[i];
        numbers[i] = ++fence_count[best];
    }
    return used;
}
