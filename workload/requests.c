// See requests.h.
#include "workload/requests.h"

#include "base/address_map.h"

#include <stdlib.h>
#include <string.h>

static enum base_status no_memory(size_t count) {
    return base_status_set(BASE_HOST_MEMORY, "no host memory for a sequence of %zu requests",
                           count);
}

//------------------------------------------------------------------------------------------------
// Of one trace

static enum base_status steps_take(const struct trace *trace, size_t first, size_t end,
                                   struct base_address_map *live,
                                   struct workload_requests *requests) {
    uint64_t bytes = 0;
    for (size_t i = first; i < end; i++) {
        const struct trace_event *event = &trace->events[i];
        uint64_t size;
        if (event->action == TRACE_ALLOC) {
            const enum base_status status = base_address_map_set(live, event->address, event->size);
            if (status != BASE_OK) return status;
            requests->sizes[requests->count++] = event->size;
            requests->steps[requests->step_count++] = (int64_t)event->size;
            bytes += event->size;
            if (bytes > requests->peak_bytes) requests->peak_bytes = bytes;
        } else if (event->action == TRACE_FREE_REQUESTED &&
                   base_address_map_remove(live, event->address, &size)) {
            requests->steps[requests->step_count++] = -(int64_t)size;
            bytes -= size;
        }
    }
    return BASE_OK;
}

// The least distance at which the second half repeats itself: its length less that of its longest
// border, by the failure function of Knuth, Morris and Pratt.
static enum base_status period_find(struct workload_requests *requests) {
    const uint64_t *half = requests->sizes + requests->count / 2;
    const size_t length = requests->count - requests->count / 2;
    size_t *border = calloc(length + 1, sizeof *border), k = 0;
    if (border == NULL) return no_memory(length);
    for (size_t i = 1; i < length; i++) {
        while (k > 0 && half[i] != half[k])
            k = border[k];
        if (half[i] == half[k]) k++;
        border[i + 1] = k;
    }
    // Less than a whole repetition is no evidence of one.
    if (length - k <= length / 2) requests->period = length - k;
    free(border);
    return BASE_OK;
}

enum base_status workload_requests_of(const struct trace *trace, int device,
                                      struct workload_requests *requests) {
    if (device < 0 || (uint32_t)device >= trace->device_count)
        return base_status_set(BASE_INVALID_VALUE, "%s: has no device %d", trace->name, device);
    const size_t first = trace->device_event_first[device];
    const size_t end = trace->device_event_first[device + 1];
    struct workload_requests made = {.steps = calloc(end - first + 1, sizeof *made.steps),
                                     .sizes = calloc(end - first + 1, sizeof *made.sizes)};
    struct base_address_map live = {0};
    enum base_status status =
        made.steps == NULL || made.sizes == NULL ? no_memory(end - first) : BASE_OK;
    if (status == BASE_OK) status = steps_take(trace, first, end, &live, &made);
    if (status == BASE_OK && made.count == 0)
        status =
            base_status_set(BASE_FORMAT, "%s: device %d allocates nothing", trace->name, device);
    if (status == BASE_OK) status = period_find(&made);
    base_address_map_deinit(&live);
    if (status == BASE_OK)
        *requests = made;
    else
        workload_requests_deinit(&made);
    return status;
}

void workload_requests_deinit(struct workload_requests *requests) {
    free(requests->steps);
    free(requests->sizes);
    *requests = (struct workload_requests){0};
}

//------------------------------------------------------------------------------------------------
// Of two

static int by_size(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static uint64_t *sorted_sizes(const struct workload_requests *requests) {
    uint64_t *sizes = malloc(requests->count * sizeof *sizes);
    if (sizes == NULL) return NULL;
    memcpy(sizes, requests->sizes, requests->count * sizeof *sizes);
    qsort(sizes, requests->count, sizeof *sizes, by_size);
    return sizes;
}

// Goes through both in order of size; the distance can only be largest between two sizes.
static void sizes_merge(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count,
                        struct workload_requests_difference *difference) {
    size_t i = 0, j = 0;
    while (i < a_count || j < b_count) {
        const uint64_t size = j == b_count || (i < a_count && a[i] < b[j]) ? a[i] : b[j];
        struct workload_size_use *use = &difference->uses[difference->use_count++];
        *use = (struct workload_size_use){.size = size};
        for (; i < a_count && a[i] == size; i++)
            use->count_a++;
        for (; j < b_count && b[j] == size; j++)
            use->count_b++;
        const double distance = (double)i / (double)a_count - (double)j / (double)b_count;
        const double absolute = distance < 0 ? -distance : distance;
        if (absolute > difference->size_distance) difference->size_distance = absolute;
    }
}

// Length of a longest common subsequence, by Myers' search for the fewest edits: for each number of
// edits, how far each diagonal can be followed.
static enum base_status common_find(const int64_t *a, size_t a_count, const int64_t *b,
                                    size_t b_count, size_t *common) {
    const size_t all = a_count + b_count;
    const int64_t most =
        all < WORKLOAD_REQUESTS_EDITS_MAX ? (int64_t)all : WORKLOAD_REQUESTS_EDITS_MAX;
    int64_t *reach = calloc((size_t)(2 * most + 3), sizeof *reach);
    if (reach == NULL) return no_memory(all);
    int64_t *at = reach + most + 1; // of diagonal k: at[k] steps of a, at[k] - k of b
    *common = SIZE_MAX;
    for (int64_t edits = 0; edits <= most; edits++)
        for (int64_t k = -edits; k <= edits; k += 2) {
            const bool down = k == -edits || (k != edits && at[k - 1] < at[k + 1]);
            int64_t x = down ? at[k + 1] : at[k - 1] + 1, y = x - k;
            while (x < (int64_t)a_count && y < (int64_t)b_count && a[x] == b[y])
                x++, y++;
            at[k] = x;
            if (x >= (int64_t)a_count && y >= (int64_t)b_count) {
                *common = (all - (size_t)edits) / 2;
                free(reach);
                return BASE_OK;
            }
        }
    free(reach);
    return BASE_OK;
}

enum base_status workload_requests_compare(const struct workload_requests *a,
                                           const struct workload_requests *b,
                                           struct workload_requests_difference *difference) {
    struct workload_requests_difference made = {
        .peak = (double)a->peak_bytes / (double)b->peak_bytes - 1,
        .count = (double)a->count / (double)b->count - 1,
        .uses = calloc(a->count + b->count, sizeof *made.uses)};
    uint64_t *left = sorted_sizes(a), *right = sorted_sizes(b);
    enum base_status status = BASE_OK;
    if (made.uses == NULL || left == NULL || right == NULL) {
        status = no_memory(a->count + b->count);
    } else {
        sizes_merge(left, a->count, right, b->count, &made);
        while (made.first < a->count && made.first < b->count &&
               a->sizes[made.first] == b->sizes[made.first])
            made.first++;
        status = common_find(a->steps, a->step_count, b->steps, b->step_count, &made.common);
    }
    free(left);
    free(right);
    if (status == BASE_OK)
        *difference = made;
    else
        workload_requests_difference_deinit(&made);
    return status;
}

void workload_requests_difference_deinit(struct workload_requests_difference *difference) {
    free(difference->uses);
    *difference = (struct workload_requests_difference){0};
}

//------------------------------------------------------------------------------------------------
// At the peaks

static size_t steps_to_peak(const struct workload_requests *requests) {
    int64_t bytes = 0;
    for (size_t i = 0; i < requests->step_count; i++) {
        bytes += requests->steps[i];
        if (bytes == (int64_t)requests->peak_bytes) return i + 1;
    }
    return requests->step_count;
}

static int by_use_size(const void *a, const void *b) {
    const struct workload_size_use *left = a, *right = b;
    return left->size < right->size ? -1 : left->size > right->size;
}

// Counts up to SIZE_MAX wrap round: a free takes one away.
static struct workload_size_use use_of(int64_t step, bool is_a) {
    const uint64_t one = step > 0 ? 1 : UINT64_MAX;
    return (struct workload_size_use){.size = (uint64_t)(step > 0 ? step : -step),
                                      .count_a = is_a ? one : 0,
                                      .count_b = is_a ? 0 : one};
}

enum base_status workload_requests_at_peaks(const struct workload_requests *a,
                                            const struct workload_requests *b,
                                            struct workload_size_use **uses, size_t *count) {
    const size_t of_a = steps_to_peak(a), of_b = steps_to_peak(b);
    struct workload_size_use *made = calloc(of_a + of_b + 1, sizeof *made);
    if (made == NULL) return no_memory(of_a + of_b);
    for (size_t i = 0; i < of_a; i++)
        made[i] = use_of(a->steps[i], true);
    for (size_t i = 0; i < of_b; i++)
        made[of_a + i] = use_of(b->steps[i], false);
    qsort(made, of_a + of_b, sizeof *made, by_use_size);
    size_t kept = 0;
    for (size_t i = 0; i < of_a + of_b;) {
        struct workload_size_use sum = {.size = made[i].size};
        for (; i < of_a + of_b && made[i].size == sum.size; i++) {
            sum.count_a += made[i].count_a;
            sum.count_b += made[i].count_b;
        }
        if (sum.count_a > 0 || sum.count_b > 0) made[kept++] = sum;
    }
    *uses = made;
    *count = kept;
    return BASE_OK;
}
