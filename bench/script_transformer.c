// One training step of a transformer as allocations and frees: the order in which a framework asks,
// with the sizes of a small GPT-2 in bf16 (12 layers of 768 channels, 12 heads, 8 sequences of
// 1,024 tokens, a vocabulary of 50,304), its weights and the optimizer's state in fp32.
//
// Before the cycle stand weights and two moments of each: resident. Then, each step:
//   forward   per layer the activations that the backward pass needs stay; the results of the two
//             output projections and the bf16 copies of weights (autocast) go at once or with the
//             layer
//   loss      logits in bf16, their logarithms in fp32, a scalar
//   backward  from the last layer to the first: a gradient for each activation, which lives until
//             the next one is there; the activation goes; gradients of weights stay
//   optimizer one temporary for each weight, all of them live together, as the "foreach" optimizers
//             do; then they go, and the gradients with them
// Sizes that a kernel's workspace would add are left out: libraries keep theirs.
#include "bench/script.h"

#include "base/check.h"

enum {
    LAYERS = 12,
    CHANNELS = 768,
    HEADS = 12,
    SEQUENCES = 8,
    TOKENS = SEQUENCES * 1024,
    VOCABULARY = 50304,
    BF16 = 2,
    FP32 = 4,
};
#define ROW ((uint64_t)TOKENS * CHANNELS * BF16) // an activation of one width: 12 MiB
#define STATISTIC ((uint64_t)TOKENS * FP32)      // one number a token: 32 KiB

// Weights of a layer, in elements.
static const uint64_t layer_weights[] = {
    CHANNELS,               // first normalization: scale
    CHANNELS,               // and shift
    3 * CHANNELS *CHANNELS, // query, key, value
    3 * CHANNELS,           //
    CHANNELS *CHANNELS,     // output projection
    CHANNELS,               //
    CHANNELS,               // second normalization
    CHANNELS,               //
    4 * CHANNELS *CHANNELS, // first of the two large products
    4 * CHANNELS,           //
    4 * CHANNELS *CHANNELS, // second
    CHANNELS,               //
};
#define LAYER_WEIGHT_COUNT (sizeof layer_weights / sizeof layer_weights[0])

// What a layer keeps for its backward pass, in order, in bytes.
static const uint64_t layer_kept[] = {
    ROW,                           // normalized input
    STATISTIC,                     // its mean
    STATISTIC,                     // and deviation
    3 * ROW,                       // query, key, value
    ROW,                           // attention's result
    (uint64_t)TOKENS *HEADS *FP32, // its logarithms of sums
    16,                            // state of the random numbers of dropout
    ROW,                           // sum with the input
    ROW,                           // normalized
    STATISTIC,                     //
    STATISTIC,                     //
    4 * ROW,                       // first product
    4 * ROW,                       // its activation function
    ROW,                           // sum with the input
};
#define LAYER_KEPT_COUNT (sizeof layer_kept / sizeof layer_kept[0])

// The weight whose product gives the kept tensor of this number, LAYER_WEIGHT_COUNT: none.
static size_t weight_of_kept(size_t kept) {
    return kept == 3 ? 2 : kept == 11 ? 8 : LAYER_WEIGHT_COUNT;
}

enum { SINGLE_WEIGHT_COUNT = 4 }; // embeddings of tokens and places, the last normalization's two
static const uint64_t single_weights[SINGLE_WEIGHT_COUNT] = {
    (uint64_t)VOCABULARY * CHANNELS, (uint64_t)1024 * CHANNELS, CHANNELS, CHANNELS};

#define WEIGHT_COUNT (LAYERS * LAYER_WEIGHT_COUNT + SINGLE_WEIGHT_COUNT)

static uint64_t weight_bytes(size_t weight) {
    const uint64_t elements = weight < LAYERS * LAYER_WEIGHT_COUNT
                                  ? layer_weights[weight % LAYER_WEIGHT_COUNT]
                                  : single_weights[weight - LAYERS * LAYER_WEIGHT_COUNT];
    return elements * FP32;
}

// Slots: weights and moments, gradients, optimizer's temporaries, kept tensors, the rest.
enum {
    SLOT_GRADIENT = 3 * WEIGHT_COUNT,
    SLOT_TEMPORARY = SLOT_GRADIENT + WEIGHT_COUNT,
    SLOT_KEPT = SLOT_TEMPORARY + WEIGHT_COUNT,
    SLOT_OTHER = SLOT_KEPT + LAYERS * LAYER_KEPT_COUNT,
    SLOT_CAST = SLOT_OTHER, // a weight in bf16
    SLOT_PRODUCT,           // an output projection's result
    SLOT_LOGITS,
    SLOT_LOGARITHMS,
    SLOT_LOSS,
    SLOT_TOKENS,
    SLOT_FLOWING, // the gradient that flows back, in turns with the next slot
    SLOT_FLOWING_NEXT,
};

static void take(struct bench_script *script, size_t slot, uint64_t bytes) {
    bench_script_malloc(script, (uint32_t)slot, bytes, 0);
}
static void give(struct bench_script *script, size_t slot) {
    bench_script_free(script, (uint32_t)slot);
}

// Autocast's bf16 copy of a weight, for the length of one product.
static void product(struct bench_script *script, size_t weight, size_t slot, uint64_t bytes) {
    take(script, SLOT_CAST, weight_bytes(weight) / FP32 * BF16);
    take(script, slot, bytes);
    give(script, SLOT_CAST);
}

static void layer_forward(struct bench_script *script, size_t layer) {
    for (size_t i = 0; i < LAYER_KEPT_COUNT; i++) {
        const size_t slot = SLOT_KEPT + layer * LAYER_KEPT_COUNT + i;
        const size_t weight = weight_of_kept(i), first = layer * LAYER_WEIGHT_COUNT;
        if (weight < LAYER_WEIGHT_COUNT) {
            product(script, first + weight, slot, layer_kept[i]);
            continue;
        }
        const bool sum = i == 7 || i == LAYER_KEPT_COUNT - 1;
        if (sum) product(script, first + (i == 7 ? 4 : 10), SLOT_PRODUCT, ROW);
        take(script, slot, layer_kept[i]);
        if (sum) give(script, SLOT_PRODUCT);
    }
}

// The gradient of a tensor of BYTES: the one before goes when it is there.
static size_t flow(struct bench_script *script, size_t flowing, uint64_t bytes) {
    const size_t next = flowing == SLOT_FLOWING ? SLOT_FLOWING_NEXT : SLOT_FLOWING;
    take(script, next, bytes);
    give(script, flowing);
    return next;
}

static size_t layer_backward(struct bench_script *script, size_t layer, size_t flowing) {
    size_t weight = LAYER_WEIGHT_COUNT;
    for (size_t i = LAYER_KEPT_COUNT; i-- > 0;) {
        if (layer_kept[i] >= ROW) {
            flowing = flow(script, flowing, layer_kept[i]);
            // The gradients of weights come along with it, two at a time, last ones first.
            for (size_t j = 0; j < 2 && weight > 0; j++) {
                const size_t index = layer * LAYER_WEIGHT_COUNT + --weight;
                take(script, SLOT_GRADIENT + index, weight_bytes(index));
            }
        }
        give(script, SLOT_KEPT + layer * LAYER_KEPT_COUNT + i);
    }
    BASE_CHECK_EQ(weight, 0);
    return flowing;
}

static void loss(struct bench_script *script) {
    const uint64_t logits = (uint64_t)TOKENS * VOCABULARY;
    product(script, LAYERS * LAYER_WEIGHT_COUNT, SLOT_LOGITS, logits * BF16);
    take(script, SLOT_LOGARITHMS, logits * FP32);
    take(script, SLOT_LOSS, FP32);
}

static size_t loss_backward(struct bench_script *script) {
    const uint64_t logits = (uint64_t)TOKENS * VOCABULARY;
    take(script, SLOT_FLOWING, logits * FP32);
    give(script, SLOT_LOGARITHMS);
    size_t flowing = flow(script, SLOT_FLOWING, logits * BF16);
    give(script, SLOT_LOGITS);
    flowing = flow(script, flowing, ROW);
    for (size_t i = 0; i < SINGLE_WEIGHT_COUNT; i++) {
        const size_t index = LAYERS * LAYER_WEIGHT_COUNT + i;
        take(script, SLOT_GRADIENT + index, weight_bytes(index));
    }
    return flowing;
}

static void optimize(struct bench_script *script) {
    for (size_t i = 0; i < WEIGHT_COUNT; i++) take(script, SLOT_TEMPORARY + i, weight_bytes(i));
    for (size_t i = 0; i < WEIGHT_COUNT; i++) give(script, SLOT_TEMPORARY + i);
    for (size_t i = 0; i < WEIGHT_COUNT; i++) give(script, SLOT_GRADIENT + i);
}

void bench_script_transformer(struct bench_script *script) {
    *script = (struct bench_script){0};
    for (size_t i = 0; i < 3 * WEIGHT_COUNT; i++) take(script, i, weight_bytes(i % WEIGHT_COUNT));
    bench_script_cycle_begin(script);
    take(script, SLOT_TOKENS, (uint64_t)TOKENS * 8); // numbers of 64 bits
    for (size_t i = 0; i < LAYERS; i++) layer_forward(script, i);
    loss(script);
    size_t flowing = loss_backward(script);
    for (size_t i = LAYERS; i-- > 0;) flowing = layer_backward(script, i, flowing);
    give(script, flowing);
    give(script, SLOT_LOSS);
    give(script, SLOT_TOKENS);
    optimize(script);
}
