// Sizes as people write and read them: `512`, `20MiB`, `1.5GiB`, powers of 1024.
#ifndef TIDEMARK_BASE_SIZE_H
#define TIDEMARK_BASE_SIZE_H

#include "base/status.h"

#include <stdint.h>

#define BASE_KIB ((uint64_t)1024)
#define BASE_MIB (1024 * BASE_KIB)
#define BASE_GIB (1024 * BASE_MIB)

// Parses digits with an optional fraction and an optional unit (B, KiB, MiB, GiB, TiB; K, M, G, T
// and any letter case are accepted and mean the same; one space may stand before it). The result
// must be a whole number of bytes below 2^63. BASE_INVALID_VALUE names the text and a right
// example; *bytes is then unchanged.
enum base_status base_size_parse(const char *text, uint64_t *bytes) BASE_MUST_USE;

// The shortest text that says BYTES to three significant digits or exactly: "512 B", "20 MiB",
// "1.46 GiB". Returns BUFFER, which must hold BASE_SIZE_TEXT bytes.
#define BASE_SIZE_TEXT 32
char *base_size_format(uint64_t bytes, char buffer[BASE_SIZE_TEXT]);

// VALUE rounded to a multiple of STEP (not necessarily a power of two). Up may not overflow: the
// caller checked.
static inline uint64_t base_round_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}
static inline uint64_t base_round_down(uint64_t value, uint64_t step) {
    return value / step * step;
}

#endif
