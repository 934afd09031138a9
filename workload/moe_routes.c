// See moe_routes.h.
#include "workload/moe_routes.h"

#include <stdlib.h>

static enum base_status no_memory(int64_t rows) {
    return base_status_set(BASE_HOST_MEMORY, "no host memory to route %lld rows", (long long)rows);
}

// How many rows each expert takes, then where they begin.
static void starts_find(const struct moe_routes_form *form, const int64_t *choices,
                        struct moe_routes *routes) {
    for (int64_t i = 0; i < form->choices * form->rows; ++i)
        routes->starts[choices[i] + 1]++;
    for (int64_t expert = 0; expert < form->experts; ++expert) {
        int64_t *count = &routes->starts[expert + 1];
        if (form->capacity > 0 && *count > form->capacity) {
            routes->dropped += *count - form->capacity;
            *count = form->capacity;
        }
        *count += routes->starts[expert];
    }
}

enum base_status moe_routes_make(const struct moe_routes_form *form, const int64_t *choices,
                                 struct moe_routes *result) {
    struct moe_routes routes = {.experts = form->experts};
    const size_t count = (size_t)form->choices * (size_t)form->rows;
    int64_t *next = malloc((size_t)form->experts * sizeof *next);
    routes.starts = calloc((size_t)form->experts + 1, sizeof *routes.starts);
    routes.rows = calloc(count + 1, sizeof *routes.rows);
    if (next == NULL || routes.starts == NULL || routes.rows == NULL) {
        free(next);
        moe_routes_deinit(&routes);
        return no_memory(form->rows);
    }
    starts_find(form, choices, &routes);
    for (int64_t expert = 0; expert < form->experts; ++expert)
        next[expert] = routes.starts[expert];
    for (int64_t row = 0; row < form->rows; ++row)
        for (int choice = 0; choice < form->choices; ++choice) {
            const int64_t expert = choices[choice * form->rows + row];
            if (next[expert] < routes.starts[expert + 1]) routes.rows[next[expert]++] = row;
        }
    free(next);
    *result = routes;
    return BASE_OK;
}

static int64_t draw_expert(const struct moe_routes_form *form, const double *weights, double total,
                           struct base_random *random) {
    double left = total * base_random_unit(random);
    int64_t expert = 0;
    while (expert + 1 < form->experts && left >= weights[expert])
        left -= weights[expert++];
    return expert;
}

enum base_status moe_routes_draw(const struct moe_routes_form *form, const double *weights,
                                 struct base_random *random, struct moe_routes *routes) {
    int64_t *choices = malloc((size_t)form->choices * (size_t)form->rows * sizeof *choices);
    double total = 0;
    if (choices == NULL) return no_memory(form->rows);
    for (int64_t expert = 0; expert < form->experts; ++expert)
        total += weights[expert];
    for (int64_t row = 0; row < form->rows; ++row)
        for (int choice = 0; choice < form->choices;) {
            const int64_t expert = draw_expert(form, weights, total, random);
            int before = 0;
            while (before < choice && choices[before * form->rows + row] != expert)
                ++before;
            if (before == choice) choices[choice++ * form->rows + row] = expert;
        }
    const enum base_status status = moe_routes_make(form, choices, routes);
    free(choices);
    return status;
}

void moe_routes_deinit(struct moe_routes *routes) {
    free(routes->starts);
    free(routes->rows);
    *routes = (struct moe_routes){0};
}
