// User objects. Destructors are called outside the simulator's lock, by the thread whose call let
// go of the last reference or saw the last launch end; as host functions, they may make no CUDA
// call.
#include "simulator/user_object.h"

#include "simulator/call.h"
#include "simulator/graph.h"

#include <limits.h>
#include <stdlib.h>

#define OBJECT_TAG 0x55

struct object {
    struct sim__handle_slot slot;
    cudaHostFn_t destroy;
    void *pointer;
    uint64_t references;   // the program's, and those of graphs and executables
    uint64_t programs_own; // which it may release or move
};

struct sim__graph_objects {
    struct base_address_map references; // by handles of objects
    struct sim__graph_objects *next;    // retired with these
};

struct death {
    cudaHostFn_t destroy;
    void *pointer;
    struct death *next;
};

struct sim__handle_table sim__user_objects = {.tag = OBJECT_TAG,
                                              .slot_size = sizeof(struct object)};
static struct death *deaths, **deaths_end = &deaths;
bool sim__user_objects_dead;

static cudaError_t resolve(cudaUserObject_t handle, struct object **object) {
    *object = sim__handle_find(&sim__user_objects, (uint64_t)(uintptr_t)handle);
    return *object != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

static void give_up(struct object *object, uint64_t count) {
    BASE_CHECK_LE(count, object->references);
    object->references -= count;
    if (object->references > 0)
        return;
    struct death *death = malloc(sizeof *death);
    if (death == NULL)
        sim__host_limit("out of host memory for the end of a user object");
    *death = (struct death){object->destroy, object->pointer, NULL};
    *deaths_end = death;
    deaths_end = &death->next;
    sim__user_objects_dead = true;
    sim__handle_give(&sim__user_objects, object);
}

void sim__user_objects_finish(void) {
    struct sim__thread *thread = sim__thread();
    base_mutex_lock(&sim__state.lock);
    struct death *death = deaths;
    deaths = NULL;
    deaths_end = &deaths;
    sim__user_objects_dead = false;
    base_mutex_unlock(&sim__state.lock);
    ++thread->work_depth;
    while (death != NULL) {
        struct death *next = death->next;
        death->destroy(death->pointer);
        free(death);
        death = next;
    }
    --thread->work_depth;
}

void sim__user_objects_clear(void) {
    sim__handle_clear(&sim__user_objects);
    while (deaths != NULL) {
        struct death *next = deaths->next;
        free(deaths);
        deaths = next;
    }
    deaths_end = &deaths;
    sim__user_objects_dead = false;
}

// --- What graphs own ---

static uint64_t owned_count(const struct sim__graph_objects *objects, const struct object *object) {
    uint64_t references = 0;
    if (objects != NULL)
        base_address_map_get(&objects->references, object->slot.handle, &references);
    return references;
}

static bool owned_set(struct sim__graph_objects **objects, const struct object *object,
                      uint64_t references) {
    if (*objects == NULL)
        *objects = calloc(1, sizeof **objects);
    return *objects != NULL && base_address_map_set(&(*objects)->references, object->slot.handle,
                                                    references) == BASE_OK;
}

// Each object that OBJECTS refer to, and how often.
static struct object *owned_at(const struct sim__graph_objects *objects, size_t index,
                               uint64_t *references) {
    const struct base_address_entry *entry = &objects->references.entries[index];
    *references = entry->value;
    return entry->value == BASE_ADDRESS_UNUSED
               ? NULL
               : sim__handle_find(&sim__user_objects, entry->address);
}

bool sim__graph_objects_copy(const struct sim__graph_objects *objects,
                             struct sim__graph_objects **copy) {
    *copy = NULL;
    for (size_t i = 0; objects != NULL && i < objects->references.capacity; ++i) {
        uint64_t references;
        struct object *object = owned_at(objects, i, &references);
        if (object == NULL)
            continue;
        if (!owned_set(copy, object, references)) {
            sim__graph_objects_release(*copy);
            *copy = NULL;
            return false;
        }
        object->references += references;
    }
    return true;
}

void sim__graph_objects_release(struct sim__graph_objects *objects) {
    while (objects != NULL) {
        struct sim__graph_objects *next = objects->next;
        for (size_t i = 0; i < objects->references.capacity; ++i) {
            uint64_t references;
            struct object *object = owned_at(objects, i, &references);
            if (object != NULL)
                give_up(object, references);
        }
        base_address_map_deinit(&objects->references);
        free(objects);
        objects = next;
    }
}

void sim__graph_objects_retire(struct sim__graph_objects *objects,
                               struct sim__graph_objects **retired) {
    if (objects == NULL)
        return;
    objects->next = *retired;
    *retired = objects;
}

// --- The calls ---

static cudaError_t create_locked(cudaUserObject_t *handle, void *pointer, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags) {
    if (handle == NULL || destroy == NULL || references == 0 || references > INT_MAX ||
        flags != cudaUserObjectNoDestructorSync)
        return cudaErrorInvalidValue;
    struct object *object = sim__handle_take(&sim__user_objects);
    if (object == NULL)
        return cudaErrorMemoryAllocation;
    object->destroy = destroy;
    object->pointer = pointer;
    object->references = object->programs_own = references;
    *handle = (cudaUserObject_t)(uintptr_t)object->slot.handle;
    return cudaSuccess;
}

static cudaError_t retain_locked(cudaUserObject_t handle, unsigned int count) {
    struct object *object;
    const cudaError_t error = resolve(handle, &object);
    if (error != cudaSuccess || count == 0 || count > INT_MAX)
        return cudaErrorInvalidValue;
    object->references += count;
    object->programs_own += count;
    return cudaSuccess;
}

static cudaError_t release_locked(cudaUserObject_t handle, unsigned int count) {
    struct object *object;
    const cudaError_t error = resolve(handle, &object);
    if (error != cudaSuccess || count == 0 || count > object->programs_own)
        return cudaErrorInvalidValue;
    object->programs_own -= count;
    give_up(object, count);
    return cudaSuccess;
}

static cudaError_t graph_retain_locked(cudaGraph_t graph_handle, cudaUserObject_t handle,
                                       unsigned int count, unsigned int flags) {
    struct sim__graph *graph;
    struct object *object;
    cudaError_t error = sim__graph_resolve(graph_handle, &graph);
    if (error == cudaSuccess)
        error = resolve(handle, &object);
    if (error != cudaSuccess || count == 0 || count > INT_MAX ||
        (flags & ~(unsigned int)cudaGraphUserObjectMove) != 0)
        return cudaErrorInvalidValue;
    const bool moves = (flags & cudaGraphUserObjectMove) != 0;
    if (moves && count > object->programs_own)
        return cudaErrorInvalidValue;
    if (!owned_set(&graph->objects, object, owned_count(graph->objects, object) + count))
        return cudaErrorMemoryAllocation;
    if (moves)
        object->programs_own -= count;
    else
        object->references += count;
    return cudaSuccess;
}

static cudaError_t graph_release_locked(cudaGraph_t graph_handle, cudaUserObject_t handle,
                                        unsigned int count) {
    struct sim__graph *graph;
    struct object *object;
    cudaError_t error = sim__graph_resolve(graph_handle, &graph);
    if (error == cudaSuccess)
        error = resolve(handle, &object);
    if (error != cudaSuccess)
        return error;
    const uint64_t owned = owned_count(graph->objects, object);
    uint64_t unused;
    if (count == 0 || count > owned)
        return cudaErrorInvalidValue;
    if (owned > count && !owned_set(&graph->objects, object, owned - count))
        return cudaErrorMemoryAllocation;
    if (owned == count)
        base_address_map_remove(&graph->objects->references, object->slot.handle, &unused);
    give_up(object, count);
    return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = create_locked(object, pointer, destroy, references, flags);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = retain_locked(object, count);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = release_locked(object, count);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = graph_retain_locked(graph, object, count, flags);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = graph_release_locked(graph, object, count);
    return sim__call_end(SIM__CALL_OTHER, error);
}
