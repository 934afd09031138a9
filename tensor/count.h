// Intrusive strong and weak counts in one atomic word, as PyTorch's: bits 0 to 31 strong, 32 to 62
// weak. While the strong count is above 0 the weak one includes 1 for all strong handles together.
//
// A strong count that has come to 0 never rises again, so a weak handle can only be locked while
// somebody else still holds the object.
#ifndef TIDEMARK_TENSOR_COUNT_H
#define TIDEMARK_TENSOR_COUNT_H

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

struct tensor_count {
    uint64_t word;
};

#define TENSOR_COUNT_STRONG 1ull
#define TENSOR_COUNT_WEAK (1ull << 32)
#define TENSOR_COUNT_MASK 0xffffffffull

// What the holder of the last handle has to do.
enum tensor_count_drop {
    TENSOR_COUNT_KEEP,
    TENSOR_COUNT_RELEASE, // free the resources, then tensor_count_drop_weak
    TENSOR_COUNT_DESTROY, // free the object, resources included
};

static inline struct tensor_count tensor_count_one(void) {
    return (struct tensor_count){TENSOR_COUNT_STRONG | TENSOR_COUNT_WEAK};
}

static inline uint32_t tensor_count_strong(const struct tensor_count *count) {
    return (uint32_t)(__atomic_load_n(&count->word, __ATOMIC_RELAXED) & TENSOR_COUNT_MASK);
}

// Includes the 1 of the strong handles.
static inline uint32_t tensor_count_weak(const struct tensor_count *count) {
    return (uint32_t)(__atomic_load_n(&count->word, __ATOMIC_RELAXED) >> 32);
}

static inline void tensor_count_up(struct tensor_count *count) {
    const uint64_t before = __atomic_fetch_add(&count->word, TENSOR_COUNT_STRONG, __ATOMIC_RELAXED);
    BASE_CHECK((before & TENSOR_COUNT_MASK) != 0);
}

static inline void tensor_count_up_weak(struct tensor_count *count) {
    __atomic_fetch_add(&count->word, TENSOR_COUNT_WEAK, __ATOMIC_RELAXED);
}

// Weak to strong; false once the strong count is 0.
static inline bool tensor_count_lock(struct tensor_count *count) {
    uint64_t word = __atomic_load_n(&count->word, __ATOMIC_RELAXED);
    do {
        if ((word & TENSOR_COUNT_MASK) == 0)
            return false;
    } while (!__atomic_compare_exchange_n(&count->word, &word, word + TENSOR_COUNT_STRONG, true,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return true;
}

static inline enum tensor_count_drop tensor_count_drop_weak(struct tensor_count *count) {
    // Acquire pairs with the release of the other handles' drops: their writes come before the
    // free.
    const uint64_t before = __atomic_fetch_sub(&count->word, TENSOR_COUNT_WEAK, __ATOMIC_ACQ_REL);
    BASE_CHECK(before >> 32 != 0);
    return before >> 32 == 1 ? TENSOR_COUNT_DESTROY : TENSOR_COUNT_KEEP;
}

static inline enum tensor_count_drop tensor_count_drop(struct tensor_count *count) {
    // The only handle of any kind: nobody else can come by one, so no atomic step is needed, and
    // there is nobody for whom resources would have to be freed early.
    if (__atomic_load_n(&count->word, __ATOMIC_ACQUIRE) ==
        (TENSOR_COUNT_STRONG | TENSOR_COUNT_WEAK))
        return TENSOR_COUNT_DESTROY;
    const uint64_t before = __atomic_fetch_sub(&count->word, TENSOR_COUNT_STRONG, __ATOMIC_ACQ_REL);
    BASE_CHECK((before & TENSOR_COUNT_MASK) != 0);
    if ((before & TENSOR_COUNT_MASK) != 1)
        return TENSOR_COUNT_KEEP;
    return before >> 32 == 1 ? TENSOR_COUNT_DESTROY : TENSOR_COUNT_RELEASE;
}

#endif
