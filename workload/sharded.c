// The program `sharded`: trains a model (ternary.h) that is spread over several devices, as fully
// sharded data parallel does. Each device has some rows of every layer's weights and a part of the
// batch. For its turn a layer is gathered whole on every device (all-gather, one turn ahead); its
// gradients are added up, each device's rows there (reduce-scatter). Both are copies between
// devices and sums, on a side stream of each device beside the computation. Variants, which compute
// the same, on any number of devices:
//
//     record_stream   what one stream made and another one uses is dropped at once, with
//                     record_stream (the default)
//     kept            references are kept until the stream that owns the memory has waited for the
//                     other one
#include "workload/programs.h"

#include "workload/ternary.h"

#include <stdlib.h>
#include <string.h>

// A whole layer on its way to a device, or there; of the side stream's memory.
struct gathered {
    struct tensor tensor;
    struct workload_mark ready;
};

// A tensor that a stream still uses which does not own its memory.
struct kept {
    struct tensor tensor;
    struct workload_mark used;
};

// What each device has.
struct member {
    const struct tensor_place *place;
    cudaStream_t compute, side;
    struct tensor *shards, *inputs, *gradients; // of each layer; the gradients are shards, too
    struct tensor state;                        // activations, then their gradient
    struct gathered turns[2];
    struct kept gathers[2], gradients_sent[2]; // used by the computation; by the side stream
};

struct sharded {
    struct workload_run *run;
    struct ternary_shape shape;
    bool keeps;
    int count;
    struct member members[WORKLOAD_DEVICES_MAX];
};

// Where DEVICE's share of ROWS begins, and the share before it ends: whole rows, as even as it
// goes.
static int64_t share_start(const struct sharded *sharded, int64_t rows, int device) {
    return rows * device / sharded->count;
}

static void streams_of_compute(struct sharded *sharded) {
    for (int device = 0; device < sharded->count; ++device)
        tensor_set_stream(device, sharded->members[device].compute);
}

static void streams_of_side(struct sharded *sharded) {
    for (int device = 0; device < sharded->count; ++device)
        tensor_set_stream(device, sharded->members[device].side);
}

//------------------------------------------------------------------------------------------------
// What is dropped while another stream uses it.

static enum base_status kept_end(struct kept *kept, int device, cudaStream_t owner) {
    const enum base_status status = workload_mark_wait(&kept->used, device, owner);
    tensor_release(&kept->tensor);
    workload_mark_drop(&kept->used);
    return status;
}

// TENSOR is of OWNER's memory, and the work of USER on it is enqueued.
static enum base_status drop(const struct sharded *sharded, struct tensor *tensor, int device,
                             cudaStream_t owner, cudaStream_t user, struct kept *place) {
    enum base_status status;
    if (!sharded->keeps) {
        status = tensor_record_stream(*tensor, user);
        tensor_release(tensor);
        return status;
    }
    status = kept_end(place, device, owner);
    place->tensor = *tensor;
    *tensor = (struct tensor){NULL};
    return status == BASE_OK ? workload_mark_set(&place->used, device, user) : status;
}

//------------------------------------------------------------------------------------------------
// All-gather.

static enum base_status rows_of(const struct sharded *sharded, struct tensor whole, int device,
                                struct tensor *rows) {
    const int64_t start = share_start(sharded, sharded->shape.width, device);
    const int64_t end = share_start(sharded, sharded->shape.width, device + 1);
    return tensor_narrow(whole, 0, start, end - start, rows);
}

static enum base_status gather_here(struct sharded *sharded, int layer, int device, int turn) {
    struct gathered *const gathered = &sharded->members[device].turns[turn];
    const int64_t sizes[] = {sharded->shape.width, sharded->shape.width};
    enum base_status status = tensor_empty(sharded->members[device].place, TENSOR_FLOAT32, sizes, 2,
                                           TENSOR_CONTIGUOUS, &gathered->tensor);
    for (int from = 0; from < sharded->count && status == BASE_OK; ++from) {
        struct tensor rows;
        status = rows_of(sharded, gathered->tensor, from, &rows);
        if (status != BASE_OK) break;
        status = tensor_copy_(rows, sharded->members[from].shards[layer]);
        tensor_release(&rows);
    }
    if (status != BASE_OK) return status;
    return workload_mark_set(&gathered->ready, device, sharded->members[device].side);
}

static enum base_status gather_begin(struct sharded *sharded, int layer, int turn) {
    enum base_status status = BASE_OK;
    streams_of_side(sharded);
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device)
        status = gather_here(sharded, layer, device, turn);
    streams_of_compute(sharded);
    return status;
}

static enum base_status gather_wait(const struct sharded *sharded, int device, int turn) {
    const struct member *member = &sharded->members[device];
    return workload_mark_wait(&member->turns[turn].ready, device, member->compute);
}

// The last use of a turn's layer is enqueued; also of one that was never begun.
static enum base_status gather_end(struct sharded *sharded, int turn) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count; ++device) {
        struct member *const member = &sharded->members[device];
        struct gathered *const gathered = &member->turns[turn];
        if (gathered->tensor.impl != NULL) {
            const enum base_status dropped = drop(sharded, &gathered->tensor, device, member->side,
                                                  member->compute, &member->gathers[turn]);
            if (status == BASE_OK) status = dropped;
        }
        workload_mark_drop(&gathered->ready);
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// Reduce-scatter.

// WHOLES has the layer's gradients of each device; those of this device's rows add up here.
static enum base_status scatter_here(struct sharded *sharded, int layer, int device,
                                     const struct tensor *wholes) {
    struct member *const member = &sharded->members[device];
    struct tensor sum = {NULL};
    enum base_status status = BASE_OK;
    for (int turn = 0; turn < sharded->count && status == BASE_OK; ++turn) {
        const int from = (device + turn) % sharded->count;
        struct tensor rows, here = {NULL};
        status = rows_of(sharded, wholes[from], device, &rows);
        if (status != BASE_OK) break;
        if (turn == 0) {
            status = tensor_clone(rows, TENSOR_CONTIGUOUS, &sum);
        } else {
            status = tensor_to_place(rows, member->place, true, &here);
            if (status == BASE_OK)
                status = tensor_add_(sum, tensor_operand_tensor(here), tensor_integer(1));
        }
        tensor_release(&rows);
        tensor_release(&here);
    }
    tensor_release(&member->gradients[layer]);
    member->gradients[layer] = sum;
    return status;
}

static enum base_status reduce_scatter(struct sharded *sharded, int layer, struct tensor *wholes) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device)
        status = workload_stream_wait(device, sharded->members[device].side, device,
                                      sharded->members[device].compute);
    streams_of_side(sharded);
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device)
        status = scatter_here(sharded, layer, device, wholes);
    streams_of_compute(sharded);
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device) {
        struct member *const member = &sharded->members[device];
        status = drop(sharded, &wholes[device], device, member->compute, member->side,
                      &member->gradients_sent[layer % 2]);
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// A step.

static enum base_status forward_layer(struct sharded *sharded, int layer) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device) {
        struct member *const member = &sharded->members[device];
        struct tensor outputs;
        status = gather_wait(sharded, device, layer % 2);
        if (status == BASE_OK)
            status = ternary_forward(member->state, member->turns[layer % 2].tensor, &outputs);
        if (status != BASE_OK) break;
        tensor_release(&member->inputs[layer]);
        member->inputs[layer] = member->state;
        member->state = outputs;
    }
    return status;
}

static enum base_status forward(struct sharded *sharded) {
    const int layers = sharded->shape.layers;
    enum base_status status = gather_begin(sharded, 0, 0);
    for (int layer = 0; layer < layers && status == BASE_OK; ++layer) {
        if (layer + 1 < layers) status = gather_begin(sharded, layer + 1, (layer + 1) % 2);
        if (status == BASE_OK) status = forward_layer(sharded, layer);
        const enum base_status ended = gather_end(sharded, layer % 2);
        if (status == BASE_OK) status = ended;
    }
    return status;
}

static enum base_status backward_here(struct sharded *sharded, int layer, int device,
                                      struct tensor *whole) {
    struct member *const member = &sharded->members[device];
    struct tensor before;
    enum base_status status = gather_wait(sharded, device, layer % 2);
    if (status == BASE_OK) status = ternary_gradient(member->inputs[layer], member->state, whole);
    if (status == BASE_OK)
        status = ternary_backward(member->state, member->turns[layer % 2].tensor, &before);
    if (status != BASE_OK) return status;
    tensor_release(&member->inputs[layer]);
    tensor_release(&member->state);
    member->state = before;
    return BASE_OK;
}

static enum base_status backward_layer(struct sharded *sharded, int layer) {
    struct tensor wholes[WORKLOAD_DEVICES_MAX] = {{NULL}};
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device)
        status = backward_here(sharded, layer, device, &wholes[device]);
    if (status == BASE_OK) status = reduce_scatter(sharded, layer, wholes);
    for (int device = 0; device < sharded->count; ++device)
        tensor_release(&wholes[device]);
    return status;
}

static enum base_status backward(struct sharded *sharded) {
    const int last = sharded->shape.layers - 1;
    enum base_status status = gather_begin(sharded, last, last % 2);
    for (int layer = last; layer >= 0 && status == BASE_OK; --layer) {
        if (layer > 0) status = gather_begin(sharded, layer - 1, (layer - 1) % 2);
        if (status == BASE_OK) status = backward_layer(sharded, layer);
        const enum base_status ended = gather_end(sharded, layer % 2);
        if (status == BASE_OK) status = ended;
    }
    return status;
}

// Each device takes the step for its rows. The side streams, which gather them next, wait for it,
// and that makes the gradients theirs again, too.
static enum base_status update(struct sharded *sharded, uint64_t step) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device) {
        struct member *const member = &sharded->members[device];
        status = workload_stream_wait(device, member->compute, device, member->side);
        for (int layer = 0; layer < sharded->shape.layers && status == BASE_OK; ++layer)
            status = ternary_update(member->shards[layer], member->gradients[layer],
                                    sharded->shape.batch, step);
        if (status == BASE_OK)
            status = workload_stream_wait(device, member->side, device, member->compute);
        for (int layer = 0; layer < sharded->shape.layers; ++layer)
            tensor_release(&member->gradients[layer]);
    }
    return status;
}

static enum base_status checksum_add(struct sharded *sharded, uint64_t step, float *bytes) {
    const int64_t width = sharded->shape.width;
    enum base_status status = BASE_OK;
    for (int layer = 0; layer < sharded->shape.layers && status == BASE_OK; ++layer) {
        for (int device = 0; device < sharded->count && status == BASE_OK; ++device)
            status = tensor_read(sharded->members[device].shards[layer],
                                 bytes + share_start(sharded, width, device) * width);
        if (status == BASE_OK) ternary_checksum(sharded->run, step, layer, bytes, &sharded->shape);
    }
    return status;
}

// Each device's part of the batch.
static enum base_status inputs_make(struct sharded *sharded, uint64_t step) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device) {
        const int64_t start = share_start(sharded, sharded->shape.batch, device);
        const int64_t end = share_start(sharded, sharded->shape.batch, device + 1);
        const int64_t sizes[] = {end - start, sharded->shape.width};
        struct tensor input;
        status = tensor_empty(&sharded->run->pinned, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS,
                              &input);
        if (status != BASE_OK) break;
        status = ternary_input_fill(sharded->run, step, start, input);
        tensor_release(&sharded->members[device].state);
        if (status == BASE_OK)
            status = tensor_to_place(input, sharded->members[device].place, true,
                                     &sharded->members[device].state);
        tensor_release(&input);
    }
    return status;
}

static enum base_status turns_end(struct sharded *sharded) {
    enum base_status status = gather_end(sharded, 0);
    const enum base_status other = gather_end(sharded, 1);
    if (status == BASE_OK) status = other;
    for (int device = 0; device < sharded->count; ++device) {
        struct member *const member = &sharded->members[device];
        tensor_release(&member->state);
        for (int turn = 0; turn < 2; ++turn) {
            const enum base_status gather = kept_end(&member->gathers[turn], device, member->side);
            const enum base_status sent =
                kept_end(&member->gradients_sent[turn], device, member->compute);
            if (status == BASE_OK) status = gather != BASE_OK ? gather : sent;
        }
    }
    return status;
}

static enum base_status step_run(struct sharded *sharded, uint64_t step, float *bytes) {
    enum base_status status = inputs_make(sharded, step);
    if (status == BASE_OK) status = forward(sharded);
    if (status == BASE_OK) status = backward(sharded);
    const enum base_status ended = turns_end(sharded);
    if (status == BASE_OK) status = ended;
    if (status == BASE_OK) status = update(sharded, step);
    return status == BASE_OK ? checksum_add(sharded, step, bytes) : status;
}

//------------------------------------------------------------------------------------------------
// The program.

static enum base_status member_init(struct sharded *sharded, int device) {
    struct member *const member = &sharded->members[device];
    const size_t layers = (size_t)sharded->shape.layers;
    member->place = &sharded->run->devices[device];
    member->compute = tensor_stream(device);
    member->shards = calloc(3 * layers, sizeof *member->shards);
    if (member->shards == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu layers", layers);
    member->inputs = member->shards + layers;
    member->gradients = member->inputs + layers;
    return workload_run_stream(sharded->run, device, &member->side);
}

static enum base_status layer_spread(struct sharded *sharded, int layer, struct tensor whole) {
    enum base_status status = ternary_weights_fill(sharded->run, layer, whole);
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device) {
        struct tensor rows;
        status = rows_of(sharded, whole, device, &rows);
        if (status != BASE_OK) break;
        status = tensor_to_place(rows, sharded->members[device].place, false,
                                 &sharded->members[device].shards[layer]);
        tensor_release(&rows);
    }
    return status;
}

static enum base_status sharded_init(struct sharded *sharded) {
    const int64_t sizes[] = {sharded->shape.width, sharded->shape.width};
    struct tensor whole = {NULL};
    enum base_status status = BASE_OK;
    for (int device = 0; device < sharded->count && status == BASE_OK; ++device)
        status = member_init(sharded, device);
    if (status == BASE_OK)
        status =
            tensor_empty(&sharded->run->host, TENSOR_FLOAT32, sizes, 2, TENSOR_CONTIGUOUS, &whole);
    for (int layer = 0; layer < sharded->shape.layers && status == BASE_OK; ++layer)
        status = layer_spread(sharded, layer, whole);
    tensor_release(&whole);
    return status;
}

static void sharded_deinit(struct sharded *sharded) {
    for (int device = 0; device < sharded->count; ++device) {
        struct member *const member = &sharded->members[device];
        for (int index = 0; member->shards != NULL && index < 3 * sharded->shape.layers; ++index)
            tensor_release(&member->shards[index]);
        free(member->shards);
    }
}

static enum base_status run(struct workload_run *run) {
    struct sharded sharded = {.run = run,
                              .shape = ternary_shape(run->options.size),
                              .keeps = strcmp(run->options.variant, "kept") == 0,
                              .count = run->options.device_count};
    const int64_t weights = sharded.shape.width * sharded.shape.width;
    float *const bytes = malloc((size_t)weights * sizeof *bytes);
    if (bytes == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory to read %lld weights",
                               (long long)weights);
    enum base_status status = sharded_init(&sharded);
    for (uint64_t step = 0; step < run->options.steps && status == BASE_OK; ++step) {
        status = step_run(&sharded, step, bytes);
        if (status == BASE_OK) status = workload_run_step(run);
    }
    sharded_deinit(&sharded);
    free(bytes);
    return status;
}

static const char *const variants[] = {"record_stream", "kept", NULL};

const struct workload_program workload_sharded = {
    .name = "sharded",
    .summary = "a model spread over devices: all-gather and reduce-scatter beside the computation",
    .variants = variants,
    .steps = {2, 4, 4},
    .device_count_min = 2,
    .device_count_max = 8,
    .run = run,
};
