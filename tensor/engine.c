// Backward: runs the nodes of a graph, newest first, and gives leaves their gradients. See tape.h.
//
// A node runs when everything that leads to it has run. Among those that are ready the newest goes
// first, and a leaf's accumulator before all: so a gradient that reaches a leaf is added at once,
// even if a later node is refused.
#include "base/address_map.h"
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/operator.h"

#include <stdlib.h>
#include <string.h>

enum base_status tape__sum_to(struct tensor gradient, const int64_t *sizes, int rank,
                              struct tensor *result) {
    const struct tensor_geometry *from = &gradient.impl->geometry;
    const int added = from->rank - rank;
    int64_t dims[TENSOR_RANK_MAX];
    int count = 0;
    for (int dim = 0; dim < from->rank; dim++)
        if (dim < added || (sizes[dim - added] == 1 && from->sizes[dim] != 1))
            dims[count++] = dim;
    if (count == 0) {
        *result = tensor_retain(gradient);
        return BASE_OK;
    }
    struct tensor sum;
    enum base_status status = tensor_sum_dims(gradient, dims, count, true, &sum);
    if (status != BASE_OK)
        return status;
    status = tensor_reshape(sum, sizes, rank, result);
    tensor_release(&sum);
    return status;
}

//------------------------------------------------------------------------------------------------
// Leaves

struct accumulator_payload {
    struct tensor_impl *leaf; // counted
};

// Nobody else holds GIVEN or its memory, but for the base whose elements it has in another order.
static bool is_alone(const struct tensor_impl *given) {
    const struct tensor_autograd *autograd = given->autograd;
    if (tensor_count_strong(&given->count) != 1)
        return false;
    if (autograd == NULL)
        return tensor_count_strong(&given->storage->count) == 1;
    const struct tensor_impl *base = autograd->base;
    return base != NULL && autograd->node == NULL && base->autograd == NULL &&
           base->storage == given->storage && base->geometry.numel == given->geometry.numel &&
           tensor_count_strong(&base->count) == 1 &&
           tensor_count_strong(&given->storage->count) == 2;
}

// Takes GRADIENT over if it is alone and lies as the leaf does; else a copy that does.
static enum base_status first_gradient(struct tensor_impl *leaf, struct tensor *gradient,
                                       struct tensor *result) {
    const struct tensor_impl *given = gradient->impl;
    const bool is_dense = (leaf->flags & TENSOR_IS_DENSE) != 0;
    bool fits = !is_dense && (given->flags & TENSOR_IS_CONTIGUOUS) != 0;
    if (is_dense) {
        fits = true;
        for (int dim = 0; dim < leaf->geometry.rank; dim++)
            fits &= leaf->geometry.sizes[dim] == 1 ||
                    leaf->geometry.strides[dim] == given->geometry.strides[dim];
    }
    if (fits && is_alone(given)) {
        if (given->autograd != NULL)
            return tensor_detach(*gradient, result);
        *result = *gradient;
        gradient->impl = NULL;
        return BASE_OK;
    }
    if (!is_dense)
        return tensor_clone(*gradient, TENSOR_CONTIGUOUS, result);
    struct tensor copy;
    const struct tensor_geometry *shape = &leaf->geometry;
    enum base_status status =
        tensor_empty_strided(&given->storage->place, given->type, shape->sizes, shape->rank,
                             shape->strides, shape->rank, &copy);
    if (status != BASE_OK)
        return status;
    status = tensor_copy_(copy, *gradient);
    if (status == BASE_OK)
        *result = copy;
    else
        tensor_release(&copy);
    return status;
}

static enum base_status accumulate(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    (void)results;
    struct tensor_impl *leaf = ((struct accumulator_payload *)node->payload)->leaf;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    const struct tensor present = {leaf->autograd->gradient};
    if (present.impl != NULL)
        return tensor_add_(present, tensor_operand_tensor(gradients[0]), tensor_integer(1));
    struct tensor gradient;
    const enum base_status status = first_gradient(leaf, &gradients[0], &gradient);
    if (status == BASE_OK)
        leaf->autograd->gradient = gradient.impl;
    return status;
}

static void accumulator_deinit(struct tape_node *node) {
    tensor__impl_drop(((struct accumulator_payload *)node->payload)->leaf);
}

static const struct tape_formula accumulator = {
    .name = "torch::autograd::AccumulateGrad", .apply = accumulate, .deinit = accumulator_deinit};

enum base_status tape__accumulator_create(struct tensor_impl *leaf, struct tape_node **result) {
    struct tape_node *node;
    const enum base_status status =
        tape_node_create(&accumulator, 0, 1, sizeof(struct accumulator_payload), &node);
    if (status != BASE_OK)
        return status;
    node->sequence = UINT64_MAX;
    tape_metadata_of(leaf, &node->outputs[0]);
    ((struct accumulator_payload *)node->payload)->leaf = tensor__impl_retain(leaf);
    *result = node;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// One run

struct task {
    struct tape_node *node;   // the graph owns it
    struct tensor *gradients; // what has come so far, for each output
    int waits_for;            // edges into the node that have not been taken
};

struct run {
    struct base_address_map index; // node to its place in tasks
    struct task *tasks;
    size_t count, capacity;
    size_t *ready; // a heap, newest on top
    size_t ready_count;
    bool retain;
};

static enum base_status task_add(struct run *run, struct tape_node *node, bool *is_new,
                                 size_t *place) {
    uint64_t found;
    *is_new = !base_address_map_get(&run->index, (uint64_t)(uintptr_t)node, &found);
    if (!*is_new) {
        *place = (size_t)found;
        return BASE_OK;
    }
    if (run->count == run->capacity) {
        const size_t capacity = run->capacity == 0 ? 64 : 2 * run->capacity;
        struct task *tasks = realloc(run->tasks, capacity * sizeof *tasks);
        if (tasks != NULL)
            run->tasks = tasks;
        size_t *ready = realloc(run->ready, capacity * sizeof *ready);
        if (ready != NULL)
            run->ready = ready;
        if (tasks == NULL || ready == NULL)
            return base_status_set(BASE_HOST_MEMORY, "backward: no host memory for %zu nodes",
                                   capacity);
        run->capacity = capacity;
    }
    struct tensor *gradients = calloc((size_t)node->output_count + 1, sizeof *gradients);
    if (gradients == NULL)
        return base_status_set(BASE_HOST_MEMORY, "backward: no host memory for gradients");
    const enum base_status status =
        base_address_map_set(&run->index, (uint64_t)(uintptr_t)node, run->count);
    if (status != BASE_OK) {
        free(gradients);
        return status;
    }
    run->tasks[run->count] = (struct task){.node = node, .gradients = gradients};
    *place = run->count++;
    return BASE_OK;
}

// Every node that can be reached, with the number of edges into it. Tasks are the queue of the
// walk.
static enum base_status graph_collect(struct run *run, struct tape_node *root) {
    bool is_new;
    size_t place;
    enum base_status status = task_add(run, root, &is_new, &place);
    for (size_t next = 0; next < run->count && status == BASE_OK; next++) {
        const struct tape_node *node = run->tasks[next].node;
        for (int edge = 0; edge < node->edge_count && status == BASE_OK; edge++) {
            if (node->edges[edge].node == NULL)
                continue;
            status = task_add(run, node->edges[edge].node, &is_new, &place);
            if (status == BASE_OK)
                run->tasks[place].waits_for++;
        }
    }
    return status;
}

static bool is_newer(const struct run *run, size_t a, size_t b) {
    return run->tasks[run->ready[a]].node->sequence > run->tasks[run->ready[b]].node->sequence;
}

static void ready_swap(struct run *run, size_t a, size_t b) {
    const size_t place = run->ready[a];
    run->ready[a] = run->ready[b];
    run->ready[b] = place;
}

static void ready_push(struct run *run, size_t place) {
    size_t at = run->ready_count++;
    run->ready[at] = place;
    for (; at > 0 && is_newer(run, at, (at - 1) / 2); at = (at - 1) / 2)
        ready_swap(run, at, (at - 1) / 2);
}

static size_t ready_pop(struct run *run) {
    const size_t place = run->ready[0];
    run->ready[0] = run->ready[--run->ready_count];
    for (size_t at = 0;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < run->ready_count && is_newer(run, child, best))
                best = child;
        if (best == at)
            return place;
        ready_swap(run, at, best);
        at = best;
    }
}

// Brings a gradient to what the node it goes to expects. Consumes *gradient.
static enum base_status gradient_fit(struct tensor *gradient, const struct tape_metadata *want) {
    const struct tensor_geometry *have = &gradient->impl->geometry;
    struct tensor fitted;
    enum base_status status = BASE_OK;
    const bool is_same =
        have->rank == want->rank &&
        memcmp(have->sizes, want->sizes, (size_t)have->rank * sizeof(int64_t)) == 0;
    if (!is_same) {
        bool fits = have->rank >= want->rank;
        for (int dim = 0; dim < want->rank && fits; dim++) {
            const int64_t size = have->sizes[have->rank - want->rank + dim];
            fits = want->sizes[dim] == 1 || want->sizes[dim] == size;
        }
        char a[TENSOR_SIZES_TEXT_SIZE], b[TENSOR_SIZES_TEXT_SIZE];
        if (!fits)
            return tensor__error("Function returned an invalid gradient at index 0 - got %s but "
                                 "expected shape compatible with %s",
                                 tensor_sizes_text(have->sizes, have->rank, a),
                                 tensor_sizes_text(want->sizes, want->rank, b));
        status = tape__sum_to(*gradient, want->sizes, want->rank, &fitted);
        if (status != BASE_OK)
            return status;
        tensor_release(gradient);
        *gradient = fitted;
    }
    if (gradient->impl->type == want->type)
        return BASE_OK;
    status = tensor_to(*gradient, want->type, TENSOR_PRESERVE, &fitted);
    if (status != BASE_OK)
        return status;
    tensor_release(gradient);
    *gradient = fitted;
    return BASE_OK;
}

// Adds *gradient to what has come for an output. In place if the engine alone holds that.
static enum base_status gradient_add(struct tensor *slot, struct tensor *gradient) {
    if (slot->impl == NULL) {
        *slot = *gradient;
        gradient->impl = NULL;
        return BASE_OK;
    }
    const bool is_own = tensor_count_strong(&slot->impl->count) == 1 &&
                        slot->impl->autograd == NULL &&
                        tensor_count_strong(&slot->impl->storage->count) == 1 &&
                        (slot->impl->flags & TENSOR_IS_DENSE) != 0;
    const struct tensor_operand_value other = tensor_operand_tensor(*gradient);
    if (is_own)
        return tensor_add_(*slot, other, tensor_integer(1));
    struct tensor sum;
    const enum base_status status = tensor_add(*slot, other, tensor_integer(1), &sum);
    if (status != BASE_OK)
        return status;
    tensor_release(slot);
    *slot = sum;
    return BASE_OK;
}

static enum base_status retained_set(struct task *task) {
    enum base_status status = BASE_OK;
    for (struct tape_retention *retention = task->node->retentions;
         retention != NULL && status == BASE_OK; retention = retention->next) {
        const struct tensor gradient = task->gradients[retention->output];
        struct tensor self, kept;
        if (gradient.impl == NULL || !tensor_weak_lock(retention->tensor, &self))
            continue;
        struct tensor_impl **slot = &self.impl->autograd->gradient;
        if (*slot == NULL)
            status = tensor_clone(gradient, TENSOR_CONTIGUOUS, &kept);
        else
            status = tensor_add((struct tensor){*slot}, tensor_operand_tensor(gradient),
                                tensor_integer(1), &kept);
        if (status == BASE_OK) {
            tensor__impl_drop(*slot);
            *slot = kept.impl;
        }
        tensor_release(&self);
    }
    return status;
}

// To the node that EDGE leads to, which is ready when it was the last one. Takes *gradient, if
// there is one.
static enum base_status gradient_hand_on(struct run *run, const struct tape_edge *edge,
                                         struct tensor *gradient) {
    uint64_t found = 0;
    if (edge->node == NULL)
        return BASE_OK;
    BASE_CHECK(base_address_map_get(&run->index, (uint64_t)(uintptr_t)edge->node, &found));
    struct task *next = &run->tasks[found];
    enum base_status status = BASE_OK;
    if (gradient->impl != NULL)
        status = gradient_add(&next->gradients[edge->output], gradient);
    tensor_release(gradient);
    if (--next->waits_for == 0)
        ready_push(run, (size_t)found);
    return status;
}

static enum base_status task_run(struct run *run, size_t place) {
    struct task *task = &run->tasks[place];
    struct tape_node *node = task->node;
    struct tensor *results = calloc((size_t)node->edge_count + 1, sizeof *results);
    if (results == NULL)
        return base_status_set(BASE_HOST_MEMORY, "backward: no host memory for %d gradients",
                               node->edge_count);
    enum base_status status = retained_set(task);
    if (status == BASE_OK)
        status = tensor__explain(node->formula->apply(node, task->gradients, results),
                                 node->formula->name, task->gradients, node->output_count);
    for (int edge = 0; edge < node->edge_count && status == BASE_OK; edge++)
        if (results[edge].impl != NULL && node->edges[edge].node != NULL)
            status = gradient_fit(&results[edge],
                                  &node->edges[edge].node->outputs[node->edges[edge].output]);
    // What is not needed any more goes before the gradients that are handed on are added up, which
    // may take memory.
    for (int output = 0; output < node->output_count; output++)
        tensor_release(&task->gradients[output]);
    if (status == BASE_OK && !run->retain)
        tape_release_saved(node);
    for (int edge = 0; edge < node->edge_count && status == BASE_OK; edge++)
        status = gradient_hand_on(run, &node->edges[edge], &results[edge]);
    for (int edge = 0; edge < node->edge_count; edge++)
        tensor_release(&results[edge]);
    free(results);
    return status;
}

// *result: *gradient, taken over, or 1 if there is none; as the root's node wants it.
static enum base_status root_gradient(struct tensor_impl *root, struct tensor *gradient,
                                      const struct tape_metadata *want, struct tensor *result) {
    if (gradient->impl == NULL) {
        const enum base_status status = tensor_ones(
            &root->storage->place, root->type, root->geometry.sizes, root->geometry.rank, result);
        if (status != BASE_OK)
            return status;
    } else {
        *result = *gradient;
        gradient->impl = NULL;
    }
    const enum base_status status = gradient_fit(result, want);
    if (status != BASE_OK)
        tensor_release(result);
    return status;
}

enum base_status tape_backward(struct tensor_impl *root, struct tensor *gradient, bool retain,
                               struct tensor *first) {
    struct tape_edge start = {0};
    struct run run = {.retain = retain};
    const bool was_off = tensor__gradients_off();
    enum base_status status = tensor__gradient_edge(root, &start);
    if (status == BASE_OK && start.node == NULL)
        status =
            tensor__error("element 0 of tensors does not require grad and does not have a grad_fn");
    if (status == BASE_OK)
        status = graph_collect(&run, start.node);
    if (status == BASE_OK)
        status = root_gradient(root, gradient, &start.node->outputs[start.output],
                               &run.tasks[0].gradients[start.output]);
    if (status == BASE_OK && first != NULL)
        *first = tensor_retain(run.tasks[0].gradients[start.output]);
    if (status == BASE_OK)
        ready_push(&run, 0);
    while (status == BASE_OK && run.ready_count > 0)
        status = task_run(&run, ready_pop(&run));
    for (size_t place = 0; place < run.count; place++) {
        for (int output = 0; output < run.tasks[place].node->output_count; output++)
            tensor_release(&run.tasks[place].gradients[output]);
        free(run.tasks[place].gradients);
    }
    tensor_release(gradient);
    base_address_map_deinit(&run.index);
    free(run.tasks);
    free(run.ready);
    tape_node_drop(start.node);
    tensor__gradients_restore(was_off);
    return status;
}
