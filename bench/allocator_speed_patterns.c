// The patterns of this benchmark by name.
#include "bench/allocator_speed.h"

#include "base/check.h"
#include "base/size.h"

#include <string.h>

static struct bench_pattern patterns[SPEED_PATTERN_COUNT];
static struct bench_script transformer;

void speed_patterns_init(uint64_t seed) {
    static const struct {
        enum speed_pattern pattern;
        enum bench_pattern_kind kind;
        size_t bytes;
    } plain[] = {
        {SPEED_PATTERN_WINDOW_512, BENCH_PATTERN_WINDOW, 512},
        {SPEED_PATTERN_WINDOW_64K, BENCH_PATTERN_WINDOW, 64 * BASE_KIB},
        {SPEED_PATTERN_WINDOW_4M, BENCH_PATTERN_WINDOW, 4 * BASE_MIB},
        {SPEED_PATTERN_PAIR_512, BENCH_PATTERN_PAIR, 512},
        {SPEED_PATTERN_PAIR_4M, BENCH_PATTERN_PAIR, 4 * BASE_MIB},
        {SPEED_PATTERN_MIXED, BENCH_PATTERN_MIXED, 0},
        {SPEED_PATTERN_RECORD_STREAM, BENCH_PATTERN_RECORD, 4 * BASE_MIB},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        bench_pattern_init(&patterns[plain[i].pattern], plain[i].kind, plain[i].bytes, seed);
    bench_script_transformer(&transformer);
    bench_pattern_init_script(&patterns[SPEED_PATTERN_TRANSFORMER], &transformer);
}

void speed_patterns_deinit(void) {
    for (size_t i = 0; i < SPEED_PATTERN_COUNT; i++) bench_pattern_deinit(&patterns[i]);
    bench_script_deinit(&transformer);
}

const struct bench_pattern *speed_pattern_get(enum speed_pattern pattern) {
    BASE_CHECK_LT(pattern, SPEED_PATTERN_COUNT);
    return &patterns[pattern];
}

const char *speed_pattern_name(enum speed_pattern pattern) {
    static const char *const names[] = {
#define SPEED_PATTERN_NAME(identifier, name) name,
        SPEED_PATTERN_LIST(SPEED_PATTERN_NAME)
#undef SPEED_PATTERN_NAME
    };
    BASE_CHECK_LT(pattern, SPEED_PATTERN_COUNT);
    return names[pattern];
}

enum speed_pattern speed_pattern_find(const char *name) {
    for (int i = 0; i < SPEED_PATTERN_COUNT; i++)
        if (strcmp(speed_pattern_name((enum speed_pattern)i), name) == 0)
            return (enum speed_pattern)i;
    return SPEED_PATTERN_COUNT;
}
