// See tape.h.
#include "tensor/tape.h"

#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_sequence = 1; // atomic

// Parts of one block are as far aligned as blocks are.
static size_t part(size_t count, size_t size) {
    const size_t alignment = _Alignof(max_align_t);
    return (count * size + alignment - 1) / alignment * alignment;
}

// One block: the node, its edges, its outputs, its payload.
enum base_status tape_node_create(const struct tape_formula *formula, int edge_count,
                                  int output_count, size_t payload_size,
                                  struct tape_node **result) {
    const size_t edges = part(1, sizeof(struct tape_node));
    const size_t outputs = edges + part((size_t)edge_count, sizeof(struct tape_edge));
    const size_t payload = outputs + part((size_t)output_count, sizeof(struct tape_metadata));
    char *block = calloc(1, payload + payload_size);
    if (block == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for a node of the tape");
    struct tape_node *node = (struct tape_node *)block;
    node->edges = (struct tape_edge *)(block + edges);
    node->outputs = (struct tape_metadata *)(block + outputs);
    node->payload = block + payload;
    node->count = tensor_count_one();
    node->formula = formula;
    node->sequence = __atomic_fetch_add(&next_sequence, 1, __ATOMIC_RELAXED);
    node->edge_count = edge_count;
    node->output_count = output_count;
    *result = node;
    return BASE_OK;
}

struct tape_node *tape_node_retain(struct tape_node *node) {
    if (node != NULL)
        tensor_count_up(&node->count);
    return node;
}

static void retentions_free(struct tape_node *node) {
    while (node->retentions != NULL) {
        struct tape_retention *retention = node->retentions;
        node->retentions = retention->next;
        tensor_weak_release(&retention->tensor);
        free(retention);
    }
}

// Drops what the node holds. This can end further nodes, which queue up (tape_node_drop).
static void node_release(struct tape_node *node) {
    if (node->formula->deinit != NULL)
        node->formula->deinit(node);
    tape_release_saved(node);
    retentions_free(node);
    for (int edge = 0; edge < node->edge_count; edge++)
        tape_node_drop(node->edges[edge].node);
    tape_node_drop(node->inner);
    node->inner = NULL;
    node->edge_count = node->output_count = 0;
}

// A graph can be a chain of any length: the nodes that end while another is being ended wait in a
// list, so that the depth of calls does not grow with the chain.
static _Thread_local struct tape_node *dead;
static _Thread_local bool is_burying;

void tape_node_drop(struct tape_node *node) {
    if (node == NULL)
        return;
    const enum tensor_count_drop drop = tensor_count_drop(&node->count);
    if (drop == TENSOR_COUNT_KEEP)
        return;
    // A weak handle on the dead node's memory until it is buried.
    if (drop == TENSOR_COUNT_DESTROY)
        node->count.word = TENSOR_COUNT_WEAK;
    node->next_dead = dead;
    dead = node;
    if (is_burying)
        return;
    is_burying = true;
    while (dead != NULL) {
        struct tape_node *next = dead;
        dead = next->next_dead;
        node_release(next);
        tape_node_drop_weak(next);
    }
    is_burying = false;
}

void tape_node_drop_weak(struct tape_node *node) {
    if (tensor_count_drop_weak(&node->count) == TENSOR_COUNT_DESTROY)
        free(node);
}

const char *tape_name(const struct tape_formula *formula, char text[TAPE_NAME_SIZE]) {
    const char *name = formula->name, *cut = strstr(name, "Backward");
    if (cut == NULL || strncmp(name, "torch::", 7) == 0) {
        snprintf(text, TAPE_NAME_SIZE, "%s", name);
        return text;
    }
    const char *tail = cut + strlen("Backward");
    snprintf(text, TAPE_NAME_SIZE, "%.*s%s", (int)(cut - name), name,
             strcmp(tail, "0") == 0 ? "" : tail);
    return text;
}

void tape_metadata_of(const struct tensor_impl *impl, struct tape_metadata *metadata) {
    metadata->type = impl->type;
    metadata->place = impl->storage->place;
    metadata->rank = impl->geometry.rank;
    memcpy(metadata->sizes, impl->geometry.sizes,
           (size_t)impl->geometry.rank * sizeof metadata->sizes[0]);
}

//------------------------------------------------------------------------------------------------
// Recording

enum base_status tape__begin(const struct tape_formula *formula, const struct tensor *inputs,
                             int input_count, int output_count, size_t payload_size,
                             struct tape_node **result) {
    if (!tensor_grad_mode())
        return BASE_OK;
    bool is_wanted = false, is_normal = false;
    for (int index = 0; index < input_count; index++) {
        if (inputs[index].impl == NULL)
            continue;
        is_wanted |= tensor__requires_grad(inputs[index].impl);
        is_normal |= inputs[index].impl->version != NULL;
    }
    if (!is_wanted || !is_normal)
        return BASE_OK; // inference tensors by themselves leave no trace
    struct tape_node *node = NULL;
    enum base_status status =
        tape_node_create(formula, input_count, output_count, payload_size, &node);
    for (int index = 0; index < input_count && status == BASE_OK; index++)
        if (inputs[index].impl != NULL)
            status = tensor__gradient_edge(inputs[index].impl, &node->edges[index]);
    if (status == BASE_OK)
        *result = node;
    else
        tape_node_drop(node);
    return status;
}

void tape_finish(struct tensor_impl *result, struct tape_node *node, int output) {
    if (node == NULL)
        return;
    tensor__autograd_make(result);
    struct tensor_autograd *autograd = result->autograd;
    tape_metadata_of(result, &node->outputs[output]);
    // A tensor that keeps its gradient goes on doing so under its new function.
    if (autograd->node != NULL && autograd->retains_grad) {
        for (struct tape_retention **link = &autograd->node->retentions; *link != NULL;
             link = &(*link)->next) {
            struct tape_retention *retention = *link;
            if (retention->tensor.impl != result)
                continue;
            *link = retention->next;
            retention->output = output;
            retention->next = node->retentions;
            node->retentions = retention;
            break;
        }
    }
    tape_node_retain(node);
    tape_node_drop(autograd->node);
    autograd->node = node;
    autograd->output = output;
    // The function is that of the present version.
    if (autograd->base != NULL && result->version != NULL)
        autograd->node_version = tensor__version_get(result->version);
}

enum base_status tape_end(enum base_status status, struct tape_node *node, struct tensor *made,
                          struct tensor *result) {
    if (status == BASE_OK) {
        tape_finish(made->impl, node, 0);
        *result = *made;
    } else {
        tensor_release(made);
    }
    tape_node_drop(node);
    return status;
}

//------------------------------------------------------------------------------------------------
// Saved tensors

// KEPT: what is held, of IMPL; counted by the caller.
static void saved_set(struct tensor_saved *saved, struct tensor_impl *impl,
                      struct tensor_impl *kept) {
    const struct tensor_autograd *autograd = impl->autograd;
    const bool has_function = autograd != NULL && autograd->node != NULL;
    *saved = (struct tensor_saved){.impl = kept,
                                   .version = tensor__version_get(impl->version),
                                   .origin = tensor_weak((struct tensor){impl}),
                                   .function = has_function ? autograd->node->formula : NULL,
                                   .is_view = autograd != NULL && autograd->base != NULL};
}

static enum base_status savable_check(const struct tensor_impl *impl) {
    if (impl->version != NULL)
        return BASE_OK;
    return tensor__error(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make a "
        "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead "
        "of `torch.inference_mode()`.");
}

static void saved_clear(struct tensor_saved *saved) {
    tensor__impl_drop(saved->impl);
    saved->impl = NULL;
    tensor_weak_release(&saved->origin);
}

enum base_status tape_save(struct tape_node *node, int slot, struct tensor_impl *impl) {
    struct tensor_impl *kept;
    enum base_status status = savable_check(impl);
    if (status == BASE_OK)
        status = tensor__impl_alias(impl, impl->type, &impl->geometry, &kept);
    if (status == BASE_OK)
        saved_set(&node->saved[slot], impl, kept);
    return status;
}

enum base_status tape_save_result(struct tape_node *node, int slot, struct tensor_impl *impl) {
    const enum base_status status = tape_save(node, slot, impl);
    if (status != BASE_OK)
        return status;
    struct tensor_saved *saved = &node->saved[slot];
    tensor_weak_release(&saved->origin);
    saved->function = node->formula;
    saved->is_view = false;
    return BASE_OK;
}

void tape_saved_renew(struct tape_node *node, int slot) {
    node->saved[slot].version = tensor__version_get(node->saved[slot].impl->version);
}

// The function that the message names: that of the tensor now, or where it is gone the one that it
// had. A view that was written through another has become as_strided of its base.
static enum base_status function_find(const struct tensor_saved *saved,
                                      const struct tape_formula **function) {
    struct tensor origin = {0};
    *function = saved->function;
    if (saved->function != NULL && saved->is_view)
        *function = &tape_as_strided;
    if (saved->origin.impl == NULL || !tensor_weak_lock(saved->origin, &origin))
        return BASE_OK;
    struct tape_node *node;
    const enum base_status status = tensor__gradient_node(origin.impl, &node);
    if (status == BASE_OK)
        *function = node == NULL ? NULL : node->formula;
    tensor_release(&origin);
    return status;
}

static enum base_status saved_unpack(const struct tensor_saved *saved, struct tensor *result) {
    if (saved->impl == NULL)
        return tensor__error(
            "Trying to backward through the graph a second time (or directly access saved tensors "
            "after they have already been freed). Saved intermediate values of the graph are freed "
            "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
            "to backward through the graph a second time or if you need to access saved tensors "
            "after calling backward.");
    const struct tape_formula *function;
    const enum base_status status = function_find(saved, &function);
    if (status != BASE_OK)
        return status;
    const uint32_t version = tensor__version_get(saved->impl->version);
    if (version == saved->version) {
        result->impl = tensor__impl_retain(saved->impl);
        return BASE_OK;
    }
    char sizes[TENSOR_SIZES_TEXT_SIZE], origin[128] = "", name[TAPE_NAME_SIZE];
    // PyTorch says output 0 whichever it was.
    if (function != NULL)
        snprintf(origin, sizeof origin, ", which is output 0 of %s,", tape_name(function, name));
    return tensor__error(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.%sTensor %s]%s is at version %u; expected version %u instead. Hint: "
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False).",
        tensor_type_scalar_name(saved->impl->type),
        tensor_sizes_text(saved->impl->geometry.sizes, saved->impl->geometry.rank, sizes), origin,
        version, saved->version);
}

enum base_status tape_unpack(struct tape_node *node, int slot, struct tensor *result) {
    return saved_unpack(&node->saved[slot], result);
}

void tape_release_saved(struct tape_node *node) {
    for (int slot = 0; slot < TAPE_SAVED_MAX; slot++)
        saved_clear(&node->saved[slot]);
    if (node->inner != NULL)
        tape_release_saved(node->inner);
}

enum base_status tensor_save(struct tensor self, struct tensor_saved **result) {
    struct tensor_saved *saved = calloc(1, sizeof *saved);
    if (saved == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory to save a tensor");
    const enum base_status status = savable_check(self.impl);
    if (status == BASE_OK) {
        saved_set(saved, self.impl, tensor__impl_retain(self.impl));
        *result = saved;
    } else {
        free(saved);
    }
    return status;
}

enum base_status tensor_unpack(struct tensor_saved *saved, struct tensor *result) {
    return saved_unpack(saved, result);
}

void tensor_saved_free(struct tensor_saved **saved) {
    if (*saved != NULL)
        saved_clear(*saved);
    free(*saved);
    *saved = NULL;
}
