// Assertions that stay on in every build. A broken invariant prints the place, the expression, both
// values and what base_check_context() was told (seed, step), then aborts.
//
//     BASE_CHECK(block != NULL);
//     BASE_CHECK_EQ(block->size % 512, 0);       prints both values
//
// Values are compared as 64-bit integers: signed for EQ NE LT LE GT GE on integers, as addresses
// for pointers.
#ifndef TIDEMARK_BASE_CHECK_H
#define TIDEMARK_BASE_CHECK_H

#include <stdint.h>

#define BASE_CHECK(condition)                     \
    (__builtin_expect(!!(condition), 1) ? (void)0 \
                                        : base_check_failed(__FILE__, __LINE__, #condition))
#define BASE_CHECK_EQ(a, b) BASE_CHECK_COMPARE(a, ==, b, #a " == " #b)
#define BASE_CHECK_NE(a, b) BASE_CHECK_COMPARE(a, !=, b, #a " != " #b)
#define BASE_CHECK_LT(a, b) BASE_CHECK_COMPARE(a, <, b, #a " < " #b)
#define BASE_CHECK_LE(a, b) BASE_CHECK_COMPARE(a, <=, b, #a " <= " #b)
#define BASE_CHECK_GT(a, b) BASE_CHECK_COMPARE(a, >, b, #a " > " #b)
#define BASE_CHECK_GE(a, b) BASE_CHECK_COMPARE(a, >=, b, #a " >= " #b)

#define BASE_CHECK_COMPARE(a, relation, b, text)                                                \
    do {                                                                                        \
        const int64_t base_check_a = (int64_t)(a), base_check_b = (int64_t)(b);                 \
        if (__builtin_expect(!(base_check_a relation base_check_b), 0))                         \
            base_check_compare_failed(__FILE__, __LINE__, text, base_check_a, base_check_b);    \
    } while (0)

// What every failed check of this thread prints besides, for example "seed 42, step 17"; NULL
// clears it. The text is copied (at most 255 bytes).
void base_check_context(const char *format, ...) __attribute__((format(printf, 1, 2)));

// What the macros call; C and C++ know this spelling of "does not return".
__attribute__((noreturn)) void base_check_failed(const char *file, int line,
                                                 const char *expression);
__attribute__((noreturn)) void base_check_compare_failed(const char *file, int line,
                                                         const char *expression, int64_t a,
                                                         int64_t b);

#endif
