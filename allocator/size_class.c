// Rounding of requests and sizes of segments: the part that is not on every request's path.
#include "allocator/size_class.h"

static unsigned log2_floor(uint64_t value) { return 63u - (unsigned)__builtin_clzll(value); }

static size_t round_up(size_t value, size_t power_of_two) {
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

void cca__size_rules_update(struct cca__size_rules *rules) {
    rules->divided = false;
    for (int entry = 0; entry < CCA_DIVISION_COUNT; ++entry)
        if (rules->divisions[entry] > 1) rules->divided = true;
}

// The division of the request's power of two. Entry 0 stands for 1 MiB, so all below 2 MiB share
// it.
static uint64_t division_of(const struct cca__size_rules *rules, size_t size) {
    const int entry = (int)log2_floor(size) - 20;
    if (entry < 0) return rules->divisions[0];
    return rules->divisions[entry < CCA_DIVISION_COUNT ? entry : CCA_DIVISION_COUNT - 1];
}

size_t cca__round_size_divided(const struct cca__size_rules *rules, size_t size) {
    if (size < CCA_MIN_BLOCK) return CCA_MIN_BLOCK;
    const uint64_t division = division_of(rules, size);
    // The second test without 512 * division, which overflows for absurd divisions.
    if (division <= 1 || (size - 1) / CCA_MIN_BLOCK < division)
        return round_up(size, CCA_MIN_BLOCK);
    if ((size & (size - 1)) == 0) return size;
    const size_t power = (size_t)1 << log2_floor(size);
    const size_t step = power >> log2_floor(division);
    return step == 0 ? power << 1 : round_up(size, step);
}

size_t cca__segment_size(const struct cca__size_rules *rules, size_t rounded) {
    if (rounded <= CCA_SMALL_LIMIT) return CCA_SMALL_SEGMENT;
    if (rounded < CCA_MIN_LARGE) return rules->large_segment;
    return round_up(rounded, CCA_ROUND_LARGE);
}
