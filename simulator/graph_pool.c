// Device memory for graphs. Each device has a pool of slabs, pieces of physical memory that were
// taken for a region once and stay with the pool until they are trimmed. A slab is mapped at every
// region that has it; regions share one as graphs may: if their launches cannot run at the same
// time, because they are in one stream or those of before are complete, and nothing in the other
// regions outlives its launch.
//
// A region keeps its slab from launch to launch while it can. If another region's launches may
// still use the slab, it moves to another one; if launches of its own may still run, it cannot
// move, and the launch waits for the other region's. Also where memory is short a launch waits for
// those that have it, and slabs that nobody needs go back to the device.
#include "simulator/graph_memory.h"

#include "base/size.h"
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/plant.h"
#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/virtual_memory.h"

#include <stdlib.h>

struct sim__graph_slab {
    struct sim__backing backing;
    int device;
    uint64_t attached; // the attachment for which it was taken last: no two regions of it
    struct sim__graph_region *regions;
    struct sim__graph_slab *next;
};

static struct {
    struct sim__graph_slab *slabs;
    uint64_t reserved, reserved_high; // all slabs
    uint64_t used, used_high;         // those that a region has
} pools[SIM_DEVICE_COUNT_MAX];

static uint64_t attachment_count;
static enum sim_call attaching_call;

// --- Which slab a region has ---

static struct sim__segment *segment_of(struct sim__graph_region *region) {
    return &region->segment;
}

static void unmap(struct sim__graph_region *region) {
    struct sim__graph_slab *slab = region->slab;
    if (slab == NULL)
        return;
    sim__physical_unmap(region->segment.range.start, region->segment.range.size);
    segment_of(region)->backing = (struct sim__backing){0};
    *region->previous = region->next;
    if (region->next != NULL)
        region->next->previous = region->previous;
    region->slab = NULL;
    if (slab->regions == NULL)
        pools[slab->device].used -= slab->backing.size;
}

static void map(struct sim__graph_region *region, struct sim__graph_slab *slab) {
    unmap(region);
    if (slab->regions == NULL) {
        pools[slab->device].used += slab->backing.size;
        if (pools[slab->device].used > pools[slab->device].used_high)
            pools[slab->device].used_high = pools[slab->device].used;
    }
    region->slab = slab;
    region->next = slab->regions;
    region->previous = &slab->regions;
    if (slab->regions != NULL)
        slab->regions->previous = &region->next;
    slab->regions = region;
    region->segment.backing = slab->backing;
    sim__physical_map(&sim__state.devices[slab->device], region->segment.range.start,
                      &slab->backing, region->segment.range.size, true);
}

static struct sim__graph_slab *slab_make(struct sim__device *device, uint64_t size) {
    struct sim__backing backing;
    if (!sim__physical_take(device, size, &backing))
        return NULL;
    struct sim__graph_slab *slab = calloc(1, sizeof *slab);
    if (slab == NULL)
        sim__host_limit("out of host memory for memory of graphs");
    slab->backing = backing;
    slab->device = device->index;
    slab->next = pools[device->index].slabs;
    pools[device->index].slabs = slab;
    pools[device->index].reserved += size;
    if (pools[device->index].reserved > pools[device->index].reserved_high)
        pools[device->index].reserved_high = pools[device->index].reserved;
    sim__cost_pages(attaching_call, size / SIM_PAGE_BYTES);
    return slab;
}

static void slab_end(struct sim__graph_slab *slab) {
    struct sim__graph_slab **link = &pools[slab->device].slabs;
    while (*link != slab)
        link = &(*link)->next;
    *link = slab->next;
    while (slab->regions != NULL)
        unmap(slab->regions);
    pools[slab->device].reserved -= slab->backing.size;
    sim__cost_pages(SIM_CALL_POOL_TRIM, slab->backing.size / SIM_PAGE_BYTES);
    sim__physical_give(&sim__state.devices[slab->device], &slab->backing);
    free(slab);
}

// --- Regions ---

struct sim__graph_region *sim__graph_region_make(int device, uint64_t size, uint32_t readers,
                                                 uint32_t writers) {
    if (size > sim__state.options.address_bytes)
        return NULL;
    size = base_round_up(size, SIM_PAGE_BYTES);
    if (!sim__address_budget_take(size))
        return NULL;
    struct sim__graph_region *region = calloc(1, sizeof *region);
    if (region == NULL)
        sim__host_limit("out of host memory for memory of graphs");
    region->taken = size + SIM_PAGE_BYTES; // regions never touch
    region->segment = (struct sim__segment){
        .range = {sim__address_choose(&sim__state.devices[device], region->taken), size},
        .size = size,
        .device = device,
        .kind = SIM__SEGMENT_GRAPH,
        .readers = readers,
        .writers = writers,
    };
    sim__range_insert(&sim__state.segments, &region->segment.range);
    return region;
}

void sim__graph_region_end(struct sim__graph_region *region) {
    const struct sim__range range = region->segment.range;
    if (sim__checked())
        sim__checked_gone(range.start, range.size, "freed with its graph");
    unmap(region);
    sim__range_remove(&sim__state.segments, &region->segment.range);
    sim__address_give(&sim__state.devices[region->segment.device], range.start, region->taken);
    sim__address_budget_give(range.size);
    free(region->users);
    free(region);
}

static void users_prune(struct sim__graph_region *region) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < region->user_count; ++i)
        if (!sim__position_complete(region->users[i]))
            region->users[kept++] = region->users[i];
    region->user_count = kept;
}

// A later position in the same stream stands for the earlier ones.
void sim__graph_region_use(struct sim__graph_region *region, struct sim__position position) {
    for (uint32_t i = 0; i < region->user_count; ++i) {
        if (region->users[i].stream == position.stream) {
            region->users[i] = position;
            return;
        }
    }
    users_prune(region);
    if (region->user_count == region->user_size) {
        region->user_size = region->user_size == 0 ? 2 : 2 * region->user_size;
        region->users = realloc(region->users, region->user_size * sizeof *region->users);
        if (region->users == NULL)
            sim__host_limit("out of host memory for memory of graphs");
    }
    region->users[region->user_count++] = position;
}

// --- Who may have a slab ---

static bool is_idle(const struct sim__graph_region *region) {
    for (uint32_t i = 0; i < region->user_count; ++i)
        if (!sim__position_complete(region->users[i]))
            return false;
    return region->live_count == 0;
}

// Whether what has REGION's memory is over before a launch in STREAM begins.
static bool is_before(const struct sim__graph_region *region, const struct sim__stream *stream) {
    for (uint32_t i = 0; i < region->user_count; ++i)
        if (region->users[i].stream != stream && !sim__position_complete(region->users[i]))
            return false;
    return region->live_count == 0;
}

struct request {
    struct sim__graph_region *region;
    bool escapes;
    const struct sim__stream *stream;
};

// A region whose memory another one takes for longer than a launch must be able to move.
static bool may_have(const struct request *request, const struct sim__graph_slab *slab) {
    if (slab->attached == attachment_count)
        return false;
    for (const struct sim__graph_region *other = slab->regions; other != NULL; other = other->next)
        if (other != request->region &&
            !(request->escapes ? is_idle(other) : is_before(other, request->stream)))
            return false;
    return true;
}

// Whether waiting would do.
static bool may_have_later(const struct request *request, const struct sim__graph_slab *slab) {
    if (slab->attached == attachment_count)
        return false;
    for (const struct sim__graph_region *other = slab->regions; other != NULL; other = other->next)
        if (other != request->region && (other->live_count > 0 || request->escapes))
            return false;
    return true;
}

static void wait_for_others(const struct request *request, const struct sim__graph_slab *slab,
                            void (*wait)(struct sim__position position)) {
    for (const struct sim__graph_region *other = slab->regions; other != NULL; other = other->next)
        for (uint32_t i = 0; other != request->region && i < other->user_count; ++i)
            wait(other->users[i]);
}

// The smallest from SIZE to MOST bytes.
static struct sim__graph_slab *slab_find(const struct request *request, uint64_t most,
                                         bool (*may)(const struct request *request,
                                                     const struct sim__graph_slab *slab)) {
    const uint64_t size = request->region->segment.range.size;
    struct sim__graph_slab *best = NULL;
    for (struct sim__graph_slab *slab = pools[request->region->segment.device].slabs; slab != NULL;
         slab = slab->next)
        if (slab->backing.size >= size && slab->backing.size <= most &&
            (best == NULL || slab->backing.size < best->backing.size) && may(request, slab))
            best = slab;
    return best;
}

// --- Giving back ---

static bool is_needed(const struct sim__graph_slab *slab) {
    if (slab->attached == attachment_count)
        return true;
    for (const struct sim__graph_region *region = slab->regions; region != NULL;
         region = region->next)
        if (!is_idle(region))
            return true;
    return false;
}

static void trim(int device) {
    struct sim__graph_slab *next;
    for (struct sim__graph_slab *slab = pools[device].slabs; slab != NULL; slab = next) {
        next = slab->next;
        if (!is_needed(slab))
            slab_end(slab);
    }
}

void sim__graph_pools_clear(void) {
    for (int i = 0; i < SIM_DEVICE_COUNT_MAX; ++i) {
        while (pools[i].slabs != NULL)
            slab_end(pools[i].slabs);
        pools[i].reserved_high = pools[i].used_high = 0;
    }
}

// --- Attaching ---

// At the cost of what the pool keeps, and of descriptors of memory that are closed.
static struct sim__graph_slab *slab_make_at_cost(struct sim__device *device, uint64_t size) {
    trim(device->index);
    sim__exports_check();
    return slab_make(device, size);
}

static struct sim__graph_slab *slab_for(const struct request *request,
                                        void (*wait)(struct sim__position position)) {
    struct sim__device *device = &sim__state.devices[request->region->segment.device];
    const uint64_t size = request->region->segment.range.size;
    struct sim__graph_slab *slab = slab_find(request, 2 * size, may_have);
    if (slab == NULL)
        slab = slab_make(device, size);
    if (slab == NULL)
        slab = slab_find(request, UINT64_MAX, may_have);
    if (slab == NULL)
        slab = slab_make_at_cost(device, size);
    if (slab == NULL && (slab = slab_find(request, UINT64_MAX, may_have_later)) != NULL)
        wait_for_others(request, slab, wait);
    return slab;
}

// What used the region before comes first, whoever launched it.
static bool attach(const struct request *request, void (*wait)(struct sim__position position)) {
    struct sim__graph_region *region = request->region;
    for (uint32_t i = 0; i < region->user_count; ++i)
        wait(region->users[i]);
    struct sim__graph_slab *slab = region->slab;
    if (slab == NULL || !may_have(request, slab)) {
        if (slab == NULL || is_idle(region))
            slab = slab_for(request, wait);
        else if (may_have_later(request, slab))
            wait_for_others(request, slab, wait);
        else
            slab = NULL;
        if (slab == NULL)
            return false;
        if (slab != region->slab)
            map(region, slab);
    }
    slab->attached = attachment_count;
    return true;
}

bool sim__graph_regions_attach(const struct sim__exec_region *regions, uint32_t count,
                               const struct sim__stream *stream, enum sim_call call,
                               void (*wait)(struct sim__position position)) {
    ++attachment_count;
    attaching_call = call;
    bool attached = true;
    for (uint32_t i = 0; i < count && attached; ++i) {
        const struct request request = {regions[i].region, regions[i].escapes, stream};
        attached = attach(&request, wait);
    }
    ++attachment_count; // none is being attached
    return attached;
}

// --- The calls ---

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__capture_unsafe();
    if (error == cudaSuccess && !is_device(device))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess && !sim__planted(SIM__PLANT_GRAPH_TRIM))
        trim(device);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t get_attribute_locked(int device, enum cudaGraphMemAttributeType attribute,
                                        uint64_t *value) {
    if (!is_device(device))
        return cudaErrorInvalidDevice;
    if (value == NULL)
        return cudaErrorInvalidValue;
    switch (attribute) {
    case cudaGraphMemAttrUsedMemCurrent: *value = pools[device].used; return cudaSuccess;
    case cudaGraphMemAttrUsedMemHigh: *value = pools[device].used_high; return cudaSuccess;
    case cudaGraphMemAttrReservedMemCurrent: *value = pools[device].reserved; return cudaSuccess;
    case cudaGraphMemAttrReservedMemHigh: *value = pools[device].reserved_high; return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

// High marks can be set to zero, which means to what is now.
static cudaError_t set_attribute_locked(int device, enum cudaGraphMemAttributeType attribute,
                                        const uint64_t *value) {
    if (!is_device(device))
        return cudaErrorInvalidDevice;
    if (value == NULL || *value != 0)
        return cudaErrorInvalidValue;
    if (attribute == cudaGraphMemAttrUsedMemHigh)
        pools[device].used_high = pools[device].used;
    else if (attribute == cudaGraphMemAttrReservedMemHigh)
        pools[device].reserved_high = pools[device].reserved;
    else
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = get_attribute_locked(device, attribute, value);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = set_attribute_locked(device, attribute, value);
    return sim__call_end(SIM__CALL_OTHER, error);
}
