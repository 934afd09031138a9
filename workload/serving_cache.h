// Where the keys and values of the tokens seen so far lie, in one of three ways:
//
//     CONCATENATED  a tensor a layer, made anew for each token: the old one and its row (torch.cat)
//     PREALLOCATED  one buffer a request, as long as it may become, from its admission on
//     PAGED         pages of a few tokens out of one pool; what a request has is gathered for use
//
// Rows are a token's, [groups * head size]; what attention reads, [length, groups * head size], has
// the same values in each way.
//
//     status = serving_cache_create(SERVING_PAGED, &place, &form, &cache);
//     status = serving_cache_begin(cache, sequences, count);            // of a step's batch
//     status = serving_cache_append(cache, sequence, layer, true, rows, &keys);
//     serving_sequence_end(sequence);                                   // its memory goes
//     serving_cache_destroy(cache);
#ifndef TIDEMARK_WORKLOAD_SERVING_CACHE_H
#define TIDEMARK_WORKLOAD_SERVING_CACHE_H

#include "tensor/nn.h"

enum serving_cache_kind { SERVING_CONCATENATED, SERVING_PREALLOCATED, SERVING_PAGED };

struct serving_cache_form {
    int layers;
    int64_t row;                     // elements of a token's keys in a layer, and of its values
    int64_t page_tokens, page_count; // of the pool
    enum tensor_type type;
};

struct serving_cache {
    enum serving_cache_kind kind;
    struct serving_cache_form form;
    struct tensor_place place;
    struct tensor *pools; // of each layer: keys, values; [pages, tokens * row]
};

// A request's part of the cache. Before each step its owner says what is in it and what comes.
struct serving_sequence {
    int64_t length, rows, length_max; // tokens: in the cache, of this step, ever
    const int64_t *pages;             // of length + rows tokens; for PAGED alone
    struct tensor *parts;             // CONCATENATED: of each layer: keys, values
    struct tensor buffer;             // PREALLOCATED: [2 * layers, length_max, row]
    struct tensor table, slots;       // PAGED: its pages, on the device; its new rows, on the host
};

// PAGED takes its pool here. BASE_HOST_MEMORY, or what tensors say, as from all below.
enum base_status serving_cache_create(enum serving_cache_kind kind,
                                      const struct tensor_place *place,
                                      const struct serving_cache_form *form,
                                      struct serving_cache **cache) BASE_MUST_USE;
void serving_cache_destroy(struct serving_cache *cache); // NULL is ignored

// HOST: where what the device does not read lies.
enum base_status serving_cache_begin(struct serving_cache *cache, const struct tensor_place *host,
                                     struct serving_sequence *const *sequences,
                                     int count) BASE_MUST_USE;
// Puts ROWS, [rows, row], behind what SEQUENCE has of LAYER. *all: what it has then.
enum base_status serving_cache_append(struct serving_cache *cache,
                                      struct serving_sequence *sequence, int layer, bool is_value,
                                      struct tensor rows, struct tensor *all) BASE_MUST_USE;

// Empty afterwards; one that is empty is nothing.
void serving_sequence_end(const struct serving_cache *cache, struct serving_sequence *sequence);

#endif
