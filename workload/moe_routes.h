// Which rows of a batch go to which expert: the host's part of a mixture of experts.
//
//     status = moe_routes_make(&form, choices, &routes);   // or moe_routes_draw
//     for each expert: rows routes.rows[routes.starts[expert]] to routes.rows[starts[expert + 1]]
//     moe_routes_deinit(&routes);
//
// An expert takes its rows in the order of the batch, and no more than its capacity: the rest of
// those that chose it are dropped there.
#ifndef TIDEMARK_WORKLOAD_MOE_ROUTES_H
#define TIDEMARK_WORKLOAD_MOE_ROUTES_H

#include "base/random.h"
#include "base/status.h"

#include <stdint.h>

struct moe_routes_form {
    int64_t rows, experts;
    int choices;      // experts of a row
    int64_t capacity; // rows of an expert; 0: as many as come
};

struct moe_routes {
    int64_t experts, dropped;
    int64_t *starts; // [experts + 1]
    int64_t *rows;   // of the batch, expert after expert
};

// CHOICES: [choices, rows], each below the number of experts and no row's the same twice.
// BASE_HOST_MEMORY.
enum base_status moe_routes_make(const struct moe_routes_form *form, const int64_t *choices,
                                 struct moe_routes *routes) BASE_MUST_USE;
// Chosen by chance, an expert with its WEIGHT: for devices that compute no values.
enum base_status moe_routes_draw(const struct moe_routes_form *form, const double *weights,
                                 struct base_random *random,
                                 struct moe_routes *routes) BASE_MUST_USE;
void moe_routes_deinit(struct moe_routes *routes);

static inline int64_t moe_routes_count(const struct moe_routes *routes, int64_t expert) {
    return routes->starts[expert + 1] - routes->starts[expert];
}

#endif
