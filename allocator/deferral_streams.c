// See deferral_streams.h.
#include "allocator/deferral_streams.h"

#include "allocator/capture_caller.h"
#include "allocator/device.h"
#include "allocator/stream_use.h"

#include <stdlib.h>

static bool is_asked_for(uint16_t use, enum cca__which_uses which) {
    return which == CCA__ALL_USES || (use % 2 != 0) == (which == CCA__CAPTURED_USES);
}

bool cca__has_uses(const struct cca *cca, const struct cca__block *block,
                   enum cca__which_uses which) {
    for (uint32_t number = block->uses; number != 0;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count; ++index)
            if (is_asked_for(record->pools[index], which)) return true;
    }
    return false;
}

bool cca__has_use(const struct cca *cca, const struct cca__block *block, uint16_t use) {
    for (uint32_t number = block->uses; number != 0;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count; ++index)
            if (record->pools[index] == use) return true;
    }
    return false;
}

//------------------------------------------------------------------------------------------------

void cca__block_streams_deinit(struct cca__block_streams *streams) {
    if (streams->handles != streams->few) free(streams->handles);
}

static enum base_status push(struct cca__block_streams *streams, cudaStream_t handle) {
    for (size_t index = 0; index < streams->count; ++index)
        if (streams->handles[index] == handle) return BASE_OK;
    if (streams->count == streams->capacity) {
        cudaStream_t *const more = malloc(2 * streams->capacity * sizeof *more);
        if (more == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams",
                                   2 * streams->capacity);
        for (size_t index = 0; index < streams->count; ++index)
            more[index] = streams->handles[index];
        cca__block_streams_deinit(streams);
        streams->handles = more;
        streams->capacity *= 2;
    }
    streams->handles[streams->count++] = handle;
    return BASE_OK;
}

enum base_status cca__block_streams_init(struct cca *cca, const struct cca__block *block,
                                         enum cca__which_uses which,
                                         struct cca__block_streams *streams) {
    streams->handles = streams->few;
    streams->capacity = sizeof streams->few / sizeof streams->few[0];
    streams->count = 0;
    enum base_status status = push(streams, cca__stream_of_block(cca, block)->handle);
    for (uint32_t number = block->uses; number != 0 && status == BASE_OK;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count && status == BASE_OK; ++index)
            if (is_asked_for(record->pools[index], which))
                status = push(streams, cca__stream_at(cca, record->pools[index] / 2)->handle);
    }
    if (status != BASE_OK) cca__block_streams_deinit(streams);
    return status;
}

enum base_status cca__block_streams_find_captured(const struct cca__block_streams *streams,
                                                  size_t first, bool *found) {
    enum base_status status = BASE_OK;
    *found = false;
    for (size_t index = first; index < streams->count && status == BASE_OK && !*found; ++index) {
        enum cca__caller caller = CCA__OUTSIDE;
        status = cca__stream_caller(streams->handles[index], &caller);
        *found = caller != CCA__OUTSIDE;
    }
    return status;
}

enum base_status cca__block_streams_keep_captured(struct cca__block_streams *streams,
                                                  bool *some_left) {
    enum base_status status = BASE_OK;
    size_t kept = 1;
    for (size_t index = 1; index < streams->count && status == BASE_OK; ++index) {
        enum cca__caller caller = CCA__OUTSIDE;
        status = cca__stream_caller(streams->handles[index], &caller);
        if (caller != CCA__OUTSIDE) streams->handles[kept++] = streams->handles[index];
    }
    *some_left = kept < streams->count;
    streams->count = kept;
    return status;
}
