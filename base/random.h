// A seeded 64-bit generator (xoshiro256**) with named streams: every use of chance names itself, so
// that adding one use does not shift the numbers of another.
//
//     struct base_random sizes = base_random_init(seed, "sizes");
//     uint64_t bytes = base_random_below(&sizes, 4096);
//
// Not thread-safe: one generator a thread. Same seed and name, same numbers, on every machine.
#ifndef TIDEMARK_BASE_RANDOM_H
#define TIDEMARK_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct base_random {
    uint64_t state[4];
};

struct base_random base_random_init(uint64_t seed, const char *stream_name);

uint64_t base_random_next(struct base_random *random);
// Uniform in [0, bound), without bias; bound >= 1.
uint64_t base_random_below(struct base_random *random, uint64_t bound);
// Uniform in [low, high], both ends included.
uint64_t base_random_between(struct base_random *random, uint64_t low, uint64_t high);
// Uniform in [0, 1), 53 bits.
double base_random_unit(struct base_random *random);
// Log-uniform integer in [low, high]; low >= 1.
uint64_t base_random_log_between(struct base_random *random, uint64_t low, uint64_t high);
// True with the given probability.
bool base_random_chance(struct base_random *random, double probability);

#endif
