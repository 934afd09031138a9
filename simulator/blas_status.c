// What every program has of cuBLAS: names of statuses, and the table of handles, which is empty in
// those without it.
#include "simulator/blas_status.h"

#include "simulator/blas.h"

#include <string.h>

#define BLAS_TAG 0x62

struct sim__handle_table sim__blas_handles = {.tag = BLAS_TAG,
                                              .slot_size = sizeof(struct sim__blas_handle)};

static const struct sim__blas_status statuses[] = {
#define BLAS_STATUS(name, description) {name, #name, description},
    SIM__BLAS_STATUS_LIST(BLAS_STATUS)
#undef BLAS_STATUS
};
#define STATUS_COUNT (sizeof statuses / sizeof statuses[0])

const struct sim__blas_status *sim__blas_status_find(int status) {
    for (size_t i = 0; i < STATUS_COUNT; ++i)
        if (statuses[i].status == status)
            return &statuses[i];
    return NULL;
}

const struct sim__blas_status *sim__blas_status_named(const char *name) {
    for (size_t i = 0; i < STATUS_COUNT; ++i)
        if (strcmp(statuses[i].name, name) == 0)
            return &statuses[i];
    return NULL;
}

void sim__blas_clear(void) { sim__handle_clear(&sim__blas_handles); }
