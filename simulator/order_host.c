// What the host knows of order.h. By default all host threads are one: what one of them did or saw
// comes before what another one does next. Under the reading threads=strict each has its own column
// and clock, and hands over what it knows by tokens only.
//
// A thread's steps have the same number until an operation or a token has taken it over: then
// whoever comes after the earlier step need not come after the next one.
#include "simulator/order_inside.h"

#include "base/address_map.h"
#include "simulator/pool.h"
#include "simulator/race.h"
#include "simulator/race_log.h"
#include "simulator/reading.h"

#include <stdlib.h>

struct token {
    const void *token;
    struct sim__order_clock *clock;
};

uint32_t sim__order_pool_count;
struct sim__order_clock *sim__order_seen;

static struct sim__host *hosts; // the first is that of all threads
static uint32_t host_count, host_size;
static bool strict; // as tracking started
static struct token *tokens;
static uint32_t token_count, token_size;
static struct base_address_map token_indices;

static _Thread_local struct {
    uint64_t generation;
    uint32_t host;
} own;

// --- Threads ---

static uint32_t host_add(void) {
    if (host_count == host_size) {
        host_size = host_size == 0 ? 4 : 2 * host_size;
        hosts = realloc(hosts, host_size * sizeof *hosts);
        if (hosts == NULL)
            sim__host_limit("out of host memory for the order of %u threads", host_size);
    }
    struct sim__host *host = &hosts[host_count];
    *host = (struct sim__host){.column = sim__column_add(), .version = 1};
    sim__clock_raise(&host->clock, host->column, 1);
    return host_count++;
}

struct sim__host *sim__host_current(void) {
    if (!strict)
        return &hosts[0];
    if (own.generation != sim__order_generation) {
        own.host = host_add();
        own.generation = sim__order_generation;
    }
    return &hosts[own.host];
}

// A thread that nobody has met yet knows nothing, so under threads=strict nothing is settled.
bool sim__order_is_settled(uint32_t column, uint64_t sequence) {
    return !strict && sim__clock_at(hosts[0].clock, column) >= sequence;
}

// Steps have numbers only where threads have an order of their own each.
struct sim__host *sim__host_step(void) {
    struct sim__host *host = sim__host_current();
    if (strict && host->published) {
        sim__clock_raise(&host->clock, host->column,
                         sim__clock_at(host->clock, host->column) + 1);
        ++host->version;
        host->published = false;
    }
    return host;
}

void sim__order_host(uint32_t *column, uint64_t *sequence) {
    const struct sim__host *host = sim__host_current();
    *column = host->column;
    *sequence = sim__clock_at(host->clock, host->column);
}

struct sim__order_view sim__order_view_host(void) {
    const struct sim__host *host = sim__host_step();
    struct sim__order_view view = {
        .known = host->clock->known,
        .count = host->clock->size,
        .column = host->column,
        .sequence = sim__clock_at(host->clock, host->column),
    };
    sim__order_view_settle(&view);
    return view;
}

bool sim__order_is_strict(void) { return strict; }

void sim__order_view_settle(struct sim__order_view *view) {
    if (strict)
        return;
    view->settled = hosts[0].clock->known;
    view->settled_count = hosts[0].clock->size;
}

static void log_wait(const struct sim__order_point *point) {
    if (sim__race_is_on())
        sim__race_log_host_wait(point->position, point->device);
}

static void learned(void) {
    if (sim__race_is_on())
        sim__race_learned();
}

void sim__order__observe(struct sim__order_point *point) {
    if (point->generation == sim__order_generation) {
        log_wait(point);
        struct sim__host *host = sim__host_current();
        if (sim__order_join(&host->clock, point))
            ++host->version;
        if (sim__order_pool_count > 0) {
            sim__order_join(&sim__order_seen, point);
            sim__pools_observed();
        }
        learned();
    }
    sim__order_release(point);
}

// Pools' columns stay as they are.
void sim__order__know(struct sim__order_point *point) {
    if (point->generation == sim__order_generation) {
        log_wait(point);
        struct sim__host *host = sim__host_current();
        bool news = point->sequence > 0 &&
                    sim__clock_raise(&host->clock, point->column, point->sequence);
        for (uint32_t i = 0; point->clock != NULL && i < point->clock->size; ++i)
            if (i < sim__column_count && !sim__columns[i].is_pools)
                news |= sim__clock_raise(&host->clock, i, point->clock->known[i]);
        host->version += news;
        learned();
    }
    sim__order_release(point);
}

// --- Tokens ---

// NULL if nobody signalled it.
static struct token *token_find(const void *token) {
    uint64_t index;
    return base_address_map_get(&token_indices, (uint64_t)(uintptr_t)token, &index)
               ? &tokens[index]
               : NULL;
}

static struct token *token_make(const void *token) {
    if (token_count == token_size) {
        token_size = token_size == 0 ? 16 : 2 * token_size;
        tokens = realloc(tokens, token_size * sizeof *tokens);
        if (tokens == NULL)
            sim__host_limit("out of host memory for %u hand-offs", token_size);
    }
    if (base_address_map_set(&token_indices, (uint64_t)(uintptr_t)token, token_count) != BASE_OK)
        sim__host_limit("out of host memory for %u hand-offs", token_size);
    tokens[token_count] = (struct token){token, NULL};
    return &tokens[token_count++];
}

void sim__order_signal(const void *token) {
    if (sim__order_count == 0 || !strict)
        return;
    struct sim__host *host = sim__host_current();
    struct token *found = token_find(token);
    if (found == NULL)
        found = token_make(token);
    sim__clock_unite(&found->clock, host->clock);
    host->published = true;
}

void sim__order_await(const void *token) {
    if (sim__order_count == 0 || !strict)
        return;
    struct sim__host *host = sim__host_current();
    struct token *found = token_find(token);
    if (found != NULL && sim__clock_unite(&host->clock, found->clock))
        ++host->version;
}

void sim__order_forget_token(const void *token) {
    struct token *found = token_find(token);
    uint64_t index;
    if (found == NULL)
        return;
    sim__clock_release(&found->clock);
    base_address_map_remove(&token_indices, (uint64_t)(uintptr_t)token, &index);
    *found = tokens[--token_count];
    if (index < token_count &&
        base_address_map_set(&token_indices, (uint64_t)(uintptr_t)found->token, index) != BASE_OK)
        sim__host_limit("out of host memory for %u hand-offs", token_size);
}

// --- Begin and end ---

void sim__hosts_clear(void) {
    for (uint32_t i = 0; i < host_count; ++i)
        sim__clock_release(&hosts[i].clock);
    for (uint32_t i = 0; i < token_count; ++i)
        sim__clock_release(&tokens[i].clock);
    base_address_map_deinit(&token_indices);
    sim__clock_release(&sim__order_seen);
    host_count = token_count = 0;
}

void sim__order_start(void) {
    ++sim__order_generation;
    sim__order_forget();
    sim__hosts_clear();
    strict = sim__reading_other[SIM__READING_THREADS];
    host_add();
}

void sim__order_use(void) {
    if (sim__order_count++ == 0)
        sim__order_start();
}

void sim__order_check_begin(void) { sim__order_use(); }

void sim__order_check_end(void) { --sim__order_count; }
