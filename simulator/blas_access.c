// What cuBLAS's work touches, as struct sim_access, from one submission to the next. While nobody
// checks nothing is gathered.
#include "simulator/blas.h"

#include <stdlib.h>

static struct sim_access *gathered;
static size_t gathered_count, gathered_size;

void sim__blas_access_begin(void) { gathered_count = 0; }

const struct sim_access *sim__blas_accesses(size_t *count) {
    *count = gathered_count;
    return gathered;
}

static void add(struct sim_access access) {
    if (!sim__race_is_on() || access.size == 0)
        return;
    if (gathered_count == gathered_size) {
        const size_t size = gathered_size > 0 ? 2 * gathered_size : 16;
        struct sim_access *grown = realloc(gathered, size * sizeof *grown);
        if (grown == NULL)
            sim__host_limit("out of host memory for the accesses of a cuBLAS call");
        gathered = grown;
        gathered_size = size;
    }
    gathered[gathered_count++] = access;
}

void sim__blas_access_add(enum sim_access_mode mode, const void *pointer, size_t size) {
    add((struct sim_access){.mode = mode, .pointer = pointer, .size = size});
}

void sim__blas_access_add_matrix(enum sim_access_mode mode, const void *pointer, size_t size,
                                 int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                                 int64_t count) {
    if (rows == 0 || columns == 0 || count == 0 || !sim__race_is_on())
        return;
    if (stride == 0)
        count = 1;
    if (count > 1 && stride == ld * columns) { // one below the other
        columns *= count;
        count = 1;
    }
    for (int64_t i = 0; i < count; ++i) {
        const char *start = (const char *)pointer + i * stride * (int64_t)size;
        if (rows == ld)
            add((struct sim_access){
                .mode = mode, .pointer = start, .size = (size_t)(rows * columns) * size});
        else
            add((struct sim_access){.mode = mode,
                                    .pointer = start,
                                    .size = (size_t)rows * size,
                                    .rows = (size_t)columns,
                                    .pitch = (size_t)ld * size});
    }
}

void sim__blas_access_add_vector(enum sim_access_mode mode, const void *pointer, size_t size,
                                 int64_t count, int64_t increment) {
    const int64_t step = increment < 0 ? -increment : increment;
    if (count > 0)
        sim__blas_access_add_matrix(mode, pointer, size, 1, step == 0 ? 1 : count,
                                    step == 0 ? 1 : step, 0, 1);
}

void sim__blas_access_add_scalar(const struct sim__blas_scalar *scalar, bool is_double) {
    if (scalar->device != NULL)
        sim__blas_access_add(SIM_ACCESS_READ, scalar->device,
                             is_double ? sizeof(double) : sizeof(float));
}

void sim__blas_access_add_workspace(const struct sim__blas_target *target, size_t bytes) {
    if (!target->is_programs)
        return;
    sim__blas_access_add(SIM_ACCESS_WRITE, target->workspace, bytes);
    sim__blas_access_add(SIM_ACCESS_READ, target->workspace, bytes);
}
