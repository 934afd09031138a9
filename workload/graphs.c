// The program `graphs`: steps of a model (ternary.h) captured into CUDA graphs and launched. Inputs
// are copied into a buffer that stays. The output of training is read where the graph leaves it, in
// its own memory; those of inference the graph copies into a buffer, as servers do: of graphs that
// share a pool any may write where another one left something. The first step runs without a graph,
// to warm up; half-way one graph is destroyed and captured again. Variants:
//
//     step      training, forward to update, as one graph (the default)
//     shapes    inference, a graph for each of several batch sizes, all in one pool, the largest
//               first. A request takes the smallest graph that holds it; in any order
//     apart     the same with a pool for each graph
//     streams   training; the weights' gradients and updates on a side stream beside the rest of
//               backward. What the side stream uses is dropped at once, with record_stream
//
// What `streams` drops in its capture waits for the capture's end, or is used again in it with
// graph_capture_record_stream_reuse:True, in either form: the last drop comes before the last join,
// without which x_capture_reuse:markers would cost the capture.
//
// Where nothing can be captured (x_allocator:direct) every step runs without a graph; it computes
// the same.
#include "workload/programs.h"

#include "base/size.h"
#include "tensor/nn.h"
#include "workload/capture.h"
#include "workload/ternary.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 16

static const size_t workspace_bytes[] = {64 * BASE_KIB, 8 * BASE_MIB, 32 * BASE_MIB};

// The work on inputs of so many rows, as a graph once it is captured.
struct entry {
    struct graphs *graphs;
    int64_t rows;
    struct tensor input;  // the first rows of the buffer
    struct tensor output; // of its buffer, too, or the last result
    struct allocator_pool_id pool;
    struct workload_graph graph;
};

struct graphs {
    struct workload_run *run;
    struct ternary_shape shape;
    bool is_training, has_side, is_apart;
    bool has_outputs; // a buffer for them
    struct workload_captures captures;
    struct base_random random;
    cudaStream_t compute, side;
    struct tensor *weights, *states; // of each layer; its inputs, of which there is one more
    struct tensor input, output;     // buffers
    struct entry entries[ENTRIES_MAX];
    int entry_count;
    uint64_t pool_count; // pools so far
};

//------------------------------------------------------------------------------------------------
// The work.

static enum base_status forward(struct graphs *graphs, struct tensor input) {
    enum base_status status = BASE_OK;
    graphs->states[0] = tensor_retain(input);
    for (int layer = 0; layer < graphs->shape.layers && status == BASE_OK; ++layer) {
        status = ternary_forward(graphs->states[layer], graphs->weights[layer],
                                 &graphs->states[layer + 1]);
        if (!graphs->is_training) tensor_release(&graphs->states[layer]);
    }
    return status;
}

// Uses up the layer's inputs and *GRADIENT, which becomes that of the inputs.
static enum base_status backward_layer(struct graphs *graphs, int layer, struct tensor *gradient) {
    struct tensor *const inputs = &graphs->states[layer], weights = graphs->weights[layer];
    struct tensor of_weights = {NULL}, before;
    enum base_status status = ternary_backward(*gradient, weights, &before);
    if (status != BASE_OK) return status;
    if (graphs->has_side) {
        status = workload_stream_wait(0, graphs->side, 0, graphs->compute);
        tensor_set_stream(0, graphs->side);
    }
    if (status == BASE_OK) status = ternary_gradient(*inputs, *gradient, &of_weights);
    if (status == BASE_OK) // a graph takes the same step at each launch
        status = ternary_update(weights, of_weights, graphs->shape.batch, 0);
    tensor_release(&of_weights);
    tensor_set_stream(0, graphs->compute);
    if (graphs->has_side && status == BASE_OK)
        status = tensor_record_stream(*gradient, graphs->side);
    if (graphs->has_side && status == BASE_OK && layer > 0) // the first layer's inputs stay
        status = tensor_record_stream(*inputs, graphs->side);
    tensor_release(inputs);
    tensor_release(gradient);
    *gradient = before;
    return status;
}

// With a side stream each layer is joined one turn later, so that the two run side by side.
static enum base_status backward(struct graphs *graphs) {
    struct workload_mark done[2] = {{NULL}, {NULL}};
    struct tensor gradient = tensor_retain(graphs->states[graphs->shape.layers]);
    enum base_status status = BASE_OK;
    for (int layer = graphs->shape.layers - 1; layer >= 0 && status == BASE_OK; --layer) {
        status = backward_layer(graphs, layer, &gradient);
        if (graphs->has_side && status == BASE_OK)
            status = workload_mark_wait(&done[(layer + 1) % 2], 0, graphs->compute);
        if (graphs->has_side && status == BASE_OK)
            status = workload_mark_set(&done[layer % 2], 0, graphs->side);
    }
    tensor_release(&gradient);
    if (graphs->has_side && status == BASE_OK)
        status = workload_stream_wait(0, graphs->compute, 0, graphs->side);
    workload_mark_drop(&done[0]);
    workload_mark_drop(&done[1]);
    return status;
}

// RESULT is used up.
static enum base_status output_set(struct entry *entry, struct tensor *result) {
    enum base_status status = BASE_OK;
    if (entry->graphs->has_outputs) {
        status = tensor_copy_(entry->output, *result);
        tensor_release(result);
    } else {
        tensor_release(&entry->output);
        entry->output = *result;
        *result = (struct tensor){NULL};
    }
    return status;
}

static enum base_status work(void *context) {
    struct entry *const entry = context;
    struct graphs *const graphs = entry->graphs;
    enum base_status status = forward(graphs, entry->input);
    struct tensor *const last = &graphs->states[graphs->shape.layers];
    if (status == BASE_OK && graphs->is_training) status = backward(graphs);
    if (status == BASE_OK) status = output_set(entry, last);
    for (int layer = 0; layer <= graphs->shape.layers; ++layer)
        tensor_release(&graphs->states[layer]);
    return status;
}

//------------------------------------------------------------------------------------------------
// Graphs.

static enum base_status entry_capture(struct entry *entry) {
    struct graphs *const graphs = entry->graphs;
    if (graphs->captures.memory == WORKLOAD_CAPTURE_NONE) return BASE_OK;
    if (!graphs->has_outputs) tensor_release(&entry->output);
    workload_graph_destroy(&entry->graph);
    if (entry->pool.capture == 0 || graphs->is_training || graphs->is_apart)
        entry->pool.capture = ++graphs->pool_count;
    return workload_capture(&graphs->captures, entry->pool, work, entry, &entry->graph);
}

static enum base_status captures_make(struct graphs *graphs) {
    enum base_status status = BASE_OK;
    for (int index = 0; index < graphs->entry_count && status == BASE_OK; ++index) {
        struct entry *const entry = &graphs->entries[index];
        if (index > 0 && !graphs->is_apart) entry->pool = graphs->entries[0].pool;
        status = entry_capture(entry);
    }
    return status;
}

static enum base_status recapture(struct graphs *graphs) {
    const uint64_t index = base_random_below(&graphs->random, (uint64_t)graphs->entry_count);
    return entry_capture(&graphs->entries[index]);
}

//------------------------------------------------------------------------------------------------
// A step.

static enum base_status input_copy(struct graphs *graphs, uint64_t step, int64_t rows) {
    struct tensor input, place;
    const int64_t sizes[] = {rows, graphs->shape.width};
    enum base_status status =
        tensor_empty(&graphs->run->pinned, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS, &input);
    if (status != BASE_OK) return status;
    status = ternary_input_fill(graphs->run, step, 0, input);
    if (status == BASE_OK) status = tensor_narrow(graphs->input, 0, 0, rows, &place);
    if (status == BASE_OK) {
        status = tensor_copy_non_blocking_(place, input);
        tensor_release(&place);
    }
    tensor_release(&input);
    return status;
}

static enum base_status output_read(const struct entry *entry, uint64_t step, int64_t rows) {
    struct tensor output;
    enum base_status status = tensor_narrow(entry->output, 0, 0, rows, &output);
    if (status != BASE_OK) return status;
    status = workload_run_add(entry->graphs->run, step, output);
    tensor_release(&output);
    return status;
}

// The smallest one that holds them; they are in descending order.
static struct entry *entry_find(struct graphs *graphs, int64_t rows) {
    int index = graphs->entry_count - 1;
    while (graphs->entries[index].rows < rows)
        --index;
    return &graphs->entries[index];
}

static enum base_status step_run(struct graphs *graphs, uint64_t step) {
    const int64_t batch = graphs->shape.batch;
    const int64_t rows = graphs->is_training
                             ? batch
                             : 1 + (int64_t)base_random_below(&graphs->random, (uint64_t)batch);
    struct entry *const entry = entry_find(graphs, rows);
    enum base_status status = input_copy(graphs, step, rows);
    if (status == BASE_OK)
        status = entry->graph.captures != NULL
                     ? workload_graph_launch(&entry->graph, graphs->compute)
                     : work(entry);
    return status == BASE_OK ? output_read(entry, step, rows) : status;
}

//------------------------------------------------------------------------------------------------
// The program.

static enum base_status weights_make(struct graphs *graphs) {
    const int64_t sizes[] = {graphs->shape.width, graphs->shape.width};
    struct tensor host;
    enum base_status status =
        tensor_empty(&graphs->run->host, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS, &host);
    if (status != BASE_OK) return status;
    for (int layer = 0; layer < graphs->shape.layers && status == BASE_OK; ++layer) {
        status = ternary_weights_fill(graphs->run, layer, host);
        if (status == BASE_OK)
            status =
                tensor_to_place(host, &graphs->run->devices[0], false, &graphs->weights[layer]);
    }
    tensor_release(&host);
    return status;
}

static enum base_status entry_init(struct graphs *graphs, int64_t rows) {
    struct entry *const entry = &graphs->entries[graphs->entry_count++];
    *entry = (struct entry){.graphs = graphs, .rows = rows};
    enum base_status status = tensor_narrow(graphs->input, 0, 0, rows, &entry->input);
    if (status == BASE_OK && graphs->has_outputs)
        status = tensor_narrow(graphs->output, 0, 0, rows, &entry->output);
    return status;
}

static enum base_status entries_make(struct graphs *graphs) {
    const int64_t sizes[] = {graphs->shape.batch, graphs->shape.width};
    enum base_status status =
        tensor_zeros(&graphs->run->devices[0], TENSOR_FLOAT32, sizes, 2, &graphs->input);
    if (status == BASE_OK && graphs->has_outputs)
        status = tensor_zeros(&graphs->run->devices[0], TENSOR_FLOAT32, sizes, 2, &graphs->output);
    for (int64_t rows = graphs->shape.batch; rows > 0 && status == BASE_OK; rows /= 2) {
        status = entry_init(graphs, rows);
        if (graphs->is_training) break;
    }
    return status;
}

static enum base_status graphs_init(struct graphs *graphs) {
    const size_t layers = (size_t)graphs->shape.layers;
    graphs->weights = calloc(2 * layers + 1, sizeof *graphs->weights);
    if (graphs->weights == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu layers", layers);
    graphs->states = graphs->weights + layers;
    enum base_status status = workload_run_stream(graphs->run, 0, &graphs->compute);
    if (status == BASE_OK) status = workload_run_stream(graphs->run, 0, &graphs->side);
    if (status != BASE_OK) return status;
    graphs->captures = workload_captures(graphs->run->options.allocator, 0, graphs->compute);
    graphs->has_outputs = !graphs->is_training || graphs->captures.memory == WORKLOAD_CAPTURE_NODES;
    tensor_set_stream(0, graphs->compute);
    tensor_set_workspaces(workspace_bytes[graphs->run->options.size], 0);
    status = weights_make(graphs);
    return status == BASE_OK ? entries_make(graphs) : status;
}

static void graphs_deinit(struct graphs *graphs) {
    for (int index = 0; index < graphs->entry_count; ++index) {
        struct entry *const entry = &graphs->entries[index];
        tensor_release(&entry->input);
        tensor_release(&entry->output);
        workload_graph_destroy(&entry->graph);
    }
    tensor_release(&graphs->input);
    tensor_release(&graphs->output);
    for (int layer = 0; graphs->weights != NULL && layer < graphs->shape.layers; ++layer)
        tensor_release(&graphs->weights[layer]);
    free(graphs->weights);
    tensor_set_workspaces(0, 0);
}

// Of what was learned.
static enum base_status weights_add(struct graphs *graphs) {
    enum base_status status = BASE_OK;
    for (int layer = 0; layer < graphs->shape.layers && status == BASE_OK; ++layer)
        status = workload_run_add(graphs->run, graphs->run->options.steps + (uint64_t)layer,
                                  graphs->weights[layer]);
    return status;
}

static enum base_status run(struct workload_run *run) {
    const char *const variant = run->options.variant;
    struct graphs graphs = {.run = run,
                            .shape = ternary_shape(run->options.size),
                            .is_training =
                                strcmp(variant, "step") == 0 || strcmp(variant, "streams") == 0,
                            .has_side = strcmp(variant, "streams") == 0,
                            .is_apart = strcmp(variant, "apart") == 0,
                            .random = base_random_init(run->options.seed, "graphs")};
    const uint64_t steps = run->options.steps, middle = steps / 2;
    enum base_status status = graphs_init(&graphs);
    for (uint64_t step = 0; step < steps && status == BASE_OK; ++step) {
        if (step == 1) status = captures_make(&graphs);
        if (step > 1 && step == middle) status = recapture(&graphs);
        if (status == BASE_OK) status = step_run(&graphs, step);
        if (status == BASE_OK) status = workload_run_step(run);
    }
    if (status == BASE_OK) status = weights_add(&graphs);
    graphs_deinit(&graphs);
    return status;
}

static const char *const variants[] = {"step", "shapes", "apart", "streams", NULL};

const struct workload_program workload_graphs = {
    .name = "graphs",
    .summary = "steps as CUDA graphs: one, many shapes in one pool, side streams inside",
    .variants = variants,
    .steps = {6, 8, 12},
    .device_count_min = 1,
    .device_count_max = 1,
    .run = run,
};
