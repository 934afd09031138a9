// See reserve_class.h. The first that is set: the entry of the class in
// expandable_segments_reserve_by_class, expandable_segments_reserve, the program's default of the
// class, nine eighths of the device.
#include "allocator/reserve_class.h"

#include "allocator/device.h"
#include "allocator/warning.h"

#include <stdlib.h>
#include <string.h>

// The class of that name, made if there is none; NULL without host memory. reserve_lock held.
static struct cca__reserve_class_memory *find_class(struct cca *cca, const char *name) {
    for (struct cca__reserve_class_memory *each = cca->reserve_classes; each != NULL;
         each = each->next)
        if (strcmp(each->name, name) == 0) return each;
    struct cca__reserve_class_memory *const made = calloc(1, sizeof *made + strlen(name) + 1);
    if (made == NULL) return NULL;
    strcpy(made->name, name);
    made->next = cca->reserve_classes;
    cca->reserve_classes = made;
    return made;
}

// The program's default of a class; 0 if it has none.
static double default_of(struct cca *cca, const char *name) {
    cca__lock_take(&cca->reserve_lock);
    const struct cca__reserve_class_memory *const class = find_class(cca, name);
    const double fraction = class != NULL ? class->fraction : 0.0;
    cca__lock_release(&cca->reserve_lock);
    return fraction;
}

static void warn_once(struct cca *cca, const char *name) {
    cca__lock_take(&cca->reserve_lock);
    struct cca__reserve_class_memory *const class = find_class(cca, name);
    const bool is_first = class != NULL && !class->warned;
    if (is_first) class->warned = true;
    cca__lock_release(&cca->reserve_lock);
    if (is_first)
        cca__warn(&cca->warnings,
                  "expandable_segments reserve class '%s' has no configured reserve in "
                  "expandable_segments_reserve_by_class; using the default reserve.",
                  name);
}

size_t cca__reserve_of(const struct cca__stream *stream, bool *configured) {
    struct cca *const cca = stream->device->owner;
    const size_t total = stream->device->total_bytes, most = total + total / 8;
    const char *const class = stream->home->reserve_class;
    bool own = false;
    size_t reserve = cca__config_reserve(&cca->config, class, total, &own);
    if (reserve != 0 && class != NULL && !own) warn_once(cca, class);
    if (reserve == 0 && class != NULL) reserve = (size_t)(default_of(cca, class) * (double)total);
    *configured = reserve != 0;
    return reserve != 0 && reserve < most ? reserve : most;
}

void cca__reserve_classes_deinit(struct cca *cca) {
    for (struct cca__reserve_class_memory *each = cca->reserve_classes, *next; each != NULL;
         each = next) {
        next = each->next;
        free(each);
    }
}

enum base_status cca_set_stream_reserve_class(struct allocator *allocator, int ordinal,
                                              cudaStream_t handle, const char *name) {
    struct cca__device *device;
    struct cca__stream *stream;
    enum base_status status = cca__device_of(allocator, ordinal, "reserve classes", &device);
    if (status == BASE_OK) status = cca__stream_get(device, handle, &stream);
    if (status != BASE_OK) return status;
    char *copy = NULL;
    if (name != NULL && name[0] != '\0') {
        copy = strdup(name);
        if (copy == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for a reserve class");
    }
    cca__lock_take(&device->growth_lock);
    free(stream->reserve_class);
    stream->reserve_class = copy;
    cca__lock_release(&device->growth_lock);
    return BASE_OK;
}

enum base_status cca_set_reserve_class_default(struct allocator *allocator, const char *name,
                                               double fraction) {
    struct cca *const cca = cca__of(allocator);
    if (name == NULL || name[0] == '\0')
        return base_status_set(BASE_INVALID_VALUE, "a reserve class without a name has no default");
    if (!(fraction > 0.0 && fraction <= 1.125))
        return base_status_set(BASE_INVALID_VALUE,
                               "reserve class '%s': %g is no part of a device, more than 0 and at "
                               "most 1.125",
                               name, fraction);
    enum base_status status = cca__require_caching(allocator, "reserve classes");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->reserve_lock);
    struct cca__reserve_class_memory *const class = find_class(cca, name);
    if (class != NULL) class->fraction = fraction;
    cca__lock_release(&cca->reserve_lock);
    if (class != NULL) return BASE_OK;
    return base_status_set(BASE_HOST_MEMORY, "out of host memory for a reserve class");
}
