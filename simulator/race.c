// The race checker starts and stops; what it is told.
#include "simulator/race.h"

#include "simulator/order.h"
#include "simulator/race_report.h"

#include <stdlib.h>

bool sim__race_on;

struct sim__race_node {
    uint64_t references;
};

// --- What the calls tell ---

void sim__race_submitted(struct sim__position position, const struct sim__operation *operation) {
    (void)position;
    (void)operation;
}

void sim__race_host(const void *pointer, size_t size, size_t rows, size_t pitch,
                    enum sim_access_mode mode) {
    (void)pointer;
    (void)size;
    (void)rows;
    (void)pitch;
    (void)mode;
}

void sim__race_alloc(uint64_t start, uint64_t size, bool written,
                     const struct sim__stream *stream) {
    (void)start;
    (void)size;
    (void)written;
    (void)stream;
}

void sim__race_free(uint64_t start, uint64_t size, const struct sim__stream *stream) {
    (void)start;
    (void)size;
    (void)stream;
}

void sim__race_unmap(uint64_t start, uint64_t size) {
    (void)start;
    (void)size;
}

void sim__race_unregister(uint64_t start, uint64_t size) {
    (void)start;
    (void)size;
}

// --- Nodes ---

struct sim__race_node *sim__race_node_create(const struct sim__operation *operation,
                                             uint64_t graph, uint64_t stream) {
    struct sim__race_node *node = calloc(1, sizeof *node);
    (void)operation;
    (void)graph;
    (void)stream;
    if (node != NULL)
        node->references = 1;
    return node;
}

struct sim__race_node *sim__race_node_retain(struct sim__race_node *node) {
    if (node != NULL)
        ++node->references;
    return node;
}

void sim__race_node_release(struct sim__race_node *node) {
    if (node != NULL && --node->references == 0)
        free(node);
}

void sim__race_launched(struct sim__position position, const struct sim__exec *exec) {
    (void)position;
    (void)exec;
}

void sim__race_reset(void) {}

// --- What the program tells ---

enum base_status sim__race_start(const struct sim_race_options *options) {
    sim__race_stop();
    const enum base_status status = sim__race_report_start(options);
    if (status != BASE_OK)
        return status;
    sim__race_log_reset();
    sim__order_check_begin();
    sim__race_on = true;
    return BASE_OK;
}

void sim__race_stop(void) {
    if (!sim__race_on)
        return;
    sim__race_on = false;
    sim__order_check_end();
    sim__race_report_stop();
}

enum base_status sim_race_start(const struct sim_race_options *options) {
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    const enum base_status status = sim__race_start(options);
    base_mutex_unlock(&sim__state.lock);
    return status;
}

void sim_race_stop(void) {
    base_mutex_lock(&sim__state.lock);
    sim__race_stop();
    base_mutex_unlock(&sim__state.lock);
}

void sim_next_accesses(const struct sim_access *accesses, size_t count) {
    (void)accesses;
    (void)count;
}

uint64_t sim_block_take(const void *pointer, size_t size, cudaStream_t stream, const char *name) {
    (void)pointer;
    (void)size;
    (void)stream;
    (void)name;
    return 0;
}

void sim_block_use(uint64_t block, cudaStream_t stream) {
    (void)block;
    (void)stream;
}

void sim_block_give(uint64_t block) { (void)block; }

void sim_value_seen(const void *pointer, uint64_t value) {
    (void)pointer;
    (void)value;
}

void sim_handoff_signal(const void *token) { (void)token; }

void sim_handoff_await(const void *token) { (void)token; }
