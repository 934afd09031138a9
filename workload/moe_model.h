// A model whose layers are mixtures of experts: a token embedding, layers that add to each row what
// the experts make of it, a last norm, and the embedding again for the logits. A row sees itself
// alone: what a token says of the next one is all there is to learn.
//
//     status = moe_model_create(&place, &host, &shape, seed, false, &model);
//     struct moe_pass pass = {.model = model};
//     status = moe_step(&pass, tokens, targets, rate, &loss);
//     moe_model_destroy(model);
//
// A router chooses for each row the experts that are most likely by softmax; a fixed bias, of the
// seed, makes some of them dear and most of them not. The host reads the choices, as it has to know
// how many rows each expert gets. Rows are gathered for an expert, go through its two matrices, and
// are added, weighed, to where they came from.
#ifndef TIDEMARK_WORKLOAD_MOE_MODEL_H
#define TIDEMARK_WORKLOAD_MOE_MODEL_H

#include "tensor/nn.h"
#include "workload/moe_routes.h"

#define MOE_CHOICES_MAX 2

struct moe_shape {
    int layers;
    int64_t width, inner, experts, vocabulary;
    int choices;     // 1: weighed by its probability; 2: by their share of both
    double capacity; // of an expert, in even shares of the rows; 0: as many as come
};

struct moe_model {
    struct moe_shape shape;
    struct tensor_place place, host;
    // Leaves: token embedding, last norm; then of each layer norm, router, and of each expert the
    // matrices up and down.
    int parameter_count;
    struct tensor *parameters;
    struct tensor skew;   // [experts], of every router
    struct tensor places; // 0 to experts - 1, int64
    double *weights;      // exp of the skew
};

// HOST: where values are made, and indices kept. IS_EMPTY: no values, for a device that holds none.
enum base_status moe_model_create(const struct tensor_place *place, const struct tensor_place *host,
                                  const struct moe_shape *shape, uint64_t seed, bool is_empty,
                                  struct moe_model **model) BASE_MUST_USE;
void moe_model_destroy(struct moe_model *model); // NULL is ignored

struct moe_pass {
    const struct moe_model *model;
    struct base_random *draws; // routes by chance, where no values can be read; NULL: the router's
    void (*on_routes)(void *context, int layer, const struct moe_routes *routes); // may be NULL
    void *context;
};

// SELF [rows, width] and what the experts of LAYER add to it.
enum base_status moe_layer_run(const struct moe_pass *pass, int layer, struct tensor self,
                               struct tensor *result) BASE_MUST_USE;
// The mean cross-entropy of TARGETS after TOKENS, both [rows] of int64.
enum base_status moe_loss(const struct moe_pass *pass, struct tensor tokens, struct tensor targets,
                          struct tensor *loss) BASE_MUST_USE;
// That, its gradients, and a step of SGD down them. An expert that no row chose stays as it is.
enum base_status moe_step(const struct moe_pass *pass, struct tensor tokens, struct tensor targets,
                          double rate, struct tensor *loss) BASE_MUST_USE;

#endif
