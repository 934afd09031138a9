// Which requests a server works at in each step: arrivals, lengths, admission and pages, all of it
// on the host and a function of the seed. What is computed does not change it, nor does where the
// cache of keys and values lies, so that every way of keeping that serves the same batches.
//
//     status = serving_schedule_create(&load, seed, steps, &schedule);
//     for each step {
//         serving_schedule_begin(schedule);     // .left: pushed out for their pages; .active:
//         batch
//         ... all of .active, serving_rows() tokens each ...
//         serving_schedule_end(schedule);       // .left: have all their tokens
//     }
//     serving_schedule_destroy(schedule);
//
// Time is counted in steps. Arrivals are Poisson's, lengths Pareto's, cut at the load's greatest.
// First come, first served: a request is admitted when the batch has room and its prompt has pages.
// It takes pages as it grows; when there is none, the youngest of the batch is pushed out, loses
// what it had and starts again later, before those behind it.
#ifndef TIDEMARK_WORKLOAD_SERVING_SCHEDULE_H
#define TIDEMARK_WORKLOAD_SERVING_SCHEDULE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct serving_load {
    double arrivals;                  // a step, on average
    int64_t prompt_least, prompt_max; // tokens
    int64_t output_least, output_max; // output_max: what a client asks for; it mostly ends before
    int64_t page_tokens, page_count;  // hold a request of the greatest lengths at least
    int batch_max;
};

struct serving_request {
    int64_t number; // in the order of arrival
    uint64_t arrival;
    int64_t prompt, output; // tokens; nobody knows of `output` before
    int64_t cached, made;   // tokens in the cache; tokens of the output, since the last admission
    int64_t *pages;         // of the tokens in the cache and of this step's, in their order
    int64_t page_count;
    bool is_active, is_done;
};

struct serving_schedule {
    struct serving_load load;
    uint64_t step;
    int64_t request_count; // of all steps
    struct serving_request *requests;
    int active_count, left_count;
    struct serving_request **active, **left; // oldest admission first; who went in the last call
    int64_t free_count, *free_pages;         // a stack
    int64_t first_waiting;                   // nobody before it waits
    uint64_t pushed_out;
};

// BASE_HOST_MEMORY.
enum base_status serving_schedule_create(const struct serving_load *load, uint64_t seed,
                                         uint64_t steps,
                                         struct serving_schedule **schedule) BASE_MUST_USE;
void serving_schedule_destroy(struct serving_schedule *schedule); // NULL is ignored

void serving_schedule_begin(struct serving_schedule *schedule);
void serving_schedule_end(struct serving_schedule *schedule);

// What a request of the batch adds to its cache in this step: its prompt, later the last token.
static inline int64_t serving_rows(const struct serving_request *request) {
    return request->cached == 0 ? request->prompt : 1;
}

#endif
