// See serving_schedule.h.
#include "workload/serving_schedule.h"

#include "base/check.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

#define TAIL 1.1 // Pareto's exponent: a mean that few long ones make

//------------------------------------------------------------------------------------------------
// Chance

// By products of uniform numbers (Knuth).
static int64_t draw_poisson(struct base_random *random, double mean) {
    const double end = exp(-mean);
    double product = base_random_unit(random);
    int64_t count = 0;
    for (; product > end; ++count)
        product *= base_random_unit(random);
    return count;
}

static int64_t draw_pareto(struct base_random *random, int64_t least, int64_t greatest) {
    const double value = (double)least * pow(1 - base_random_unit(random), -1 / TAIL);
    return value < (double)greatest ? (int64_t)value : greatest;
}

//------------------------------------------------------------------------------------------------
// All requests of all steps

static int64_t pages_max(const struct serving_load *load) {
    return (load->prompt_max + load->output_max + load->page_tokens - 1) / load->page_tokens;
}

// Into REQUESTS, or only counted if that is NULL.
static int64_t requests_draw(const struct serving_load *load, uint64_t seed, uint64_t steps,
                             struct serving_request *requests) {
    struct base_random arrivals = base_random_init(seed, "arrivals");
    struct base_random lengths = base_random_init(seed, "lengths");
    int64_t count = 0;
    for (uint64_t step = 0; step < steps; ++step)
        for (int64_t left = draw_poisson(&arrivals, load->arrivals); left > 0; --left, ++count) {
            if (requests == NULL) continue;
            struct serving_request *request = &requests[count];
            *request = (struct serving_request){.number = count, .arrival = step};
            request->prompt = draw_pareto(&lengths, load->prompt_least, load->prompt_max);
            request->output = draw_pareto(&lengths, load->output_least, load->output_max);
        }
    return count;
}

enum base_status serving_schedule_create(const struct serving_load *load, uint64_t seed,
                                         uint64_t steps, struct serving_schedule **result) {
    struct serving_schedule *schedule = calloc(1, sizeof *schedule);
    const int64_t count = requests_draw(load, seed, steps, NULL);
    if (schedule == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a schedule");
    BASE_CHECK_LE(pages_max(load), load->page_count);
    *schedule = (struct serving_schedule){.load = *load, .request_count = count};
    schedule->requests = calloc((size_t)count + 1, sizeof *schedule->requests);
    schedule->active = calloc((size_t)load->batch_max, sizeof(struct serving_request *));
    schedule->left = calloc((size_t)load->batch_max, sizeof(struct serving_request *));
    schedule->free_pages = calloc((size_t)load->page_count, sizeof *schedule->free_pages);
    if (schedule->requests == NULL || schedule->active == NULL || schedule->left == NULL ||
        schedule->free_pages == NULL) {
        serving_schedule_destroy(schedule);
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld requests",
                               (long long)count);
    }
    (void)requests_draw(load, seed, steps, schedule->requests);
    while (schedule->free_count < load->page_count) {
        schedule->free_pages[schedule->free_count] = load->page_count - 1 - schedule->free_count;
        ++schedule->free_count;
    }
    for (int64_t i = 0; i < count; ++i) {
        struct serving_request *request = &schedule->requests[i];
        request->pages = calloc((size_t)pages_max(load), sizeof *request->pages);
        if (request->pages != NULL) continue;
        serving_schedule_destroy(schedule);
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld requests",
                               (long long)count);
    }
    *result = schedule;
    return BASE_OK;
}

void serving_schedule_destroy(struct serving_schedule *schedule) {
    if (schedule == NULL) return;
    for (int64_t i = 0; schedule->requests != NULL && i < schedule->request_count; ++i)
        free(schedule->requests[i].pages);
    free(schedule->requests);
    free(schedule->active);
    free(schedule->left);
    free(schedule->free_pages);
    free(schedule);
}

//------------------------------------------------------------------------------------------------
// A step

static int64_t pages_missing(const struct serving_schedule *schedule,
                             const struct serving_request *request) {
    const int64_t page = schedule->load.page_tokens;
    return (request->cached + serving_rows(request) + page - 1) / page - request->page_count;
}

static void pages_take(struct serving_schedule *schedule, struct serving_request *request) {
    for (int64_t missing = pages_missing(schedule, request); missing > 0; --missing)
        request->pages[request->page_count++] = schedule->free_pages[--schedule->free_count];
}

// Number INDEX of the batch goes.
static void leave(struct serving_schedule *schedule, int index) {
    struct serving_request *request = schedule->active[index];
    while (request->page_count > 0)
        schedule->free_pages[schedule->free_count++] = request->pages[--request->page_count];
    request->is_active = false;
    schedule->left[schedule->left_count++] = request;
    schedule->active_count--;
    for (; index < schedule->active_count; ++index)
        schedule->active[index] = schedule->active[index + 1];
}

static void push_out_youngest(struct serving_schedule *schedule) {
    struct serving_request *request = schedule->active[schedule->active_count - 1];
    leave(schedule, schedule->active_count - 1);
    request->cached = request->made = 0;
    schedule->pushed_out++;
    if (request->number < schedule->first_waiting) schedule->first_waiting = request->number;
}

static void admit(struct serving_schedule *schedule) {
    int64_t number = schedule->first_waiting;
    for (; number < schedule->request_count; ++number) {
        struct serving_request *request = &schedule->requests[number];
        if (request->is_active || request->is_done) continue;
        if (request->arrival > schedule->step ||
            schedule->active_count == schedule->load.batch_max ||
            pages_missing(schedule, request) > schedule->free_count)
            break;
        pages_take(schedule, request);
        request->is_active = true;
        schedule->active[schedule->active_count++] = request;
    }
    schedule->first_waiting = number;
}

void serving_schedule_begin(struct serving_schedule *schedule) {
    schedule->left_count = 0;
    for (int index = 0; index < schedule->active_count; ++index) {
        struct serving_request *request = schedule->active[index];
        while (request->is_active && pages_missing(schedule, request) > schedule->free_count)
            push_out_youngest(schedule);
        if (request->is_active) pages_take(schedule, request);
    }
    // Who was pushed out does not come back at once.
    if (schedule->left_count == 0) admit(schedule);
}

void serving_schedule_end(struct serving_schedule *schedule) {
    schedule->left_count = 0;
    for (int index = 0; index < schedule->active_count;) {
        struct serving_request *request = schedule->active[index];
        request->cached += serving_rows(request);
        request->is_done = ++request->made == request->output;
        if (request->is_done)
            leave(schedule, index);
        else
            ++index;
    }
    schedule->step++;
}
