// A decoder as Llama is, for inference: RMS norms, attention with turned positions and fewer keys
// than queries, a gated feed-forward part, and the token embedding again for the logits.
//
//     status = serving_model_create(&place, &host, &shape, seed, false, &model);
//     status = serving_model_run(model, cache, &batch, &logits);
//     serving_model_destroy(model);
//
// A batch is the rows of several requests one behind the other, whatever number each has: prompts
// and single tokens side by side. All but attention sees rows alone; attention goes request by
// request, over what the cache has of each.
#ifndef TIDEMARK_WORKLOAD_SERVING_MODEL_H
#define TIDEMARK_WORKLOAD_SERVING_MODEL_H

#include "workload/serving_cache.h"

struct serving_shape {
    int layers;
    int64_t width, heads, groups, inner, vocabulary, context; // groups: heads of keys and values
    enum tensor_type type;
};
static inline int64_t serving_head_size(const struct serving_shape *shape) {
    return shape->width / shape->heads;
}

// Of a layer. Matrices are [to, from].
enum serving_parameter {
    SERVING_NORM1,
    SERVING_QUERY,
    SERVING_KEY,
    SERVING_VALUE,
    SERVING_JOIN, // of the heads' results
    SERVING_NORM2,
    SERVING_GATE,
    SERVING_UP,
    SERVING_DOWN,
    SERVING_LAYER_PARAMETER_COUNT
};

struct serving_model {
    struct serving_shape shape;
    int parameter_count;
    struct tensor *parameters;    // token embedding, last norm, then those of each layer
    struct tensor cosines, sines; // [context, half a head size]
};

// IS_EMPTY: no values, for a device that holds none. HOST: where they are made.
enum base_status serving_model_create(const struct tensor_place *place,
                                      const struct tensor_place *host,
                                      const struct serving_shape *shape, uint64_t seed,
                                      bool is_empty, struct serving_model **model) BASE_MUST_USE;
void serving_model_destroy(struct serving_model *model); // NULL is ignored

struct serving_batch {
    int count;
    struct serving_sequence *const *sequences; // begun (serving_cache_begin)
    struct tensor tokens, positions;           // of all rows, int64
    struct tensor ends;                        // each sequence's last row, int64
};

// *logits: [count, vocabulary], what comes behind each sequence's last row.
enum base_status serving_model_run(const struct serving_model *model, struct serving_cache *cache,
                                   const struct serving_batch *batch,
                                   struct tensor *logits) BASE_MUST_USE;

#endif
