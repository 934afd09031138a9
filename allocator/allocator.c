// What belongs to the interface itself, whatever stands behind it.
#include "allocator/allocator.h"

#include "allocator/settings.h"

#include <stdlib.h>

const char *allocator_action_name(enum allocator_action action) {
    static const char *const names[] = {
#define ALLOCATOR_ACTION_NAME(name, text) [ALLOCATOR_##name] = text,
        ALLOCATOR_ACTION_LIST(ALLOCATOR_ACTION_NAME)
#undef ALLOCATOR_ACTION_NAME
    };
    return (unsigned)action < ALLOCATOR_ACTION_COUNT ? names[action] : "unknown";
}

void allocator_snapshot_deinit(struct allocator_snapshot *snapshot) {
    free(snapshot->segments);
    free(snapshot->blocks);
    free(snapshot->traces);
    free(snapshot->entries);
    free(snapshot->stacks);
    free(snapshot->frames);
    if (snapshot->settings != NULL) cca_settings_deinit(snapshot->settings);
    free(snapshot->settings);
    *snapshot = (struct allocator_snapshot){0};
}
