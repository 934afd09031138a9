// Who is served when; what the model computes, beside plain loops; and
// the three ways to keep the cache beside each other.
#include "workload/program.h"
#include "workload/serving_model.h"
#include "workload/serving_schedule.h"

#include "allocator/cca.h"
#include "base/check.h"
#include "simulator/sim.h"
#include "tensor/host_allocator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void ok(enum base_status status) {
    if (status != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

//------------------------------------------------------------------------------------------------
// Schedule

#define STEPS 4000
static const struct serving_load load = {0.3, 3, 60, 2, 100, 8, 40, 10};

// Every page is free or one request's, and each has those of its tokens.
static void pages_check(const struct serving_schedule *schedule) {
    bool is_seen[40] = {false};
    int64_t count = schedule->free_count;
    for (int64_t i = 0; i < schedule->free_count; ++i) {
        BASE_CHECK(!is_seen[schedule->free_pages[i]]);
        is_seen[schedule->free_pages[i]] = true;
    }
    for (int i = 0; i < schedule->active_count; ++i) {
        const struct serving_request *request = schedule->active[i];
        const int64_t tokens = request->cached + serving_rows(request);
        BASE_CHECK_EQ(request->page_count, (tokens + 7) / 8);
        for (int64_t page = 0; page < request->page_count; ++page) {
            BASE_CHECK(!is_seen[request->pages[page]]);
            is_seen[request->pages[page]] = true;
        }
        count += request->page_count;
    }
    BASE_CHECK_EQ(count, 40);
}

static void batches_are_full_as_pages_allow(void) {
    struct serving_schedule *schedule;
    uint64_t batches = 0;
    ok(serving_schedule_create(&load, 5, STEPS, &schedule));
    for (uint64_t step = 0; step < STEPS; ++step) {
        serving_schedule_begin(schedule);
        BASE_CHECK_LE(schedule->active_count, 10);
        BASE_CHECK(schedule->active_count > 0 || schedule->request_count == 0 ||
                   schedule->requests[schedule->first_waiting].arrival > step);
        pages_check(schedule);
        batches += schedule->active_count > 1;
        const int before = schedule->active_count;
        serving_schedule_end(schedule);
        BASE_CHECK_EQ(schedule->active_count + schedule->left_count, before);
        for (int i = 0; i < schedule->left_count; ++i)
            BASE_CHECK(schedule->left[i]->is_done);
    }
    BASE_CHECK_GT(batches, STEPS / 2);
    BASE_CHECK_GT(schedule->pushed_out, 0);
    serving_schedule_destroy(schedule);
}

// Nobody starves: whoever came in the first half is done, with the tokens that were due.
static void everyone_is_served(void) {
    struct serving_schedule *schedule;
    ok(serving_schedule_create(&load, 6, STEPS, &schedule));
    for (uint64_t step = 0; step < STEPS; ++step) {
        serving_schedule_begin(schedule);
        serving_schedule_end(schedule);
    }
    for (int64_t i = 0; i < schedule->request_count; ++i) {
        const struct serving_request *request = &schedule->requests[i];
        if (request->arrival > STEPS / 2) break;
        BASE_CHECK(request->is_done);
        BASE_CHECK_EQ(request->made, request->output);
        BASE_CHECK_EQ(request->cached, request->prompt + request->output - 1);
    }
    serving_schedule_destroy(schedule);
}

// 0.3 a step; most outputs are short and some as long as can be: half of Pareto's lie below
// least * 2^(1 / 1.1), 3.8, and 1 in 74 beyond 100.
static void arrivals_and_lengths_are_as_the_load_says(void) {
    struct serving_schedule *schedule;
    int64_t shorter = 0, longest = 0;
    ok(serving_schedule_create(&load, 7, 100000, &schedule));
    const double count = (double)schedule->request_count;
    BASE_CHECK(fabs(count / 100000 - 0.3) < 0.01);
    for (int64_t i = 0; i < schedule->request_count; ++i) {
        const struct serving_request *request = &schedule->requests[i];
        BASE_CHECK(request->prompt >= 3 && request->prompt <= 60);
        BASE_CHECK(request->output >= 2 && request->output <= 100);
        shorter += request->output < 4;
        longest += request->output == 100;
    }
    BASE_CHECK(fabs((double)shorter / count - (1 - pow(2.0 / 4, 1.1))) < 0.02);
    BASE_CHECK(fabs((double)longest / count - pow(2.0 / 100, 1.1)) < 0.004);
    serving_schedule_destroy(schedule);
}

//------------------------------------------------------------------------------------------------
// Model

#define LENGTH 13
#define PROMPT 6
#define WORDS 29
static const struct serving_shape shape = {2, 16, 4, 2, 24, WORDS, 32, TENSOR_FLOAT32};
static const int64_t tokens[LENGTH] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9};
// In another order than the tokens', and the last one half empty.
static const int64_t pages[] = {5, 0, 3, 2};

struct world {
    struct tensor_place place, host;
    struct serving_model *model;
};

static struct tensor numbers(const struct world *world, const int64_t *values, int64_t count) {
    struct tensor result;
    ok(tensor_from_bytes(&world->place, TENSOR_INT64, &count, 1, values, &result));
    return result;
}

// Tokens FIRST to END at once, behind what CACHE has: the logits behind the last one.
static void run(const struct world *world, struct serving_cache *cache,
                struct serving_sequence *sequence, int64_t first, int64_t end, float *logits) {
    int64_t positions[LENGTH];
    const int64_t last = end - first - 1;
    struct serving_sequence *const sequences[] = {sequence};
    struct tensor result;
    for (int64_t i = first; i < end; ++i)
        positions[i - first] = i;
    sequence->length = first;
    sequence->rows = end - first;
    sequence->length_max = LENGTH;
    sequence->pages = pages;
    ok(serving_cache_begin(cache, &world->host, sequences, 1));
    struct serving_batch batch = {.count = 1,
                                  .sequences = sequences,
                                  .tokens = numbers(world, tokens + first, end - first),
                                  .positions = numbers(world, positions, end - first),
                                  .ends = numbers(world, &last, 1)};
    ok(serving_model_run(world->model, cache, &batch, &result));
    ok(tensor_read(result, logits));
    tensor_release(&result);
    tensor_release(&batch.tokens);
    tensor_release(&batch.positions);
    tensor_release(&batch.ends);
}

static struct serving_cache *cache_of(const struct world *world, enum serving_cache_kind kind) {
    const struct serving_cache_form form = {2, 8, 4, 6, TENSOR_FLOAT32};
    struct serving_cache *cache;
    ok(serving_cache_create(kind, &world->place, &form, &cache));
    return cache;
}

//------------------------------------------------------------------------------------------------
// The same model by plain loops, in double, without a cache

enum { WIDTH = 16, HEADS = 4, GROUPS = 2, COLUMNS = WIDTH / HEADS, INNER = 24, LAYERS = 2 };
typedef double row_of_width[WIDTH];

static const float *parameter_read(const struct serving_model *model, int index) {
    static float values[WORDS * WIDTH]; // the largest
    ok(tensor_read(model->parameters[index], values));
    return values;
}

static const float *layer_parameter(const struct serving_model *model, int layer, int which) {
    return parameter_read(model, 2 + layer * SERVING_LAYER_PARAMETER_COUNT + which);
}

static void product(const float *matrix, int to, int from, const double *in, double *out) {
    for (int i = 0; i < to; ++i) {
        out[i] = 0;
        for (int j = 0; j < from; ++j)
            out[i] += (double)matrix[i * from + j] * in[j];
    }
}

static void norm(const double *in, double *out) { // whose weights are 1
    double squares = 0;
    for (int i = 0; i < WIDTH; ++i)
        squares += in[i] * in[i];
    for (int i = 0; i < WIDTH; ++i)
        out[i] = in[i] / sqrt(squares / WIDTH + 1e-5);
}

// Each pair (column, column + half) by its angle.
static void turn(double *head, int position) {
    for (int i = 0; i < COLUMNS / 2; ++i) {
        const double angle = position * pow(10000, -2.0 * i / COLUMNS);
        const double x = head[i], y = head[i + COLUMNS / 2];
        head[i] = x * cos(angle) - y * sin(angle);
        head[i + COLUMNS / 2] = y * cos(angle) + x * sin(angle);
    }
}

// A query over COUNT keys and values of its group.
static void attend(const double *query, row_of_width *keys, row_of_width *values, int group,
                   int count, double *out) {
    double weights[LENGTH], total = 0;
    for (int i = 0; i < count; ++i) {
        double score = 0;
        for (int column = 0; column < COLUMNS; ++column)
            score += query[column] * keys[i][group * COLUMNS + column];
        total += weights[i] = exp(score / sqrt(COLUMNS));
    }
    for (int column = 0; column < COLUMNS; ++column) {
        out[column] = 0;
        for (int i = 0; i < count; ++i)
            out[column] += weights[i] / total * values[i][group * COLUMNS + column];
    }
}

static void layer_by_hand(const struct serving_model *model, int layer, int count,
                          row_of_width *rows) {
    row_of_width normed[LENGTH], queries[LENGTH], keys[LENGTH], values[LENGTH], heads, change;
    double gate[INNER], up[INNER];
    const float *weights = layer_parameter(model, layer, SERVING_QUERY);
    for (int row = 0; row < count; ++row) {
        norm(rows[row], normed[row]);
        product(weights, WIDTH, WIDTH, normed[row], queries[row]);
        for (int head = 0; head < HEADS; ++head)
            turn(queries[row] + head * COLUMNS, row);
    }
    weights = layer_parameter(model, layer, SERVING_KEY);
    for (int row = 0; row < count; ++row) {
        product(weights, GROUPS * COLUMNS, WIDTH, normed[row], keys[row]);
        for (int group = 0; group < GROUPS; ++group)
            turn(keys[row] + group * COLUMNS, row);
    }
    weights = layer_parameter(model, layer, SERVING_VALUE);
    for (int row = 0; row < count; ++row)
        product(weights, GROUPS * COLUMNS, WIDTH, normed[row], values[row]);
    weights = layer_parameter(model, layer, SERVING_JOIN);
    for (int row = 0; row < count; ++row) {
        for (int head = 0; head < HEADS; ++head)
            attend(queries[row] + head * COLUMNS, keys, values, head / (HEADS / GROUPS), row + 1,
                   heads + head * COLUMNS);
        product(weights, WIDTH, WIDTH, heads, change);
        for (int i = 0; i < WIDTH; ++i)
            rows[row][i] += change[i];
    }
    for (int row = 0; row < count; ++row) {
        norm(rows[row], normed[row]);
        product(layer_parameter(model, layer, SERVING_GATE), INNER, WIDTH, normed[row], gate);
        product(layer_parameter(model, layer, SERVING_UP), INNER, WIDTH, normed[row], up);
        for (int i = 0; i < INNER; ++i)
            up[i] *= gate[i] / (1 + exp(-gate[i]));
        product(layer_parameter(model, layer, SERVING_DOWN), WIDTH, INNER, up, change);
        for (int i = 0; i < WIDTH; ++i)
            rows[row][i] += change[i];
    }
}

// What comes behind the first COUNT tokens.
static void logits_by_hand(const struct serving_model *model, int count, double *logits) {
    row_of_width rows[LENGTH], last;
    const float *words = parameter_read(model, 0);
    for (int row = 0; row < count; ++row)
        for (int i = 0; i < WIDTH; ++i)
            rows[row][i] = (double)words[tokens[row] * WIDTH + i];
    for (int layer = 0; layer < LAYERS; ++layer)
        layer_by_hand(model, layer, count, rows);
    norm(rows[count - 1], last);
    product(parameter_read(model, 0), WORDS, WIDTH, last, logits);
}

// The prompt, then a token at a time.
static void logits_are_right(const struct world *world, enum serving_cache_kind kind) {
    struct serving_cache *const cache = cache_of(world, kind);
    struct serving_sequence sequence = {0};
    base_check_context("kind %d", (int)kind);
    for (int end = PROMPT; end <= LENGTH; ++end) {
        float logits[WORDS];
        double expected[WORDS];
        run(world, cache, &sequence, end == PROMPT ? 0 : end - 1, end, logits);
        logits_by_hand(world->model, end, expected);
        for (int word = 0; word < WORDS; ++word)
            BASE_CHECK(fabs((double)logits[word] - expected[word]) < 1e-4);
    }
    serving_sequence_end(cache, &sequence);
    serving_cache_destroy(cache);
    base_check_context(NULL);
}

static void model_tests(void) {
    struct world world = {.place = {.kind = TENSOR_CUDA}, .host = {.kind = TENSOR_CPU}};
    struct allocator_stats stats;
    ok(cca_allocator_create(&(struct cca_options){.config = ""}, &world.place.allocator));
    ok(tensor_host_allocator_create(false, &world.host.allocator));
    ok(serving_model_create(&world.place, &world.host, &shape, 9, false, &world.model));
    for (int kind = SERVING_CONCATENATED; kind <= SERVING_PAGED; ++kind)
        logits_are_right(&world, (enum serving_cache_kind)kind);
    serving_model_destroy(world.model);
    ok(allocator_stats(world.place.allocator, 0, &stats));
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(world.place.allocator);
    allocator_destroy(world.host.allocator);
}

//------------------------------------------------------------------------------------------------
// Program

struct outcome {
    uint64_t checksum;
    int64_t requests, peak_reserved;
};

static struct outcome serve(const char *variant, uint64_t seed) {
    const struct workload_program *program;
    struct workload_options options = {.variant = variant, .seed = seed, .size = WORKLOAD_MEDIUM};
    struct workload_result result;
    struct allocator_stats stats;
    ok(cca_allocator_create(&(struct cca_options){.config = ""}, &options.allocator));
    ok(workload_program_find("serving", &program));
    ok(workload_program_run(program, &options, &result));
    ok(allocator_stats(options.allocator, 0, &stats));
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(options.allocator);
    return (struct outcome){result.checksum, stats.allocation[ALLOCATOR_STAT_ALL].allocated,
                            stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak};
}

// One server, three ways to use memory: the same answers. Buffers for what a request may become
// take most; concatenation asks most often of what the host does not keep.
static void three_caches_give_one_answer(uint64_t seed) {
    const struct outcome concatenated = serve("concatenated", seed);
    const struct outcome preallocated = serve("preallocated", seed);
    const struct outcome paged = serve("paged", seed);
    base_check_context("seed %llu", (unsigned long long)seed);
    BASE_CHECK_EQ(preallocated.checksum, concatenated.checksum);
    BASE_CHECK_EQ(paged.checksum, concatenated.checksum);
    BASE_CHECK_LT(paged.peak_reserved, preallocated.peak_reserved);
    BASE_CHECK_GT(concatenated.requests, preallocated.requests);
    base_check_context(NULL);
}

int main(void) {
    ok(sim_schedule("eager"));
    batches_are_full_as_pages_allow();
    everyone_is_served();
    arrivals_and_lengths_are_as_the_load_says();
    model_tests();
    for (uint64_t seed = 1; seed <= 2; ++seed)
        three_caches_give_one_answer(seed);
    return 0;
}
