// Operators in captured graphs. Chance: each launch draws what the state says, as the same
// operators would with their offset moved on. Products: what cuBLAS works in is the graph's own.
#include "allocator/captures.h"
#include "simulator/sim_race.h"
#include "tensor/nn_testing.h"

#define CHECK_CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)
#define COUNT 48
#define LAUNCHES 4

// Operators under test: from IN to OUT, drawing from GENERATOR.
typedef void work(struct tensor in, struct tensor_generator *generator, struct tensor *out);

static void drop(struct tensor in, struct tensor_generator *generator, struct tensor *out) {
    CHECK_OK(tensor_dropout(in, 0.5, generator, out));
}

// The gradient of attention, which draws a second time.
static void attend_back(struct tensor in, struct tensor_generator *generator, struct tensor *out) {
    struct tensor leaf, shaped, attended;
    CHECK_OK(tensor_detach(in, &leaf));
    CHECK_OK(tensor_set_requires_grad(leaf, true));
    CHECK_OK(tensor_view(leaf, SIZES(1, 2, 6, 4), &shaped));
    CHECK_OK(tensor_scaled_dot_product_attention(
        shaped, shaped, shaped,
        &(struct tensor_attention){
            .form = TENSOR_ATTENTION_FUSED, .probability = 0.5, .generator = generator},
        &attended));
    CHECK_OK(tensor_backward(attended, attended, false));
    *out = tensor_retain(tensor_grad(leaf));
    tensor_release(&leaf);
    tensor_release(&shaped);
    tensor_release(&attended);
}

// By cuBLAS and, with a bias, by cuBLASLt.
static void multiply(struct tensor in, struct tensor_generator *generator, struct tensor *out) {
    struct tensor rows, columns, square, bias;
    (void)generator;
    CHECK_OK(tensor_view(in, SIZES(6, 8), &rows));
    CHECK_OK(tensor_transpose_2d(rows, &columns));
    CHECK_OK(tensor_mm(rows, columns, &square));
    CHECK_OK(tensor_select(square, 0, 1, &bias));
    CHECK_OK(tensor_addmm(bias, square, square, out));
    tensor_release(&rows);
    tensor_release(&columns);
    tensor_release(&square);
    tensor_release(&bias);
}

static struct tensor input(const struct tensor_place *place) {
    struct base_random random = base_random_init(1, "capture");
    double *numbers = nn_numbers(&random, COUNT);
    struct tensor in = nn_tensor(place, TENSOR_FLOAT32, SIZES(COUNT), numbers, NN_ROWS);
    free(numbers);
    return in;
}

static void capture(const struct tensor_place *place, cudaStream_t stream, work *function,
                    struct tensor in, struct tensor_generator *generator, struct tensor *out,
                    cudaGraphExec_t *exec) {
    const struct allocator_pool_id pool = {.capture = 1};
    cudaGraph_t graph;
    enum cudaStreamCaptureStatus status;
    unsigned long long number;
    CHECK_OK(cca_pool_begin(place->allocator, 0, pool, NULL));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &number, NULL, NULL, NULL, NULL));
    CHECK_OK(cca_capture_begin(place->allocator, 0,
                               &(struct cca_capture){.id = number, .stream = stream}));
    function(in, generator, out);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_OK(cca_capture_end(place->allocator, 0, number));
    CHECK_OK(cca_pool_end(place->allocator, 0, pool));
    CHECK_CUDA(cudaGraphInstantiate(exec, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
}

static void launches_draw_as_their_state_says(work *function) {
    struct tensor_place place = nn_place(1);
    struct tensor in = input(&place), state, out;
    struct tensor_generator generator = {.seed = 3, .offset = 8};
    const uint64_t before = generator.offset;
    cudaStream_t stream;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_OK(tensor_zeros(&place, TENSOR_INT64, NULL, 0, &state));
    CHECK_CUDA(cudaDeviceSynchronize());
    tensor_set_stream(0, stream);
    CHECK_OK(tensor_set_generator_state(state));
    capture(&place, stream, function, in, &generator, &out, &exec);
    CHECK_OK(tensor_set_generator_state((struct tensor){0}));
    const uint64_t moved = generator.offset - before;
    double *last = NULL;
    for (uint64_t launch = 0; launch < LAUNCHES; launch++) {
        CHECK_OK(tensor_fill_(state, tensor_operand_integer((int64_t)(launch * moved))));
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        struct tensor_generator eager = {.seed = 3, .offset = before + launch * moved};
        struct tensor wanted;
        function(in, &eager, &wanted);
        double *got = nn_read(out), *want = nn_read(wanted);
        base_check_context("launch %d", (int)launch);
        BASE_CHECK_EQ(memcmp(got, want, COUNT * sizeof *got), 0);
        BASE_CHECK(last == NULL || memcmp(got, last, COUNT * sizeof *got) != 0); // drawn anew
        free(last);
        free(want);
        last = got;
        tensor_release(&wanted);
    }
    free(last);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    tensor_release(&in);
    tensor_release(&state);
    tensor_release(&out);
    CHECK_OK(cca_pool_release(place.allocator, 0, (struct allocator_pool_id){.capture = 1}));
    BASE_CHECK_EQ(testing_live_blocks(&place), 0);
    tensor_set_stream(0, NULL);
    allocator_destroy(place.allocator);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

// With workspaces of the tensors' allocator, which are the pool's then, and with cuBLAS's own,
// which are nodes of the graph. What takes memory between launches, for workspaces as well, writes
// nowhere where a launch works, and the other way round.
static void products_of_a_graph_work_in_memory_of_its_own(size_t product, size_t biased) {
    base_check_context("workspaces of %zu and %zu bytes", product, biased);
    struct tensor_place place = nn_place(1);
    struct tensor in = input(&place), out;
    struct allocator_stats before, after;
    cudaStream_t stream;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_OK(sim_race_start(&(struct sim_race_options){.quiet = true}));
    tensor_set_stream(0, stream);
    tensor_set_workspaces(product, biased);
    CHECK_OK(allocator_stats(place.allocator, 0, &before));
    capture(&place, stream, multiply, in, NULL, &out, &exec);
    CHECK_OK(allocator_stats(place.allocator, 0, &after));
    BASE_CHECK_GE(after.reserved_bytes[ALLOCATOR_STAT_ALL].current -
                      before.reserved_bytes[ALLOCATOR_STAT_ALL].current,
                  (int64_t)product);
    for (int launch = 0; launch < LAUNCHES; launch++) {
        struct tensor wanted, other;
        CHECK_OK(tensor_mul_(in, tensor_operand_floating(-1.5)));
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        multiply(in, NULL, &wanted);
        CHECK_OK(tensor_full(&place, TENSOR_FLOAT32, SIZES(1 << 20), tensor_floating(7), &other));
        tensor_release(&other);
        double *got = nn_read(out), *want = nn_read(wanted);
        BASE_CHECK_EQ(memcmp(got, want, 36 * sizeof *got), 0);
        BASE_CHECK(got[0] != 0);
        free(got);
        free(want);
        tensor_release(&wanted);
    }
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    tensor_set_workspaces(0, 0);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    tensor_release(&in);
    tensor_release(&out);
    CHECK_OK(cca_pool_release(place.allocator, 0, (struct allocator_pool_id){.capture = 1}));
    BASE_CHECK_EQ(testing_live_blocks(&place), 0);
    tensor_set_stream(0, NULL);
    allocator_destroy(place.allocator);
    CHECK_CUDA(cudaStreamDestroy(stream));
}

static void a_state_is_one_integer_where_the_work_is(void) {
    struct tensor_place cpu = nn_place(0), device = nn_place(1);
    struct tensor two, here, in, out;
    struct tensor_generator generator = {.seed = 3};
    CHECK_OK(tensor_zeros(&device, TENSOR_INT64, SIZES(2), &two));
    CHECK_OK(tensor_zeros(&cpu, TENSOR_INT64, NULL, 0, &here));
    CHECK_OK(tensor_zeros(&device, TENSOR_FLOAT32, SIZES(4), &in));
    CHECK_REFUSED(tensor_set_generator_state(two),
                  "a generator's state is one int64, not 2 elements of type int64");
    CHECK_REFUSED(tensor_set_generator_state(in), "not 4 elements of type float32");
    CHECK_OK(tensor_set_generator_state(here));
    CHECK_REFUSED(tensor_dropout(in, 0.5, &generator, &out), "on the same device");
    BASE_CHECK_EQ(generator.offset, 0);
    CHECK_OK(tensor_set_generator_state((struct tensor){0}));
    tensor_release(&two);
    tensor_release(&here);
    tensor_release(&in);
    allocator_destroy(cpu.allocator);
    allocator_destroy(device.allocator);
}

int main(void) {
    launches_draw_as_their_state_says(drop);
    launches_draw_as_their_state_says(attend_back);
    a_state_is_one_integer_where_the_work_is();
    products_of_a_graph_work_in_memory_of_its_own(0, 0);
    products_of_a_graph_work_in_memory_of_its_own((size_t)4 << 20, (size_t)1 << 20);
    base_check_context(NULL);
    return 0;
}
