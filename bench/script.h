// A script: allocations and frees in a fixed order, drawn up beforehand, that a pattern
// (bench/pattern.h) plays over and over.
//
//     struct bench_script script = {0};
//     bench_script_malloc(&script, slot, bytes, stream);   what is there before the cycle
//     bench_script_cycle_begin(&script);
//     bench_script_malloc(&script, slot, bytes, stream);
//     bench_script_free(&script, slot);                    the cycle
//     bench_script_deinit(&script);
//
// Slots are names of blocks, streams are numbers; whoever plays the script has an array of each. A
// cycle gives back all that it takes, so that it can follow itself. The builders abort when the
// host has no memory for the script, or when it frees or fills a slot twice.
#ifndef TIDEMARK_BENCH_SCRIPT_H
#define TIDEMARK_BENCH_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_script_step {
    uint64_t bytes; // 0: a free
    uint32_t slot, stream;
};

struct bench_script {
    struct bench_script_step *steps;
    size_t step_count, capacity;
    size_t cycle_first;              // the cycle's first step; those before are played once
    uint64_t pair_count;             // allocations of a cycle, as many as its frees
    uint64_t live_bytes, peak_bytes; // at the end so far; the most at any time
    uint32_t slot_count, stream_count;
    uint64_t *held_bytes; // one a slot: of the block in it, 0: none
};

void bench_script_malloc(struct bench_script *script, uint32_t slot, uint64_t bytes,
                         uint32_t stream);
void bench_script_free(struct bench_script *script, uint32_t slot);
// To be called once, between what comes before and the cycle.
void bench_script_cycle_begin(struct bench_script *script);
// Whether the slot holds a block after the steps so far.
bool bench_script_filled(const struct bench_script *script, uint32_t slot);
void bench_script_deinit(struct bench_script *script);

// One training step of a transformer, over and over: see script_transformer.c for its operations
// and their sizes.
void bench_script_transformer(struct bench_script *script);

#endif
