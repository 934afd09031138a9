// What launches are on the simulated device: places named to the byte for the race checker, faults
// where memory or an index is none, nodes of captures, nothing without numerics.
#include "base/check.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"
#include "tensor/kernel/launch.h"

#include <math.h>
#include <string.h>

#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

static void machine_start(const struct sim_options *options) {
    BASE_CHECK_EQ(sim_configure(options), BASE_OK);
}

static float *floats_make(int64_t count, float value) {
    float *device, host[256];
    BASE_CHECK_LE(count, 256);
    for (int64_t i = 0; i < count; ++i)
        host[i] = value;
    CUDA(cudaMalloc((void **)&device, (size_t)count * sizeof *device));
    CUDA(cudaMemcpy(device, host, (size_t)count * sizeof *host, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    return device;
}

static float float_at(const float *device, int64_t i) {
    float value;
    CUDA(cudaMemcpy(&value, device + i, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static struct tensor_kernel_array array_of(float *data, int64_t stride0, int64_t stride1) {
    return (struct tensor_kernel_array){data, TENSOR_KERNEL_FLOAT32, {stride0, stride1}};
}

// A fill of ROWS x COLUMNS of a matrix whose rows are 16 apart, and one of a single element beside.
static uint64_t races_of(bool transposed, int64_t rows, int64_t columns, int64_t element) {
    cudaStream_t streams[2];
    machine_start(&(struct sim_options){0});
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    float *matrix = floats_make(256, 0);
    for (int i = 0; i < 2; ++i)
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    struct tensor_kernel_pointwise fill = {.operation = TENSOR_KERNEL_FILL,
                                           .compute = TENSOR_KERNEL_FLOAT32,
                                           .shape = {2, {rows, columns}},
                                           .out = array_of(matrix, 16, 1),
                                           .scalar = {1, 1}};
    if (transposed) {
        fill.shape = (struct tensor_kernel_shape){2, {columns, rows}};
        fill.out = array_of(matrix, 1, 16);
    }
    CUDA(tensor_launch_pointwise(&fill, streams[0]));
    CUDA(cudaMemsetAsync(matrix + element, 0, sizeof(float), streams[1]));
    const uint64_t count = sim_race_count(SIM_RACE_WRITE_WRITE);
    sim_race_stop();
    return count;
}

static void places_are_named_to_the_element(void) {
    for (int transposed = 0; transposed < 2; ++transposed)
        for (int64_t element = 0; element < 256; ++element) {
            base_check_context("element %d", (int)element);
            const bool is_inside = element / 16 < 5 && element % 16 < 3;
            BASE_CHECK_EQ(races_of(transposed, 5, 3, element), is_inside);
        }
    base_check_context(NULL);
}

static void a_copy_hands_on_what_nobody_wrote(void) {
    machine_start(&(struct sim_options){0});
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    float *unwritten, *to = floats_make(16, 0);
    CUDA(cudaMalloc((void **)&unwritten, 64));
    struct tensor_kernel_pointwise kernel = {.operation = TENSOR_KERNEL_COPY,
                                             .compute = TENSOR_KERNEL_FLOAT32,
                                             .shape = {1, {16}},
                                             .out = array_of(to, 1, 0),
                                             .a = array_of(unwritten, 1, 0)};
    CUDA(tensor_launch_pointwise(&kernel, NULL));
    CUDA(cudaDeviceSynchronize());
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), 0);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    CUDA(cudaMalloc((void **)&unwritten, 64));
    kernel.a.data = unwritten;
    kernel.operation = TENSOR_KERNEL_NEG; // looks at it
    CUDA(tensor_launch_pointwise(&kernel, NULL));
    CUDA(cudaDeviceSynchronize());
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), 1);
}

static void an_index_that_is_none_is_a_fault(void) {
    for (int64_t bad = -1; bad <= 4; bad += 5) {
        machine_start(&(struct sim_options){0});
        float *table = floats_make(16, 2), *out = floats_make(4, 0);
        int64_t *index;
        CUDA(cudaMalloc((void **)&index, sizeof bad));
        CUDA(cudaMemcpy(index, &bad, sizeof bad, cudaMemcpyHostToDevice));
        CUDA(tensor_launch_gather(
            &(struct tensor_kernel_gather){.count = 1,
                                           .columns = 4,
                                           .table_rows = 4,
                                           .out = {{out, TENSOR_KERNEL_FLOAT32, {4}}, 1},
                                           .table = {{table, TENSOR_KERNEL_FLOAT32, {4}}, 1},
                                           .index = {index, TENSOR_KERNEL_INT64, {1}}},
            NULL));
        BASE_CHECK(cudaDeviceSynchronize() != cudaSuccess);
    }
    machine_start(&(struct sim_options){0});
    CUDA(cudaDeviceSynchronize());
}

static struct tensor_kernel_sgd step_of(float *parameter, float *gradient, int64_t count) {
    return (struct tensor_kernel_sgd){.count = count,
                                      .rate = 1,
                                      .parameter = array_of(parameter, 1, 0),
                                      .gradient = array_of(gradient, 1, 0)};
}

static void memory_that_is_gone_is_a_fault(void) {
    machine_start(&(struct sim_options){0});
    float *parameter = floats_make(8, 1), *gradient = floats_make(8, 1);
    const struct tensor_kernel_sgd step = step_of(parameter, gradient, 8);
    CUDA(cudaFree(gradient));
    CUDA(tensor_launch_sgd(&step, NULL));
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

static void a_captured_launch_is_replayed(void) {
    machine_start(&(struct sim_options){0});
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *parameter = floats_make(8, 10), *gradient = floats_make(8, 1);
    struct tensor_kernel_sgd step = step_of(parameter, gradient, 8);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(tensor_launch_sgd(&step, stream));
    memset(&step, 0, sizeof step); // its own by now
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i)
        CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    BASE_CHECK(float_at(parameter, 7) == 7);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

static void checked_mode_reaches_the_same_bytes(void) {
    machine_start(&(struct sim_options){.checked = true});
    float *parameter = floats_make(8, 10), *gradient = floats_make(8, 1);
    const struct tensor_kernel_sgd step = step_of(parameter, gradient, 8);
    CUDA(tensor_launch_sgd(&step, NULL));
    BASE_CHECK(float_at(parameter, 0) == 9);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
}

static void without_numerics_nothing_runs(void) {
    machine_start(&(struct sim_options){.numerics = SIM_NUMERICS_OFF});
    float *huge;
    CUDA(cudaMalloc((void **)&huge, (size_t)40 << 30));
    const struct tensor_kernel_sgd step = step_of(huge, huge, (int64_t)10 << 30);
    const uint64_t before = sim_call_count(SIM_CALL_LAUNCH);
    CUDA(tensor_launch_sgd(&step, NULL));
    CUDA(tensor_launch_sgd(&(struct tensor_kernel_sgd){.count = 0}, NULL));
    CUDA(cudaDeviceSynchronize());
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_LAUNCH) - before, 1); // of nothing: none
    machine_start(&(struct sim_options){0});
}

// The time of attention on a device is that of its arithmetic: by the cores where numbers have 32
// bits, by tensor cores where they have 16; half of it where each query sees half of the keys.
static double attention_us(int type, bool is_causal) {
    const int64_t rows = 4096, columns = 64;
    machine_start(&(struct sim_options){.numerics = SIM_NUMERICS_OFF});
    BASE_CHECK_EQ(sim_profile("h200"), BASE_OK);
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    void *memory;
    float ms;
    cudaEvent_t begin, end;
    CUDA(cudaMalloc(&memory, (size_t)(8 * rows * columns) * sizeof(float)));
    const struct tensor_kernel_rows all = {{memory, type, {rows * columns, columns}}, 1};
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventRecord(begin, NULL));
    CUDA(tensor_launch_attention(
        &(struct tensor_kernel_attention){.form = {.shape = {2, {8, rows}},
                                                   .keys = rows,
                                                   .columns = columns,
                                                   .value_columns = columns,
                                                   .is_causal = is_causal,
                                                   .scale = 1},
                                          .out = all,
                                          .query = all,
                                          .key = all,
                                          .value = all,
                                          .total = {memory, TENSOR_KERNEL_FLOAT32, {1}}},
        NULL));
    CUDA(cudaEventRecord(end, NULL));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    machine_start(&(struct sim_options){0});
    return (double)ms * 1000;
}

static void attention_takes_the_time_of_its_arithmetic(void) {
    const double flops = 2.0 * 8 * 4096 * 4096 * (64 + 64);
    const double wide = attention_us(TENSOR_KERNEL_FLOAT32, false);
    const double half = attention_us(TENSOR_KERNEL_FLOAT32, true);
    const double short_ones = attention_us(TENSOR_KERNEL_BFLOAT16, false);
    base_check_context("%g, %g, %g us", wide, half, short_ones);
    const double beside = 8;                        // launch and events
    BASE_CHECK(fabs(wide - flops / 54e6) < beside); // 54 TFLOP/s
    BASE_CHECK(fabs(half - flops / 2 / 54e6) < beside);
    BASE_CHECK(fabs(short_ones - flops / 790e6) < beside);
    base_check_context(NULL);
}

int main(void) {
    places_are_named_to_the_element();
    a_copy_hands_on_what_nobody_wrote();
    an_index_that_is_none_is_a_fault();
    memory_that_is_gone_is_a_fault();
    a_captured_launch_is_replayed();
    checked_mode_reaches_the_same_bytes();
    without_numerics_nothing_runs();
    attention_takes_the_time_of_its_arithmetic();
    return 0;
}
