// See generate.h. The generator is a small program counter over a fixed plan of operations; each
// operation puts its entries into a short queue that trace__generator_next empties. Memory is
// bounded by what is live in the made program.
#include "trace/generate.h"

#include "base/check.h"
#include "base/random.h"
#include "base/size.h"

#include <stdlib.h>

enum {
    LAYERS_MIN = 12,
    LAYERS_MAX = 32, // of a training program
    OPERATIONS_MIN = 6,
    OPERATIONS_MAX = 14, // of a layer
    OPERATION_COUNT_MAX = LAYERS_MAX * OPERATIONS_MAX,
    SLOT_COUNT = 1024,   // live caches of a serving program
    SIDE_COUNT_MAX = 64, // live blocks of the side streams
    SITE_SIDE = 100000,
    SITE_WEIGHT = 200000,
    SITE_BACKWARD = 50000,
    COMPLETION_LAG = 40, // requests between free_requested and free_completed where another stream
                         // used the block
    PENDING_COUNT = 256,
    QUEUE_COUNT = 64,
    STEP_US_MAX = 20,
};
#define FIRST_ADDRESS UINT64_C(0x100000000000)
#define FIRST_TIME_US UINT64_C(1700000000000000)

struct live_block {
    uint64_t address, size; // address 0: none
    uint32_t site;
    uint16_t stream;
};

struct operation {
    uint64_t size;
    bool kept; // an activation, freed in the backward pass; else freed after the next operation
};

struct pending_free {
    struct live_block block;
    uint64_t due; // request count
};

struct trace_generator {
    struct trace_generator_options options;
    struct base_random sizes, choices, times;
    uint64_t address, time_us, request_count;

    struct operation operations[OPERATION_COUNT_MAX];
    uint32_t operation_count;
    uint32_t position;        // in the step: weights, forward, backward
    bool warm;                // weights are there
    uint64_t scale_per_mille; // of this step's sizes
    struct live_block kept[OPERATION_COUNT_MAX];
    struct live_block temporary;

    struct live_block slots[SLOT_COUNT];

    struct live_block side[SIDE_COUNT_MAX]; // a ring, first in, first out
    uint32_t side_first, side_count;

    struct pending_free pending[PENDING_COUNT]; // a ring
    uint32_t pending_first, pending_count;

    struct trace_event queue[QUEUE_COUNT];
    uint32_t queue_sites[QUEUE_COUNT];
    uint32_t queue_first, queue_count;
};

const char *trace__profile_name(int profile) {
    static const char *const names[] = {"training", "varlen", "serving"};
    return profile >= 0 && profile < TRACE_PROFILE_COUNT ? names[profile] : NULL;
}

//------------------------------------------------------------------------------------------------
// Entries.

static void emit(struct trace_generator *generator, enum trace_action action,
                 const struct live_block *block, uint32_t site) {
    BASE_CHECK_LT(generator->queue_count, QUEUE_COUNT);
    generator->time_us += base_random_below(&generator->times, STEP_US_MAX);
    const uint32_t slot = (generator->queue_first + generator->queue_count++) % QUEUE_COUNT;
    generator->queue[slot] = (struct trace_event){.address = block->address,
                                                  .size = block->size,
                                                  .time_us = generator->time_us,
                                                  .stack = TRACE_NONE,
                                                  .metadata = TRACE_NONE,
                                                  .stream = block->stream,
                                                  .action = (uint8_t)action};
    generator->queue_sites[slot] = site;
}

// Late frees whose time has come complete before the next allocation, as an allocator polls them
// there.
static void complete_due(struct trace_generator *generator) {
    while (generator->pending_count > 0 &&
           generator->pending[generator->pending_first].due <= generator->request_count &&
           generator->queue_count < QUEUE_COUNT / 2) {
        emit(generator, TRACE_FREE_COMPLETED, &generator->pending[generator->pending_first].block,
             0);
        generator->pending_first = (generator->pending_first + 1) % PENDING_COUNT;
        generator->pending_count--;
    }
}

static struct live_block request(struct trace_generator *generator, uint64_t size, uint16_t stream,
                                 uint32_t site) {
    complete_due(generator);
    const struct live_block block = {
        .address = generator->address, .size = size, .site = site, .stream = stream};
    generator->address += base_round_up(size, 512);
    generator->request_count++;
    emit(generator, TRACE_ALLOC, &block, site);
    return block;
}

static void release(struct trace_generator *generator, struct live_block *block, bool late) {
    if (block->address == 0) return;
    generator->request_count++;
    emit(generator, TRACE_FREE_REQUESTED, block, block->site);
    if (late && generator->pending_count < PENDING_COUNT) {
        const uint32_t slot =
            (generator->pending_first + generator->pending_count++) % PENDING_COUNT;
        generator->pending[slot] =
            (struct pending_free){*block, generator->request_count + COMPLETION_LAG};
    } else {
        emit(generator, TRACE_FREE_COMPLETED, block, block->site);
    }
    block->address = 0;
}

//------------------------------------------------------------------------------------------------
// The programs.

static void plan_layers(struct trace_generator *generator) {
    struct base_random *random = &generator->sizes;
    const uint64_t layers = base_random_between(random, LAYERS_MIN, LAYERS_MAX);
    const uint64_t per_layer = base_random_between(random, OPERATIONS_MIN, OPERATIONS_MAX);
    struct operation layer[OPERATIONS_MAX];
    for (uint64_t i = 0; i < per_layer; i++) {
        // Statistics and masks are small, activations are not.
        const bool small = base_random_chance(random, 0.35);
        layer[i].size = small ? base_random_log_between(random, 4, 512 * BASE_KIB)
                              : base_random_log_between(random, BASE_MIB, 64 * BASE_MIB);
        layer[i].kept = base_random_chance(random, 0.6);
    }
    for (uint64_t i = 0; i < layers * per_layer; i++)
        generator->operations[i] = layer[i % per_layer];
    generator->operation_count = (uint32_t)(layers * per_layer);
}

static uint64_t scaled(const struct trace_generator *generator, uint64_t size) {
    const uint64_t result = size * generator->scale_per_mille / 1000;
    return result == 0 ? 1 : result;
}

static void train_forward(struct trace_generator *generator, uint32_t i) {
    const struct operation *operation = &generator->operations[i];
    struct live_block block = request(generator, scaled(generator, operation->size), 0, i);
    release(generator, &generator->temporary, false);
    if (operation->kept)
        generator->kept[i] = block;
    else
        generator->temporary = block;
}

static void train_backward(struct trace_generator *generator, uint32_t i) {
    struct live_block gradient =
        request(generator, scaled(generator, generator->operations[i].size), 0, SITE_BACKWARD + i);
    release(generator, &generator->kept[i], false);
    release(generator, &generator->temporary, false);
    generator->temporary = gradient;
}

// Weights first, once; then steps of forward and backward without end.
static void train(struct trace_generator *generator) {
    const uint32_t count = generator->operation_count, i = generator->position++;
    if (!generator->warm) {
        request(generator, generator->operations[i].size, 0, SITE_WEIGHT + i);
        generator->warm = generator->position == count;
        if (generator->warm) generator->position = 0;
        return;
    }
    if (i == 0 && generator->options.profile == TRACE_PROFILE_VARLEN)
        generator->scale_per_mille = base_random_between(&generator->sizes, 100, 1000);
    if (i < count)
        train_forward(generator, i);
    else
        train_backward(generator, 2 * count - 1 - i);
    if (generator->position == 2 * count) generator->position = 0;
}

static void serve(struct trace_generator *generator) {
    struct base_random *random = &generator->choices;
    const uint32_t i = (uint32_t)base_random_below(random, SLOT_COUNT);
    if (generator->slots[i].address != 0) {
        release(generator, &generator->slots[i], false);
        return;
    }
    const uint64_t size = base_random_chance(random, 0.7)
                              ? base_random_log_between(&generator->sizes, 4, BASE_MIB)
                              : base_random_log_between(&generator->sizes, BASE_MIB, 32 * BASE_MIB);
    const struct live_block block = request(generator, size, 0, i);
    if (base_random_chance(random, 0.5)) {
        generator->slots[i] = block;
    } else { // lives for one operation
        release(generator, &generator->temporary, false);
        generator->temporary = block;
    }
}

// A side stream takes a buffer; beyond a few dozen the oldest goes back, half of them after stream
// 0 has used them too.
static void gather(struct trace_generator *generator) {
    struct base_random *random = &generator->choices;
    if (generator->side_count == SIDE_COUNT_MAX) {
        release(generator, &generator->side[generator->side_first],
                base_random_chance(random, 0.5));
        generator->side_first = (generator->side_first + 1) % SIDE_COUNT_MAX;
        generator->side_count--;
    }
    const uint16_t stream =
        (uint16_t)base_random_between(random, 1, generator->options.stream_count - 1);
    // Shards have few sizes.
    const uint64_t size = BASE_MIB * base_random_between(&generator->sizes, 1, 24) + 12 * BASE_KIB;
    generator->side[(generator->side_first + generator->side_count++) % SIDE_COUNT_MAX] =
        request(generator, size, stream, SITE_SIDE + stream);
}

static void operate(struct trace_generator *generator) {
    if (generator->options.stream_count > 1 && base_random_chance(&generator->choices, 0.15))
        gather(generator);
    else if (generator->options.profile == TRACE_PROFILE_SERVING)
        serve(generator);
    else
        train(generator);
}

//------------------------------------------------------------------------------------------------
// The interface.

enum base_status trace__generator_create(const struct trace_generator_options *options,
                                         struct trace_generator **generator) {
    BASE_CHECK(options->stream_count >= 1 && options->stream_count <= TRACE_GENERATOR_STREAMS_MAX);
    struct trace_generator *made = calloc(1, sizeof *made);
    if (made == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a trace generator");
    made->options = *options;
    made->sizes = base_random_init(options->seed, "trace sizes");
    made->choices = base_random_init(options->seed, "trace choices");
    made->times = base_random_init(options->seed, "trace times");
    made->address = FIRST_ADDRESS;
    made->time_us = FIRST_TIME_US;
    made->scale_per_mille = 1000;
    plan_layers(made);
    *generator = made;
    return BASE_OK;
}

void trace__generator_destroy(struct trace_generator *generator) { free(generator); }

enum base_status trace__generator_next(struct trace_generator *generator, struct trace_event *event,
                                       uint32_t *site) {
    while (generator->queue_count == 0) operate(generator);
    if (generator->address > (uint64_t)1 << 62)
        return base_status_set(
            BASE_LIMIT, "the made trace names more addresses than 62 bits hold; make it shorter");
    *event = generator->queue[generator->queue_first];
    *site = generator->queue_sites[generator->queue_first];
    generator->queue_first = (generator->queue_first + 1) % QUEUE_COUNT;
    generator->queue_count--;
    return BASE_OK;
}
