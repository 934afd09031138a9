// The program `offload`: trains a model (ternary.h) that does not fit the device. Weights and
// activations live in page-locked host memory; a layer's come to the device for its own turn, one
// turn ahead, and what it makes goes back, all on a side stream beside the computation. The host
// takes the step. Variants, which compute the same:
//
//     record_stream   each copy has a tensor of its own, dropped as soon as its work is enqueued:
//                     record_stream keeps its memory for the other stream (the default)
//     buffers         what comes lands in two buffers by turns, and what goes is kept until the
//     copy
//                     is done: streams wait for each other, record_stream has nothing to do
//     plain           no side stream: every copy is waited for
#include "workload/programs.h"

#include "workload/ternary.h"

#include <stdlib.h>
#include <string.h>

enum { WEIGHTS, ACTIVATIONS, KIND_COUNT };

// What is on its way to the device, or there.
struct fetched {
    struct tensor tensor;
    struct workload_mark ready;
    int kind, slot; // of a buffer
};

// A tensor that the side stream still reads.
struct kept {
    struct tensor tensor;
    struct workload_mark read;
};

struct offload {
    struct workload_run *run;
    struct ternary_shape shape;
    bool has_buffers, is_plain;
    cudaStream_t compute, copy;
    // Of each layer, in page-locked memory
    struct tensor *weights, *inputs, *gradients;
    // By turns
    struct tensor buffers[KIND_COUNT][2];
    struct workload_mark used[KIND_COUNT][2]; // the last use of what is in it
    int next_buffer[KIND_COUNT];
    struct kept kept[2];
    int next_kept;
};

//------------------------------------------------------------------------------------------------
// To the device.

static enum base_status fetch_into_buffer(struct offload *offload, struct tensor host,
                                          struct fetched *fetched) {
    fetched->slot = offload->next_buffer[fetched->kind]++ % 2;
    const struct tensor buffer = offload->buffers[fetched->kind][fetched->slot];
    enum base_status status =
        workload_mark_wait(&offload->used[fetched->kind][fetched->slot], 0, offload->copy);
    if (status == BASE_OK) status = tensor_copy_non_blocking_(buffer, host);
    if (status == BASE_OK) fetched->tensor = tensor_retain(buffer);
    return status;
}

static enum base_status fetch_begin(struct offload *offload, int kind, struct tensor host,
                                    struct fetched *fetched) {
    const struct tensor_place *place = &offload->run->devices[0];
    *fetched = (struct fetched){.kind = kind};
    if (offload->is_plain) return tensor_to_place(host, place, false, &fetched->tensor);
    tensor_set_stream(0, offload->copy);
    enum base_status status = offload->has_buffers
                                  ? fetch_into_buffer(offload, host, fetched)
                                  : tensor_to_place(host, place, true, &fetched->tensor);
    tensor_set_stream(0, offload->compute);
    if (status == BASE_OK) status = workload_mark_set(&fetched->ready, 0, offload->copy);
    return status;
}

static enum base_status fetch_use(const struct offload *offload, const struct fetched *fetched) {
    return workload_mark_wait(&fetched->ready, 0, offload->compute);
}

// Its last use is enqueued. Also of one that was never begun.
static enum base_status fetch_end(struct offload *offload, struct fetched *fetched) {
    enum base_status status = BASE_OK;
    if (fetched->tensor.impl != NULL && offload->has_buffers)
        status =
            workload_mark_set(&offload->used[fetched->kind][fetched->slot], 0, offload->compute);
    else if (fetched->tensor.impl != NULL && !offload->is_plain)
        status = tensor_record_stream(fetched->tensor, offload->compute);
    tensor_release(&fetched->tensor);
    workload_mark_drop(&fetched->ready);
    return status;
}

//------------------------------------------------------------------------------------------------
// To the host.

static enum base_status kept_end(struct offload *offload, struct kept *kept) {
    const enum base_status status = workload_mark_wait(&kept->read, 0, offload->compute);
    tensor_release(&kept->tensor);
    workload_mark_drop(&kept->read);
    return status;
}

// The compute stream, which may reuse DEVICE's memory, waits only when the place is needed again.
static enum base_status keep(struct offload *offload, struct tensor device) {
    struct kept *const kept = &offload->kept[offload->next_kept++ % 2];
    const enum base_status status = kept_end(offload, kept);
    if (status != BASE_OK) return status;
    kept->tensor = tensor_retain(device);
    return workload_mark_set(&kept->read, 0, offload->copy);
}

// DEVICE may be dropped afterwards.
static enum base_status store(struct offload *offload, struct tensor device, struct tensor host) {
    if (offload->is_plain) return tensor_copy_(host, device);
    enum base_status status = workload_stream_wait(0, offload->copy, 0, offload->compute);
    if (status != BASE_OK) return status;
    tensor_set_stream(0, offload->copy);
    status = tensor_copy_non_blocking_(host, device);
    tensor_set_stream(0, offload->compute);
    if (status != BASE_OK) return status;
    return offload->has_buffers ? keep(offload, device)
                                : tensor_record_stream(device, offload->copy);
}

//------------------------------------------------------------------------------------------------
// A step.

// *STATE becomes the layer's outputs.
static enum base_status forward_layer(struct offload *offload, int layer,
                                      const struct fetched *weights, struct tensor *state) {
    struct tensor outputs;
    enum base_status status = fetch_use(offload, weights);
    if (status == BASE_OK) status = ternary_forward(*state, weights->tensor, &outputs);
    if (status != BASE_OK) return status;
    status = store(offload, *state, offload->inputs[layer]);
    tensor_release(state);
    *state = outputs;
    return status;
}

static enum base_status forward(struct offload *offload, struct tensor *state) {
    struct fetched turns[2] = {{.kind = WEIGHTS}, {.kind = WEIGHTS}};
    const int layers = offload->shape.layers;
    enum base_status status = fetch_begin(offload, WEIGHTS, offload->weights[0], &turns[0]);
    for (int layer = 0; layer < layers && status == BASE_OK; ++layer) {
        struct fetched *const now = &turns[layer % 2], *const next = &turns[(layer + 1) % 2];
        if (layer + 1 < layers)
            status = fetch_begin(offload, WEIGHTS, offload->weights[layer + 1], next);
        if (status == BASE_OK) status = forward_layer(offload, layer, now, state);
        const enum base_status ended = fetch_end(offload, now);
        if (status == BASE_OK) status = ended;
    }
    for (int turn = 0; turn < 2; ++turn) {
        const enum base_status ended = fetch_end(offload, &turns[turn]);
        if (status == BASE_OK) status = ended;
    }
    return status;
}

struct turn {
    struct fetched weights, inputs;
};

static enum base_status turn_begin(struct offload *offload, int layer, struct turn *turn) {
    const enum base_status status =
        fetch_begin(offload, WEIGHTS, offload->weights[layer], &turn->weights);
    if (status != BASE_OK) return status;
    return fetch_begin(offload, ACTIVATIONS, offload->inputs[layer], &turn->inputs);
}

static enum base_status turn_end(struct offload *offload, struct turn *turn) {
    const enum base_status status = fetch_end(offload, &turn->weights);
    const enum base_status other = fetch_end(offload, &turn->inputs);
    return status == BASE_OK ? other : status;
}

// *STATE becomes the gradient of the layer's inputs.
static enum base_status backward_layer(struct offload *offload, int layer, const struct turn *turn,
                                       struct tensor *state) {
    struct tensor gradient = {NULL}, before;
    enum base_status status = fetch_use(offload, &turn->weights);
    if (status == BASE_OK) status = fetch_use(offload, &turn->inputs);
    if (status == BASE_OK) status = ternary_gradient(turn->inputs.tensor, *state, &gradient);
    if (status == BASE_OK) status = store(offload, gradient, offload->gradients[layer]);
    tensor_release(&gradient);
    if (status == BASE_OK) status = ternary_backward(*state, turn->weights.tensor, &before);
    if (status != BASE_OK) return status;
    tensor_release(state);
    *state = before;
    return BASE_OK;
}

static enum base_status backward(struct offload *offload, struct tensor *state) {
    struct turn turns[2] = {{.weights = {.kind = WEIGHTS}}, {.weights = {.kind = WEIGHTS}}};
    const int layers = offload->shape.layers;
    enum base_status status = turn_begin(offload, layers - 1, &turns[(layers - 1) % 2]);
    for (int layer = layers - 1; layer >= 0 && status == BASE_OK; --layer) {
        if (layer > 0) status = turn_begin(offload, layer - 1, &turns[(layer - 1) % 2]);
        if (status == BASE_OK) status = backward_layer(offload, layer, &turns[layer % 2], state);
        const enum base_status ended = turn_end(offload, &turns[layer % 2]);
        if (status == BASE_OK) status = ended;
    }
    for (int turn = 0; turn < 2; ++turn) {
        const enum base_status ended = turn_end(offload, &turns[turn]);
        if (status == BASE_OK) status = ended;
    }
    return status;
}

// By the host, when all has arrived; and when the device has read the weights, for the last time.
static enum base_status update(struct offload *offload, uint64_t step) {
    enum base_status status =
        workload_cuda("cudaStreamSynchronize", cudaStreamSynchronize(offload->copy));
    // Without values there is nothing that the host could compute with.
    const int layers = offload->run->options.without_values ? 0 : offload->shape.layers;
    for (int layer = 0; layer < layers && status == BASE_OK; ++layer) {
        status = ternary_update(offload->weights[layer], offload->gradients[layer],
                                offload->shape.batch, step);
        ternary_checksum(offload->run, step, layer, tensor_data(offload->weights[layer]),
                         &offload->shape);
    }
    return status;
}

static enum base_status step_run(struct offload *offload, uint64_t step) {
    struct tensor input, state = {NULL};
    const int64_t sizes[] = {offload->shape.batch, offload->shape.width};
    enum base_status status =
        tensor_empty(&offload->run->pinned, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS, &input);
    if (status != BASE_OK) return status;
    status = ternary_input_fill(offload->run, step, 0, input);
    if (status == BASE_OK)
        status = tensor_to_place(input, &offload->run->devices[0], !offload->is_plain, &state);
    tensor_release(&input);
    if (status == BASE_OK) status = forward(offload, &state);
    if (status == BASE_OK) status = backward(offload, &state);
    tensor_release(&state);
    for (int index = 0; index < 2; ++index) {
        const enum base_status ended = kept_end(offload, &offload->kept[index]);
        if (status == BASE_OK) status = ended;
    }
    return status == BASE_OK ? update(offload, step) : status;
}

//------------------------------------------------------------------------------------------------
// The program.

static enum base_status host_tensors_make(struct offload *offload) {
    const int64_t square[] = {offload->shape.width, offload->shape.width};
    const int64_t rows[] = {offload->shape.batch, offload->shape.width};
    const struct tensor_place *place = &offload->run->pinned;
    enum base_status status = BASE_OK;
    for (int layer = 0; layer < offload->shape.layers && status == BASE_OK; ++layer) {
        status = tensor_empty(place, TENSOR_FLOAT32, square, 2, TENSOR_CONTIGUOUS,
                              &offload->weights[layer]);
        if (status == BASE_OK)
            status = ternary_weights_fill(offload->run, layer, offload->weights[layer]);
        if (status == BASE_OK)
            status = tensor_empty(place, TENSOR_FLOAT32, square, 2, TENSOR_CONTIGUOUS,
                                  &offload->gradients[layer]);
        if (status == BASE_OK)
            status = tensor_empty(place, TENSOR_FLOAT32, rows, 2, TENSOR_CONTIGUOUS,
                                  &offload->inputs[layer]);
    }
    return status;
}

// They are the side stream's from the first copy on; until then nobody touches them.
static enum base_status buffers_make(struct offload *offload) {
    const int64_t width = offload->shape.width, batch = offload->shape.batch;
    enum base_status status = BASE_OK;
    tensor_set_stream(0, offload->copy);
    for (int slot = 0; slot < 2 && status == BASE_OK; ++slot) {
        status = tensor_empty(&offload->run->devices[0], TENSOR_FLOAT32, (int64_t[]){width, width},
                              2, TENSOR_CONTIGUOUS, &offload->buffers[WEIGHTS][slot]);
        if (status == BASE_OK)
            status =
                tensor_empty(&offload->run->devices[0], TENSOR_FLOAT32, (int64_t[]){batch, width},
                             2, TENSOR_CONTIGUOUS, &offload->buffers[ACTIVATIONS][slot]);
    }
    tensor_set_stream(0, offload->compute);
    return status;
}

static enum base_status offload_init(struct offload *offload) {
    const size_t layers = (size_t)offload->shape.layers;
    offload->weights = calloc(3 * layers, sizeof *offload->weights);
    if (offload->weights == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu layers", layers);
    offload->inputs = offload->weights + layers;
    offload->gradients = offload->inputs + layers;
    enum base_status status = workload_run_stream(offload->run, 0, &offload->copy);
    if (status == BASE_OK) status = host_tensors_make(offload);
    return status == BASE_OK && offload->has_buffers ? buffers_make(offload) : status;
}

// The side stream, whose memory the buffers are, comes behind their last uses.
static enum base_status buffers_end(struct offload *offload) {
    enum base_status status = BASE_OK;
    for (int kind = 0; kind < KIND_COUNT; ++kind)
        for (int slot = 0; slot < 2 && status == BASE_OK; ++slot)
            status = workload_mark_wait(&offload->used[kind][slot], 0, offload->copy);
    return status;
}

static void offload_deinit(struct offload *offload) {
    for (int index = 0; index < 2; ++index) {
        tensor_release(&offload->kept[index].tensor);
        workload_mark_drop(&offload->kept[index].read);
        for (int kind = 0; kind < KIND_COUNT; ++kind) {
            tensor_release(&offload->buffers[kind][index]);
            workload_mark_drop(&offload->used[kind][index]);
        }
    }
    for (int index = 0; offload->weights != NULL && index < 3 * offload->shape.layers; ++index)
        tensor_release(&offload->weights[index]);
    free(offload->weights);
}

static enum base_status run(struct workload_run *run) {
    struct offload offload = {.run = run,
                              .shape = ternary_shape(run->options.size),
                              .has_buffers = strcmp(run->options.variant, "buffers") == 0,
                              .is_plain = strcmp(run->options.variant, "plain") == 0,
                              .compute = tensor_stream(0)};
    enum base_status status = offload_init(&offload);
    for (uint64_t step = 0; step < run->options.steps && status == BASE_OK; ++step) {
        status = step_run(&offload, step);
        if (status == BASE_OK) status = workload_run_step(run);
    }
    const enum base_status ended = buffers_end(&offload);
    offload_deinit(&offload);
    return status == BASE_OK ? ended : status;
}

static const char *const variants[] = {"record_stream", "buffers", "plain", NULL};

const struct workload_program workload_offload = {
    .name = "offload",
    .summary = "a model in page-locked host memory, its layers copied beside the computation",
    .variants = variants,
    .steps = {2, 4, 4},
    .device_count_min = 1,
    .device_count_max = 1,
    .run = run,
};
