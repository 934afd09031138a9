// Allocations of graphs, and what launches and the program's frees do to them. graph_memory.h says
// how they relate to addresses and memory.
#include "simulator/graph_memory.h"

#include "base/size.h"
#include "simulator/checked.h"
#include "simulator/plant.h"
#include "simulator/race.h"

#include <stdlib.h>

#define ALLOCATION_ALIGNMENT 512

static struct sim__graph_allocation *allocations; // all, the last one first

// --- Allocations ---

struct sim__graph_allocation *
sim__graph_allocation_retain(struct sim__graph_allocation *allocation) {
    if (allocation != NULL)
        ++allocation->references;
    return allocation;
}

static void region_drop(struct sim__graph_region *region) {
    if (--region->references == 0)
        sim__graph_region_end(region);
}

static void allocation_unmake(struct sim__graph_allocation *allocation) {
    sim__range_remove(&sim__state.blocks, &allocation->block.range);
    region_drop(allocation->region);
    allocation->region = NULL;
    allocation->live = false;
}

void sim__graph_allocation_release(struct sim__graph_allocation *allocation) {
    if (allocation == NULL || --allocation->references > 0)
        return;
    if (allocation->region != NULL)
        allocation_unmake(allocation);
    *allocation->previous = allocation->next;
    if (allocation->next != NULL)
        allocation->next->previous = allocation->previous;
    free(allocation->freeing_graphs);
    free(allocation->descriptors);
    free(allocation);
}

void sim__graph_memory_clear(void) {
    struct sim__graph_allocation *next;
    for (struct sim__graph_allocation *allocation = allocations; allocation != NULL;
         allocation = next) {
        const bool was_live = allocation->live;
        next = allocation->next;
        if (allocation->region != NULL)
            allocation_unmake(allocation);
        if (was_live)
            sim__graph_allocation_release(allocation);
    }
    sim__graph_pools_clear();
}

// A place in the region where the graph's last allocation is, or in a new one.
static struct sim__graph_region *region_for(const struct sim__graph *graph, int device,
                                            uint64_t size, uint32_t readers, uint32_t writers) {
    struct sim__graph_region *region = graph->region;
    if (region != NULL && region->segment.device == device &&
        region->segment.readers == readers && region->segment.writers == writers &&
        size <= region->segment.range.size - region->used)
        return region;
    return sim__graph_region_make(device, size, readers, writers);
}

struct sim__graph_allocation *sim__graph_allocation_make(const struct sim__graph *graph,
                                                         int device, uint64_t size,
                                                         uint32_t readers, uint32_t writers) {
    const uint64_t taken = base_round_up(size, ALLOCATION_ALIGNMENT);
    struct sim__graph_region *region = region_for(graph, device, taken, readers, writers);
    if (region == NULL)
        return NULL;
    struct sim__graph_allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL)
        sim__host_limit("out of host memory for memory of graphs");
    allocation->references = 1;
    allocation->start = region->segment.range.start + region->used;
    allocation->size = size;
    allocation->graph = graph->number;
    allocation->region = region;
    allocation->block = (struct sim__block){
        .range = {allocation->start, taken}, .size = size, .graph = allocation};
    region->used += taken;
    ++region->references;
    sim__range_insert(&sim__state.blocks, &allocation->block.range);
    allocation->next = allocations;
    allocation->previous = &allocations;
    if (allocations != NULL)
        allocations->previous = &allocation->next;
    allocations = allocation;
    return allocation;
}

// --- The program frees ---

static void program_free_run(void *argument, bool discarded) {
    struct sim__graph_allocation *allocation = argument;
    if (!discarded && sim__checked())
        sim__checked_poison(allocation->start, allocation->size, SIM__POISON_FREED);
    sim__graph_allocation_release(allocation);
}

static void live_end(struct sim__graph_allocation *allocation) {
    allocation->live = false;
    --allocation->region->live_count;
}

cudaError_t sim__graph_allocation_free(struct sim__graph_allocation *allocation,
                                       struct sim__stream *stream) {
    if (!allocation->live) {
        if (sim__checked())
            sim__misuse("0x%llx is memory of a graph, and not allocated now",
                        (unsigned long long)allocation->start);
        return cudaErrorInvalidValue;
    }
    live_end(allocation);
    if (stream == NULL) {
        if (sim__race_is_on())
            sim__race_free(allocation->start, allocation->size, NULL);
        program_free_run(allocation, false);
        return cudaSuccess;
    }
    struct sim__graph_region *region = allocation->region;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaFreeAsync", program_free_run, allocation},
    };
    // The operation may run, and drop the region, within the submission.
    const uint64_t start = allocation->start, size = allocation->size;
    ++region->references;
    sim__graph_region_use(region, sim__engine_submit(stream, &operation,
                                                     (struct sim__position){0}));
    region_drop(region);
    if (sim__race_is_on())
        sim__race_free(start, size, stream);
    return cudaSuccess;
}

// --- Executables ---

static void *list_make(size_t count, size_t size) {
    void *list = count == 0 ? NULL : calloc(count, size);
    if (count > 0 && list == NULL)
        sim__host_limit("out of host memory for memory of graphs");
    return list;
}

static void region_note(struct sim__exec_memory *memory, struct sim__graph_region *region,
                        bool escapes) {
    if (region->noted == memory) {
        memory->regions[region->place].escapes |= escapes;
        return;
    }
    region->noted = memory;
    region->place = memory->region_count++;
    memory->regions[region->place] = (struct sim__exec_region){region, escapes};
}

// One of each allocation's nodes stands for it: the first that finds a balance that is not 0 and
// clears it; nodes of allocations that are made and freed find 0, and count for the region alone.
cudaError_t sim__exec_memory_create(struct sim__exec *exec) {
    size_t count = 0;
    exec->memory = NULL;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        if (exec->nodes[i].allocation == NULL)
            continue;
        exec->nodes[i].allocation->balance = 0;
        exec->nodes[i].allocation->region->noted = NULL; // of one that is gone
        ++count;
    }
    if (count == 0)
        return cudaSuccess;
    struct sim__exec_memory *memory = exec->memory = list_make(1, sizeof *memory);
    memory->regions = list_make(count, sizeof *memory->regions);
    memory->made = list_make(count, sizeof(struct sim__graph_allocation *));
    memory->ended = list_make(count, sizeof(struct sim__graph_allocation *));
    for (uint32_t i = 0; i < exec->node_count; ++i)
        if (exec->nodes[i].allocation != NULL)
            exec->nodes[i].allocation->balance +=
                exec->nodes[i].type == cudaGraphNodeTypeMemAlloc ? 1 : -1;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        struct sim__graph_allocation *allocation = exec->nodes[i].allocation;
        if (allocation == NULL)
            continue;
        if (exec->nodes[i].type == cudaGraphNodeTypeMemAlloc)
            region_note(memory, allocation->region, allocation->balance > 0);
        if (allocation->balance > 0)
            memory->made[memory->made_count++] = allocation;
        else if (allocation->balance < 0)
            memory->ended[memory->ended_count++] = allocation;
        allocation->balance = 0;
    }
    return cudaSuccess;
}

void sim__exec_memory_destroy(struct sim__exec *exec) {
    struct sim__exec_memory *memory = exec->memory;
    if (memory == NULL)
        return;
    free(memory->regions);
    free(memory->made);
    free(memory->ended);
    free(memory);
    exec->memory = NULL;
}

// --- Launches ---

static bool frees_on_launch(const struct sim__exec *exec) {
    return (exec->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0 &&
           !sim__planted(SIM__PLANT_GRAPH_AUTOFREE);
}

static bool lives_fit(const struct sim__exec *exec) {
    const struct sim__exec_memory *memory = exec->memory;
    const struct sim__graph_allocation *misfit = NULL;
    for (uint32_t i = 0; i < memory->made_count && misfit == NULL; ++i)
        if (memory->made[i]->live && !frees_on_launch(exec) &&
            !sim__planted(SIM__PLANT_GRAPH_RELAUNCH))
            misfit = memory->made[i];
    for (uint32_t i = 0; i < memory->ended_count && misfit == NULL; ++i)
        if (!memory->ended[i]->live)
            misfit = memory->ended[i];
    if (misfit != NULL && sim__checked())
        sim__misuse("0x%llx, memory of graph %llu, is %s", (unsigned long long)misfit->start,
                    (unsigned long long)misfit->graph,
                    misfit->live ? "allocated still" : "not allocated now");
    return misfit == NULL;
}

cudaError_t sim__exec_memory_attach(struct sim__exec *exec, struct sim__stream *stream,
                                    void (*wait)(struct sim__position position), bool launches) {
    const struct sim__exec_memory *memory = exec->memory;
    if (memory == NULL)
        return cudaSuccess;
    if (launches && !lives_fit(exec))
        return cudaErrorInvalidValue;
    return sim__graph_regions_attach(memory->regions, memory->region_count, stream,
                                     launches ? SIM_CALL_GRAPH_LAUNCH : SIM_CALL_GRAPH_UPLOAD, wait)
               ? cudaSuccess
               : cudaErrorMemoryAllocation;
}

void sim__exec_memory_begun(const struct sim__exec *exec, const struct sim__stream *stream) {
    const struct sim__exec_memory *memory = exec->memory;
    for (uint32_t i = 0; memory != NULL && i < memory->made_count; ++i) {
        struct sim__graph_allocation *allocation = memory->made[i];
        if (allocation->live) { // freed by the launch; its reference goes to the new one
            if (sim__race_is_on())
                sim__race_free(allocation->start, allocation->size, stream);
            continue;
        }
        sim__graph_allocation_retain(allocation)->live = true;
        ++allocation->region->live_count;
    }
    for (uint32_t i = 0; memory != NULL && i < memory->ended_count; ++i) {
        live_end(memory->ended[i]);
        sim__graph_allocation_release(memory->ended[i]); // the executable has another reference
    }
}

void sim__exec_memory_launched(const struct sim__exec *exec) {
    const struct sim__exec_memory *memory = exec->memory;
    for (uint32_t i = 0; memory != NULL && i < memory->region_count; ++i)
        sim__graph_region_use(memory->regions[i].region, exec->last);
    for (uint32_t i = 0; memory != NULL && i < memory->ended_count; ++i)
        sim__graph_region_use(memory->ended[i]->region, exec->last);
}
