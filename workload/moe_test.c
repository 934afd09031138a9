// Where rows go; what a layer computes, beside plain loops; that training follows its gradients and
// learns; how uneven the loads are.
#include "workload/moe_model.h"

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
// Routes

static void rows_go_where_they_chose(void) {
    // Of five rows, the first and the second choice.
    static const int64_t choices[] = {2, 0, 2, 2, 1, 0, 2, 1, 0, 2};
    static const int64_t starts[] = {0, 3, 5, 10, 10};
    static const int64_t rows[] = {0, 1, 3, 2, 4, 0, 1, 2, 3, 4};
    static const int64_t fewer_starts[] = {0, 2, 4, 6, 6};
    static const int64_t fewer_rows[] = {0, 1, 2, 4, 0, 1};
    struct moe_routes_form form = {.rows = 5, .experts = 4, .choices = 2};
    struct moe_routes routes;
    ok(moe_routes_make(&form, choices, &routes));
    BASE_CHECK_EQ(memcmp(routes.starts, starts, sizeof starts), 0);
    BASE_CHECK_EQ(memcmp(routes.rows, rows, sizeof rows), 0);
    BASE_CHECK_EQ(routes.dropped, 0);
    moe_routes_deinit(&routes);
    form.capacity = 2;
    ok(moe_routes_make(&form, choices, &routes));
    BASE_CHECK_EQ(memcmp(routes.starts, fewer_starts, sizeof fewer_starts), 0);
    BASE_CHECK_EQ(memcmp(routes.rows, fewer_rows, sizeof fewer_rows), 0);
    BASE_CHECK_EQ(routes.dropped, 4);
    moe_routes_deinit(&routes);
}

// Of one choice an expert gets its share of the weights; of two, no row has one twice.
static void drawn_routes_are_as_uneven_as_the_weights(void) {
    static const double weights[] = {4, 1, 2, 1};
    struct moe_routes_form form = {.rows = 40000, .experts = 4, .choices = 1};
    struct base_random random = base_random_init(3, "test");
    struct moe_routes routes;
    ok(moe_routes_draw(&form, weights, &random, &routes));
    for (int64_t expert = 0; expert < 4; ++expert)
        BASE_CHECK(fabs((double)moe_routes_count(&routes, expert) / 40000 - weights[expert] / 8) <
                   0.01);
    moe_routes_deinit(&routes);
    form.choices = 2;
    ok(moe_routes_draw(&form, weights, &random, &routes));
    BASE_CHECK_EQ(routes.starts[4], 80000);
    for (int64_t expert = 0; expert < 4; ++expert)
        for (int64_t i = routes.starts[expert] + 1; i < routes.starts[expert + 1]; ++i)
            BASE_CHECK_LT(routes.rows[i - 1], routes.rows[i]);
    moe_routes_deinit(&routes);
}

//------------------------------------------------------------------------------------------------
// A layer beside plain loops

enum { WIDTH = 16, INNER = 24, EXPERTS = 6, ROWS = 40, WORDS = 13 };

struct world {
    struct tensor_place place, host;
    struct moe_model *model;
};

static struct world world_create(int choices, double capacity) {
    struct world world = {.place = {.kind = TENSOR_CUDA}, .host = {.kind = TENSOR_CPU}};
    const struct moe_shape shape = {2, WIDTH, INNER, EXPERTS, WORDS, choices, capacity};
    base_check_context("%d choices, capacity %g", choices, capacity);
    ok(cca_allocator_create(&(struct cca_options){.config = ""}, &world.place.allocator));
    ok(tensor_host_allocator_create(false, &world.host.allocator));
    ok(moe_model_create(&world.place, &world.host, &shape, 5, false, &world.model));
    return world;
}

static void world_destroy(struct world *world) {
    struct allocator_stats stats;
    moe_model_destroy(world->model);
    ok(allocator_stats(world->place.allocator, 0, &stats));
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(world->place.allocator);
    allocator_destroy(world->host.allocator);
    base_check_context(NULL);
}

static void product(const float *matrix, int to, int from, const double *in, double *out) {
    for (int i = 0; i < to; ++i) {
        out[i] = 0;
        for (int j = 0; j < from; ++j)
            out[i] += (double)matrix[i * from + j] * in[j];
    }
}

static void softmax(double *values) {
    double total = 0;
    for (int i = 0; i < EXPERTS; ++i)
        total += values[i] = exp(values[i]);
    for (int i = 0; i < EXPERTS; ++i)
        values[i] /= total;
}

static int likeliest(const double *values, int but) {
    int best = -1;
    for (int i = 0; i < EXPERTS; ++i)
        if (i != but && (best < 0 || values[i] > values[best])) best = i;
    return best;
}

// The first layer: its parameters stand behind the embedding and the last norm.
struct layer {
    float router[EXPERTS * WIDTH], skew[EXPERTS];
    float up[EXPERTS][INNER * WIDTH], down[EXPERTS][WIDTH * INNER];
};

static struct layer layer_read(const struct moe_model *model) {
    struct layer layer;
    ok(tensor_read(model->parameters[3], layer.router));
    ok(tensor_read(model->skew, layer.skew));
    for (int i = 0; i < EXPERTS; ++i) {
        ok(tensor_read(model->parameters[4 + 2 * i], layer.up[i]));
        ok(tensor_read(model->parameters[5 + 2 * i], layer.down[i]));
    }
    return layer;
}

static void row_by_hand(const struct layer *layer, int choices, const float *row, double *out) {
    double squares = 0, normed[WIDTH], shares[EXPERTS], inner[INNER], change[WIDTH];
    for (int i = 0; i < WIDTH; ++i)
        squares += (double)row[i] * (double)row[i];
    for (int i = 0; i < WIDTH; ++i)
        normed[i] = (double)row[i] / sqrt(squares / WIDTH + 1e-5);
    product(layer->router, EXPERTS, WIDTH, normed, shares);
    for (int i = 0; i < EXPERTS; ++i)
        shares[i] += (double)layer->skew[i];
    softmax(shares);
    const int first = likeliest(shares, -1), second = likeliest(shares, first);
    const double total = choices == 2 ? shares[first] + shares[second] : 1;
    for (int i = 0; i < WIDTH; ++i)
        out[i] = (double)row[i];
    for (int choice = 0; choice < choices; ++choice) {
        const int expert = choice == 0 ? first : second;
        product(layer->up[expert], INNER, WIDTH, normed, inner);
        for (int i = 0; i < INNER; ++i)
            inner[i] /= 1 + exp(-inner[i]);
        product(layer->down[expert], WIDTH, INNER, inner, change);
        for (int i = 0; i < WIDTH; ++i)
            out[i] += shares[expert] / total * change[i];
    }
}

static void a_layer_is_right(int choices) {
    struct world world = world_create(choices, 0);
    const struct layer layer = layer_read(world.model);
    const struct moe_pass pass = {.model = world.model};
    struct base_random random = base_random_init(2, "test");
    float input[ROWS * WIDTH], output[ROWS * WIDTH];
    struct tensor self, result;
    for (int i = 0; i < ROWS * WIDTH; ++i)
        input[i] = (float)(2 * base_random_unit(&random) - 1);
    ok(tensor_from_bytes(&world.place, TENSOR_FLOAT32, (int64_t[]){ROWS, WIDTH}, 2, input, &self));
    ok(moe_layer_run(&pass, 0, self, &result));
    ok(tensor_read(result, output));
    for (int row = 0; row < ROWS; ++row) {
        double expected[WIDTH];
        row_by_hand(&layer, choices, input + row * WIDTH, expected);
        for (int i = 0; i < WIDTH; ++i)
            BASE_CHECK(fabs((double)output[row * WIDTH + i] - expected[i]) < 1e-5);
    }
    tensor_release(&self);
    tensor_release(&result);
    world_destroy(&world);
}

//------------------------------------------------------------------------------------------------
// Training

#define BATCH 96

struct watch {
    int64_t loads[EXPERTS], rows, dropped; // of all steps; rows of the experts together
    int64_t last, changes;                 // of the first layer's first expert
    int64_t most;                          // of any expert in a step
};

static void on_routes(void *context, int layer, const struct moe_routes *routes) {
    struct watch *watch = context;
    for (int64_t expert = 0; expert < routes->experts; ++expert) {
        const int64_t count = moe_routes_count(routes, expert);
        watch->loads[expert] += count;
        watch->rows += count;
        if (count > watch->most) watch->most = count;
    }
    watch->dropped += routes->dropped;
    if (layer > 0) return;
    watch->changes += moe_routes_count(routes, 0) != watch->last;
    watch->last = moe_routes_count(routes, 0);
}

// A batch of tokens, each with one that follows it always.
static float train_step(const struct world *world, struct base_random *random, struct watch *watch,
                        double rate) {
    const struct moe_pass pass = {
        .model = world->model, .on_routes = watch != NULL ? on_routes : NULL, .context = watch};
    const int64_t count = BATCH;
    int64_t values[2][BATCH];
    struct tensor tokens, targets, loss;
    float result;
    for (int i = 0; i < BATCH; ++i) {
        values[0][i] = (int64_t)base_random_below(random, WORDS);
        values[1][i] = (5 * values[0][i] + 2) % WORDS;
    }
    ok(tensor_from_bytes(&world->place, TENSOR_INT64, &count, 1, values[0], &tokens));
    ok(tensor_from_bytes(&world->place, TENSOR_INT64, &count, 1, values[1], &targets));
    ok(moe_step(&pass, tokens, targets, rate, &loss));
    ok(tensor_read(loss, &result));
    tensor_release(&tokens);
    tensor_release(&targets);
    tensor_release(&loss);
    return result;
}

static double gradient_squares(const struct moe_model *model) {
    static float values[WORDS * WIDTH + INNER * WIDTH]; // at least the largest
    double sum = 0;
    for (int i = 0; i < model->parameter_count; ++i) {
        const struct tensor gradient = tensor_grad(model->parameters[i]);
        if (gradient.impl == NULL) continue;
        ok(tensor_read(gradient, values));
        for (int64_t at = 0; at < tensor_numel(gradient); ++at)
            sum += (double)values[at] * (double)values[at];
    }
    return sum;
}

// Down the gradients by a little, the loss of the same batch falls by rate * their squares: for all
// parameters together, those before a router too.
static void the_loss_falls_as_its_gradients_say(int choices) {
    struct world world = world_create(choices, 0);
    struct base_random random = base_random_init(4, "test");
    const double rate = 2e-4;
    struct base_random again = random;
    const double before = (double)train_step(&world, &random, NULL, rate);
    const double squares = gradient_squares(world.model);
    const double after = (double)train_step(&world, &again, NULL, rate);
    BASE_CHECK(fabs((before - after) / (rate * squares) - 1) < 0.05);
    world_destroy(&world);
}

// From knowing little to almost all: the next token is a rule of the last.
static struct watch it_learns(int choices, double capacity) {
    struct world world = world_create(choices, capacity);
    struct base_random random = base_random_init(6, "test");
    struct watch watch = {.rows = 0};
    float first = 0, last = 0;
    for (int step = 0; step < 60; ++step) {
        const float loss = train_step(&world, &random, &watch, 0.1);
        if (step == 0) first = loss;
        last = loss;
    }
    BASE_CHECK(first > 2);
    BASE_CHECK(last < 0.3F * first);
    BASE_CHECK_EQ(watch.rows + watch.dropped, 60 * 2 * choices * BATCH);
    world_destroy(&world);
    return watch;
}

// The busiest expert has at least three times what the idlest has, and another load than in the
// step before most of the time.
static void loads_are_uneven_and_change(int choices) {
    const struct watch watch = it_learns(choices, 0);
    int64_t most = 0, least = INT64_MAX;
    for (int expert = 0; expert < EXPERTS; ++expert) {
        if (watch.loads[expert] > most) most = watch.loads[expert];
        if (watch.loads[expert] < least) least = watch.loads[expert];
    }
    BASE_CHECK_GT(most, 3 * least);
    BASE_CHECK_GT(watch.changes, 40);
    BASE_CHECK_EQ(watch.dropped, 0);
}

// 1.25 even shares of 2 * 96 rows for 6 experts: 40.
static void capacity_limits_loads(void) {
    const struct watch watch = it_learns(2, 1.25);
    BASE_CHECK_EQ(watch.most, 40);
    BASE_CHECK_GT(watch.dropped, 0);
}

int main(void) {
    ok(sim_schedule("eager"));
    rows_go_where_they_chose();
    drawn_routes_are_as_uneven_as_the_weights();
    for (int choices = 1; choices <= 2; ++choices) {
        a_layer_is_right(choices);
        the_loss_falls_as_its_gradients_say(choices);
        loads_are_uneven_and_change(choices);
    }
    capacity_limits_loads();
    return 0;
}
