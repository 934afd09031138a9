// How the cost of a pair grows: with live blocks, with cached segments, with streams.
//
// A growth is the slope of a straight line through the logarithms of cost and count. Beyond ten
// thousand live blocks it is the memory's: a list that touches no metadata grows as well, and is
// shown beside it. There the limit is PyTorch's own cost.
#include "bench/allocator_speed.h"

#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "bench/subject.h"

#include <inttypes.h>
#include <math.h>

#define COUNT_MAX 8
#define CYCLE_PAIR_COUNT 8192

// PyTorch 2.15 over 10^6 live blocks, measured the same way: hot-path reference, "Growth".
#define PYTORCH_LIVE_1000000_NS 6312.0
#define LIVE_PART_OF_PYTORCH 5
#define LIVE_FIT_COUNT_MAX 10000
#define LIMIT_LIVE 0.20
#define LIMIT_SEGMENTS 0.20
#define LIMIT_STREAMS 0.15

#define LIVE_BYTES_MIN ((uint64_t)512)
#define LIVE_BYTES_MAX (128 * BASE_KIB)
#define SEGMENT_STEP_BYTES (2 * BASE_MIB) // what the allocator rounds large segments to
#define SEGMENT_BYTES (20 * BASE_MIB)
#define SEGMENT_BYTES_MIN (10 * BASE_MIB)
#define SEGMENT_BYTES_MAX BASE_GIB
#define STREAM_BLOCK_BYTES (4 * BASE_MIB)

struct series {
    const char *name, *text;
    double limit;
    uint64_t fit_count_max; // 0: all
    const uint64_t *counts; // ends with 0
    int count;              // of those measured
    struct bench_script scripts[COUNT_MAX];
    struct bench_pattern patterns[COUNT_MAX];
    struct speed_case *cases[COUNT_MAX];
};

static const uint64_t live_counts[] = {100, 1000, 10000, 100000, 1000000, 0};
static const uint64_t segment_counts[] = {100, 1000, 10000, 100000, 0};
static const uint64_t stream_counts[] = {1, 4, 16, 64, 256, 1024, 0};

static struct series live = {.name = "live",
                             .text = "live blocks, to 10^4",
                             .limit = LIMIT_LIVE,
                             .fit_count_max = LIVE_FIT_COUNT_MAX,
                             .counts = live_counts};
static struct series live_list = {.name = "live",
                                  .text = "the same, mutex_list",
                                  .limit = NAN,
                                  .fit_count_max = LIVE_FIT_COUNT_MAX,
                                  .counts = live_counts};
static struct series one_size = {.name = "segments_one_size",
                                 .text = "cached segments of one size",
                                 .limit = LIMIT_SEGMENTS,
                                 .counts = segment_counts};
static struct series many_sizes = {.name = "segments_many_sizes",
                                   .text = "cached segments of many sizes",
                                   .limit = LIMIT_SEGMENTS,
                                   .counts = segment_counts};
static struct series streams = {.name = "streams",
                                .text = "streams, one taken at random",
                                .limit = LIMIT_STREAMS,
                                .counts = stream_counts};

//--------------------------------------------------------------------------------------------------
// Cases.

static bool count_allowed(uint64_t count) {
    if (speed_run.smoke) return count <= 1000;
    return !speed_run.quick || count <= 100000;
}

// Log-uniform over so many octaves, they are a sixth of the largest on average.
static uint64_t live_bytes(uint64_t count) {
    return count * LIVE_BYTES_MAX / 3;
}

static void series_add(struct series *of, const struct bench_subject *subject,
                       void (*make)(struct series *of, int index), enum speed_group group) {
    for (int i = 0; of->counts[i] != 0; i++) {
        char name[48];
        if (!count_allowed(of->counts[i])) continue;
        BASE_CHECK_LT(of->count, COUNT_MAX);
        const int index = of->count++;
        make(of, index);
        snprintf(name, sizeof name, "%s/%" PRIu64, of->name, of->counts[i]);
        of->cases[index] = speed_case_add_session(group, name, subject, &of->patterns[index], 1,
                                                  BENCH_STREAMS_ONE);
        of->cases[index]->count = of->counts[i];
        if (group == SPEED_GROUP_LIVE) of->cases[index]->bytes_needed = live_bytes(of->counts[i]);
    }
}

static void live_make(struct series *of, int index) {
    bench_pattern_init_mixed(&of->patterns[index], (uint32_t)of->counts[index], LIVE_BYTES_MIN,
                             LIVE_BYTES_MAX, speed_run.seed);
}

// Of one size, or log-uniform over some five hundred.
static uint64_t segment_bytes(struct base_random *sizes, bool many) {
    if (!many) return SEGMENT_BYTES;
    return base_round_up(base_random_log_between(sizes, SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
                         SEGMENT_STEP_BYTES);
}

// COUNT segments taken and given back, then pairs of sizes that are among them.
static void segments_make(struct series *of, int index) {
    struct bench_script *script = &of->scripts[index];
    struct base_random sizes = base_random_init(speed_run.seed, of->name);
    struct base_random choices = base_random_init(speed_run.seed, "segments asked for");
    const uint32_t count = (uint32_t)of->counts[index];
    for (uint32_t i = 0; i < count; i++)
        bench_script_malloc(script, i, segment_bytes(&sizes, of == &many_sizes), 0);
    for (uint32_t i = 0; i < count; i++) bench_script_free(script, i);
    bench_script_cycle_begin(script);
    for (int i = 0; i < CYCLE_PAIR_COUNT; i++) {
        const uint64_t bytes = script->steps[base_random_below(&choices, count)].bytes;
        bench_script_malloc(script, 0, bytes, 0);
        bench_script_free(script, 0);
    }
    bench_pattern_init_script(&of->patterns[index], script);
}

// A cached block on each stream, then pairs on streams in random order.
static void streams_make(struct series *of, int index) {
    struct bench_script *script = &of->scripts[index];
    struct base_random choices = base_random_init(speed_run.seed, of->name);
    const uint32_t count = (uint32_t)of->counts[index];
    for (uint32_t i = 0; i < count; i++) bench_script_malloc(script, i + 1, STREAM_BLOCK_BYTES, i);
    for (uint32_t i = 0; i < count; i++) bench_script_free(script, i + 1);
    bench_script_cycle_begin(script);
    for (int i = 0; i < CYCLE_PAIR_COUNT; i++) {
        bench_script_malloc(script, 0, STREAM_BLOCK_BYTES,
                            (uint32_t)base_random_below(&choices, count));
        bench_script_free(script, 0);
    }
    bench_pattern_init_script(&of->patterns[index], script);
}

void speed_growth_add(void) {
    series_add(&live, &bench_subject_caching, live_make, SPEED_GROUP_LIVE);
    series_add(&live_list, &bench_subject_mutex_list, live_make, SPEED_GROUP_LIVE);
    series_add(&one_size, &bench_subject_caching, segments_make, SPEED_GROUP_PATTERN);
    series_add(&many_sizes, &bench_subject_caching, segments_make, SPEED_GROUP_PATTERN);
    series_add(&streams, &bench_subject_caching, streams_make, SPEED_GROUP_PATTERN);
}

//--------------------------------------------------------------------------------------------------
// Rows.

static double slope(const struct series *of) {
    double x[COUNT_MAX], y[COUNT_MAX];
    size_t count = 0;
    for (int i = 0; i < of->count; i++) {
        if (of->fit_count_max != 0 && of->counts[i] > of->fit_count_max) continue;
        x[count] = (double)of->counts[i];
        y[count++] = speed_fastest_ns(of->cases[i]);
    }
    return bench_exponent(x, y, count);
}

static void series_row_add(const struct series *of) {
    char points[COUNT_MAX * 24];
    size_t length = 0;
    points[0] = '\0';
    for (int i = 0; i < of->count; i++)
        length +=
            (size_t)snprintf(points + length, sizeof points - length, "%s%" PRIu64 ": %.0f",
                             i == 0 ? "" : ", ", of->counts[i], speed_fastest_ns(of->cases[i]));
    const struct speed_row row = {
        .text = of->text, .measured = slope(of), .limit = of->limit, .unit = SPEED_UNIT_EXPONENT};
    speed_row_add(&row, of->count > 0 ? of->cases[0] : NULL, "ns: %s", points);
}

void speed_growth_rows_add(void) {
    speed_section_add("Growth: exponent of a pair's cost over");
    series_row_add(&live);
    series_row_add(&live_list);
    for (int i = 0; i < live.count; i++) {
        if (live.counts[i] != 1000000) continue;
        const struct speed_row row = {.text = "10^6 live blocks, a pair",
                                      .measured = speed_fastest_ns(live.cases[i]),
                                      .limit = PYTORCH_LIVE_1000000_NS / LIVE_PART_OF_PYTORCH,
                                      .unit = SPEED_UNIT_NS};
        speed_row_add(&row, live.cases[i], "a fifth of PyTorch's %.0f ns", PYTORCH_LIVE_1000000_NS);
    }
    series_row_add(&one_size);
    series_row_add(&many_sizes);
    series_row_add(&streams);
}

static void series_deinit(struct series *of) {
    for (int i = 0; i < of->count; i++) {
        bench_pattern_deinit(&of->patterns[i]);
        bench_script_deinit(&of->scripts[i]);
    }
}

void speed_growth_deinit(void) {
    series_deinit(&live);
    series_deinit(&live_list);
    series_deinit(&one_size);
    series_deinit(&many_sizes);
    series_deinit(&streams);
}
