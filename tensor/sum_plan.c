// See sum_plan.h. After setReduceConfig of PyTorch's ATen/native/cuda/Reduce.cuh, with its names
// where they stay short.
#include "tensor/sum_plan.h"

#define THREADS_MAX 512 // of a block
#define WARP 32
#define VECTOR 4 // numbers that a thread reads at once
#define VALUES_MIN 16
#define VALUES_MAX 256 // of a thread, before blocks share

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t last_power(int64_t value) {
    int64_t power = 1;
    while (2 * power <= value)
        power *= 2;
    return power;
}

struct block {
    int64_t width, height;
};

// Width goes along what lies side by side, height along the other direction.
static struct block block_of(int64_t along, int64_t across, int64_t threads) {
    const int64_t width = along < threads ? last_power(along) : threads;
    const int64_t height = across < threads ? last_power(across) : threads;
    struct block block = {.width = least(width, WARP)};
    block.height = least(height, threads / block.width);
    block.width = least(width, threads / block.height);
    return block;
}

struct tensor_sum_plan tensor_sum_plan(const struct tensor_sum_shape *shape, int multiprocessors,
                                       int threads) {
    struct tensor_sum_plan plan = {.parts = 1};
    if (shape->results <= 0 || shape->inputs <= 0)
        return plan;
    const bool adds_along = shape->is_total || shape->added_stride < shape->kept_stride;
    int64_t along = adds_along ? shape->inputs : shape->results;
    int64_t vector = 1; // results that a thread has at once
    if (adds_along && shape->is_flat && shape->added_stride == 1 && along > 128) {
        along /= VECTOR;
    } else if (!adds_along && shape->kept_stride == 1) {
        vector = least(VECTOR, shape->alignment);
        while (shape->row % vector != 0)
            vector /= 2;
        along /= vector;
    }
    const struct block block =
        block_of(along, adds_along ? shape->results : shape->inputs, THREADS_MAX / vector);
    int64_t step_input = adds_along ? block.width : 1, step_result = adds_along ? 1 : block.width;
    const bool is_across_warps =
        up(shape->inputs, step_input) >= least(block.height * 16, VALUES_MAX);
    if (is_across_warps)
        step_input *= block.height;
    else
        step_result *= block.height;
    const int64_t values = up(shape->inputs, step_input);
    const int64_t grid = up(shape->results / vector, step_result);
    const int64_t wanted = (int64_t)multiprocessors * (threads / (block.width * block.height));
    if (!is_across_warps || values < VALUES_MAX || grid > wanted)
        return plan;
    plan.parts = most(least(up(wanted, grid), up(values, VALUES_MIN)), up(values, VALUES_MAX));
    if (plan.parts <= 1)
        return plan;
    plan.group_results = step_result * vector;
    plan.counter_bytes = sizeof(int32_t) * (size_t)grid;
    plan.staging_bytes =
        shape->accumulator_bytes * (size_t)shape->results * (size_t)plan.parts;
    // Where a warp's threads have results of their own, each has a place, although one of them
    // writes: PyTorch takes that much, and programs here ask for what they ask for there.
    if (!adds_along)
        plan.staging_bytes *= (size_t)(block.width * vector);
    return plan;
}
