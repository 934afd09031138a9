// Costs in virtual time: cost.h. The defaults follow the figures that NVIDIA and others published
// for H100 and H200 class devices, rounded.
#include "simulator/cost.h"

#include "simulator/schedule.h"

struct sim__costs sim__costs = {
    .call_ns =
        {
            [SIM_CALL_MALLOC] = 40000,
            [SIM_CALL_FREE] = 30000,
            [SIM_CALL_MEM_GET_INFO] = 5000,
            [SIM_CALL_MEMCPY] = 3500,
            [SIM_CALL_MEMSET] = 3500,
            [SIM_CALL_HOST_ALLOC] = 500000,
            [SIM_CALL_HOST_FREE] = 200000,
            [SIM_CALL_STREAM_CREATE] = 5000,
            [SIM_CALL_STREAM_DESTROY] = 5000,
            [SIM_CALL_STREAM_SYNCHRONIZE] = 1000,
            [SIM_CALL_STREAM_QUERY] = 500,
            [SIM_CALL_STREAM_WAIT_EVENT] = 200,
            [SIM_CALL_EVENT_CREATE] = 300,
            [SIM_CALL_EVENT_DESTROY] = 200,
            [SIM_CALL_EVENT_RECORD] = 500,
            [SIM_CALL_EVENT_QUERY] = 200,
            [SIM_CALL_EVENT_SYNCHRONIZE] = 1000,
            [SIM_CALL_DEVICE_SYNCHRONIZE] = 1000,
            [SIM_CALL_LAUNCH] = 5000,
            [SIM_CALL_HOST_FUNCTION] = 5000,
            [SIM_CALL_KIND_COUNT] = 300,
        },
    .malloc_page_ns = 5000,
    .free_page_ns = 2000,
    .launch_latency_ns = 2600,
    .operation_gap_ns = 500,
    .kernel_ns = 2000,
    .copy_ns = 2000,
    .fill_ns = 1500,
    .record_ns = 100,
    .wait_ns = 100,
    .host_function_ns = 10000,
    .value_ns = 500,
    .device_bandwidth = 4300,
    .compute_rate = 67000,
    .host_to_device_bandwidth = 53,
    .device_to_host_bandwidth = 53,
    .pageable_bandwidth = 9,
    .peer_bandwidth = 400,
    .concurrent_kernels = 128,
    .copy_engines = 3,
};

void sim__cost_call(enum sim_call call) {
    if (sim__schedule == &sim__schedule_timed)
        sim__state.now_ns += sim__costs.call_ns[call];
}

void sim__cost_spend(uint64_t ns) {
    if (sim__schedule == &sim__schedule_timed)
        sim__state.now_ns += ns;
}

static uint64_t at_rate(double amount, double rate) {
    return rate > 0 ? (uint64_t)(amount / rate + 0.5) : 0;
}

static uint64_t copy_cost(const struct sim__copy *copy) {
    const double bytes = (double)copy->size * (double)copy->rows;
    const bool from = copy->source_place == SIM__PLACE_DEVICE,
               to = copy->destination_place == SIM__PLACE_DEVICE;
    const bool pageable = copy->source_place == SIM__PLACE_PAGEABLE ||
                          copy->destination_place == SIM__PLACE_PAGEABLE;
    if (copy->peer)
        return sim__costs.copy_ns + at_rate(bytes, sim__costs.peer_bandwidth);
    if (from && to)
        return sim__costs.copy_ns + at_rate(2 * bytes, sim__costs.device_bandwidth);
    if (pageable)
        return sim__costs.copy_ns + at_rate(bytes, sim__costs.pageable_bandwidth);
    return sim__costs.copy_ns + at_rate(bytes, to ? sim__costs.host_to_device_bandwidth
                                                  : sim__costs.device_to_host_bandwidth);
}

static uint64_t kernel_cost(const struct sim__kernel *kernel) {
    uint64_t longest = sim__costs.kernel_ns;
    const uint64_t moving = at_rate((double)kernel->bytes, sim__costs.device_bandwidth);
    const uint64_t computing = at_rate((double)kernel->flops, sim__costs.compute_rate);
    if (moving > longest)
        longest = moving;
    return computing > longest ? computing : longest;
}

uint64_t sim__cost_operation(const struct sim__operation *operation) {
    switch (operation->kind) {
    case SIM__OPERATION_RECORD: return sim__costs.record_ns;
    case SIM__OPERATION_WAIT: return sim__costs.wait_ns;
    case SIM__OPERATION_COPY: return copy_cost(&operation->copy);
    case SIM__OPERATION_FILL:
        return sim__costs.fill_ns +
               at_rate((double)operation->fill.size * (double)operation->fill.rows,
                       sim__costs.device_bandwidth);
    case SIM__OPERATION_KERNEL: return kernel_cost(&operation->kernel);
    case SIM__OPERATION_HOST_FUNCTION: return sim__costs.host_function_ns;
    case SIM__OPERATION_VALUE: return sim__costs.value_ns;
    case SIM__OPERATION_INTERNAL: return 0;
    }
    return 0;
}
