// The tape: a graph of nodes, one for each operator that ran while gradients were on, from results
// back to leaves.
//
//     leaf --accumulate-- <--edge-- node of mul <--edge-- node of sum <-- result
//
// A node has an edge for each input of its operator (whose gradient it computes) and an output for
// each result (whose gradient it is given). Results own their node, nodes own the nodes their edges
// lead to, so a graph lives as long as a result of it. Tensors that a gradient needs are saved with
// their version; a version that has moved on is refused at the use.
#ifndef TIDEMARK_TENSOR_TAPE_H
#define TIDEMARK_TENSOR_TAPE_H

#include "tensor/count.h"
#include "tensor/impl.h"

struct tape_node;

struct tape_edge {
    struct tape_node *node; // counted; NULL: nobody wants this gradient
    int output;             // which output of that node it is a gradient of
};

// What a gradient has to look like.
struct tape_metadata {
    enum tensor_type type;
    struct tensor_place place;
    int rank;
    int64_t sizes[TENSOR_RANK_MAX];
};

struct tape_formula {
    const char *name; // PyTorch's
    // From gradients of the outputs (none: zero) to gradients of the edges that are wanted; results
    // that stay none are zero. Runs with gradients off. The engine owns both.
    enum base_status (*apply)(struct tape_node *node, struct tensor *gradients,
                              struct tensor *results);
    void (*deinit)(struct tape_node *node); // what the payload owns; may be NULL
};

// A tensor kept until backward. A node keeps an alias off the graph: the tensor itself may come to
// own the node (by a write in place), and neither would ever go.
struct tensor_saved {
    struct tensor_impl *impl; // NULL: nothing saved, or released
    uint32_t version;
    // For messages: whose function is named if the version has moved on.
    struct tensor_weak origin;           // the tensor itself; none for a result of the node
    const struct tape_formula *function; // that of the tensor when it was saved; NULL: a leaf
    bool is_view;
};

#define TAPE_SAVED_MAX 6 // attention keeps as many

// A tensor that wants its gradient kept although it is no leaf.
struct tape_retention {
    struct tape_retention *next;
    struct tensor_weak tensor;
    int output;
};

struct tape_node {
    struct tensor_count count; // weak handles: a leaf's on its accumulator
    const struct tape_formula *formula;
    uint64_t sequence; // newest first; accumulators before all
    int edge_count, output_count;
    struct tape_edge *edges;
    struct tape_metadata *outputs;
    struct tensor_saved saved[TAPE_SAVED_MAX];
    struct tape_node *inner; // counted: the operator whose effect on a slice this node carries
    struct tape_retention *retentions;
    struct tape_node *next_dead; // while it waits to be freed
    void *payload;               // what the formula needs besides
};

// One strong handle; edges and outputs all empty, payload zeroed.
enum base_status tape_node_create(const struct tape_formula *formula, int edge_count,
                                  int output_count, size_t payload_size,
                                  struct tape_node **node) BASE_MUST_USE;
struct tape_node *tape_node_retain(struct tape_node *node);
void tape_node_drop(struct tape_node *node); // NULL is ignored; never recurses along a graph
void tape_node_drop_weak(struct tape_node *node);

static inline bool tape_wants(const struct tape_node *node, int edge) {
    return node->edges[edge].node != NULL;
}
// As messages have it: "Mul" for MulBackward0, "Fill2" for FillBackward2. Returns TEXT.
#define TAPE_NAME_SIZE 64
const char *tape_name(const struct tape_formula *formula, char text[TAPE_NAME_SIZE]);
void tape_metadata_of(const struct tensor_impl *impl, struct tape_metadata *metadata);

// The start of an operator: *node stays NULL unless gradients are on and an input (none allowed)
// requires it; else a node with edges to the inputs and room for OUTPUT_COUNT results.
enum base_status tape__begin(const struct tape_formula *formula, const struct tensor *inputs,
                             int input_count, int output_count, size_t payload_size,
                             struct tape_node **node) BASE_MUST_USE;
BASE_MUST_USE static inline enum base_status
tape_begin(const struct tape_formula *formula, const struct tensor *inputs, int input_count,
           int output_count, size_t payload_size, struct tape_node **node) {
    *node = NULL;
    for (int index = 0; index < input_count; index++)
        if (inputs[index].impl != NULL && inputs[index].impl->autograd != NULL)
            return tape__begin(formula, inputs, input_count, output_count, payload_size, node);
    return BASE_OK;
}
// Its end, if it went well: RESULT is output OUTPUT of NODE (NULL: nothing to do).
void tape_finish(struct tensor_impl *result, struct tape_node *node, int output);

// Both, and what follows whichever way it went: *result is MADE, or MADE is released. NODE (may be
// NULL) is dropped.
enum base_status tape_end(enum base_status status, struct tape_node *node, struct tensor *made,
                          struct tensor *result) BASE_MUST_USE;

// Keeps IMPL in slot SLOT; refused for inference tensors.
enum base_status tape_save(struct tape_node *node, int slot,
                           struct tensor_impl *impl) BASE_MUST_USE;
// A result of the node itself.
enum base_status tape_save_result(struct tape_node *node, int slot,
                                  struct tensor_impl *impl) BASE_MUST_USE;
// After the write that made it: the version that it has now is the right one.
void tape_saved_renew(struct tape_node *node, int slot);
// A new handle; refused if it was written since, or after a backward that did not retain.
enum base_status tape_unpack(struct tape_node *node, int slot, struct tensor *result) BASE_MUST_USE;
void tape_release_saved(struct tape_node *node);

// The engine: runs from ROOT's node with *gradient (none: 1), which it releases, whatever happens:
// who hands over the only handle lets its memory be reused for what is computed of it. *first (may
// be NULL): a handle on what it started with, if it did.
enum base_status tape_backward(struct tensor_impl *root, struct tensor *gradient, bool retain,
                               struct tensor *first) BASE_MUST_USE;

#endif
