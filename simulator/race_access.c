// What operations access: of copies, fills and values it is known, of kernels and host functions
// the program says it.
#include "simulator/race_access.h"

#include "simulator/race_block.h"
#include "simulator/race_thread.h"

#include <stdlib.h>

static struct sim__race_access *list;
static size_t list_size;

static _Thread_local struct {
    struct sim_access *accesses;
    size_t count, size;
} next;

static struct sim__race_access *list_reserve(size_t count) {
    if (count > list_size) {
        list_size = count < 16 ? 16 : 2 * count;
        free(list);
        list = malloc(list_size * sizeof *list);
        if (list == NULL)
            sim__host_limit("out of host memory for %zu accesses of an operation", count);
    }
    return list;
}

// False if it touches nothing.
static bool access_set(struct sim__race_access *access, enum sim_access_mode mode,
                       const void *pointer, size_t size, size_t rows, size_t pitch,
                       uint64_t block) {
    *access = (struct sim__race_access){.mode = mode};
    if (!sim__rows_make((uint64_t)(uintptr_t)pointer, size, rows, pitch, &access->rows))
        return false;
    sim__block_resolve(access, block);
    return true;
}

static size_t declared(const struct sim_access *accesses, size_t count) {
    list_reserve(count);
    size_t made = 0;
    for (size_t i = 0; i < count; ++i) {
        const struct sim_access *access = &accesses[i];
        made += access_set(&list[made], access->mode, access->pointer, access->size, access->rows,
                           access->pitch, access->block);
    }
    return made;
}

static size_t copied(const struct sim__copy *copy) {
    list_reserve(2);
    return access_set(&list[0], SIM_ACCESS_CARRY, copy->source, copy->size, copy->rows,
                      copy->source_pitch, 0) &&
                   access_set(&list[1], SIM_ACCESS_WRITE, copy->destination, copy->size,
                              copy->rows, copy->destination_pitch, 0)
               ? 2
               : 0;
}

size_t sim__race_accesses(const struct sim__operation *operation,
                          const struct sim__race_access **accesses) {
    size_t count = 0;
    switch (operation->kind) {
    case SIM__OPERATION_COPY: count = copied(&operation->copy); break;
    case SIM__OPERATION_FILL: {
        const struct sim__fill *fill = &operation->fill;
        count = access_set(list_reserve(1), SIM_ACCESS_WRITE, fill->pointer, fill->size,
                           fill->rows, fill->pitch, 0);
        break;
    }
    case SIM__OPERATION_VALUE:
        count = access_set(list_reserve(1), SIM_ACCESS_ATOMIC, operation->value.address,
                           operation->value.size, 1, 0, 0);
        list[0].is_sign = true;
        break;
    case SIM__OPERATION_KERNEL:
        count = declared(operation->kernel.accesses, operation->kernel.access_count);
        break;
    case SIM__OPERATION_HOST_FUNCTION:
        count = declared(operation->host_function.accesses,
                         operation->host_function.access_count);
        break;
    default: break;
    }
    *accesses = list;
    return count;
}

size_t sim__race_host_accesses(const void *pointer, size_t size, size_t rows, size_t pitch,
                               enum sim_access_mode mode,
                               const struct sim__race_access **accesses) {
    *accesses = list_reserve(1);
    return access_set(list, mode, pointer, size, rows, pitch, 0);
}

void sim__race_accesses_clear(void) {
    free(list);
    list = NULL;
    list_size = 0;
}

// --- Of the next host function ---

void sim_next_accesses(const struct sim_access *accesses, size_t count) {
    next.count = 0;
    if (count > next.size) {
        free(next.accesses);
        next.accesses = malloc(count * sizeof *next.accesses);
        next.size = next.accesses == NULL ? 0 : count;
    }
    for (; next.count < count && next.count < next.size; ++next.count)
        next.accesses[next.count] = accesses[next.count];
}

void sim__race_take_accesses(struct sim__host_function *function) {
    function->accesses = next.accesses;
    function->access_count = next.count;
    next.count = 0;
}

void sim__race_leave(void) {
    sim__race_thread_ends();
    free(next.accesses);
    next.accesses = NULL;
    next.count = next.size = 0;
}
