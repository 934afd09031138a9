// See patterns_live.h.
#include "workload/patterns_live.h"

#include <stdlib.h>
#include <string.h>

enum base_status workload_live_init(struct workload_live *live, const struct tensor_place *place,
                                    struct base_random random, int capacity) {
    *live = (struct workload_live){.place = *place, .random = random, .capacity = capacity};
    live->objects = calloc((size_t)capacity, sizeof *live->objects);
    if (live->objects == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %d objects", capacity);
    return workload_tally_begin(place, &live->tally);
}

void workload_live_deinit(struct workload_live *live) {
    for (int index = 0; index < live->count; ++index)
        tensor_release(&live->objects[index].tensor);
    tensor_release(&live->tally.sum);
    free(live->objects);
    *live = (struct workload_live){.count = 0};
}

enum base_status workload_live_grow(struct workload_live *live, int count,
                                    struct workload_live_sizes sizes) {
    enum base_status status = BASE_OK;
    BASE_CHECK_LE(count, live->capacity);
    while (live->count < count && status == BASE_OK) {
        const size_t bytes = base_random_log_between(&live->random, sizes.least, sizes.most);
        status = workload_object_make(&live->place, bytes,
                                      (int64_t)base_random_below(&live->random, 1000),
                                      &live->objects[live->count]);
        live->count += status == BASE_OK;
    }
    return status;
}

static int choose(struct workload_live *live, enum workload_live_order order) {
    if (order == WORKLOAD_LIVE_LAST) return live->count - 1;
    if (order == WORKLOAD_LIVE_FIRST) return 0;
    return (int)base_random_below(&live->random, (uint64_t)live->count);
}

enum base_status workload_live_shrink(struct workload_live *live, int count,
                                      enum workload_live_order order) {
    enum base_status status = BASE_OK;
    while (live->count > count && live->count > 0 && status == BASE_OK) {
        const int index = choose(live, order);
        struct workload_object *const object = &live->objects[index];
        status = workload_tally_add(&live->tally, object, ++live->dropped);
        tensor_release(&object->tensor);
        --live->count;
        memmove(object, object + 1, (size_t)(live->count - index) * sizeof *object);
    }
    return status;
}
