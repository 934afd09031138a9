// Sizes: what a request is rounded to, which pool serves it, how large a new segment is, and when
// a block is split.
//
//     request      block       pool    new segment
//     1 B          512 B       small   2 MiB
//     1 MiB        1 MiB       small   2 MiB
//     1 MiB + 1    1 MiB+512   large   20 MiB (large_segment_size_mb)
//     10 MiB       10 MiB      large   10 MiB
//     10 MiB + 1   10 MiB+512  large   12 MiB
//
// Everything here is a pure function of the request and the settings.
#ifndef TIDEMARK_ALLOCATOR_SIZE_CLASS_H
#define TIDEMARK_ALLOCATOR_SIZE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CCA_MIN_BLOCK     ((size_t)512)     // sizes and addresses of blocks are multiples of it
#define CCA_SMALL_LIMIT   ((size_t)1 << 20) // rounded sizes up to here are served by the small pool
#define CCA_SMALL_SEGMENT ((size_t)2 << 20) // segment of the small pool
#define CCA_LARGE_SEGMENT                                                                          \
    ((size_t)20 << 20) // segment of the large pool for rounded sizes below CCA_MIN_LARGE
#define CCA_MIN_LARGE     ((size_t)10 << 20) // from here on a request gets its own segment,
#define CCA_ROUND_LARGE   ((size_t)2 << 20)  // rounded up to this
#define CCA_REQUEST_LIMIT ((size_t)1 << 60)  // requests from here on are refused at the front door
#define CCA_UNLIMITED     SIZE_MAX           // max_split_size when it is not set

// roundup_power2_divisions: entry I rules requests in [2^I MiB, 2^(I+1) MiB), the first also all
// below, the last all above.
#define CCA_DIVISION_COUNT 16

// The settings that sizes depend on; a part of struct cca__config.
struct cca__size_rules {
    size_t large_segment;                   // large_segment_size_mb
    size_t max_split_size;                  // max_split_size_mb; CCA_UNLIMITED
    size_t max_non_split_rounding;          // max_non_split_rounding_mb
    uint64_t divisions[CCA_DIVISION_COUNT]; // 0 and 1: no division
    bool divided;                           // some entry is above 1
};

// Sets the table's summary after its entries changed.
void cca__size_rules_update(struct cca__size_rules *rules);

// The block size for SIZE >= 1 under a division of powers of two.
size_t cca__round_size_divided(const struct cca__size_rules *rules, size_t size);

// The block size for a request of SIZE bytes, 1 <= SIZE < CCA_REQUEST_LIMIT.
static inline size_t cca__round_size_plain(size_t size) {
    return (size + CCA_MIN_BLOCK - 1) & ~(CCA_MIN_BLOCK - 1);
}
static inline size_t cca__round_size(const struct cca__size_rules *rules, size_t size) {
    return rules->divided ? cca__round_size_divided(rules, size) : cca__round_size_plain(size);
}

// The size of the segment taken for a block of ROUNDED bytes if nothing cached fits.
size_t cca__segment_size(const struct cca__size_rules *rules, size_t rounded);

// Whether the surplus beyond ROUNDED of a block of SIZE bytes becomes a block of its own.
static inline bool cca__should_split(bool is_small, size_t size, size_t rounded,
                                     size_t max_split_size) {
    // Without a branch on the pool, which a program that mixes them would make unpredictable.
    const size_t least = is_small ? CCA_MIN_BLOCK : CCA_SMALL_LIMIT + 1;
    return (size - rounded >= least) & (is_small | (rounded < max_split_size));
}

// Whether max_split_size forbids the best fit: a small request may not take an oversize block,
// and an oversize one may waste less than max_non_split_rounding.
static inline bool cca__oversize_refused(const struct cca__size_rules *rules, size_t size,
                                         size_t rounded) {
    if (rounded < rules->max_split_size) return size >= rules->max_split_size;
    return size - rounded >= rules->max_non_split_rounding;
}

#endif
