// The program `serving`: a decoder that answers requests as they come, each step with all that are
// there at once (continuous batching): the prompts of new ones and one token of each other.
// Variants are ways to keep keys and values (serving_cache.h):
//
//     concatenated   made anew and longer for every token
//     preallocated   for each request as long as it may become
//     paged          in pages of one pool
//
// All three serve the same batches (serving_schedule.h) and compute the same numbers: one checksum.
// A token is the most likely one, and stays on the device. The true size is Llama 3.2's 1B model,
// with a pool of 512 MiB, which holds less than is asked for at times.
#include "workload/programs.h"

#include "base/random.h"
#include "base/size.h"
#include "workload/serving_model.h"
#include "workload/serving_schedule.h"

#include <stdlib.h>
#include <string.h>

static const struct scale {
    struct serving_shape shape;
    struct serving_load load;
    size_t workspace_bytes; // of a product
} scales[] = {
    [WORKLOAD_SMALL] = {{2, 64, 4, 2, 128, 4999, 64, TENSOR_FLOAT32},
                        {0.6, 3, 24, 2, 40, 4, 17, 6},
                        2 * BASE_MIB},
    [WORKLOAD_MEDIUM] = {{4, 256, 8, 4, 704, 1000, 512, TENSOR_FLOAT32},
                         {0.5, 8, 200, 8, 300, 16, 40, 12},
                         8 * BASE_MIB},
    [WORKLOAD_TRUE] = {{16, 2048, 32, 8, 8192, 128256, 8192, TENSOR_BFLOAT16},
                       {0.8, 32, 4096, 32, 4096, 16, 1024, 64},
                       32 * BASE_MIB},
};

// A request's part of the server.
struct client {
    struct serving_sequence sequence;
    struct tensor token; // the last one made
};

struct server {
    struct workload_run *run;
    const struct scale *scale;
    struct serving_schedule *schedule;
    struct serving_model *model;
    struct serving_cache *cache;
    struct client *clients;          // of each request of the schedule
    struct serving_sequence **batch; // of this step
    struct tensor *pieces;           // for a list of each one's tokens
    int64_t *numbers;                // for positions and prompts
};

static struct client *client_of(const struct server *server, int index) {
    return &server->clients[server->schedule->active[index]->number];
}

static void client_drop(const struct server *server, struct client *client) {
    serving_sequence_end(server->cache, &client->sequence);
    tensor_release(&client->token);
}

static void left_drop(const struct server *server) {
    for (int i = 0; i < server->schedule->left_count; ++i)
        client_drop(server, &server->clients[server->schedule->left[i]->number]);
}

//------------------------------------------------------------------------------------------------
// A step's batch

static int64_t rows_of_batch(const struct server *server) {
    int64_t rows = 0;
    for (int i = 0; i < server->schedule->active_count; ++i)
        rows += serving_rows(server->schedule->active[i]);
    return rows;
}

static enum base_status numbers_load(const struct server *server, int64_t count,
                                     struct tensor *result) {
    return tensor_from_bytes(&server->run->devices[0], TENSOR_INT64, &count, 1, server->numbers,
                             result);
}

static enum base_status prompt_load(const struct server *server,
                                    const struct serving_request *request, struct tensor *result) {
    const uint64_t own = (uint64_t)request->number * UINT64_C(0x9e3779b97f4a7c15);
    struct base_random random = base_random_init(server->run->options.seed + own, "prompt");
    for (int64_t i = 0; i < request->prompt; ++i)
        server->numbers[i] =
            (int64_t)base_random_below(&random, (uint64_t)server->scale->shape.vocabulary);
    return numbers_load(server, request->prompt, result);
}

static enum base_status tokens_make(struct server *server, struct tensor *tokens) {
    const struct serving_schedule *schedule = server->schedule;
    enum base_status status = BASE_OK;
    int count = 0;
    for (; count < schedule->active_count && status == BASE_OK; ++count) {
        server->pieces[count] = (struct tensor){NULL};
        if (schedule->active[count]->cached == 0)
            status = prompt_load(server, schedule->active[count], &server->pieces[count]);
        else
            server->pieces[count] = tensor_retain(client_of(server, count)->token);
    }
    if (status == BASE_OK) status = tensor_cat(server->pieces, count, 0, tokens);
    while (count > 0)
        tensor_release(&server->pieces[--count]);
    return status;
}

static enum base_status positions_make(struct server *server, struct serving_batch *batch) {
    const struct serving_schedule *schedule = server->schedule;
    int64_t at = 0;
    for (int i = 0; i < batch->count; ++i)
        for (int64_t row = 0; row < serving_rows(schedule->active[i]); ++row)
            server->numbers[at++] = schedule->active[i]->cached + row;
    const enum base_status status = numbers_load(server, at, &batch->positions);
    if (status != BASE_OK) return status;
    at = 0;
    for (int i = 0; i < batch->count; ++i) {
        at += serving_rows(schedule->active[i]);
        server->numbers[i] = at - 1;
    }
    return numbers_load(server, batch->count, &batch->ends);
}

static enum base_status batch_make(struct server *server, struct serving_batch *batch) {
    const struct serving_schedule *schedule = server->schedule;
    const int64_t rows = rows_of_batch(server) + schedule->load.prompt_max;
    *batch = (struct serving_batch){.count = schedule->active_count, .sequences = server->batch};
    for (int i = 0; i < batch->count; ++i) {
        const struct serving_request *request = schedule->active[i];
        struct serving_sequence *sequence = &client_of(server, i)->sequence;
        server->batch[i] = sequence;
        sequence->length = request->cached;
        sequence->rows = serving_rows(request);
        sequence->length_max = request->prompt + schedule->load.output_max;
        sequence->pages = request->pages;
    }
    server->numbers = malloc((size_t)rows * sizeof *server->numbers);
    if (server->numbers == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld tokens", (long long)rows);
    enum base_status status = tokens_make(server, &batch->tokens);
    if (status == BASE_OK) status = positions_make(server, batch);
    free(server->numbers);
    if (status != BASE_OK) return status;
    return serving_cache_begin(server->cache, &server->run->host, server->batch, batch->count);
}

//------------------------------------------------------------------------------------------------
// Its answers

// Each request's token, a view of all.
static enum base_status tokens_keep(struct server *server, struct tensor tokens) {
    enum base_status status = BASE_OK;
    for (int i = 0; i < server->schedule->active_count && status == BASE_OK; ++i) {
        struct tensor token;
        status = tensor_narrow(tokens, 0, i, 1, &token);
        if (status != BASE_OK) break;
        tensor_release(&client_of(server, i)->token);
        client_of(server, i)->token = token;
    }
    return status;
}

static enum base_status batch_run(struct server *server, const struct serving_batch *batch,
                                  uint64_t step) {
    struct tensor logits, tokens = {NULL};
    enum base_status status = serving_model_run(server->model, server->cache, batch, &logits);
    if (status != BASE_OK) return status;
    status = tensor_argmax(logits, 1, false, &tokens);
    if (status == BASE_OK) status = tokens_keep(server, tokens);
    if (status == BASE_OK && !server->run->options.without_values) {
        status = workload_run_add(server->run, 2 * step, logits);
        if (status == BASE_OK) status = workload_run_add(server->run, 2 * step + 1, tokens);
    }
    tensor_release(&logits);
    tensor_release(&tokens);
    return status;
}

static enum base_status step_run(struct server *server, uint64_t step) {
    struct serving_batch batch = {0};
    enum base_status status = BASE_OK;
    serving_schedule_begin(server->schedule);
    left_drop(server);
    if (server->schedule->active_count > 0) {
        status = batch_make(server, &batch);
        if (status == BASE_OK) status = batch_run(server, &batch, step);
        tensor_release(&batch.tokens);
        tensor_release(&batch.positions);
        tensor_release(&batch.ends);
    }
    if (status != BASE_OK) return status;
    serving_schedule_end(server->schedule);
    left_drop(server);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The program

static enum serving_cache_kind kind_of(const char *variant) {
    return strcmp(variant, "paged") == 0          ? SERVING_PAGED
           : strcmp(variant, "preallocated") == 0 ? SERVING_PREALLOCATED
                                                  : SERVING_CONCATENATED;
}

static enum base_status server_init(struct server *server) {
    struct workload_run *run = server->run;
    const struct serving_shape *shape = &server->scale->shape;
    const struct serving_load *load = &server->scale->load;
    const struct serving_cache_form form = {.layers = shape->layers,
                                            .row = shape->groups * serving_head_size(shape),
                                            .page_tokens = load->page_tokens,
                                            .page_count = load->page_count,
                                            .type = shape->type};
    enum base_status status =
        serving_schedule_create(load, run->options.seed, run->options.steps, &server->schedule);
    if (status != BASE_OK) return status;
    const size_t count = (size_t)server->schedule->request_count;
    server->clients = calloc(count + 1, sizeof *server->clients);
    server->batch = calloc((size_t)load->batch_max, sizeof(struct serving_sequence *));
    server->pieces = calloc((size_t)load->batch_max, sizeof *server->pieces);
    if (server->clients == NULL || server->batch == NULL || server->pieces == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu requests", count);
    status = serving_model_create(&run->devices[0], &run->host, shape, run->options.seed,
                                  run->options.without_values, &server->model);
    if (status != BASE_OK) return status;
    return serving_cache_create(kind_of(run->options.variant), &run->devices[0], &form,
                                &server->cache);
}

static void server_deinit(struct server *server) {
    for (int64_t i = 0; server->cache != NULL && i < server->schedule->request_count; ++i)
        client_drop(server, &server->clients[i]);
    serving_cache_destroy(server->cache);
    serving_model_destroy(server->model);
    serving_schedule_destroy(server->schedule);
    free(server->clients);
    free(server->batch);
    free(server->pieces);
}

static enum base_status serving_run(struct workload_run *run) {
    struct server server = {.run = run, .scale = &scales[run->options.size]};
    tensor_set_workspaces(server.scale->workspace_bytes, 0);
    enum base_status status = server_init(&server);
    for (uint64_t step = 0; step < run->options.steps && status == BASE_OK; ++step) {
        status = step_run(&server, step);
        if (status == BASE_OK) status = workload_run_step(run);
    }
    server_deinit(&server);
    tensor_set_workspaces(0, 0);
    return status;
}

static const char *const variants[] = {"concatenated", "preallocated", "paged", NULL};

const struct workload_program workload_serving = {
    .name = "serving",
    .summary = "inference: requests as they come, batched anew each step, three ways of a KV cache",
    .variants = variants,
    .steps = {24, 64, 256},
    .device_count_min = 1,
    .device_count_max = 1,
    .run = serving_run,
};
