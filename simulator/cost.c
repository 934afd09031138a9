// Costs in virtual time: cost.h.
#include "simulator/cost.h"

#include "simulator/call.h"
#include "simulator/schedule.h"

#include <string.h>

struct sim__costs sim__costs[SIM__LEVEL_COUNT];

// Guarded by the simulator's lock.
static uint64_t page_counts[SIM_CALL_KIND_COUNT + 1], node_counts[SIM_CALL_KIND_COUNT + 1];

void sim__time_pass(uint64_t low_ns, uint64_t typical_ns, uint64_t high_ns) {
    sim__state.now_ns += typical_ns;
    sim__state.now_bounds.low_ns += low_ns;
    sim__state.now_bounds.high_ns += high_ns;
}

void sim__cost_call(enum sim_call call) {
    if (sim__schedule == &sim__schedule_timed)
        sim__time_pass(sim__costs[SIM__LOW].call_ns[call], sim__costs[SIM__TYPICAL].call_ns[call],
                       sim__costs[SIM__HIGH].call_ns[call]);
}

void sim__cost_pages(enum sim_call call, uint64_t pages) {
    page_counts[call] += pages;
    if (sim__schedule == &sim__schedule_timed)
        sim__time_pass(pages * sim__costs[SIM__LOW].page_ns[call],
                       pages * sim__costs[SIM__TYPICAL].page_ns[call],
                       pages * sim__costs[SIM__HIGH].page_ns[call]);
}

void sim__cost_nodes(enum sim_call call, uint64_t nodes) {
    node_counts[call] += nodes;
    if (sim__schedule == &sim__schedule_timed)
        sim__time_pass(nodes * sim__costs[SIM__LOW].node_ns[call],
                       nodes * sim__costs[SIM__TYPICAL].node_ns[call],
                       nodes * sim__costs[SIM__HIGH].node_ns[call]);
}

void sim__cost_reset(void) {
    memset(page_counts, 0, sizeof page_counts);
    memset(node_counts, 0, sizeof node_counts);
}

struct sim_interval sim_time_interval(void) {
    base_mutex_lock(&sim__state.lock);
    const uint64_t now = sim__state.now_ns;
    struct sim_interval interval = {now, now, now};
    if (sim__schedule == &sim__schedule_timed) {
        interval.low_ns = sim__state.now_bounds.low_ns;
        interval.high_ns = sim__state.now_bounds.high_ns;
    }
    base_mutex_unlock(&sim__state.lock);
    return interval;
}

struct sim_interval sim_call_time(void) {
    uint64_t total_ns[SIM__LEVEL_COUNT] = {0};
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    for (int call = 0; call < SIM_CALL_KIND_COUNT; ++call) {
        const uint64_t count = sim__call_count_locked((enum sim_call)call);
        for (int level = 0; level < SIM__LEVEL_COUNT; ++level)
            total_ns[level] += count * sim__costs[level].call_ns[call] +
                               page_counts[call] * sim__costs[level].page_ns[call] +
                               node_counts[call] * sim__costs[level].node_ns[call];
    }
    base_mutex_unlock(&sim__state.lock);
    return (struct sim_interval){total_ns[SIM__LOW], total_ns[SIM__TYPICAL], total_ns[SIM__HIGH]};
}

static uint64_t at_rate(double amount, double rate) {
    return rate > 0 ? (uint64_t)(amount / rate + 0.5) : 0;
}

static uint64_t copy_cost(const struct sim__costs *costs, const struct sim__copy *copy) {
    const double bytes = (double)copy->size * (double)copy->rows;
    const bool from = copy->source_place == SIM__PLACE_DEVICE,
               to = copy->destination_place == SIM__PLACE_DEVICE;
    const bool pageable = copy->source_place == SIM__PLACE_PAGEABLE ||
                          copy->destination_place == SIM__PLACE_PAGEABLE;
    if (copy->peer)
        return costs->copy_ns + at_rate(bytes, costs->peer_bandwidth);
    if (from && to)
        return costs->copy_ns + at_rate(2 * bytes, costs->device_bandwidth);
    if (pageable)
        return costs->copy_ns + at_rate(bytes, costs->pageable_bandwidth);
    return costs->copy_ns + at_rate(bytes, to ? costs->host_to_device_bandwidth
                                              : costs->device_to_host_bandwidth);
}

static uint64_t longest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t kernel_cost(const struct sim__costs *costs, const struct sim__kernel *kernel) {
    const uint64_t moving = at_rate((double)kernel->bytes, costs->device_bandwidth);
    const uint64_t computing =
        longest(at_rate((double)kernel->flops, costs->fp32_rate),
                at_rate((double)kernel->tensor_flops, costs->tensor_rate));
    return longest(costs->kernel_ns, longest(moving, computing));
}

uint64_t sim__cost_operation(const struct sim__operation *operation, enum sim__level level) {
    const struct sim__costs *costs = &sim__costs[level];
    switch (operation->kind) {
    case SIM__OPERATION_RECORD: return costs->record_ns;
    case SIM__OPERATION_WAIT: return costs->wait_ns;
    case SIM__OPERATION_COPY: return copy_cost(costs, &operation->copy);
    case SIM__OPERATION_FILL:
        return costs->fill_ns +
               at_rate((double)operation->fill.size * (double)operation->fill.rows,
                       costs->device_bandwidth);
    case SIM__OPERATION_KERNEL: return kernel_cost(costs, &operation->kernel);
    case SIM__OPERATION_HOST_FUNCTION: return costs->host_function_ns;
    case SIM__OPERATION_VALUE: return costs->value_ns;
    case SIM__OPERATION_LAUNCH_BEGIN:
    case SIM__OPERATION_LAUNCH_END:
    case SIM__OPERATION_INTERNAL: return 0;
    }
    return 0;
}
